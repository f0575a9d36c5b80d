use std::sync::Arc;

use kubewire_indexer::{Id, Meta};
use proptest::prelude::*;

use super::*;

#[derive(Debug)]
struct Thing {
    name: String,
    version: String,
}

impl Meta for Thing {
    fn id(&self) -> Id<'_> {
        Id::new("", &self.name).resource_version(&self.version)
    }
}

type Obj = Arc<Thing>;

/// `name@version`
fn thing(text: &str) -> Obj {
    let (name, version) = text.split_once('@').unwrap();
    Arc::new(Thing { name: name.to_owned(), version: version.to_owned() })
}

fn item(text: &str) -> Admitted<Obj> {
    Admitted::new(thing(text)).unwrap()
}

fn list(text: &str) -> Replacement<Obj> {
    Replacement::new(text.split_whitespace().map(item).collect(), "1")
}

/// Known objects in the order in which they were last stored.
#[derive(Clone, Default)]
struct Known(Vec<(ObjectKey, Option<Obj>)>);

impl KnownObjects<Obj> for Known {
    fn known_keys(&self) -> Vec<ObjectKey> {
        self.0.iter().map(|(key, _)| key.clone()).collect()
    }

    fn known(&self, key: &ObjectKey) -> Option<Obj> {
        self.0.iter().find(|(known, _)| known == key)?.1.clone()
    }
}

impl Known {
    fn apply(&mut self, entry: &Deltas<Obj>) {
        let Some(key) = entry.key() else { return };
        self.0.retain(|(known, _)| known != key);
        self.0.extend(entry.outcome().map(|object| (key.clone(), Some(object.clone()))));
    }
}

/// `Added@1`; a tombstone as `Gone@1`, or `Gone` without an object.
fn show(delta: &Delta<Obj>) -> String {
    let kind = match delta {
        Delta::Deleted(deleted) if deleted.is_final_state_unknown() => "Gone",
        Delta::Bookmark(version) => return format!("Bookmark@{version}"),
        Delta::ReplacedAll(list) => {
            let items: Vec<_> =
                list.items.iter().map(|item| format!("{}@{}", item.key, item.object().version)).collect();
            return format!("ReplacedAll{items:?}").replace('"', "");
        }
        delta => delta.kind(),
    };
    delta.object().map_or(kind.to_owned(), |object| format!("{kind}@{}", object.version))
}

fn show_entry(entry: &Deltas<Obj>) -> String {
    let deltas: Vec<_> = entry.into_iter().map(show).collect();
    entry.key().map_or_else(String::new, |key| format!("{key} ")) + &deltas.join(" ")
}

struct Rig {
    state: State<Obj>,
    /// `None` for a FIFO without known objects.
    known: Option<Known>,
    batch: usize,
    out: Vec<String>,
}

impl Rig {
    fn new(delivery: Delivery, known: Option<&str>) -> Self {
        let mut store = Known::default();
        for text in known.unwrap_or_default().split_whitespace() {
            let object = (!text.ends_with('?')).then(|| thing(text));
            store.0.push((ObjectKey::cluster(text.split(['@', '?']).next().unwrap()), object));
        }
        let state = State::new(delivery, false);
        Self { state, known: known.map(|_| store), batch: 1, out: Vec::new() }
    }

    /// `+x@1` adds, `~x@1` updates, `-x@1` deletes, `=x@1 y@2` replaces, `r` resyncs, `b@1` is a bookmark, `p`
    /// pops, `*` pops all. An entry is noted with `!` where it is of the time before the sync.
    fn run(mut self, script: &str) -> Vec<String> {
        for step in script.split(',').map(str::trim) {
            self.step(step);
            self.state.validate();
        }
        self.out
    }

    fn step(&mut self, step: &str) {
        let known = self.known.clone();
        let known = known.as_ref().map(|known| known as &dyn KnownObjects<Obj>);
        match step.split_at(1) {
            ("+", text) => self.state.add(item(text)),
            ("~", text) => self.state.update(item(text)),
            ("-", text) => {
                let object = thing(text);
                self.state.delete(object.key(), Deleted::Known(object), known);
            }
            ("x", name) => self.state.delete_key(ObjectKey::cluster(name), known),
            ("=", text) => self.state.replace(list(text), known),
            ("r", _) => self.state.resync(known),
            ("b", text) => self.state.bookmark(&text[1..]),
            ("p", _) => assert!(self.pop()),
            ("*", _) => while self.pop() {},
            ("?", _) => self.out.push(format!("synced {}", self.state.has_synced())),
            other => panic!("{other:?}"),
        }
    }

    fn pop(&mut self) -> bool {
        let Some(taken) = self.state.take(self.batch) else { return false };
        let entries: Vec<_> = taken.entries.iter().map(show_entry).collect();
        self.out.push(entries.join(" & ") + if taken.initial { " !" } else { "" });
        for entry in &taken.entries {
            if let Some(known) = &mut self.known {
                known.apply(entry);
            }
        }
        self.state.finish();
        true
    }
}

/// Known objects (`-` for a FIFO without), script, entries that come out.
fn table(delivery: Delivery, rows: &[(&str, &str, &[&str])]) {
    for (known, script, want) in rows {
        let rig = Rig::new(delivery, (*known != "-").then_some(*known));
        assert_eq!(rig.run(script), *want, "{delivery:?} known {known:?} script {script:?}");
    }
}

#[test]
fn per_key_deltas_gather_behind_the_first_one_of_their_key() {
    table(
        Delivery::PerKey,
        &[
            ("-", "+foo@10, ~foo@12, -foo@15, *", &["foo Added@10 Updated@12 Deleted@15"]),
            ("-", "+foo@10, =foo@15, *", &["foo Added@10 Sync@15"]),
            (
                "-",
                "+foo@10, +bar@1, +foo@11, +foo@13, +zab@30, p, +foo@14, *",
                &["foo Added@10 Added@11 Added@13", "bar Added@1", "zab Added@30", "foo Added@14"],
            ),
        ],
    );
}

#[test]
fn a_list_deletes_what_waits_or_is_known_and_is_not_in_it() {
    table(
        Delivery::PerKey,
        &[
            ("-", "+foo@10, =, *", &["foo Added@10 Gone@10"]),
            ("", "+foo@10, =, *", &["foo Added@10 Gone@10"]),
            ("", "+foo@10, =foo@10, =, *", &["foo Added@10 Sync@10 Gone@10"]),
            ("", "+foo@10, -foo@10, =, *", &["foo Added@10 Deleted@10"]),
            ("", "+foo@10, =foo@10, =foo@10, =, *", &["foo Added@10 Sync@10 Sync@10 Gone@10"]),
            ("", "+foo@10, =, =, *", &["foo Added@10 Gone@10"]),
            ("", "+foo@10, -foo@10, +foo@11, =, *", &["foo Added@10 Deleted@10 Added@11 Gone@11"]),
            ("foo@5 bar@6 baz@7", "-baz@10, =foo@5, *", &["baz Deleted@10", "foo Sync@5", "bar Gone@6"]),
            ("foo@5 bar@6 baz@7", "+baz@10, =foo@5, *", &["baz Added@10 Gone@10", "foo Sync@5", "bar Gone@6"]),
            (
                "foo@5 bar@6 baz@7",
                "-bar@6, +bar@100, =foo@5, *",
                &["bar Deleted@6 Added@100 Gone@100", "foo Sync@5", "baz Gone@7"],
            ),
            (
                "foo@5 bar@6 baz@7",
                "=bar@100 foo@5, =foo@5, *",
                &["bar Sync@100 Gone@100 !", "foo Sync@5 Sync@5 !", "baz Gone@7 !"],
            ),
        ],
    );
}

#[test]
fn a_known_object_that_cannot_be_looked_up_becomes_a_tombstone_without_an_object() {
    table(Delivery::PerKey, &[("foo?", "=, *", &["foo Gone !"])]);
    table(Delivery::InOrderItems, &[("foo?", "=, *", &["foo Gone !"])]);
}

#[test]
fn a_deletion_before_a_list_that_has_the_object_again_is_not_lost() {
    table(Delivery::PerKey, &[("foo@1", "-foo@1, =foo@2, *", &["foo Deleted@1 Sync@2"])]);
}

#[test]
fn the_deletion_of_what_neither_waits_nor_is_known_is_dropped_per_key_and_told_in_order() {
    let rows: [(&str, &str, &[&str]); 4] = [
        ("-", "-baz@10, *", &[]),
        ("", "-baz@10, *", &[]),
        ("baz@1", "-baz@10, *", &["baz Deleted@10"]),
        ("", "+foo@1, -foo@2, *", &["foo Added@1 Deleted@2"]),
    ];
    table(Delivery::PerKey, &rows);
    table(Delivery::Coalescing, &rows);
    table(Delivery::InOrder, &[("-", "-baz@10, *", &["baz Deleted@10"])]);
    table(Delivery::InOrderItems, &[("", "-baz@10, *", &["baz Deleted@10"])]);
}

#[test]
fn a_resync_passes_over_what_waits() {
    table(
        Delivery::PerKey,
        &[
            ("foo@5", "-foo@6, r, *", &["foo Deleted@6"]),
            ("foo@5", "r, *", &["foo Sync@5 !"]),
            ("foo@5", "~foo@6, r, *", &["foo Updated@6"]),
            ("-", "~foo@6, p, r, *", &["foo Updated@6"]),
        ],
    );
    table(Delivery::InOrderItems, &[("bar@1 foo@5", "~foo@6, r, *", &["foo Updated@6", "bar Sync@1"])]);
}

#[test]
fn of_two_deletions_the_one_that_knows_more_is_kept() {
    table(
        Delivery::PerKey,
        &[
            ("foo@5", "-foo@6, =, *", &["foo Deleted@6"]),
            ("foo@5", "=, -foo@6, *", &["foo Deleted@6 !"]),
            ("foo@5", "-foo@6, -foo@7, *", &["foo Deleted@6"]),
            ("foo@5", "=, =, *", &["foo Gone@5 !"]),
        ],
    );
}

#[test]
fn a_deletion_by_key_alone_carries_the_newest_state_there_is() {
    table(
        Delivery::PerKey,
        &[
            ("foo@5", "xfoo, *", &["foo Gone@5"]),
            ("foo@5", "~foo@6, xfoo, *", &["foo Updated@6 Gone@6"]),
            ("", "xfoo, *", &[]),
        ],
    );
    table(Delivery::InOrder, &[("-", "xfoo, *", &["foo Gone"])]);
}

#[test]
fn it_is_synced_when_the_entries_of_the_first_list_are_finished() {
    for delivery in [Delivery::PerKey, Delivery::Coalescing, Delivery::InOrderItems] {
        let synced = |script| Rig::new(delivery, Some("")).run(script).pop().unwrap();
        assert_eq!(synced("?"), "synced false");
        assert_eq!(synced("+foo@1, ?"), "synced true");
        assert_eq!(synced("=, ?"), "synced true");
        assert_eq!(synced("=foo@1 bar@2, ?"), "synced false");
        assert_eq!(synced("=foo@1 bar@2, p, ?"), "synced false");
        assert_eq!(synced("=foo@1 bar@2, p, p, ?"), "synced true");
        assert_eq!(synced("=foo@1, +bar@1, p, ?"), "synced true");
    }
    let twice = |delivery| Rig::new(delivery, Some("")).run("=foo@1 foo@2, p, ?").pop().unwrap();
    assert_eq!(twice(Delivery::PerKey), "synced true");
    assert_eq!(twice(Delivery::InOrderItems), "synced false");
    let whole = Rig::new(Delivery::InOrder, None).run("=, ?, p, ?");
    assert_eq!(whole, ["synced false", "ReplacedAll[] !", "synced true"]);
}

#[test]
fn the_deletions_of_the_first_list_count_for_the_sync() {
    let out = Rig::new(Delivery::PerKey, Some("foo@5 bar@6 baz@7")).run("=foo@5, p, ?, p, ?, p, ?");
    let want = ["foo Sync@5 !", "synced false", "bar Gone@6 !", "synced false", "baz Gone@7 !", "synced true"];
    assert_eq!(out, want);
}

#[test]
fn the_objects_of_a_list_come_as_replaced_or_as_sync() {
    for (emit_replaced, want) in [(true, "foo Replaced@1"), (false, "foo Sync@1")] {
        let mut state = State::<Obj>::new(Delivery::PerKey, emit_replaced);
        state.replace(list("foo@1"), None);
        assert_eq!(show_entry(&state.take(1).unwrap().entries[0]), want);
    }
}

#[test]
fn an_entry_is_filed_under_the_key_of_its_tombstone_whatever_its_object_says() {
    for delivery in [Delivery::PerKey, Delivery::InOrder] {
        let mut state = State::<Obj>::new(delivery, true);
        state.add(item("a@1"));
        let key = ObjectKey::cluster("a");
        state.delete(key.clone(), Deleted::final_state_unknown(key.clone(), Some(thing("b@1"))), None);
        let taken = state.take(2).unwrap();
        assert!(taken.entries.iter().all(|entry| entry.key() == Some(&key)));
    }
}

#[test]
fn each_delivery_works_with_and_without_known_objects() {
    table(Delivery::InOrder, &[("foo@1", "=bar@2, r, *", &["ReplacedAll[bar@2] !", "SyncAll"])]);
    table(
        Delivery::InOrderItems,
        &[("-", "+foo@1, =bar@2, p, r, *", &["foo Added@1", "foo Gone@1", "bar Replaced@2"])],
    );
    table(Delivery::PerKey, &[("-", "+foo@1, =bar@2, p, r, *", &["foo Added@1 Gone@1", "bar Sync@2"])]);
}

#[test]
fn processing_counts_before_it_is_synced() {
    let mut state = State::<Obj>::new(Delivery::PerKey, true);
    state.replace(list("foo@1"), None);
    assert!(state.take(1).unwrap().initial);
    assert!(!state.has_synced(), "out, but not processed");
    assert!(state.finish().0.synced);
    assert!(state.has_synced());
}

#[test]
fn in_order_every_delta_is_an_entry_in_the_order_of_arrival() {
    table(
        Delivery::InOrderItems,
        &[
            ("", "+foo@10, ~foo@12, -foo@15, *", &["foo Added@10", "foo Updated@12", "foo Deleted@15"]),
            (
                "",
                "+foo@10, +bar@1, +foo@11, p, +foo@14, *",
                &["foo Added@10", "bar Added@1", "foo Added@11", "foo Added@14"],
            ),
            ("foo@5 bar@6 baz@7", "=foo@5, *", &["bar Gone@6 !", "baz Gone@7 !", "foo Replaced@5 !"]),
            (
                "foo@5 bar@6 baz@7",
                "-bar@6, +bar@100, =foo@5, *",
                &["bar Deleted@6", "bar Added@100", "bar Gone@100", "baz Gone@7", "foo Replaced@5"],
            ),
        ],
    );
}

#[test]
fn in_order_a_list_a_resync_and_a_bookmark_are_one_entry_each() {
    table(
        Delivery::InOrder,
        &[
            (
                "-",
                "+foo@1, =foo@2 bar@3, =, =foo@4, *",
                &["foo Added@1", "ReplacedAll[foo@2, bar@3]", "ReplacedAll[]", "ReplacedAll[foo@4]"],
            ),
            ("-", "b@123, =foo@1, *", &["Bookmark@123 !", "ReplacedAll[foo@1] !"]),
            ("-", "+foo@1, r, +bar@1, *", &["foo Added@1", "SyncAll", "bar Added@1"]),
        ],
    );
    table(Delivery::PerKey, &[("", "b@123, *", &[])]);
    table(Delivery::InOrderItems, &[("", "b@123, *", &[])]);
}

#[test]
fn a_batch_has_no_key_twice_and_ends_with_the_first_list() {
    let batches = |batch, script| Rig { batch, ..Rig::new(Delivery::InOrderItems, Some("")) }.run(script);
    let rows: [(usize, &str, &[&str]); 6] = [
        (10, "=a@1 b@1 c@1, *", &["a Replaced@1 & b Replaced@1 & c Replaced@1 !"]),
        (2, "=a@1 b@1, ~c@2, ~d@2, *", &["a Replaced@1 & b Replaced@1 !", "c Updated@2 & d Updated@2"]),
        (10, "=a@1, ~a@2, ~a@3, *", &["a Replaced@1 !", "a Updated@2", "a Updated@3"]),
        (10, "=a@1 b@1, ~b@2, ~c@2, *", &["a Replaced@1 & b Replaced@1 !", "b Updated@2 & c Updated@2"]),
        (2, "=a@1 b@1 c@1, *", &["a Replaced@1 & b Replaced@1 !", "c Replaced@1 !"]),
        (2, "=a@1 b@1 c@1, ~d@2, *", &["a Replaced@1 & b Replaced@1 !", "c Replaced@1 !", "d Updated@2"]),
    ];
    for (batch, script, want) in rows {
        assert_eq!(batches(batch, script), want, "{script}");
    }
    let whole = Rig { batch: 10, ..Rig::new(Delivery::InOrder, None) }.run("+a@1, +b@1, =c@1, +d@1, +e@1, *");
    assert_eq!(whole, ["a Added@1 & b Added@1", "ReplacedAll[c@1]", "d Added@1 & e Added@1"]);
}

#[test]
fn coalescing_keeps_the_first_kind_and_the_last_state() {
    table(
        Delivery::Coalescing,
        &[
            ("", "+a@1, ~a@2, ~b@1, ~a@3, *", &["a Added@3", "b Updated@1"]),
            ("a@1", "~a@2, ~a@3, =a@4, *", &["a Updated@4"]),
            ("a@1", "r, ~a@2, *", &["a Updated@2"]),
            ("a@1", "~a@2, -a@3, +a@4, ~a@5, *", &["a Updated@2 Deleted@3 Added@5"]),
            ("a@1", "~a@2, -a@3, +a@4, -a@5, +a@6, -a@7, *", &["a Updated@2 Deleted@3"]),
            ("a@1", "=, +a@4, -a@5, *", &["a Deleted@5 !"]),
        ],
    );
}

#[test]
fn what_exists_but_could_not_be_taken_is_not_deleted_by_a_list() {
    for delivery in [Delivery::PerKey, Delivery::InOrderItems] {
        let mut rig = Rig::new(delivery, Some("a@1 b@1 c@1"));
        let known = rig.known.clone().unwrap();
        let mut kept = list("a@2");
        kept.kept.push(ObjectKey::cluster("b"));
        rig.state.replace(kept, Some(&known));
        rig.step("*");
        rig.out.sort();
        assert_eq!(rig.out.len(), 2, "b is neither deleted nor replaced: {:?}", rig.out);
        assert_eq!(rig.out[1], "c Gone@1 !");
        let known = rig.known.clone().unwrap();
        rig.state.replace(Replacement { incomplete: true, ..list("") }, Some(&known));
        assert_eq!(rig.state.len(), 0, "something could not even be named: nothing is deleted");
    }
}

#[test]
fn a_list_sees_what_is_out_as_if_it_were_processed() {
    let known = Known::default();
    let mut state = State::<Obj>::new(Delivery::PerKey, true);
    state.add(item("a@1"));
    assert!(state.take(1).is_some());
    state.replace(list(""), Some(&known));
    state.finish();
    let taken = state.take(1).unwrap();
    assert_eq!(show_entry(&taken.entries[0]), "a Gone@1");
}

#[test]
fn a_list_sees_a_batch_that_is_out_as_if_it_were_processed() {
    let known = Known(vec![(ObjectKey::cluster("c"), Some(thing("c@1")))]);
    let mut state = State::<Obj>::new(Delivery::PerKey, true);
    state.add(item("a@2"));
    state.add(item("b@2"));
    state.delete(ObjectKey::cluster("c"), Deleted::Known(thing("c@2")), Some(&known));
    assert_eq!(state.take(9).unwrap().entries.len(), 3);
    state.replace(list("b@3"), Some(&known));
    state.finish();
    let taken = state.take(9).unwrap();
    let entries: Vec<_> = taken.entries.iter().map(show_entry).collect();
    assert_eq!(entries, ["b Replaced@3", "a Gone@2"]);
}

#[test]
fn a_version_is_applied_when_the_entries_that_came_before_it_are_finished() {
    let mut state = State::<Obj>::new(Delivery::PerKey, true);
    state.add(item("a@1"));
    state.mark_version("1");
    state.add(item("b@2"));
    state.mark_version("2");
    assert_eq!(state.applied_version(), "");
    assert!(state.take(1).is_some());
    state.mark_version("3");
    assert_eq!(state.applied_version(), "", "a is out");
    assert!(state.finish().0.version);
    assert_eq!(state.applied_version(), "1");
    assert!(state.take(1).is_some());
    assert!(state.finish().0.version);
    assert_eq!(state.applied_version(), "3");
    state.mark_version("4");
    assert_eq!(state.applied_version(), "4", "nothing is left");
}

#[derive(Clone, Debug)]
enum Op {
    Add(u8),
    Update(u8),
    Delete(u8),
    Replace(Vec<u8>),
    Resync,
    Take(usize),
    Finish,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let key = 0..5u8;
    let op = prop_oneof![
        3 => key.clone().prop_map(Op::Add),
        3 => key.clone().prop_map(Op::Update),
        3 => key.clone().prop_map(Op::Delete),
        1 => prop::collection::vec(key, 0..5).prop_map(Op::Replace),
        1 => Just(Op::Resync),
        4 => (1..4usize).prop_map(Op::Take),
        4 => Just(Op::Finish),
    ];
    prop::collection::vec(op, 0..80)
}

/// client-go's two queues, as plain lists that are searched from end to end. Taking processes at once.
#[derive(Default)]
struct Oracle {
    in_order: bool,
    queue: Vec<(String, Vec<String>)>,
    known: Vec<(String, String)>,
    populated: bool,
    initial: usize,
}

impl Oracle {
    fn put(&mut self, key: &str, delta: String) {
        let place = self.queue.iter().position(|(other, _)| other == key).filter(|_| !self.in_order);
        let Some(place) = place else { return self.queue.push((key.to_owned(), vec![delta])) };
        let list = &mut self.queue[place].1;
        let deletion = |text: &str| text.starts_with("Deleted") || text.starts_with("Gone");
        if deletion(&delta) && list.last().is_some_and(|last| deletion(last)) {
            if list.last().is_some_and(|last| last.starts_with("Gone")) {
                *list.last_mut().unwrap() = delta;
            }
        } else {
            list.push(delta);
        }
    }

    fn newest(&self, key: &str) -> Option<&String> {
        self.queue.iter().rev().find(|(other, _)| other == key).and_then(|(_, list)| list.last())
    }

    fn replace(&mut self, items: &[(String, String)]) {
        let mut gone = Vec::new();
        for (key, _) in &self.queue {
            let newest = self.newest(key).unwrap();
            let deleted = newest.starts_with("Deleted") || newest.starts_with("Gone");
            if !items.iter().any(|(other, _)| other == key) && !deleted && !gone.iter().any(|(other, _)| other == key) {
                gone.push((key.clone(), newest.split('@').next_back().unwrap().to_owned()));
            }
        }
        for (key, version) in &self.known {
            if !items.iter().any(|(other, _)| other == key) && self.newest(key).is_none() {
                gone.push((key.clone(), version.clone()));
            }
        }
        let puts =
            |this: &mut Self| items.iter().for_each(|(key, version)| this.put(key, format!("Replaced@{version}")));
        if !self.in_order {
            puts(self);
        }
        gone.iter().for_each(|(key, version)| self.put(key, format!("Gone@{version}")));
        if self.in_order {
            puts(self);
        }
        if !std::mem::replace(&mut self.populated, true) {
            self.initial = self.queue.len();
        }
    }

    fn take(&mut self, max: usize) -> Vec<String> {
        let mut out: Vec<(String, Vec<String>)> = Vec::new();
        let bound = if self.initial > 0 { max.min(self.initial) } else { max };
        while out.len() < bound && !self.queue.is_empty() && !out.iter().any(|(key, _)| *key == self.queue[0].0) {
            let (key, list) = self.queue.remove(0);
            self.known.retain(|(known, _)| *known != key);
            match list.last().unwrap().split_once('@').unwrap() {
                ("Deleted" | "Gone", _) => {}
                (_, version) => self.known.push((key.clone(), version.to_owned())),
            }
            out.push((key, list));
        }
        self.initial = self.initial.saturating_sub(out.len());
        out.into_iter().map(|(key, list)| format!("{key} {}", list.join(" "))).collect()
    }
}

fn agrees_with_the_oracle(delivery: Delivery, ops: Vec<Op>) -> Result<(), TestCaseError> {
    let mut oracle = Oracle { in_order: delivery == Delivery::InOrderItems, ..Oracle::default() };
    let mut state = State::<Obj>::new(delivery, true);
    let mut known = Known::default();
    let mut out = Vec::new();
    let mut last_finished_by_us = true;
    for (version, op) in ops.into_iter().enumerate() {
        let object = |key: u8| format!("k{key}@{version}");
        match op {
            Op::Add(key) => {
                oracle.populated = true;
                oracle.put(&format!("k{key}"), format!("Added@{version}"));
                state.add(item(&object(key)));
            }
            Op::Update(key) => {
                oracle.populated = true;
                oracle.put(&format!("k{key}"), format!("Updated@{version}"));
                state.update(item(&object(key)));
            }
            Op::Delete(key) => {
                let name = format!("k{key}");
                oracle.populated = true;
                if oracle.in_order
                    || oracle.newest(&name).is_some()
                    || oracle.known.iter().any(|(known, _)| *known == name)
                {
                    oracle.put(&name, format!("Deleted@{version}"));
                }
                state.delete(ObjectKey::cluster(&name), Deleted::Known(thing(&object(key))), Some(&known));
            }
            // The order in which several that are out will be known is open.
            Op::Replace(_) | Op::Resync if out.len() > 1 => {}
            Op::Replace(keys) => {
                let items: Vec<_> = keys.iter().map(|key| (format!("k{key}"), version.to_string())).collect();
                oracle.replace(&items);
                let text: Vec<_> = keys.into_iter().map(object).collect();
                state.replace(list(&text.join(" ")), Some(&known));
            }
            Op::Resync => {
                for (key, version) in oracle.known.clone() {
                    if oracle.newest(&key).is_none() {
                        oracle.put(&key, format!("Sync@{version}"));
                    }
                }
                state.resync(Some(&known));
            }
            Op::Take(max) if out.is_empty() => {
                let Some(taken) = state.take(max) else {
                    prop_assert!(oracle.queue.is_empty());
                    continue;
                };
                let shown: Vec<_> = taken.entries.iter().map(show_entry).collect();
                prop_assert_eq!(shown, oracle.take(max));
                out = taken.entries.into_vec();
                last_finished_by_us = false;
            }
            Op::Take(_) => prop_assert!(state.take(1).is_none(), "one at a time"),
            Op::Finish => {
                out.drain(..).for_each(|entry| known.apply(&entry));
                state.finish();
                last_finished_by_us = true;
            }
        }
        state.validate();
        prop_assert_eq!(state.len(), oracle.queue.len());
        if last_finished_by_us {
            prop_assert_eq!(state.has_synced(), oracle.populated && oracle.initial == 0);
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn per_key_agrees_with_a_naive_queue(ops in ops()) {
        agrees_with_the_oracle(Delivery::PerKey, ops)?;
    }

    #[test]
    fn in_order_agrees_with_a_naive_queue(ops in ops()) {
        agrees_with_the_oracle(Delivery::InOrderItems, ops)?;
    }

    /// Whatever is merged, the store comes to the same state, at every moment in which nothing waits.
    #[test]
    fn every_delivery_leads_to_the_same_store(ops in ops()) {
        let deliveries = [Delivery::PerKey, Delivery::Coalescing, Delivery::InOrderItems];
        let mut rigs = deliveries.map(|delivery| Rig::new(delivery, Some("")));
        for (version, op) in ops.into_iter().enumerate() {
            for rig in &mut rigs {
                match &op {
                    Op::Add(key) => rig.step(&format!("+k{key}@{version}")),
                    Op::Update(key) => rig.step(&format!("~k{key}@{version}")),
                    Op::Delete(key) => rig.step(&format!("-k{key}@{version}")),
                    Op::Replace(keys) => {
                        let items: Vec<_> = keys.iter().map(|key| format!("k{key}@{version}")).collect();
                        rig.step(&format!("={}", items.join(" ")));
                    }
                    Op::Resync => rig.step("r"),
                    Op::Take(_) => { rig.pop(); }
                    Op::Finish => rig.step("*"),
                }
                rig.state.validate();
            }
            if matches!(op, Op::Finish) {
                let stores = rigs.each_ref().map(|rig| {
                    let mut store: Vec<_> = rig.known.iter().flat_map(|known| &known.0).map(|known| format!("{known:?}")).collect();
                    store.sort();
                    store
                });
                prop_assert_eq!(&stores[0], &stores[1]);
                prop_assert_eq!(&stores[0], &stores[2]);
            }
        }
    }
}

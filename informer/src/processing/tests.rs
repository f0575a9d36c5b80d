use kubewire_indexer::{Id, Meta};

use super::*;

#[derive(Debug, PartialEq)]
struct Thing(&'static str, &'static str);

impl Meta for Thing {
    fn id(&self) -> Id<'_> {
        Id::new("", self.0).resource_version(self.1)
    }
}

type Obj = Arc<Thing>;

fn item(name: &'static str, version: &'static str) -> Admitted<Obj> {
    Admitted::new(Arc::new(Thing(name, version))).unwrap()
}

fn entry(delta: Delta<Obj>) -> Deltas<Obj> {
    let key = match &delta {
        Delta::ReplacedAll(_) | Delta::SyncAll | Delta::Bookmark(_) => None,
        Delta::Deleted(deleted) => Some(deleted.key()),
        delta => delta.object().map(Object::key),
    };
    match key {
        Some(key) => Deltas::new(key, 0, delta),
        None => Deltas::whole(delta),
    }
}

fn show(told: &Told<Obj>) -> String {
    let resync = if told.resync { " resync" } else { "" };
    match &told.notification {
        Notification::Added { object, is_in_initial_list: true } => format!("+{}@{}!", object.0, object.1),
        Notification::Added { object, .. } => format!("+{}@{}", object.0, object.1),
        Notification::Updated { old, new } => format!("~{}@{}>{}{resync}", new.0, old.1, new.1),
        Notification::Deleted(deleted) => {
            let last = deleted.last_known().map_or("", |last| last.1);
            format!("-{}@{last}{}", told.key, if deleted.is_final_state_unknown() { "?" } else { "" })
        }
    }
}

struct Rig {
    indexer: Indexer<Obj>,
    applier: Applier<Obj>,
}

impl Rig {
    fn new(stored: &[(&'static str, &'static str)]) -> Self {
        let indexer = Indexer::new();
        stored.iter().for_each(|&(name, version)| drop(indexer.add(Arc::new(Thing(name, version)))));
        Self { applier: Applier::new(indexer.clone()), indexer }
    }

    /// What is told after each write.
    fn apply(&mut self, deltas: Vec<Delta<Obj>>) -> Vec<Vec<String>> {
        let mut steps = Vec::new();
        let entries: Vec<_> = deltas.into_iter().map(entry).collect();
        self.applier.apply(entries, false, &mut |told| steps.push(told.iter().map(show).collect()));
        steps
    }

    fn stored(&self) -> Vec<String> {
        let mut stored: Vec<_> = self.indexer.list().iter().map(|thing| format!("{}@{}", thing.0, thing.1)).collect();
        stored.sort();
        stored
    }
}

#[test]
fn the_store_decides_whether_an_object_is_added_or_updated() {
    for make in [Delta::Added, Delta::Updated, Delta::Replaced] {
        assert_eq!(Rig::new(&[]).apply(vec![make(item("a", "2").received)]), [["+a@2"]]);
        assert_eq!(Rig::new(&[("a", "1")]).apply(vec![make(item("a", "2").received)]), [["~a@1>2"]]);
        assert_eq!(Rig::new(&[("a", "2")]).apply(vec![make(item("a", "2").received)]), [["~a@2>2 resync"]]);
    }
    assert_eq!(Rig::new(&[]).apply(vec![Delta::Sync(item("a", "2").received)]), [["+a@2"]]);
    assert_eq!(Rig::new(&[("a", "1")]).apply(vec![Delta::Sync(item("a", "2").received)]), [["~a@1>2 resync"]]);
}

#[test]
fn objects_without_a_version_are_never_taken_for_unchanged() {
    assert_eq!(Rig::new(&[("a", "")]).apply(vec![Delta::Updated(item("a", "").received)]), [["~a@>"]]);
}

#[test]
fn a_batch_is_written_in_one_step_and_told_in_its_order() {
    let mut rig = Rig::new(&[("b", "1"), ("c", "1")]);
    let deleted = Deleted::Known(Arc::new(Thing("c", "4")));
    let batch =
        vec![Delta::Added(item("a", "2").received), Delta::Updated(item("b", "3").received), Delta::Deleted(deleted)];
    assert_eq!(rig.apply(batch), [["+a@2", "~b@1>3", "-c@4"]]);
    assert_eq!(rig.stored(), ["a@2", "b@3"]);
    assert_eq!(rig.indexer.last_version(), "4");
}

#[test]
fn the_deltas_of_one_entry_are_written_and_told_one_by_one() {
    let mut rig = Rig::new(&[]);
    let mut entry = entry(Delta::Added(item("a", "1").received));
    entry.list_mut().push(Delta::Updated(item("a", "2").received));
    entry.list_mut().push(Delta::Deleted(Deleted::Known(Arc::new(Thing("a", "3")))));
    let indexer = rig.indexer.clone();
    let mut steps = Vec::new();
    rig.applier.apply(vec![entry], true, &mut |told| {
        steps.push((show(&told[0]), indexer.get_by_key(&told[0].key).map(|thing| thing.1)));
    });
    let told = |text: &str, stored| (text.to_owned(), stored);
    assert_eq!(steps, [told("+a@1!", Some("1")), told("~a@1>2", Some("2")), told("-a@3", None)]);
}

#[test]
fn a_tombstone_without_an_object_gets_the_one_that_was_stored() {
    let gone = |key: &str| Delta::Deleted(Deleted::final_state_unknown(ObjectKey::cluster(key), None));
    assert_eq!(Rig::new(&[("a", "1")]).apply(vec![gone("a")]), [["-a@1?"]]);
    assert_eq!(Rig::new(&[]).apply(vec![gone("a")]), [["-a@?"]]);
}

#[test]
fn a_whole_list_is_compared_with_the_store_as_it_was_before_and_with_itself_where_it_has_an_object_twice() {
    let list = |items: Vec<Admitted<Obj>>| Delta::ReplacedAll(Box::new(Replacement::new(items, "9")));
    let mut rig = Rig::new(&[("a", "1"), ("b", "1"), ("c", "1")]);
    let items = vec![item("d", "5"), item("b", "1"), item("a", "7"), item("a", "8")];
    assert_eq!(rig.apply(vec![list(items)]), [["-c@1?", "+d@5", "~b@1>1 resync", "~a@1>7", "~a@7>8"]]);
    assert_eq!(rig.stored(), ["a@8", "b@1", "d@5"]);
    assert_eq!(rig.indexer.last_version(), "9");
    let twice = vec![item("x", "1"), item("x", "2")];
    assert_eq!(Rig::new(&[]).apply(vec![list(twice)]), [["+x@1", "~x@1>2"]]);
}

#[test]
fn what_a_whole_list_could_not_take_stays() {
    let mut rig = Rig::new(&[("a", "1"), ("b", "1"), ("c", "1")]);
    let mut list = Replacement::new(vec![item("a", "2")], "9");
    list.kept.push(ObjectKey::cluster("b"));
    assert_eq!(rig.apply(vec![Delta::ReplacedAll(Box::new(list))]), [["-c@1?", "~a@1>2"]]);
    assert_eq!(rig.stored(), ["a@2", "b@1"]);
    let mut list = Replacement::new(vec![item("d", "1")], "10");
    list.incomplete = true;
    assert_eq!(rig.apply(vec![Delta::ReplacedAll(Box::new(list))]), [["+d@1"]]);
    assert_eq!(rig.stored(), ["a@2", "b@1", "d@1"]);
}

#[test]
fn a_whole_resync_tells_what_is_stored_when_its_turn_comes() {
    let mut rig = Rig::new(&[("a", "1")]);
    let steps =
        rig.apply(vec![Delta::Updated(item("a", "2").received), Delta::SyncAll, Delta::Bookmark("9".to_owned())]);
    assert_eq!(steps, [["~a@1>2"], ["~a@2>2 resync"]]);
    assert_eq!(rig.indexer.last_version(), "9");
}

#[test]
fn whether_a_state_is_new_is_decided_by_the_version_that_the_server_gave() {
    let stripped = |original: &str| {
        let mut item = item("a", "");
        item.received.original_version = Some(Arc::from(original));
        item
    };
    let mut rig = Rig::new(&[]);
    assert_eq!(rig.apply(vec![Delta::Added(stripped("1").received)]), [["+a@"]]);
    assert_eq!(rig.apply(vec![Delta::Updated(stripped("2").received)]), [["~a@>"]]);
    assert_eq!(rig.apply(vec![Delta::Replaced(stripped("2").received)]), [["~a@> resync"]]);
    assert_eq!(rig.apply(vec![Delta::Sync(item("a", "").received)]), [["~a@> resync"]]);
    let list = |version: &str| Delta::ReplacedAll(Box::new(Replacement::new(vec![stripped(version)], "9")));
    assert_eq!(rig.apply(vec![list("2")]), [["~a@> resync"]], "a resync has not made it forget");
    assert_eq!(rig.apply(vec![list("3")]), [["~a@>"]]);
    let gone = Delta::ReplacedAll(Box::new(Replacement::new(vec![], "10")));
    assert_eq!(rig.apply(vec![gone]), [["-a@?"]]);
    assert!(rig.applier.original_versions.is_empty());
}

#[test]
fn a_deletion_forgets_the_version_that_the_server_gave() {
    let mut rig = Rig::new(&[]);
    let mut stripped = item("a", "");
    stripped.received.original_version = Some(Arc::from("1"));
    rig.apply(vec![Delta::Added(stripped.received)]);
    assert_eq!(rig.applier.original_versions.len(), 1);
    rig.apply(vec![Delta::Deleted(Deleted::Known(item("a", "").into_object()))]);
    assert!(rig.applier.original_versions.is_empty());
}

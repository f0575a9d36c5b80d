use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::Registry;
use crate::collection::HistoryLimits;
use crate::form::View;
use crate::store::{CollectionId, Store};
use crate::stored::Draft;

const PODS: CollectionId = CollectionId(0);
const WHOLE: Form = Form { view: View::Whole, format: Format::Json };
const FORMS: [Form; 2] = [WHOLE, Form { view: View::Metadata, format: Format::Json }];

/// What a client of a watch knows: labels by name, or nothing once the watch failed.
struct Follower {
    cursor: Cursor,
    seen: BTreeMap<String, String>,
    version: u64,
    is_complete: bool,
    backlog_max: usize,
}

impl Follower {
    fn begin(store: &Store, query: &str, form: Form, seen: BTreeMap<String, String>) -> Self {
        let query = Query::parse(query);
        let collection = store.collection(PODS);
        let selection = Selection::parse(&collection.resource, Some("ns"), &query).unwrap();
        let options = WatchOptions::parse(&query).unwrap();
        let is_complete = !options.initial_events;
        let cursor = Cursor::begin(collection, selection, form, options, store.version()).unwrap();
        Self { cursor, seen, version: 0, is_complete, backlog_max: usize::MAX }
    }

    fn apply(&mut self, line: &Line) {
        let bytes = [&line.bytes[..], &line.more.clone().unwrap_or_default()].concat();
        assert_eq!(bytes.iter().filter(|byte| **byte == b'\n').count(), 1, "one line");
        let event: Value = serde_json::from_slice(&bytes).unwrap();
        let metadata = &event["object"]["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (name, label) = (text(&metadata["name"]), text(&metadata["labels"]["l"]));
        let version: u64 = text(&metadata["resourceVersion"]).parse().unwrap();
        if self.is_complete {
            assert!(version > self.version || line.what == LineKind::Bookmark, "{version} after {}", self.version);
            self.version = version;
        }
        match event["type"].as_str().unwrap() {
            "ADDED" => assert_eq!(self.seen.insert(name, label), None, "added twice"),
            "MODIFIED" => assert!(self.seen.insert(name, label).is_some(), "modified before it was added"),
            "DELETED" => assert!(self.seen.remove(&name).is_some(), "deleted before it was added"),
            "BOOKMARK" => self.is_complete |= line.what == LineKind::InitialEventsEnd,
            other => panic!("{other}"),
        }
    }

    /// Reads some of what there is; whether there was something.
    fn read(&mut self, store: &Store) -> Result<bool, FellBehind> {
        let initial = self.cursor.initial_lines();
        if !initial.is_empty() {
            initial.iter().for_each(|line| self.apply(line));
            return Ok(true);
        }
        let events = self.cursor.take_events(store.collection(PODS), store.version(), self.backlog_max)?;
        for event in &events {
            if let Some(line) = self.cursor.line(event) {
                self.apply(&line);
            }
        }
        Ok(!events.is_empty())
    }
}

fn selected(store: &Store, query: &str) -> (BTreeMap<String, String>, u64) {
    let collection = store.collection(PODS);
    let selection = Selection::parse(&collection.resource, Some("ns"), &Query::parse(query)).unwrap();
    let options = list::ListOptions::parse(&Query::default()).unwrap();
    let listed = options.run(collection, &selection, store.version()).unwrap();
    let label = |object: &Arc<Stored>| object.labels.get("l").unwrap_or_default().to_owned();
    (listed.items.iter().map(|object| (object.key.name().to_owned(), label(object))).collect(), listed.version)
}

proptest! {
    /// Watches with selectors, begun at random moments by list and watch or by streaming list, read at random moments:
    /// each event fits what the client knows, and in the end it knows what a list would tell.
    #[test]
    fn a_client_that_follows_a_watch_knows_in_the_end_what_a_list_tells(
        steps in prop::collection::vec((0..7u8, 0..4usize, 0..3u8), 1..120),
    ) {
        const SELECTORS: [&str; 4] = ["", "labelSelector=l=1", "labelSelector=l!=1", "fieldSelector=metadata.name=n2"];
        let pods = Registry::default().get(&"pods".into()).unwrap().clone();
        let mut store = Store::new([pods.clone()], HistoryLimits { events_max: 1000, superseded_bytes_max: 1 << 30 });
        let mut followers: Vec<(&str, Follower)> = Vec::new();
        for (what, which, label) in steps {
            let name = format!("n{which}");
            let namespace = if label == 2 && what == 1 { "other" } else { "ns" };
            match what {
                0 | 1 => {
                    let labels = json!({"l": label.to_string()});
                    let pod = json!({"metadata": {"namespace": namespace, "name": name, "labels": labels}});
                    store.put(PODS, Draft::new(&pods, &pod));
                }
                2 => drop(store.remove(PODS, &kubewire_indexer::ObjectKey::new(namespace, &name))),
                3 => {
                    let selector = SELECTORS[which];
                    let (seen, version) = selected(&store, selector);
                    let query = format!("{selector}&resourceVersion={version}");
                    followers.push((selector, Follower::begin(&store, &query, FORMS[usize::from(label) % 2], seen)));
                }
                4 => {
                    let selector = SELECTORS[which];
                    let query = format!("{selector}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1");
                    let form = FORMS[usize::from(label) % 2];
                    followers.push((selector, Follower::begin(&store, &query, form, BTreeMap::new())));
                }
                _ => {
                    let count = followers.len().max(1);
                    if let Some((_, follower)) = followers.get_mut(which % count) {
                        follower.read(&store).unwrap();
                        if let Some(bookmark) = follower.cursor.bookmark().filter(|_| follower.is_complete) {
                            follower.apply(&bookmark);
                        }
                    }
                }
            }
        }
        for (selector, mut follower) in followers {
            while follower.read(&store).unwrap() {}
            prop_assert!(follower.is_complete);
            prop_assert_eq!(follower.seen, selected(&store, selector).0);
        }
    }
}

#[test]
fn a_bookmark_is_never_ahead_of_what_was_told() {
    let pods = Registry::default().get(&"pods".into()).unwrap().clone();
    let mut store = Store::new([pods.clone()], HistoryLimits { events_max: 1000, superseded_bytes_max: 1 << 30 });
    let query = format!("resourceVersion={}&allowWatchBookmarks=true", store.version());
    let mut follower = Follower::begin(&store, &query, WHOLE, BTreeMap::new());
    let pod = |n: usize| json!({"metadata": {"namespace": "ns", "name": format!("n{n}")}});
    (0..BATCH_LEN_MAX + 10).for_each(|n| drop(store.put(PODS, Draft::new(&pods, &pod(n)))));
    follower.read(&store).unwrap();
    assert_eq!(follower.cursor.position, 1 + BATCH_LEN_MAX as u64);
    follower.read(&store).unwrap();
    store.skip_versions(5);
    assert!(!follower.read(&store).unwrap());
    assert_eq!(follower.cursor.position, store.version());
    follower.backlog_max = 1;
    (0..2).for_each(|n| drop(store.put(PODS, Draft::new(&pods, &pod(n)))));
    assert!(follower.read(&store).is_err(), "too slow");
}

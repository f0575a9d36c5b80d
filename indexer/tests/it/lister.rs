//! Listers.

use kubewire_indexer::{Indexer, Indexers, LabelSelector, Lister, Object, ObjectKey};

use super::PodRef;
use crate::record::{Form, Pod};

const N: usize = 2_000;

fn things(indexers: Indexers<PodRef>) -> Lister<PodRef> {
    let indexer = Indexer::with_indexers(indexers).unwrap();
    let thing = |n: usize| {
        PodRef::make(&Pod {
            namespace: ["a", "b", "c", "d"][n % 4].to_owned(),
            name: format!("thing-{n}"),
            note: if n.is_multiple_of(10) { "tenth" } else { "other" }.to_owned(),
            ..Pod::default()
        })
    };
    indexer.replace((0..N).map(thing), "1").unwrap();
    Lister::new(indexer, "things")
}

#[test]
fn a_list_has_exactly_what_the_selector_selects() {
    let with_index = things(Indexers::by_namespace());
    let without = things(Indexers::none());
    let selector = |text: &str| text.parse::<LabelSelector>().unwrap();
    // selector | in all | in namespace a
    let rows = [
        (LabelSelector::everything(), N, N / 4),
        (LabelSelector::nothing(), 0, 0),
        (selector("note=tenth"), N / 10, N / 20),
        (selector("note"), N, N / 4),
        (selector("!note"), 0, 0),
        (selector("note!=tenth"), N - N / 10, N / 4 - N / 20),
    ];
    for (selector, all, in_a) in rows {
        for lister in [&with_index, &without] {
            assert_eq!(lister.list(&selector).len(), all, "{selector}");
            assert_eq!(lister.namespace("").list(&selector).len(), all, "{selector}");
            let listed = lister.namespace("a").list(&selector);
            assert_eq!(listed.len(), in_a, "{selector}");
            assert!(listed.iter().all(|thing| thing.id().namespace == "a"));
            assert!(lister.namespace("nope").list(&selector).is_empty());
        }
    }
}

#[test]
fn a_missing_key_is_not_found_for_its_resource() {
    let lister = Lister::new(Indexer::<PodRef>::new(), "things");
    let error = lister.namespace("a").require("x").unwrap_err();
    assert_eq!((error.resource.as_str(), &error.key), ("things", &ObjectKey::new("a", "x")));
    assert_eq!(error.to_string(), r#"things "a/x" not found"#);
    assert!(lister.get(&ObjectKey::new("a", "x")).is_none());
    let cluster = lister.require(&("", "x")).unwrap_err();
    assert_eq!(cluster.to_string(), r#"things "x" not found"#);
}

//! The predicates as tables.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kubewire_indexer::ObjectKey;

use super::*;
use crate::event::AnyObject;
use crate::test_object::Thing;

type Pod = Arc<Thing>;

fn thing(change: impl FnOnce(&mut Thing)) -> Pod {
    let mut thing = Thing { generation: Some(1), ..Thing::new("default", "web") };
    thing.labels = vec![("app", "web"), ("tier", "a")];
    thing.annotations = vec![("x", "1")];
    change(&mut thing);
    thing.arc()
}

fn created(object: &Pod) -> Event<'_, Pod> {
    Event::Created { object, is_in_initial_list: false }
}

/// Whether the predicate passes an update from the usual thing to this, and all other kinds of event.
fn passes(predicate: &impl Predicate<Pod>, new: &Pod) -> (bool, bool) {
    let (old, key) = (thing(|_| {}), ObjectKey::new("default", "web"));
    let update = predicate.test(&Event::Updated { old: &old, new });
    let others = [
        created(new),
        Event::Created { object: new, is_in_initial_list: true },
        Event::Deleted { key: &key, object: Some(new), is_final_state_unknown: false },
        Event::Deleted { key: &key, object: None, is_final_state_unknown: true },
        Event::Generic { object: new },
    ];
    let passed = others.iter().filter(|event| predicate.test(event)).count();
    assert!(passed == 0 || passed == others.len(), "all or none");
    (update, passed > 0)
}

#[test]
fn of_updates_those_pass_that_change_what_the_predicate_is_about() {
    let version = |thing: &mut Thing| thing.version = "2";
    #[rustfmt::skip]
    let rows: [(&str, Pod, [bool; 5]); 10] = [
        // the change                                                     generation | or deletion | version | labels | annotations
        ("a resync",           thing(|_| {}),                                            [false, false, false, false, false]),
        ("the status",         thing(version),                                           [false, false, true,  false, false]),
        ("the spec",           thing(|t| { version(t); t.generation = Some(2) }),         [true,  true,  true,  false, false]),
        ("deletion, counted",  thing(|t| { version(t); t.generation = Some(2); t.being_deleted = true }),
                                                                                         [true,  true,  true,  false, false]),
        ("deletion, uncounted", thing(|t| { version(t); t.being_deleted = true }),        [false, true,  true,  false, false]),
        ("a label changed",    thing(|t| { version(t); t.labels[0].1 = "db" }),           [false, false, true,  true,  false]),
        ("a label gone",       thing(|t| { version(t); t.labels.pop(); }),                [false, false, true,  true,  false]),
        ("labels in another order", thing(|t| { version(t); t.labels.reverse() }),        [false, false, true,  false, false]),
        ("an annotation more", thing(|t| { version(t); t.annotations.push(("y", "2")) }), [false, false, true,  false, true]),
        ("no annotations",     thing(|t| { version(t); t.annotations.clear() }),          [false, false, true,  false, true]),
    ];
    for (change, new, [generation, deletion, version, labels, annotations]) in rows {
        assert_eq!(passes(&GenerationChanged, &new), (generation, true), "{change}");
        assert_eq!(passes(&GenerationOrDeletionChanged, &new), (deletion, true), "{change}");
        assert_eq!(passes(&ResourceVersionChanged, &new), (version, true), "{change}");
        assert_eq!(passes(&LabelsChanged, &new), (labels, true), "{change}");
        assert_eq!(passes(&AnnotationsChanged, &new), (annotations, true), "{change}");
    }
}

#[test]
fn what_counts_no_generations_never_passes_by_them() {
    let plain = |version| Thing { version, ..Thing::new("default", "config") }.arc();
    let (old, new) = (plain("1"), plain("2"));
    assert!(!GenerationChanged.test(&Event::Updated { old: &old, new: &new }));
}

#[test]
fn and_or_not_and_lists_of_predicates() {
    let labels = thing(|thing| thing.labels.clear());
    let spec = thing(|thing| thing.generation = Some(2));
    let neither = thing(|_| {});
    let either = Or(GenerationChanged, LabelsChanged);
    for (new, want) in [(&labels, true), (&spec, true), (&neither, false)] {
        assert_eq!(passes(&either, new), (want, true));
    }
    assert_eq!(passes(&And(GenerationChanged, LabelsChanged), &labels), (false, true));
    // All kinds of event are turned round.
    assert_eq!(passes(&Not(GenerationChanged), &spec), (false, false));
    assert_eq!(passes(&Not(GenerationChanged), &neither), (true, false));
    let none = Vec::<GenerationChanged>::new;
    assert_eq!(passes(&AllOf(none()), &neither), (true, true));
    assert_eq!(passes(&AnyOf(none()), &neither), (false, false));
    let several: Vec<Box<dyn Predicate<Pod>>> = vec![Box::new(GenerationChanged), Box::new(LabelsChanged)];
    assert_eq!(passes(&AnyOf(several), &labels), (true, true));
}

#[test]
fn what_is_decided_is_not_asked_any_more() {
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    fn asked(answer: bool) -> impl Predicate<Pod> {
        move |_: &Event<'_, Pod>| {
            ASKED.fetch_add(1, Ordering::Relaxed);
            answer
        }
    }
    let pod = thing(|_| {});
    let asks = |predicate: &dyn Predicate<Pod>| {
        let before = ASKED.load(Ordering::Relaxed);
        let answer = predicate.test(&created(&pod));
        (answer, ASKED.load(Ordering::Relaxed) - before)
    };
    assert_eq!(asks(&And(asked(false), asked(true))), (false, 1));
    assert_eq!(asks(&Or(asked(true), asked(false))), (true, 1));
    assert_eq!(asks(&AllOf(vec![asked(false), asked(false)])), (false, 1));
    assert_eq!(asks(&AnyOf(vec![asked(true), asked(true)])), (true, 1));
}

#[test]
fn what_looks_at_an_object_looks_at_its_state_now() {
    let web = LabelsMatch("app=web".parse().unwrap());
    let leaves = thing(|thing| thing.labels[0].1 = "db");
    let (stays, key) = (thing(|_| {}), ObjectKey::new("default", "web"));
    let of_label = on_object(|pod: &Pod| pod.labels.contains(&("app", "web")));
    let predicates: [&dyn Predicate<Pod>; 2] = [&web, &of_label];
    for predicate in predicates {
        assert!(predicate.test(&Event::Updated { old: &leaves, new: &stays }));
        assert!(!predicate.test(&Event::Updated { old: &stays, new: &leaves }), "it is not told of what leaves");
        assert!(predicate.test(&created(&stays)) && !predicate.test(&created(&leaves)));
        assert!(!predicate.test(&Event::Deleted { key: &key, object: None, is_final_state_unknown: true }));
    }
}

#[test]
fn a_predicate_of_closures_says_yes_where_it_has_none() {
    let pod = thing(|_| {});
    let none = PredicateFuncs::<Pod>::new();
    assert_eq!(passes(&none, &pod), (true, true));
    let creations = PredicateFuncs::<Pod>::new().created(|_| false);
    assert!(!creations.test(&created(&pod)) && creations.test(&Event::Generic { object: &pod }));
    let others = PredicateFuncs::<Pod>::new().updated(|_| false).deleted(|_| false).generic(|_| false);
    assert!(others.test(&created(&pod)) && !others.test(&Event::Generic { object: &pod }));
    assert!(!others.test(&Event::Updated { old: &pod, new: &pod }));
}

#[test]
fn a_predicate_for_all_types_sees_what_every_object_has() {
    let pod = thing(|_| {});
    let named = |event: &Event<'_, dyn AnyObject>| event.object().is_some_and(|object| object.id().name == "web");
    assert!(Predicate::<dyn AnyObject>::test(&named, &created(&pod).erase()));
    assert!(GenerationChanged.test(&created(&pod).erase()));
}

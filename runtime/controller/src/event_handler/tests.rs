//! The handlers as tables.

use std::sync::Arc;
use std::time::Duration;

use kubewire_indexer::{ObjectKey, OwnerReference};

use super::*;
use crate::request_queue::{PriorityQueue, RequestQueue};
use crate::test_object::Thing;

type Pod = Arc<Thing>;

/// What a handler adds because of an event, with priorities.
fn adds(handler: &impl EventHandler<Pod>, event: &Event<'_, Pod>, priorities: bool) -> Vec<(String, i32)> {
    let queue = RequestQueue::for_test(priorities.then(PriorityQueue::new));
    handler.handle(event, &queue.for_event(event));
    let gets = std::iter::from_fn(|| queue.queue().try_get().ok());
    gets.map(|request| (request.to_string(), request.priority())).collect()
}

fn named(name: &'static str, version: &'static str) -> Pod {
    Thing { version, ..Thing::new("default", name) }.arc()
}

#[test]
fn the_object_is_asked_for_whatever_happens_to_it_once() {
    let (old, new, key) = (named("web", "1"), named("web", "2"), ObjectKey::new("default", "gone"));
    let deleted = |object| Event::Deleted { key: &key, object, is_final_state_unknown: object.is_none() };
    let node = Thing::new("", "node-1").arc();
    #[rustfmt::skip]
    let rows = [
        // event                                                  | request      | priority
        (Event::Created { object: &new, is_in_initial_list: false }, "default/web",  0),
        (Event::Created { object: &new, is_in_initial_list: true },  "default/web",  -100),
        (Event::Updated { old: &old, new: &new },                    "default/web",  0),
        (Event::Updated { old: &new, new: &new },                    "default/web",  -100),
        (deleted(Some(&old)),                                        "default/gone", 0),
        (deleted(None),                                              "default/gone", 0),
        (Event::Generic { object: &new },                            "default/web",  0),
        (Event::Created { object: &node, is_in_initial_list: false }, "node-1",      0),
    ];
    for (event, request, priority) in rows {
        let want = |priority| vec![(request.to_owned(), priority)];
        assert_eq!(adds(&EnqueueRequestForObject, &event, true), want(priority), "{event:?}");
        assert_eq!(adds(&EnqueueRequestForObject, &event, false), want(0), "{event:?}");
    }
    let nameless = Event::Generic { object: &named("", "1") };
    assert!(adds(&EnqueueRequestForObject, &nameless, true).is_empty());
}

fn owned(owners: &[OwnerReference<'static>]) -> Pod {
    Thing { owners: owners.to_vec(), ..Thing::new("default", "web-0") }.arc()
}

fn requests(handler: &impl EventHandler<Pod>, event: &Event<'_, Pod>) -> Vec<String> {
    adds(handler, event, false).into_iter().map(|(request, _)| request).collect()
}

#[test]
fn owners_of_the_kind_are_asked_for_that_control_the_object_or_all_of_them() {
    let set = |name| OwnerReference::new("apps/v1", "ReplicaSet", name);
    let controlling = EnqueueRequestForOwner::new(GroupKind::new("apps", "ReplicaSet"));
    let any = controlling.clone().any_owner();
    /// The case, the owners, who is meant by the controller alone, and by any owner.
    type Row<'a> = (&'a str, &'a [OwnerReference<'static>], &'a [&'a str], &'a [&'a str]);
    #[rustfmt::skip]
    let rows: &[Row<'_>] = &[
        ("none", &[], &[], &[]),
        ("one of three controls", &[set("a"), set("b").controller(true), set("c")],
            &["default/b"], &["default/a", "default/b", "default/c"]),
        ("two controllers: the first counts", &[set("a").controller(true), set("b").controller(true)],
            &["default/a"], &["default/a", "default/b"]),
        ("twice the same", &[set("a"), set("a")], &[], &["default/a"]),
        ("another kind", &[OwnerReference::new("apps/v1", "DaemonSet", "a").controller(true)], &[], &[]),
        ("another group", &[OwnerReference::new("mine/v1", "ReplicaSet", "a").controller(true)], &[], &[]),
        ("the core group", &[OwnerReference::new("v1", "ReplicaSet", "a").controller(true)], &[], &[]),
        ("another version", &[OwnerReference::new("apps/v1beta7", "ReplicaSet", "a").controller(true)],
            &["default/a"], &["default/a"]),
        ("one that cannot be read before", &[OwnerReference::new("a/b/c", "ReplicaSet", "x"), set("a").controller(true)],
            &["default/a"], &["default/a"]),
    ];
    for (what, owners, by_controller, by_any) in rows {
        let object = owned(owners);
        let event = Event::Created { object: &object, is_in_initial_list: false };
        assert_eq!(requests(&controlling, &event), *by_controller, "{what}");
        assert_eq!(requests(&any, &event), *by_any, "{what}");
    }
}

#[test]
fn an_owner_of_cluster_scope_is_asked_for_without_a_namespace() {
    let object = owned(&[OwnerReference::new("v1", "Node", "n1").controller(true)]);
    let event = Event::Generic { object: &object };
    let typed = EnqueueRequestForOwner::of::<k8s_openapi::api::core::v1::Node>();
    assert_eq!(requests(&typed, &event), ["n1"]);
    let named = EnqueueRequestForOwner::new(GroupKind::new("", "Node"));
    assert_eq!(requests(&named.clone().cluster_scoped(true), &event), ["n1"]);
    assert_eq!(requests(&named, &event), ["default/n1"]);
    let of_namespaces = EnqueueRequestForOwner::of::<k8s_openapi::api::apps::v1::ReplicaSet>();
    assert_eq!(of_namespaces, EnqueueRequestForOwner::new(GroupKind::new("apps", "ReplicaSet")));
}

#[test]
fn who_owned_it_and_who_owns_it_now_are_asked_for_once_each() {
    let set = |name| OwnerReference::new("apps/v1", "ReplicaSet", name).controller(true);
    let handler = EnqueueRequestForOwner::new(GroupKind::new("apps", "ReplicaSet"));
    let (a, b) = (owned(&[set("a")]), owned(&[set("b")]));
    assert_eq!(requests(&handler, &Event::Updated { old: &a, new: &b }), ["default/a", "default/b"]);
    assert_eq!(requests(&handler, &Event::Updated { old: &a, new: &a }), ["default/a"]);
    let key = ObjectKey::new("default", "web-0");
    let deleted = |object| Event::Deleted { key: &key, object, is_final_state_unknown: true };
    assert_eq!(requests(&handler, &deleted(Some(&a))), ["default/a"]);
    assert!(requests(&handler, &deleted(None)).is_empty(), "nobody knows whose it was");
}

#[test]
fn what_a_function_says_is_asked_for_of_both_states_each_once() {
    let asked = Arc::new(parking_lot::Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    let handler = map(move |pod: &Pod| {
        seen.lock().push(pod.name);
        ["x", pod.name, "x"].map(|name| Request::new("default", name))
    });
    let (old, new) = (named("old", "1"), named("new", "2"));
    let update = Event::Updated { old: &old, new: &new };
    assert_eq!(requests(&handler, &update), ["default/x", "default/old", "default/new"]);
    assert_eq!(*asked.lock(), ["old", "new"]);
    assert!(requests(&map(|_: &Pod| None::<Request>), &update).is_empty());
}

#[test]
fn each_handler_adds_low_what_nobody_waits_for() {
    let pod = Thing { owners: vec![OwnerReference::new("v1", "Node", "n").controller(true)], ..Thing::new("d", "p") };
    let pod = pod.arc();
    let first = Event::Created { object: &pod, is_in_initial_list: true };
    let later = Event::Created { object: &pod, is_in_initial_list: false };
    type Handler = Box<dyn Fn(&Event<'_, Pod>) -> Vec<(String, i32)>>;
    let handlers: [Handler; 4] = [
        Box::new(|event| adds(&EnqueueRequestForObject, event, true)),
        Box::new(|event| adds(&EnqueueRequestForOwner::new(GroupKind::new("", "Node")), event, true)),
        Box::new(|event| adds(&map(|_: &Pod| [Request::cluster("m")]), event, true)),
        Box::new(|event| {
            let funcs = EventHandlerFuncs::<Pod>::new().created(|event, queue| queue.add(event.key()));
            adds(&funcs, event, true)
        }),
    ];
    for handler in handlers {
        assert_eq!(handler(&first).iter().map(|(_, priority)| *priority).collect::<Vec<_>>(), [-100]);
        assert_eq!(handler(&later).iter().map(|(_, priority)| *priority).collect::<Vec<_>>(), [0]);
    }
}

#[test]
fn a_handler_may_name_a_priority_and_what_it_delays_is_low_too() {
    let pod = named("web", "1");
    let first = Event::Created { object: &pod, is_in_initial_list: true };
    let named = |event: &Event<'_, Pod>, queue: &Enqueue<'_, Request>| queue.queue().add(event.key(), -5);
    assert_eq!(adds(&named, &first, true), [("default/web".to_owned(), -5)]);
    assert_eq!(adds(&named, &first, false), [("default/web".to_owned(), 0)]);
    let after = |event: &Event<'_, Pod>, queue: &Enqueue<'_, Request>| queue.add_after(event.key(), Duration::ZERO);
    assert_eq!(adds(&after, &first, true), [("default/web".to_owned(), -100)]);
}

#[test]
fn a_handler_of_closures_does_nothing_where_it_has_none() {
    let (pod, key) = (named("web", "1"), ObjectKey::new("default", "web"));
    let handler = EventHandlerFuncs::<Pod>::new()
        .updated(|event, queue| queue.add(event.key()))
        .deleted(|_, queue| queue.add(Request::cluster("deleted")))
        .generic(|_, queue| queue.add(Request::cluster("generic")));
    assert!(requests(&handler, &Event::Created { object: &pod, is_in_initial_list: false }).is_empty());
    assert_eq!(requests(&handler, &Event::Updated { old: &pod, new: &pod }), ["default/web"]);
    let deleted = Event::Deleted { key: &key, object: None, is_final_state_unknown: true };
    assert_eq!(requests(&handler, &deleted), ["deleted"]);
    assert_eq!(requests(&handler, &Event::Generic { object: &pod }), ["generic"]);
    assert!(requests(&EventHandlerFuncs::<Pod>::new(), &deleted).is_empty());
}

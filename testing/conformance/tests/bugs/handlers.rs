//! Handlers over the whole path: those that panic, sleep, come late, go, or look too early: B21, B26, B32, B36, B47.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use futures::{FutureExt, StreamExt};
use kubewire_conformance::wire::Server;
use kubewire_indexer::{IndexFunc, Indexers, Object};
use kubewire_informer::reflector::ReflectorOptions;
use kubewire_informer::{Buffering, HandlerOptions, Notification, ResourceEventHandlerFuncs};

use super::PodRef;
use crate::support::{Heard, Options, Run, until};

fn name(pod: &PodRef) -> &str {
    pod.id().name
}

/// B21: in each kind of call, during the initial adds too, with payloads of any kind.
#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_misses_that_call_alone_and_harms_nobody() {
    let server = Server::new("LIST → [x@10 a@9] rv=10");
    let run = Run::<PodRef>::of(&server);
    let seen = Arc::new(AtomicUsize::new(0));
    let calls = [0; 3].map(|_| Arc::clone(&seen));
    let [add, update, delete] = calls;
    let count = |calls: &AtomicUsize| calls.fetch_add(1, Ordering::SeqCst);
    let panics = ResourceEventHandlerFuncs::<PodRef>::new()
        .on_add(move |pod, _| {
            count(&add);
            if name(&pod) == "x" {
                std::panic::panic_any(17)
            }
        })
        .on_update(move |_, pod| {
            count(&update);
            assert_ne!(name(&pod), "x", "update");
        })
        .on_delete(move |deleted| {
            count(&delete);
            assert_ne!(deleted.key().name(), "x", "delete");
        });
    let registration = run.informer.add_handler(panics).unwrap();
    run.converges_after(&["a@9", "x@10"]).await;
    registration.synced().await.unwrap();
    server.happens("+y@11 ~x@13 ~y@14 -x@15 +z@16");
    run.converges_after(&["a@9", "y@14", "z@16"]).await;
    until("all calls", || seen.load(Ordering::SeqCst) == 7).await;
    assert_eq!((registration.status().panics, registration.status().told), (3, 7));
    assert_eq!(run.registration.status().panics, 0);
    run.ends().await;
}

/// B21: elsewhere than in handlers.
#[tokio::test(start_paused = true)]
async fn index_functions_and_error_handlers_that_panic_stop_nothing() {
    let panics = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&panics);
    let reflector = ReflectorOptions::new().watch_list(false).should_resync(|| panic!("should_resync"));
    let server = Server::new("LIST → 500\n LIST → [x@10 y@9] rv=10\n WATCH → ERR:500 ■");
    let run = Run::<PodRef>::with(&server, Options { reflector, ..Options::default() });
    let index = IndexFunc::many(move |pod: &PodRef| {
        if name(pod) == "x" {
            count.fetch_add(1, Ordering::SeqCst);
            panic!("index function");
        }
        [name(pod).to_owned()]
    });
    run.informer.add_indexers(Indexers::none().with("name", index)).unwrap();
    run.converges_after(&["x@10", "y@9"]).await;
    server.happens("~x@11 +z@12");
    run.converges_after(&["x@11", "y@9", "z@12"]).await;
    assert!(panics.load(Ordering::SeqCst) >= 2);
    let indexer = run.informer.indexer();
    assert_eq!(indexer.index_failures().len(), 1);
    assert_eq!(indexer.by_index("name", "z").unwrap().len(), 1);
    run.ends().await;
}

/// B26: one that does not come to its next notification; the others and the store go on, and it ends with the
/// last state of each object.
#[tokio::test(start_paused = true)]
async fn a_handler_that_stands_still_holds_up_nobody_and_costs_room_by_objects() {
    let server = Server::new("LIST → [] rv=10");
    let run = Run::<PodRef>::of(&server);
    let options = HandlerOptions::new().buffering(Buffering::Coalescing).name("blocked");
    let mut blocked = run.informer.subscribe_with(options).unwrap();
    run.requests(2).await;
    for round in 0..100 {
        let kind = if round == 0 { '+' } else { '~' };
        let events: Vec<String> = (0..10).map(|n| format!("{kind}x{n}@{}", 11 + round * 10 + n)).collect();
        server.happens(&events.join(" "));
        tokio::task::yield_now().await;
    }
    run.converges_after(
        &(0..10)
            .map(|n| format!("x{n}@{}", 1001 + n))
            .collect::<Vec<_>>()
            .iter()
            .map(String::as_str)
            .collect::<Vec<_>>(),
    )
    .await;
    until("the blocked one has all", || blocked.registration().status().coalesced >= 900).await;
    assert_eq!(blocked.registration().backlog(), 10);
    let mut last = Vec::new();
    for _ in 0..10 {
        match blocked.next().await.unwrap() {
            Notification::Added { object, .. } => last.push(object.id().resource_version.parse::<u32>().unwrap()),
            other => panic!("{other:?}"),
        }
    }
    last.sort_unstable();
    assert_eq!(last, (1001..1011).collect::<Vec<_>>());
    assert!(blocked.next().now_or_never().is_none());
    // Stopped while it stands still: nothing waits for it.
    server.happens("~x0@2000");
    run.has_version("2000").await;
    run.ends().await;
}

/// B32: at any moment of a stream, each is told of everything once.
#[tokio::test(start_paused = true)]
async fn handlers_that_come_at_any_moment_miss_nothing_and_hear_nothing_twice() {
    let initial: Vec<String> = (0..50).map(|n| format!("x{n}@{}", n + 1)).collect();
    let kinds = ["~", "-", "+"];
    let event = |n: usize| format!("{}x{}#u{}-{}@{}", kinds[n / 50 % 3], n % 50, n % 50, (n + 50) / 150, 101 + n);
    let events: Vec<String> = (0..600).map(event).collect();
    let pauses: Vec<String> = events.chunks(7).map(|some| format!("{} 1ms", some.join(" "))).collect();
    let initial = initial.iter().enumerate().map(|(n, thing)| thing.replace('@', &format!("#u{n}-0@")));
    let list = initial.collect::<Vec<_>>().join(" ");
    let server = Server::new(&format!("LIST → [{list}] rv=100\n WATCH → {}", pauses.join(" ")));
    let run = Run::<PodRef>::of(&server);
    let mut late = Vec::new();
    for n in 0..20 {
        let heard = Heard::default();
        let registration = run.informer.add_handler(heard.clone()).unwrap();
        late.push((heard, registration));
        tokio::time::sleep(std::time::Duration::from_millis(n % 9)).await;
    }
    run.has_version("700").await;
    run.converges().await;
    for (heard, registration) in &late {
        registration.synced().await.unwrap();
        until("it has heard all", || heard.replayed() == run.store()).await;
    }
    let (informer, none) = (run.informer.clone(), Heard::default());
    run.ends().await;
    assert!(informer.add_handler(none.clone()).is_err(), "after the stop it is refused");
    assert!(none.log().is_empty());
}

/// B36: handlers come and go during a stream; none is called once its removal has been waited for.
#[tokio::test(start_paused = true)]
async fn handlers_that_are_removed_are_not_called_any_more_and_leave_nothing() {
    let events: String = (0..1000).map(|n| format!("~x{}@{} 1ms ", n % 5, 11 + n)).collect();
    let server = Server::new(&format!("LIST → [] rv=10\n WATCH → {events}"));
    let run = Run::<PodRef>::of(&server);
    run.requests(2).await;
    let tasks = tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let late = Arc::new(AtomicUsize::new(0));
    for round in 0..200 {
        let (removed, late) = (Arc::new(AtomicBool::new(false)), Arc::clone(&late));
        let flag = Arc::clone(&removed);
        let check = move || _ = late.fetch_add(usize::from(flag.load(Ordering::SeqCst)), Ordering::SeqCst);
        let on_update = check.clone();
        let handler =
            ResourceEventHandlerFuncs::<PodRef>::new().on_add(move |_, _| check()).on_update(move |_, _| on_update());
        let registration = run.informer.add_handler(handler).unwrap();
        if round % 3 > 0 {
            tokio::time::sleep(std::time::Duration::from_millis(round % 5)).await;
        }
        registration.shut_down().await;
        removed.store(true, Ordering::SeqCst);
        registration.remove();
    }
    run.has_version("1010").await;
    assert_eq!(late.load(Ordering::SeqCst), 0);
    until("their tasks are gone", || tokio::runtime::Handle::current().metrics().num_alive_tasks() <= tasks).await;
    assert_eq!(run.informer.status().handlers.len(), 1);
    run.registration.shut_down().await;
    let heard = Heard::default();
    let registration = run.informer.add_handler(heard.clone()).unwrap();
    registration.synced().await.unwrap();
    assert_eq!(heard.replayed(), run.store(), "the first one after the last was removed");
    run.ends().await;
}

/// B47: the store is synced when the list is in it, the handler when its calls have returned; never before.
#[tokio::test(start_paused = true)]
async fn synced_means_that_the_first_list_was_seen_whole_by_who_says_so() {
    let things = |from: usize| (from..from + 300).map(|n| format!("x{n}@{n}")).collect::<Vec<_>>().join(" ");
    let server = Server::new(&format!(
        "LIST ×3 → 500
         LIST → [{}] rv=999 continue=t1
         LIST → [{}] rv=999 continue=t2
         LIST → 1000ms [{}] rv=999",
        things(0),
        things(300),
        things(600),
    ));
    let reflector = ReflectorOptions::new().watch_list(false).page_size(300);
    let run = Run::<PodRef>::with(&server, Options { reflector, ..Options::default() });
    let mut slow = run.informer.subscribe().unwrap();
    let registration = slow.registration();
    run.requests(6).await;
    assert!(!run.informer.has_synced() && run.store().is_empty(), "after two pages of three");
    for told in 0..900 {
        assert!(!registration.has_synced(), "after {told}");
        let Some(Notification::Added { is_in_initial_list: true, .. }) = slow.next().await else { panic!("{told}") };
        assert!(run.informer.has_synced(), "the store comes first");
        assert_eq!(run.store().len(), 900);
    }
    assert!(!registration.has_synced(), "the last one has not returned yet");
    assert!(slow.next().now_or_never().is_none());
    assert!(registration.has_synced());
    run.converges_and_ends().await;
}

/// B47: of nothing, both are synced soon; a handler whose first call panics too.
#[tokio::test(start_paused = true)]
async fn an_empty_list_syncs_and_so_does_a_handler_that_panics_at_once() {
    let run = Run::<PodRef>::script("LIST → [] rv=10");
    run.informer.synced().await.unwrap();
    run.registration.synced().await.unwrap();
    let late = run.informer.add_handler(Heard::default()).unwrap();
    late.synced().await.unwrap();
    run.ends().await;
    let run = Run::<PodRef>::script("LIST → [x@10] rv=10");
    let panics = run.informer.add_handler(ResourceEventHandlerFuncs::new().on_add(|_, _| panic!("first"))).unwrap();
    panics.synced().await.unwrap();
    run.ends().await;
}

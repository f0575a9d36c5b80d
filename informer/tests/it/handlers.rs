//! Handlers: shapes, panics, slowness, removal, streams.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::StreamExt;
use kubewire_indexer::{Deleted, Object};
use kubewire_informer::{
    Buffering, FilteringResourceEventHandler, HandlerOptions, Notification, ResourceEventHandler,
    ResourceEventHandlerFuncs,
};
use tokio_util::sync::CancellationToken;

use super::recorder::{Recorder, show};
use super::source::{Form, Pod, PodRef, Source, key, settle};

fn pod(note: &str, version: &str) -> PodRef {
    PodRef::make(&Pod { name: "x".to_owned(), note: note.to_owned(), version: version.to_owned(), ..Pod::default() })
}

#[test]
fn a_filter_turns_updates_that_cross_it_into_additions_and_deletions() {
    let log = Recorder::new();
    let mut handler =
        FilteringResourceEventHandler { filter: |pod: &PodRef| pod.read().note == "in", handler: log.clone() };
    handler.on_add(pod("in", "1"), true);
    handler.on_add(pod("out", "2"), true);
    assert_eq!(log.take(), ["+x@1!"]);
    handler.on_update(pod("out", "1"), pod("in", "2"));
    handler.on_update(pod("in", "2"), pod("out", "3"));
    handler.on_update(pod("in", "3"), pod("in", "4"));
    handler.on_update(pod("out", "4"), pod("out", "5"));
    assert_eq!(log.take(), ["+x@2", "-x@2", "~x@3>4"], "the deletion has the last state that passed");
    handler.on_delete(Deleted::Known(pod("in", "6")));
    handler.on_delete(Deleted::Known(pod("out", "7")));
    handler.on_delete(Deleted::final_state_unknown(key("x"), Some(pod("in", "8"))));
    handler.on_delete(Deleted::final_state_unknown(key("x"), None));
    assert_eq!(log.take(), ["-x@6", "-x@8?", "-x@?"]);
}

#[test]
fn closures_that_are_not_given_do_nothing() {
    let mut nothing = ResourceEventHandlerFuncs::<PodRef>::new();
    nothing.handle(Notification::Added { object: pod("", "1"), is_in_initial_list: true });
    nothing.handle(Notification::Updated { old: pod("", "1"), new: pod("", "2") });
    nothing.handle(Notification::Deleted(Deleted::Known(pod("", "2"))));
    let count = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&count);
    let mut adds = ResourceEventHandlerFuncs::<PodRef>::new().on_add(move |_, initial| {
        counter.fetch_add(if initial { 10 } else { 1 }, Ordering::Relaxed);
    });
    adds.handle(Notification::Added { object: pod("", "1"), is_in_initial_list: true });
    adds.handle(Notification::Added { object: pod("", "1"), is_in_initial_list: false });
    assert_eq!(count.load(Ordering::Relaxed), 11);
}

#[tokio::test(start_paused = true)]
async fn a_panicking_handler_is_counted_and_goes_on_and_harms_nobody() {
    let source = Source::new();
    for name in ["ns/a", "ns/bad", "ns/c"] {
        source.put(name, "1");
    }
    let informer = source.informer();
    let (good, careful) = (Recorder::new(), Recorder::new());
    let mut rest = careful.clone();
    let complain = |pod: &PodRef| assert_ne!(pod.id().name, "bad", "a bad one");
    let mut others = careful.clone();
    let mut gone = careful.clone();
    let bad = informer
        .add_handler_with(
            ResourceEventHandlerFuncs::new()
                .on_add(move |pod, initial| {
                    complain(&pod);
                    rest.on_add(pod, initial);
                })
                .on_update(move |old, new| {
                    complain(&new);
                    others.on_update(old, new);
                })
                .on_delete(move |deleted| {
                    complain(deleted.last_known().unwrap());
                    gone.on_delete(deleted);
                }),
            HandlerOptions::new().name("careful"),
        )
        .unwrap();
    let fine = informer.add_handler(good.clone()).unwrap();
    let running = informer.start(CancellationToken::new());
    bad.synced().await.unwrap();
    fine.synced().await.unwrap();
    source.put("ns/bad", "2");
    source.delete("ns/bad");
    source.delete("ns/c");
    settle().await;
    assert_eq!(careful.take(), ["+ns/a@1!", "+ns/c@3!", "-ns/c@6"]);
    assert_eq!(good.take().len(), 6);
    let status = bad.status();
    assert_eq!((status.name.as_str(), status.panics, status.told), ("careful", 3, 6));
    assert_eq!(fine.status().panics, 0);
    running.stop();
    running.join().await;
}

#[tokio::test(start_paused = true)]
async fn every_panic_of_every_handler_is_counted_without_a_pause() {
    let source = Source::new();
    (0..5).for_each(|n| drop(source.put(&format!("ns/{n}"), "1")));
    let informer = source.informer();
    let panicking = || ResourceEventHandlerFuncs::new().on_add(|_, _| std::panic::panic_any(7_u8));
    let both = [informer.add_handler(panicking()).unwrap(), informer.add_handler(panicking()).unwrap()];
    let _running = informer.start(CancellationToken::new());
    for registration in &both {
        registration.synced().await.unwrap();
        assert_eq!(registration.status().panics, 5, "a payload that is no text is fine too");
    }
}

/// A handler that blocks: each call waits for a permit. It needs a thread of its own.
pub(crate) fn gated(log: &Recorder) -> (std::sync::mpsc::Sender<()>, impl ResourceEventHandler<PodRef>) {
    struct Gated(std::sync::mpsc::Receiver<()>, Recorder);
    impl ResourceEventHandler<PodRef> for Gated {
        fn on_add(&mut self, object: PodRef, is_in_initial_list: bool) {
            let _ = self.0.recv();
            self.1.on_add(object, is_in_initial_list);
        }
        fn on_update(&mut self, old: PodRef, new: PodRef) {
            let _ = self.0.recv();
            self.1.on_update(old, new);
        }
        fn on_delete(&mut self, deleted: Deleted<PodRef>) {
            let _ = self.0.recv();
            self.1.on_delete(deleted);
        }
    }
    let (open, gate) = std::sync::mpsc::channel();
    (open, Gated(gate, log.clone()))
}

/// Waits for what threads do; bounded, and never a fixed sleep.
pub(crate) async fn until(goal: &str, what: impl Fn() -> bool) {
    let waiting = async {
        while !what() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let limit = Duration::from_secs(30);
    tokio::time::timeout(limit, waiting).await.unwrap_or_else(|_| panic!("it does not come true: {goal}"));
}

#[tokio::test]
async fn a_slow_handler_delays_nobody_and_gets_everything_in_order() {
    let source = Source::new();
    let informer = source.informer();
    let (slow_log, fast_log) = (Recorder::new(), Recorder::new());
    let (gate, slow) = gated(&slow_log);
    let slow = informer.add_handler_with(slow, HandlerOptions::new().own_thread()).unwrap();
    informer.add_handler(fast_log.clone()).unwrap();
    let _running = informer.start(CancellationToken::new());
    informer.synced().await.unwrap();
    for n in 0..1000 {
        source.put(&format!("ns/{n:04}"), "1");
    }
    until("fast_log.len() == 1000", || fast_log.len() == 1000).await;
    until("slow.backlog() == 999", || slow.backlog() == 999).await;
    assert_eq!(slow_log.len(), 0);
    drop(gate);
    until("slow_log.len() == 1000", || slow_log.len() == 1000).await;
    assert_eq!(slow_log.take(), fast_log.take());
    until("slow.backlog() == 0", || slow.backlog() == 0).await;
}

#[tokio::test]
async fn a_slow_handler_that_coalesces_holds_one_change_for_each_key() {
    let source = Source::new();
    for n in 0..10 {
        source.put(&format!("ns/{n}"), "0");
    }
    let informer = source.informer();
    let log = Recorder::new();
    let (gate, slow) = gated(&log);
    let slow =
        informer.add_handler_with(slow, HandlerOptions::new().own_thread().buffering(Buffering::Coalescing)).unwrap();
    let _running = informer.start(CancellationToken::new());
    informer.synced().await.unwrap();
    let mut last = String::new();
    for round in 1..=100 {
        for n in 0..10 {
            last = source.put(&format!("ns/{n}"), &round.to_string());
        }
    }
    informer.wait_for_version(&last).await.unwrap();
    until("slow.backlog() <= 10", || slow.backlog() <= 10).await;
    assert!(!slow.has_synced());
    drop(gate);
    slow.synced().await.unwrap();
    until("slow.backlog() == 0", || slow.backlog() == 0).await;
    let store: Vec<Pod> = log.replay().into_values().collect();
    assert_eq!(store, source.objects(), "the last state of each");
    assert!(log.len() <= 21, "{} calls", log.len());
    assert!(slow.status().coalesced >= 900);
}

#[tokio::test]
async fn removing_a_handler_returns_at_once_and_throws_away_what_waits_for_it() {
    let source = Source::new();
    let informer = source.informer();
    let log = Recorder::new();
    let (gate, slow) = gated(&log);
    let slow = informer.add_handler_with(slow, HandlerOptions::new().own_thread()).unwrap();
    let running = informer.start(CancellationToken::new());
    informer.synced().await.unwrap();
    for n in 0..50 {
        source.put(&format!("ns/{n}"), "1");
    }
    until("slow.backlog() == 49", || slow.backlog() == 49).await;
    slow.remove();
    assert_eq!(slow.backlog(), 0);
    let ended = tokio::spawn({
        let slow = slow.clone();
        async move { slow.shut_down().await }
    });
    tokio::time::sleep(Duration::from_millis(5)).await;
    assert!(!ended.is_finished(), "the call is running");
    gate.send(()).unwrap();
    ended.await.unwrap();
    assert_eq!(log.len(), 1, "the running call, and no other");
    assert!(informer.status().handlers.is_empty());
    running.stop();
    running.join().await;
}

#[tokio::test(start_paused = true)]
async fn a_removed_handler_hears_nothing_more_and_the_others_go_on() {
    let source = Source::new();
    let informer = source.informer();
    let logs = [Recorder::new(), Recorder::new(), Recorder::new()];
    let registrations = logs.each_ref().map(|log| informer.add_handler(log.clone()).unwrap());
    let _running = informer.start(CancellationToken::new());
    informer.synced().await.unwrap();
    source.put("ns/a", "1");
    settle().await;
    registrations[0].remove();
    registrations[0].remove();
    registrations[1].shut_down().await;
    registrations[1].shut_down().await;
    assert_eq!(informer.status().handlers.len(), 1);
    source.put("ns/b", "1");
    settle().await;
    assert_eq!(logs.map(|log| log.take().len()), [1, 1, 2]);
    let again = Recorder::new();
    registrations[2].remove();
    informer.add_handler(again.clone()).unwrap();
    settle().await;
    assert_eq!(again.take_sorted(), ["+ns/a@1!", "+ns/b@2!"], "a new one gets the full set");
}

#[tokio::test(start_paused = true)]
async fn a_handler_added_twice_is_told_twice_and_removed_once() {
    let source = Source::new();
    let informer = source.informer();
    let log = Recorder::new();
    let first = informer.add_handler(log.clone()).unwrap();
    informer.add_handler(log.clone()).unwrap();
    let _running = informer.start(CancellationToken::new());
    source.put("ns/a", "1");
    settle().await;
    assert_eq!(log.take(), ["+ns/a@1!", "+ns/a@1!"]);
    first.remove();
    source.put("ns/b", "1");
    settle().await;
    assert_eq!(log.take(), ["+ns/b@2"]);
}

#[tokio::test(start_paused = true)]
async fn shutting_a_handler_down_works_before_the_start() {
    let source = Source::new();
    let informer = source.informer();
    let log = Recorder::new();
    let registration = informer.add_handler(log.clone()).unwrap();
    registration.shut_down().await;
    source.put("ns/a", "1");
    let _running = informer.start(CancellationToken::new());
    informer.synced().await.unwrap();
    settle().await;
    assert!(log.take().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_handler_may_be_a_stream() {
    let source = Source::new();
    source.put("ns/a", "1");
    let informer = source.informer();
    let mut stream = informer.subscribe().unwrap();
    let registration = stream.registration();
    let running = informer.start(CancellationToken::new());
    assert_eq!(show(&stream.next().await.unwrap()), "+ns/a@1!");
    assert!(informer.has_synced() && !registration.has_synced(), "handled when the next is asked for");
    source.put("ns/a", "2");
    assert_eq!(show(&stream.next().await.unwrap()), "~ns/a@1>2");
    assert!(registration.has_synced());
    source.delete("ns/a");
    assert_eq!(show(&stream.next().await.unwrap()), "-ns/a@3");
    drop(stream);
    assert!(registration.is_removed() && informer.status().handlers.is_empty());
    registration.shut_down().await;

    let mut late = informer.subscribe().unwrap();
    source.put("ns/b", "1");
    assert_eq!(late.next().await.unwrap().key(), key("ns/b"));
    running.stop();
    assert!(late.next().await.is_none(), "the end of the informer ends the stream");
    running.join().await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_nobody_polls_holds_up_nothing() {
    let source = Source::new();
    let informer = source.informer();
    let idle = informer.subscribe_with(HandlerOptions::new().name("idle")).unwrap();
    let _running = informer.start(CancellationToken::new());
    let mut last = String::new();
    for n in 0..1000 {
        last = source.put(&format!("ns/{n}"), "1");
    }
    informer.wait_for_version(&last).await.unwrap();
    assert_eq!(informer.indexer().len(), 1000);
    assert_eq!(idle.registration().backlog(), 1000);
    assert_eq!(informer.status().handlers[0].name, "idle");
}

#[test]
fn a_handler_is_named_by_its_type() {
    let informer = Source::new().informer();
    let name = informer.add_handler(Recorder::new()).unwrap().status().name;
    assert!(name.ends_with("Recorder"), "{name}");
    let nested = FilteringResourceEventHandler { filter: |_: &PodRef| true, handler: Recorder::new() };
    let name = informer.add_handler(nested).unwrap().status().name;
    assert!(name.contains("FilteringResourceEventHandler") && name.contains("Recorder"), "{name}");
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_handlers_that_come_and_go_leave_nothing_behind() {
    let source = Source::new();
    source.put("ns/a", "1");
    let informer = source.informer();
    let running = informer.start(CancellationToken::new());
    informer.synced().await.unwrap();
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    settle().await;
    let before = tasks();
    for n in 0..10_000 {
        let log = Recorder::new();
        let registration = informer.add_handler(log.clone()).unwrap();
        if n % 100 == 0 {
            registration.synced().await.unwrap();
        }
        registration.remove();
        let told = log.take();
        if n % 100 == 0 {
            source.put("ns/a", &n.to_string());
            settle().await;
            assert_eq!(told.len(), 1);
            assert!(log.take().is_empty(), "no call after the removal");
        }
    }
    settle().await;
    assert_eq!(tasks(), before);
    assert!(informer.status().handlers.is_empty());
    running.stop();
    running.join().await;
    assert_eq!(informer.indexer().list().to_vec()[0].key(), key("ns/a"));
}

//! Start, run once, stop.

use std::time::Duration;

use futures::FutureExt;
use kubewire_indexer::{Indexers, Object};
use kubewire_informer::{
    AddIndexersError, Informer, InformerPhase, Stopped, WaitForVersionError, new_indexer_informer, wait_for_cache_sync,
};
use kubewire_listwatch::{
    ErrorClass, ItemSink, ListMeta, ListOptions, ListerWatcher, RequestError, WatchOptions, WatchStream,
};
use tokio_util::sync::CancellationToken;

use super::recorder::Recorder;
use super::source::{PodRef, Source, key, options, settle};

#[tokio::test(start_paused = true)]
async fn the_first_list_and_then_each_change_reach_store_and_handler() {
    let source = Source::new();
    source.put("ns/a", "1");
    let informer = source.informer();
    let log = Recorder::new();
    let registration = informer.add_handler(log.clone()).unwrap();
    assert_eq!(informer.status().phase, InformerPhase::New);
    assert!(!informer.is_stopped() && !registration.has_synced());

    let running = informer.start(CancellationToken::new());
    registration.synced().await.unwrap();
    assert_eq!(log.take(), ["+ns/a@1!"]);
    source.put("ns/a", "2");
    source.put("ns/b", "1");
    settle().await;
    source.delete("ns/a");
    settle().await;
    assert_eq!(log.take(), ["~ns/a@1>2", "+ns/b@3", "-ns/a@4"]);
    assert_eq!(informer.last_sync_resource_version(), "4");
    assert_eq!(informer.indexer().list_keys(), [key("ns/b")]);

    let status = informer.status();
    assert_eq!((status.phase, status.synced, status.objects, status.pending), (InformerPhase::Running, true, 1, 0));
    assert_eq!(status.applied_version, "4");
    assert_eq!((status.handlers[0].told, status.handlers[0].backlog), (4, 0));

    running.stop();
    running.join().await;
    assert!(informer.is_stopped());
    assert_eq!(informer.status().phase, InformerPhase::Stopped);
    source.put("ns/b", "2");
    settle().await;
    assert!(log.take().is_empty());
    assert_eq!(informer.indexer().len(), 1, "the store stays readable");
}

#[tokio::test(start_paused = true)]
async fn the_single_handler_informer_is_store_and_informer() {
    let source = Source::new();
    source.put("ns/a", "1");
    let (tx, mut rx) = tokio::sync::mpsc::unbounded_channel();
    let (store, informer) = new_indexer_informer(
        source.clone(),
        Duration::ZERO,
        |h| {
            let (added, changed) = (tx.clone(), tx.clone());
            h.on_add(move |pod, initial| added.send(format!("+{}{initial}", pod.id().name)).unwrap())
                .on_update(move |_, new| changed.send(format!("~{}", new.id().name)).unwrap())
                .on_delete(move |deleted| tx.send(format!("-{}", deleted.key())).unwrap())
        },
        Indexers::by_namespace(),
    )
    .unwrap();
    let _running = informer.start(CancellationToken::new());
    informer.synced().await.unwrap();
    source.put("ns/a", "2");
    source.delete("ns/a");
    let told = [rx.recv().await.unwrap(), rx.recv().await.unwrap(), rx.recv().await.unwrap()];
    assert_eq!(told, ["+atrue", "~a", "-ns/a"]);
    assert!(store.is_empty());
}

#[test]
fn an_index_name_that_is_given_twice_is_an_error() {
    let twice = Indexers::by_namespace().with("namespace", kubewire_indexer::IndexFunc::name());
    let error = new_indexer_informer(Source::new(), Duration::ZERO, |h| h, twice).unwrap_err();
    assert!(error.to_string().contains("namespace"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn the_stop_signal_ends_everything() {
    let source = Source::new();
    let stop = CancellationToken::new();
    let informer = source.informer();
    informer.add_handler(Recorder::new()).unwrap();
    let running = informer.start(stop.clone());
    informer.synced().await.unwrap();
    stop.cancel();
    running.join().await;
    assert!(informer.is_stopped());
}

#[tokio::test(start_paused = true)]
async fn dropping_the_running_informer_stops_it() {
    let source = Source::new();
    let informer = source.informer();
    let running = informer.start(CancellationToken::new());
    informer.synced().await.unwrap();
    drop(running);
    settle().await;
    assert!(informer.is_stopped());
}

#[tokio::test(start_paused = true)]
async fn it_runs_once() {
    let source = Source::new();
    let informer = source.informer();
    let running = informer.start(CancellationToken::new());
    let second = informer.start(CancellationToken::new());
    second.join().await;
    informer.synced().await.unwrap();
    assert_eq!(source.requests(), (1, 1), "the second start made no request");
    assert!(!informer.is_stopped(), "the end of the second does not end the first");
    running.stop();
    running.join().await;
    informer.start(CancellationToken::new()).join().await;
    assert_eq!(source.requests(), (1, 1), "stopped for ever");
}

#[tokio::test(start_paused = true)]
async fn after_the_stop_handlers_and_indices_are_refused_and_removing_is_harmless() {
    let source = Source::new();
    let informer = source.informer();
    let registration = informer.add_handler(Recorder::new()).unwrap();
    let running = informer.start(CancellationToken::new());
    running.stop();
    running.join().await;
    assert_eq!(informer.add_handler(Recorder::new()).unwrap_err(), Stopped);
    assert!(informer.subscribe().is_err());
    assert!(matches!(informer.add_indexers(Indexers::none()), Err(AddIndexersError::Stopped(_))));
    registration.remove();
    registration.shut_down().await;
    assert!(registration.is_removed());
}

#[tokio::test(start_paused = true)]
async fn stopped_before_it_is_synced_it_never_will_be() {
    let source = Source::new();
    source.fail_always(ErrorClass::Forbidden, "no");
    let informer = source.informer();
    let registration = informer.add_handler(Recorder::new()).unwrap();
    let running = informer.start(CancellationToken::new());
    settle().await;
    running.stop();
    running.join().await;
    assert!(!informer.has_synced() && informer.is_stopped());
    assert_eq!(informer.synced().await, Err(Stopped));
    assert_eq!(registration.synced().await, Err(Stopped));
}

#[tokio::test(start_paused = true)]
async fn stopped_before_the_start_it_never_starts() {
    let source = Source::new();
    let informer = source.informer();
    let registration = informer.add_handler(Recorder::new()).unwrap();
    informer.stop();
    assert!(informer.is_stopped());
    informer.start(CancellationToken::new()).join().await;
    assert_eq!(source.requests(), (0, 0));
    assert_eq!(registration.synced().await, Err(Stopped));
    registration.shut_down().await;
}

#[tokio::test(start_paused = true)]
async fn a_signal_that_came_before_the_start_makes_no_request() {
    let source = Source::new();
    let stop = CancellationToken::new();
    stop.cancel();
    let informer = source.informer();
    informer.start(stop).join().await;
    assert!(informer.is_stopped());
    assert_eq!(source.requests(), (0, 0));
}

#[test]
fn the_end_of_the_runtime_ends_the_informer() {
    let source = Source::new();
    let informer = source.informer();
    let registration = informer.add_handler(Recorder::new()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let running = runtime.block_on(async {
        let running = informer.start(CancellationToken::new());
        informer.synced().await.unwrap();
        running
    });
    drop(runtime);
    assert!(informer.is_stopped() && registration.is_removed());
    drop(running);
}

#[test]
fn the_end_of_the_runtime_ends_an_informer_and_handlers_whose_tasks_have_not_run_yet() {
    let informer = Source::new().informer();
    let early = informer.add_handler(Recorder::new()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let (running, late) = runtime.block_on(async {
        let running = informer.start(CancellationToken::new());
        (running, informer.add_handler(Recorder::new()).unwrap())
    });
    drop(runtime);
    assert!(informer.is_stopped());
    for registration in [early, late] {
        assert!(registration.is_removed());
        assert!(registration.shut_down().now_or_never().is_some(), "nobody will call it any more");
    }
    drop(running);
}

#[tokio::test(start_paused = true)]
async fn indices_may_be_added_at_any_time() {
    let source = Source::new();
    source.put("ns/a", "red");
    let informer = source.informer_with(options());
    let _running = informer.start(CancellationToken::new());
    informer.synced().await.unwrap();
    informer.add_indexers(Indexers::none().with("name", kubewire_indexer::IndexFunc::name())).unwrap();
    source.put("ns/b", "red");
    settle().await;
    let store = informer.indexer();
    assert_eq!(store.index_keys("note", "red").unwrap(), [key("ns/a"), key("ns/b")]);
    assert_eq!(store.index_keys("name", "b").unwrap(), [key("ns/b")]);
    let clash = informer.add_indexers(Indexers::by_namespace()).unwrap_err();
    assert!(matches!(clash, AddIndexersError::Conflict(_)));
}

#[tokio::test(start_paused = true)]
async fn one_can_wait_until_the_store_has_a_version() {
    let source = Source::new();
    source.put("ns/a", "1");
    let informer = source.informer();
    let _running = informer.start(CancellationToken::new());
    informer.wait_for_version("1").await.unwrap();
    assert!(informer.indexer().contains(&key("ns/a")));
    for n in 0..10 {
        let version = source.put(&format!("ns/b{n}"), "1");
        informer.wait_for_version(&version).await.unwrap();
        assert!(informer.indexer().contains(&key(&format!("ns/b{n}"))), "read what was written");
    }
    let later = tokio::spawn({
        let informer = informer.clone();
        async move { informer.wait_for_version("12").await }
    });
    settle().await;
    assert!(!later.is_finished());
    assert_eq!(source.bookmark(), "12");
    later.await.unwrap().unwrap();
    for odd in ["x", "", "-1"] {
        assert_eq!(informer.wait_for_version(odd).await, Err(WaitForVersionError::NotComparable(odd.to_owned())));
    }
    informer.stop();
    assert_eq!(informer.wait_for_version("99").await, Err(WaitForVersionError::Stopped(Stopped)));
}

/// A server that counts in letters.
struct Opaque;

impl ListerWatcher for Opaque {
    type Object = PodRef;

    async fn list(&self, _: &ListOptions, _: ItemSink<'_, PodRef>) -> Result<ListMeta, RequestError> {
        Ok(ListMeta::new("first"))
    }

    async fn watch(&self, _: &WatchOptions) -> Result<WatchStream<PodRef>, RequestError> {
        Ok(Box::pin(futures::stream::pending()))
    }
}

#[tokio::test(start_paused = true)]
async fn a_store_whose_versions_are_no_numbers_says_of_none_that_it_is_reached() {
    let informer = Informer::new(Opaque);
    let _running = informer.start(CancellationToken::new());
    informer.synced().await.unwrap();
    let waited = informer.wait_for_version("7").await;
    assert_eq!(waited, Err(WaitForVersionError::NotComparable("first".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn a_lister_watcher_that_panics_stops_the_informer_and_who_waits_hears_why() {
    let source = Source::new();
    source.after_next_list(|| panic!("the dog ate it"));
    let informer = source.informer();
    let log = Recorder::new();
    let registration = informer.add_handler(log.clone()).unwrap();
    let stop = CancellationToken::new();
    let running = informer.start(stop.clone());
    let error = wait_for_cache_sync(&stop, Duration::from_secs(60), [&informer]).await.unwrap_err().to_string();
    assert!(error.contains("pods: stopped: ") && error.contains("the dog ate it"), "{error}");
    running.join().await;
    assert!(informer.is_stopped() && registration.is_removed());
    assert!(informer.status().panic.unwrap().contains("the dog ate it"));
}

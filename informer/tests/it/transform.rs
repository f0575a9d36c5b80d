//! Transforms: once over each object, before anything else sees it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kubewire_informer::Delivery;
use kubewire_listwatch::BoxError;
use tokio_util::sync::CancellationToken;

use super::recorder::Recorder;
use super::source::{Form, PodRef, Source, edited, key, options, settle};

const SECOND: Duration = Duration::from_secs(1);

#[tokio::test(start_paused = true)]
async fn store_keys_and_handlers_follow_the_transformed_object() {
    for delivery in [Delivery::PerKey, Delivery::InOrder] {
        let source = Source::new();
        source.put("ns/a", "1");
        let upper =
            |pod: PodRef| -> Result<PodRef, BoxError> { Ok(edited(&pod, |pod| pod.name.make_ascii_uppercase())) };
        let informer = source.informer_with(options().delivery(delivery).transform(upper));
        let log = Recorder::new();
        informer.add_handler(log.clone()).unwrap();
        let _running = informer.start(CancellationToken::new());
        informer.synced().await.unwrap();
        source.put("ns/b", "1");
        settle().await;
        source.put("ns/a", "2");
        settle().await;
        source.delete("ns/a");
        settle().await;
        assert_eq!(log.take(), ["+ns/A@1!", "+ns/B@2", "~ns/A@1>3", "-ns/A@4"], "{delivery:?}");
        assert_eq!(informer.indexer().list_keys(), [key("ns/B")]);
        source.expire();
        tokio::time::sleep(SECOND * 61).await;
        assert_eq!(log.take(), ["~ns/B@2>2"], "a new list finds it under its new key");
    }
}

#[tokio::test(start_paused = true)]
async fn the_transform_never_sees_what_it_has_made() {
    let source = Source::new();
    (0..20).for_each(|n| drop(source.put(&format!("ns/{n}"), "")));
    let runs = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&runs);
    let informer = source.informer_with(options().resync_period(SECOND).transform(move |pod: PodRef| {
        counter.fetch_add(1, Ordering::Relaxed);
        if pod.read().note.is_empty() { Ok(edited(&pod, |pod| pod.note = "seen".to_owned())) } else { Err("seen") }
    }));
    let log = Recorder::new();
    informer.add_handler(log.clone()).unwrap();
    let _running = informer.start(CancellationToken::new());
    informer.synced().await.unwrap();
    for _ in 0..10 {
        source.put("ns/0", "");
        tokio::time::sleep(SECOND).await;
        assert!(informer.indexer().list().iter().all(|pod| pod.read().note == "seen"));
    }
    source.expire();
    tokio::time::sleep(SECOND * 61).await;
    assert_eq!(informer.status().reflector.not_taken, 0);
    assert_eq!(runs.load(Ordering::Relaxed), 30, "an unchanged object of a new list is the cached one");
    assert!(log.replay().values().all(|pod| pod.note == "seen"));
}

#[tokio::test(start_paused = true)]
async fn an_object_that_the_transform_refuses_is_skipped_and_what_is_cached_stays() {
    let source = Source::new();
    source.put("ns/a", "good");
    source.put("ns/b", "poison");
    let picky = |pod: PodRef| if pod.read().note == "poison" { Err("bad taste") } else { Ok(pod) };
    let informer = source.informer_with(options().transform(picky));
    let log = Recorder::new();
    informer.add_handler(log.clone()).unwrap();
    let _running = informer.start(CancellationToken::new());
    informer.synced().await.unwrap();
    source.put("ns/a", "poison");
    source.put("ns/c", "good");
    settle().await;
    assert_eq!(log.take(), ["+ns/a@1!", "+ns/c@4"]);
    assert_eq!(informer.last_sync_resource_version(), "4", "the version counts all the same");
    source.expire();
    tokio::time::sleep(SECOND * 61).await;
    assert_eq!(log.take(), ["~ns/c@4>4"], "the list has a, though nobody can take it");
    assert_eq!(informer.indexer().get_by_key(&key("ns/a")).unwrap().read().note, "good");
    assert_eq!(informer.status().reflector.not_taken, 4);
    source.put("ns/a", "good again");
    settle().await;
    assert_eq!(log.take(), ["~ns/a@1>6"]);
}

#[tokio::test(start_paused = true)]
async fn real_updates_arrive_though_the_transform_removes_the_version() {
    for delivery in [Delivery::PerKey, Delivery::InOrder, Delivery::Coalescing] {
        let source = Source::new();
        source.put("ns/a", "1");
        let strip = |pod: PodRef| -> Result<PodRef, BoxError> { Ok(edited(&pod, |pod| pod.version.clear())) };
        let informer = source.informer_with(options().resync_period(SECOND).delivery(delivery).transform(strip));
        let log = Recorder::new();
        let handler = kubewire_informer::HandlerOptions::new().resync_period(Duration::ZERO);
        informer.add_handler_with(log.clone(), handler).unwrap();
        let _running = informer.start(CancellationToken::new());
        informer.synced().await.unwrap();
        tokio::time::sleep(SECOND * 3).await;
        assert_eq!(log.take(), ["+ns/a@!"], "{delivery:?}: no resync for it");
        source.put("ns/a", "2");
        settle().await;
        assert_eq!(log.take(), ["~ns/a@>"], "{delivery:?}: a real update");
        source.expire();
        tokio::time::sleep(SECOND * 61).await;
        assert!(log.take().is_empty(), "{delivery:?}: the list brings the same version");
        source.put("ns/a", "3");
        settle().await;
        assert_eq!(log.notifications().len(), 1);
        assert_eq!(informer.indexer().list().to_vec()[0].read().note, "3");
    }
}

#[tokio::test(start_paused = true)]
async fn the_version_of_the_store_stays_where_the_transform_removes_it() {
    let source = Source::new();
    source.put("ns/a", "1");
    let strip = |pod: PodRef| -> Result<PodRef, BoxError> {
        Ok(if pod.read().note == "strip" { edited(&pod, |pod| pod.version.clear()) } else { pod })
    };
    let informer = source.informer_with(options().delivery(Delivery::InOrder).transform(strip));
    let _running = informer.start(CancellationToken::new());
    informer.synced().await.unwrap();
    let version = || informer.indexer().last_version();
    assert_eq!(version(), "1", "of the list");
    source.put("ns/a", "2");
    settle().await;
    assert_eq!(version(), "2");
    source.put("ns/a", "strip");
    settle().await;
    assert_eq!(version(), "2");
    source.delete("ns/a");
    source.put("ns/b", "1");
    settle().await;
    assert_eq!(version(), "5");
    source.bookmark();
    settle().await;
    assert_eq!(version(), "6");
}

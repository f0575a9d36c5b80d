//! The retry watcher.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::{Stream, StreamExt};
use kubewire_indexer::Object;
use kubewire_informer::watch_tools::RetryWatcher;
use kubewire_listwatch::{ErrorClass, EventKind, RequestError, WatchEvent};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::PodRef;
use super::fake_server::{FakeServer, OpenStream, bad_event, fake, status};

type Item = Result<WatchEvent<PodRef>, RequestError>;

/// A retry watcher from version 10 that runs in a task, and its server. The receiver ends when the watcher does.
fn watching() -> (FakeServer, mpsc::UnboundedReceiver<String>) {
    let (lister_watcher, server) = fake(false);
    let (sender, receiver) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut watcher = RetryWatcher::new("10", &lister_watcher).expect("a version");
        while let Some(item) = watcher.next().await {
            _ = sender.send(text(&item));
        }
    });
    (server, receiver)
}

pub(crate) fn text(item: &Item) -> String {
    let state = |sign: char, pod: &PodRef| format!("{sign}{}@{}", pod.id().name, pod.id().resource_version);
    match item {
        Ok(WatchEvent::Added(pod)) => state('+', pod),
        Ok(WatchEvent::Modified(pod)) => state('~', pod),
        Ok(WatchEvent::Deleted(pod)) => state('-', pod),
        Ok(other) => format!("{other:?}"),
        Err(error) => error.class().to_string(),
    }
}

async fn open(server: &FakeServer, version: &str) -> OpenStream {
    let watch = server.watch().await;
    assert_eq!(watch.version(), version);
    assert!(watch.options.allow_bookmarks && !watch.options.send_initial_events);
    watch.open()
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_nowhere_is_refused() {
    let (lister_watcher, server) = fake(false);
    for version in ["", "0"] {
        assert!(RetryWatcher::new(version, &lister_watcher).is_err());
    }
    assert!(server.is_quiet());
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_cannot_be_opened_is_tried_again_a_second_later() {
    for refusal in [status(500, "InternalError"), status(410, "Expired"), status(404, "NotFound")] {
        let (server, mut events) = watching();
        let start = Instant::now();
        server.watch().await.fail(refusal);
        open(&server, "10").await.send("+a@11");
        assert_eq!(start.elapsed(), Duration::from_secs(1));
        assert_eq!(events.recv().await.as_deref(), Some("+a@11"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_version_that_nobody_has_is_given_up_after_some_tries() {
    let (server, mut events) = watching();
    for _ in 0..5 {
        server.watch().await.fail(status(410, "Expired"));
    }
    assert_eq!((events.recv().await.as_deref(), events.recv().await), (Some("expired"), None));
}

#[tokio::test(start_paused = true)]
async fn an_expired_version_in_the_stream_is_the_last_thing_that_comes() {
    let (server, mut events) = watching();
    let stream = open(&server, "10").await;
    stream.send("+a@11");
    stream.error(status(410, "Expired"));
    stream.send("+b@12");
    assert_eq!(events.recv().await.as_deref(), Some("+a@11"));
    assert_eq!((events.recv().await.as_deref(), events.recv().await), (Some("expired"), None));
    assert!(server.is_quiet());
}

#[tokio::test(start_paused = true)]
async fn missing_rights_are_the_end() {
    for (code, reason, class) in [(403, "Forbidden", "forbidden"), (401, "Unauthorized", "unauthorized")] {
        let (server, mut events) = watching();
        server.watch().await.fail(status(code, reason));
        assert_eq!((events.recv().await.as_deref(), events.recv().await), (Some(class), None));
    }
}

#[tokio::test(start_paused = true)]
async fn other_errors_in_the_stream_open_the_next_watch_and_are_not_given_out() {
    let errors = [
        status(504, "Timeout"),
        status(500, "InternalError"),
        status(409, "Conflict"),
        RequestError::new(ErrorClass::Decode, "not a status"),
        RequestError::new(ErrorClass::Transport, "reset"),
    ];
    for error in errors {
        let (server, mut events) = watching();
        let stream = open(&server, "10").await;
        stream.send("+a@11");
        stream.error(error);
        open(&server, "11").await.send("+b@12");
        assert_eq!(events.recv().await.as_deref(), Some("+a@11"));
        assert_eq!(events.recv().await.as_deref(), Some("+b@12"));
        assert_eq!(stream.stops(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn closed_watches_are_opened_again_from_the_last_version_once_a_second() {
    for closes in [1, 2, 4] {
        let (server, mut events) = watching();
        let start = Instant::now();
        let mut version = 10;
        for _ in 0..=closes {
            let mut stream = open(&server, &version.to_string()).await;
            version += 7;
            stream.send(&format!("+a@{} ~a@{version}", version - 3));
            stream.close();
            assert_eq!(events.recv().await, Some(format!("+a@{}", version - 3)));
            assert_eq!(events.recv().await, Some(format!("~a@{version}")));
        }
        assert_eq!(start.elapsed(), Duration::from_secs(closes));
        assert_eq!(server.watches.load(Ordering::Relaxed), closes as u32 + 1);
    }
}

#[tokio::test(start_paused = true)]
async fn bookmarks_move_the_version_and_are_not_given_out() {
    let (server, mut events) = watching();
    let mut stream = open(&server, "10").await;
    stream.send("b@20");
    stream.close();
    open(&server, "20").await.send("+a@21");
    assert_eq!(events.recv().await.as_deref(), Some("+a@21"));
}

#[tokio::test(start_paused = true)]
async fn events_from_which_no_watch_can_go_on_are_the_end() {
    let odd = [
        WatchEvent::Added(super::fake_server::pod("a@")),
        WatchEvent::Bookmark { resource_version: String::new(), initial_events_end: false },
        WatchEvent::Unknown { kind: "PING".to_owned() },
        bad_event(EventKind::Added, Some("a"), None),
    ];
    for event in odd {
        let (server, mut events) = watching();
        open(&server, "10").await.event(event);
        assert_eq!((events.recv().await.as_deref(), events.recv().await), (Some("decode"), None));
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_decoded_is_given_out_and_passed_by() {
    let (server, mut events) = watching();
    let mut stream = open(&server, "10").await;
    stream.event(bad_event(EventKind::Added, Some("a"), Some("15")));
    stream.close();
    assert!(events.recv().await.expect("an event").starts_with("Undecodable"));
    open(&server, "15").await;
}

#[tokio::test(start_paused = true)]
async fn the_server_is_left_alone_for_as_long_as_it_asks() {
    for (seconds, waited) in [(5, 5), (100_000, 60)] {
        let busy = || status(429, "TooManyRequests").with_retry_after(Some(Duration::from_secs(seconds)));
        let (server, _events) = watching();
        let start = Instant::now();
        server.watch().await.fail(busy());
        let stream = open(&server, "10").await;
        assert_eq!(start.elapsed().as_secs(), waited);
        stream.error(busy());
        open(&server, "10").await;
        assert_eq!(start.elapsed().as_secs(), 2 * waited);
    }
}

#[tokio::test(start_paused = true)]
async fn dropping_it_with_unread_events_ends_its_stream() {
    let (lister_watcher, server) = fake(false);
    let watcher = RetryWatcher::new("10", Arc::new(lister_watcher)).expect("a version");
    let mut events: std::pin::Pin<Box<dyn Stream<Item = Item> + Send>> = Box::pin(watcher.into_stream());
    let (first, stream) = tokio::join!(events.next(), async {
        let stream = open(&server, "10").await;
        stream.send("+a@11 +b@12 +c@13");
        stream
    });
    assert_eq!(first.map(|item| text(&item)).as_deref(), Some("+a@11"));
    drop(events);
    assert_eq!(stream.stops(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_next_loses_no_event() {
    let (lister_watcher, server) = fake(false);
    let mut watcher = RetryWatcher::new("10", &lister_watcher).expect("a version");
    let (late, stream) =
        tokio::join!(tokio::time::timeout(Duration::from_secs(3), watcher.next()), async { open(&server, "10").await });
    assert!(late.is_err());
    stream.send("+a@11");
    assert_eq!(watcher.next().await.map(|item| text(&item)).as_deref(), Some("+a@11"));
    assert_eq!(watcher.version(), "11");
}

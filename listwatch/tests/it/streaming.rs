//! Bodies that come in pieces, slowly, or not at all. Time is tokio's, paused.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::channel::mpsc;
use futures::{SinkExt, StreamExt, stream};
use k8s_openapi::api::core::v1::Pod;
use kubewire_listwatch::{
    BoxError, ErrorClass, Limits, ListOptions, ListWatch, ListerWatcher, Packed, Timeouts, WatchEvent, list_all,
};
use parking_lot::Mutex;

use crate::mock::{client, list, streamed, watch_from};

type Piece = Result<Bytes, BoxError>;

/// A list-watch whose next answer has a body that is fed piece by piece.
fn fed() -> (ListWatch<Arc<Pod>>, mpsc::Sender<Piece>) {
    let (feed, body) = mpsc::channel(0);
    let body = Mutex::new(Some(body));
    let (client, _) = client(move |_| streamed(body.lock().take().expect("one request")));
    (ListWatch::all(client), feed)
}

fn event(name: &str) -> String {
    format!(r#"{{"type":"ADDED","object":{{"metadata":{{"name":"{name}"}}}}}}"#)
}

fn text(piece: impl Into<String>) -> Piece {
    Ok(Bytes::from(piece.into()))
}

#[tokio::test(start_paused = true)]
async fn each_item_is_handed_out_as_soon_as_its_bytes_are_there() {
    let (pods, mut feed) = fed();
    let seen = Arc::new(AtomicUsize::new(0));
    let listing = tokio::spawn({
        let seen = Arc::clone(&seen);
        async move {
            let mut each = |item: Result<Arc<Pod>, _>| {
                item.unwrap();
                seen.fetch_add(1, Ordering::SeqCst);
            };
            pods.list(&ListOptions::default(), &mut each).await
        }
    });
    feed.send(text(r#"{"items":[{"metadata":{"name":"a"}},{"meta"#)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(seen.load(Ordering::SeqCst), 1);
    feed.send(text(r#"data":{"name":"b"}}"#)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(seen.load(Ordering::SeqCst), 2);
    feed.send(text(r#"],"metadata":{"resourceVersion":"7"}}"#)).await.unwrap();
    drop(feed);
    assert_eq!(listing.await.unwrap().unwrap().resource_version, "7");
}

#[tokio::test(start_paused = true)]
async fn a_slow_list_goes_on_while_bytes_flow_and_fails_when_they_stop() {
    let (pods, mut feed) = fed();
    let listing = tokio::spawn(async move { list(&pods).await });
    feed.send(text(r#"{"items":["#)).await.unwrap();
    for index in 0..19 {
        tokio::time::sleep(Duration::from_secs(29)).await;
        let comma = if index == 0 { "" } else { "," };
        feed.send(text(format!(r#"{comma}{{"metadata":{{"name":"p{index}"}}}}"#))).await.unwrap();
    }
    assert!(!listing.is_finished());
    tokio::time::sleep(Duration::from_secs(31)).await;
    let (items, meta) = listing.await.unwrap();
    assert_eq!(items.len(), 19);
    let error = meta.unwrap_err();
    assert_eq!(error.class(), ErrorClass::TimedOut);
    assert_eq!(error.to_string(), "timed_out: list pods: nothing more came within 30s");
    assert!(feed.is_closed(), "the connection is given up");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_never_begins_times_out() {
    let service = tower::service_fn(|_: http::Request<kube_client::client::Body>| {
        std::future::pending::<Result<http::Response<kube_client::client::Body>, BoxError>>()
    });
    let pods = ListWatch::<Arc<Pod>>::all(kube_client::Client::new(service, "default"));
    let start = tokio::time::Instant::now();
    assert_eq!(list(&pods).await.1.unwrap_err().class(), ErrorClass::TimedOut);
    assert_eq!(start.elapsed().as_secs(), 65);
    let quick = pods.timeouts(Timeouts::default().headers(Duration::from_secs(1)));
    assert_eq!(quick.watch(&watch_from("7")).await.err().unwrap().class(), ErrorClass::TimedOut);
    assert_eq!(start.elapsed().as_secs(), 66);
}

/// B19: whatever the server does, a watch ends a little after the time it was asked to end at.
#[tokio::test(start_paused = true)]
async fn a_watch_on_a_dead_connection_ends_by_itself() {
    let (pods, mut feed) = fed();
    let start = tokio::time::Instant::now();
    let mut events = pods.watch(&watch_from("7")).await.unwrap();
    let mut sent = tokio::spawn(async move {
        feed.send(text(event("a") + "\n")).await.unwrap();
        feed
    });
    assert!(matches!(events.next().await, Some(Ok(WatchEvent::Added(_)))));
    let feed = (&mut sent).await.unwrap();
    let error = events.next().await.unwrap().unwrap_err();
    assert_eq!(error.class(), ErrorClass::TimedOut);
    assert_eq!(start.elapsed(), Duration::from_secs(305));
    assert!(feed.is_closed(), "the connection is given up while the stream is still held");
    assert!(events.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn an_idle_limit_ends_a_silent_watch_and_bookmarks_keep_it_alive() {
    let (pods, mut feed) = fed();
    let pods = pods.timeouts(Timeouts::default().watch_idle(Duration::from_secs(60)));
    let mut events = pods.watch(&watch_from("7")).await.unwrap();
    let start = tokio::time::Instant::now();
    let feeder = tokio::spawn(async move {
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_secs(59)).await;
            feed.send(text("{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"8\"}}}\n"))
                .await
                .unwrap();
        }
        feed
    });
    for _ in 0..3 {
        assert!(matches!(events.next().await, Some(Ok(WatchEvent::Bookmark { .. }))));
    }
    assert_eq!(events.next().await.unwrap().unwrap_err().class(), ErrorClass::TimedOut);
    assert_eq!(start.elapsed().as_secs(), 3 * 59 + 60);
    drop(feeder);
}

/// B01: chunks have no meaning.
#[tokio::test]
async fn a_body_cut_at_any_byte_gives_the_same_events() {
    let object = r#"{"metadata":{"name":"x","annotations":{"a":"é 漢 😀 \ud83d\ude00 \\ \""}}}"#;
    let body = format!("{{\"type\":\"ADDED\",\"object\":{object}}}\n{}\n", event("y"));
    let expected: Pod = serde_json::from_str(object).unwrap();
    for cut in 0..body.len() {
        let pieces = [&body.as_bytes()[..cut], &body.as_bytes()[cut..]].map(|piece| Ok(Bytes::copy_from_slice(piece)));
        let (client, _) = client(move |_| {
            streamed(stream::iter(
                pieces
                    .each_ref()
                    .map(|piece| Ok(piece.as_ref().map_err(|error: &BoxError| error.to_string())?.clone())),
            ))
        });
        let events: Vec<_> = ListWatch::<Arc<Pod>>::all(client).watch(&watch_from("7")).await.unwrap().collect().await;
        assert_eq!(events.len(), 2, "cut at {cut}");
        assert!(matches!(&events[0], Ok(WatchEvent::Added(pod)) if **pod == expected), "cut at {cut}");
    }
}

#[tokio::test]
async fn a_watch_that_ends_within_a_line_is_truncated_unless_the_line_is_whole() {
    let body = event("x") + "\n" + &event("y");
    for end in 0..=body.len() {
        let piece = Bytes::copy_from_slice(&body.as_bytes()[..end]);
        let (client, _) = client(move |_| streamed(stream::iter([Ok(piece.clone())])));
        let mut events: Vec<_> =
            ListWatch::<Arc<Pod>>::all(client).watch(&watch_from("7")).await.unwrap().collect().await;
        let first = event("x").len();
        let whole = end == 0 || end == first || end == first + 1 || end == body.len();
        assert_eq!(events.iter().all(Result::is_ok), whole, "end at {end}");
        if !whole {
            assert_eq!(events.pop().unwrap().unwrap_err().class(), ErrorClass::Truncated);
        }
        assert_eq!(events.len(), usize::from(end >= first) + usize::from(end == body.len()), "end at {end}");
    }
}

/// B08: large objects pass, endless ones do not.
#[tokio::test]
async fn a_line_or_item_over_its_limit_is_a_named_error() {
    let endless = |head: &'static str| {
        client(move |_| {
            let pieces = stream::iter([head.to_owned()]).chain(stream::repeat("x".repeat(16 << 10)));
            streamed(pieces.map(|piece| Ok(Bytes::from(piece))))
        })
        .0
    };
    let limits = Limits::default().line(1 << 20).item(2 << 20);
    let pods = ListWatch::<Arc<Pod>>::all(endless(r#"{"type":"#)).limits(limits);
    let error = pods.watch(&watch_from("7")).await.unwrap().next().await.unwrap().unwrap_err();
    assert_eq!(error.class(), ErrorClass::TooLong);
    assert!(error.to_string().contains("watch pods: a line is longer than the limit of 1048576 bytes"), "{error}");

    let pods = ListWatch::<Arc<Pod>>::all(endless(r#"{"items":[{"a":""#)).limits(limits);
    let error = list(&pods).await.1.unwrap_err();
    assert_eq!(error.class(), ErrorClass::TooLong);
    assert!(error.to_string().contains("list pods: an item is longer than the limit of 2097152 bytes"), "{error}");

    let big = "y".repeat(3 << 20);
    let line =
        format!(r#"{{"type":"ADDED","object":{{"metadata":{{"name":"x","annotations":{{"a":"{big}"}}}}}}}}"#) + "\n";
    let (client, _) = client(move |_| {
        let line = Bytes::from(line.clone());
        streamed(stream::iter(
            (0..line.len()).step_by(1024).map(move |at| Ok(line.slice(at..line.len().min(at + 1024)))),
        ))
    });
    let events: Vec<_> = ListWatch::<Arc<Pod>>::all(client).watch(&watch_from("7")).await.unwrap().collect().await;
    assert!(matches!(&events[..], [Ok(WatchEvent::Added(_))]));
}

/// A piece that counts itself as long as it is held.
struct Counted {
    bytes: Vec<u8>,
    held: Arc<AtomicUsize>,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.held.fetch_sub(self.bytes.len(), Ordering::SeqCst);
    }
}

/// The pieces of a body, counted.
fn counted(body: Vec<u8>, held: &Arc<AtomicUsize>) -> impl stream::Stream<Item = Piece> + Send + 'static {
    let held = Arc::clone(held);
    let pieces: Vec<Vec<u8>> = body.chunks(4096).map(<[u8]>::to_vec).collect();
    stream::iter(pieces).map(move |bytes| {
        held.fetch_add(bytes.len(), Ordering::SeqCst);
        Ok(Bytes::from_owner(Counted { bytes, held: Arc::clone(&held) }))
    })
}

#[tokio::test]
async fn neither_a_list_nor_a_watch_holds_more_than_one_piece_of_its_body() {
    let held = Arc::new(AtomicUsize::new(0));
    let pad = "x".repeat(900);
    let object = |index: usize| format!(r#"{{"metadata":{{"name":"p{index}","annotations":{{"pad":"{pad}"}}}}}}"#);
    let items: Vec<String> = (0..500).map(object).collect();
    let list_body = format!(r#"{{"items":[{}],"metadata":{{"resourceVersion":"7"}}}}"#, items.join(","));
    let watch_body: String = items.iter().map(|item| format!("{{\"type\":\"ADDED\",\"object\":{item}}}\n")).collect();
    let (client, _) = client({
        let held = Arc::clone(&held);
        move |request| {
            let body = if request.uri().query().is_some_and(|query| query.contains("watch")) {
                &watch_body
            } else {
                &list_body
            };
            streamed(counted(body.clone().into_bytes(), &held))
        }
    });
    let pods = ListWatch::<Arc<Pod>>::all(client);
    let (mut most, mut items) = (0, 0);
    let mut each = |item: Result<Arc<Pod>, _>| {
        item.unwrap();
        items += 1;
        most = most.max(held.load(Ordering::SeqCst));
    };
    pods.list(&ListOptions::default(), &mut each).await.unwrap();
    assert_eq!(items, 500);
    assert!(most <= 4096, "{most} bytes were held");

    let mut events = pods.watch(&watch_from("7")).await.unwrap();
    let (mut most, mut count) = (0, 0);
    while let Some(event) = events.next().await {
        event.unwrap();
        count += 1;
        most = most.max(held.load(Ordering::SeqCst));
    }
    assert_eq!(count, 500);
    assert!(most <= 4096, "{most} bytes were held");
}

/// R6: one object that is kept must not keep its page alive.
#[tokio::test]
async fn an_object_that_is_kept_holds_nothing_of_the_body_it_came_in() {
    let held = Arc::new(AtomicUsize::new(0));
    let items: Vec<String> = (0..100).map(|index| format!(r#"{{"metadata":{{"name":"p{index}"}}}}"#)).collect();
    let body = format!(r#"{{"items":[{}]}}"#, items.join(","));
    let (client, _) = client({
        let held = Arc::clone(&held);
        move |_| streamed(counted(body.clone().into_bytes(), &held))
    });
    let (packed, _) = list_all(&ListWatch::<Packed<Pod>>::all(client.clone())).await.unwrap();
    let (typed, _) = list_all(&ListWatch::<Arc<Pod>>::all(client)).await.unwrap();
    assert_eq!((packed.len(), typed.len()), (100, 100));
    assert_eq!(held.load(Ordering::SeqCst), 0);
}

//! A server that answers only when a test says so. There is never more than one open request or stream.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use kubewire_listwatch::{
    ErrorClass, EventKind, ItemError, ItemSink, ListMeta, ListOptions, ListerWatcher, RequestError, Status, WatchEvent,
    WatchOptions, WatchStream,
};
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

use super::PodRef;
use crate::record::{Form, Pod};

/// `a@5`: a pod of that name and version.
pub(crate) fn pod(text: &str) -> PodRef {
    let (name, version) = text.split_once('@').expect("name@version");
    let (namespace, name, version) = ("ns".to_owned(), name.to_owned(), version.to_owned());
    PodRef::make(&Pod { namespace, name, version, ..Pod::default() })
}

pub(crate) type Item = Result<PodRef, ItemError>;
type ListAnswer = Result<(Vec<Item>, ListMeta), RequestError>;
type StreamItem = Result<WatchEvent<PodRef>, RequestError>;

pub(crate) enum Request {
    List { options: ListOptions, answer: oneshot::Sender<ListAnswer> },
    Watch { options: WatchOptions, answer: oneshot::Sender<Result<WatchStream<PodRef>, RequestError>> },
}

/// The reflector's end.
pub(crate) struct FakeListerWatcher {
    requests: mpsc::UnboundedSender<Request>,
    pub(crate) watch_list: bool,
    /// Panics in place of a list.
    pub(crate) panics: bool,
}

/// The test's end.
pub(crate) struct FakeServer {
    requests: Mutex<mpsc::UnboundedReceiver<Request>>,
    pub(crate) lists: AtomicU32,
    pub(crate) watches: AtomicU32,
}

pub(crate) fn fake(watch_list: bool) -> (FakeListerWatcher, FakeServer) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let server = FakeServer { requests: Mutex::new(receiver), lists: AtomicU32::new(0), watches: AtomicU32::new(0) };
    (FakeListerWatcher { requests: sender, watch_list, panics: false }, server)
}

impl ListerWatcher for FakeListerWatcher {
    type Object = PodRef;

    async fn list(&self, options: &ListOptions, each: ItemSink<'_, PodRef>) -> Result<ListMeta, RequestError> {
        assert!(!self.panics, "no list today");
        let (answer, answered) = oneshot::channel();
        _ = self.requests.send(Request::List { options: options.clone(), answer });
        let (items, meta) = answered.await.expect("the test answers")?;
        items.into_iter().for_each(each);
        Ok(meta)
    }

    async fn watch(&self, options: &WatchOptions) -> Result<WatchStream<PodRef>, RequestError> {
        let (answer, answered) = oneshot::channel();
        _ = self.requests.send(Request::Watch { options: options.clone(), answer });
        answered.await.expect("the test answers")
    }

    fn supports_watch_list(&self) -> bool {
        self.watch_list
    }

    fn resource(&self) -> String {
        "pods".to_owned()
    }
}

impl FakeServer {
    /// The next request. Paused time runs on meanwhile.
    async fn next(&self) -> Request {
        let next = poll_fn(|cx| self.requests.lock().poll_recv(cx));
        let next = tokio::time::timeout(Duration::from_secs(3600), next).await;
        let request = next.expect("a request within an hour").expect("the reflector lives");
        match &request {
            Request::List { .. } => self.lists.fetch_add(1, Ordering::Relaxed),
            Request::Watch { .. } => self.watches.fetch_add(1, Ordering::Relaxed),
        };
        request
    }

    /// The next request, a list.
    pub(crate) async fn list(&self) -> PendingList {
        match self.next().await {
            Request::List { options, answer } => PendingList { options, answer },
            Request::Watch { options, .. } => panic!("a watch where a list should come: {options:?}"),
        }
    }

    /// The next request, a watch.
    pub(crate) async fn watch(&self) -> PendingWatch {
        match self.next().await {
            Request::Watch { options, answer } => PendingWatch { options, answer },
            Request::List { options, .. } => panic!("a list where a watch should come: {options:?}"),
        }
    }

    /// A list of these pods at this version, and an open watch after it.
    pub(crate) async fn list_and_watch(&self, pods: &[&str], version: &str) -> OpenStream {
        self.list().await.ok(pods, version);
        self.watch().await.open()
    }

    /// Whether no request waits.
    pub(crate) fn is_quiet(&self) -> bool {
        self.requests.lock().try_recv().is_err()
    }
}

pub(crate) struct PendingList {
    pub(crate) options: ListOptions,
    answer: oneshot::Sender<ListAnswer>,
}

impl PendingList {
    pub(crate) fn version(&self) -> &str {
        self.options.resource_version.as_deref().unwrap_or_default()
    }

    pub(crate) fn ok(self, pods: &[&str], version: &str) {
        self.page(pods, ListMeta::new(version));
    }

    pub(crate) fn page(self, pods: &[&str], meta: ListMeta) {
        self.items(pods.iter().map(|text| Ok(pod(text))).collect(), meta);
    }

    pub(crate) fn items(self, items: Vec<Item>, meta: ListMeta) {
        _ = self.answer.send(Ok((items, meta)));
    }

    pub(crate) fn fail(self, error: RequestError) {
        _ = self.answer.send(Err(error));
    }

    /// Whether the reflector has dropped the request.
    pub(crate) fn is_dropped(&self) -> bool {
        self.answer.is_closed()
    }
}

pub(crate) struct PendingWatch {
    pub(crate) options: WatchOptions,
    answer: oneshot::Sender<Result<WatchStream<PodRef>, RequestError>>,
}

impl PendingWatch {
    pub(crate) fn version(&self) -> &str {
        &self.options.resource_version
    }

    pub(crate) fn open(self) -> OpenStream {
        let (events, receiver) = mpsc::unbounded_channel();
        let ended = Arc::new(AtomicBool::new(false));
        let drops = Arc::new(AtomicU32::new(0));
        let guard = DropGuard { drops: Arc::clone(&drops) };
        let stream = stream::unfold((receiver, guard), |(mut receiver, guard)| async move {
            let item: StreamItem = receiver.recv().await?;
            Some((item, (receiver, guard)))
        });
        _ = self.answer.send(Ok(stream.boxed()));
        OpenStream { events: Some(events), ended, drops }
    }

    pub(crate) fn fail(self, error: RequestError) {
        _ = self.answer.send(Err(error));
    }
}

struct DropGuard {
    drops: Arc<AtomicU32>,
}

impl Drop for DropGuard {
    fn drop(&mut self) {
        self.drops.fetch_add(1, Ordering::Relaxed);
    }
}

pub(crate) struct OpenStream {
    events: Option<mpsc::UnboundedSender<StreamItem>>,
    ended: Arc<AtomicBool>,
    drops: Arc<AtomicU32>,
}

impl OpenStream {
    /// `+a@5`, `~a@5`, `-a@5`, `b@7`, `b@7!` (the end mark); several, one behind the other.
    pub(crate) fn send(&self, events: &str) -> &Self {
        for text in events.split(' ') {
            let (sign, rest) = text.split_at(1);
            self.event(match sign {
                "+" => WatchEvent::Added(pod(rest)),
                "~" => WatchEvent::Modified(pod(rest)),
                "-" => WatchEvent::Deleted(pod(rest)),
                _ => WatchEvent::Bookmark {
                    resource_version: rest.trim_matches(['@', '!']).to_owned(),
                    initial_events_end: rest.ends_with('!'),
                },
            });
        }
        self
    }

    pub(crate) fn event(&self, event: WatchEvent<PodRef>) {
        self.item(Ok(event));
    }

    pub(crate) fn error(&self, error: RequestError) {
        self.item(Err(error));
    }

    fn item(&self, item: StreamItem) {
        if let Some(events) = &self.events {
            _ = events.send(item);
        }
    }

    /// The server ends the stream.
    pub(crate) fn close(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        self.events = None;
    }

    /// How often the stream was dropped before the server had ended it: "stop" in client-go.
    pub(crate) fn stops(&self) -> u32 {
        if self.ended.load(Ordering::Relaxed) { 0 } else { self.drops.load(Ordering::Relaxed) }
    }
}

pub(crate) fn status(code: u16, reason: &str) -> RequestError {
    let mut status = Status::default();
    status.code = code;
    status.reason = reason.to_owned();
    RequestError::from_status(status)
}

pub(crate) fn refused() -> RequestError {
    RequestError::new(ErrorClass::ConnectionRefused, "nobody listens")
}

pub(crate) fn bad_item(name: Option<&str>, version: Option<&str>) -> ItemError {
    let mut error = ItemError::new("spec.replicas: a text where a number belongs");
    error.key = name.map(|name| kubewire_indexer::ObjectKey::new("ns", name));
    error.resource_version = version.map(str::to_owned);
    error
}

pub(crate) fn bad_event(kind: EventKind, name: Option<&str>, version: Option<&str>) -> WatchEvent<PodRef> {
    WatchEvent::Undecodable { kind, error: bad_item(name, version) }
}

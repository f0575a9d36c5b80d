//! A server that answers only when a step says so.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::{Stream, StreamExt};
use kubewire_listwatch::{
    ErrorClass, ItemSink, ListMeta, ListOptions, ListerWatcher, RequestError, Status, VersionMatch, WatchEvent,
    WatchOptions, WatchStream,
};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};

use super::object::Thing;
use crate::record::Form;

/// A request that the client made.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Request {
    kind: String,
    resource_version: String,
    resource_version_match: String,
    limit: u32,
    r#continue: String,
    allow_watch_bookmarks: bool,
    send_initial_events: bool,
}

/// An event as the traces write it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Event {
    r#type: String,
    object: Thing,
    version: String,
    initial_events_end: bool,
    error: Error,
}

/// An error as the traces write it: a status, or the failure of the connection.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Error {
    code: u16,
    reason: String,
    cause: String,
    transport: String,
}

/// One page of a list.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) items: Vec<Thing>,
    pub(crate) meta: ListMeta,
}

type Item<O> = Result<WatchEvent<O>, RequestError>;

/// The server, as the script sees it; its clones are the same one.
pub(crate) struct Server<O> {
    watch_list: bool,
    state: Arc<Mutex<State<O>>>,
}

impl<O> Clone for Server<O> {
    fn clone(&self) -> Self {
        Self { watch_list: self.watch_list, state: Arc::clone(&self.state) }
    }
}

/// Guarded by `Server::state`.
struct State<O> {
    /// Made since the last look.
    requests: Vec<Request>,
    open: Open<O>,
    /// Counts requests, so that one that ends knows whether it is still the open one.
    serial: u64,
    /// The client ended a stream since the last look.
    stream_stopped: bool,
    /// What no client may do.
    problems: Vec<String>,
}

/// There is never more than one open request or stream.
#[derive(Default)]
enum Open<O> {
    #[default]
    Nothing,
    List(oneshot::Sender<Result<Page, RequestError>>),
    Watch(oneshot::Sender<Result<(), RequestError>>),
    Stream(mpsc::UnboundedSender<Item<O>>),
}

/// What happened since the last look.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) requests: Vec<Request>,
    pub(crate) stream_stopped: bool,
    pub(crate) problems: Vec<String>,
}

impl<O: Form> Server<O> {
    pub(crate) fn new(watch_list: bool) -> Self {
        let state =
            State { requests: Vec::new(), open: Open::Nothing, serial: 0, stream_stopped: false, problems: Vec::new() };
        Self { watch_list, state: Arc::new(Mutex::new(state)) }
    }

    /// `list`, `watch` or `stream`, whichever is open.
    pub(crate) fn open(&self) -> Option<&'static str> {
        match self.state.lock().open {
            Open::Nothing => None,
            Open::List(_) => Some("list"),
            Open::Watch(_) => Some("watch"),
            Open::Stream(_) => Some("stream"),
        }
    }

    pub(crate) fn look(&self) -> Seen {
        let mut state = self.state.lock();
        Seen {
            requests: std::mem::take(&mut state.requests),
            stream_stopped: std::mem::take(&mut state.stream_stopped),
            problems: std::mem::take(&mut state.problems),
        }
    }

    /// Answers the list request that waits.
    pub(crate) fn answer_list(&self, answer: Result<Page, RequestError>) -> Result<(), String> {
        match std::mem::take(&mut self.state.lock().open) {
            Open::List(waiting) => waiting.send(answer).map_err(|_| "the list request is gone".to_owned()),
            _ => Err("no list request waits".to_owned()),
        }
    }

    /// Refuses the watch request that waits.
    pub(crate) fn refuse_watch(&self, error: RequestError) -> Result<(), String> {
        match std::mem::take(&mut self.state.lock().open) {
            Open::Watch(waiting) => waiting.send(Err(error)).map_err(|_| "the watch request is gone".to_owned()),
            _ => Err("no watch request waits".to_owned()),
        }
    }

    /// Accepts the watch request that waits.
    pub(crate) fn accept_watch(&self) -> Result<(), String> {
        match std::mem::take(&mut self.state.lock().open) {
            Open::Watch(waiting) => waiting.send(Ok(())).map_err(|_| "the watch request is gone".to_owned()),
            _ => Err("no watch request waits".to_owned()),
        }
    }

    /// Sends events one behind the other.
    pub(crate) fn send(&self, events: Vec<Event>) -> Result<(), String> {
        let events = events.into_iter().map(Event::item).collect::<Result<Vec<Item<O>>, String>>()?;
        match &self.state.lock().open {
            Open::Stream(stream) => {
                // The client may stop reading at an error; what comes behind it is lost, as on a real stream.
                events.into_iter().for_each(|event| drop(stream.send(event)));
                Ok(())
            }
            _ => Err("no stream is open".to_owned()),
        }
    }

    /// Ends the stream without an error.
    pub(crate) fn close_stream(&self) -> Result<(), String> {
        match std::mem::take(&mut self.state.lock().open) {
            Open::Stream(_) => Ok(()),
            _ => Err("no stream is open".to_owned()),
        }
    }

    /// Notes a request and keeps it open; the ticket closes it if it is dropped unanswered.
    fn request(&self, request: Request, open: Open<O>) -> Ticket<O> {
        let mut state = self.state.lock();
        if !matches!(state.open, Open::Nothing) {
            let problem = format!("a second request while one is open: {request:?}");
            state.problems.push(problem);
        }
        state.requests.push(request);
        state.open = open;
        state.serial += 1;
        Ticket { state: Arc::clone(&self.state), serial: state.serial }
    }
}

/// A request or stream that is open as long as this lives.
struct Ticket<O> {
    state: Arc<Mutex<State<O>>>,
    serial: u64,
}

impl<O> Drop for Ticket<O> {
    fn drop(&mut self) {
        let mut state = self.state.lock();
        if state.serial == self.serial {
            match std::mem::take(&mut state.open) {
                Open::Stream(_) => state.stream_stopped = true,
                Open::Nothing | Open::List(_) | Open::Watch(_) => {}
            }
        }
    }
}

impl<O: Form> ListerWatcher for Server<O> {
    type Object = O;

    async fn list(&self, options: &ListOptions, each: ItemSink<'_, O>) -> Result<ListMeta, RequestError> {
        let (sender, answer) = oneshot::channel();
        let request = Request {
            kind: "list".to_owned(),
            resource_version: options.resource_version.clone().unwrap_or_default(),
            resource_version_match: match_name(options.resource_version_match),
            limit: options.limit.unwrap_or_default(),
            r#continue: options.continue_token.clone().unwrap_or_default(),
            ..Request::default()
        };
        let _ticket = self.request(request, Open::List(sender));
        let page = answer.await.unwrap_or_else(|_| Err(gone()))?;
        page.items.iter().for_each(|item| each(Ok(item.made())));
        Ok(page.meta)
    }

    async fn watch(&self, options: &WatchOptions) -> Result<WatchStream<O>, RequestError> {
        let (sender, answer) = oneshot::channel();
        let request = Request {
            kind: "watch".to_owned(),
            resource_version: options.resource_version.clone(),
            resource_version_match: match_name(options.resource_version_match),
            allow_watch_bookmarks: options.allow_bookmarks,
            send_initial_events: options.send_initial_events,
            ..Request::default()
        };
        let ticket = self.request(request, Open::Watch(sender));
        if !(300..=600).contains(&options.timeout.as_secs()) {
            let problem = format!("a watch with a timeout of {:?}, not of 300 to 600 s", options.timeout);
            self.state.lock().problems.push(problem);
        }
        answer.await.unwrap_or_else(|_| Err(gone()))?;
        let (sender, events) = mpsc::unbounded_channel();
        self.state.lock().open = Open::Stream(sender);
        Ok(Events { events, _ticket: ticket }.boxed())
    }

    fn supports_watch_list(&self) -> bool {
        self.watch_list
    }

    fn resource(&self) -> String {
        "things".to_owned()
    }
}

struct Events<O> {
    events: mpsc::UnboundedReceiver<Item<O>>,
    _ticket: Ticket<O>,
}

impl<O> Stream for Events<O> {
    type Item = Item<O>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Item<O>>> {
        self.events.poll_recv(cx)
    }
}

impl Event {
    fn item<O: Form>(self) -> Result<Item<O>, String> {
        let object = self.object.made();
        Ok(Ok(match self.r#type.as_str() {
            "ADDED" => WatchEvent::Added(object),
            "MODIFIED" => WatchEvent::Modified(object),
            "DELETED" => WatchEvent::Deleted(object),
            "BOOKMARK" => {
                WatchEvent::Bookmark { resource_version: self.version, initial_events_end: self.initial_events_end }
            }
            "ERROR" => return Ok(Err(self.error.request_error()?)),
            other => return Err(format!("unknown type of event {other:?}")),
        }))
    }
}

impl Error {
    pub(crate) fn request_error(self) -> Result<RequestError, String> {
        match self.transport.as_str() {
            "" => {
                let mut status = Status::default();
                status.code = self.code;
                status.reason = self.reason;
                status.causes = if self.cause.is_empty() { Vec::new() } else { vec![self.cause] };
                Ok(RequestError::from_status(status))
            }
            "connection_refused" => Ok(RequestError::new(ErrorClass::ConnectionRefused, "as the script says")),
            other => Err(format!("unknown failure of the connection {other:?}")),
        }
    }
}

fn match_name(version_match: Option<VersionMatch>) -> String {
    version_match.map(|version_match| format!("{version_match:?}")).unwrap_or_default()
}

/// What a request gets whose script has ended.
fn gone() -> RequestError {
    RequestError::new(ErrorClass::Transport, "the script is over")
}

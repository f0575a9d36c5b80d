//! PURE. A fault on demand: which requests go wrong, how, and how often.

use std::time::Duration;

use bytes::Bytes;

use crate::matching::Matching;
use crate::{ResourceName, Status, Verb};

/// Something that goes wrong: once, unless [`times`](Self::times) or [`always`](Self::always) says otherwise, with
/// the next request that meets its conditions.
///
/// ```
/// use kubewire_apiserver::{Fault, Status};
///
/// let fault = Fault::answer(Status::unavailable()).on_list().resource("pods").times(3);
/// # let _ = fault;
/// ```
#[derive(Clone, Debug)]
#[must_use = "a fault does nothing until it is given to `ApiServer::fault`"]
pub struct Fault {
    pub(crate) requests: Matching,
    /// How many requests go well before.
    pub(crate) skip: usize,
    /// `None` for ever.
    pub(crate) times: Option<usize>,
    pub(crate) name: &'static str,
    pub(crate) action: Action,
}

#[derive(Clone, Debug)]
pub(crate) enum Action {
    Delay(Duration),
    Answer(Answer),
    Stream(StreamFault),
}

/// Something that is to be done to the body of an answer, and what it is counted as once it is done.
#[derive(Clone, Debug)]
pub(crate) struct BodyFault {
    pub(crate) name: &'static str,
    pub(crate) what: StreamFault,
}

/// What comes instead of the right answer.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Status(Box<Status>),
    Raw { code: u16, content_type: String, body: Bytes },
    Refuse,
    Reset,
    Stall,
}

/// What happens to the body of the right answer.
#[derive(Clone, Debug)]
pub(crate) enum StreamFault {
    AfterBytes(u64, Cut),
    /// After so many changes of a watch; `half`: and half of the next one.
    AfterEvents {
        count: usize,
        half: bool,
        cut: Cut,
    },
    ErrorAfterEvents(usize, Box<Status>),
    LineAfterEvents(usize, Bytes),
    DropBookmarks,
    HoldInitialEventsEnd,
    RepeatEvents,
    SwapEvents,
    /// Pieces up to this length, each after this pause.
    Drip(usize, Duration),
    /// Of a page of a list.
    Page(PageFault),
}

/// What is wrong in a page of a list.
#[derive(Clone, Debug)]
pub(crate) enum PageFault {
    /// Items before the right ones, as JSON.
    MoreItems(Vec<Bytes>),
    RepeatItems,
    ReverseItems,
    /// The last page has a continue token, an empty one.
    EmptyToken,
    /// A continued page names the token that it was asked with again.
    SameToken,
}

/// How a body stops.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Cut {
    /// As if it were complete.
    #[default]
    End,
    /// The connection breaks.
    Reset,
    /// Nothing more comes, and the connection stays.
    Stall,
}

impl Fault {
    fn new(name: &'static str, action: Action) -> Self {
        Self { requests: Matching::any(), skip: 0, times: Some(1), name, action }
    }

    fn stream(name: &'static str, fault: StreamFault) -> Self {
        Self::new(name, Action::Stream(fault))
    }

    /// As what it counts in [`faults_hit`](crate::ApiServer::faults_hit), in place of its usual name.
    pub fn named(mut self, name: &'static str) -> Self {
        self.name = name;
        self
    }

    /// The answer is this status.
    pub fn answer(status: Status) -> Self {
        let name = match status.code {
            400 => "answer 400",
            401 => "answer 401",
            403 => "answer 403",
            404 => "answer 404",
            409 => "answer 409",
            410 => "answer 410",
            429 => "answer 429",
            500 => "answer 500",
            503 => "answer 503",
            504 => "answer 504",
            _ => "answer of another code",
        };
        Self::new(name, Action::Answer(Answer::Status(Box::new(status))))
    }

    /// The HTTP answer is 410 (a watch's too; the real server says it [inside](Self::gone_on_next_watch) the stream).
    pub fn gone() -> Self {
        Self::answer(Status::expired("too old resource version"))
    }

    /// 429 with `Retry-After`.
    pub fn too_many_requests(retry_after_seconds: u32) -> Self {
        Self::answer(Status::too_many_requests(retry_after_seconds))
    }

    /// 500.
    pub fn internal_error() -> Self {
        Self::answer(Status::internal("injected"))
    }

    /// 503.
    pub fn unavailable() -> Self {
        Self::answer(Status::unavailable())
    }

    /// 504.
    pub fn timeout() -> Self {
        Self::answer(Status::timeout())
    }

    /// The answer has this code, this content type and this body: a proxy's error page, plain text, broken JSON.
    pub fn raw(code: u16, content_type: impl Into<String>, body: impl Into<Bytes>) -> Self {
        Self::new(
            "foreign answer",
            Action::Answer(Answer::Raw { code, content_type: content_type.into(), body: body.into() }),
        )
    }

    /// The connection is refused. Over the port it was accepted already, so there it is reset: to refuse
    /// connections there, [take the server down](crate::ApiServer::go_down).
    pub fn refuse() -> Self {
        Self::new("refused", Action::Answer(Answer::Refuse))
    }

    /// The connection is reset instead of an answer.
    pub fn reset() -> Self {
        Self::new("reset", Action::Answer(Answer::Reset))
    }

    /// No answer ever comes, and the connection stays open.
    pub fn stall() -> Self {
        Self::new("no answer", Action::Answer(Answer::Stall))
    }

    /// The answer comes later.
    pub fn delay(delay: Duration) -> Self {
        Self::new("late answer", Action::Delay(delay))
    }

    /// The next watch opens, and its first event is the `ERROR` 410: what the real server does when the version is
    /// too old.
    pub fn gone_on_next_watch() -> Self {
        Self::error_event(0, Status::expired("too old resource version: 1 (2)")).on_watch()
    }

    /// A watch gives an `ERROR` event after so many changes, and ends.
    pub fn error_event(after_events: usize, status: Status) -> Self {
        Self::stream("error in the stream", StreamFault::ErrorAfterEvents(after_events, Box::new(status))).on_watch()
    }

    /// A watch gives this line after so many changes, and goes on. A line feed is added. Before the end of a streaming
    /// list's initial events it counts as "line in a streaming list" too.
    pub fn line(after_events: usize, line: impl AsRef<[u8]>) -> Self {
        let line = Bytes::from([line.as_ref(), b"\n"].concat());
        Self::stream("foreign line", StreamFault::LineAfterEvents(after_events, line)).on_watch()
    }

    /// A watch ends in order after so many changes.
    pub fn end_watch(after_events: usize) -> Self {
        Self::cut_watch(after_events, false, Cut::End)
    }

    /// A watch's connection breaks after so many changes.
    pub fn reset_watch(after_events: usize) -> Self {
        Self::cut_watch(after_events, false, Cut::Reset)
    }

    /// A watch's connection breaks in the middle of the next event after so many changes.
    pub fn reset_watch_mid_event(after_events: usize) -> Self {
        Self::cut_watch(after_events, true, Cut::Reset)
    }

    /// A watch ends in order, but in the middle of the next event after so many changes.
    pub fn end_watch_mid_event(after_events: usize) -> Self {
        Self::cut_watch(after_events, true, Cut::End)
    }

    /// A watch falls silent after so many changes, without an end.
    pub fn stall_watch(after_events: usize) -> Self {
        Self::cut_watch(after_events, false, Cut::Stall)
    }

    /// A watch falls silent in the middle of the next event after so many changes.
    pub fn stall_watch_mid_event(after_events: usize) -> Self {
        Self::cut_watch(after_events, true, Cut::Stall)
    }

    fn cut_watch(count: usize, half: bool, cut: Cut) -> Self {
        let name = match (cut, half) {
            (Cut::End, false) => "watch ended",
            (Cut::End, true) => "watch ended mid-event",
            (Cut::Reset, false) => "watch reset",
            (Cut::Reset, true) => "watch reset mid-event",
            (Cut::Stall, false) => "watch stalled",
            (Cut::Stall, true) => "watch stalled mid-event",
        };
        Self::stream(name, StreamFault::AfterEvents { count, half, cut }).on_watch()
    }

    /// The body ends after so many bytes as if it were complete.
    pub fn truncate(after_bytes: u64) -> Self {
        Self::stream("body truncated", StreamFault::AfterBytes(after_bytes, Cut::End))
    }

    /// The connection breaks after so many bytes of the body.
    pub fn reset_body(after_bytes: u64) -> Self {
        Self::stream("body reset", StreamFault::AfterBytes(after_bytes, Cut::Reset))
    }

    /// The body stands still after so many bytes.
    pub fn stall_body(after_bytes: u64) -> Self {
        Self::stream("body stalled", StreamFault::AfterBytes(after_bytes, Cut::Stall))
    }

    /// A watch gives no bookmarks; the mark of the end of the initial events is none of them.
    pub fn drop_bookmarks() -> Self {
        Self::stream("bookmark dropped", StreamFault::DropBookmarks).on_watch()
    }

    /// A watch never says that the initial events are complete.
    pub fn hold_initial_events_end() -> Self {
        Self::stream("end mark held back", StreamFault::HoldInitialEventsEnd).on_watch()
    }

    /// A watch gives each change twice.
    pub fn repeat_events() -> Self {
        Self::stream("event repeated", StreamFault::RepeatEvents).on_watch()
    }

    /// Of two changes of different objects that a watch has to tell, the later one comes first; both come in one
    /// piece. Does nothing together with a fault that cuts the body.
    pub fn swap_events() -> Self {
        Self::stream("events swapped", StreamFault::SwapEvents).on_watch()
    }

    /// The body comes in pieces of this length at most, a byte each at least, with this pause before each.
    pub fn drip(piece_len_max: usize, pause: Duration) -> Self {
        Self::stream("slow drip", StreamFault::Drip(piece_len_max.max(1), pause))
    }

    fn page(name: &'static str, fault: PageFault) -> Self {
        Self::stream(name, StreamFault::Page(fault)).on_list()
    }

    /// A page of a list has these items more, each any JSON value, before the right ones.
    pub fn more_items<B: Into<Bytes>>(items: impl IntoIterator<Item = B>) -> Self {
        Self::page("foreign items", PageFault::MoreItems(items.into_iter().map(Into::into).collect()))
    }

    /// A page of a list has each item twice.
    pub fn repeat_items() -> Self {
        Self::page("items repeated", PageFault::RepeatItems)
    }

    /// The items of a page come in reverse order.
    pub fn reverse_items() -> Self {
        Self::page("items reversed", PageFault::ReverseItems)
    }

    /// The last page of a list has an empty continue token, in place of none.
    pub fn empty_token() -> Self {
        Self::page("empty continue token", PageFault::EmptyToken)
    }

    /// A page that was asked for with a continue token gives that token again.
    pub fn same_token() -> Self {
        let mut fault = Self::page("continue token repeated", PageFault::SameToken);
        fault.requests = fault.requests.continuation(true);
        fault
    }

    /// A page that was asked for with a continue token is answered 410: the token has expired. With a new token the
    /// answer offers to go on inconsistently, as the real server does where it can.
    pub fn expired_token(new_token: Option<&str>) -> Self {
        let mut status = Status::expired("The provided continue parameter is too old to display a consistent list");
        status.continue_token = new_token.map(Into::into);
        let name = if new_token.is_some() { "continue token expired, new one" } else { "continue token expired" };
        Self::answer(status).named(name).on(Matching::any().verb(Verb::List).continuation(true))
    }

    /// Only requests that meet this.
    pub fn on(mut self, requests: Matching) -> Self {
        self.requests = requests;
        self
    }

    /// Only lists.
    pub fn on_list(mut self) -> Self {
        self.requests = self.requests.verb(Verb::List);
        self
    }

    /// Only watches.
    pub fn on_watch(mut self) -> Self {
        self.requests = self.requests.verb(Verb::Watch);
        self
    }

    /// Only requests for this resource.
    pub fn resource(mut self, resource: impl Into<ResourceName>) -> Self {
        self.requests = self.requests.resource(resource);
        self
    }

    /// The first so many requests go well.
    pub fn after(mut self, requests: usize) -> Self {
        self.skip = requests;
        self
    }

    /// So many requests go wrong.
    pub fn times(mut self, times: usize) -> Self {
        self.times = Some(times);
        self
    }

    /// All requests go wrong until the fault is [removed](crate::ApiServer::clear_fault).
    pub fn always(mut self) -> Self {
        self.times = None;
        self
    }
}

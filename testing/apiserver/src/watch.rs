//! PURE. The rules of a watch: where it begins, and what it tells of each change.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;

use crate::Status;
use crate::collection::{Collection, Event};
use crate::form::{Form, Renderer};
use crate::format::Format;
use crate::list;
use crate::route::Query;
use crate::selection::Selection;
use crate::status::Cause;
use crate::stored::Stored;
use crate::watch_event::EventKind;

/// What a watch request asks for, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WatchOptions {
    pub(crate) version: Option<u64>,
    /// The present objects come first.
    pub(crate) initial_events: bool,
    pub(crate) bookmarks: bool,
    pub(crate) timeout_seconds: Option<u64>,
}

/// Ten years: an instant that far is still one.
const TIMEOUT_SECONDS_MAX: u64 = 315_360_000;

impl WatchOptions {
    pub(crate) fn parse(query: &Query) -> Result<Self, Status> {
        let version = list::version(query)?;
        let rule = query.text("resourceVersionMatch");
        let mut asked = query.flag("sendInitialEvents");
        let mut causes = Vec::new();
        const FIELD: &str = "resourceVersionMatch";
        if asked.is_some() && rule != Some("NotOlderThan") {
            let detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            causes.push(Cause::forbidden(FIELD, detail));
        }
        if let Some(rule) = rule {
            if asked.is_none() {
                let detail = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
                causes.push(Cause::forbidden(FIELD, detail));
            }
            if rule != "NotOlderThan" {
                causes.push(Cause::not_supported(FIELD, rule, &["NotOlderThan"]));
            }
            if query.text("continue").is_some() {
                causes.push(Cause::forbidden(FIELD, "resourceVersionMatch is forbidden when continue is provided"));
            }
        }
        if !causes.is_empty() {
            return Err(Status::invalid_options("ListOptions", causes));
        }
        // As the real server: a watch from nowhere begins with the present objects.
        if asked.is_none() && matches!(version, None | Some(0)) {
            asked = Some(true);
        }
        query.number("limit")?;
        let seconds = query.number("timeoutSeconds")?.and_then(|seconds| u64::try_from(seconds).ok());
        let timeout_seconds = seconds.filter(|seconds| *seconds > 0).map(|seconds| seconds.min(TIMEOUT_SECONDS_MAX));
        Ok(Self {
            version,
            initial_events: asked == Some(true),
            bookmarks: query.flag("allowWatchBookmarks") == Some(true),
            timeout_seconds,
        })
    }
}

/// How far a watch has come, and what it shows.
#[derive(Debug)]
pub(crate) struct Cursor {
    selection: Selection,
    renderer: Renderer,
    /// What happened up to this version was told.
    position: u64,
    /// What is left of the initial events.
    initial: VecDeque<Arc<Stored>>,
    /// The mark after the initial events is still to come.
    mark_due: bool,
    options: WatchOptions,
}

/// What a watch sends next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) what: LineKind,
    pub(crate) bytes: Bytes,
    /// The line's second part, where it has two.
    pub(crate) more: Option<Bytes>,
}

/// What a line of a watch is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineKind {
    Change,
    Bookmark,
    InitialEventsEnd,
    Error,
}

impl Line {
    pub(crate) fn new(what: LineKind, bytes: Bytes) -> Self {
        Self { what, bytes, more: None }
    }

    /// Both parts.
    pub(crate) fn text(&self) -> Vec<u8> {
        [&self.bytes[..], self.more.as_deref().unwrap_or_default()].concat()
    }
}

/// How many events a watch takes at a time, so that the lock is held shortly.
const BATCH_LEN_MAX: usize = 64;

/// The watch was too slow: the history does not reach back to where it stands.
#[derive(Debug)]
pub(crate) struct FellBehind;

impl Cursor {
    /// Begins a watch. `current` is the present version of the store. An error is told inside the stream, as by the
    /// real server.
    pub(crate) fn begin(
        collection: &Collection,
        selection: Selection,
        form: Form,
        options: WatchOptions,
        current: u64,
    ) -> Result<Self, Status> {
        let (mut position, mut initial) = (current, VecDeque::new());
        if options.initial_events {
            if let Some(version) = options.version.filter(|version| *version > current) {
                return Err(Status::version_too_large(version, current));
            }
            let namespace = selection.namespace.as_deref();
            let page = collection.page(current, namespace, None, usize::MAX, |object| selection.matches(object));
            // The present state is never too old.
            initial = page.map(|page| page.items).unwrap_or_default().into();
        } else if let Some(version) = options.version.filter(|version| *version > 0) {
            collection.check_not_compacted(version).map_err(|too_old| Status::version_too_old(version, too_old.0))?;
            position = version;
        }
        let renderer = Renderer::new(form, collection.resource.clone());
        let mark_due = options.initial_events && options.bookmarks;
        Ok(Self { selection, renderer, position, initial, mark_due, options })
    }

    pub(crate) fn format(&self) -> Format {
        self.renderer.format()
    }

    /// A line that a fault puts into this watch.
    pub(crate) fn foreign_line(&self, line: &Bytes) -> Bytes {
        self.format().foreign_line(line, self.renderer.message_type())
    }

    /// Whether the mark of the end of the initial events is still to come: it is a streaming list so far.
    pub(crate) fn is_list(&self) -> bool {
        self.mark_due
    }

    /// Some of what is left of the initial events, or the mark after them. Empty once all that was told.
    pub(crate) fn initial_lines(&mut self) -> Vec<Line> {
        if self.initial.is_empty() {
            if !std::mem::take(&mut self.mark_due) {
                return Vec::new();
            }
            let mark = self.renderer.bookmark(self.position, true);
            return vec![Line::new(LineKind::InitialEventsEnd, mark)];
        }
        let count = self.initial.len().min(BATCH_LEN_MAX);
        let objects: Vec<Arc<Stored>> = self.initial.drain(..count).collect();
        objects.iter().map(|object| self.change(EventKind::Added, object)).collect()
    }

    /// The next events; an empty list moves the position to `current`.
    pub(crate) fn take_events(
        &mut self,
        collection: &Collection,
        current: u64,
        backlog_max: usize,
    ) -> Result<Vec<Arc<Event>>, FellBehind> {
        if collection.backlog(self.position) > backlog_max {
            return Err(FellBehind);
        }
        let events = collection.events_after(self.position, BATCH_LEN_MAX).map_err(|_| FellBehind)?;
        let last = events.last().map_or(current, |event| event.version);
        self.position = self.position.max(last);
        Ok(events)
    }

    /// What an event means to this watch; `None` where it is not concerned.
    pub(crate) fn line(&mut self, event: &Event) -> Option<Line> {
        let was = event.previous.as_ref().is_some_and(|previous| self.selection.matches(previous));
        let is = event.kind != EventKind::Deleted && self.selection.matches(&event.object);
        match (was, is) {
            (false, false) => None,
            (false, true) => Some(self.change(EventKind::Added, &event.object)),
            (true, true) => Some(self.change(EventKind::Modified, &event.object)),
            (true, false) if event.kind == EventKind::Deleted => Some(self.change(EventKind::Deleted, &event.object)),
            (true, false) => {
                let line = event.left(self.renderer.resource());
                Some(Line::new(LineKind::Change, self.renderer.deletion(line)))
            }
        }
    }

    fn change(&mut self, kind: EventKind, object: &Stored) -> Line {
        let (bytes, more) = self.renderer.event(kind, object);
        Line { what: LineKind::Change, bytes, more }
    }

    /// A bookmark at the position, where the client takes them.
    pub(crate) fn bookmark(&self) -> Option<Line> {
        let bookmark = || Line::new(LineKind::Bookmark, self.renderer.bookmark(self.position, false));
        self.options.bookmarks.then(bookmark)
    }
}

/// The line of an error.
pub(crate) fn error_line(status: &Status, format: Format) -> Line {
    Line::new(LineKind::Error, format.event("ERROR", &status.to_value()))
}

#[cfg(test)]
mod tests;

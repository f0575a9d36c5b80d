//! The body of a watch: waits for changes, bookmarks and the end.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::Stream;
use tokio::time::{Instant, sleep_until};

use crate::body::{BoxError, reset_error};
use crate::collection::Event;
use crate::fault::{BodyFault, Cut, StreamFault};
use crate::format::Format;
use crate::hits::Hits;
use crate::inner::Inner;
use crate::store::CollectionId;
use crate::watch::{Cursor, FellBehind, Line, LineKind, error_line};

/// How long before its end a watch gives a last bookmark, as the real server.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

/// One open watch.
pub(crate) struct Watch {
    inner: Arc<Inner>,
    collection: CollectionId,
    /// `None` once nothing more is to be told.
    cursor: Option<Cursor>,
    /// How far it has followed the server's signals.
    changes_seen: u64,
    closings_seen: u64,
    ends_at: Instant,
    next_bookmark: Instant,
    faults: WatchFaults,
    /// Lines that wait for the reader: at most a batch.
    ready: VecDeque<Bytes>,
    /// What comes after `ready`.
    cut: Option<Cut>,
}

impl Watch {
    /// A watch that ends after `timeout`.
    pub(crate) fn new(
        inner: Arc<Inner>,
        collection: CollectionId,
        cursor: Cursor,
        timeout: Duration,
        faults: Vec<BodyFault>,
    ) -> Self {
        let now = Instant::now();
        let ends_at = now + timeout;
        let faults = WatchFaults::new(faults, inner.hits.clone(), &cursor);
        let mut watch = Self {
            collection,
            cursor: Some(cursor),
            changes_seen: inner.changes.count(),
            closings_seen: inner.closings.count(),
            ends_at,
            next_bookmark: now,
            faults,
            ready: VecDeque::new(),
            cut: None,
            inner,
        };
        watch.plan_bookmark(now);
        let due = watch.faults.due();
        watch.queue(due);
        watch
    }

    fn plan_bookmark(&mut self, now: Instant) {
        let regular = now + self.inner.settings.bookmark_interval;
        let last = self.ends_at.checked_sub(LAST_BOOKMARK).filter(|last| *last > now);
        self.next_bookmark = last.map_or(regular, |last| regular.min(last));
    }

    /// The body.
    pub(crate) fn into_stream(self) -> impl Stream<Item = Result<Bytes, BoxError>> + Send {
        futures::stream::unfold(self, |mut watch| async move { Some((watch.next().await?, watch)) })
    }

    async fn next(&mut self) -> Option<Result<Bytes, BoxError>> {
        loop {
            if let Some(bytes) = self.ready.pop_front() {
                return Some(Ok(bytes));
            }
            match self.cut {
                Some(Cut::End) => return None,
                Some(Cut::Reset) => {
                    self.cut = Some(Cut::End);
                    return Some(Err(reset_error()));
                }
                Some(Cut::Stall) => std::future::pending().await,
                None => {}
            }
            let closings = self.inner.closings.count();
            if closings != self.closings_seen {
                self.closings_seen = closings;
                let closing = self.inner.closing();
                self.inner.hits.count(closing.name);
                self.cut = Some(closing.how);
                continue;
            }
            if !self.read() {
                self.wait().await;
            }
        }
    }

    /// Takes what there is to tell; `false` where there is nothing now.
    fn read(&mut self) -> bool {
        let Some(cursor) = &mut self.cursor else { return false };
        let initial = cursor.initial_lines();
        if !initial.is_empty() {
            self.queue(initial);
            return true;
        }
        if Instant::now() >= self.ends_at {
            // Also where there is always another change at hand.
            self.cut = Some(Cut::End);
            return true;
        }
        self.changes_seen = self.inner.changes.count();
        let taken = {
            let world = self.inner.world.lock();
            let collection = world.store.collection(self.collection);
            cursor.take_events(collection, world.store.version(), self.inner.settings.watch_backlog_max)
        };
        match taken {
            Ok(events) if events.is_empty() => false,
            Ok(events) => {
                let lines = lines(cursor, &events, &self.faults);
                self.queue(lines);
                true
            }
            Err(FellBehind) => {
                tracing::debug!("a watch was too slow and is closed");
                self.cut = Some(Cut::End);
                true
            }
        }
    }

    fn queue(&mut self, lines: Vec<Line>) {
        for line in lines {
            if self.cut.is_some() {
                return;
            }
            self.cut = self.faults.pass(line, &mut self.ready);
        }
    }

    async fn wait(&mut self) {
        tokio::select! {
            biased;
            () = self.inner.stopped.cancelled() => self.cut = Some(Cut::End),
            () = self.inner.closings.after(self.closings_seen) => {}
            () = self.inner.changes.after(self.changes_seen) => {}
            () = sleep_until(self.next_bookmark) => {
                let bookmark = self.cursor.as_ref().and_then(Cursor::bookmark);
                self.queue(bookmark.into_iter().collect());
                self.plan_bookmark(Instant::now());
            }
            () = sleep_until(self.ends_at) => self.cut = self.cut.or(Some(Cut::End)),
        }
    }
}

/// How the watches that are open are to end, and what that counts as.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Closing {
    pub(crate) how: Cut,
    pub(crate) name: &'static str,
}

/// The lines of these events, in order or not.
fn lines(cursor: &mut Cursor, events: &[Arc<Event>], faults: &WatchFaults) -> Vec<Line> {
    let mut lines: Vec<(Line, &Event)> =
        events.iter().filter_map(|event| Some((cursor.line(event)?, &**event))).collect();
    if let Some(name) = faults.swap() {
        let mut at = 0;
        while let [(earlier, one), (later, other), ..] = &lines[at..] {
            if one.object.key != other.object.key {
                faults.hits.count(name);
                let both = [later.text(), earlier.text()].concat();
                lines[at].0 = Line::new(LineKind::Change, Bytes::from(both));
                lines.remove(at + 1);
            }
            at += 1;
        }
    }
    lines.into_iter().map(|(line, _)| line).collect()
}

/// As what a line counts too that is put into a streaming list before its end: it may be taken for an object of the list.
const LINE_IN_LIST: &str = "line in a streaming list";

/// What is done to the lines of one watch.
struct WatchFaults {
    faults: Vec<BodyFault>,
    hits: Arc<Hits>,
    /// How many changes were given.
    events: usize,
    /// Whether it is a streaming list that has not been told its end.
    is_list: bool,
    format: Format,
}

impl WatchFaults {
    fn new(mut faults: Vec<BodyFault>, hits: Arc<Hits>, cursor: &Cursor) -> Self {
        for fault in &mut faults {
            if let StreamFault::LineAfterEvents(_, line) = &mut fault.what {
                *line = cursor.foreign_line(line);
            }
        }
        Self { faults, hits, events: 0, is_list: cursor.is_list(), format: cursor.format() }
    }

    /// As what changes in another order are counted, if there are to be any.
    fn swap(&self) -> Option<&'static str> {
        let cuts = |fault: &StreamFault| {
            matches!(fault, StreamFault::AfterBytes(..) | StreamFault::AfterEvents { .. } | StreamFault::Drip(..))
        };
        if self.faults.iter().any(|fault| cuts(&fault.what)) {
            return None;
        }
        self.named(|fault| matches!(fault, StreamFault::SwapEvents))
    }

    /// Lines that are put in after as many changes as were given by now; each once.
    fn due(&mut self) -> Vec<Line> {
        let (events, is_list, format) = (self.events, self.is_list, self.format);
        let hits = &self.hits;
        let due = |fault: &mut BodyFault| match &fault.what {
            StreamFault::ErrorAfterEvents(count, _) | StreamFault::LineAfterEvents(count, _) => *count <= events,
            _ => false,
        };
        let line = |fault: BodyFault| {
            hits.count(fault.name);
            match fault.what {
                StreamFault::ErrorAfterEvents(_, status) => error_line(&status, format),
                StreamFault::LineAfterEvents(_, bytes) => {
                    if is_list {
                        hits.count(LINE_IN_LIST);
                    }
                    Line::new(LineKind::Change, bytes)
                }
                // Not due, see above.
                _ => Line::new(LineKind::Change, Bytes::new()),
            }
        };
        self.faults.extract_if(.., due).map(line).collect()
    }

    /// Gives a line its way, and says whether the stream stops after it.
    fn pass(&mut self, line: Line, out: &mut VecDeque<Bytes>) -> Option<Cut> {
        match line.what {
            LineKind::Bookmark if self.meets(|fault| matches!(fault, StreamFault::DropBookmarks)) => return None,
            LineKind::InitialEventsEnd if self.meets(|fault| matches!(fault, StreamFault::HoldInitialEventsEnd)) => {
                return None;
            }
            LineKind::InitialEventsEnd => self.is_list = false,
            LineKind::Change => {
                if let Some(cut) = self.cut_before(&line, out) {
                    return Some(cut);
                }
            }
            _ => {}
        }
        let is_change = line.what == LineKind::Change;
        let times = if is_change && self.meets(|fault| matches!(fault, StreamFault::RepeatEvents)) { 2 } else { 1 };
        for _ in 0..times {
            out.push_back(line.bytes.clone());
            out.extend(line.more.clone());
        }
        if line.what == LineKind::Error {
            return Some(Cut::End);
        }
        if is_change {
            self.events += 1;
            for injected in self.due() {
                out.push_back(injected.bytes);
                if injected.what == LineKind::Error {
                    return Some(Cut::End);
                }
            }
        }
        None
    }

    /// Whether the stream stops before this change, or in the middle of it.
    fn cut_before(&self, line: &Line, out: &mut VecDeque<Bytes>) -> Option<Cut> {
        let cut = self.faults.iter().find_map(|fault| match fault.what {
            StreamFault::AfterEvents { count, half, cut } if count <= self.events => Some((half, cut, fault.name)),
            _ => None,
        });
        let (half, cut, name) = cut?;
        self.hits.count(name);
        if half {
            let whole = line.text();
            out.push_back(Bytes::copy_from_slice(&whole[..whole.len() / 2]));
        }
        Some(cut)
    }

    /// Whether there is such a fault; it has met the line then.
    fn meets(&self, is: impl Fn(&StreamFault) -> bool) -> bool {
        self.named(is).inspect(|name| self.hits.count(name)).is_some()
    }

    fn named(&self, is: impl Fn(&StreamFault) -> bool) -> Option<&'static str> {
        self.faults.iter().find(|fault| is(&fault.what)).map(|fault| fault.name)
    }
}

//! Does what the machine says: makes the requests, reads the streams, writes into the store, minds the stop.

use std::convert::Infallible;
use std::sync::Arc;

use futures::{FutureExt, StreamExt};
use kubewire_indexer::{Id, Object};
use kubewire_listwatch::{
    EventKind, Held, ItemError, ListOptions, ListerWatcher, Relisted, RequestError, WatchEvent, WatchOptions,
    WatchStream,
};
use tracing::{Instrument, Span};

use super::admitting::{admit, keep_undecodable, reuse};
use super::consistency_check;
use super::gathering::Gathering;
use super::machine::{Activity, Change, Heard, Note, Step, Weight};
use super::meter::Meter;
use super::minder::{Minded, Minder};
use super::reflector_error::ReflectorErrorKind;
use super::reflector_status::ReflectorPhase;
use super::reporter::Reporter;
use crate::{AdmitError, ReflectorStore};

pub(crate) struct Driver<L: ListerWatcher, S: ?Sized> {
    pub(crate) lister_watcher: L,
    pub(crate) store: Arc<S>,
    pub(crate) reporter: Reporter,
    pub(crate) minder: Minder<S>,
    pub(crate) stream: Option<WatchStream<L::Object>>,
    pub(crate) gathering: Gathering<L::Object>,
    /// What the store holds, once it has taken in a list: items of later ones that it has need not be decoded.
    pub(crate) held: Option<Held<L::Object>>,
    pub(crate) check_streaming_lists: bool,
    pub(crate) meter: Meter,
    /// Of the list or the watch under way.
    pub(crate) request: Span,
}

/// What a stream gives; `None` where it has ended.
type Read<O> = Option<Result<WatchEvent<O>, RequestError>>;

/// As many events at hand are passed on in one go: the stop and the alarm wait for no more, and so does whoever is told.
const RUN_LEN_MAX: usize = 64;

impl<L: ListerWatcher, S: ReflectorStore<L::Object> + ?Sized> Driver<L, S> {
    /// Runs until the stop.
    pub(crate) async fn drive(mut self) {
        let mut step = self.minder.machine.start(self.minder.clock.now());
        loop {
            self.tell(&step);
            if !matches!(step, Step::Read | Step::Replace { .. }) {
                self.stream = None;
            }
            self.request = span_of(&step).unwrap_or_else(|| std::mem::replace(&mut self.request, Span::none()));
            let request = self.request.clone();
            let Some(next) = self.take(step).instrument(request).await else { break };
            step = next;
        }
        self.meter.watch_over(self.minder.clock.now());
    }

    /// One step. `None`: stopped.
    async fn take(&mut self, step: Step) -> Option<Step> {
        match step {
            Step::List { options, anew } => self.list(&options, anew).await,
            Step::Watch(options) => self.open(&options).await,
            Step::Read => self.read().await,
            Step::Replace { resource_version } => self.replace(resource_version).await,
            Step::Sleep => self.sleep().await,
        }
    }

    /// What is to be told before a step: of the one before.
    fn tell(&mut self, step: &Step) {
        let request = self.request.clone();
        let _inside = request.enter();
        self.meter.step(step, self.minder.clock.now());
        for note in self.minder.machine.take_notes() {
            self.reporter.note(note);
        }
        self.reporter.monitor.set_phase(match self.minder.machine.activity() {
            Activity::New => ReflectorPhase::Starting,
            Activity::Listing => ReflectorPhase::Listing,
            Activity::Watching => ReflectorPhase::Watching,
            Activity::BackingOff => ReflectorPhase::BackingOff,
        });
        tracing::trace!(?step, "next step");
    }

    /// One list request. `None`: stopped.
    async fn list(&mut self, options: &ListOptions, anew: bool) -> Option<Step> {
        if anew {
            drop(self.gathering.take());
        }
        self.reporter.monitor.list_requested();
        let (gathering, store, reporter) = (&mut self.gathering, &*self.store, &self.reporter);
        let mut each = |item: Result<Relisted<L::Object>, ItemError>| match item {
            Ok(Relisted::Unchanged(object)) => reuse(object, gathering, reporter, Gathering::push),
            Ok(Relisted::New(object)) => admit(store, object, gathering, reporter, Gathering::push),
            Ok(_) => {}
            Err(error) => keep_undecodable(error, gathering, reporter),
        };
        let request = async {
            match &self.held {
                Some(held) => self.lister_watcher.relist(options, held, &mut each).await,
                None => self.lister_watcher.list(options, &mut |item| each(item.map(Relisted::New))).await,
            }
        };
        let answer = match self.minder.mind(request).await {
            Minded::Answer(answer) => answer,
            Minded::Instead(step) => return Some(step),
            Minded::Stopped => return None,
        };
        let answer = answer.and_then(|meta| self.gathering.error().map_or(Ok(meta), Err));
        Some(self.minder.machine.listed(self.minder.clock.now(), answer.as_ref()))
    }

    /// Opens a watch. `None`: stopped.
    async fn open(&mut self, options: &WatchOptions) -> Option<Step> {
        drop(self.gathering.take());
        self.reporter.monitor.watch_requested();
        let request = async {
            match &self.held {
                Some(held) if options.send_initial_events => self.lister_watcher.streaming_relist(options, held).await,
                _ => self.lister_watcher.watch(options).await,
            }
        };
        let answer = match self.minder.mind(request).await {
            Minded::Answer(answer) => answer,
            Minded::Instead(step) => return Some(step),
            Minded::Stopped => return None,
        };
        let now = self.minder.clock.now();
        Some(match answer {
            Ok(stream) => {
                self.stream = Some(stream);
                if !options.send_initial_events {
                    self.reporter.monitor.watch_opened(now);
                    self.reporter.works();
                }
                self.meter.watch_opened(now);
                self.minder.machine.opened(now, Ok(()))
            }
            Err(error) => self.minder.machine.opened(now, Err(&error)),
        })
    }

    /// Reads the open stream until something else is to be done. `None`: stopped.
    async fn read(&mut self) -> Option<Step> {
        loop {
            let event = match &mut self.stream {
                Some(stream) => match self.minder.mind(stream.next()).await {
                    Minded::Answer(event) => event,
                    Minded::Instead(step) => return Some(step),
                    Minded::Stopped => return None,
                },
                None => None,
            };
            let step = self.events(event);
            self.store.flush();
            if step.is_some() {
                return step;
            }
        }
    }

    /// What was read from the stream, and what else is at hand there; the step where it ends the reading.
    fn events(&mut self, first: Read<L::Object>) -> Option<Step> {
        let mut read = first;
        for left in (0..RUN_LEN_MAX).rev() {
            match read {
                Some(Ok(event)) => {
                    if let Some(step) = self.event(event) {
                        return Some(step);
                    }
                }
                Some(Err(error)) => return Some(self.minder.machine.closed(self.minder.clock.now(), Some(&error))),
                None => return Some(self.minder.machine.closed(self.minder.clock.now(), None)),
            }
            if left == 0 {
                break;
            }
            // Where nothing is at hand, the wait for the next one says whom to wake.
            read = self.stream.as_mut()?.next().now_or_never()?;
        }
        None
    }

    /// One event; the step where it ends the reading.
    fn event(&mut self, event: WatchEvent<L::Object>) -> Option<Step> {
        self.meter.event();
        let now = self.minder.clock.now();
        let (change, version) = facts(&event);
        match self.minder.machine.event(now, change, version) {
            Heard::Gather => {
                self.reporter.monitor.heard(None, now);
                self.gather(event);
                if let Some(error) = self.gathering.error() {
                    return Some(self.minder.machine.closed(now, Some(&error)));
                }
            }
            Heard::PassOn { moved } => {
                self.pass_on(event);
                let moved_to = moved.then(|| self.minder.machine.last_version());
                if let Some(version) = moved_to {
                    self.meter.version(version);
                    self.store.update_resource_version(version);
                }
                self.reporter.monitor.heard(moved_to, now);
            }
            Heard::Complete(step) => return Some(step),
        }
        None
    }

    /// An event of the watch proper.
    fn pass_on(&mut self, event: WatchEvent<L::Object>) {
        let taken = match event {
            // Behind the end mark nothing should come as unchanged. Rather transformed twice than lost.
            WatchEvent::Added(object) | WatchEvent::Unchanged(object) => self.store.add(object),
            WatchEvent::Modified(object) => self.store.update(object),
            WatchEvent::Deleted(object) => self.store.delete(object),
            WatchEvent::Bookmark { resource_version, .. } => {
                if !resource_version.is_empty() {
                    self.store.bookmark(&resource_version);
                }
                Ok(())
            }
            WatchEvent::Undecodable { kind, error } => {
                if let (EventKind::Deleted, Some(key)) = (kind, &error.key) {
                    self.store.delete_key(key.clone());
                }
                self.reporter.undecodable(error);
                Ok(())
            }
            other => self.unknown(other),
        };
        if let Err(error) = taken {
            self.reporter.not_taken(error);
        }
    }

    /// An event of a streaming list that is not complete yet.
    fn gather(&mut self, event: WatchEvent<L::Object>) {
        let (store, gathering, reporter) = (&*self.store, &mut self.gathering, &self.reporter);
        match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                admit(store, object, gathering, reporter, Gathering::put);
            }
            WatchEvent::Unchanged(object) => reuse(object, gathering, reporter, Gathering::put),
            WatchEvent::Deleted(object) => match store.admit(object) {
                // Its key as it would be cached, after the transform.
                Ok(gone) => gathering.remove(gone.key()),
                Err(error) => {
                    // It is gone whether the transform likes its last state or not.
                    error.key().into_iter().for_each(|key| gathering.remove(key));
                    reporter.not_taken(error);
                }
            },
            WatchEvent::Undecodable { kind: EventKind::Deleted, error } => {
                if let Some(key) = &error.key {
                    gathering.remove(key);
                }
                reporter.undecodable(error);
            }
            WatchEvent::Undecodable { error, .. } => keep_undecodable(error, gathering, reporter),
            WatchEvent::Bookmark { .. } => {}
            other => _ = self.unknown(other),
        }
    }

    fn unknown(&self, event: WatchEvent<L::Object>) -> Result<(), AdmitError> {
        let kind = if let WatchEvent::Unknown { kind } = event { kind } else { String::new() };
        self.reporter.skipped(ReflectorErrorKind::UnknownEvent(kind));
        Ok(())
    }

    /// The list is complete. `None`: stopped.
    async fn replace(&mut self, resource_version: String) -> Option<Step> {
        if self.check_streaming_lists && self.stream.is_some() {
            self.check(&resource_version).await?;
        }
        let items = self.gathering.items().len();
        let list = self.gathering.take().into_replacement(resource_version);
        self.store.replace(list);
        self.held.get_or_insert_with(|| {
            let store = Arc::clone(&self.store);
            Arc::new(move |state: Id<'_>| store.cached(state))
        });
        let now = self.minder.clock.now();
        let step = self.minder.machine.replaced(now);
        self.reporter.monitor.list_taken_in(self.minder.machine.last_version(), now);
        self.reporter.list_complete();
        if self.stream.is_some() {
            self.reporter.works();
        }
        self.meter.listed(items, now);
        self.meter.version(self.minder.machine.last_version());
        Some(step)
    }

    /// Compares what was streamed with an ordinary list. `None`: stopped.
    async fn check(&mut self, version: &str) -> Option<()> {
        let check = consistency_check::difference(&self.lister_watcher, &*self.store, &self.gathering, version);
        match self.minder.mind(check).await {
            Minded::Answer(Ok(Some(kind))) => self.reporter.note(Note::Failed { kind, weight: Weight::Told }),
            Minded::Answer(Err(error)) => tracing::warn!(%error, "a streaming list could not be checked"),
            Minded::Answer(Ok(None)) | Minded::Instead(_) => {}
            Minded::Stopped => return None,
        }
        Some(())
    }

    async fn sleep(&mut self) -> Option<Step> {
        match self.minder.mind(std::future::pending::<Infallible>()).await {
            Minded::Answer(never) => match never {},
            Minded::Instead(step) => Some(step),
            Minded::Stopped => None,
        }
    }
}

/// The span of a request that a step makes; `None` where it goes on with the one before.
fn span_of(step: &Step) -> Option<Span> {
    match step {
        Step::List { options, .. } => {
            let version = options.resource_version.as_deref().unwrap_or_default();
            Some(tracing::info_span!("list", resource_version = version, limit = options.limit))
        }
        Step::Watch(options) => {
            let (version, streaming_list) = (options.resource_version.as_str(), options.send_initial_events);
            Some(tracing::info_span!("watch", resource_version = version, streaming_list))
        }
        Step::Sleep => Some(Span::none()),
        Step::Read | Step::Replace { .. } => None,
    }
}

/// What the machine needs to know of an event: its kind, and the version where it has one.
fn facts<O: Object>(event: &WatchEvent<O>) -> (Change, &str) {
    match event {
        WatchEvent::Added(object) | WatchEvent::Unchanged(object) => (Change::Added, object.id().resource_version),
        WatchEvent::Modified(object) | WatchEvent::Deleted(object) => (Change::Other, object.id().resource_version),
        WatchEvent::Bookmark { resource_version, initial_events_end } => {
            (Change::Bookmark { initial_events_end: *initial_events_end }, resource_version)
        }
        WatchEvent::Undecodable { kind, error } => {
            let change = if *kind == EventKind::Added { Change::Added } else { Change::Other };
            (change, error.resource_version.as_deref().unwrap_or_default())
        }
        _ => (Change::Nothing, ""),
    }
}

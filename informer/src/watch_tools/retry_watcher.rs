//! A watch that is opened again where the last one ended.

use std::fmt;
use std::ops::Deref;
use std::time::{Duration, Instant};

use futures::{Stream, StreamExt};
use kubewire_indexer::Object;
use kubewire_listwatch::{ErrorClass, ListerWatcher, RequestError, WatchEvent, WatchOptions, WatchStream};
use kubewire_ratelimit::{Clock, Random};

use crate::reflector::rules::{MAX_RETRY_AFTER, MIN_WATCH_TIMEOUT, watch_timeout};

/// The shortest time between the beginnings of two watches.
const RESTART_GAP: Duration = Duration::from_secs(1);

/// Watches in a row that may be refused as expired. Another server behind the same address may still have the
/// version; after so many tries nobody has.
const MAX_EXPIRED_STARTS: u32 = 5;

/// Watches from a version on, and opens the watch again, from the version seen last and no more often than once a
/// second, whenever it ends: client-go's `RetryWatcher`. It never lists.
///
/// It ends by an error that nothing but a list or other rights can mend: a version that has expired (refused five
/// times in a row, or told in the stream), missing rights, an event without a version or of an unknown type. All
/// other failures are logged and tried again, not sooner than the server asks for (within a minute).
///
/// Bookmarks move the version and are not given out. That no event comes twice rests on versions alone.
#[must_use = "nothing is watched before an event is asked for"]
pub struct RetryWatcher<P: Deref<Target: ListerWatcher>> {
    lister_watcher: P,
    version: String,
    clock: Clock,
    random: Random,
    stream: Option<WatchStream<<P::Target as ListerWatcher>::Object>>,
    /// No watch is opened before this.
    not_before: Option<Instant>,
    expired_starts: u32,
    ended: bool,
}

/// The version from which to watch is empty or 0: a watch from there would begin with events in no order, so it
/// could not be opened again in their midst.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot watch from version {0:?}: list first, and watch from the version of the list")]
pub struct InvalidVersion(String);

type Event<P> = WatchEvent<<<P as Deref>::Target as ListerWatcher>::Object>;

impl<P: Deref<Target: ListerWatcher>> RetryWatcher<P> {
    /// Watches what comes after this version. `lister_watcher` is any pointer to one: a reference, an `Arc`.
    ///
    /// # Errors
    ///
    /// Where the version is empty or 0.
    pub fn new(version: impl Into<String>, lister_watcher: P) -> Result<Self, InvalidVersion> {
        let version = version.into();
        if matches!(version.as_str(), "" | "0") {
            return Err(InvalidVersion(version));
        }
        Ok(Self {
            lister_watcher,
            version,
            clock: Clock::system(),
            random: Random::new(),
            stream: None,
            not_before: None,
            expired_starts: 0,
            ended: false,
        })
    }

    /// Waits by this clock.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// The version seen last.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The next event; an error is the last thing that comes. `None`: it has ended.
    ///
    /// Cancel-safe: no event is lost, and the watch stays open.
    pub async fn next(&mut self) -> Option<Result<Event<P>, RequestError>> {
        while !self.ended {
            let outcome = match &mut self.stream {
                None => self.start().await.map(|()| None),
                Some(stream) => match stream.next().await {
                    Some(Ok(event)) => self.take(event),
                    Some(Err(error)) => self.broken(error).map(|()| None),
                    None => {
                        self.stream = None;
                        Ok(None)
                    }
                },
            };
            match outcome {
                Ok(None) => {}
                Ok(Some(event)) => return Some(Ok(event)),
                Err(error) => {
                    self.ended = true;
                    self.stream = None;
                    return Some(Err(error));
                }
            }
        }
        None
    }

    /// The same as a stream.
    pub fn into_stream(self) -> impl Stream<Item = Result<Event<P>, RequestError>> {
        futures::stream::unfold(self, |mut watcher| async move {
            let item = watcher.next().await?;
            Some((item, watcher))
        })
    }

    /// Opens the next watch, when it is time. An error is the end.
    async fn start(&mut self) -> Result<(), RequestError> {
        if let Some(not_before) = self.not_before {
            self.clock.sleep_until(not_before).await;
        }
        self.not_before = self.clock.now().checked_add(RESTART_GAP);
        let timeout = watch_timeout(MIN_WATCH_TIMEOUT, self.random.fraction());
        let options = WatchOptions::from_version(self.version.clone(), timeout);
        match self.lister_watcher.watch(&options).await {
            Ok(stream) => {
                self.stream = Some(stream);
                self.expired_starts = 0;
                Ok(())
            }
            Err(error) => self.refused(error),
        }
    }

    fn refused(&mut self, error: RequestError) -> Result<(), RequestError> {
        match error.class() {
            ErrorClass::Forbidden | ErrorClass::Unauthorized => return Err(error),
            ErrorClass::Expired => {
                self.expired_starts += 1;
                if self.expired_starts >= MAX_EXPIRED_STARTS {
                    return Err(error);
                }
            }
            _ => self.expired_starts = 0,
        }
        self.again_after(&error);
        Ok(())
    }

    /// The stream ended by an error.
    fn broken(&mut self, error: RequestError) -> Result<(), RequestError> {
        self.stream = None;
        if error.class() == ErrorClass::Expired {
            return Err(error);
        }
        self.again_after(&error);
        Ok(())
    }

    fn again_after(&mut self, error: &RequestError) {
        tracing::debug!(resource = self.lister_watcher.resource(), %error, "the watch is opened again");
        let wish = error.retry_after().unwrap_or_default().min(MAX_RETRY_AFTER);
        self.not_before = self.not_before.max(self.clock.now().checked_add(wish));
    }

    /// An event: to be given out, or `None`.
    fn take(&mut self, event: Event<P>) -> Result<Option<Event<P>>, RequestError> {
        let version = match &event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object) => {
                object.id().resource_version
            }
            WatchEvent::Bookmark { resource_version, .. } => resource_version,
            WatchEvent::Undecodable { error, .. } => error.resource_version.as_deref().unwrap_or_default(),
            WatchEvent::Unknown { kind } => return Err(odd(format!("a watch event of the unknown type {kind:?}"))),
            _ => return Err(odd("a watch event of an unknown kind".to_owned())),
        };
        if version.is_empty() {
            return Err(odd("a watch event without a version: where to watch from next is unknown".to_owned()));
        }
        version.clone_into(&mut self.version);
        Ok(if matches!(event, WatchEvent::Bookmark { .. }) { None } else { Some(event) })
    }
}

fn odd(message: String) -> RequestError {
    RequestError::new(ErrorClass::Decode, message)
}

impl<P: Deref<Target: ListerWatcher>> fmt::Debug for RetryWatcher<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryWatcher")
            .field("version", &self.version)
            .field("open", &self.stream.is_some())
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

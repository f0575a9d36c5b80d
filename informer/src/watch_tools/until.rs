//! Waiting until conditions are met by the events of a watch.

use std::fmt;
use std::ops::Deref;
use std::pin::pin;

use futures::{FutureExt, Stream, StreamExt};
use kubewire_indexer::{Indexer, Object};
use kubewire_listwatch::{BoxError, ListerWatcher, RequestError, WatchEvent};

use super::informer_watcher::InformerWatcher;
use super::retry_watcher::{InvalidVersion, RetryWatcher};
use crate::{CacheSync, Hindrance};

/// So many events at hand are looked at before the interruption is.
const RUN_LEN_MAX: usize = 64;

/// Says whether an event meets it. An error ends the wait.
pub type Condition<'a, O> = Box<dyn FnMut(&WatchEvent<O>) -> Result<bool, BoxError> + Send + 'a>;

/// Why the conditions were not met.
#[non_exhaustive]
pub enum UntilError<O> {
    /// The watch ended before.
    Closed {
        /// The last event.
        last: Option<WatchEvent<O>>,
    },
    /// The wait was interrupted before.
    Interrupted {
        /// The last event.
        last: Option<WatchEvent<O>>,
    },
    /// The watch failed before.
    Watch {
        /// How.
        source: RequestError,
        /// The last event.
        last: Option<WatchEvent<O>>,
    },
    /// A condition, or the precondition, failed.
    Condition {
        /// How.
        source: BoxError,
        /// The last event, which it was given; `None` for the precondition.
        last: Option<WatchEvent<O>>,
    },
    /// The version to begin from.
    Version(InvalidVersion),
    /// The cache was not synced before the wait was interrupted, so that the precondition could not be asked.
    NotSynced {
        /// What was to be listed.
        resource: String,
        /// What kept it from being synced.
        hindrance: Hindrance,
    },
}

/// Waits until the conditions are met, one after the other, by the events of this watch. The event that meets one is
/// offered to the next one too. Gives the event that met the last one; `None` where there are no conditions.
///
/// `interrupt` ends the wait: a cancelled token, a sleep, or [`std::future::pending`].
///
/// Cancel-safe as far as the stream is: an event that was taken is gone. While events are at hand it looks at `interrupt`
/// after each 64 of them, and lets other tasks have a turn.
///
/// ```
/// use futures::stream;
/// use kubewire_indexer::{Id, Meta, Object};
/// use kubewire_informer::watch_tools::{Condition, until_without_retry};
/// use kubewire_listwatch::WatchEvent;
/// use std::sync::Arc;
///
/// struct Pod(&'static str);
/// impl Meta for Pod {
///     fn id(&self) -> Id<'_> {
///         Id::new("default", self.0)
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let events = stream::iter(["a", "b"].map(|name| Ok(WatchEvent::Added(Arc::new(Pod(name))))));
/// let wanted: Condition<'_, Arc<Pod>> =
///     Box::new(|event| Ok(matches!(event, WatchEvent::Added(pod) if pod.id().name == "b")));
/// let event = until_without_retry(events, std::future::pending(), vec![wanted]).await.expect("b comes");
/// assert!(event.is_some());
/// # }
/// ```
///
/// # Errors
///
/// [`UntilError::Closed`], [`Interrupted`](UntilError::Interrupted), [`Watch`](UntilError::Watch) and
/// [`Condition`](UntilError::Condition), each with the last event.
pub async fn until_without_retry<O: Object>(
    events: impl Stream<Item = Result<WatchEvent<O>, RequestError>>,
    interrupt: impl Future<Output = ()>,
    conditions: Vec<Condition<'_, O>>,
) -> Result<Option<WatchEvent<O>>, UntilError<O>> {
    let (mut events, mut interrupt) = (pin!(events), pin!(interrupt));
    let mut last: Option<WatchEvent<O>> = None;
    let mut taken = 0_usize;
    for mut condition in conditions {
        // The event that met the condition before.
        let mut offered = last.is_some();
        loop {
            if offered && let Some(event) = &last {
                match condition(event) {
                    Ok(true) => break,
                    Ok(false) => {}
                    Err(source) => return Err(UntilError::Condition { source, last }),
                }
            }
            // What is at hand comes before the interruption, but a watch that always has another event cannot keep it off.
            taken += 1;
            if taken.is_multiple_of(RUN_LEN_MAX) && interrupt.as_mut().now_or_never().is_some() {
                return Err(UntilError::Interrupted { last });
            }
            let next = tokio::select! {
                biased;
                next = events.next() => next,
                () = &mut interrupt => return Err(UntilError::Interrupted { last }),
            };
            tokio::task::coop::consume_budget().await;
            match next {
                Some(Ok(event)) => last = Some(event),
                Some(Err(source)) => return Err(UntilError::Watch { source, last }),
                None => return Err(UntilError::Closed { last }),
            }
            offered = true;
        }
    }
    Ok(last)
}

/// The same, on a [`RetryWatcher`] from this version on.
///
/// # Errors
///
/// Also [`UntilError::Version`] where the version is empty or 0.
pub async fn until<P: Deref<Target: ListerWatcher>>(
    lister_watcher: P,
    version: &str,
    interrupt: impl Future<Output = ()>,
    conditions: Vec<Condition<'_, <P::Target as ListerWatcher>::Object>>,
) -> Result<Option<WatchEvent<<P::Target as ListerWatcher>::Object>>, UntilError<<P::Target as ListerWatcher>::Object>>
{
    let watcher = RetryWatcher::new(version, lister_watcher).map_err(UntilError::Version)?;
    until_without_retry(watcher.into_stream(), interrupt, conditions).await
}

/// Asked once, of a store that is synced: whether there is nothing to wait for.
pub type Precondition<'a, O> = Box<dyn FnOnce(&Indexer<O>) -> Result<bool, BoxError> + Send + 'a>;

/// The same, on an [`InformerWatcher`], which survives expired versions; what is there at first comes as `ADDED`.
/// Where a precondition is given, the store is synced first, and the precondition asked: if it is met there is no
/// event, and no wait.
///
/// The informer has ended when this returns; dropping the future stops it.
///
/// # Errors
///
/// Also [`UntilError::NotSynced`] where the wait is interrupted before the precondition can be asked.
pub async fn until_with_sync<L: ListerWatcher>(
    lister_watcher: L,
    interrupt: impl Future<Output = ()>,
    precondition: Option<Precondition<'_, L::Object>>,
    conditions: Vec<Condition<'_, L::Object>>,
) -> Result<Option<WatchEvent<L::Object>>, UntilError<L::Object>> {
    let mut watcher = InformerWatcher::start(lister_watcher);
    let result = synced_until(&mut watcher, interrupt, precondition, conditions).await;
    watcher.stop().await;
    result
}

async fn synced_until<O: Object>(
    watcher: &mut InformerWatcher<O>,
    interrupt: impl Future<Output = ()>,
    precondition: Option<Precondition<'_, O>>,
    conditions: Vec<Condition<'_, O>>,
) -> Result<Option<WatchEvent<O>>, UntilError<O>> {
    let mut interrupt = pin!(interrupt);
    if let Some(precondition) = precondition {
        let informer = watcher.informer();
        let synced = tokio::select! {
            biased;
            synced = informer.synced() => synced.is_ok(),
            () = &mut interrupt => false,
        };
        if !synced {
            let (resource, hindrance) = (informer.resource().to_owned(), informer.hindrance());
            return Err(UntilError::NotSynced { resource, hindrance });
        }
        match precondition(&informer.indexer()) {
            Ok(true) => return Ok(None),
            Ok(false) => {}
            Err(source) => return Err(UntilError::Condition { source, last: None }),
        }
    }
    until_without_retry(watcher, interrupt, conditions).await
}

impl<O> fmt::Display for UntilError<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed { .. } => f.write_str("the watch ended before the conditions were met"),
            Self::Interrupted { .. } => f.write_str("interrupted before the conditions were met"),
            Self::Watch { source, .. } => write!(f, "the watch failed before the conditions were met: {source}"),
            Self::Condition { source, .. } => write!(f, "a condition failed: {source}"),
            Self::Version(invalid) => fmt::Display::fmt(invalid, f),
            Self::NotSynced { resource, hindrance } => {
                write!(f, "interrupted before the cache of {resource} was synced: {hindrance}")
            }
        }
    }
}

impl<O> fmt::Debug for UntilError<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UntilError({self})")
    }
}

impl<O> std::error::Error for UntilError<O> {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Watch { source, .. } => Some(source),
            Self::Condition { source, .. } => Some(&**source),
            Self::Version(invalid) => Some(invalid),
            Self::Closed { .. } | Self::Interrupted { .. } | Self::NotSynced { .. } => None,
        }
    }
}

//! Waiting for the first lists: client-go's `WaitForCacheSync`, which says why it failed.

use std::fmt;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, select_all};
use kubewire_indexer::Object;
use kubewire_listwatch::ErrorClass;
use tokio_util::sync::CancellationToken;

use crate::reflector::ReflectorError;
use crate::sync::sleep;
use crate::{Informer, Registration, Stopped};

/// Something that becomes synced: an informer, or one of its handlers.
pub trait CacheSync: Send + Sync {
    /// What it is called in errors.
    fn name(&self) -> String;

    /// Whether it is synced.
    fn has_synced(&self) -> bool;

    /// Waits until it is synced, or will never be. Cancel-safe.
    fn wait_synced(&self) -> BoxFuture<'_, Result<(), Stopped>>;

    /// What keeps it from being synced, as far as it is known.
    fn hindrance(&self) -> Hindrance;
}

/// What keeps something from being synced.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Hindrance {
    /// The informer has not been started.
    NotStarted,
    /// The informer has stopped, or the handler was removed. If it was by a panic, what the panic said.
    Stopped(Option<String>),
    /// Lists or watches have failed.
    Failing {
        /// How it failed last.
        error: ReflectorError,
        /// How many tries in a row have failed.
        tries: u64,
    },
    /// Nothing has failed; it is not done yet.
    Busy,
}

impl fmt::Display for Hindrance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotStarted => f.write_str("not started (call `start`)"),
            Self::Stopped(None) => f.write_str("stopped"),
            Self::Stopped(Some(panic)) => write!(f, "stopped: {panic}"),
            Self::Failing { error, tries: 1 } => write!(f, "{} (1 try)", error.kind()),
            Self::Failing { error, tries } => write!(f, "{} ({tries} tries)", error.kind()),
            Self::Busy => f.write_str("no failure, but not done yet"),
        }
    }
}

impl<O: Object> CacheSync for Informer<O> {
    fn name(&self) -> String {
        self.resource().to_owned()
    }

    fn has_synced(&self) -> bool {
        self.has_synced()
    }

    fn wait_synced(&self) -> BoxFuture<'_, Result<(), Stopped>> {
        self.synced().boxed()
    }

    fn hindrance(&self) -> Hindrance {
        self.health().hindrance()
    }
}

impl CacheSync for Registration {
    fn name(&self) -> String {
        self.full_name()
    }

    fn has_synced(&self) -> bool {
        self.has_synced()
    }

    fn wait_synced(&self) -> BoxFuture<'_, Result<(), Stopped>> {
        self.synced().boxed()
    }

    fn hindrance(&self) -> Hindrance {
        match self.health().hindrance() {
            Hindrance::Busy if self.is_removed() => Hindrance::Stopped(None),
            // The informer's trouble, as long as it keeps the first list out of the store.
            hindrance if !self.health().store_synced.is_set() => hindrance,
            stopped @ Hindrance::Stopped(_) => stopped,
            _ => Hindrance::Busy,
        }
    }
}

/// Not everything was synced.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct CacheSyncError {
    /// Why the wait ended.
    pub reason: CacheSyncReason,
    /// What was not synced, each with what keeps it, in the order in which it was given.
    pub unsynced: Vec<(String, Hindrance)>,
}

/// Why a wait for the first lists ended without them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CacheSyncReason {
    /// The stop signal came.
    Cancelled,
    /// One of those waited for has stopped.
    Stopped,
    /// It took longer than this.
    TimedOut(Duration),
    /// A server has refused one of those waited for, in a way that does not pass by itself.
    Refused,
}

impl fmt::Display for CacheSyncError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.reason {
            CacheSyncReason::Cancelled => f.write_str("stopped before the caches were synced")?,
            CacheSyncReason::Stopped => f.write_str("an informer stopped before the caches were synced")?,
            CacheSyncReason::TimedOut(timeout) => write!(f, "the caches are not synced after {timeout:?}")?,
            CacheSyncReason::Refused => f.write_str("the caches cannot be synced")?,
        }
        for (n, (name, hindrance)) in self.unsynced.iter().enumerate() {
            write!(f, "{}{name}: {hindrance}", if n == 0 { ": " } else { "; " })?;
        }
        Ok(())
    }
}

impl std::error::Error for CacheSyncError {}

/// Waits until all of these are synced: informers, or handlers by their registrations.
///
/// It returns at once if they are, even where `stop` is cancelled already. Otherwise it ends with an error when
/// `stop` is cancelled, when one of them stops, or after `timeout`; the error names what is not synced, with the
/// last failure and the number of tries.
///
/// Informers of several types go in as `[&pods as &dyn CacheSync, &nodes]`. Cancel-safe.
pub async fn wait_for_cache_sync<'a, C: CacheSync + ?Sized + 'a>(
    stop: &CancellationToken,
    timeout: Duration,
    caches: impl IntoIterator<Item = &'a C>,
) -> Result<(), CacheSyncError> {
    wait(stop, timeout, caches, |_| false).await
}

/// As [`wait_for_cache_sync`], but it ends as soon as a server has refused one of them in a way that does not
/// pass by itself: 401, 403 or 404. Where rights or definitions may come later, use the other.
pub async fn wait_for_cache_sync_unless_refused<'a, C: CacheSync + ?Sized + 'a>(
    stop: &CancellationToken,
    timeout: Duration,
    caches: impl IntoIterator<Item = &'a C>,
) -> Result<(), CacheSyncError> {
    let refused = |class| matches!(class, ErrorClass::Unauthorized | ErrorClass::Forbidden | ErrorClass::NotFound);
    wait(stop, timeout, caches, refused).await
}

async fn wait<'a, C: CacheSync + ?Sized + 'a>(
    stop: &CancellationToken,
    timeout: Duration,
    caches: impl IntoIterator<Item = &'a C>,
    refused: impl Fn(ErrorClass) -> bool,
) -> Result<(), CacheSyncError> {
    let caches: Vec<&C> = caches.into_iter().collect();
    let reason = tokio::select! {
        biased;
        all = all_synced(&caches) => match all {
            Ok(()) => return Ok(()),
            Err(Stopped) => CacheSyncReason::Stopped,
        },
        () = stop.cancelled() => CacheSyncReason::Cancelled,
        () = one_refused(&caches, refused) => CacheSyncReason::Refused,
        () = sleep(timeout) => CacheSyncReason::TimedOut(timeout),
    };
    let unsynced = caches.iter().filter(|cache| !cache.has_synced()).map(|cache| (cache.name(), cache.hindrance()));
    Err(CacheSyncError { reason, unsynced: unsynced.collect() })
}

/// Ends with the first that will never be synced.
async fn all_synced<C: CacheSync + ?Sized>(caches: &[&C]) -> Result<(), Stopped> {
    let mut waits: Vec<_> = caches.iter().map(|cache| cache.wait_synced()).collect();
    while !waits.is_empty() {
        let (result, _, others) = select_all(waits).await;
        result?;
        waits = others;
    }
    Ok(())
}

/// Looks every now and then; the status has nothing to wait for.
async fn one_refused<C: CacheSync + ?Sized>(caches: &[&C], refused: impl Fn(ErrorClass) -> bool) {
    let is_refused = |cache: &&C| match cache.hindrance() {
        Hindrance::Failing { error, .. } => refused(error.class()) && !cache.has_synced(),
        _ => false,
    };
    while !caches.iter().any(is_refused) {
        sleep(POLL_PERIOD).await;
    }
}

/// How often the last errors are looked at.
const POLL_PERIOD: Duration = Duration::from_millis(100);

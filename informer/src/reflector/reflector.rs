//! The reflector itself: built, watched over, run.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use futures::FutureExt;
use kubewire_listwatch::ListerWatcher;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, Span};

use super::alarm::Alarm;
use super::driver::Driver;
use super::gathering::Gathering;
use super::machine::Machine;
use super::meter::Meter;
use super::minder::Minder;
use super::reflector_options::ReflectorOptions;
use super::reflector_status::{ReflectorMonitor, ReflectorPhase};
use super::reporter::Reporter;
use crate::panics::panic_text;
use crate::type_name::short_type_name;
use crate::{InformerName, ReflectorStore};

/// Keeps a store in step with what a lister-watcher gives.
///
/// ```
/// use std::sync::Arc;
/// use kubewire_indexer::{Id, Meta};
/// use kubewire_informer::reflector::Reflector;
/// # use kubewire_informer::{AdmitError, Admitted, ReflectorStore, Replacement};
/// # use kubewire_indexer::ObjectKey;
/// use kubewire_listwatch::{ItemSink, ListMeta, ListOptions, ListerWatcher, RequestError, WatchOptions, WatchStream};
/// use tokio_util::sync::CancellationToken;
///
/// struct Pod(String);
/// impl Meta for Pod {
///     fn id(&self) -> Id<'_> {
///         Id::new("default", &self.0).resource_version("7")
///     }
/// }
///
/// /// A server with one pod, to which nothing happens.
/// struct Quiet;
/// impl ListerWatcher for Quiet {
///     type Object = Arc<Pod>;
///     async fn list(&self, _: &ListOptions, each: ItemSink<'_, Arc<Pod>>) -> Result<ListMeta, RequestError> {
///         each(Ok(Arc::new(Pod("web".to_owned()))));
///         Ok(ListMeta::new("7"))
///     }
///     async fn watch(&self, _: &WatchOptions) -> Result<WatchStream<Arc<Pod>>, RequestError> {
///         Ok(Box::pin(futures::stream::pending()))
///     }
/// }
/// # struct Printer(CancellationToken);
/// # impl ReflectorStore<Arc<Pod>> for Printer {
/// #     fn admit(&self, object: Arc<Pod>) -> Result<Admitted<Arc<Pod>>, AdmitError> { Admitted::new(object) }
/// #     fn add(&self, _: Arc<Pod>) -> Result<(), AdmitError> { Ok(()) }
/// #     fn update(&self, _: Arc<Pod>) -> Result<(), AdmitError> { Ok(()) }
/// #     fn delete(&self, _: Arc<Pod>) -> Result<(), AdmitError> { Ok(()) }
/// #     fn delete_key(&self, _: ObjectKey) {}
/// #     fn replace(&self, list: Replacement<Arc<Pod>>) {
/// #         assert_eq!(list.items.len(), 1);
/// #         self.0.cancel();
/// #     }
/// #     fn resync(&self) {}
/// #     fn bookmark(&self, _: &str) {}
/// # }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let stop = CancellationToken::new();
/// // Any `ReflectorStore`; this one stops at the first list.
/// let store = Arc::new(Printer(stop.clone()));
/// let reflector = Reflector::new(Quiet, store);
/// let monitor = reflector.monitor();
/// reflector.run(stop).await.expect("no panic");
/// assert_eq!(monitor.status().resource_version, "7");
/// # }
/// ```
#[must_use = "a reflector does nothing before it runs"]
pub struct Reflector<L, S: ?Sized> {
    lister_watcher: L,
    store: Arc<S>,
    options: ReflectorOptions,
    monitor: ReflectorMonitor,
}

/// Why a reflector ended though nobody stopped it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The lister-watcher or the store panicked. In what state it is nobody knows, so the reflector does not go on.
    #[error("the reflector of {resource} ended by a panic in its lister-watcher or its store: {message}")]
    Panicked {
        /// What was listed and watched.
        resource: String,
        /// What the panic said.
        message: String,
    },
}

impl<L: ListerWatcher, S: ReflectorStore<L::Object> + ?Sized> Reflector<L, S> {
    /// A reflector with the default options.
    pub fn new(lister_watcher: L, store: Arc<S>) -> Self {
        Self::with_options(lister_watcher, store, ReflectorOptions::new())
    }

    /// A reflector with these options.
    pub fn with_options(lister_watcher: L, store: Arc<S>, options: ReflectorOptions) -> Self {
        Self { lister_watcher, store, options, monitor: ReflectorMonitor::default() }
    }

    /// What reads the reflector's status, now and after it has ended.
    pub fn monitor(&self) -> ReflectorMonitor {
        self.monitor.clone()
    }

    /// Lists and watches until `stop` is cancelled; then an open request or stream is dropped at once. A panic of the
    /// lister-watcher or of the store surfaces here, as an error, in the task that polls this future (nothing is
    /// spawned); the status tells it too.
    ///
    /// Cancel-safe: dropping the future ends the request or the stream that is open. What was passed on to the store
    /// is passed on; a list that was not complete leaves no trace.
    ///
    /// # Errors
    ///
    /// [`RunError::Panicked`]. Nothing else ends it: failures are reported to the error handler and tried again.
    pub async fn run(self, stop: CancellationToken) -> Result<(), RunError> {
        let _ends = StoppedAtEnd(self.monitor.clone());
        // The lister-watcher is asked for this and that before its first request: all of it is the user's code.
        let resource = catch_unwind(AssertUnwindSafe(|| self.lister_watcher.resource()));
        let resource = resource.map_err(|panic| ended_by(&*panic, short_type_name::<L>()))?;
        if stop.is_cancelled() {
            return Ok(());
        }
        let name = self.options.name.as_ref().map(InformerName::as_str);
        let span = tracing::info_span!("reflector", resource, name);
        let driving = AssertUnwindSafe(async { self.driver(&resource, stop).drive().await }).catch_unwind();
        let ended = driving.instrument(span).await;
        ended.map_err(|panic| ended_by(&*panic, resource))
    }

    fn driver(self, resource: &str, stop: CancellationToken) -> Driver<L, S> {
        let Self { lister_watcher, store, options, monitor } = self;
        let ReflectorOptions { mut rules, check_streaming_lists, clock, random, should_resync, .. } = options;
        let (error_handler, metrics) = (options.error_handler, options.metrics);
        rules.watch_list &= lister_watcher.supports_watch_list();
        let list_len_max = rules.list_len_max;
        let machine = Machine::new(rules, random.unwrap_or_default());
        let minder = Minder {
            machine,
            clock: clock.clone(),
            alarm: Alarm::new(clock.clone()),
            stopped: Box::pin(stop.cancelled_owned()),
            should_resync,
            should_resync_panics: 0,
            store: Arc::clone(&store),
        };
        let reporter = Reporter {
            resource: Arc::from(resource),
            monitor,
            handler: error_handler,
            clock,
            metrics: metrics.clone(),
            failures: Mutex::default(),
            skips: Mutex::default(),
        };
        Driver {
            lister_watcher,
            store,
            reporter,
            minder,
            stream: None,
            gathering: Gathering::new(list_len_max),
            held: None,
            meter: Meter::new(metrics),
            request: Span::none(),
            check_streaming_lists,
        }
    }
}

impl<L, S: ?Sized> fmt::Debug for Reflector<L, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reflector").field("options", &self.options).finish_non_exhaustive()
    }
}

fn ended_by(panic: &(dyn Any + Send), resource: String) -> RunError {
    let message = panic_text(panic).to_owned();
    tracing::error!(%resource, message, "the reflector ended by a panic");
    RunError::Panicked { resource, message }
}

/// Says so in the status, however the reflector ends.
struct StoppedAtEnd(ReflectorMonitor);

impl Drop for StoppedAtEnd {
    fn drop(&mut self) {
        self.0.set_phase(ReflectorPhase::Stopped);
    }
}

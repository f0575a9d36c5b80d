//! How an informer and its handlers are to behave.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kubewire_indexer::{Indexers, Object};
use kubewire_listwatch::BoxError;
use kubewire_ratelimit::Clock;

use crate::metrics::MetricsProvider;
use crate::reflector::{ReflectorError, ReflectorOptions};
use crate::{Buffering, Delivery, InformerName, Transform, TransformError};

/// The settings of an [`Informer`](crate::Informer).
#[must_use = "options do nothing before they are given to an informer"]
pub struct InformerOptions<O> {
    pub(crate) resync_period: Duration,
    pub(crate) indexers: Indexers<O>,
    pub(crate) delivery: Delivery,
    pub(crate) transform: Option<Transform<O>>,
    pub(crate) reflector: ReflectorOptions,
    pub(crate) clock: Clock,
    pub(crate) description: Option<String>,
    pub(crate) name: Option<InformerName>,
    pub(crate) metrics: Option<Arc<dyn MetricsProvider>>,
    pub(crate) slow_handler_after: Duration,
}

impl<O: Object> InformerOptions<O> {
    /// The defaults.
    pub fn new() -> Self {
        Self {
            resync_period: Duration::ZERO,
            indexers: Indexers::none(),
            delivery: Delivery::default(),
            transform: None,
            reflector: ReflectorOptions::new(),
            clock: Clock::system(),
            description: None,
            name: None,
            metrics: None,
            slow_handler_after: Duration::from_secs(30),
        }
    }

    /// How often each handler that asks for nothing else is told again of every object in the store, as an
    /// update from the object to itself. Nothing is asked of the server for it. Zero, the default: never, and
    /// then for no handler. Less than a second counts as a second.
    ///
    /// Checks are made by the shortest period of the informer and the handlers that are there at the start,
    /// counted from each list.
    pub fn resync_period(mut self, period: Duration) -> Self {
        self.resync_period = period;
        self
    }

    /// The indices of the store. Default none.
    pub fn indexers(mut self, indexers: Indexers<O>) -> Self {
        self.indexers = indexers;
        self
    }

    /// The order of delivery. Default [`Delivery::PerKey`].
    pub fn delivery(mut self, delivery: Delivery) -> Self {
        self.delivery = delivery;
        self
    }

    /// Runs this once over each object before anything else sees it. The store's keys follow the result.
    ///
    /// An object for which it fails or panics is skipped and reported; what is cached under its key stays. It
    /// may remove what nobody reads; whether a state is new is decided by what the server sent.
    pub fn transform<E: Into<BoxError>>(
        mut self,
        transform: impl Fn(O) -> Result<O, E> + Send + Sync + 'static,
    ) -> Self {
        self.transform = Some(Arc::new(move |object| transform(object).map_err(TransformError::new)));
        self
    }

    /// How it lists and watches. The resync period and the clock among these have no effect: the informer's
    /// own count.
    pub fn reflector(mut self, options: ReflectorOptions) -> Self {
        self.reflector = options;
        self
    }

    /// Tells this of each failed list and each watch that could not be opened, instead of logging it.
    pub fn error_handler(mut self, handler: impl Fn(&ReflectorError) + Send + Sync + 'static) -> Self {
        self.reflector = self.reflector.error_handler(handler);
        self
    }

    /// The clock of resyncs, back-off and status. Default the system's.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// What it is called in the status, in errors and logs. Default what the lister-watcher says it lists.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// The name under which its [metrics](crate::metrics) run, and by which its log lines say to whom it belongs.
    /// Without one it has no metrics.
    pub fn informer_name(mut self, name: InformerName) -> Self {
        self.name = Some(name);
        self
    }

    /// Who makes its metrics. Default: whom [`set_metrics_provider`](crate::set_metrics_provider) was given, if any.
    pub fn metrics(mut self, provider: Arc<dyn MetricsProvider>) -> Self {
        self.metrics = Some(provider);
        self
    }

    /// After how long at one notification a handler, or a subscription that nobody polls, is mentioned in the log: as a
    /// warning, once, and again after growing gaps of up to ten minutes. Default 30 s; zero: never. Nothing else becomes
    /// of it, and [`HandlerStatus::busy_for`](crate::HandlerStatus::busy_for) shows it whatever is set here.
    ///
    /// Who looks is the informer's own task; a handler that blocks the only thread of a runtime is seen by nobody.
    pub fn slow_handler_after(mut self, time: Duration) -> Self {
        self.slow_handler_after = time;
        self
    }
}

impl<O: Object> Default for InformerOptions<O> {
    fn default() -> Self {
        Self::new()
    }
}

impl<O> fmt::Debug for InformerOptions<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InformerOptions")
            .field("resync_period", &self.resync_period)
            .field("delivery", &self.delivery)
            .field("transform", &self.transform.is_some())
            .field("reflector", &self.reflector)
            .field("description", &self.description)
            .field("informer_name", &self.name)
            .field("metrics", &self.metrics.is_some())
            .field("slow_handler_after", &self.slow_handler_after)
            .finish_non_exhaustive()
    }
}

/// The settings of one handler or subscription.
#[derive(Clone, Debug, Default)]
#[must_use = "options do nothing before they are given to an informer"]
pub struct HandlerOptions {
    pub(crate) name: Option<String>,
    pub(crate) resync_period: Option<Duration>,
    pub(crate) buffering: Buffering,
    pub(crate) own_thread: bool,
}

impl HandlerOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// What it is called in the status, in logs and in metrics. Default its type, without paths. Where another handler
    /// of the informer has the name already, it gets a number behind it.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// How often it is told again of every object. Default the informer's period; zero: never. It is raised to
    /// a second, and, once the informer runs, to the period of its checks. While it is behind with the resync
    /// before, it gets no other.
    pub fn resync_period(mut self, period: Duration) -> Self {
        self.resync_period = Some(period);
        self
    }

    /// How what waits for it is kept. Default [`Buffering::Unbounded`].
    pub fn buffering(mut self, buffering: Buffering) -> Self {
        self.buffering = buffering;
        self
    }
    /// Calls the handler on a thread of its own, out of the runtime's pool of blocking threads: for one that
    /// blocks. By default it is called in a task, and one that blocks there takes a thread away from everybody
    /// else's tasks. It makes no difference to a subscription.
    pub fn own_thread(mut self) -> Self {
        self.own_thread = true;
        self
    }
}

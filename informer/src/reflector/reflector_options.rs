//! How a reflector is to behave.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kubewire_ratelimit::{Backoff, Clock, Random};

use super::error_handler::WatchErrorHandler;
use super::reflector_error::ReflectorError;
use super::rules::{MIN_WATCH_TIMEOUT, Rules};
use crate::InformerName;
use crate::metrics::{InformerMetrics, Metrics};

/// Asked at each resync check whether it is to take place.
pub(crate) type ShouldResync = Arc<dyn Fn() -> bool + Send + Sync>;

/// The settings of a [`Reflector`](super::Reflector). The defaults are client-go's, where it has the setting.
#[derive(Clone, Default)]
#[must_use = "options do nothing before they are given to a reflector"]
pub struct ReflectorOptions {
    pub(crate) rules: Rules,
    pub(crate) check_streaming_lists: bool,
    pub(crate) clock: Clock,
    pub(crate) random: Option<Random>,
    pub(crate) should_resync: Option<ShouldResync>,
    pub(crate) error_handler: Option<WatchErrorHandler>,
    pub(crate) metrics: Option<Arc<Metrics>>,
    pub(crate) name: Option<InformerName>,
}

impl ReflectorOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether streaming lists are asked for, where the lister-watcher supports them. Default yes, as with
    /// client-go's gate `WatchListClient`. What does not work falls back to an ordinary list by itself.
    pub fn watch_list(mut self, watch_list: bool) -> Self {
        self.rules.watch_list = watch_list;
        self
    }

    /// Asks for all lists in pages of this size. By default, and with 0, client-go's rules hold: pages of 500 at
    /// version 0 (where the server's cache ignores the limit), without a version, and where the very first list came
    /// in pages; otherwise everything at once, because a limit makes the server pass by its cache.
    pub fn page_size(mut self, page_size: u32) -> Self {
        self.rules.page_size = (page_size > 0).then_some(page_size);
        self
    }

    /// Each watch asks the server to end it after a random whole number of seconds between once and twice this time,
    /// so that clients do not come back in step. Default, and least, 5 minutes: what is less has no effect.
    pub fn min_watch_timeout(mut self, timeout: Duration) -> Self {
        self.rules.min_watch_timeout = timeout.max(MIN_WATCH_TIMEOUT);
        self
    }

    /// The time between two resync checks, counted from each list anew. Zero, the default: none.
    pub fn resync_period(mut self, period: Duration) -> Self {
        self.rules.resync_period = period;
        self
    }

    /// Asked at each resync check whether the store is to be resynced. By default it always is. A panic counts as
    /// no, and is logged.
    pub fn should_resync(mut self, should_resync: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.should_resync = Some(Arc::new(should_resync));
        self
    }

    /// The delays between failed tries, lists and watches alike. Default 0.8 to 1.6 s, doubling, at most 30 to 60 s.
    /// They start over after two minutes of health.
    pub fn backoff(mut self, backoff: Backoff) -> Self {
        self.rules.backoff = backoff;
        self
    }

    /// For how long a watch that ends by an internal error (500) of the server is opened again at once, in place of
    /// a new list. Zero, the default: never.
    pub fn max_internal_error_retry(mut self, duration: Duration) -> Self {
        self.rules.max_internal_error_retry = duration;
        self
    }

    /// How long to wait for the end mark of a streaming list, counted from its opening and anew from each object
    /// that comes, before an ordinary list takes its place (and for 10 minutes no streaming list is asked for).
    /// Default 60 s. client-go waits without a limit.
    pub fn initial_events_timeout(mut self, timeout: Duration) -> Self {
        self.rules.initial_events_timeout = timeout;
        self
    }

    /// Whether a list that is older than the newest version seen is refused and asked for again, up to three times;
    /// then the server is asked for its most recent state, and believed (it may have been restored from a backup). A
    /// version that the server calls invalid is given up so too. Default yes. client-go takes such a list, and its
    /// cache goes back in time; and asks for an invalid version for ever.
    pub fn refuse_older_answers(mut self, refuse: bool) -> Self {
        self.rules.refuse_older_answers = refuse;
        self
    }

    /// The most objects of one list, also of one in pages and of a streaming list. Default 10 million: it is there so
    /// that an answer without an end, or ever new pages, do not fill the memory. A longer list is an error of class
    /// [`TooLong`](kubewire_listwatch::ErrorClass::TooLong), and is asked for again with back-off. client-go has no
    /// limit.
    pub fn list_len_max(mut self, list_len_max: usize) -> Self {
        self.rules.list_len_max = list_len_max;
        self
    }

    /// Whether each streaming list is compared with an ordinary list at its version, and a difference told to the
    /// error handler. Default no: it is for tests of servers and costs a second list, as client-go's
    /// `KUBE_WATCHLIST_INCONSISTENCY_DETECTOR` does (which panics).
    pub fn check_streaming_lists(mut self, check: bool) -> Self {
        self.check_streaming_lists = check;
        self
    }

    /// Whether a server, or a proxy before it, that ends its streams at once, again and again, is given pauses: watches
    /// that brought something come to 10 a second, those without an object to back-off, and six streaming lists in a row
    /// that end before their mark to an ordinary list. Default yes. client-go asks again at once, however often.
    pub fn pace_short_streams(mut self, pace: bool) -> Self {
        self.rules.pace_short_streams = pace;
        self
    }

    /// Who is told of errors. By default they are logged, see [`log_errors`](super::log_errors).
    pub fn error_handler(mut self, handler: impl Fn(&ReflectorError) + Send + Sync + 'static) -> Self {
        self.error_handler = Some(Arc::new(handler));
        self
    }

    /// The clock. Default the system's.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = clock;
        self
    }

    /// Tells these of its lists, watches and failures: what is named `reflector_…`, but for
    /// [`failures_in_a_row`](InformerMetrics::failures_in_a_row). For a reflector by itself; an informer with metrics has
    /// its own.
    pub fn metrics(mut self, metrics: Arc<dyn InformerMetrics>) -> Self {
        self.metrics = Some(Arc::new(Metrics::new(metrics)));
        self
    }

    /// What an informer sets for its reflector.
    pub(crate) fn told(
        mut self,
        resync_period: Duration,
        metrics: Option<Arc<Metrics>>,
        name: Option<InformerName>,
    ) -> Self {
        self.metrics = metrics.or(self.metrics);
        self.name = name;
        self.resync_period(resync_period)
    }

    /// The source of jitter. Default one with a random seed.
    pub fn random(mut self, random: Random) -> Self {
        self.random = Some(random);
        self
    }
}

impl fmt::Debug for ReflectorOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReflectorOptions")
            .field("rules", &self.rules)
            .field("clock", &self.clock)
            .finish_non_exhaustive()
    }
}

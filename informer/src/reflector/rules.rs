//! PURE: the numbers and switches that the machine goes by.

use std::time::Duration;

use kubewire_ratelimit::Backoff;

/// client-go's page size, where a list is paged.
pub(crate) const DEFAULT_PAGE_SIZE: u32 = 500;

/// A watch asks for an end after 5 to 10 minutes.
pub(crate) const MIN_WATCH_TIMEOUT: Duration = Duration::from_secs(300);

/// See [`ReflectorOptions`](super::ReflectorOptions), which documents each.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) watch_list: bool,
    pub(crate) page_size: Option<u32>,
    pub(crate) min_watch_timeout: Duration,
    pub(crate) resync_period: Duration,
    pub(crate) backoff: Backoff,
    pub(crate) max_internal_error_retry: Duration,
    pub(crate) initial_events_timeout: Duration,
    pub(crate) refuse_older_answers: bool,
    pub(crate) pace_short_streams: bool,
    pub(crate) list_len_max: usize,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            watch_list: true,
            page_size: None,
            min_watch_timeout: MIN_WATCH_TIMEOUT,
            resync_period: Duration::ZERO,
            backoff: default_backoff(),
            max_internal_error_retry: Duration::ZERO,
            initial_events_timeout: Duration::from_secs(60),
            refuse_older_answers: true,
            pace_short_streams: true,
            list_len_max: 10_000_000,
        }
    }
}

/// client-go's: 0.8 to 1.6 s at first, doubling, at most 30 to 60 s.
pub(crate) fn default_backoff() -> Backoff {
    const CAP: Duration = Duration::from_secs(30);
    Backoff::new(Duration::from_millis(800)).factor(2.0).jitter(1.0).cap(CAP).steps(38)
}

/// How long a watch is asked for: a random whole number of seconds between once and twice the minimum, so that
/// clients do not come back in step. `random` lies in `0.0..1.0`.
pub(crate) fn watch_timeout(minimum: Duration, random: f64) -> Duration {
    Duration::from_secs((minimum.as_secs_f64() * (1.0 + random)) as u64)
}

/// No wish of a server to be left alone is honoured for longer: a wrong one would be an outage.
pub(crate) const MAX_RETRY_AFTER: Duration = Duration::from_secs(60);

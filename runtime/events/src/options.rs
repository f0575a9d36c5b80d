//! The choices of a recorder.

use std::time::Duration;

/// Which API the events are written to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventsApi {
    /// `events.k8s.io/v1`. The second one of a kind makes a series of the event, later ones are counted here and told
    /// each half hour, or when they have ceased for six minutes. Rights: `create` and `patch` `events` of the group
    /// `events.k8s.io`.
    #[default]
    EventsV1,
    /// `v1`, as client-go's `tools/record`: each repeat counts the event up. Rights: the same of the core group.
    CoreV1,
}

/// How much is remembered, sent and tried; client-go's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// So many different events may wait for their first write; further ones are dropped and counted. Default 1000.
    pub queue_len_max: usize,
    /// So many different events are remembered, to be counted as one; likewise objects, and kinds of similar events.
    /// Default 4096. Each has its texts: 2 kB at most, some hundred bytes as a rule.
    pub cache_len_max: usize,
    /// So many requests are under way at a time. Default 8.
    pub in_flight_max: usize,
    /// So many writes about one object and type at once. Default 25.
    pub burst: u32,
    /// And one more in so long a time. Default 300 s.
    pub refill: Duration,
    /// From so many different notes on, events that are alike but for the note are combined. Default 10.
    pub similar_max: usize,
    /// After so long without one, notes are counted anew. Default 600 s.
    pub similar_interval: Duration,
    /// A series that goes on is told again after so long. Default 30 min. Only for [`EventsApi::EventsV1`].
    pub series_refresh: Duration,
    /// A series is over after so long without another event; the next one is an event of its own. Default 6 min. Only
    /// for [`EventsApi::EventsV1`].
    pub series_finish: Duration,
    /// A write that fails is tried so often in all. Default 12. One that is refused is tried once.
    pub tries_max: u32,
    /// So long after the last one; the first time by chance a part of it. Default 10 s.
    pub retry_pause: Duration,
    /// A request may take so long. Default 30 s.
    pub request_timeout: Duration,
    /// What is left at the stop may take so long. Default 5 s.
    pub flush_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            queue_len_max: 1000,
            cache_len_max: 4096,
            in_flight_max: 8,
            burst: 25,
            refill: seconds(300),
            similar_max: 10,
            similar_interval: seconds(600),
            series_refresh: seconds(30 * 60),
            series_finish: seconds(6 * 60),
            tries_max: 12,
            retry_pause: seconds(10),
            request_timeout: seconds(30),
            flush_timeout: seconds(5),
        }
    }
}

/// What a recorder has done so far. All numbers are of events, but `created`, `patched` and `lost_counts`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecorderStats {
    /// Told to the recorder.
    pub recorded: u64,
    /// Requests that made an event.
    pub created: u64,
    /// Requests that counted one up.
    pub patched: u64,
    /// Counted, but not sent, because there were too many about the object. The next one that is sent counts them.
    pub filtered: u64,
    /// Dropped because too many different ones waited.
    pub dropped_queue_full: u64,
    /// Dropped because the recorder was shut down.
    pub dropped_shut_down: u64,
    /// Dropped because the API server refused them.
    pub dropped_refused: u64,
    /// Dropped because they could not be written in all tries, or in time at the stop.
    pub dropped_failed: u64,
    /// Repeats that were counted here when their event was forgotten for want of room.
    pub lost_counts: u64,
}

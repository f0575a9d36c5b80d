//! What a list-watch takes from a server, and how long it waits.

use std::time::Duration;

/// How much one answer may hold.
///
/// The whole body of a watch has no limit: it is never held. Nor is that of a list, but its objects may be: hence its
/// limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The longest item of a list, in bytes of JSON: 16 MiB (etcd's usual limit for an object is 1.5 MiB). A longer
    /// one ends the list with [`ErrorClass::TooLong`](crate::ErrorClass::TooLong).
    pub item: usize,
    /// The longest answer to one list request (a page, where lists come in pages), in bytes: 4 GiB. A longer one ends
    /// with [`ErrorClass::TooLong`](crate::ErrorClass::TooLong), whatever it holds: a body without an end must not
    /// fill the memory.
    pub list: u64,
    /// The longest line of a watch, in bytes: 16 MiB.
    pub line: usize,
    /// How much of the body of an error answer is read, in bytes: 64 KiB.
    pub error_body: usize,
}

impl Limits {
    /// With items up to this length.
    #[must_use]
    pub fn item(self, item: usize) -> Self {
        Self { item, ..self }
    }

    /// With answers to list requests up to this length.
    #[must_use]
    pub fn list(self, list: u64) -> Self {
        Self { list, ..self }
    }

    /// With lines up to this length.
    #[must_use]
    pub fn line(self, line: usize) -> Self {
        Self { line, ..self }
    }

    /// With this much of an error's body.
    #[must_use]
    pub fn error_body(self, error_body: usize) -> Self {
        Self { error_body, ..self }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { item: 16 << 20, list: 4 << 30, line: 16 << 20, error_body: 64 << 10 }
    }
}

/// How long a request may take. All times are measured here, whatever the server and the network do.
///
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timeouts {
    /// From sending a request to the headers of its answer: 65 s, a little more than an API server gives itself
    /// (so that its own answer comes first).
    pub headers: Duration,
    /// Between two pieces of a list's body, or of an error's: 30 s.
    pub list_idle: Duration,
    /// From the headers of a list to its end: 10 minutes. (An API server gives itself one.) Then it ends with
    /// [`ErrorClass::TimedOut`](crate::ErrorClass::TimedOut), though bytes may still flow.
    pub list: Duration,
    /// How long a watch lives beyond the time that the server was asked to end it at: 5 s. Then the connection
    /// counts as dead and the stream ends with [`ErrorClass::TimedOut`](crate::ErrorClass::TimedOut).
    pub watch_margin: Duration,
    /// Between two pieces of a watch's body (bookmarks count): none, as a quiet watch is nothing unusual.
    pub watch_idle: Option<Duration>,
}

impl Timeouts {
    /// With this much time for the headers.
    #[must_use]
    pub fn headers(self, headers: Duration) -> Self {
        Self { headers, ..self }
    }

    /// With this much time between two pieces of a list.
    #[must_use]
    pub fn list_idle(self, list_idle: Duration) -> Self {
        Self { list_idle, ..self }
    }

    /// With this much time for a list as a whole.
    #[must_use]
    pub fn list(self, list: Duration) -> Self {
        Self { list, ..self }
    }

    /// With this much time for a watch beyond its own.
    #[must_use]
    pub fn watch_margin(self, watch_margin: Duration) -> Self {
        Self { watch_margin, ..self }
    }

    /// With this much time between two pieces of a watch.
    #[must_use]
    pub fn watch_idle(self, watch_idle: Duration) -> Self {
        Self { watch_idle: Some(watch_idle), ..self }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            headers: Duration::from_secs(65),
            list_idle: Duration::from_secs(30),
            list: Duration::from_secs(10 * 60),
            watch_margin: Duration::from_secs(5),
            watch_idle: None,
        }
    }
}

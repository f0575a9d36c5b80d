//! PURE. Which version of HTTP a client speaks, and how.

use std::time::Duration;

/// Which version of HTTP a client speaks with its server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Protocol {
    /// What the server picks in the TLS handshake (ALPN): HTTP/2 where it can. HTTP/1.1 where it cannot, where the
    /// address begins with `http:`, and with OpenSSL.
    #[default]
    Negotiated,
    /// HTTP/1.1: each open watch has a connection of its own.
    Http1,
    /// HTTP/2 without asking, without TLS too ("prior knowledge"): a server that has not got it is not understood.
    /// With OpenSSL it is HTTP/1.1 still.
    Http2,
}

/// How HTTP/2 is spoken.
///
/// Requests share connections, as many on each as the server's limit and [`streams_max`](Self::streams_max) allow:
/// 50 watches need one connection, 150 watches two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Http2 {
    /// After how much silence a connection is probed by a ping: 30 s, as in client-go; `None` never.
    pub ping_after: Option<Duration>,
    /// How long the answer to a ping may take: 15 s, as in client-go. Then the connection counts as dead, and all that
    /// runs on it ends with an error.
    pub ping_timeout: Duration,
    /// How many bytes of one answer may be under way or unread: 1 MiB. An answer that is read slowly is held back at
    /// its server when so many of its bytes have come. More lets a list flow faster where the way is long: a list gets
    /// this much in each round trip.
    pub stream_window: u32,
    /// How many requests share a connection at most: 100, which is what an API server allows. Where the server allows
    /// less, that counts.
    pub streams_max: usize,
}

impl Http2 {
    /// With a ping after this much silence, or without.
    #[must_use]
    pub fn ping_after(self, ping_after: impl Into<Option<Duration>>) -> Self {
        Self { ping_after: ping_after.into(), ..self }
    }

    /// With this much time for the answer to a ping.
    #[must_use]
    pub fn ping_timeout(self, ping_timeout: Duration) -> Self {
        Self { ping_timeout, ..self }
    }

    /// With this many bytes of an answer under way.
    #[must_use]
    pub fn stream_window(self, stream_window: u32) -> Self {
        Self { stream_window, ..self }
    }

    /// With so many requests on a connection.
    #[must_use]
    pub fn streams_max(self, streams_max: usize) -> Self {
        Self { streams_max, ..self }
    }

    /// The window of a connection: as large as those of all its streams, so that lists that nobody reads leave room
    /// for the watches beside them.
    pub(crate) fn connection_window(&self) -> u32 {
        let streams = u32::try_from(self.streams_max.max(1)).unwrap_or(u32::MAX);
        self.stream_window.saturating_mul(streams).min(WINDOW_MAX)
    }

    pub(crate) fn stream_window_sent(&self) -> u32 {
        self.stream_window.min(WINDOW_MAX)
    }
}

/// The largest window that HTTP/2 knows.
const WINDOW_MAX: u32 = (1 << 31) - 1;

impl Default for Http2 {
    fn default() -> Self {
        Self {
            ping_after: Some(Duration::from_secs(30)),
            ping_timeout: Duration::from_secs(15),
            stream_window: 1 << 20,
            streams_max: 100,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_window_of_a_connection_holds_those_of_all_its_streams_and_stays_within_the_protocol() {
        let http2 = Http2::default();
        assert_eq!(http2.connection_window(), 100 << 20);
        assert_eq!(http2.streams_max(0).connection_window(), 1 << 20);
        assert_eq!(http2.streams_max(usize::MAX).connection_window(), WINDOW_MAX);
        assert_eq!(http2.stream_window(u32::MAX).stream_window_sent(), WINDOW_MAX);
    }
}

//! What a server takes at most. The table in the crate's documentation is of these.

use std::time::Duration;

/// More connections wait in the backlog of the socket.
pub(crate) const CONNECTIONS_MAX: usize = 256;
/// A client that does not shake hands is let go.
#[cfg(feature = "tls")]
pub(crate) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// As controller-runtime's.
pub(crate) const HEADER_BYTES_MAX: usize = 1 << 20;
/// For a whole head; idle connections of HTTP/1.1 end by it, too. As controller-runtime's.
pub(crate) const HEADER_TIMEOUT: Duration = Duration::from_secs(32);
/// A client that reads nothing of its answer for so long is let go: else a few of them would take all places for ever.
pub(crate) const WRITE_TIMEOUT: Duration = Duration::from_secs(60);
/// Requests at once on one connection of HTTP/2; API servers open few.
#[cfg(feature = "http2")]
pub(crate) const STREAMS_MAX: u32 = 250;
/// A connection of HTTP/2 that does not answer a ping within hyper's 20 s is let go.
#[cfg(feature = "http2")]
pub(crate) const PING_PERIOD: Duration = Duration::from_secs(30);
/// What is being answered has this long after the stop.
pub(crate) const CLOSE_TIMEOUT: Duration = Duration::from_secs(60);
/// A connection on which nothing is being answered at the stop has this long: to end a request, to read the end of an answer.
pub(crate) const LEAVE_TIMEOUT: Duration = Duration::from_secs(1);
/// After an error of `accept`, such as too many open files.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

//! An API server that does exactly what a script says, down to the byte, and is honest when the script is over.
//!
//! Real servers misbehave in their bytes: they stop within a line, close without the last chunk, say 410 in five
//! ways. A [`Script`] says what is answered to which request, in a notation short enough to be read at a glance;
//! a [`Server`] holds it, the truth (which objects there are, and every event since) and a log of the requests; a
//! [`Socket`] is the server on a loopback port, without any HTTP library in between. The same server can be
//! asked in process: [`Server::answer`].
//!
//! ```
//! use kubewire_conformance::wire::Server;
//!
//! let server = Server::new("
//!     LIST  → [x@10 y@11] rv=11
//!     WATCH → +z@12 ~x@13 ERR:410:Expired ■
//!     LIST  ×2 → 500
//! ");
//! assert!(server.truth().is_empty(), "nobody has asked yet, so nothing has been said");
//! ```
//!
//! # The notation
//!
//! A line is `VERB → ANSWER`, or `VERB ×3 → …` for three answers, `×∞` for all that follow. The verbs are `LIST`, `WATCH`
//! and `STREAM` (a watch that asks for the initial events); each has its own line of answers, used one after the
//! other. A request for which there is none is answered with the truth.
//!
//! | token | meaning |
//! |---|---|
//! | `x@10`, `ns2/x#u2@10` | object `x` (in `ns1`, with the uid `u-x`) at version 10; in `ns2`, with the uid `u2` |
//! | `[x@10 y@11]` | the items of a list |
//! | `rv=11`, `continue=t1` | the list's version and token |
//! | `+x@5` `~x@6` `-x@7` `BM@8` `END@9` | `ADDED`, `MODIFIED`, `DELETED`, `BOOKMARK`, and one with the mark of the initial events' end |
//! | `ERR:410:Expired`, `ERR::Gone`, `ERR:500` | an `ERROR` event with a Status of this code and reason |
//! | `$name` | bytes of one's own, see [`Server::bytes`]: a line of a watch, an item within `[ ]`, a body otherwise |
//! | `503`, `reason=Expired` | the HTTP status (200 otherwise) and its Status body's reason |
//! | `after=2`, `after=date+2`, `told=2`, `token=t2` | `Retry-After` in both forms; the Status' `retryAfterSeconds`, and its continue token |
//! | `header:a=b` | a header of the answer |
//! | `\|` | a border between two writes |
//! | `900ms` | a pause |
//! | `■` | the orderly end of the body (that of lists and failures comes by itself) |
//! | `CUT`, `RST` | the connection is closed without the last chunk, or reset; as first token before any answer |
//! | `DEAD` | nothing more is said, and the connection stays open; as first token before any answer |
//! | `REFUSED` | nobody listens (in process only; a [`Socket`] is closed and opened) |
//! | `…` | the watch stays open and tells what happens: so do watches without `■`, `CUT`, `RST`, `DEAD` |

mod answer;
mod asked;
mod front;
mod object;
mod script;
mod server;
mod socket;
mod tls;
mod truth;

pub use answer::{Answer, Part};
pub use asked::{Asked, Verb};
pub use front::Front;
pub use object::{Thing, event_line};
pub use script::Script;
pub use server::Server;
pub use socket::Socket;
pub use tls::{Authority, Leaf, Tls};

//! The faults of `reference/bugs.md` and their neighbours, as tests: one file for each kind of fault. `BUGS.md`
//! of this package maps each entry to its tests.

mod credentials;
mod faults;
mod half_open;
mod handlers;
mod http2;
mod identity;
mod lists;
mod names;
mod on_the_wire;
mod queues;
mod streaming_list;
mod support;
mod table;
mod tls;
mod undecodable;
mod waiting;
mod watch_bytes;

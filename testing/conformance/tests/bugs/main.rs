//! The faults of `reference/bugs.md` and their neighbours, as tests: one file for each kind of fault. `BUGS.md`
//! of this package maps each entry to its tests.
//!
//! What concerns objects runs over every representation that can be read from JSON, as the scripts are text;
//! `tests/representations/served.rs` has the faults of bodies in protobuf.
#![expect(clippy::duplicate_mod, reason = "the same tests run over other types")]

mod credentials;
#[macro_use]
#[path = "../common/forms.rs"]
mod forms;
mod http2;
mod names;
mod on_the_wire;
mod queues;
#[path = "../../../../indexer/tests/it/record.rs"]
#[expect(dead_code, reason = "objects come from a server here")]
mod record;
mod support;
mod table;
mod tls;

/// A module for each representation, with all tests in it.
macro_rules! representations {
    ([] $($name:ident: $object:ty;)+) => {$(
        #[path = "."]
        mod $name {
            /// What the objects of these tests come as.
            pub(crate) type PodRef = $object;

            mod faults;
            mod half_open;
            mod handlers;
            mod identity;
            mod lists;
            mod streaming_list;
            mod undecodable;
            mod waiting;
            mod watch_bytes;
        }
    )+};
}

with_forms!(json: representations);

//! One suite over every representation of an object: the tests of the informer (handlers, listers, indices, resync,
//! relist, tombstones, transform, factory, delivery), which that crate runs over a plain struct, and some against the
//! embedded server.
//!
//! `cargo test -p kubewire-conformance --test representations -- packed_protobuf` runs those of one of them.
#![expect(clippy::duplicate_mod, reason = "the same tests run over other types")]

#[macro_use]
#[path = "../common/forms.rs"]
mod forms;
#[path = "../../../../informer/tests/it/record.rs"]
mod record;

/// A module for each representation, with all tests in it.
macro_rules! representations {
    ([] $($name:ident: $object:ty;)+) => {$(
        #[path = "../../../../informer/tests/it"]
        mod $name {
            /// What the objects of these tests come as.
            pub(crate) type PodRef = $object;

            mod cache_sync;
            mod delivery;
            mod factory;
            mod fifo;
            mod hammer;
            mod handlers;
            mod inside_callbacks;
            mod late_handlers;
            mod lifecycle;
            mod recorder;
            mod relist;
            mod resync;
            #[path = "../../../testing/conformance/tests/representations/served.rs"]
            mod served;
            mod source;
            mod status;
            mod transform;
        }
    )+};
}

with_forms!(representations);

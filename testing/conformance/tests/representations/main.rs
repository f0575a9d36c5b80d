//! One suite over every representation of an object: the tests of the informer (handlers, listers, indices, resync,
//! relist, tombstones, transform, factory, delivery), of the reflector and of the indexer, which those crates run over a
//! plain struct, and some against the embedded server. `listed.rs` says what runs over one representation, and why.
//!
//! `cargo test -p kubewire-conformance --test representations -- packed_protobuf` runs those of one of them.
#![expect(clippy::duplicate_mod, reason = "the same tests run over other types")]

#[macro_use]
#[path = "../common/forms.rs"]
mod forms;
mod listed;
#[path = "../../../../indexer/tests/it/record.rs"]
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

            /// The store of objects.
            #[path = "../../../indexer/tests/it"]
            mod stored {
                pub(crate) use super::PodRef;

                mod indexer;
                mod lister;
                mod mutation_cache;
            }

            /// The reflector alone.
            #[path = "../reflector"]
            mod reflected {
                pub(crate) use super::PodRef;

                mod errors;
                mod fake_server;
                mod fake_store;
                mod informer_watcher;
                mod lifecycle;
                mod list_and_watch;
                mod pager;
                mod retry_watcher;
                mod running;
                mod streaming_list;
                mod undecodable;
                mod until;
            }
        }
    )+};
}

with_forms!(representations);

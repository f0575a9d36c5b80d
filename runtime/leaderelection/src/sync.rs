//! The locks and tasks of the shell: parking_lot's and tokio's; or shuttle's, where the [models](crate::models) run them in
//! many orders.

#[cfg(shuttle)]
pub(crate) use kubewire_ratelimit::sync::*;
#[cfg(not(shuttle))]
pub(crate) use {
    parking_lot::Mutex, tokio::runtime::Handle, tokio::task::JoinError, tokio_util::task::AbortOnDropHandle,
};

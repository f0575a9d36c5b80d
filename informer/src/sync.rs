//! The locks, flags, wake-ups and tasks of the shells: parking_lot's, the standard library's and tokio's; or
//! shuttle's, where the [models](crate::models) run them in many orders.

#[cfg(shuttle)]
pub(crate) use kubewire_ratelimit::sync::*;
#[cfg(not(shuttle))]
pub(crate) use {
    parking_lot::Mutex,
    std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64},
    tokio::runtime::Handle,
    tokio::sync::{Notify, futures::Notified},
    tokio::task::JoinHandle,
    tokio::time::sleep,
};

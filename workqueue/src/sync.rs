//! The lock and the atomics of the shell: parking_lot's and the standard library's, or loom's where loom explores the interleavings.

#[cfg(loom)]
pub(crate) use kubewire_ratelimit::sync::{Mutex, MutexGuard, atomic, thread::park};
#[cfg(not(loom))]
pub(crate) use {
    parking_lot::{Mutex, MutexGuard},
    std::sync::atomic,
    std::thread::park,
};

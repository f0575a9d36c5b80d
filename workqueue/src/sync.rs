//! The lock of the shell: parking_lot's, or loom's where loom explores the interleavings.

#[cfg(loom)]
pub(crate) use kubewire_ratelimit::sync::{Mutex, MutexGuard, thread::park};
#[cfg(not(loom))]
pub(crate) use {
    parking_lot::{Mutex, MutexGuard},
    std::thread::park,
};

//! The lock of the shell: parking_lot's, or loom's where loom explores the interleavings.

#[cfg(loom)]
pub(crate) use loom_lock::{Mutex, MutexGuard};
#[cfg(not(loom))]
pub(crate) use parking_lot::{Mutex, MutexGuard};

#[cfg(loom)]
mod loom_lock {
    pub(crate) use loom::sync::MutexGuard;

    /// loom's mutex in the shape of parking_lot's.
    pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
        }
    }
}

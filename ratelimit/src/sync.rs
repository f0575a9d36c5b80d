//! The locks, wake-ups and threads of the shells: parking_lot's, tokio's and the standard library's; or loom's, or
//! shuttle's, where models run them in all orders or in many. The crates above take those of the models from here.

#[cfg(shuttle)]
mod model;
#[cfg(shuttle)]
mod scheduled;

#[cfg(loom)]
pub use loom::sync::atomic;
#[cfg(loom)]
pub use loom_lock::{Mutex, MutexGuard};
#[cfg(shuttle)]
pub use {model::model, scheduled::*};
#[cfg(not(any(loom, shuttle)))]
pub(crate) use {parking_lot::Mutex, std::thread, tokio::sync::Notify};

#[cfg(loom)]
mod loom_lock {
    pub use loom::sync::MutexGuard;

    /// loom's mutex in the shape of parking_lot's.
    #[derive(Default)]
    pub struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub fn new(value: T) -> Self {
            Self(loom::sync::Mutex::new(value))
        }

        pub fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
        }

        pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
            match self.0.try_lock() {
                Ok(guard) => Some(guard),
                Err(std::sync::TryLockError::Poisoned(error)) => Some(error.into_inner()),
                Err(std::sync::TryLockError::WouldBlock) => None,
            }
        }
    }
}

/// Parking as the standard library's: an unpark is kept until the next park. loom's own forgets it where the thread waits
/// for a mutex meanwhile.
#[cfg(loom)]
pub mod thread {
    use std::sync::{Arc, PoisonError};

    use loom::sync::{Condvar, Mutex};

    loom::thread_local! {
        static THIS: Thread = Thread { token: Arc::new(Token { is_there: Mutex::new(false), came: Condvar::new() }) };
    }

    #[derive(Clone)]
    pub struct Thread {
        token: Arc<Token>,
    }

    struct Token {
        is_there: Mutex<bool>,
        came: Condvar,
    }

    pub fn current() -> Thread {
        THIS.with(Thread::clone)
    }

    pub fn park() {
        let Token { is_there, came } = &*current().token;
        let mut is_there = is_there.lock().unwrap_or_else(PoisonError::into_inner);
        while !*is_there {
            is_there = came.wait(is_there).unwrap_or_else(PoisonError::into_inner);
        }
        *is_there = false;
    }

    impl Thread {
        pub fn unpark(&self) {
            *self.token.is_there.lock().unwrap_or_else(PoisonError::into_inner) = true;
            self.token.came.notify_one();
        }
    }
}

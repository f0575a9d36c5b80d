//! A key that was handed out.

use std::fmt;
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::shared::{Session, Shared};
use crate::state::{Claim, HandOut};

/// A key that was got; it is *done* when this is dropped, also by a panic.
///
/// Until then nobody else gets the key. If it was added meanwhile, it waits again once it is done. Derefs to the key.
///
/// It may be sent to another task or thread, and outlives the handles of its queue.
#[must_use = "dropping the guard at once says that the key is done"]
pub struct Guard<K: Eq + Clone> {
    key: K,
    priority: i32,
    hold: Hold<K>,
}

/// Says done when dropped, once.
struct Hold<K: Eq + Clone> {
    shared: Arc<Shared<K>>,
    /// `None`: somebody else says done.
    claim: Option<Claim>,
}

impl<K: Eq + Clone> Guard<K> {
    #[inline(always)]
    pub(crate) fn new(shared: &Arc<Shared<K>>, session: &mut Session<'_, K>, hand_out: HandOut) -> Self {
        let HandOut { claim, priority, .. } = hand_out;
        let key = session.copy_key(hand_out);
        Self { key, priority, hold: Hold { shared: Arc::clone(shared), claim: Some(claim) } }
    }

    /// The key.
    pub const fn key(&self) -> &K {
        &self.key
    }

    /// The highest priority that it was added with before it was got; 0 where none was named.
    pub const fn priority(&self) -> i32 {
        self.priority
    }

    /// Says that the key is done; as dropping does.
    pub fn done(self) {
        drop(self);
    }

    /// Takes the key out, which stays in processing: nobody gets it again until
    /// [`Queue::done`](crate::Queue::done) is called for it.
    #[must_use = "the key stays in processing until `done` is called for it"]
    pub fn into_key(self) -> K {
        let Self { key, mut hold, .. } = self;
        hold.claim = None;
        key
    }
}

impl<K: Eq + Clone> Deref for Guard<K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.key
    }
}

impl<K: Eq + Clone> Drop for Hold<K> {
    #[inline]
    fn drop(&mut self) {
        let Some(claim) = self.claim else { return };
        let mut spare = None; // Drops outside the lock.
        self.shared.begin_untimed().finish(|state| state.done(claim, &mut spare));
        // The other copy of the key is dropped first. Where both panic the second must not meet the first.
        if std::thread::panicking() && catch_unwind(AssertUnwindSafe(|| drop(spare))).is_err() {
            tracing::error!("a key of a work queue panicked when it was dropped");
        }
    }
}

impl<K: Eq + Clone + fmt::Debug> fmt::Debug for Guard<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Guard").field(&self.key).finish()
    }
}

impl<K: Eq + Clone + fmt::Display> fmt::Display for Guard<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.key.fmt(f)
    }
}

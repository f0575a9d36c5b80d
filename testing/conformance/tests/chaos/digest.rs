//! Everything that happened, in one number: two runs are the same if it is.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Clones are the same one.
#[derive(Clone)]
pub(crate) struct Digest {
    begun: Instant,
    /// With fixed keys.
    hasher: Arc<Mutex<DefaultHasher>>,
    /// `KUBEWIRE_CHAOS_TRACE`: what happens is printed too, to find where two runs part.
    is_traced: bool,
}

impl Digest {
    pub(crate) fn new() -> Self {
        let is_traced = std::env::var_os("KUBEWIRE_CHAOS_TRACE").is_some();
        Self { begun: Instant::now(), hasher: Arc::default(), is_traced }
    }

    /// This has happened now.
    pub(crate) fn note(&self, what: impl FnOnce() -> String) {
        let (at, what) = (self.begun.elapsed(), what());
        if self.is_traced {
            println!("{at:?} {what}");
        }
        (at, what).hash(&mut *self.hasher.lock());
    }

    pub(crate) fn value(&self) -> u64 {
        self.hasher.lock().finish()
    }
}

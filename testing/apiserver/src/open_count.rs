//! What is open: requests under way, connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A count of things that are open. Clones count together.
#[derive(Clone, Debug, Default)]
pub(crate) struct OpenCount(Arc<AtomicUsize>);

/// Counts as open until it is dropped.
#[derive(Debug)]
#[must_use = "it counts as open until this is dropped"]
pub(crate) struct OpenOne(OpenCount);

impl OpenCount {
    /// One more.
    pub(crate) fn open(&self) -> OpenOne {
        self.0.fetch_add(1, Ordering::AcqRel);
        OpenOne(self.clone())
    }

    pub(crate) fn get(&self) -> usize {
        self.0.load(Ordering::Acquire)
    }
}

impl Drop for OpenOne {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::AcqRel);
    }
}

//! How often each kind of fault has met a request or a stream.

use std::collections::BTreeMap;

use parking_lot::Mutex;

/// Counts by the names of the faults. What was planned and met nothing is not in it.
#[derive(Debug, Default)]
pub(crate) struct Hits(Mutex<BTreeMap<&'static str, u64>>);

impl Hits {
    pub(crate) fn count(&self, fault: &'static str) {
        *self.0.lock().entry(fault).or_default() += 1;
    }

    pub(crate) fn snapshot(&self) -> BTreeMap<&'static str, u64> {
        self.0.lock().clone()
    }
}

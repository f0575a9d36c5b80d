//! A handler that counts.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kubewire_indexer::Deleted;
use kubewire_informer::ResourceEventHandler;
use tokio::sync::mpsc::UnboundedSender;

/// Additions, updates and deletions.
pub(crate) type Counts = [usize; 3];

/// Counts what it is told, and tells the counts once so many events have come. Initial additions are no events.
pub(crate) struct Counter {
    counts: Counts,
    events: usize,
    done: UnboundedSender<Counts>,
}

impl Counter {
    pub(crate) fn new(events: usize, done: UnboundedSender<Counts>) -> Self {
        Self { counts: [0; 3], events, done }
    }

    fn event(&mut self) {
        self.events -= 1;
        if self.events == 0 {
            // Whoever waits for it is there until all have told.
            let _ = self.done.send(self.counts);
        }
    }
}

impl ResourceEventHandler<Arc<Pod>> for Counter {
    fn on_add(&mut self, _: Arc<Pod>, is_in_initial_list: bool) {
        self.counts[0] += 1;
        if !is_in_initial_list {
            self.event();
        }
    }

    fn on_update(&mut self, _: Arc<Pod>, _: Arc<Pod>) {
        self.counts[1] += 1;
        self.event();
    }

    fn on_delete(&mut self, _: Deleted<Arc<Pod>>) {
        self.counts[2] += 1;
        self.event();
    }
}

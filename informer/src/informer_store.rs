//! What an informer's reflector writes into.

use std::sync::Arc;

use kubewire_indexer::{Id, Object, ObjectKey};
use kubewire_ratelimit::Clock;

use crate::listeners::Listeners;
use crate::{AdmitError, Admitted, DeltaFifo, ReflectorStore, Replacement};

/// The delta FIFO, with resyncs only where a handler is due for one, and whose consumer is woken once for all events that
/// were at hand.
pub(crate) struct InformerStore<O: Object> {
    fifo: DeltaFifo<O>,
    listeners: Arc<Listeners<O>>,
    clock: Clock,
}

impl<O: Object> InformerStore<O> {
    pub(crate) fn new(fifo: DeltaFifo<O>, listeners: Arc<Listeners<O>>, clock: Clock) -> Self {
        Self { fifo: fifo.woken_by_flush(), listeners, clock }
    }
}

impl<O: Object> ReflectorStore<O> for InformerStore<O> {
    fn admit(&self, object: O) -> Result<Admitted<O>, AdmitError> {
        ReflectorStore::admit(&self.fifo, object)
    }

    fn cached(&self, state: Id<'_>) -> Option<O> {
        self.fifo.cached(state)
    }

    fn add(&self, object: O) -> Result<(), AdmitError> {
        ReflectorStore::add(&self.fifo, object)
    }

    fn update(&self, object: O) -> Result<(), AdmitError> {
        ReflectorStore::update(&self.fifo, object)
    }

    fn delete(&self, object: O) -> Result<(), AdmitError> {
        ReflectorStore::delete(&self.fifo, object)
    }

    fn delete_key(&self, key: ObjectKey) {
        self.fifo.delete_key(key);
    }

    fn replace(&self, list: Replacement<O>) {
        ReflectorStore::replace(&self.fifo, list);
        self.fifo.flush();
    }

    fn resync(&self) {
        if self.listeners.check_resync(self.clock.now()) {
            self.fifo.resync();
            self.fifo.flush();
        }
    }

    fn bookmark(&self, resource_version: &str) {
        self.fifo.bookmark(resource_version);
    }

    fn update_resource_version(&self, resource_version: &str) {
        self.fifo.update_resource_version(resource_version);
    }

    fn flush(&self) {
        self.fifo.flush();
    }
}

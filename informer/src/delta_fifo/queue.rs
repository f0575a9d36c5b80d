//! The shell around the delta FIFO's rules: one lock, and waiting.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use kubewire_indexer::{Deleted, Id, Object, ObjectKey};

use super::state::{State, Taken};
use crate::delta::Entries;
use crate::latch::Latch;
use crate::panics::panic_text;
use crate::sync::{Mutex, Notified, Notify};
use crate::{
    AdmitError, Admitted, Delivery, Deltas, KnownObjects, Received, ReflectorStore, Replacement, TransformError,
};

/// A function over every object that comes in, run once before anything else sees the object.
pub type Transform<O> = Arc<dyn Fn(O) -> Result<O, TransformError> + Send + Sync>;

/// How a [`DeltaFifo`] is built.
pub struct DeltaFifoOptions<O> {
    /// The order of delivery, and what is merged. Per key by default.
    pub delivery: Delivery,
    /// Where the consumer stores what it takes. Without it a list reveals the deletion only of what waits, a
    /// resync does nothing, and per key the deletion of what does not wait is dropped.
    pub known_objects: Option<Arc<dyn KnownObjects<O>>>,
    /// Per key: whether the objects of a list come as [`Replaced`](crate::Delta::Replaced). They come as
    /// [`Sync`](crate::Delta::Sync) if not. On by default.
    pub emit_replaced: bool,
    /// Run once over each object that comes in, those of deletions too; not over tombstones and what a resync
    /// tells again. None by default.
    pub transform: Option<Transform<O>>,
}

impl<O> Default for DeltaFifoOptions<O> {
    fn default() -> Self {
        Self { delivery: Delivery::default(), known_objects: None, emit_replaced: true, transform: None }
    }
}

/// The queue between a reflector and a store: client-go's `DeltaFIFO`, and by
/// [`Delivery::InOrder`] its `RealFIFO`.
///
/// Producers call [`add`](Self::add), [`update`](Self::update), [`delete`](Self::delete),
/// [`replace`](Self::replace) and [`resync`](Self::resync), or hand it to a reflector as a
/// [`ReflectorStore`]. The consumer takes entries by [`pop`](Self::pop), one at a time: nothing more is given
/// out while an entry is being processed, and the rules treat what is out as if it were processed. Unlike in
/// client-go no lock is held meanwhile, so producers never wait for the consumer.
///
/// Cloning counts a reference. Each call takes one uncontended lock for a short time; a list and a resync take
/// it for as long as it takes to walk the list and the keys of the known objects.
///
/// There is no bound: what a bounded queue would have to refuse, the watch would have to bring again. Use
/// [`Delivery::Coalescing`] where memory must not grow with the number of events.
///
/// ```
/// # use std::sync::Arc;
/// # use kubewire_indexer::{Id, Meta};
/// # use kubewire_informer::{DeltaFifo, DeltaFifoOptions};
/// # struct Pod;
/// # impl Meta for Pod { fn id(&self) -> Id<'_> { Id::new("default", "web") } }
/// let fifo = DeltaFifo::new(DeltaFifoOptions::default());
/// fifo.add(Arc::new(Pod))?;
/// fifo.update(Arc::new(Pod))?;
/// let popped = fifo.try_pop(1)?.expect("something waits");
/// let kinds: Vec<_> = popped.entries()[0].as_slice().iter().map(|delta| delta.kind()).collect();
/// assert_eq!(kinds, ["Added", "Updated"]);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
pub struct DeltaFifo<O: Object> {
    shared: Arc<Shared<O>>,
    /// Whether what comes by this handle wakes nobody before a [`flush`](ReflectorStore::flush).
    woken_by_flush: bool,
}

struct Shared<O> {
    /// Guards all rules and everything that waits. Under it only `known` is called.
    state: Mutex<State<O>>,
    known: Option<Arc<dyn KnownObjects<O>>>,
    transform: Option<Transform<O>>,
    /// One permit for each change that a waiting pop may want to see.
    changed: Notify,
    /// Set once synced.
    synced: Latch,
    /// Told when the applied version has moved.
    version_moved: Notify,
}

/// The FIFO is closed, and nothing waits in it any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the delta FIFO is closed and empty")]
pub struct Closed;

impl<O: Object> DeltaFifo<O> {
    /// An empty one.
    pub fn new(options: DeltaFifoOptions<O>) -> Self {
        Self {
            shared: Arc::new(Shared {
                state: Mutex::new(State::new(options.delivery, options.emit_replaced)),
                known: options.known_objects,
                transform: options.transform,
                changed: Notify::new(),
                synced: Latch::default(),
                version_moved: Notify::new(),
            }),
            woken_by_flush: false,
        }
    }

    /// This handle, by which nobody is woken before a [`flush`](ReflectorStore::flush). For who calls that for sure.
    pub(crate) fn woken_by_flush(self) -> Self {
        Self { woken_by_flush: true, ..self }
    }

    /// Queues an added object. It need not be new.
    pub fn add(&self, object: O) -> Result<(), AdmitError> {
        self.put(object, State::add)
    }

    /// Queues a changed object. It need not be known.
    pub fn update(&self, object: O) -> Result<(), AdmitError> {
        self.put(object, State::update)
    }

    /// Queues a deletion. Per key, that of an object that neither waits nor is known is dropped.
    pub fn delete(&self, deleted: Deleted<O>) -> Result<(), AdmitError> {
        let (key, deleted) = match deleted {
            Deleted::Known(object) => {
                let item = self.prepare(object).inspect_err(|_| self.change(|state| state.refuse(true)))?;
                (item.key, Deleted::Known(item.received.object))
            }
            Deleted::FinalStateUnknown { ref key, .. } => ((**key).clone(), deleted),
        };
        self.change(|state| state.delete(key, deleted, self.known()));
        Ok(())
    }

    /// Takes in a complete list: queues its objects, and a tombstone for everything that it lacks.
    ///
    /// On an error nothing is queued; per key, as in client-go, what comes before the refused object is.
    pub fn replace(&self, objects: impl IntoIterator<Item = O>, resource_version: &str) -> Result<(), AdmitError> {
        let mut items = Vec::new();
        for object in objects {
            match self.prepare(object) {
                Ok(item) => items.push(item),
                Err(error) => {
                    self.change(|state| state.replace_part(items));
                    return Err(error);
                }
            }
        }
        let list = Replacement::new(items, resource_version);
        self.change(|state| state.replace(list, self.known()));
        Ok(())
    }

    /// Queues again every known object that does not wait; in [`Delivery::InOrder`] one entry that says so.
    pub fn resync(&self) {
        self.change(|state| state.resync(self.known()));
    }

    /// Queues a bookmark, in [`Delivery::InOrder`]; nothing otherwise.
    pub fn bookmark(&self, resource_version: &str) {
        self.change(|state| state.bookmark(resource_version));
    }

    /// Waits for an entry and takes it. After [`close`](Self::close) what waits is still given out.
    ///
    /// Cancel-safe: an entry is taken only when the future returns it.
    pub async fn pop(&self) -> Result<Popped<O>, Closed> {
        self.pop_batch(1).await
    }

    /// Waits, and takes up to `max` entries that may be processed together: no key twice, what belongs to the
    /// first list not with later things, and what concerns more than one object alone.
    ///
    /// Cancel-safe.
    pub async fn pop_batch(&self, max: usize) -> Result<Popped<O>, Closed> {
        loop {
            if let Some(popped) = self.try_pop(max)? {
                return Ok(popped);
            }
            let changed = self.shared.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            // Something may have come before it was listened for.
            if let Some(popped) = self.try_pop(max)? {
                return Ok(popped);
            }
            changed.await;
        }
    }

    /// Takes up to `max` entries as [`pop_batch`](Self::pop_batch) does, or `None` where it would wait: where
    /// nothing waits, or while a [`Popped`] is out.
    pub fn try_pop(&self, max: usize) -> Result<Option<Popped<O>>, Closed> {
        let mut state = self.shared.state.lock();
        match state.take(max) {
            Some(Taken { entries, initial }) => {
                drop(state);
                Ok(Some(Popped { entries, initial, fifo: self.clone() }))
            }
            None if state.is_closed() && state.len() == 0 => Err(Closed),
            None => Ok(None),
        }
    }

    /// Makes pops fail once nothing waits any more.
    pub fn close(&self) {
        self.shared.state.lock().close();
        self.shared.changed.notify_waiters();
    }

    /// The number of entries that wait.
    pub fn len(&self) -> usize {
        self.shared.state.lock().len()
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the first list is processed, or something else came before any list.
    pub fn has_synced(&self) -> bool {
        self.shared.state.lock().has_synced()
    }

    /// Waits until [`has_synced`](Self::has_synced). Cancel-safe.
    pub async fn synced(&self) {
        self.shared.synced.wait().await;
    }

    /// The version up to which everything that the reflector has passed on is processed; empty before the
    /// first.
    pub fn applied_version(&self) -> String {
        self.shared.state.lock().applied_version().to_owned()
    }

    /// Resolves at the next change of [`applied_version`](Self::applied_version) after the call.
    pub(crate) fn version_moved(&self) -> Notified<'_> {
        self.shared.version_moved.notified()
    }

    fn known(&self) -> Option<&dyn KnownObjects<O>> {
        self.shared.known.as_deref()
    }

    /// The known object under a key, if it is in this very state. Never where uid or version are missing.
    fn known_state(&self, key: &ObjectKey, state: Id<'_>) -> Option<O> {
        let is_state = !state.uid.is_empty() && !state.resource_version.is_empty();
        let known = self.known().filter(|_| is_state)?.known(key)?;
        let id = known.id();
        (id.uid == state.uid && id.resource_version == state.resource_version).then_some(known)
    }

    /// An object with its key, transformed. Runs the user's transform, so never under a lock.
    fn prepare(&self, object: O) -> Result<Admitted<O>, AdmitError> {
        let Some(transform) = &self.shared.transform else { return Admitted::new(object) };
        let key = object.try_key()?;
        let version: Arc<str> = object.id().resource_version.into();
        let result = catch_unwind(AssertUnwindSafe(|| transform(object)));
        let transformed = match result {
            Ok(result) => result,
            Err(panic) => Err(TransformError::new(format!("it panicked: {}", panic_text(&*panic)))),
        };
        let object = transformed.map_err(|source| AdmitError::Transform { key, source })?;
        let original_version = (object.id().resource_version != &*version).then_some(version);
        let Admitted { key, received } = Admitted::new(object)?;
        Ok(Admitted { key, received: Received { original_version, ..received } })
    }

    fn put(&self, object: O, rule: fn(&mut State<O>, Admitted<O>)) -> Result<(), AdmitError> {
        let item = self.prepare(object).inspect_err(|_| self.change(|state| state.refuse(false)))?;
        self.change(|state| rule(state, item));
        Ok(())
    }

    /// Changes the state, and then, without the lock, drops what was merged away and wakes who waits for it.
    fn change(&self, change: impl FnOnce(&mut State<O>)) {
        let mut state = self.shared.state.lock();
        change(&mut state);
        let garbage = state.take_garbage();
        let (more, synced) = (state.len() > 0, state.has_synced());
        drop(state);
        drop(garbage);
        if more && !self.woken_by_flush {
            self.shared.changed.notify_one();
        }
        if synced {
            self.shared.synced.set();
        }
    }

    fn finish(&self) {
        let mut state = self.shared.state.lock();
        let (finished, outcomes) = state.finish();
        let closed = state.is_closed();
        drop(state);
        drop(outcomes);
        if finished.synced {
            self.shared.synced.set();
        }
        if finished.version {
            self.shared.version_moved.notify_waiters();
        }
        if closed {
            // All who wait have to find out once nothing is left.
            self.shared.changed.notify_waiters();
        } else if finished.more {
            self.shared.changed.notify_one();
        }
    }
}

impl<O: Object> ReflectorStore<O> for DeltaFifo<O> {
    fn admit(&self, object: O) -> Result<Admitted<O>, AdmitError> {
        if let Ok(key) = object.try_key()
            && let Some(cached) = self.known_state(&key, object.id())
        {
            return Ok(Admitted { key, received: Received::new(cached) });
        }
        self.prepare(object)
    }

    fn cached(&self, state: Id<'_>) -> Option<O> {
        self.known_state(&state.key(), state)
    }

    fn add(&self, object: O) -> Result<(), AdmitError> {
        self.add(object)
    }

    fn update(&self, object: O) -> Result<(), AdmitError> {
        self.update(object)
    }

    fn delete(&self, object: O) -> Result<(), AdmitError> {
        self.delete(Deleted::Known(object))
    }

    fn delete_key(&self, key: ObjectKey) {
        self.change(|state| state.delete_key(key, self.known()));
    }

    fn replace(&self, list: Replacement<O>) {
        self.change(|state| state.replace(list, self.known()));
        self.shared.version_moved.notify_waiters();
    }

    fn resync(&self) {
        self.resync();
    }

    fn bookmark(&self, resource_version: &str) {
        self.bookmark(resource_version);
    }

    fn update_resource_version(&self, resource_version: &str) {
        self.change(|state| state.mark_version(resource_version));
        self.shared.version_moved.notify_waiters();
    }

    fn flush(&self) {
        if !self.is_empty() {
            self.shared.changed.notify_one();
        }
    }
}

impl<O: Object> Clone for DeltaFifo<O> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), woken_by_flush: self.woken_by_flush }
    }
}

impl<O: Object> fmt::Debug for DeltaFifo<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.state.lock();
        f.debug_struct("DeltaFifo")
            .field("delivery", &state.delivery())
            .field("len", &state.len())
            .field("has_synced", &state.has_synced())
            .field("closed", &state.is_closed())
            .finish_non_exhaustive()
    }
}

/// Entries that were taken out of a [`DeltaFifo`].
///
/// Dropping it says that they are processed (or given up: they are not queued again). Until then the FIFO
/// gives out nothing more.
#[must_use = "dropping it says that the entries are processed"]
pub struct Popped<O: Object> {
    entries: Entries<O>,
    initial: bool,
    fifo: DeltaFifo<O>,
}

impl<O: Object> Popped<O> {
    /// The entries, at least one.
    pub fn entries(&self) -> &[Deltas<O>] {
        &self.entries
    }

    /// Moves the entries out.
    pub fn take_entries(&mut self) -> impl ExactSizeIterator<Item = Deltas<O>> + Send + use<O> {
        std::mem::take(&mut self.entries).into_iter()
    }

    /// Whether the FIFO was not synced when they were taken: client-go's `isInInitialList`.
    pub fn is_initial(&self) -> bool {
        self.initial
    }
}

impl<O: Object> Drop for Popped<O> {
    fn drop(&mut self) {
        self.fifo.finish();
    }
}

impl<O: Object + fmt::Debug> fmt::Debug for Popped<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Popped").field("entries", &self.entries).field("initial", &self.initial).finish_non_exhaustive()
    }
}

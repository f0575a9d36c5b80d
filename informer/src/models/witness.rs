//! A handler that checks what it is told.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use kubewire_indexer::{Deleted, Indexer};

use super::world::{LAST, PodRef};
use crate::latch::Latch;
use crate::{ResourceEventHandler, sync};

/// What a [`Witness`] and the model know of it.
#[derive(Clone, Default)]
pub(super) struct Told {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    /// The state of the world as it was told.
    known: Mutex<BTreeMap<&'static str, u64>>,
    busy: AtomicBool,
    over: AtomicBool,
    /// It was told of the last change.
    last: Latch,
    dropped: AtomicBool,
}

impl Told {
    /// A handler. With a store it looks whether that is as new as what it is told.
    pub(super) fn witness(&self, store: Option<Indexer<PodRef>>) -> Witness {
        Witness { told: self.clone(), store }
    }

    /// From now on no call may run or begin.
    pub(super) fn is_over(&self) {
        self.inner.over.store(true, Ordering::SeqCst);
        if self.inner.busy.load(Ordering::SeqCst) {
            sync::complain("a call still runs".to_owned());
        }
    }

    pub(super) fn known(&self) -> BTreeMap<&'static str, u64> {
        self.inner.known.lock().expect("nobody panics").clone()
    }

    pub(super) fn is_busy(&self) -> bool {
        self.inner.busy.load(Ordering::SeqCst)
    }

    pub(super) fn is_dropped(&self) -> bool {
        self.inner.dropped.load(Ordering::SeqCst)
    }

    /// Set once it was told of the last change.
    pub(super) fn last(&self) -> Latch {
        self.inner.last.clone()
    }

    /// One notification: the state before, and the state now.
    fn told(&self, name: &'static str, old: Option<u64>, new: Option<u64>) {
        let known = {
            let mut known = self.inner.known.lock().expect("nobody panics");
            let known_before = match new {
                Some(new) => known.insert(name, new),
                None => known.remove(name),
            };
            known_before
        };
        if known != old {
            sync::complain(format!("{name} goes from {old:?} to {new:?}, but was told as {known:?}"));
        }
        if new == Some(LAST) {
            self.inner.last.set();
        }
    }
}

pub(super) struct Witness {
    told: Told,
    store: Option<Indexer<PodRef>>,
}

impl Witness {
    fn call(&self, name: &'static str, old: Option<u64>, new: Option<u64>) {
        let inner = &self.told.inner;
        sync::expect_no_lock("a handler is called");
        if inner.over.load(Ordering::SeqCst) || inner.busy.swap(true, Ordering::SeqCst) {
            sync::complain(format!("a call for {name} at a wrong time"));
        }
        if let (Some(store), Some(new)) = (&self.store, new)
            && store.get_by_key(&super::world::key(name)).is_some_and(|pod| pod.version < new)
        {
            sync::complain(format!("the store is older than what is told of {name}"));
        }
        // The call takes its time.
        shuttle::thread::yield_now();
        self.told.told(name, old, new);
        inner.busy.store(false, Ordering::SeqCst);
    }
}

impl ResourceEventHandler<PodRef> for Witness {
    fn on_add(&mut self, object: PodRef, _: bool) {
        self.call(object.name, None, Some(object.version));
    }

    fn on_update(&mut self, old: PodRef, new: PodRef) {
        self.call(new.name, Some(old.version), Some(new.version));
    }

    fn on_delete(&mut self, deleted: Deleted<PodRef>) {
        let Some(last) = deleted.last_known() else { return sync::complain("a tombstone".to_owned()) };
        // The last state comes with the version of the deletion.
        let before = self.told.known().get(last.name).copied();
        self.call(last.name, before.or(Some(0)), None);
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        sync::expect_no_lock("a handler is dropped");
        self.told.inner.dropped.store(true, Ordering::SeqCst);
    }
}

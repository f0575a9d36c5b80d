//! Reading one's own writes.

mod overlay;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::sync::Mutex;
use crate::{Deleted, Id, IndexError, Indexer, Object, ObjectId, ObjectKey, compare_versions};
use overlay::{Entry, Overlay};

/// How long a write is remembered.
const TTL: Duration = Duration::from_secs(5 * 60);
/// How many writes are remembered.
const LEN_MAX: usize = 100;

/// Lets a controller read its own writes: what it wrote is laid over an indexer until the indexer has caught up, as
/// client-go's `MutationCache`.
///
/// Tell it each answer to an update ([`mutation`](Self::mutation)), and read from it instead of from the indexer. Of
/// the two states of an object the one with the higher version counts, see [`compare_versions`]; where versions
/// cannot be compared it is the indexer's. Tell it also what the informer sees
/// ([`on_add_or_update`](Self::on_add_or_update), [`on_delete`](Self::on_delete)): without that a write of an object
/// that was deleted meanwhile can seem to be there until it expires.
///
/// It remembers the 100 writes used last, each for at most 5 minutes. What is missing in the indexer is missing
/// here, because an object that has not arrived looks like one that was deleted; unless
/// [`include_adds`](MutationCacheOptions::include_adds) is set, and then the caller must be able to live with an
/// object that is gone.
///
/// ```
/// use std::sync::Arc;
/// use kubewire_indexer::{Id, Indexer, Meta, MutationCache, ObjectKey};
///
/// struct Pod(&'static str);
///
/// impl Meta for Pod {
///     fn id(&self) -> Id<'_> {
///         Id::new("default", "web").resource_version(self.0)
///     }
/// }
///
/// let indexer = Indexer::new();
/// indexer.add(Arc::new(Pod("9")))?;
/// let pods = MutationCache::new(indexer.clone());
/// pods.mutation(Arc::new(Pod("10"))); // the answer to an update
///
/// let key = ObjectKey::new("default", "web");
/// assert_eq!(pods.get_by_key(&key).unwrap().0, "10");
/// indexer.add(Arc::new(Pod("11")))?;
/// assert_eq!(pods.get_by_key(&key).unwrap().0, "11");
/// # Ok::<(), kubewire_indexer::KeyError>(())
/// ```
///
/// Cloning gives another handle to the same content.
pub struct MutationCache<O> {
    inner: Arc<Inner<O>>,
}

struct Inner<O> {
    indexer: Indexer<O>,
    include_adds: bool,
    now: Box<dyn Fn() -> Instant + Send + Sync>,
    /// The writes. The indexer is read under this lock, never the other way round, so that a write cannot be
    /// taken out because the indexer has caught up and the indexer's state from before be handed out.
    overlay: Mutex<Overlay<O>>,
}

/// How a [`MutationCache`] is to behave.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MutationCacheOptions {
    /// How long a write is remembered; 5 minutes.
    pub ttl: Duration,
    /// How many writes are remembered, of which those used last are kept; 100.
    pub len_max: usize,
    /// Whether an object that was written is there although the indexer does not have it; false.
    pub include_adds: bool,
}

impl Default for MutationCacheOptions {
    fn default() -> Self {
        Self { ttl: TTL, len_max: LEN_MAX, include_adds: false }
    }
}

impl MutationCacheOptions {
    /// With writes remembered for this long.
    #[must_use = "the options are returned, not changed in place"]
    pub fn ttl(self, ttl: Duration) -> Self {
        Self { ttl, ..self }
    }

    /// With at most so many writes remembered.
    #[must_use = "the options are returned, not changed in place"]
    pub fn len_max(self, len_max: usize) -> Self {
        Self { len_max, ..self }
    }

    /// With objects that were written and are not in the indexer.
    #[must_use = "the options are returned, not changed in place"]
    pub fn include_adds(self) -> Self {
        Self { include_adds: true, ..self }
    }
}

impl<O: Object> MutationCache<O> {
    /// Over this indexer, with the default options.
    pub fn new(indexer: Indexer<O>) -> Self {
        Self::with_options(indexer, MutationCacheOptions::default())
    }

    /// Over this indexer.
    pub fn with_options(indexer: Indexer<O>, options: MutationCacheOptions) -> Self {
        Self::with_clock(indexer, options, Instant::now)
    }

    /// Over this indexer, with the clock that tells the time now.
    pub fn with_clock(
        indexer: Indexer<O>,
        options: MutationCacheOptions,
        now: impl Fn() -> Instant + Send + Sync + 'static,
    ) -> Self {
        let overlay = Mutex::new(Overlay::new(options.len_max, options.ttl));
        Self { inner: Arc::new(Inner { indexer, include_adds: options.include_adds, now: Box::new(now), overlay }) }
    }

    /// Remembers what was written. It is not believed if something newer was written, or if the object is known
    /// to be deleted. An object without a name is ignored.
    pub fn mutation(&self, object: O) {
        if object.try_key().is_ok() {
            let id = ObjectId::new(object.id());
            self.with(|overlay, now| overlay.mutation(object, id, now));
        }
    }

    /// The indexer has this state of an object.
    pub fn on_add_or_update(&self, object: &O) {
        let id = ObjectId::new(object.id());
        self.with(|overlay, now| overlay.on_add_or_update(id.id(), now));
    }

    /// An object was deleted. Of a tombstone its last known state counts; without one nothing is known.
    pub fn on_delete(&self, deleted: &Deleted<O>) {
        if let Some(object) = deleted.last_known() {
            let id = ObjectId::new(object.id());
            self.with(|overlay, now| overlay.on_delete(id.id(), now));
        }
    }

    /// The newer one of the indexer's state and the written one.
    ///
    /// Cost: two look-ups, one of them under a lock of its own.
    pub fn get_by_key(&self, key: &ObjectKey) -> Option<O> {
        let (stored, written) = self.with(|overlay, now| {
            let stored = self.inner.indexer.get_by_key(key);
            (stored, overlay.get(key, now).cloned())
        });
        match self.judge(stored, written.as_ref()) {
            Judged::Stored(object) => object,
            Judged::Obsolete(object, serial) => {
                self.with(|overlay, _| overlay.remove_obsolete(key, serial));
                Some(object)
            }
            Judged::Written => written.and_then(|written| written.object),
        }
    }

    /// The objects under this value of the index, each in its newer state, in no order. Where the written state is
    /// the newer one, its values decide, not the indexer's.
    ///
    /// Cost: O(results), and O(writes), at most 100 by default.
    pub fn by_index(&self, name: &str, value: &str) -> Result<Vec<O>, IndexError> {
        let store = self.inner.indexer.store();
        let (stored, written) = self.with(|overlay, now| {
            let stored = store.members(name, value, Clone::clone)?;
            let written = overlay.entries(now).cloned().map(|entry| (store.get(&entry.id.key()), entry));
            Ok::<_, IndexError>((stored, written.collect::<Vec<_>>()))
        })?;
        let mut stored: HashMap<ObjectKey, O> = stored.into_iter().collect();
        let mut objects = Vec::new();
        let mut obsolete = Vec::new();
        for (counterpart, entry) in written {
            let key = entry.id.key();
            match self.judge(counterpart, Some(&entry)) {
                Judged::Stored(_) => {}
                Judged::Obsolete(_, serial) => obsolete.push((key, serial)),
                Judged::Written => {
                    stored.remove(&key);
                    // An index function that fails for it gives it no values, as in the store.
                    let is_under = |object: &O| {
                        store.index_values(name, object).is_ok_and(|values| values.iter().any(|other| other == value))
                    };
                    objects.extend(entry.object.filter(is_under));
                }
            }
        }
        self.with(|overlay, _| obsolete.iter().for_each(|(key, serial)| overlay.remove_obsolete(key, *serial)));
        objects.extend(stored.into_values());
        Ok(objects)
    }

    /// The number of writes, and of deletes, that are remembered.
    pub fn len(&self) -> usize {
        self.inner.overlay.lock().len()
    }

    /// Whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Which of the two counts. Called without a lock, because it asks objects for their ids.
    fn judge(&self, stored: Option<O>, written: Option<&Entry<O>>) -> Judged<O> {
        match (stored, written) {
            (stored, None) => Judged::Stored(stored),
            (None, Some(written)) if written.object.is_some() && self.inner.include_adds => Judged::Written,
            (None, Some(_)) => Judged::Stored(None),
            (Some(stored), Some(written)) => {
                if supersedes(stored.id(), written.id.id()) {
                    Judged::Obsolete(stored, written.serial)
                } else if written.object.is_none() {
                    // Of a deleted object the indexer has an older state: it went back in time, and is believed.
                    Judged::Stored(Some(stored))
                } else {
                    Judged::Written
                }
            }
        }
    }

    /// Calls the function under the lock, and drops what it threw out without it.
    fn with<T>(&self, function: impl FnOnce(&mut Overlay<O>, Instant) -> T) -> T {
        let now = (self.inner.now)();
        let mut overlay = self.inner.overlay.lock();
        let result = function(&mut overlay, now);
        let thrown_out = overlay.take_thrown_out();
        drop(overlay);
        drop(thrown_out);
        result
    }
}

enum Judged<O> {
    /// What the indexer has, or nothing.
    Stored(Option<O>),
    /// What the indexer has; what was written, of this serial number, is not needed any more.
    Obsolete(O, u64),
    /// What was written.
    Written,
}

/// Whether the first is as new as the second, or newer. True as well where they cannot be compared: what is told
/// last counts then.
fn supersedes(id: Id<'_>, other: Id<'_>) -> bool {
    compare_versions(id.resource_version, other.resource_version) != Some(Ordering::Less)
}

impl<O> Clone for MutationCache<O> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<O: Object> fmt::Debug for MutationCache<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MutationCache").field("len", &self.len()).finish_non_exhaustive()
    }
}

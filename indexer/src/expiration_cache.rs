//! A store whose entries expire.

use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hashbrown::Equivalent;

use crate::Store;
use crate::sync::AtomicU64;

/// A store whose entries expire, as client-go's `ExpirationCache`; [`ttl`](Self::ttl) makes its `NewTTLStore`.
///
/// Expiry is lazy: an entry is judged, and removed if it has expired, when it is read. No task sweeps, so that what
/// nobody reads stays. Each write stamps its entry anew; [`replace`](Self::replace) stamps all alike. Cloning gives
/// another handle to the same content.
///
/// Unlike client-go's, [`list_keys`](Self::list_keys) leaves out what has expired.
///
/// ```
/// use std::time::Duration;
/// use kubewire_indexer::ExpirationCache;
///
/// let tokens = ExpirationCache::ttl(Duration::from_secs(60));
/// tokens.add("ann", 17);
/// assert_eq!(tokens.get(&"ann"), Some(17));
/// ```
///
/// Cost: that of a [`Store`]; expired values are dropped without its lock.
pub struct ExpirationCache<K, V> {
    store: Store<K, Entry<V>>,
    shared: Arc<Shared<V>>,
}

struct Shared<V> {
    expired: Box<Policy<V>>,
    now: Box<dyn Fn() -> Instant + Send + Sync>,
    /// Counts the writes, so that an entry which was written while it was judged is not removed.
    writes: AtomicU64,
}

type Policy<V> = dyn Fn(&Stamped<V>, Instant) -> bool + Send + Sync;

/// A value and when it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stamped<V> {
    /// The value.
    pub value: V,
    /// When it was written last.
    pub written: Instant,
}

#[derive(Clone)]
struct Entry<V> {
    stamped: Stamped<V>,
    write: u64,
}

impl<K: Clone + Eq + Hash, V: Clone> ExpirationCache<K, V> {
    /// Entries live this long: at exactly this age an entry is alive. Zero means for ever.
    pub fn ttl(ttl: Duration) -> Self {
        Self::new(move |stamped, now| !ttl.is_zero() && now.saturating_duration_since(stamped.written) > ttl)
    }

    /// Entries expire as the function says, which is given the entry and the time now. It is called without a
    /// lock.
    pub fn new(expired: impl Fn(&Stamped<V>, Instant) -> bool + Send + Sync + 'static) -> Self {
        Self::with_clock(expired, Instant::now)
    }

    /// As [`new`](Self::new), with the clock that tells the time now.
    pub fn with_clock(
        expired: impl Fn(&Stamped<V>, Instant) -> bool + Send + Sync + 'static,
        now: impl Fn() -> Instant + Send + Sync + 'static,
    ) -> Self {
        let shared = Shared { expired: Box::new(expired), now: Box::new(now), writes: AtomicU64::new(0) };
        Self { store: Store::new(), shared: Arc::new(shared) }
    }

    /// Adds a value, or replaces the one of the same key; it is stamped with the time now.
    pub fn add(&self, key: K, value: V) {
        self.store.add(key, self.entry(value, (self.shared.now)()));
    }

    /// The same as [`add`](Self::add): the stamp is renewed.
    pub fn update(&self, key: K, value: V) {
        self.add(key, value);
    }

    /// Removes a value, expired or not. A key that is missing is no error.
    pub fn delete<Q: Equivalent<K> + Hash + ?Sized>(&self, key: &Q) {
        self.store.delete(key);
    }

    /// The value of a key, unless it has expired; then it is removed.
    pub fn get<Q: Equivalent<K> + Hash + ?Sized>(&self, key: &Q) -> Option<V> {
        let entry = self.store.get(key)?;
        if self.is_expired(&entry, (self.shared.now)()) {
            self.remove(key, &entry);
            return None;
        }
        Some(entry.stamped.value)
    }

    /// The values that have not expired, in no order; the others are removed.
    pub fn list(&self) -> Vec<V> {
        self.alive().into_iter().map(|(_, value)| value).collect()
    }

    /// The keys of the values that have not expired, in no order; the others are removed.
    pub fn list_keys(&self) -> Vec<K> {
        self.alive().into_iter().map(|(key, _)| key).collect()
    }

    /// Replaces the whole content in one step; all entries are stamped with the time now.
    pub fn replace(&self, entries: impl IntoIterator<Item = (K, V)>, version: &str) {
        let now = (self.shared.now)();
        self.store.replace_at(entries.into_iter().map(|(key, value)| (key, self.entry(value, now))), version);
    }

    /// Remembers a version.
    pub fn bookmark(&self, version: &str) {
        self.store.bookmark(version);
    }

    /// The version of the last list or bookmark.
    pub fn last_version(&self) -> String {
        self.store.last_version()
    }

    /// The number of entries, expired ones that nobody has read since among them.
    pub fn len(&self) -> usize {
        self.store.len()
    }

    /// Whether there is no entry, not even an expired one.
    pub fn is_empty(&self) -> bool {
        self.store.is_empty()
    }

    fn alive(&self) -> Vec<(K, V)> {
        let now = (self.shared.now)();
        let mut alive = self.store.entries();
        alive.retain(|(key, entry)| {
            let expired = self.is_expired(entry, now);
            if expired {
                self.remove(key, entry);
            }
            !expired
        });
        alive.into_iter().map(|(key, entry)| (key, entry.stamped.value)).collect()
    }

    fn entry(&self, value: V, written: Instant) -> Entry<V> {
        let write = self.shared.writes.fetch_add(1, Ordering::Relaxed);
        Entry { stamped: Stamped { value, written }, write }
    }

    fn is_expired(&self, entry: &Entry<V>, now: Instant) -> bool {
        (self.shared.expired)(&entry.stamped, now)
    }

    /// Removes the entry, unless it was written since.
    fn remove<Q: Equivalent<K> + Hash + ?Sized>(&self, key: &Q, judged: &Entry<V>) {
        self.store.remove_if(key, |entry| entry.write == judged.write);
    }
}

impl<K, V> Clone for ExpirationCache<K, V> {
    fn clone(&self) -> Self {
        Self { store: self.store.clone(), shared: Arc::clone(&self.shared) }
    }
}

impl<K: Clone + Eq + Hash, V: Clone> fmt::Debug for ExpirationCache<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ExpirationCache").field("len", &self.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Cache = ExpirationCache<&'static str, u32>;

    /// A cache with this TTL, and a function that moves its clock.
    fn cache(ttl: Duration) -> (Cache, impl Fn(Duration)) {
        let start = Instant::now();
        let passed = Arc::new(AtomicU64::new(0));
        let clock = Arc::clone(&passed);
        let expired = move |stamped: &Stamped<u32>, now: Instant| !ttl.is_zero() && now - stamped.written > ttl;
        let now = move || start + Duration::from_nanos(clock.load(Ordering::Relaxed));
        let advance = move |by: Duration| {
            passed.fetch_add(by.as_nanos() as u64, Ordering::Relaxed);
        };
        (ExpirationCache::with_clock(expired, now), advance)
    }

    const TTL: Duration = Duration::from_secs(30);
    const NANO: Duration = Duration::from_nanos(1);

    #[test]
    fn an_expired_entry_is_absent_and_removed_by_the_get() {
        let (cache, advance) = cache(TTL);
        cache.add("a", 1);
        advance(TTL);
        assert_eq!(cache.get(&"a"), Some(1), "exactly the time to live");
        advance(NANO);
        assert_eq!(cache.len(), 1);
        assert_eq!(cache.get(&"a"), None);
        assert_eq!(cache.len(), 0);
        cache.add("a", 2);
        assert_eq!(cache.get(&"a"), Some(2), "added again after it had expired");
    }

    #[test]
    fn a_list_drops_what_has_expired_and_an_update_renews() {
        let (cache, advance) = cache(TTL);
        cache.add("a", 1);
        cache.add("b", 2);
        advance(TTL);
        cache.update("b", 3);
        cache.add("c", 4);
        advance(NANO);
        let mut list = cache.list();
        list.sort_unstable();
        assert_eq!(list, [3, 4]);
        assert_eq!(cache.len(), 2);
        cache.replace([("x", 1), ("y", 2)], "7");
        assert_eq!(cache.last_version(), "7");
        advance(TTL + NANO);
        assert_eq!(cache.list_keys(), [""; 0]);
    }

    #[test]
    fn with_a_ttl_of_zero_nothing_ever_expires() {
        let (cache, advance) = cache(Duration::ZERO);
        cache.add("a", 1);
        advance(Duration::from_secs(u32::MAX.into()));
        assert_eq!(cache.get(&"a"), Some(1));
        let real = Cache::ttl(Duration::ZERO);
        real.add("a", 1);
        assert_eq!(real.get(&"a"), Some(1));
        real.delete(&"a");
        assert!(real.is_empty());
    }

    #[test]
    fn an_entry_that_is_written_while_it_is_judged_stays() {
        let store: Arc<std::sync::OnceLock<Cache>> = Arc::default();
        let writer = Arc::clone(&store);
        let policy = move |stamped: &Stamped<u32>, _| {
            if stamped.value == 1 {
                writer.get().unwrap().add("a", 2);
            }
            stamped.value == 1
        };
        store.set(ExpirationCache::new(policy)).unwrap();
        let cache = store.get().unwrap();
        cache.add("a", 1);
        assert_eq!(cache.get(&"a"), None);
        assert_eq!(cache.get(&"a"), Some(2));
    }
}

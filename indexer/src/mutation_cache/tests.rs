//! What a mutation cache answers, by the order in which it is told things.

use std::sync::atomic::{AtomicU64, Ordering as AtomicOrdering};

use super::*;
use crate::{IndexFunc, Indexers, Meta};

#[derive(Clone, Debug, PartialEq, Eq)]
struct Thing {
    uid: &'static str,
    version: u64,
    color: &'static str,
}

impl Meta for Thing {
    fn id(&self) -> Id<'_> {
        // The versions of a test are few: each has its text.
        let version = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11"][self.version as usize];
        Id::new("ns", "x").uid(self.uid).resource_version(version)
    }
}

type Shared = Arc<Thing>;

fn thing(uid: &'static str, version: u64) -> Shared {
    Arc::new(Thing { uid, version, color: "red" })
}

fn key() -> ObjectKey {
    ObjectKey::new("ns", "x")
}

struct Rig {
    indexer: Indexer<Shared>,
    cache: MutationCache<Shared>,
    seconds: Arc<AtomicU64>,
}

fn rig(options: MutationCacheOptions) -> Rig {
    let by_color = Indexers::none().with("color", IndexFunc::one(|thing: &Shared| thing.color));
    let indexer = Indexer::with_indexers(by_color).unwrap();
    let seconds = Arc::new(AtomicU64::new(0));
    let (start, clock) = (Instant::now(), Arc::clone(&seconds));
    let now = move || start + Duration::from_secs(clock.load(AtomicOrdering::Relaxed));
    Rig { cache: MutationCache::with_clock(indexer.clone(), options, now), indexer, seconds }
}

impl Rig {
    fn read(&self) -> Option<(&'static str, u64)> {
        self.cache.inner.overlay.lock().validate().unwrap();
        self.cache.get_by_key(&key()).map(|thing| (thing.uid, thing.version))
    }

    /// The informer stores this state and tells of it.
    fn seen(&self, thing: Shared) {
        self.indexer.add(thing.clone()).unwrap();
        self.cache.on_add_or_update(&thing);
    }

    /// The informer sees the deletion.
    fn deleted(&self, thing: Shared) {
        self.indexer.delete(&thing).unwrap();
        self.cache.on_delete(&Deleted::Known(thing));
    }
}

#[test]
fn the_newer_of_store_and_overlay_is_read_and_the_overlay_is_dropped_when_the_store_caught_up() {
    let rig = rig(MutationCacheOptions::default());
    rig.indexer.add(thing("u", 9)).unwrap();
    rig.cache.mutation(thing("u", 10));
    rig.cache.mutation(thing("u", 8));
    assert_eq!(rig.read(), Some(("u", 10)));
    assert_eq!(rig.cache.len(), 1);
    rig.indexer.add(thing("u", 10)).unwrap();
    assert_eq!(rig.read(), Some(("u", 10)));
    assert!(rig.cache.is_empty());
}

#[test]
fn what_is_missing_in_the_store_is_missing_unless_adds_are_included() {
    let plain = rig(MutationCacheOptions::default());
    plain.cache.mutation(thing("u", 1));
    assert_eq!(plain.read(), None);
    let adds = rig(MutationCacheOptions::default().include_adds());
    adds.cache.mutation(thing("u", 1));
    assert_eq!(adds.read(), Some(("u", 1)));
}

#[test]
fn an_equal_or_newer_state_clears_a_write_and_an_older_one_does_not() {
    for (seen, left) in [(5, 0), (6, 0), (4, 1)] {
        let rig = rig(MutationCacheOptions::default());
        rig.cache.mutation(thing("u", 5));
        rig.cache.on_add_or_update(&thing("u", seen));
        assert_eq!(rig.cache.len(), left, "seen {seen}");
    }
}

#[test]
fn a_delete_clears_a_write_of_the_same_object_or_of_an_older_version() {
    // uid | version of the delete | whether the write of u@5 is still read
    for (uid, version, kept) in [("u", 3, false), ("v", 6, false), ("v", 3, true), ("v", 5, false)] {
        let rig = rig(MutationCacheOptions::default().include_adds());
        rig.cache.mutation(thing("u", 5));
        rig.cache.on_delete(&Deleted::Known(thing(uid, version)));
        assert_eq!(rig.read().is_some(), kept, "{uid}@{version}");
    }
}

#[test]
fn a_write_that_is_told_after_the_delete_was_seen_is_not_believed() {
    for tombstone in [false, true] {
        let rig = rig(MutationCacheOptions::default().include_adds());
        rig.seen(thing("u", 1));
        rig.indexer.delete(&thing("u", 3)).unwrap();
        rig.cache.on_delete(&match tombstone {
            false => Deleted::Known(thing("u", 3)),
            true => Deleted::final_state_unknown(key(), Some(thing("u", 1))),
        });
        rig.cache.mutation(thing("u", 2));
        assert_eq!(rig.read(), None);
        // Another object of that name is not meant by it.
        rig.cache.mutation(thing("v", 4));
        assert_eq!(rig.read(), Some(("v", 4)));
    }
}

#[test]
fn a_late_write_does_not_hide_the_object_that_was_created_again() {
    let rig = rig(MutationCacheOptions::default());
    rig.seen(thing("u", 1));
    rig.deleted(thing("u", 3));
    rig.seen(thing("v", 4));
    rig.cache.mutation(thing("u", 2));
    assert_eq!(rig.read(), Some(("v", 4)));
    assert!(rig.cache.is_empty());
}

#[test]
fn by_index_shows_adds_before_the_store_has_them_and_a_delete_hides_them() {
    let rig = rig(MutationCacheOptions::default().include_adds());
    let colors = |color: &str| rig.cache.by_index("color", color).unwrap().len();
    rig.cache.mutation(thing("u", 1));
    assert_eq!(colors("red"), 1);
    assert_eq!(colors("blue"), 0);
    rig.cache.on_delete(&Deleted::Known(thing("u", 2)));
    assert_eq!(colors("red"), 0);
    assert!(rig.cache.by_index("nope", "red").is_err());
}

#[test]
fn by_index_files_an_object_under_the_values_of_its_newer_state() {
    let rig = rig(MutationCacheOptions::default());
    let colors = |color: &str| rig.cache.by_index("color", color).unwrap().len();
    rig.seen(thing("u", 1));
    rig.cache.mutation(Arc::new(Thing { uid: "u", version: 2, color: "blue" }));
    assert_eq!((colors("red"), colors("blue")), (0, 1));
    rig.indexer.add(thing("u", 3)).unwrap();
    assert_eq!((colors("red"), colors("blue")), (1, 0));
    assert!(rig.cache.is_empty());
}

#[test]
fn writes_expire_and_the_least_recently_used_ones_make_room() {
    let rig = rig(MutationCacheOptions::default().include_adds().ttl(Duration::from_secs(60)));
    rig.cache.mutation(thing("u", 1));
    rig.seconds.store(60, AtomicOrdering::Relaxed);
    assert_eq!(rig.read(), Some(("u", 1)));
    rig.seconds.store(61, AtomicOrdering::Relaxed);
    assert_eq!(rig.read(), None);
    assert!(rig.cache.is_empty());

    let now = Instant::now();
    let mut overlay = Overlay::new(2, Duration::MAX);
    let write = |overlay: &mut Overlay<&str>, name| {
        overlay.mutation(name, ObjectId::new(Id::new("", name)), now);
        overlay.validate().unwrap();
    };
    write(&mut overlay, "a");
    write(&mut overlay, "b");
    assert!(overlay.get(&ObjectKey::cluster("a"), now).is_some());
    write(&mut overlay, "c");
    let mut left: Vec<_> = overlay.entries(now).filter_map(|entry| entry.object).collect();
    left.sort_unstable();
    assert_eq!(left, ["a", "c"]);
    assert_eq!(overlay.take_thrown_out(), ["b"]);
}

#[test]
fn a_cache_for_no_writes_holds_none() {
    let rig = rig(MutationCacheOptions::default().include_adds().len_max(0));
    rig.cache.mutation(thing("u", 1));
    assert_eq!(rig.read(), None);
}

#[test]
fn a_write_that_comes_while_a_reader_finds_an_older_one_obsolete_stays() {
    let mut overlay = Overlay::new(LEN_MAX, TTL);
    let now = Instant::now();
    for version in [1, 2] {
        let thing = thing("u", version);
        let serial = overlay.get(&key(), now).map(|entry| entry.serial);
        overlay.mutation(thing.clone(), ObjectId::new(Meta::id(&*thing)), now);
        serial.into_iter().for_each(|serial| overlay.remove_obsolete(&key(), serial));
    }
    assert_eq!(overlay.len(), 1);
}

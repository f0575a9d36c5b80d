//! What a store costs in bytes. A test binary of its own, because it counts what the whole process allocates.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kubewire_indexer::{Id, IndexFunc, Indexer, Indexers, Meta, ObjectId, ObjectKey};

struct Counting;

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

struct Thing(ObjectId);

impl Meta for Thing {
    fn id(&self) -> Id<'_> {
        self.0.id()
    }

    fn key(&self) -> ObjectKey {
        self.0.key()
    }
}

const N: usize = 100_000;

fn things() -> Vec<Arc<Thing>> {
    let thing = |n: usize| {
        let (namespace, name) = (format!("namespace-{}", n / 100), format!("thing-{n}-7d9c8b6f5-x2x4z"));
        Arc::new(Thing(ObjectId::new(Id::new(&namespace, &name).resource_version("1"))))
    };
    (0..N).map(thing).collect()
}

/// What this allocates and keeps, in bytes an object.
fn bytes_each<T>(make: impl FnOnce() -> T) -> (T, usize) {
    let before = ALLOCATED.load(Ordering::Relaxed);
    let made = make();
    let after = ALLOCATED.load(Ordering::Relaxed);
    (made, after.saturating_sub(before) / N)
}

#[test]
fn a_store_and_its_indices_cost_few_bytes_an_object() {
    let things = things();
    let indexer = Indexer::new();
    let (_, stored) = bytes_each(|| things.iter().for_each(|thing| drop(indexer.add(thing.clone()))));
    // 72 of them are the key and the handle themselves.
    assert!(stored <= 72 + 16, "{stored} bytes an object");

    let none = Indexers::none().with("none", IndexFunc::maybe(|_: &Arc<Thing>| None));
    for (indexers, at_most) in [(Indexers::by_namespace(), 40), (none, 34)] {
        let (_, indexed) = bytes_each(|| indexer.add_indexers(indexers).unwrap());
        assert!(indexed <= at_most, "{indexed} bytes an object and index");
    }

    // A list again with the same objects: nothing is left of the old one.
    let (_, again) = bytes_each(|| indexer.replace(things.iter().cloned(), "2").unwrap());
    assert!(again <= 2, "{again} bytes an object more after a replace");

    let (_, left) = bytes_each(|| {
        things.iter().for_each(|thing| drop(indexer.delete(thing)));
        drop(things);
        let kept = ALLOCATED.load(Ordering::Relaxed);
        assert!(kept < N, "{kept} bytes kept by an empty store");
    });
    assert_eq!(left, 0);
}

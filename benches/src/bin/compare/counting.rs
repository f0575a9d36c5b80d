//! The allocator, which counts on demand.
//!
//! Off, it costs one relaxed load an allocation, so that timed runs are not slowed; counts come from a run of their
//! own. Where all of a cache is to be weighed it is on from the beginning.
#![expect(unsafe_code, reason = "an allocator is unsafe to implement; this one passes everything on")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::ops::Sub;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

pub(crate) struct Counting;

static ON: AtomicBool = AtomicBool::new(false);
static COUNT: AtomicU64 = AtomicU64::new(0);
static BYTES: AtomicU64 = AtomicU64::new(0);
static FREED: AtomicU64 = AtomicU64::new(0);

fn allocated(bytes: usize) {
    if ON.load(Relaxed) {
        COUNT.fetch_add(1, Relaxed);
        BYTES.fetch_add(bytes as u64, Relaxed);
    }
}

fn freed(bytes: usize) {
    if ON.load(Relaxed) {
        FREED.fetch_add(bytes as u64, Relaxed);
    }
}

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        allocated(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        allocated(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        freed(layout.size());
        allocated(size);
        // SAFETY: as the caller promises.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        freed(layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// What was counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Calls; a re-allocation is one.
    pub(crate) allocations: u64,
    pub(crate) bytes: u64,
    /// Allocated and not freed; less than nothing where more was freed.
    pub(crate) live: i64,
}

impl Counts {
    pub(crate) fn now() -> Self {
        let (bytes, freed) = (BYTES.load(Relaxed), FREED.load(Relaxed));
        Self { allocations: COUNT.load(Relaxed), bytes, live: bytes as i64 - freed as i64 }
    }
}

impl Sub for Counts {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            allocations: self.allocations - before.allocations,
            bytes: self.bytes - before.bytes,
            live: self.live - before.live,
        }
    }
}

/// Counts from now on, or no more.
pub(crate) fn count(on: bool) {
    ON.store(on, Relaxed);
}

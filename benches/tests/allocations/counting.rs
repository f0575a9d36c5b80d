//! An allocator that counts, each thread for itself, so that tests beside each other count only their own.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

fn count() {
    // A thread that ends counts no more.
    let _ = COUNT.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as the caller promises.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// How often this thread allocates from its beginning to its end; growing counts as well.
pub(crate) struct Span(usize);

impl Span {
    pub(crate) fn begin() -> Self {
        Self(COUNT.get())
    }

    pub(crate) fn end(self) -> usize {
        COUNT.get() - self.0
    }

    /// From its beginning to that of a later one.
    pub(crate) fn until(&self, later: &Self) -> usize {
        later.0 - self.0
    }
}

/// How often this thread allocates meanwhile.
pub(crate) fn allocations(work: impl FnOnce()) -> usize {
    let span = Span::begin();
    work();
    span.end()
}

/// The allocations of one operation, once it has been done so often that everything has grown to its size.
pub(crate) fn each(count: usize, mut operation: impl FnMut(usize)) -> f64 {
    (0..count).for_each(&mut operation);
    allocations(|| (0..count).for_each(operation)) as f64 / count as f64
}

#[test]
fn the_counting_itself_is_right() {
    assert_eq!(allocations(|| drop(Box::new(1))), 1);
    assert_eq!(allocations(|| ()), 0);
    assert_eq!(each(10, |n| drop(vec![n])), 1.0);
}

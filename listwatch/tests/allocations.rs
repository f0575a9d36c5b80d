//! How often an object in protobuf allocates on its way into a cache.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use k8s_openapi::api::core::v1::Pod;
use kubewire_listwatch::{Decode, DecodeOptions, Packed, Protobuf};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call goes on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: as above.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Two generated pods of 6.7 kB, as the body of a list.
const PODS: &[u8] = include_bytes!("it/protobuf/pods.pb");

/// The first item of the list: its field 2, whose number stands in the body once before it.
fn item() -> &'static [u8] {
    let start = PODS.windows(3).position(|bytes| bytes == [0x12, 0xbd, 0x34]).expect("an item") + 3;
    &PODS[start..start + 0x34 * 0x80 + 0x3d]
}

#[test]
fn a_packed_pod_in_protobuf_is_one_allocation_of_less_than_3_kb() {
    let (item, options) = (item(), DecodeOptions::default());
    let before = ALLOCATIONS.get();
    let pod = <Packed<Pod> as Decode<Protobuf>>::decode(item, &options);
    assert_eq!(ALLOCATIONS.get() - before, 1);
    let pod = pod.unwrap();
    let len = pod.protobuf().unwrap().len();
    assert!(pod.size() < 2_900 && pod.size() < len + 160, "{} bytes, {len} of them the message", pod.size());

    let before = ALLOCATIONS.get();
    let same = pod.clone();
    assert!(same.labels().all(|(name, value)| same.protobuf().is_some() && !name.is_empty() && !value.is_empty()));
    assert_eq!(ALLOCATIONS.get() - before, 0, "reading what was noted");
}

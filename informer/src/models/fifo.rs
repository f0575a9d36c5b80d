//! The delta FIFO between producers and consumers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::FutureExt;
use shuttle::future::block_on;
use shuttle::thread;

use super::model;
use super::world::{PodRef, World};
use crate::{DeltaFifo, DeltaFifoOptions, Popped};

fn fifo() -> DeltaFifo<PodRef> {
    DeltaFifo::new(DeltaFifoOptions::default())
}

fn names(popped: &Popped<PodRef>) -> Vec<String> {
    popped.entries().iter().filter_map(|entry| Some(entry.key()?.to_string())).collect()
}

/// Takes entries until the FIFO is closed and empty. `out` counts those who hold some.
fn consume(fifo: &DeltaFifo<PodRef>, out: &AtomicUsize) -> Vec<String> {
    let mut taken = Vec::new();
    while let Ok(popped) = block_on(fifo.pop()) {
        assert_eq!(out.fetch_add(1, Ordering::SeqCst), 0, "given out while something is out");
        taken.extend(names(&popped));
        thread::yield_now();
        out.fetch_sub(1, Ordering::SeqCst);
        drop(popped);
    }
    taken
}

#[test]
fn each_entry_goes_to_one_of_two_consumers_and_never_to_both_at_a_time() {
    model(|| {
        let world = World::default();
        let fifo = fifo();
        let out = Arc::new(AtomicUsize::new(0));
        let consumers = [(); 2].map(|()| {
            let (fifo, out) = (fifo.clone(), Arc::clone(&out));
            thread::spawn(move || consume(&fifo, &out))
        });
        for name in ["a", "b", "c"] {
            fifo.add(world.pod(name, 1)).unwrap();
        }
        while !fifo.is_empty() {
            thread::yield_now();
        }
        fifo.close();
        let mut taken = consumers.map(|consumer| consumer.join().unwrap()).concat();
        taken.sort();
        assert_eq!(taken, ["a", "b", "c"]);
        assert_eq!(world.alive(), 0);
    });
}

#[test]
fn the_end_of_an_entry_wakes_who_waits_for_the_next() {
    model(|| {
        let world = World::default();
        let fifo = fifo();
        let consumers = [(); 2].map(|()| {
            let fifo = fifo.clone();
            thread::spawn(move || names(&block_on(fifo.pop()).unwrap()))
        });
        fifo.add(world.pod("a", 1)).unwrap();
        fifo.add(world.pod("b", 1)).unwrap();
        let mut taken = consumers.map(|consumer| consumer.join().unwrap()).concat();
        taken.sort();
        assert_eq!(taken, ["a", "b"]);
    });
}

#[test]
fn a_close_ends_all_pops_once_nothing_waits() {
    model(|| {
        let world = World::default();
        let fifo = fifo();
        let out = Arc::new(AtomicUsize::new(0));
        let consumers = [(); 4].map(|()| {
            let (fifo, out) = (fifo.clone(), Arc::clone(&out));
            thread::spawn(move || consume(&fifo, &out))
        });
        fifo.add(world.pod("a", 1)).unwrap();
        fifo.add(world.pod("b", 1)).unwrap();
        fifo.close();
        let mut taken = consumers.map(|consumer| consumer.join().unwrap()).concat();
        taken.sort();
        assert_eq!(taken, ["a", "b"]);
    });
}

#[test]
fn a_pop_that_is_dropped_leaves_its_entry_to_another() {
    model(|| {
        let world = World::default();
        let fifo = fifo();
        let dropped = thread::spawn({
            let fifo = fifo.clone();
            move || {
                // Polled once, then at any later moment dropped.
                let mut pop = Box::pin(fifo.pop());
                let first = block_on(std::future::poll_fn(|cx| std::task::Poll::Ready(pop.poll_unpin(cx))));
                thread::yield_now();
                drop(pop);
                match first {
                    std::task::Poll::Ready(popped) => names(&popped.unwrap()),
                    std::task::Poll::Pending => Vec::new(),
                }
            }
        });
        let consumer = thread::spawn({
            let fifo = fifo.clone();
            move || names(&block_on(fifo.pop()).unwrap())
        });
        fifo.add(world.pod("a", 1)).unwrap();
        if dropped.join().unwrap() == ["a"] {
            fifo.add(world.pod("b", 1)).unwrap();
            assert_eq!(consumer.join().unwrap(), ["b"]);
        } else {
            assert_eq!(consumer.join().unwrap(), ["a"]);
        }
    });
}

#[test]
fn who_waits_for_the_first_list_is_woken_when_all_of_it_is_processed() {
    model(|| {
        let world = World::default();
        let fifo = fifo();
        let processed = Arc::new(AtomicUsize::new(0));
        let consumer = thread::spawn({
            let (fifo, processed) = (fifo.clone(), Arc::clone(&processed));
            move || {
                for _ in 0..2 {
                    let popped = block_on(fifo.pop()).unwrap();
                    assert!(popped.is_initial());
                    processed.fetch_add(1, Ordering::SeqCst);
                    drop(popped);
                }
            }
        });
        let producer = thread::spawn({
            let fifo = fifo.clone();
            move || fifo.replace([world.pod("a", 1), world.pod("b", 1)], "1").unwrap()
        });
        block_on(fifo.synced());
        assert_eq!(processed.load(Ordering::SeqCst), 2);
        consumer.join().unwrap();
        producer.join().unwrap();
    });
}

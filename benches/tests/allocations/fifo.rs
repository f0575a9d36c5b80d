//! The delta FIFO.

use std::sync::Arc;

use kubewire_indexer::Deleted;
use kubewire_informer::{Delivery, DeltaFifo, DeltaFifoOptions};

use crate::counting::each;
use crate::thing::{Thing, things};

const COUNT: usize = 200;

fn fifo(delivery: Delivery) -> DeltaFifo<Arc<Thing>> {
    DeltaFifo::new(DeltaFifoOptions { delivery, ..DeltaFifoOptions::default() })
}

#[test]
fn a_delta_that_is_pushed_and_popped_costs_no_allocation() {
    let things = things(COUNT, 1);
    for delivery in [Delivery::PerKey, Delivery::Coalescing, Delivery::InOrder] {
        let fifo = fifo(delivery);
        let cycle = each(COUNT, |n| {
            fifo.update(Arc::clone(&things[n])).unwrap();
            drop(fifo.try_pop(1).unwrap().unwrap());
        });
        assert_eq!(cycle, 0.0, "{delivery:?}");
    }
}

#[test]
fn deltas_that_are_popped_together_cost_a_few_allocations_for_all() {
    let things = things(COUNT, 1);
    for delivery in [Delivery::PerKey, Delivery::Coalescing, Delivery::InOrder] {
        let fifo = fifo(delivery);
        let round = each(5, |_| {
            things.iter().for_each(|thing| fifo.update(Arc::clone(thing)).unwrap());
            let popped = fifo.try_pop(COUNT).unwrap().unwrap();
            assert_eq!(popped.entries().len(), COUNT);
        });
        assert!(round <= 3.0, "{delivery:?}: {round} for {COUNT}");
    }
}

#[test]
fn deltas_of_one_key_are_joined_at_one_allocation() {
    let (things, fifo) = (things(COUNT, 1), fifo(Delivery::PerKey));
    let cycle = each(COUNT, |n| {
        fifo.add(Arc::clone(&things[n])).unwrap();
        fifo.update(Arc::clone(&things[n])).unwrap();
        fifo.delete(Deleted::Known(Arc::clone(&things[n]))).unwrap();
        assert_eq!(fifo.try_pop(1).unwrap().unwrap().entries()[0].as_slice().len(), 3);
    });
    assert!(cycle <= 1.0, "{cycle}: room for more deltas of a key");
}

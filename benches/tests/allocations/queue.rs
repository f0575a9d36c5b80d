//! The work queue: no operation allocates, once the queue has its size.

use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use kubewire_indexer::ObjectKey;
use kubewire_ratelimit::{ManualClock, default_controller_rate_limiter};
use kubewire_workqueue::{ByPriority, MetricsProvider, Queue, QueueMetrics};

use crate::counting::each;

const KEYS: usize = 500;

fn keys() -> Vec<ObjectKey> {
    (0..KEYS).map(|n| ObjectKey::new("default", &format!("pod-{n}"))).collect()
}

struct Silent;

impl QueueMetrics for Silent {}

impl MetricsProvider for Silent {
    fn queue_metrics(&self, _: &str) -> Box<dyn QueueMetrics> {
        Box::new(Silent)
    }
}

#[test]
fn a_key_goes_its_way_without_an_allocation_in_every_kind_of_queue() {
    let keys = keys();
    let kinds = [
        ("plain", Queue::new()),
        ("metrics", Queue::builder().name("q").metrics(Arc::new(Silent)).build()),
        ("priority", Queue::builder().order(ByPriority::new(|key: &ObjectKey| key.name().len())).build()),
    ];
    for (name, queue) in kinds {
        let cycle = each(KEYS, |n| {
            queue.add(keys[n].clone());
            queue.add(keys[n].clone()); // it waits already
            let key = queue.try_get().unwrap();
            queue.add(keys[n].clone()); // now it is dirty
            key.done();
            queue.try_get().unwrap().done();
        });
        assert_eq!(cycle, 0.0, "{name}");
    }
}

#[test]
fn a_get_that_waits_and_is_called_allocates_nothing() {
    let (keys, queue) = (keys(), Queue::new());
    let mut context = Context::from_waker(Waker::noop());
    let cycle = each(KEYS, |n| {
        let mut get = std::pin::pin!(queue.get());
        assert!(get.as_mut().poll(&mut context).is_pending());
        queue.add(keys[n].clone());
        assert!(get.as_mut().poll(&mut context).is_ready());
    });
    assert_eq!(cycle, 0.0);
}

#[test]
fn delays_and_retries_allocate_nothing() {
    let (keys, time) = (keys(), ManualClock::new());
    let queue = Queue::builder().clock(time.clock()).build_rate_limiting(default_controller_rate_limiter());
    let round = each(4, |_| {
        for key in &keys {
            queue.add_after(key.clone(), Duration::from_secs(5));
            queue.add_after(key.clone(), Duration::from_secs(3));
            queue.add_rate_limited(key.clone());
        }
        time.advance(Duration::from_secs(3600));
        for _ in 0..KEYS {
            let key = queue.try_get().unwrap();
            assert_eq!(queue.num_requeues(&key), 1);
            queue.forget(&key);
        }
    });
    // The tables give their memory back when they empty, and grow again.
    assert!(round <= 40.0, "{round} allocations for {KEYS} keys");
}

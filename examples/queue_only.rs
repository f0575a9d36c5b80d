//! The queue alone: orders are checked when something about them changed. No Kubernetes anywhere.
//!
//! Who notices a change adds the order's number; a worker looks at the order as it is *then*. A number is never
//! processed by two workers at once, is not lost when it is added meanwhile, and is tried again, later and
//! later, when that fails.
//!
//! ```text
//! cargo run --example queue_only
//! ```

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kubewire_ratelimit::ItemExponentialFailureRateLimiter;
use kubewire_workqueue::RateLimitingQueue;
use tokio::task::JoinSet;

/// The shop: order 3 can be checked at the third attempt only, order 5 never.
#[derive(Default)]
struct Shop {
    attempts_of_three: AtomicUsize,
    checks: AtomicUsize,
}

impl Shop {
    async fn check(&self, order: u32) -> Result<(), &'static str> {
        self.checks.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(Duration::from_millis(2)).await;
        match order {
            3 if self.attempts_of_three.fetch_add(1, Ordering::Relaxed) < 2 => Err("the stock list is locked"),
            5 => Err("no such customer"),
            _ => Ok(()),
        }
    }
}

async fn worker(shop: Arc<Shop>, queue: RateLimitingQueue<u32>) {
    // `None` when the queue shuts down.
    while let Some(order) = queue.get().await {
        match shop.check(*order).await {
            Ok(()) => {
                println!("order {} is in order", *order);
                queue.forget(&order);
            }
            Err(error) if queue.num_requeues(&order) < 4 => {
                println!("order {}: {error}, again later", *order);
                queue.add_rate_limited(*order);
            }
            Err(error) => {
                println!("order {} is given up: {error}", *order);
                queue.forget(&order);
            }
        }
    } // The guard drops here: the order is done, or waits again if it was added meanwhile.
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    // A key that fails waits 10 ms, then 20, 40 …, a second at most.
    let delays = ItemExponentialFailureRateLimiter::new(Duration::from_millis(10), Duration::from_secs(1));
    let queue = RateLimitingQueue::new(delays);
    let shop = Arc::new(Shop::default());

    for order in [1, 2, 2, 2, 3, 4, 5] {
        queue.add(order); // Adding a number that waits already changes nothing.
    }
    queue.add_after(6, Duration::from_millis(50));
    anyhow::ensure!(queue.len() == 5);
    // Whoever asks "why is my order not processed?" is answered.
    println!("{:?}", queue.snapshot());

    let mut workers = JoinSet::new();
    for _ in 0..2 {
        workers.spawn(worker(Arc::clone(&shop), queue.clone()));
    }

    // A program would wait for Ctrl-C; this one knows how it ends: 1, 2, 4 and 6 once, 3 three times, 5 five times.
    while shop.checks.load(Ordering::Relaxed) < 12 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    queue.shut_down_with_full_drain().await;
    workers.join_all().await;
    anyhow::ensure!(shop.checks.load(Ordering::Relaxed) == 12);
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}

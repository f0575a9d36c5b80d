//! Retries.

use kubewire_indexer::ObjectKey;
use kubewire_workqueue::RateLimitingQueue;

use crate::flags::{Defaults, Flags};
use crate::keys::make_keys;
use crate::limiter::{LIMITERS, Limiter, exponential, when};
use crate::runtime::runtime;
use crate::sample::{Sample, bench, expect, measure};

pub(crate) const FLAGS: Defaults = &[("n", "100000"), ("repeat", "1")];

type Queue = RateLimitingQueue<ObjectKey>;

pub(crate) fn run(flags: &Flags) -> anyhow::Result<()> {
    let (n, repeat) = (flags.get("n")?, flags.get("repeat")?);
    let keys = make_keys(n);
    for (name, make) in LIMITERS {
        let alone = |case: &str, failed: bool, each: fn(&mut Limiter, &ObjectKey)| {
            bench(&format!("limiter/{name}/{case}"), n, repeat, || {
                let mut limiter = make();
                if failed {
                    keys.iter().for_each(|key| when(&mut limiter, key));
                }
                measure(|| keys.iter().for_each(|key| each(&mut limiter, key)))
            });
        };
        alone("when-first", false, when);
        alone("when-again", true, when);
        alone("num-requeues", true, |limiter, key| expect("requeues", limiter.num_requeues(key), 1));
        alone("forget", true, |limiter, key| limiter.forget(key));

        // Through the queue: nobody takes what becomes ready.
        let through = |case: &str, failed: bool, each: fn(&Queue, &ObjectKey)| {
            bench(&format!("queue-ratelimited/{name}/{case}"), n, repeat, || {
                let queue = Queue::new(make());
                if failed {
                    keys.iter().for_each(|key| queue.add_rate_limited(key.clone()));
                }
                measure(|| keys.iter().for_each(|key| each(&queue, key)))
            });
        };
        through("add-rate-limited", false, |queue, key| queue.add_rate_limited(key.clone()));
        through("num-requeues", true, |queue, key| expect("requeues", queue.num_requeues(key), 1));
        through("forget", true, |queue, key| queue.forget(key));
    }
    bench("queue-ratelimited/retry-3-times", 4 * n, repeat, || retry(&keys));
    Ok(())
}

/// A worker's loop: each key fails three times (5, 10 and 20 ms), and is then forgotten.
fn retry(keys: &[ObjectKey]) -> Sample {
    let (queue, n) = (Queue::new(exponential()), keys.len());
    let sample = measure(|| {
        let worker = queue.clone();
        let worker = runtime().spawn(async move {
            for _ in 0..4 * n {
                let Some(key) = worker.get().await else { break };
                if worker.num_requeues(&key) < 3 {
                    worker.add_rate_limited(key.clone());
                } else {
                    worker.forget(&key);
                }
            }
        });
        keys.iter().for_each(|key| queue.add(key.clone()));
        runtime().block_on(worker).expect("the worker does not panic");
    });
    expect("left", queue.len(), 0);
    sample
}

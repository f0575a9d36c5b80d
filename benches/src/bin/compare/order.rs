//! The queue by priority, for the cases of controller-runtime's priority queue.

use kubewire_indexer::ObjectKey;
use kubewire_workqueue::{ByPriority, Queue};

use crate::flags::Flags;
use crate::keys::make_keys;
use crate::prometheus;
use crate::queue_cycle::cycle;
use crate::sample::{bench, expect, fail, measure};

pub(crate) fn run(flags: &Flags) -> anyhow::Result<()> {
    let order = || ByPriority::new(|_: &ObjectKey| 0);
    cycle("priority-queue", flags, || Queue::builder().order(order()).build())?;
    let named = || Queue::builder().name("compare").metrics(prometheus::provider()).order(order()).build();
    cycle("priority-queue-metrics", flags, named)?;

    // Three priorities, all added before the first is taken; the order is checked.
    let keys = make_keys(flags.keys()?);
    bench("priority-queue/fill-drain-3-priorities", keys.len(), flags.get("repeat")?, || {
        let queue = Queue::builder().order(ByPriority::new(|ranked: &(i32, ObjectKey)| ranked.0)).build();
        let mut got = Vec::with_capacity(keys.len());
        let sample = measure(|| {
            for (key, &priority) in keys.iter().zip([0, -100, 10].iter().cycle()) {
                queue.add((priority, key.clone()));
            }
            for _ in 0..keys.len() {
                match queue.try_get() {
                    Ok(ranked) => {
                        got.push(-ranked.0);
                        ranked.done();
                    }
                    Err(error) => fail(error),
                }
            }
        });
        expect("in order of priority", got.is_sorted(), true);
        sample
    });
    Ok(())
}

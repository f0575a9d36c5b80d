//! Who waits and who wakes, in every interleaving.
//!
//! ```text
//! RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom cargo test -p kubewire-workqueue --test loom --release
//! ```
//!
//! Each model is a few threads with a few operations; loom runs it in all orders of their locks and wake-ups, with at
//! most three preemptions in a run (`LOOM_MAX_PREEMPTIONS` sets another bound), and reports a deadlock, a lost wake-up,
//! or a failed assertion. A get that is never woken is a deadlock, so most models assert by ending. The lock of the queue
//! and that of the manual clock are loom's, and so is the parking of threads. Bugs that these models catch stand in
//! `testing/mutants/mutants.toml`, those with `cfg = "loom"`.
#![cfg(loom)]

mod delays;
mod drains;
mod gets;
mod workers;

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use kubewire_workqueue::Queue;
use loom::future::block_on;

const SECOND: Duration = Duration::from_secs(1);

fn model(run: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound.get_or_insert(3);
    let orders = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&orders);
    builder.check(move || {
        count.fetch_add(1, Ordering::Relaxed);
        run();
    });
    println!("{} orders", orders.load(Ordering::Relaxed));
}

/// Begins a get, polls it once, and drops it if it waits.
fn poll_once(queue: &Queue<&'static str>) -> Option<&'static str> {
    block_on(async {
        let mut get = pin!(queue.get_key());
        poll_fn(|cx| {
            Poll::Ready(match get.as_mut().poll(cx) {
                Poll::Ready(key) => key,
                Poll::Pending => None,
            })
        })
        .await
    })
}

//! A queue of keys to be processed: each key once, by one worker at a time, now or later.
//!
//! The policies are those of client-go's `util/workqueue`. Nothing here knows of Kubernetes; a key is any value that can
//! be hashed, compared and cloned.
//!
//! A shop that sends invoices. Whoever notices that an invoice needs looking at adds its number; how often does not
//! matter. Workers take numbers, look at the invoice as it is *then*, and try again later where that fails.
//!
//! ```
//! use kubewire_workqueue::RateLimitingQueue;
//! use kubewire_workqueue::ratelimit::default_item_based_rate_limiter;
//! use std::time::Duration;
//!
//! async fn send(invoice: &str) -> Result<(), &'static str> {
//!     if invoice == "invoice 18" { Err("the mail server is away") } else { Ok(()) }
//! }
//!
//! async fn worker(queue: RateLimitingQueue<String>) {
//!     // Waits for a key. `None`: the queue is shutting down.
//!     while let Some(invoice) = queue.get().await {
//!         match send(&invoice).await {
//!             Ok(()) => queue.forget(&invoice),
//!             Err(_) if queue.num_requeues(&invoice) < 5 => queue.add_rate_limited(invoice.clone()),
//!             Err(error) => {
//!                 queue.forget(&invoice);
//!                 println!("{invoice} is given up: {error}");
//!             }
//!         }
//!     } // `invoice` drops: done. If it was added meanwhile it waits again.
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?.block_on(async {
//! let queue = RateLimitingQueue::new(default_item_based_rate_limiter());
//! let workers = [tokio::spawn(worker(queue.clone())), tokio::spawn(worker(queue.clone()))];
//!
//! queue.add("invoice 17".to_owned());
//! queue.add("invoice 18".to_owned());
//! queue.add("invoice 17".to_owned()); // Waits already: processed once.
//! queue.add_after("invoice 19".to_owned(), Duration::from_secs(3600));
//! # tokio::time::sleep(Duration::from_secs(7200)).await;
//!
//! queue.shut_down_with_full_drain().await;
//! for worker in workers {
//!     worker.await?;
//! }
//! # assert_eq!(queue.num_requeues(&"invoice 18".to_owned()), 0);
//! # Ok::<_, tokio::task::JoinError>(())
//! # })?;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! # What there is
//!
//! - [`Queue`] is the queue: [`add`](Queue::add), [`add_after`](Queue::add_after), [`get`](Queue::get),
//!   [`shut_down`](Queue::shut_down) and its kin. Cheap to clone; for tasks and threads.
//! - [`Guard`] is a key that was got. Dropping it says *done*. ([`Queue::get_key`] and [`Queue::done`] are the same by
//!   hand.) [`Get`] is the future that waits for one.
//! - [`RateLimitingQueue`] is a queue with a limiter for retries: [`add_rate_limited`](RateLimitingQueue::add_rate_limited),
//!   [`forget`](RateLimitingQueue::forget), [`num_requeues`](RateLimitingQueue::num_requeues). The limiters are in
//!   [`ratelimit`].
//! - [`QueueBuilder`] gives a queue a name, [metrics], a clock, or another [`Order`] than [`Fifo`], e.g. [`ByPriority`];
//!   [`prioritized`](QueueBuilder::prioritized) makes one whose keys are added at priorities.
//! - [`Drain`] waits until a queue that shuts down has drained, and [`DrainOutcome`] tells how that ended.
//! - [`Snapshot`] and [`KeyStatus`] answer "why is my key not processed?".
//! - [`parallelize_until`] does many pieces of work on a few tasks.
//!
//! # The life of a key
//!
//! | state | comes by | leaves by |
//! |---|---|---|
//! | delayed | `add_after`, `add_rate_limited` | its moment, `cancel_delayed`, or a shut-down, which drops it |
//! | waits | `add`, or the end of a delay; adding it again changes nothing | `get` |
//! | is processed | `get` | `done`: the guard drops |
//! | is processed, and dirty | `add` while it is processed | `done`: then it waits again, as the last |
//!
//! A key can be delayed beside any other state: a plain `add` does not take a delay back.
//!
//! # Shutting down
//!
//! | | adds | keys that wait | keys being processed | delayed keys |
//! |---|---|---|---|---|
//! | [`shut_down`](Queue::shut_down) | ignored | still handed out | not waited for | dropped, counted |
//! | [`shut_down_with_drain`](Queue::shut_down_with_drain) | ignored | still handed out | waited for | dropped, counted |
//! | [`shut_down_with_full_drain`](Queue::shut_down_with_full_drain) | ignored | waited for | waited for | dropped, counted |
//!
//! A get says `None` when nothing waits. Shutting down ends no task, because a queue has none, and dropping the last
//! handle without it is as good.
//!
//! # Costs and caveats
//!
//! - One lock a queue, held for O(1), or O(log n) where delays are concerned; only [`Queue::snapshot`] is O(n). Wakers,
//!   metrics, hashing and dropping of keys are outside it; comparing and cloning keys, and the [`Order`], are not.
//! - No task and no timer while nobody waits: a due key is added by the next operation, whatever that is, as of its
//!   moment. While gets wait, one of them keeps the time for all. So nothing is left behind.
//! - No bound: a queue holds as many keys as there are different ones. That is what bounds it; a key is held once.
//! - A get that waits for delayed keys by the system's clock must be polled in a tokio runtime with time;
//!   [`Queue::get_blocking`] needs none.
//! - Do not keep a [`Get`] that is not polled: it may be called for a key, which then waits for it.
//! - A panicking worker's guard drops, so its key is done: it is processed again when it is added again.
//! - Who waits and who wakes is modelled in every interleaving, within bounds, by loom: `tests/loom`.
//!
//! # A log line that says whose it is
//!
//! A queue has no task, so it has no span of its own: the worker opens one, named for the queue and the key. What the
//! work logs, and what it calls, is inside.
//!
//! ```
//! use kubewire_workqueue::Queue;
//! use tracing::Instrument;
//!
//! async fn worker(queue: Queue<String>) {
//!     while let Some(key) = queue.get().await {
//!         let span = tracing::info_span!("work", queue = queue.name(), key = %*key);
//!         async { tracing::info!("reconciled") }.instrument(span).await;
//!     }
//! }
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let queue = Queue::builder().name("pod-controller").build();
//! queue.add("default/web".to_owned());
//! queue.shut_down();
//! worker(queue).await; // INFO work{queue="pod-controller" key=default/web}: reconciled
//! # });
//! ```
//!
//! # Other names than client-go's, and other ways
//!
//! | here | there | why |
//! |---|---|---|
//! | [`Queue`] | `TypedInterface`, `TypedDelayingInterface` | a queue that never delays costs nothing more |
//! | [`RateLimitingQueue::new`] | `NewTypedRateLimitingQueue` | |
//! | [`Queue::builder`], [`QueueBuilder`] | `New…WithConfig`, `New…WithCustomQueue` | names in place of config structs |
//! | `None` from [`get`](Queue::get) | `shutdown` from `Get` | |
//! | [`Guard`], or `bool` from [`done`](Queue::done) | `Done` | there, `Done` of a key that waits queues it twice |
//! | [`shut_down_with_full_drain`](Queue::shut_down_with_full_drain) | – | there is no drain for keys that wait |
//! | [`cancel_delayed`](Queue::cancel_delayed) | – | there is no way back |
//! | [`Order`] | `Queue` | that name is taken |
//! | [`refresh_metrics`](Queue::refresh_metrics) | a task, every 500 ms | no task |
#![forbid(unsafe_code)]

mod aftermath;
mod builder;
mod delay_heap;
mod drain;
mod drains;
mod guard;
mod keys;
pub mod metrics;
mod order;
#[cfg(not(loom))]
mod parallelize;
mod queue;
mod rate_limiting;
mod shared;
mod snapshot;
mod state;
mod sync;
mod table;
mod waiters;
mod waiting;

/// The limiters and the clock: the crate `kubewire-ratelimit`.
pub use kubewire_ratelimit as ratelimit;

pub use builder::QueueBuilder;
pub use drain::Drain;
pub use drains::DrainOutcome;
pub use guard::Guard;
pub use metrics::{MetricsProvider, QueueMetrics, set_metrics_provider};
pub use order::{ByAddedPriority, ByPriority, Fifo, Item, Order, Slot};
#[cfg(not(loom))]
pub use parallelize::{Parallelize, Parallelized, parallelize_until};
pub use queue::{Queue, TryGetError};
pub use rate_limiting::RateLimitingQueue;
pub use snapshot::{KeyStatus, Processing, Snapshot};
pub use waiting::Get;

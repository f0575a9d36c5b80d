//! Many pieces of work on a few tasks.

use std::fmt;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use tokio::task::JoinSet;

/// Does `pieces` pieces of work on at most `workers` tasks, until all are done or `stop` answers true; as client-go's
/// `ParallelizeUntil`. [`Parallelize`] has more to set.
///
/// A piece that is begun is ended; `stop` is asked before each. A piece that panics is reported and counted, and its
/// worker goes on with the next one.
///
/// Must be called inside a tokio runtime. Cancel-safe in that nothing is kept: dropping it aborts the tasks.
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicUsize, Ordering};
///
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// let sum = Arc::new(AtomicUsize::new(0));
/// let outcome = kubewire_workqueue::parallelize_until(8, 1000, || false, {
///     let sum = sum.clone();
///     move |piece| {
///         let sum = sum.clone();
///         async move {
///             sum.fetch_add(piece, Ordering::Relaxed);
///         }
///     }
/// })
/// .await;
/// assert_eq!(outcome.done, 1000);
/// assert_eq!(sum.load(Ordering::Relaxed), 999 * 1000 / 2);
/// # });
/// # Ok::<_, std::io::Error>(())
/// ```
pub async fn parallelize_until<S, F, R>(workers: usize, pieces: usize, stop: S, work: F) -> Parallelized
where
    S: Fn() -> bool + Send + Sync + 'static,
    F: Fn(usize) -> R + Send + Sync + 'static,
    R: Future<Output = ()> + Send,
{
    Parallelize::new(workers, pieces).stop_when(stop).run(work).await
}

/// Pieces of work on a few tasks; what [`parallelize_until`] is made of.
#[must_use = "nothing runs until `run` is called and awaited"]
pub struct Parallelize {
    workers: usize,
    pieces: usize,
    chunk_size: usize,
    stop: Box<dyn Fn() -> bool + Send + Sync>,
}

/// What became of the pieces. All that were not done and did not panic were not begun, because of the stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Parallelized {
    /// Pieces that were done.
    pub done: usize,
    /// Pieces that panicked.
    pub panicked: usize,
}

impl Parallelize {
    /// `pieces` pieces on `workers` tasks, at least one, and no more than there are chunks.
    pub fn new(workers: usize, pieces: usize) -> Self {
        Self { workers, pieces, chunk_size: 1, stop: Box::new(|| false) }
    }

    /// A worker takes so many pieces at a time, at least one. Larger chunks for small pieces.
    pub const fn chunk_size(mut self, chunk_size: usize) -> Self {
        self.chunk_size = chunk_size;
        self
    }

    /// No piece begins once `stop` has answered true, e.g. `move || token.is_cancelled()`.
    pub fn stop_when(mut self, stop: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.stop = Box::new(stop);
        self
    }

    /// Does `work` for each piece, `0..pieces`; see [`parallelize_until`].
    pub async fn run<F, R>(self, work: F) -> Parallelized
    where
        F: Fn(usize) -> R + Send + Sync + 'static,
        R: Future<Output = ()> + Send,
    {
        let chunk_size = self.chunk_size.max(1);
        let chunks = self.pieces.div_ceil(chunk_size);
        let workers = self.workers.max(1).min(chunks);
        let shared = Arc::new((self, work, AtomicUsize::new(0)));
        let mut tasks = JoinSet::new();
        for _ in 0..workers {
            let shared = Arc::clone(&shared);
            tasks.spawn(async move {
                let (Self { pieces, stop, .. }, work, next_chunk) = &*shared;
                let mut outcome = Parallelized::default();
                loop {
                    let chunk = next_chunk.fetch_add(1, Ordering::Relaxed);
                    if chunk >= chunks {
                        return outcome;
                    }
                    let first = chunk * chunk_size;
                    for piece in first..first.saturating_add(chunk_size).min(*pieces) {
                        if stop() {
                            return outcome;
                        }
                        if survive(|| work(piece)).await {
                            outcome.done += 1;
                        } else {
                            outcome.panicked += 1;
                            // Where all of 100,000 panic, a worker writes 17 lines.
                            if outcome.panicked.is_power_of_two() {
                                let panics = outcome.panicked;
                                tracing::error!(
                                    panics,
                                    "a piece of parallel work panicked; its worker goes on with the next one"
                                );
                            }
                        }
                    }
                }
            });
        }
        let mut total = Parallelized::default();
        while let Some(outcome) = tasks.join_next().await {
            // A worker fails only by a panic of `stop`: its counts are lost, the others go on.
            let outcome = outcome.unwrap_or_default();
            total.done += outcome.done;
            total.panicked += outcome.panicked;
        }
        total
    }
}

/// Whether the piece ended without a panic.
async fn survive<R: Future<Output = ()>>(begin: impl FnOnce() -> R) -> bool {
    let Ok(piece) = std::panic::catch_unwind(AssertUnwindSafe(begin)) else { return false };
    let mut piece = pin!(piece);
    std::future::poll_fn(|cx| match std::panic::catch_unwind(AssertUnwindSafe(|| piece.as_mut().poll(cx))) {
        Ok(poll) => poll.map(|()| true),
        Err(_) => Poll::Ready(false),
    })
    .await
}

impl fmt::Debug for Parallelize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parallelize")
            .field("workers", &self.workers)
            .field("pieces", &self.pieces)
            .field("chunk_size", &self.chunk_size)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    /// How often each piece was done.
    async fn counts(parallelize: Parallelize) -> Vec<usize> {
        let counts: Arc<Vec<AtomicUsize>> = Arc::new((0..parallelize.pieces).map(|_| AtomicUsize::new(0)).collect());
        let work = {
            let counts = Arc::clone(&counts);
            move |piece: usize| {
                let counts = Arc::clone(&counts);
                async move {
                    tokio::task::yield_now().await;
                    counts[piece].fetch_add(1, Ordering::Relaxed);
                }
            }
        };
        let outcome = parallelize.run(work).await;
        assert_eq!(outcome, Parallelized { done: counts.len(), panicked: 0 });
        counts.iter().map(|count| count.load(Ordering::Relaxed)).collect()
    }

    #[tokio::test]
    async fn each_piece_is_done_once_whatever_the_chunks_and_workers() {
        for (workers, pieces, chunk_size) in
            [(10, 1000, 0), (10, 1000, 1), (10, 999, 13), (10, 0, 1), (500, 10, 4), (0, 3, 1), (3, 7, usize::MAX)]
        {
            let parallelize = Parallelize::new(workers, pieces).chunk_size(chunk_size);
            assert_eq!(counts(parallelize).await, vec![1; pieces], "{workers} workers, {pieces} by {chunk_size}");
        }
    }

    #[tokio::test]
    async fn after_the_stop_no_piece_begins_and_running_ones_end() {
        let stop = Arc::new(AtomicBool::new(false));
        let (begun, ended) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let outcome = parallelize_until(
            4,
            1000,
            {
                let stop = Arc::clone(&stop);
                move || stop.load(Ordering::Relaxed)
            },
            {
                let (begun, ended) = (Arc::clone(&begun), Arc::clone(&ended));
                move |piece| {
                    let (stop, begun, ended) = (Arc::clone(&stop), Arc::clone(&begun), Arc::clone(&ended));
                    async move {
                        begun.fetch_add(1, Ordering::Relaxed);
                        if piece == 100 {
                            stop.store(true, Ordering::Relaxed);
                        }
                        tokio::task::yield_now().await;
                        ended.fetch_add(1, Ordering::Relaxed);
                    }
                }
            },
        )
        .await;
        let begun = begun.load(Ordering::Relaxed);
        assert!((101..=104).contains(&begun), "{begun}");
        assert_eq!((ended.load(Ordering::Relaxed), outcome.done), (begun, begun));
    }

    #[tokio::test]
    async fn a_panicking_piece_costs_only_itself() {
        let outcome = parallelize_until(
            3,
            100,
            || false,
            |piece| {
                assert!(piece % 10 != 3, "before its first await");
                async move {
                    tokio::task::yield_now().await;
                    assert!(piece % 10 != 7, "after its first await");
                }
            },
        )
        .await;
        assert_eq!(outcome, Parallelized { done: 80, panicked: 20 });
    }
}

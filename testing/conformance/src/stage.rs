//! A tokio runtime on one thread that can be told to come to rest.

use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, Waker};

use parking_lot::Mutex;
use tokio::runtime::{Builder, EnterGuard, Runtime};

/// A current-thread runtime on which tasks run only while somebody [settles](Self::settle) or
/// [blocks on](Self::block_on) something. Its time is paused: nothing passes by itself.
#[derive(Debug)]
pub struct Stage {
    runtime: Runtime,
    rest: Arc<Rest>,
}

/// Whoever waits for the runtime to have nothing left to do.
#[derive(Debug, Default)]
struct Rest {
    /// Set by the one who waits, taken when the runtime is about to park.
    waiting: Mutex<Option<Waker>>,
}

impl Stage {
    /// A stage with nothing on it.
    ///
    /// # Panics
    ///
    /// If the operating system refuses the runtime's resources.
    #[expect(clippy::new_without_default, reason = "it takes resources")]
    pub fn new() -> Self {
        let rest = Arc::new(Rest::default());
        let parked = Arc::clone(&rest);
        let runtime = Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .on_thread_park(move || {
                let waker = parked.waiting.lock().take();
                if let Some(waker) = waker {
                    waker.wake();
                }
            })
            .build()
            .expect("a runtime of one thread needs only a few file handles");
        Self { runtime, rest }
    }

    /// Lets everything happen that can happen without time passing.
    pub fn settle(&self) {
        self.runtime.block_on(self.rest());
    }

    /// Runs a future on the stage. It must not wait for time.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        self.runtime.block_on(future)
    }

    /// Lets `tokio::spawn` work on this stage.
    pub fn enter(&self) -> EnterGuard<'_> {
        self.runtime.enter()
    }

    /// Spawns a task that runs when the stage is settled.
    pub fn spawn<F>(&self, future: F) -> tokio::task::JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        self.runtime.spawn(future)
    }

    /// Ends when the runtime is about to park.
    async fn rest(&self) {
        let mut asked = false;
        let wait = std::future::poll_fn(|cx| {
            let mut waiting = self.rest.waiting.lock();
            if asked && waiting.is_none() {
                return Poll::Ready(());
            }
            asked = true;
            *waiting = Some(cx.waker().clone());
            Poll::Pending
        });
        pin!(wait).await;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::time::Duration;

    use super::*;

    #[test]
    fn settling_runs_chains_of_tasks_to_their_end_and_lets_no_time_pass() {
        let stage = Stage::new();
        let (count, slept) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU32::new(0)));
        let (sender, mut receiver) = tokio::sync::mpsc::channel::<u32>(1);
        stage.spawn({
            let count = Arc::clone(&count);
            async move {
                while receiver.recv().await.is_some() {
                    count.fetch_add(1, Ordering::Relaxed);
                    tokio::task::yield_now().await;
                }
            }
        });
        stage.spawn(async move {
            for item in 0..100 {
                sender.send(item).await.expect("the receiver lives");
            }
        });
        stage.spawn({
            let slept = Arc::clone(&slept);
            async move {
                tokio::time::sleep(Duration::from_secs(1)).await;
                slept.fetch_add(1, Ordering::Relaxed);
            }
        });
        stage.settle();
        assert_eq!((count.load(Ordering::Relaxed), slept.load(Ordering::Relaxed)), (100, 0));
        stage.settle();
        assert_eq!(slept.load(Ordering::Relaxed), 0);
    }
}

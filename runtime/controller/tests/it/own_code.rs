//! Requests whose own code panics: their controller goes on, and so do all other requests.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use kubewire_controller::{Attempt, Controller, ControllerOptions, Outcome, PriorityQueue, RunContext, Runnable};
use tokio::task::JoinHandle;

use crate::support::{Diary, pass};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Clone,
    Eq,
    Hash,
    Debug,
    Drop,
}

/// Which call of which kind panics, of all keys that share it.
#[derive(Debug)]
struct Fuse {
    step: Step,
    /// Calls that go well before the one that does not. Below zero: all go well.
    left: AtomicI64,
    /// All panic from then on.
    for_ever: bool,
}

impl Fuse {
    fn burn(&self, step: Step) {
        if step != self.step || std::thread::panicking() {
            return;
        }
        let left = self.left.load(Ordering::Relaxed);
        if left > 0 || (left == 0 && !self.for_ever) {
            self.left.store(left - 1, Ordering::Relaxed);
        }
        if left == 0 {
            resume_unwind(Box::new("own code"));
        }
    }
}

struct Key(&'static str, Arc<Fuse>);

impl Clone for Key {
    fn clone(&self) -> Self {
        self.1.burn(Step::Clone);
        Self(self.0, Arc::clone(&self.1))
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.1.burn(Step::Eq);
        self.0 == other.0
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.1.burn(Step::Hash);
        self.0.len().hash(state);
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.1.burn(Step::Debug);
        f.write_str(self.0)
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        self.1.burn(Step::Drop);
    }
}

struct Running {
    controller: Controller<Key>,
    cx: RunContext,
    task: JoinHandle<()>,
    done: Diary,
}

/// Fails at first, so that requests come back.
fn run(options: ControllerOptions<Key>) -> Running {
    let done = Diary::default();
    let writes = done.clone();
    let reconcile = move |key: Key, attempt: Attempt| {
        let writes = writes.clone();
        async move {
            if attempt.failures() == 0 {
                return Err(std::io::Error::other("at first"));
            }
            writes.write(key.0);
            Ok(Outcome::Done)
        }
    };
    let controller = Controller::new("c", reconcile, options);
    let (cx, runs) = (RunContext::new(), controller.clone());
    let context = cx.clone();
    let task = tokio::spawn(async move { runs.run(context).await.unwrap() });
    Running { controller, cx, task, done }
}

fn fuse(step: Step, left: i64, for_ever: bool) -> Arc<Fuse> {
    Arc::new(Fuse { step, left: AtomicI64::new(left), for_ever })
}

async fn stop(running: Running) {
    running.cx.stop.cancel();
    tokio::time::timeout(Duration::from_secs(3600), running.task).await.expect("it ends").unwrap();
}

#[tokio::test(start_paused = true)]
async fn code_of_a_request_may_panic_at_any_call_and_every_request_is_done() {
    let reads = tracing_subscriber::fmt().with_writer(std::io::sink).finish();
    let _reads = tracing::subscriber::set_default(reads);
    for step in [Step::Clone, Step::Eq, Step::Hash, Step::Debug, Step::Drop] {
        for left in 0..24 {
            let running = run(ControllerOptions::new());
            let (calm, touchy) = (fuse(step, -1, false), fuse(step, -1, false));
            running.controller.queue().add(Key("bad", Arc::clone(&touchy)), 0);
            // Of the same hash.
            running.controller.queue().add(Key("top", calm), 0);
            touchy.left.store(left, Ordering::Relaxed);
            pass(10_000).await;
            touchy.left.store(-1, Ordering::Relaxed);
            assert!(!running.task.is_finished(), "{step:?} {left}");
            let mut done = running.done.lines();
            done.sort();
            done.dedup();
            assert_eq!(done, ["bad", "top"], "{step:?} {left}");
            assert_eq!(running.controller.activity().at_hand, 0, "{step:?} {left}");
            stop(running).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_request_that_always_panics_holds_up_nobody_whatever_its_priority() {
    for step in [Step::Clone, Step::Eq, Step::Hash, Step::Debug, Step::Drop] {
        let running = run(ControllerOptions::new().priority_queue(PriorityQueue::new()));
        let (calm, touchy) = (fuse(step, -1, false), fuse(step, -1, true));
        running.controller.queue().add(Key("bad", Arc::clone(&touchy)), 100);
        touchy.left.store(0, Ordering::Relaxed);
        running.controller.queue().add(Key("good", calm), 0);
        pass(60_000).await;
        assert!(running.done.lines().contains(&"good".to_owned()), "{step:?}");
        assert!(!running.task.is_finished(), "{step:?}");
        touchy.left.store(-1, Ordering::Relaxed);
        pass(60_000).await;
        stop(running).await;
    }
}

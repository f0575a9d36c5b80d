//! Reconcilers that block their threads. Paused time is for runtimes of one thread, which they would block as a whole: so this
//! runs on several, with short periods that are over when they are; no time decides anything.

use std::sync::mpsc::{Receiver, Sender, channel};

use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, yield_now};
use tokio::time::timeout;
use tokio_util::sync::DropGuard;

use super::*;
use crate::{Attempt, Controller, ControllerOptions, Outcome, Request};

const MS: Duration = Duration::from_millis(1);

/// A leader with two controllers: the reconciler of one blocks its thread, the other one's does not. And one who does not
/// end before it is aborted.
struct Blocked {
    rig: Rig,
    groups: RunnableGroups,
    running: JoinHandle<Result<(), RunError>>,
    works: Controller,
    done: Arc<Semaphore>,
    /// What lets the blocked one go.
    gate: Sender<()>,
    /// The blocked attempt is gone.
    gone: CancellationToken,
}

fn request(name: &str) -> Request {
    Request::new("default", name)
}

/// Says when it gets to its end, if it does.
fn blocks(gate: Receiver<()>, entered: DropGuard, gone: DropGuard, log: &Log) -> Controller {
    let (held, log) = (Mutex::new(Some((gate, entered, gone))), Arc::clone(log));
    let reconcile = move |_: Request, _: Attempt| {
        let (held, log) = (held.lock().take(), Arc::clone(&log));
        async move {
            let (gate, entered, _gone) = held.expect("it is asked once");
            drop(entered);
            let _ = gate.recv();
            log.lock().push("freed".to_owned());
            Ok::<_, BoxError>(Outcome::Done)
        }
    };
    Controller::new("blocks", reconcile, ControllerOptions::new())
}

impl Blocked {
    async fn new(grace: Duration, abort: Duration) -> Self {
        let rig = Rig::electing();
        let groups = rig.groups.clone().grace_period(grace).cancel_period(MS);
        groups.shared.settings.lock().abort_period = abort;
        let (gate, waits) = channel();
        let (entered, gone) = (CancellationToken::new(), CancellationToken::new());
        let blocks = blocks(waits, entered.clone().drop_guard(), gone.clone().drop_guard(), &rig.log);
        blocks.queue().add(request("web"), 0);
        groups.add(blocks).unwrap();
        let done = Arc::new(Semaphore::new(0));
        let count = Arc::clone(&done);
        let reconcile = move |_: Request, _: Attempt| {
            count.add_permits(1);
            async { Ok::<_, BoxError>(Outcome::Done) }
        };
        let works = Controller::new("works", reconcile, ControllerOptions::new());
        groups.add(works.clone()).unwrap();
        let mut deaf = rig.scripted("deaf", Group::Leader);
        (deaf.winds_down, deaf.heeds_cancel) = (3600 * SECOND, false);
        groups.add(deaf).unwrap();
        let running = rig.start();
        rig.elect.cancel();
        entered.cancelled().await;
        while !rig.log.lock().iter().any(|line| line == "+deaf") {
            yield_now().await;
        }
        Self { rig, groups, running, works, done, gate, gone }
    }

    async fn work_goes_on(&self) {
        (0..100).for_each(|n| self.works.queue().add(request(&n.to_string()), 0));
        self.done.acquire_many(100).await.unwrap().forget();
    }

    /// The run ends though the thread is blocked; what it ends with.
    async fn ends(&mut self) -> RunError {
        let ended = timeout(60 * SECOND, &mut self.running).await.expect("it ends while the thread is blocked");
        assert!(!self.gone.is_cancelled());
        self.groups.ended().await;
        ended.unwrap().unwrap_err()
    }

    /// The lease was not given up, and is not when the thread is let go.
    async fn leaves_its_lease(self) {
        drop(self.gate);
        self.gone.cancelled().await;
        assert_eq!(self.rig.logged(), "+elector +deaf freed");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_reconciler_that_blocks_its_thread_through_a_stop_is_named_and_keeps_the_lease() {
    let mut it = Blocked::new(MS, MS).await;
    it.work_goes_on().await;
    it.rig.stop.cancel();
    let error = it.ends().await;
    let [Failure::GracePeriodExceeded { unfinished, .. }, Failure::StillRunning { left }] = error.failures() else {
        panic!("{error}")
    };
    assert_eq!((unfinished.join(" "), left.join(" ")), ("blocks deaf".to_owned(), "blocks".to_owned()));
    assert!(error.to_string().contains("spawn_blocking"), "{error}");
    it.leaves_its_lease().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_lost_lease_ends_the_run_though_a_reconciler_blocks_its_thread() {
    let mut it = Blocked::new(3600 * SECOND, MS).await;
    it.work_goes_on().await;
    it.rig.lose.cancel();
    let error = it.ends().await;
    let [Failure::LeaderElectionLost { .. }, Failure::StillRunning { left }] = error.failures() else {
        panic!("{error}")
    };
    assert_eq!(left.join(" "), "blocks");
    it.leaves_its_lease().await;
}

/// Its workers are tasks of the controller's own, which the end of its run aborts and does not wait for.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_lease_is_given_up_when_a_blocked_reconciler_was_let_go_and_not_before() {
    let it = Blocked::new(Duration::ZERO, 3600 * SECOND).await;
    it.rig.stop.cancel();
    // The others are gone: all was aborted.
    while it.groups.shared.state.lock().stages.running().count() > 1 {
        yield_now().await;
    }
    for _ in 0..1000 {
        yield_now().await;
    }
    assert!(!it.running.is_finished());
    it.gate.send(()).unwrap();
    timeout(60 * SECOND, it.running).await.unwrap().unwrap().unwrap();
    assert_eq!(it.rig.logged(), "+elector +deaf freed -lease");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_run_that_is_dropped_waits_for_no_blocked_thread() {
    let it = Blocked::new(3600 * SECOND, 3600 * SECOND).await;
    it.running.abort();
    it.groups.ended().await;
    assert!(!it.gone.is_cancelled());
    it.leaves_its_lease().await;
}

//! Runnables and electors that do what they should not.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use kubewire_controller::{
    BoxError, Failure, Group, LeaderElection, OnElected, RunContext, RunError, Runnable, RunnableGroups,
};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::support::{Diary, settle};

const MS: Duration = Duration::from_millis(1);
const DAY: Duration = Duration::from_secs(86_400);

/// A panic without the hook's message.
fn panic() {
    std::panic::resume_unwind(Box::new("on purpose"));
}

/// Where it panics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Where {
    Run,
    RunLater,
    MakingReady,
    Ready,
    MakingWarmUp,
    WarmUp,
    /// In what the future of its run holds.
    DropOfRun,
    /// In itself.
    DropOfItself,
    Nowhere,
}

struct PanicsWhenDropped;

impl Drop for PanicsWhenDropped {
    fn drop(&mut self) {
        panic();
    }
}

struct Panicking(Where);

impl Runnable for Panicking {
    fn name(&self) -> &'static str {
        "panicking"
    }

    fn run(&self, cx: RunContext) -> BoxFuture<'_, Result<(), BoxError>> {
        if self.0 == Where::Run {
            panic();
        }
        Box::pin(async move {
            let _held = (self.0 == Where::DropOfRun).then(|| PanicsWhenDropped);
            let _ = timeout(MS, cx.stop.cancelled()).await;
            if self.0 == Where::RunLater {
                panic();
            }
            Ok(())
        })
    }

    fn ready(&self, _: &RunContext) -> BoxFuture<'_, Result<(), BoxError>> {
        if self.0 == Where::MakingReady {
            panic();
        }
        Box::pin(async {
            if self.0 == Where::Ready {
                panic();
            }
            Ok(())
        })
    }

    fn warm_up(&self, _: RunContext) -> Option<BoxFuture<'_, Result<(), BoxError>>> {
        match self.0 {
            Where::MakingWarmUp => panic(),
            Where::WarmUp => {
                return Some(Box::pin(async {
                    panic();
                    Ok(())
                }));
            }
            _ => {}
        }
        None
    }
}

impl Drop for Panicking {
    fn drop(&mut self) {
        if self.0 == Where::DropOfItself && !std::thread::panicking() {
            panic();
        }
    }
}

/// Leads after a while.
struct LeadsSoon;

impl LeaderElection for LeadsSoon {
    fn run(&self, stop: CancellationToken, elected: OnElected) -> BoxFuture<'_, Result<(), BoxError>> {
        Box::pin(async move {
            sleep(10 * MS).await;
            elected();
            stop.cancelled().await;
            Ok(())
        })
    }
}

/// Says when it begins and ends, and ends when it is told to.
struct Orderly(&'static str, Group, Diary);

impl Runnable for Orderly {
    fn name(&self) -> &str {
        self.0
    }

    fn run(&self, cx: RunContext) -> BoxFuture<'_, Result<(), BoxError>> {
        Box::pin(async move {
            self.2.write(format!("+{}", self.0));
            cx.stop.cancelled().await;
            self.2.write(format!("-{}", self.0));
            Ok(())
        })
    }

    fn group(&self) -> Group {
        self.1
    }
}

fn start(groups: &RunnableGroups) -> (CancellationToken, JoinHandle<Result<(), RunError>>) {
    let stop = CancellationToken::new();
    let running = tokio::spawn({
        let (groups, stop) = (groups.clone(), stop.clone());
        async move { groups.run(stop).await }
    });
    (stop, running)
}

#[tokio::test(start_paused = true)]
async fn a_runnable_that_panics_anywhere_is_named_and_all_others_end_in_order() {
    use Where::{DropOfItself, DropOfRun, MakingReady, MakingWarmUp, Nowhere, Ready, Run, RunLater, WarmUp};
    for place in [Run, RunLater, MakingReady, Ready, MakingWarmUp, WarmUp, DropOfRun, DropOfItself, Nowhere] {
        let (groups, diary) = (RunnableGroups::with_elector(LeadsSoon), Diary::default());
        groups.add(Orderly("cache", Group::Caches, diary.clone())).unwrap();
        groups.add(Orderly("always", Group::Always, diary.clone())).unwrap();
        groups.add(Panicking(place)).unwrap();
        let (stop, running) = start(&groups);
        if matches!(place, DropOfItself | Nowhere) {
            sleep(DAY).await;
            assert!(!running.is_finished(), "{place:?}: it harms nobody");
            stop.cancel();
            running.await.unwrap().unwrap();
        } else {
            let error = timeout(DAY, running).await.unwrap().unwrap().unwrap_err();
            let [Failure::Panicked { name, message }] = error.failures() else { panic!("{place:?}: {error}") };
            assert_eq!((name.as_str(), message.as_str()), ("panicking", "on purpose"), "{place:?}");
        }
        assert_eq!(diary.lines(), ["+cache", "+always", "-always", "-cache"], "{place:?}");
        groups.ended().await;
    }
}

/// An error that panics whenever somebody looks at it.
#[derive(Debug)]
struct Unspeakable;

impl std::fmt::Display for Unspeakable {
    fn fmt(&self, _: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        panic();
        Ok(())
    }
}

impl std::error::Error for Unspeakable {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        panic();
        None
    }
}

/// Fails with that, by itself or when it is told to end.
struct FailsUnspeakably {
    by_itself: bool,
}

impl Runnable for FailsUnspeakably {
    fn name(&self) -> &'static str {
        "unspeakable"
    }

    fn run(&self, cx: RunContext) -> BoxFuture<'_, Result<(), BoxError>> {
        Box::pin(async move {
            if !self.by_itself {
                cx.stop.cancelled().await;
            }
            Err(Unspeakable.into())
        })
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_that_panics_when_it_is_told_ends_all_others_in_order() {
    let reads = tracing_subscriber::fmt().with_writer(std::io::sink).finish();
    let _reads = tracing::subscriber::set_default(reads);
    for by_itself in [true, false] {
        let (groups, diary) = (RunnableGroups::new(), Diary::default());
        groups.add(Orderly("cache", Group::Caches, diary.clone())).unwrap();
        groups.add(Orderly("always", Group::Always, diary.clone())).unwrap();
        groups.add(FailsUnspeakably { by_itself }).unwrap();
        let (stop, running) = start(&groups);
        if by_itself {
            let error = timeout(DAY, running).await.unwrap().unwrap().unwrap_err();
            let [Failure::Runnable { name, .. }] = error.failures() else { panic!("{:?}", error.failures().len()) };
            assert_eq!(name, "unspeakable");
        } else {
            settle().await;
            stop.cancel();
            running.await.unwrap().unwrap();
        }
        assert_eq!(diary.lines(), ["+cache", "+always", "-always", "-cache"], "by itself: {by_itself}");
    }
}

/// Another name and group each time, and at last none.
struct Fickle(AtomicUsize, Diary);

impl Fickle {
    fn ask(&self) -> usize {
        let asked = self.0.fetch_add(1, Ordering::Relaxed);
        if asked > 1 {
            panic();
        }
        asked
    }
}

impl Runnable for Fickle {
    fn name(&self) -> &str {
        ["first", "second"][self.ask()]
    }

    fn run(&self, cx: RunContext) -> BoxFuture<'_, Result<(), BoxError>> {
        Box::pin(async move {
            cx.stop.cancelled().await;
            self.1.write("-fickle");
            Err("after the stop".into())
        })
    }

    fn group(&self) -> Group {
        [Group::Caches, Group::Leader][self.ask()]
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_runnable_is_called_and_where_it_belongs_is_asked_once() {
    let (groups, diary) = (RunnableGroups::new(), Diary::default());
    groups.add(Orderly("leader", Group::Leader, diary.clone())).unwrap();
    groups.add(Fickle(AtomicUsize::new(0), diary.clone())).unwrap();
    let (stop, running) = start(&groups);
    groups.synced().await.unwrap();
    stop.cancel();
    running.await.unwrap().unwrap();
    assert_eq!(diary.lines(), ["+leader", "-leader", "-fickle"], "as a cache, which it was when it came");
}

/// Settings that are looked at, and then some.
struct ChecksBadly;

impl LeaderElection for ChecksBadly {
    fn check(&self) -> Result<(), BoxError> {
        panic();
        Ok(())
    }

    fn run(&self, _: CancellationToken, _: OnElected) -> BoxFuture<'_, Result<(), BoxError>> {
        unreachable!("it was not checked")
    }
}

#[tokio::test(start_paused = true)]
async fn an_elector_whose_check_panics_is_an_error_before_anything_runs() {
    let (groups, diary) = (RunnableGroups::with_elector(ChecksBadly), Diary::default());
    groups.add(Orderly("cache", Group::Caches, diary.clone())).unwrap();
    let error = groups.run(CancellationToken::new()).await.unwrap_err();
    assert!(matches!(error.failures(), [Failure::LeaderElection { .. }]), "{error}");
    assert!(error.to_string().contains("on purpose"), "{error}");
    assert_eq!(diary.len(), 0);
    groups.ended().await;
}

/// Counts those whose futures are there.
struct Alive(Arc<AtomicUsize>);

impl Alive {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(count))
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Is long ready, long warm, and heeds neither stop nor cancellation.
struct Stubborn(Group, Arc<AtomicUsize>);

impl Runnable for Stubborn {
    fn name(&self) -> &'static str {
        "stubborn"
    }

    fn run(&self, _: RunContext) -> BoxFuture<'_, Result<(), BoxError>> {
        Box::pin(async {
            let _alive = Alive::new(&self.1);
            std::future::pending().await
        })
    }

    fn ready(&self, _: &RunContext) -> BoxFuture<'_, Result<(), BoxError>> {
        Box::pin(async {
            let _alive = Alive::new(&self.1);
            sleep(5 * MS).await;
            Ok(())
        })
    }

    fn warm_up(&self, _: RunContext) -> Option<BoxFuture<'_, Result<(), BoxError>>> {
        Some(Box::pin(async {
            let _alive = Alive::new(&self.1);
            std::future::pending().await
        }))
    }

    fn group(&self) -> Group {
        self.0
    }
}

/// Each group takes 5 ms to be ready, the election 10 ms: whatever it is at, it ends, and so does whoever heeds nothing.
#[tokio::test(start_paused = true)]
async fn a_stop_or_a_dropped_run_at_any_moment_leaves_nothing_of_anybody() {
    let (grace, cancel, abort) = (50 * MS, 20 * MS, 2000 * MS);
    // A run that is dropped before it begins has not begun.
    for at in 1..40 {
        for dropped in [false, true] {
            let alive = Arc::new(AtomicUsize::new(0));
            let groups = RunnableGroups::with_elector(LeadsSoon).grace_period(grace).cancel_period(cancel);
            for group in [Group::Http, Group::Webhooks, Group::Caches, Group::Always, Group::Leader] {
                groups.add(Stubborn(group, Arc::clone(&alive))).unwrap();
            }
            let (stop, running) = start(&groups);
            sleep(at * MS).await;
            let begun = Instant::now();
            if dropped {
                running.abort();
                assert!(running.await.unwrap_err().is_cancelled());
            } else {
                stop.cancel();
                let ended = running.await.unwrap();
                assert!(begun.elapsed() <= grace + cancel + abort, "{:?} at {at}", begun.elapsed());
                assert!(ended.is_ok() || ended.unwrap_err().is_grace_period_exceeded());
            }
            groups.ended().await;
            settle().await;
            assert_eq!(alive.load(Ordering::Relaxed), 0, "at {at}, dropped: {dropped}");
            assert!(groups.add(Stubborn(Group::Always, alive)).is_err());
        }
    }
}

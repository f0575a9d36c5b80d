//! The shell, in paused time.

mod blocking;

use std::time::Duration;

use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use super::*;
use crate::{BoxError, Cancelled, Group, OnElected, RunContext};

const SECOND: Duration = Duration::from_secs(1);

/// Who began and ended, in order.
type Log = Arc<Mutex<Vec<String>>>;

/// A runnable that does as it is told.
struct Scripted {
    name: &'static str,
    group: Group,
    log: Log,
    /// Ends by itself after this.
    lasts: Option<Duration>,
    /// Ends so long after the stop.
    winds_down: Duration,
    /// What it ends with.
    result: fn() -> Result<(), BoxError>,
    ready_after: Option<Duration>,
    heeds_cancel: bool,
    warms_up: bool,
}

fn scripted(log: &Log, name: &'static str, group: Group) -> Scripted {
    Scripted {
        name,
        group,
        log: Arc::clone(log),
        lasts: None,
        winds_down: Duration::ZERO,
        result: || Ok(()),
        ready_after: Some(Duration::ZERO),
        heeds_cancel: true,
        warms_up: false,
    }
}

impl Scripted {
    fn say(&self, what: &str) {
        self.log.lock().push(format!("{what}{}", self.name));
    }
}

impl Runnable for Scripted {
    fn name(&self) -> &str {
        self.name
    }

    fn run(&self, cx: RunContext) -> BoxFuture<'_, Result<(), BoxError>> {
        self.say("+");
        Box::pin(async move {
            match self.lasts {
                Some(lasts) => drop(cx.stop.run_until_cancelled(sleep(lasts)).await),
                None => cx.stop.cancelled().await,
            }
            if cx.stop.is_cancelled() {
                match self.heeds_cancel {
                    true => drop(cx.cancel.run_until_cancelled(sleep(self.winds_down)).await),
                    false => sleep(self.winds_down).await,
                }
            }
            self.say("-");
            (self.result)()
        })
    }

    fn ready(&self, _: &RunContext) -> BoxFuture<'_, Result<(), BoxError>> {
        Box::pin(async move {
            match self.ready_after {
                Some(after) => {
                    sleep(after).await;
                    Ok(())
                }
                None => std::future::pending().await,
            }
        })
    }

    fn warm_up(&self, cx: RunContext) -> Option<BoxFuture<'_, Result<(), BoxError>>> {
        self.warms_up.then(|| {
            self.say("~");
            let work = async move {
                cx.stop.cancelled().await;
                Ok(())
            };
            Box::pin(work) as BoxFuture<'_, _>
        })
    }

    fn group(&self) -> Group {
        self.group
    }
}

/// Elects and deposes when it is told to; says when it gives the lease up.
struct ByHand {
    log: Log,
    elect: CancellationToken,
    lose: CancellationToken,
    valid: bool,
}

impl LeaderElection for ByHand {
    fn check(&self) -> Result<(), BoxError> {
        if self.valid { Ok(()) } else { Err("the renew deadline is not shorter than the lease".into()) }
    }

    fn run(&self, stop: CancellationToken, elected: OnElected) -> BoxFuture<'_, Result<(), BoxError>> {
        self.log.lock().push("+elector".to_owned());
        Box::pin(async move {
            if stop.run_until_cancelled(self.elect.cancelled()).await.is_some() {
                elected();
            }
            if stop.run_until_cancelled(self.lose.cancelled()).await.is_some() {
                return Err("no renewal in 10 s".into());
            }
            self.log.lock().push("-lease".to_owned());
            Ok(())
        })
    }
}

struct Rig {
    log: Log,
    elect: CancellationToken,
    lose: CancellationToken,
    groups: RunnableGroups,
    stop: CancellationToken,
}

impl Rig {
    fn new() -> Self {
        Self::with(RunnableGroups::new(), Log::default(), CancellationToken::new(), CancellationToken::new())
    }

    fn electing() -> Self {
        let (log, elect, lose) = (Log::default(), CancellationToken::new(), CancellationToken::new());
        let elector = ByHand { log: Arc::clone(&log), elect: elect.clone(), lose: lose.clone(), valid: true };
        Self::with(RunnableGroups::with_elector(elector), log, elect, lose)
    }

    fn with(groups: RunnableGroups, log: Log, elect: CancellationToken, lose: CancellationToken) -> Self {
        Self { log, elect, lose, groups, stop: CancellationToken::new() }
    }

    fn scripted(&self, name: &'static str, group: Group) -> Scripted {
        scripted(&self.log, name, group)
    }

    fn add(&self, name: &'static str, group: Group) {
        self.groups.add(self.scripted(name, group)).unwrap();
    }

    fn start(&self) -> tokio::task::JoinHandle<Result<(), RunError>> {
        let (groups, stop) = (self.groups.clone(), self.stop.clone());
        tokio::spawn(async move { groups.run(stop).await })
    }

    fn logged(&self) -> String {
        std::mem::take(&mut *self.log.lock()).join(" ")
    }
}

#[tokio::test(start_paused = true)]
async fn all_groups_run_without_an_election_and_end_in_the_documented_order() {
    let rig = Rig::new();
    for (name, group) in [
        ("leader", Group::Leader),
        ("always", Group::Always),
        ("cache", Group::Caches),
        ("webhook", Group::Webhooks),
        ("http", Group::Http),
    ] {
        let mut member = rig.scripted(name, group);
        (member.ready_after, member.winds_down) = (Some(SECOND), SECOND);
        rig.groups.add(member).unwrap();
    }
    let running = rig.start();
    rig.groups.elected().await.unwrap();
    rig.groups.synced().await.unwrap();
    assert_eq!(rig.logged(), "+http +webhook +cache +always +leader");
    rig.stop.cancel();
    let before = Instant::now();
    running.await.unwrap().unwrap();
    assert_eq!(rig.logged(), "-always -leader -cache -webhook -http");
    assert_eq!(before.elapsed(), 5 * SECOND, "one after the other");
    rig.groups.ended().await;
}

/// With controller-runtime this hangs for ever, and spins.
#[tokio::test(start_paused = true)]
async fn a_cache_that_never_syncs_holds_up_neither_the_stop_nor_an_error() {
    for fails in [false, true] {
        let rig = Rig::new();
        rig.add("http", Group::Http);
        let mut cache = rig.scripted("cache", Group::Caches);
        cache.ready_after = None;
        rig.groups.add(cache).unwrap();
        rig.add("worker", Group::Always);
        if fails {
            let mut failing = rig.scripted("failing", Group::Caches);
            (failing.lasts, failing.result) = (Some(SECOND), || Err("out of luck".into()));
            rig.groups.add(failing).unwrap();
        }
        let running = rig.start();
        sleep(5 * SECOND).await;
        rig.stop.cancel();
        let result = running.await.unwrap();
        assert!(!rig.logged().contains("worker"), "nobody runs before the caches are synced");
        match fails {
            false => result.unwrap(),
            true => assert_eq!(result.unwrap_err().to_string(), "failing: out of luck"),
        }
        assert_eq!(rig.groups.synced().await, Err(Ended));
        assert_eq!(rig.groups.started().await, Err(Ended));
    }
}

#[tokio::test(start_paused = true)]
async fn a_runnable_that_is_not_ready_in_time_stops_all_and_is_named() {
    struct Unready;
    impl Runnable for Unready {
        fn name(&self) -> &str {
            "pods"
        }
        fn run(&self, cx: RunContext) -> BoxFuture<'_, Result<(), BoxError>> {
            Box::pin(async move {
                cx.stop.cancelled().await;
                Ok(())
            })
        }
        fn ready(&self, _: &RunContext) -> BoxFuture<'_, Result<(), BoxError>> {
            Box::pin(async { Err("forbidden".into()) })
        }
        fn group(&self) -> Group {
            Group::Caches
        }
    }
    let rig = Rig::new();
    rig.groups.add(Unready).unwrap();
    let error = rig.start().await.unwrap().unwrap_err();
    assert_eq!(error.to_string(), "pods is not ready: forbidden");
}

#[tokio::test(start_paused = true)]
async fn a_runnable_that_ends_early_without_an_error_just_ends() {
    let rig = Rig::new();
    let mut short = rig.scripted("short", Group::Always);
    short.lasts = Some(SECOND);
    rig.groups.add(short).unwrap();
    let running = rig.start();
    sleep(10 * SECOND).await;
    assert!(!running.is_finished());
    assert_eq!(rig.logged(), "+short -short");
    rig.stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_error_or_a_panic_of_a_runnable_comes_out_after_all_others_have_ended() {
    for (result, text) in [
        ((|| Err("broken".into())) as fn() -> Result<(), BoxError>, "bad: broken"),
        (|| panic!("oh no"), "bad panicked: oh no"),
    ] {
        let rig = Rig::new();
        let mut other = rig.scripted("other", Group::Leader);
        other.winds_down = 7 * SECOND;
        rig.groups.add(other).unwrap();
        let mut bad = rig.scripted("bad", Group::Leader);
        (bad.lasts, bad.result) = (Some(SECOND), result);
        rig.groups.add(bad).unwrap();
        let before = Instant::now();
        let error = rig.start().await.unwrap().unwrap_err();
        assert_eq!(error.to_string(), text);
        assert_eq!(before.elapsed(), 8 * SECOND);
        assert_eq!(rig.logged(), "+other +bad -bad -other");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_runnable_says_after_the_stop_is_no_error_of_the_run() {
    for result in [(|| Err(Cancelled.into())) as fn() -> Result<(), BoxError>, || Err("connection lost".into())] {
        let rig = Rig::new();
        let mut member = rig.scripted("member", Group::Always);
        member.result = result;
        rig.groups.add(member).unwrap();
        let running = rig.start();
        rig.groups.started().await.unwrap();
        rig.stop.cancel();
        running.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn an_error_and_an_overrun_of_the_grace_period_are_both_found_in_the_result() {
    let rig = Rig::new();
    let mut slow = rig.scripted("slow", Group::Always);
    slow.winds_down = 3600 * SECOND;
    rig.groups.add(slow).unwrap();
    let mut bad = rig.scripted("bad", Group::Leader);
    (bad.lasts, bad.result) = (Some(SECOND), || Err(std::io::Error::other("disk full").into()));
    rig.groups.add(bad).unwrap();
    let before = Instant::now();
    let error = rig.start().await.unwrap().unwrap_err();
    assert_eq!(before.elapsed(), 31 * SECOND, "30 s unless said otherwise");
    assert!(error.is_grace_period_exceeded());
    assert_eq!(error.find::<std::io::Error>().unwrap().to_string(), "disk full");
    assert_eq!(error.to_string(), "bad: disk full; not all runnables ended within the grace period of 30s: slow");
    assert!(rig.logged().ends_with("-slow"), "it was cancelled, and ended");
}

#[tokio::test(start_paused = true)]
async fn without_a_grace_period_nobody_is_waited_for_and_that_is_no_error() {
    let rig = Rig::new();
    let groups = rig.groups.clone().grace_period(Duration::ZERO);
    let mut slow = rig.scripted("slow", Group::Always);
    (slow.winds_down, slow.heeds_cancel) = (3600 * SECOND, false);
    groups.add(slow).unwrap();
    let running = rig.start();
    groups.started().await.unwrap();
    rig.stop.cancel();
    let before = Instant::now();
    running.await.unwrap().unwrap();
    assert_eq!(before.elapsed(), Duration::ZERO);
    assert_eq!(rig.logged(), "+slow", "it was dropped");
}

#[tokio::test(start_paused = true)]
async fn an_endless_grace_period_waits_for_the_slowest() {
    let rig = Rig::new();
    let groups = rig.groups.clone().grace_period(None);
    let mut slow = rig.scripted("slow", Group::Always);
    slow.winds_down = 3600 * SECOND;
    groups.add(slow).unwrap();
    let running = rig.start();
    groups.started().await.unwrap();
    rig.stop.cancel();
    let before = Instant::now();
    running.await.unwrap().unwrap();
    assert_eq!(before.elapsed(), 3600 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn who_does_not_heed_the_cancellation_is_dropped_after_the_cancel_period() {
    let rig = Rig::new();
    let groups = rig.groups.clone().grace_period(5 * SECOND).cancel_period(2 * SECOND);
    let mut deaf = rig.scripted("deaf", Group::Always);
    (deaf.winds_down, deaf.heeds_cancel) = (3600 * SECOND, false);
    groups.add(deaf).unwrap();
    let running = rig.start();
    groups.started().await.unwrap();
    rig.stop.cancel();
    let before = Instant::now();
    assert!(running.await.unwrap().unwrap_err().is_grace_period_exceeded());
    assert_eq!(before.elapsed(), 7 * SECOND);
    // No task is left: nothing holds the runnable any more.
    assert_eq!(rig.logged(), "+deaf");
    assert_eq!(Arc::strong_count(&rig.log), 1);
}

#[tokio::test(start_paused = true)]
async fn cancelled_before_the_start_it_starts_nothing_and_ends_well() {
    let rig = Rig::electing();
    rig.add("http", Group::Http);
    rig.add("leader", Group::Leader);
    rig.stop.cancel();
    rig.start().await.unwrap().unwrap();
    assert_eq!(rig.logged(), "");
}

#[tokio::test(start_paused = true)]
async fn it_runs_once_and_takes_nobody_in_once_it_stops() {
    let rig = Rig::new();
    let mut slow = rig.scripted("slow", Group::Always);
    slow.winds_down = SECOND;
    rig.groups.add(slow).unwrap();
    let running = rig.start();
    rig.groups.started().await.unwrap();
    let again = rig.groups.run(CancellationToken::new()).await.unwrap_err();
    assert!(matches!(again.failures(), [Failure::AlreadyStarted]), "{again}");
    rig.stop.cancel();
    tokio::task::yield_now().await;
    sleep(SECOND / 2).await;
    assert!(rig.groups.is_stopping());
    assert_eq!(rig.groups.add(rig.scripted("late", Group::Always)), Err(AddError));
    running.await.unwrap().unwrap();
    assert_eq!(rig.groups.add(rig.scripted("later", Group::Always)), Err(AddError));
    let again = rig.groups.run(CancellationToken::new()).await.unwrap_err();
    assert!(matches!(again.failures(), [Failure::AlreadyStarted]), "{again}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn adding_while_it_stops_is_taken_or_refused_and_whoever_was_taken_has_ended() {
    let rig = Rig::new();
    let running = rig.start();
    rig.groups.started().await.unwrap();
    let adds: Vec<_> = (0..200)
        .map(|n| {
            let (groups, stop) = (rig.groups.clone(), rig.stop.clone());
            let member = rig.scripted("member", if n % 2 == 0 { Group::Always } else { Group::Caches });
            tokio::spawn(async move {
                if n == 100 {
                    stop.cancel();
                }
                groups.add(member).is_ok()
            })
        })
        .collect();
    let mut taken = 0;
    for add in adds {
        taken += usize::from(add.await.unwrap());
    }
    running.await.unwrap().unwrap();
    let log = rig.log.lock();
    let count = |what: &str| log.iter().filter(|line| line.starts_with(what)).count();
    assert_eq!(count("+"), count("-"));
    assert!(count("+") <= taken);
}

#[tokio::test(start_paused = true)]
async fn what_is_added_later_begins_at_once_or_with_its_group() {
    let rig = Rig::electing();
    let running = rig.start();
    rig.groups.started().await.unwrap();
    rig.add("always", Group::Always);
    rig.add("cache", Group::Caches);
    rig.add("leader", Group::Leader);
    sleep(SECOND).await;
    assert_eq!(rig.logged(), "+elector +always +cache", "a standby runs nothing of the leader's");
    assert!(!rig.groups.is_elected());
    rig.elect.cancel();
    rig.groups.elected().await.unwrap();
    rig.add("late", Group::Leader);
    sleep(SECOND).await;
    assert_eq!(rig.logged(), "+leader +late");
    rig.stop.cancel();
    running.await.unwrap().unwrap();
    assert!(rig.logged().ends_with("-lease"));
}

#[tokio::test(start_paused = true)]
async fn the_stop_signal_is_not_seen_by_a_group_before_its_turn() {
    let rig = Rig::new();
    let mut slow = rig.scripted("slow", Group::Always);
    slow.winds_down = 3 * SECOND;
    rig.groups.add(slow).unwrap();
    rig.add("cache", Group::Caches);
    let running = rig.start();
    rig.groups.started().await.unwrap();
    rig.stop.cancel();
    sleep(2 * SECOND).await;
    assert_eq!(rig.logged(), "+cache +slow", "the cache still answers");
    running.await.unwrap().unwrap();
    assert_eq!(rig.logged(), "-slow -cache");
}

#[tokio::test(start_paused = true)]
async fn the_lease_is_held_until_the_slowest_runnable_has_ended() {
    let rig = Rig::electing();
    let mut slow = rig.scripted("slow", Group::Leader);
    slow.winds_down = 20 * SECOND;
    rig.groups.add(slow).unwrap();
    let running = rig.start();
    rig.elect.cancel();
    rig.groups.elected().await.unwrap();
    rig.stop.cancel();
    sleep(19 * SECOND).await;
    assert_eq!(rig.logged(), "+elector +slow");
    running.await.unwrap().unwrap();
    assert_eq!(rig.logged(), "-slow -lease");
}

#[tokio::test(start_paused = true)]
async fn a_lost_lease_cancels_all_at_once_and_is_a_typed_error() {
    let rig = Rig::electing();
    let mut slow = rig.scripted("slow", Group::Leader);
    slow.winds_down = 20 * SECOND;
    rig.groups.add(slow).unwrap();
    let running = rig.start();
    rig.elect.cancel();
    rig.groups.elected().await.unwrap();
    let before = Instant::now();
    rig.lose.cancel();
    let error = running.await.unwrap().unwrap_err();
    assert!(error.is_leader_election_lost() && !error.is_grace_period_exceeded(), "{error}");
    assert_eq!(error.to_string(), "leader election lost: no renewal in 10 s");
    assert_eq!(before.elapsed(), Duration::ZERO);
    assert_eq!(rig.logged(), "+elector +slow -slow");
}

#[tokio::test(start_paused = true)]
async fn a_standby_that_stops_never_leads_and_says_nothing_of_a_loss() {
    let rig = Rig::electing();
    let mut slow = rig.scripted("slow", Group::Always);
    slow.winds_down = 5 * SECOND;
    rig.groups.add(slow).unwrap();
    rig.add("leader", Group::Leader);
    let running = rig.start();
    rig.groups.started().await.unwrap();
    rig.stop.cancel();
    sleep(SECOND).await;
    rig.elect.cancel();
    running.await.unwrap().unwrap();
    assert_eq!(rig.logged(), "+slow +elector -lease -slow");
    assert_eq!(rig.groups.elected().await, Err(Ended));
}

#[tokio::test(start_paused = true)]
async fn bad_settings_of_the_elector_fail_before_anything_runs() {
    let log = Log::default();
    let token = CancellationToken::new();
    let elector = ByHand { log: Arc::clone(&log), elect: token.clone(), lose: token.clone(), valid: false };
    let groups = RunnableGroups::with_elector(elector);
    groups.add(scripted(&log, "http", Group::Http)).unwrap();
    let error = groups.run(token).await.unwrap_err();
    assert!(matches!(error.failures(), [Failure::LeaderElection { .. }]), "{error}");
    assert!(log.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn warm_ups_run_on_a_standby_and_end_with_the_first_group() {
    let rig = Rig::electing();
    let mut warm = rig.scripted("warm", Group::Leader);
    warm.warms_up = true;
    rig.groups.add(warm).unwrap();
    let running = rig.start();
    rig.groups.synced().await.unwrap();
    sleep(SECOND).await;
    assert_eq!(rig.logged(), "~warm +elector");
    rig.stop.cancel();
    running.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn without_an_election_there_is_no_warm_up() {
    let rig = Rig::new();
    let mut warm = rig.scripted("warm", Group::Leader);
    warm.warms_up = true;
    rig.groups.add(warm).unwrap();
    let running = rig.start();
    rig.groups.synced().await.unwrap();
    rig.stop.cancel();
    running.await.unwrap().unwrap();
    assert_eq!(rig.logged(), "+warm -warm");
}

#[tokio::test(start_paused = true)]
async fn dropping_the_run_drops_all_that_runs_and_keeps_the_lease() {
    let rig = Rig::electing();
    rig.add("leader", Group::Leader);
    let running = rig.start();
    rig.elect.cancel();
    rig.groups.elected().await.unwrap();
    running.abort();
    rig.groups.ended().await;
    sleep(SECOND).await;
    assert_eq!(rig.logged(), "+elector +leader", "nothing of it ended in order");
    assert_eq!(rig.groups.add(rig.scripted("late", Group::Always)), Err(AddError));
}

//! With the fake lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use kubewire_leaderelection::fake::{FakeCall, FakeLock};
use kubewire_leaderelection::{
    ElectionError, Elector, EndCause, LeaderHealth, LeaderMetrics, LockReference, Settings, unique_identity,
};
use kubewire_ratelimit::ManualClock;
use tokio::time::{Instant, advance, sleep};
use tokio_util::sync::CancellationToken;

use crate::support::{DropFlag, Log, candidate, held_by, secs, start, work};

#[tokio::test(start_paused = true)]
async fn the_work_ends_then_leadership_then_the_lease_is_released() {
    let (lock, log) = (FakeLock::new(), Log::default());
    let (seen, watched) = (log.clone(), lock.clone());
    let running = start(
        candidate(lock.clone(), "a", &log)
            .on_started_leading(work(&log, secs(20)))
            .on_stopped_leading(move || seen.note(format!("stopped, held by {}", watched.record().unwrap().holder)))
            .release_on_stop(true),
    );
    running.leads().await;
    let (leadership, begin) = (running.leadership.clone(), Instant::now());
    lock.take_calls();
    let ended = tokio::spawn(running.stopped());
    sleep(secs(15)).await;
    assert!(leadership.is_leader(), "the lease is kept while the work ends");
    assert!(lock.take_calls().len() >= 7, "and renewed");
    assert_eq!(ended.await.unwrap(), Ok(()));
    assert_eq!(begin.elapsed().as_secs(), 20);
    assert_eq!(log.take(), ["leader \"a\"", "work begins", "work ends, valid", "stopped, held by a", "leader \"\""]);
    let record = lock.record().unwrap();
    assert_eq!((record.holder.as_str(), record.lease_duration_seconds, record.transitions), ("", 1, 0));
    assert!(!leadership.is_leader());
}

#[tokio::test(start_paused = true)]
async fn work_that_does_not_end_in_its_grace_period_is_aborted_before_the_release() {
    let (lock, dropped) = (FakeLock::new(), Arc::new(AtomicBool::new(false)));
    let flag = Arc::clone(&dropped);
    let running = start(
        Elector::builder(lock.clone(), "a")
            .on_started_leading(move |_| {
                let flag = DropFlag(Arc::clone(&flag));
                async move {
                    let _flag = flag;
                    std::future::pending().await
                }
            })
            .work_grace(secs(5))
            .release_on_stop(true),
    );
    running.leads().await;
    let begin = Instant::now();
    assert_eq!(running.stopped().await, Ok(()));
    assert_eq!(begin.elapsed().as_secs(), 5);
    assert!(dropped.load(Ordering::Relaxed));
    assert_eq!(lock.record().unwrap().holder, "");
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_cannot_be_renewed_is_lost_at_the_deadline_and_told_once() {
    for fails in [true, false] {
        let (lock, log) = (FakeLock::new(), Log::default());
        let running = start(candidate(lock.clone(), "a", &log).on_started_leading(work(&log, Duration::ZERO)));
        running.leads().await;
        let term = running.leadership.term().unwrap();
        let begin = Instant::now();
        if fails {
            lock.fail(true)
        } else {
            lock.block(true)
        }
        term.ended().await;
        assert_eq!(begin.elapsed(), secs(10));
        assert!(!running.leadership.is_leader());
        assert_eq!(running.task.await.unwrap(), Err(ElectionError::Lost(EndCause::RenewDeadline)));
        assert_eq!(log.take(), ["leader \"a\"", "work begins", "stopped", "work ends, over"]);
        assert_eq!(lock.record().unwrap().holder, "a", "no release: work may go on that nobody knows of");
    }
}

#[tokio::test(start_paused = true)]
async fn work_that_goes_on_after_a_loss_is_aborted_before_others_can_lead() {
    let (lock, log) = (FakeLock::new(), Log::default());
    let running = start(candidate(lock.clone(), "a", &log).on_started_leading(work(&log, secs(1000))));
    running.leads().await;
    let begin = Instant::now();
    lock.fail(true);
    assert!(running.task.await.unwrap().is_err());
    assert_eq!(begin.elapsed(), secs(15), "as long as the lease holds");
    sleep(secs(2000)).await;
    assert!(!log.take().iter().any(|line| line.starts_with("work ends")));
}

#[tokio::test(start_paused = true)]
async fn who_sees_the_lease_with_somebody_else_stops_at_once_and_its_work_too() {
    let (lock, log) = (FakeLock::new(), Log::default());
    let running = start(candidate(lock.clone(), "a", &log).on_started_leading(work(&log, secs(1000))));
    running.leads().await;
    let begin = Instant::now();
    lock.set(Some(held_by("b")));
    assert_eq!(running.task.await.unwrap(), Err(ElectionError::Lost(EndCause::Taken { by: "b".into() })));
    assert!(begin.elapsed() <= secs(2));
    assert!(!running.leadership.is_leader());
    assert_eq!(running.leadership.holder(), "b");
    assert_eq!(log.take(), ["leader \"a\"", "work begins", "leader \"b\"", "stopped"]);
}

#[tokio::test(start_paused = true)]
async fn who_never_led_is_told_nothing_and_writes_nothing_when_it_stops() {
    let (lock, log) = (FakeLock::new(), Log::default());
    lock.set(Some(held_by("b")));
    let running =
        start(candidate(lock.clone(), "a", &log).on_started_leading(work(&log, secs(1))).release_on_stop(true));
    sleep(secs(1)).await;
    assert_eq!(running.stopped().await, Ok(()));
    assert_eq!(log.take(), ["leader \"b\""]);
    assert!(lock.take_calls().iter().all(|call| *call == FakeCall::Get));
    assert_eq!(lock.record(), Some(held_by("b")));
}

#[tokio::test(start_paused = true)]
async fn an_elector_that_is_stopped_before_it_runs_asks_nothing() {
    let lock = FakeLock::new();
    let stop = CancellationToken::new();
    stop.cancel();
    assert_eq!(Elector::builder(lock.clone(), "a").build().unwrap().run(stop).await, Ok(()));
    assert_eq!(lock.take_calls(), []);
}

/// The moment of the stop against that at which the lease is won, in both orders and many places.
#[tokio::test(start_paused = true)]
async fn a_stop_in_the_moment_of_the_victory_leaves_no_lease_and_no_half_term() {
    let (mut led, mut never) = (0, 0);
    for round in 0..200_u64 {
        let (lock, log) = (FakeLock::new(), Log::default());
        let running = start(
            candidate(lock.clone(), "a", &log).on_started_leading(work(&log, Duration::ZERO)).release_on_stop(true),
        );
        if round % 2 == 0 {
            lock.block(true);
        }
        for _ in 0..round / 2 % 10 {
            tokio::task::yield_now().await;
        }
        running.stop.cancel();
        if round % 3 == 0 {
            tokio::task::yield_now().await;
        }
        lock.block(false);
        assert_eq!(running.task.await.unwrap(), Ok(()));
        assert!(lock.record().is_none_or(|record| record.holder.is_empty()), "round {round}");
        let log = log.take();
        let begun = log.iter().filter(|line| line.as_str() == "work begins").count();
        let ended = log.iter().filter(|line| line.starts_with("work ends")).count();
        let stopped = log.iter().filter(|line| line.as_str() == "stopped").count();
        assert!(begun == ended && begun <= stopped && stopped <= 1, "round {round}: {log:?}");
        if stopped == 1 { led += 1 } else { never += 1 }
    }
    assert!(led > 0 && never > 0, "both orders: {led} and {never}");
}

#[tokio::test(start_paused = true)]
async fn a_stop_while_a_request_hangs_releases_the_lease_nevertheless() {
    let (lock, log) = (FakeLock::new(), Log::default());
    let running = start(candidate(lock.clone(), "a", &log).release_on_stop(true));
    running.leads().await;
    lock.block(true);
    sleep(secs(3)).await; // A renewal hangs.
    running.stop.cancel();
    sleep(secs(1)).await; // The release's read hangs.
    lock.block(false);
    assert_eq!(running.task.await.unwrap(), Ok(()));
    assert_eq!(lock.record().unwrap().holder, "");
    assert_eq!(log.take(), ["leader \"a\"", "stopped", "leader \"\""]);
}

#[tokio::test(start_paused = true)]
async fn a_release_without_a_server_ends_within_the_renew_deadline() {
    for blocked in [true, false] {
        let lock = FakeLock::new();
        let running = start(Elector::builder(lock.clone(), "a").release_on_stop(true));
        running.leads().await;
        if blocked {
            lock.block(true)
        } else {
            lock.fail(true)
        }
        let begin = Instant::now();
        assert_eq!(running.stopped().await, Ok(()));
        assert!(begin.elapsed() <= secs(10), "{:?}", begin.elapsed());
    }
}

#[test]
fn leadership_ends_in_time_though_nothing_of_the_elector_runs() {
    let (time, lock) = (ManualClock::new(), FakeLock::new());
    let elector = Elector::builder(lock, "a").clock(time.clock()).build().unwrap();
    let leadership = elector.leadership();
    let health = LeaderHealth::new(secs(20));
    health.set(leadership.clone());
    let run = elector.run(CancellationToken::new());
    let mut run = std::pin::pin!(run);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    for _ in 0..10 {
        assert!(run.as_mut().poll(&mut context).is_pending());
    }
    let term = leadership.term().expect("it leads");
    assert!(health.check().is_ok());
    // From now on it is never polled.
    time.advance(secs(10) - Duration::from_nanos(1));
    assert!(leadership.is_leader());
    time.advance(Duration::from_nanos(1));
    assert!(!leadership.is_leader() && !term.is_valid());
    let ended = std::pin::pin!(term.ended());
    assert!(ended.poll(&mut context).is_ready());
    // The health check says when that is no accident any more.
    time.advance(secs(25));
    assert!(health.check().is_ok(), "within the tolerance");
    time.advance(secs(1));
    assert!(health.check().is_err());
    assert!(leadership.check(secs(60)).is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_machine_that_was_suspended_does_not_lead_when_it_wakes() {
    let (lock, slept) = (FakeLock::new(), Arc::new(AtomicU64::new(0)));
    let seconds = Arc::clone(&slept);
    let running = start(Elector::builder(lock.clone(), "a").suspended(move || secs(seconds.load(Ordering::Relaxed))));
    running.leads().await;
    // The monotonic clock has stood still for a minute; somebody else leads by now.
    slept.store(60, Ordering::Relaxed);
    assert!(!running.leadership.is_leader(), "before anything of it runs");
    lock.set(Some(held_by("b")));
    assert!(running.task.await.unwrap().is_err());
}

#[tokio::test(start_paused = true)]
async fn who_lost_contends_again_and_leads_soon_after_the_server_is_back() {
    let (lock, log) = (FakeLock::new(), Log::default());
    let elector = candidate(lock.clone(), "a", &log).build().unwrap();
    let (leadership, stop) = (elector.leadership(), CancellationToken::new());
    let task = tokio::spawn({
        let stop = stop.clone();
        async move { elector.run_until_stopped(stop).await }
    });
    let first = leadership.wait_for_leadership().await.unwrap();
    lock.fail(true);
    sleep(secs(45)).await;
    assert!(!first.is_valid() && !leadership.is_leader());
    assert!(leadership.last_error().unwrap().contains("the fake lock fails"), "{:?}", leadership.last_error());
    assert!(lock.take_calls().len() <= 40, "45 s of failures make no hot loop");
    lock.fail(false);
    let begin = Instant::now();
    leadership.wait_for_leadership().await.unwrap();
    assert!(begin.elapsed() <= secs(15) + Duration::from_millis(4400), "{:?}", begin.elapsed());
    assert_eq!(leadership.last_error(), None);
    stop.cancel();
    assert_eq!(task.await.unwrap(), Ok(()));
}

#[tokio::test(start_paused = true)]
async fn work_that_panics_ends_leadership_and_frees_the_lease() {
    let lock = FakeLock::new();
    let running = start(
        Elector::builder(lock.clone(), "a")
            .on_started_leading(|_| async {
                sleep(secs(3)).await;
                panic!("the work is broken")
            })
            .release_on_stop(true),
    );
    assert_eq!(running.task.await.unwrap(), Err(ElectionError::Lost(EndCause::WorkPanicked)));
    assert_eq!(lock.record().unwrap().holder, "");
}

#[tokio::test(start_paused = true)]
async fn work_that_ends_by_itself_leaves_leadership_as_it_is() {
    let lock = FakeLock::new();
    let running = start(Elector::builder(lock.clone(), "a").on_started_leading(|_| async {}));
    running.leads().await;
    sleep(secs(60)).await;
    assert!(running.leadership.is_leader());
    assert_eq!(running.stopped().await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn callbacks_that_panic_harm_nobody() {
    struct Broken;
    impl LeaderMetrics for Broken {
        fn master_status(&self, _: &str, _: bool) {
            panic!("metrics")
        }
    }
    let lock = FakeLock::new();
    let running = start(
        Elector::builder(lock.clone(), "a")
            .on_new_leader(|_| panic!("new leader"))
            .on_stopped_leading(|| panic!("stopped"))
            .metrics(Arc::new(Broken))
            .events(|_: &LockReference, _: &str| panic!("events"))
            .release_on_stop(true),
    );
    running.leads().await;
    sleep(secs(30)).await;
    assert!(running.leadership.is_leader());
    assert_eq!(running.stopped().await, Ok(()));
    assert_eq!(lock.record().unwrap().holder, "");
}

#[tokio::test(start_paused = true)]
async fn metrics_and_events_say_who_leads() {
    struct Told(Log);
    impl LeaderMetrics for Told {
        fn master_status(&self, name: &str, leads: bool) {
            self.0.note(format!("{name} {leads}"));
        }
        fn slowpath(&self, name: &str) {
            self.0.note(format!("{name} slow"));
        }
    }
    let (lock, log) = (FakeLock::new(), Log::default());
    let events = log.clone();
    let running = start(
        Elector::builder(lock.clone(), "a")
            .metrics(Arc::new(Told(log.clone())))
            .events(move |lock: &LockReference, note: &str| events.note(format!("{} {note}", lock.kind))),
    );
    running.leads().await;
    // The version changes, the record does not.
    lock.set(lock.record());
    sleep(secs(3)).await;
    assert_eq!(running.stopped().await, Ok(()));
    assert_eq!(
        log.take(),
        ["fake false", "fake true", "Fake a became leader", "fake slow", "fake false", "Fake a stopped leading"]
    );
}

#[tokio::test(start_paused = true)]
async fn one_run_at_a_time_and_a_dropped_one_ends_leadership() {
    let (lock, dropped) = (FakeLock::new(), Arc::new(AtomicBool::new(false)));
    let flag = Arc::clone(&dropped);
    let elector = Elector::builder(lock.clone(), "a")
        .on_started_leading(move |_| {
            let flag = DropFlag(Arc::clone(&flag));
            async move {
                let _flag = flag;
                std::future::pending().await
            }
        })
        .build()
        .unwrap();
    let leadership = elector.leadership();
    let stop = CancellationToken::new();
    let run = elector.run(stop.clone());
    tokio::select! {
        _ = run => panic!("it runs"),
        term = leadership.wait_for_leadership() => assert!(term.is_some()),
    }
    assert!(!leadership.is_leader(), "the run is dropped");
    advance(secs(1)).await;
    tokio::task::yield_now().await;
    assert!(dropped.load(Ordering::Relaxed), "and its work aborted");

    let again = elector.run(stop.clone());
    let mut again = std::pin::pin!(again);
    tokio::select! {
        _ = again.as_mut() => panic!("it runs"),
        term = leadership.wait_for_leadership() => assert!(term.is_some()),
    }
    assert_eq!(elector.run(stop.clone()).await, Err(ElectionError::AlreadyRunning));
    stop.cancel();
    assert_eq!(again.await, Ok(()));
    assert_eq!(lock.record().unwrap().transitions, 0, "it found the lease as it wrote it");
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_an_elector_that_is_gone_is_told() {
    let elector = Elector::builder(FakeLock::new(), unique_identity()).build().unwrap();
    let leadership = elector.leadership();
    let waits = tokio::spawn(async move { leadership.wait_for_leadership().await.is_none() });
    tokio::task::yield_now().await;
    drop(elector);
    assert!(waits.await.unwrap());
    assert_ne!(unique_identity(), unique_identity());
}

#[tokio::test(start_paused = true)]
async fn a_hung_request_is_given_up_at_half_the_deadline_and_leadership_kept() {
    let lock = FakeLock::new();
    let running = start(Elector::builder(lock.clone(), "a"));
    running.leads().await;
    let term = running.leadership.term().unwrap();
    sleep(secs(1)).await;
    lock.block(true);
    sleep(Duration::from_millis(6500)).await; // The renewal of second 2 is given up at second 7.
    lock.block(false);
    sleep(secs(60)).await;
    assert!(term.is_valid(), "the same term");
    assert_eq!(running.stopped().await, Ok(()));
}

#[test]
fn settings_that_cannot_work_are_refused_when_the_elector_is_built() {
    let settings = Settings { renew_deadline: secs(15), ..Settings::default() };
    assert!(Elector::builder(FakeLock::new(), "a").settings(settings).build().is_err());
    assert!(Elector::builder(FakeLock::new(), "").build().is_err());
}

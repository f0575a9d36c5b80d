//! One attempt after the other: what becomes of requests, priorities, panics, time-outs, the stop.

use std::collections::BTreeSet;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::FutureExt;
use kubewire_controller::{Attempt, ControllerOptions, Outcome, PriorityQueue, Request, TerminalError};
use parking_lot::Mutex;
use tokio::sync::{Notify, Semaphore};

use crate::support::{Diary, Running, failed, pass, request, settle, writes};

/// Answers one outcome after the other, then `Done`.
fn answers(
    outcomes: impl IntoIterator<Item = Result<Outcome, anyhow::Error>>,
) -> impl Fn(Request, Attempt) -> std::future::Ready<Result<Outcome, anyhow::Error>> + Send + Sync + 'static {
    let outcomes = Mutex::new(outcomes.into_iter().collect::<Vec<_>>().into_iter());
    move |_, _| std::future::ready(outcomes.lock().next().unwrap_or(Ok(Outcome::Done)))
}

#[tokio::test(start_paused = true)]
async fn a_request_that_succeeds_is_gone() {
    let running = Running::start(ControllerOptions::new(), answers([]));
    running.add("web");
    settle().await;
    assert_eq!((running.results("success"), running.requeues("web")), (1.0, 0));
    assert!(running.controller.queue().queue().is_empty());
    assert_eq!(running.counted("reconcile_errors_total"), 0.0);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_request_that_fails_comes_back_with_growing_delays_until_it_succeeds() {
    let running = Running::start(ControllerOptions::new(), answers([failed("1"), failed("2"), failed("3")]));
    running.add("web");
    settle().await;
    assert_eq!((running.requeues("web"), running.results("error")), (1, 1.0));
    pass(3).await;
    assert_eq!(running.results("error"), 1.0, "not before 5 ms");
    pass(3).await;
    assert_eq!((running.requeues("web"), running.results("error")), (2, 2.0));
    pass(11).await;
    assert_eq!((running.requeues("web"), running.results("error")), (3, 3.0));
    pass(21).await;
    assert_eq!((running.requeues("web"), running.results("success")), (0, 1.0));
    assert_eq!(running.counted("reconcile_errors_total"), 3.0);
    assert_eq!(running.metric(r#"workqueue_retries_total{name="c",controller="c"}"#), 3.0);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn requeue_after_comes_back_once_after_its_delay_and_forgets_failures() {
    let again = Ok(Outcome::RequeueAfter(Duration::from_millis(100)));
    let running = Running::start(ControllerOptions::new(), answers([failed("1"), again]));
    running.add("web");
    pass(10).await;
    assert_eq!((running.requeues("web"), running.results("requeue_after")), (0, 1.0));
    pass(90).await;
    assert_eq!(running.results("success"), 0.0);
    pass(1000).await;
    assert_eq!(running.results("success"), 1.0);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn requeue_after_nothing_comes_back_at_once() {
    let running = Running::start(ControllerOptions::new(), answers([Ok(Outcome::RequeueAfter(Duration::ZERO))]));
    running.add("web");
    settle().await;
    assert_eq!((running.results("requeue_after"), running.results("success")), (1.0, 1.0));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn requeue_comes_back_with_growing_delays_and_keeps_failures() {
    let running = Running::start(ControllerOptions::new(), answers([Ok(Outcome::Requeue), Ok(Outcome::Requeue)]));
    running.add("web");
    settle().await;
    assert_eq!((running.requeues("web"), running.results("requeue")), (1, 1.0));
    pass(6).await;
    assert_eq!((running.requeues("web"), running.results("requeue")), (2, 2.0));
    pass(11).await;
    assert_eq!((running.requeues("web"), running.results("success")), (0, 1.0));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_terminal_error_is_not_tried_again_and_forgets_failures() {
    let terminal = || Err(anyhow::Error::new(TerminalError::new("no")).context("wrapped").context("twice"));
    let running = Running::start(ControllerOptions::new(), answers([failed("1"), terminal()]));
    running.add("web");
    pass(10_000).await;
    assert_eq!((running.requeues("web"), running.results("error")), (0, 2.0));
    assert_eq!(running.counted("reconcile_errors_total"), 2.0);
    assert_eq!(running.counted("terminal_reconcile_errors_total"), 1.0);
    assert_eq!(running.results("success"), 0.0);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_change_brings_a_request_back_before_its_delay_is_over_and_takes_the_delay_up() {
    let options = ControllerOptions::new().priority_queue(PriorityQueue::new());
    let running = Running::start(options, answers([Ok(Outcome::requeue_after_secs(3600))]));
    running.add("web");
    pass(1000).await;
    running.add("web");
    pass(7_200_000).await;
    assert_eq!((running.results("requeue_after"), running.results("success")), (1.0, 1.0));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_request_comes_back_at_its_priority_or_at_the_one_that_the_attempt_says() {
    let seen = Diary::default();
    let diary = seen.clone();
    let steps = AtomicUsize::new(0);
    let reconcile = move |_: Request, attempt: Attempt| {
        diary.write(attempt.priority().to_string());
        let outcome = match steps.fetch_add(1, Ordering::Relaxed) {
            0 => failed("keeps 10"),
            1 => Ok(Outcome::RequeueAfter(Duration::from_millis(1))),
            2 => {
                attempt.requeue_at_priority(99);
                failed("goes to 99")
            }
            3 => {
                attempt.requeue_at_priority(-7);
                Ok(Outcome::RequeueAfter(Duration::from_millis(1)))
            }
            _ => Ok(Outcome::Done),
        };
        async { outcome }
    };
    let running = Running::start(ControllerOptions::new().priority_queue(PriorityQueue::new()), reconcile);
    running.controller.queue().add(request("web"), 10);
    pass(100).await;
    assert_eq!(seen.lines(), ["10", "10", "10", "99", "-7"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn without_a_priority_queue_every_priority_is_0() {
    let seen = Diary::default();
    let diary = seen.clone();
    let reconcile = move |_: Request, attempt: Attempt| {
        diary.write(attempt.priority().to_string());
        attempt.requeue_at_priority(99);
        let outcome = if diary.len() < 2 { Ok(Outcome::RequeueAfter(Duration::ZERO)) } else { failed("twice") };
        async { outcome }
    };
    let running = Running::start(ControllerOptions::new(), reconcile);
    running.controller.queue().add(request("web"), 10);
    pass(10).await;
    assert_eq!(seen.lines(), ["0", "0", "0"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn the_initial_list_waits_for_changes_but_not_for_ever_where_it_ages() {
    // aging | what is taken: `old` waits since long at -100, `new` has just come at 0
    for (aging, want) in [(Duration::ZERO, ["new", "old"]), (Duration::from_millis(1), ["old", "new"])] {
        let (seen, gate) = (Diary::default(), Arc::new(Semaphore::new(0)));
        let (diary, closed) = (seen.clone(), Arc::clone(&gate));
        let reconcile = move |request: Request, _: Attempt| {
            let (diary, gate) = (diary.clone(), Arc::clone(&closed));
            async move {
                gate.acquire().await?.forget();
                diary.write(request.name());
                anyhow::Ok(Outcome::Done)
            }
        };
        let options = ControllerOptions::new().priority_queue(PriorityQueue::new().aging(aging));
        let running = Running::start(options, reconcile);
        running.controller.queue().add(request("first"), 0);
        settle().await;
        running.controller.queue().add(request("old"), kubewire_controller::LOW_PRIORITY);
        pass(200).await;
        running.controller.queue().add(request("new"), 0);
        gate.add_permits(3);
        settle().await;
        assert_eq!(seen.lines()[1..], want, "{aging:?}");
        running.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_panic_counts_as_an_error_and_is_tried_again() {
    let tries = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&tries);
    let reconcile = move |_: Request, _: Attempt| {
        let tries = Arc::clone(&counted);
        async move {
            assert!(tries.fetch_add(1, Ordering::Relaxed) > 0, "the first goes wrong");
            anyhow::Ok(Outcome::Done)
        }
    };
    let running = Running::start(ControllerOptions::new(), reconcile);
    running.add("web");
    pass(100).await;
    assert_eq!((running.results("error"), running.results("success")), (1.0, 1.0));
    assert_eq!(running.counted("reconcile_panics_total"), 1.0);
    assert_eq!(running.counted("active_workers"), 0.0);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_before_the_first_await_is_the_attempts_too() {
    let reconcile = |_: Request, _: Attempt| -> std::future::Ready<anyhow::Result<Outcome>> { panic!("at once") };
    let running = Running::start(ControllerOptions::new(), reconcile);
    running.add("web");
    settle().await;
    assert_eq!(running.counted("reconcile_panics_total"), 1.0);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_panic_that_is_not_recovered_ends_the_controller_and_its_request_is_done() {
    let reconcile = |request: Request, _: Attempt| async move {
        if request.name() == "bad" {
            panic!("as it should");
        }
        pending::<anyhow::Result<Outcome>>().await
    };
    let running = Running::start(ControllerOptions::new().recover_panic(false).max_concurrent_reconciles(2), reconcile);
    running.add("slow");
    running.add("bad");
    settle().await;
    assert!(running.is_finished());
    assert_eq!(running.counted("reconcile_panics_total"), 1.0);
    assert_eq!(running.counted("active_workers"), 0.0);
    let snapshot = running.controller.queue().queue().snapshot();
    assert!(snapshot.processing.is_empty() && snapshot.shutting_down);
    assert_eq!(running.panicked().await, "as it should");
}

#[tokio::test(start_paused = true)]
async fn the_programs_panic_hook_is_called_once_for_each_panic() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    const MARK: &str = "a panic of which the hook hears";
    let others = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if info.payload().downcast_ref::<&str>() == Some(&MARK) {
            CALLS.fetch_add(1, Ordering::Relaxed);
        } else {
            others(info);
        }
    }));
    let reconcile =
        |_: Request, _: Attempt| -> std::future::Ready<anyhow::Result<Outcome>> { std::panic::panic_any(MARK) };
    let running = Running::start(ControllerOptions::new(), reconcile);
    running.add("web");
    settle().await;
    assert_eq!(CALLS.load(Ordering::Relaxed), 1);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_attempt_is_given_up_after_the_time_out_and_tried_again() {
    let reconcile = |_: Request, attempt: Attempt| async move {
        assert!(attempt.deadline().is_some());
        pending::<anyhow::Result<Outcome>>().await
    };
    let running = Running::start(ControllerOptions::new().reconcile_timeout(Duration::from_secs(1)), reconcile);
    running.add("web");
    pass(3100).await;
    assert_eq!(running.counted("reconcile_timeouts_total"), 3.0);
    assert_eq!((running.results("error"), running.requeues("web")), (3.0, 3));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn only_the_controllers_own_time_out_counts() {
    let own = |_: Request, _: Attempt| async {
        tokio::time::timeout(Duration::from_millis(1), pending::<()>()).await?;
        anyhow::Ok(Outcome::Done)
    };
    let running = Running::start(ControllerOptions::new().reconcile_timeout(Duration::from_secs(10)), own);
    running.add("web");
    pass(2).await;
    assert_eq!((running.results("error"), running.counted("reconcile_timeouts_total")), (1.0, 0.0));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn without_a_time_out_there_is_no_deadline() {
    let reconcile = |_: Request, attempt: Attempt| async move {
        assert_eq!(attempt.deadline(), None);
        tokio::time::sleep(Duration::from_secs(86_400)).await;
        anyhow::Ok(Outcome::Done)
    };
    let running = Running::start(ControllerOptions::new(), reconcile);
    running.add("web");
    pass(86_400_001).await;
    assert_eq!(running.results("success"), 1.0);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_result_that_comes_after_the_deadline_counts_as_late_and_is_honoured() {
    // It blocks its thread, so that nobody can give it up in time.
    let reconcile = |_: Request, _: Attempt| async {
        let _ = tokio::time::advance(Duration::from_secs(2)).now_or_never();
        anyhow::Ok(Outcome::Done)
    };
    let running = Running::start(ControllerOptions::new().reconcile_timeout(Duration::from_secs(1)), reconcile);
    running.add("web");
    settle().await;
    let ended = (running.results("success"), running.results("error"));
    assert_eq!(running.counted("reconcile_timeouts_total"), 1.0);
    assert_eq!(ended, (1.0, 0.0));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn every_attempt_is_in_the_histogram_whatever_becomes_of_it() {
    let outcomes = [failed("1"), Ok(Outcome::Requeue), Ok(Outcome::RequeueAfter(Duration::ZERO))];
    let running = Running::start(ControllerOptions::new(), answers(outcomes));
    running.add("web");
    pass(1000).await;
    assert_eq!(running.counted("reconcile_time_seconds_count"), 4.0);
    assert_eq!(running.metric(r#"workqueue_work_duration_seconds_count{name="c",controller="c"}"#), 4.0);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn as_many_attempts_are_made_at_a_time_as_there_are_workers() {
    let gate = Arc::new(Semaphore::new(0));
    let closed = Arc::clone(&gate);
    let reconcile = move |_: Request, _: Attempt| {
        let gate = Arc::clone(&closed);
        async move {
            gate.acquire().await?.forget();
            anyhow::Ok(Outcome::Done)
        }
    };
    let running = Running::start(ControllerOptions::new().max_concurrent_reconciles(3), reconcile);
    (0..5).for_each(|n| running.add(&format!("web-{n}")));
    settle().await;
    assert_eq!(running.counted("active_workers"), 3.0);
    assert_eq!(running.counted("max_concurrent_reconciles"), 3.0);
    pass(2000).await;
    let of_queue = |name: &str| running.metric(&format!(r#"workqueue_{name}{{name="c",controller="c"}}"#));
    assert!((6.0..6.1).contains(&of_queue("unfinished_work_seconds")));
    assert!((2.0..2.1).contains(&of_queue("longest_running_processor_seconds")));
    gate.add_permits(5);
    settle().await;
    assert_eq!((running.counted("active_workers"), running.results("success")), (0.0, 5.0));
    assert_eq!((of_queue("unfinished_work_seconds"), of_queue("longest_running_processor_seconds")), (0.0, 0.0));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_changes_during_its_attempt_gets_one_more_after_it_and_never_two_at_a_time() {
    let (at_work, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (working, seen) = (Arc::clone(&at_work), Arc::clone(&most));
    let reconcile = move |_: Request, _: Attempt| {
        let (working, seen) = (Arc::clone(&working), Arc::clone(&seen));
        async move {
            seen.fetch_max(working.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_secs(1)).await;
            working.fetch_sub(1, Ordering::Relaxed);
            anyhow::Ok(Outcome::Done)
        }
    };
    let running = Running::start(ControllerOptions::new().max_concurrent_reconciles(4), reconcile);
    running.add("web");
    pass(500).await;
    (0..10).for_each(|_| running.add("web"));
    pass(5000).await;
    assert_eq!((running.results("success"), most.load(Ordering::Relaxed)), (2.0, 1));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_thousand_adds_of_one_request_before_the_start_are_one_attempt() {
    let seen = Diary::default();
    let controller = kubewire_controller::Controller::new("c", writes(&seen), ControllerOptions::new());
    (0..1000).for_each(|_| controller.queue().add(request("web"), 0));
    let running = Running::of(controller, kubewire_controller::ControllerMetrics::new());
    settle().await;
    assert_eq!(seen.lines(), ["web"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn each_attempt_has_an_id_which_all_that_runs_in_it_can_read() {
    assert!(Attempt::current().is_none());
    let ids = Arc::new(Mutex::new(BTreeSet::new()));
    let seen = Arc::clone(&ids);
    let reconcile = move |_: Request, attempt: Attempt| {
        let seen = Arc::clone(&seen);
        async move {
            tokio::task::yield_now().await;
            let current = Attempt::current().map(|current| current.id());
            assert_eq!(current, Some(attempt.id()));
            assert_eq!(attempt.id().to_string().len(), 36);
            seen.lock().insert(attempt.id());
            let spawned = tokio::spawn(async { Attempt::current().is_none() }).await?;
            let scoped = tokio::spawn(attempt.scope(async { Attempt::current().is_some() })).await?;
            assert!(spawned && scoped);
            failed("again")
        }
    };
    let running = Running::start(ControllerOptions::new(), reconcile);
    running.add("web");
    pass(50).await;
    assert_eq!((ids.lock().len() as f64, running.counted("reconcile_panics_total")), (running.results("error"), 0.0));
    assert!(ids.lock().len() > 2);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_attempt_knows_how_often_its_request_has_failed() {
    let seen = Diary::default();
    let diary = seen.clone();
    let reconcile = move |_: Request, attempt: Attempt| {
        diary.write(attempt.failures().to_string());
        let outcome = if diary.len() < 3 { failed("again") } else { Ok(Outcome::Done) };
        async { outcome }
    };
    let running = Running::start(ControllerOptions::new(), reconcile);
    running.add("web");
    pass(50).await;
    assert_eq!(seen.lines(), ["0", "1", "2"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn after_the_stop_no_attempt_begins_and_the_running_one_has_its_time() {
    let (seen, ended) = (Diary::default(), Arc::new(Notify::new()));
    let (diary, may_end) = (seen.clone(), Arc::clone(&ended));
    let reconcile = move |_: Request, attempt: Attempt| {
        let (diary, may_end) = (diary.clone(), Arc::clone(&may_end));
        async move {
            diary.write("begins");
            attempt.stopping().cancelled().await;
            diary.write("hears of the stop");
            may_end.notified().await;
            diary.write("ends");
            anyhow::Ok(Outcome::requeue_after_secs(1))
        }
    };
    let running = Running::start(ControllerOptions::new(), reconcile);
    (0..10).for_each(|n| running.add(&format!("web-{n}")));
    running.controller.queue().add_after(request("later"), Duration::from_secs(1), 0);
    settle().await;
    running.cx.stop.cancel();
    pass(60_000).await;
    assert!(!running.is_finished(), "the attempt goes on");
    assert_eq!(seen.lines(), ["begins", "hears of the stop"]);
    ended.notify_one();
    settle().await;
    assert_eq!(seen.lines(), ["begins", "hears of the stop", "ends"]);
    let queue = running.controller.queue().queue().clone();
    assert_eq!((queue.len(), queue.snapshot().delayed.len()), (9, 0));
    running.add("too late");
    assert_eq!(queue.len(), 9);
    running.ended().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn once_cancelled_a_running_attempt_is_given_up() {
    let dropped = Diary::default();
    struct WritesOnDrop(Diary);
    impl Drop for WritesOnDrop {
        fn drop(&mut self) {
            self.0.write("dropped");
        }
    }
    let diary = dropped.clone();
    let reconcile = move |_: Request, _: Attempt| {
        let held = WritesOnDrop(diary.clone());
        async move {
            let _held = held;
            pending::<anyhow::Result<Outcome>>().await
        }
    };
    let running = Running::start(ControllerOptions::new().reconcile_timeout(Duration::from_secs(3600)), reconcile);
    running.add("web");
    settle().await;
    running.cx.stop.cancel();
    pass(30_000).await;
    assert_eq!(dropped.len(), 0);
    running.cx.cancel.cancel();
    settle().await;
    assert_eq!(dropped.lines(), ["dropped"]);
    assert_eq!((running.results("error"), running.counted("reconcile_timeouts_total")), (1.0, 0.0));
    running.ended().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_dropped_ends_everything() {
    let seen = Diary::default();
    let controller = kubewire_controller::Controller::new("c", writes(&seen), ControllerOptions::new());
    let run = controller.run(kubewire_controller::RunContext::new());
    assert!(tokio::time::timeout(Duration::from_secs(1), run).await.is_err());
    assert!(controller.queue().queue().is_shutting_down());
    controller.queue().add(request("web"), 0);
    settle().await;
    assert_eq!(seen.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn what_panics_when_an_attempt_is_given_up_harms_nobody() {
    struct PanicsOnDrop;
    impl Drop for PanicsOnDrop {
        fn drop(&mut self) {
            if !std::thread::panicking() {
                panic!("on drop");
            }
        }
    }
    let reconcile = |_: Request, _: Attempt| async {
        let _held = PanicsOnDrop;
        pending::<anyhow::Result<Outcome>>().await
    };
    let running = Running::start(ControllerOptions::new().reconcile_timeout(Duration::from_secs(1)), reconcile);
    running.add("web");
    pass(2500).await;
    assert_eq!(running.counted("reconcile_timeouts_total"), 2.0);
    running.stop().await;
}

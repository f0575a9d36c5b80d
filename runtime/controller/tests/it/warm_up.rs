//! Sources started before the replica leads.

use kubewire_controller::{Controller, ControllerMetrics, ControllerOptions, RunContext, Runnable, StartError};

use crate::start::{Switch, switched};
use crate::support::{Diary, Running, pass, settle, writes};

fn controller(diary: &Diary, warm_up: bool) -> Controller {
    Controller::new("pods", writes(diary), ControllerOptions::new().warm_up(warm_up))
}

#[tokio::test(start_paused = true)]
async fn without_the_option_there_is_nothing_to_warm_up() {
    let diary = Diary::default();
    let (cold, warm) = (controller(&diary, false), controller(&diary, true));
    assert!(Runnable::warm_up(&cold, RunContext::new()).is_none());
    assert!(Runnable::warm_up(&warm, RunContext::new()).is_some());
    settle().await;
    assert_eq!(diary.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_warm_replica_queues_and_works_off_what_is_queued_when_it_leads() {
    let (diary, on) = (Diary::default(), Switch::off());
    on.on();
    let pods = controller(&diary, true);
    for name in ["a", "b"] {
        pods.watch(switched(name, &diary, &on)).await.unwrap();
    }
    let warm = RunContext::new();
    Runnable::warm_up(&pods, warm.clone()).unwrap().await.unwrap();
    pass(3_600_000).await;
    assert_eq!((diary.len(), pods.queue().queue().len()), (2, 2), "started, not worked on: {:?}", diary.lines());
    // A source that comes now is started at once.
    pods.watch(switched("late", &diary, &on)).await.unwrap();
    assert_eq!(diary.lines().last().map(String::as_str), Some("late starts"));
    let running = Running::of(pods, ControllerMetrics::new());
    settle().await;
    let mut done = diary.lines().split_off(3);
    done.sort();
    assert_eq!(done, ["a", "b", "late"], "each source was started once");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn warm_up_and_start_at_the_same_time_start_each_source_once() {
    let (diary, switch) = (Diary::default(), Switch::off());
    let pods = controller(&diary, true);
    for n in 0..10 {
        pods.watch(switched(&format!("s{n}"), &diary, &switch)).await.unwrap();
    }
    let warms = pods.clone();
    let warm = tokio::spawn(async move { warms.warm_up(RunContext::new()).await });
    let running = Running::of(pods, ControllerMetrics::new());
    pass(1000).await;
    assert_eq!(diary.len(), 10, "elected while sources still sync: no worker yet");
    assert!(!warm.is_finished());
    switch.on();
    settle().await;
    warm.await.unwrap().unwrap();
    assert_eq!(diary.len(), 20);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_warm_up_that_fails_tells_so_and_a_later_start_has_the_same_error() {
    let (diary, never) = (Diary::default(), Switch::off());
    let pods = controller(&diary, true);
    pods.watch(switched("never", &diary, &never)).await.unwrap();
    let error = pods.warm_up(RunContext::new()).await.unwrap_err();
    assert!(matches!(error, StartError::NotSynced { .. }), "{error:?}");
    let later = pods.run(RunContext::new()).await.unwrap_err();
    assert_eq!(later.to_string(), error.to_string());
}

#[tokio::test(start_paused = true)]
async fn a_stop_of_a_warm_standby_ends_its_sources_without_a_start() {
    let (diary, on) = (Diary::default(), Switch::off());
    on.on();
    let kept = std::sync::Arc::new(());
    let keeps = std::sync::Arc::clone(&kept);
    let pods = controller(&diary, true);
    let source = kubewire_controller::source_fn("a", move |_: kubewire_controller::SourceContext| async move {
        Ok::<_, std::io::Error>(kubewire_controller::Started::now().and_keep(keeps))
    });
    pods.watch(source).await.unwrap();
    let warm = RunContext::new();
    pods.warm_up(warm.clone()).await.unwrap();
    assert_eq!(std::sync::Arc::strong_count(&kept), 2);
    warm.stop.cancel();
    settle().await;
    assert_eq!(std::sync::Arc::strong_count(&kept), 1);
    // Elected too late: it ends at once, as its own context is stopped too.
    pods.run(warm).await.unwrap();
    // While sources still sync.
    let pods = controller(&diary, true);
    pods.watch(switched("never", &diary, &Switch::off())).await.unwrap();
    let (cx, warms) = (RunContext::new(), pods.clone());
    let context = cx.clone();
    let task = tokio::spawn(async move { warms.warm_up(context).await });
    pass(1000).await;
    cx.stop.cancel();
    settle().await;
    task.await.unwrap().unwrap();
}

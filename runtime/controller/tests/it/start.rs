//! How a controller starts, and all the ways in which it does not.

use std::error::Error;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use kubewire_controller::{
    Controller, ControllerMetrics, ControllerOptions, Group, RunContext, Runnable, Source, SourceContext, StartError,
    Started, source_fn,
};
use kubewire_informer::{CacheSync, Hindrance, Stopped};
use tokio::sync::watch;

use crate::support::{Diary, Running, pass, request, settle, writes};

/// Something that becomes synced when it is told to.
#[derive(Clone)]
pub(crate) struct Switch(watch::Sender<bool>);

impl Switch {
    pub(crate) fn off() -> Self {
        Self(watch::Sender::new(false))
    }

    pub(crate) fn on(&self) {
        self.0.send_replace(true);
    }
}

impl CacheSync for Switch {
    fn name(&self) -> String {
        "the switch".to_owned()
    }

    fn has_synced(&self) -> bool {
        *self.0.borrow()
    }

    fn wait_synced(&self) -> BoxFuture<'_, Result<(), Stopped>> {
        async {
            let _ = self.0.subscribe().wait_for(|on| *on).await;
            Ok(())
        }
        .boxed()
    }

    fn hindrance(&self) -> Hindrance {
        Hindrance::Busy
    }
}

/// A source that writes when it is started, and is synced by a switch.
pub(crate) fn switched(name: &str, diary: &Diary, switch: &Switch) -> impl Source {
    let (diary, switch, label) = (diary.clone(), switch.clone(), name.to_owned());
    source_fn(name, move |cx: SourceContext| async move {
        diary.write(format!("{label} starts"));
        cx.queue.add(request(&label), 0);
        Ok::<_, std::io::Error>(Started::now().and_sync(switch))
    })
}

fn controller(diary: &Diary, options: ControllerOptions) -> Controller {
    Controller::new("pods", writes(diary), options)
}

fn run(controller: Controller) -> Running {
    Running::of(controller, ControllerMetrics::new())
}

#[test]
fn a_controller_is_made_outside_a_runtime_and_leaves_nothing_behind() {
    let diary = Diary::default();
    let made = controller(&diary, ControllerOptions::new());
    made.queue().add(request("web"), 0);
    drop(made);
    assert_eq!(diary.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn without_sources_or_with_one_that_does_not_sync_it_starts_at_once() {
    let diary = Diary::default();
    let pods = controller(&diary, ControllerOptions::new());
    let adds = source_fn("adds", |cx: SourceContext| async move {
        cx.queue.add(request("added"), 0);
        Ok::<_, std::io::Error>(Started::now())
    });
    pods.watch(adds).await.unwrap();
    let running = run(pods);
    settle().await;
    assert_eq!(diary.lines(), ["added"]);
    assert!(running.controller.has_synced());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn sources_start_in_parallel_and_workers_when_all_are_synced() {
    let diary = Diary::default();
    let pods = controller(&diary, ControllerOptions::new());
    let (a, b) = (Switch::off(), Switch::off());
    pods.watch(switched("a", &diary, &a)).await.unwrap();
    pods.watch(switched("b", &diary, &b)).await.unwrap();
    settle().await;
    assert_eq!(diary.len(), 0, "nothing happens before the start");
    let running = run(pods);
    settle().await;
    a.on();
    pass(60_000).await;
    let mut started = diary.lines();
    started.sort();
    assert_eq!(started, ["a starts", "b starts"]);
    assert!(!running.controller.has_synced());
    b.on();
    settle().await;
    assert_eq!(diary.len(), 4);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn slow_sources_take_as_long_as_the_slowest() {
    let diary = Diary::default();
    let pods = controller(&diary, ControllerOptions::new());
    for seconds in [40, 60, 80] {
        let slow = source_fn(format!("{seconds}"), move |_: SourceContext| async move {
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            Ok::<_, std::io::Error>(Started::now())
        });
        pods.watch(slow).await.unwrap();
    }
    let running = run(pods);
    pass(79_999).await;
    assert!(!running.controller.has_synced());
    pass(2).await;
    assert!(running.controller.has_synced());
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_source_that_never_syncs_fails_the_start_and_is_named() {
    let diary = Diary::default();
    let pods = controller(&diary, ControllerOptions::new());
    let (on, off) = (Switch::off(), Switch::off());
    on.on();
    pods.watch(switched("a", &diary, &on)).await.unwrap();
    pods.watch(switched("never", &diary, &off)).await.unwrap();
    pods.watch(switched("b", &diary, &on)).await.unwrap();
    let running = run(pods);
    pass(119_999).await;
    assert!(!running.is_finished());
    pass(2).await;
    let error = running.ended().await.unwrap_err();
    let text = "failed to wait for pods caches to sync never within 120s: the switch: no failure, but not done yet";
    assert_eq!(error.to_string(), text);
    assert_eq!(diary.len(), 3, "no worker ran: {:?}", diary.lines());
}

#[tokio::test(start_paused = true)]
async fn a_source_whose_start_does_not_return_fails_the_start_with_a_hint() {
    let diary = Diary::default();
    let options = ControllerOptions::new().cache_sync_timeout(Duration::from_secs(7));
    let pods = controller(&diary, options);
    let blocks = source_fn("blocks", |_: SourceContext| pending::<Result<Started, std::io::Error>>());
    pods.watch(blocks).await.unwrap();
    let running = run(pods);
    pass(7001).await;
    let error = running.ended().await.unwrap_err();
    assert!(matches!(&error, StartError::StartTimedOut { source_name, .. } if source_name == "blocks"), "{error}");
    assert!(error.to_string().contains("must not block"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_stop_while_a_source_starts_or_syncs_is_no_error() {
    let diary = Diary::default();
    let blocks = || source_fn("blocks", |_: SourceContext| pending::<Result<Started, std::io::Error>>());
    for source_syncs in [true, false] {
        let pods = controller(&diary, ControllerOptions::new());
        if source_syncs {
            pods.watch(switched("a", &diary, &Switch::off())).await.unwrap();
        } else {
            pods.watch(blocks()).await.unwrap();
        }
        let running = run(pods);
        pass(1000).await;
        running.cx.stop.cancel();
        settle().await;
        assert!(running.is_finished(), "promptly");
        running.ended().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_controller_that_is_stopped_before_it_starts_ends_at_once() {
    let diary = Diary::default();
    let pods = controller(&diary, ControllerOptions::new());
    pods.queue().add(request("web"), 0);
    let cx = RunContext::new();
    cx.stop.cancel();
    pods.run(cx).await.unwrap();
    assert_eq!(diary.len(), 0);
}

#[derive(Debug, thiserror::Error)]
#[error("the disk is full")]
struct DiskFull;

#[tokio::test(start_paused = true)]
async fn the_error_of_a_source_is_found_in_that_of_the_start_and_every_later_start_has_it() {
    let diary = Diary::default();
    let pods = controller(&diary, ControllerOptions::new());
    let fails = source_fn("fails", |_: SourceContext| async { Err::<Started, _>(DiskFull) });
    pods.watch(fails).await.unwrap();
    pods.watch(switched("a", &diary, &Switch::off())).await.unwrap();
    pods.queue().add(request("web"), 0);
    for _ in 0..3 {
        let error = pods.run(RunContext::new()).await.unwrap_err();
        assert!(error.source().is_some_and(|source| source.is::<DiskFull>()), "{error:?}");
        assert!(error.to_string().contains("fails of the controller pods could not be started: the disk is full"));
    }
    let late = pods.watch(switched("late", &diary, &Switch::off())).await.unwrap_err();
    assert!(late.source().is_some_and(|source| source.is::<DiskFull>()), "{late:?}");
    assert!(diary.lines().iter().all(|line| line == "a starts"), "no worker ran: {:?}", diary.lines());
}

#[tokio::test(start_paused = true)]
async fn a_source_that_panics_is_an_error() {
    struct Panics;
    impl Source for Panics {
        fn name(&self) -> String {
            "panics".to_owned()
        }

        fn start(
            self: Box<Self>,
            _: SourceContext,
        ) -> BoxFuture<'static, Result<Started, kubewire_controller::BoxError>> {
            panic!("before the future")
        }
    }
    let diary = Diary::default();
    let pods = controller(&diary, ControllerOptions::new());
    pods.watch(Panics).await.unwrap();
    let error = pods.run(RunContext::new()).await.unwrap_err();
    assert!(error.to_string().contains("it panicked: before the future"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_second_start_is_refused_and_the_first_goes_on() {
    let diary = Diary::default();
    let running = run(controller(&diary, ControllerOptions::new()));
    settle().await;
    for _ in 0..2 {
        let error = running.controller.run(RunContext::new()).await.unwrap_err();
        assert!(matches!(error, StartError::AlreadyStarted { .. }), "{error:?}");
        assert!(error.to_string().contains("added to a manager twice"), "{error}");
    }
    running.add("web");
    settle().await;
    assert_eq!(diary.lines(), ["web"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_source_that_comes_after_the_start_is_started_at_once_and_its_failure_told() {
    let diary = Diary::default();
    let running = run(controller(&diary, ControllerOptions::new()));
    settle().await;
    let never = Switch::off();
    running.controller.watch(switched("late", &diary, &never)).await.unwrap();
    settle().await;
    assert_eq!(diary.lines(), ["late starts", "late"], "its sync is not waited for");
    let fails = source_fn("fails", |_: SourceContext| async { Err::<Started, _>(DiskFull) });
    let error = running.controller.watch(fails).await.unwrap_err();
    assert!(error.source().is_some_and(|source| source.is::<DiskFull>()));
    running.add("web");
    settle().await;
    assert_eq!(diary.len(), 3, "the others go on");
    let again = running.controller.clone();
    running.stop().await;
    let error = again.watch(switched("too late", &diary, &never)).await.unwrap_err();
    assert!(matches!(error, StartError::Ended { .. }), "{error:?}");
}

#[tokio::test(start_paused = true)]
async fn a_source_that_comes_while_others_sync_is_started_once() {
    let diary = Diary::default();
    let pods = controller(&diary, ControllerOptions::new());
    let slow = Switch::off();
    pods.watch(switched("slow", &diary, &slow)).await.unwrap();
    let running = run(pods);
    settle().await;
    // It does not wait for the sources that are being synced.
    running.controller.watch(switched("late", &diary, &slow)).await.unwrap();
    slow.on();
    settle().await;
    assert_eq!(diary.lines().iter().filter(|line| *line == "late starts").count(), 1);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn what_a_source_keeps_is_let_go_with_the_controller_and_what_it_is_made_of_with_the_start() {
    let (of_source, kept) = (Arc::new(()), Arc::new(()));
    let (made_of, keeps) = (Arc::clone(&of_source), Arc::clone(&kept));
    let source = source_fn("a", move |_: SourceContext| async move {
        drop(made_of);
        Ok::<_, std::io::Error>(Started::now().and_keep(keeps))
    });
    let diary = Diary::default();
    let pods = controller(&diary, ControllerOptions::new());
    pods.watch(source).await.unwrap();
    let running = run(pods);
    settle().await;
    assert_eq!((Arc::strong_count(&of_source), Arc::strong_count(&kept)), (1, 2));
    running.stop().await;
    assert_eq!(Arc::strong_count(&kept), 1);
}

#[tokio::test(start_paused = true)]
async fn as_a_runnable_it_is_ready_when_it_is_synced_and_tells_its_group() {
    let diary = Diary::default();
    let pods = controller(&diary, ControllerOptions::new());
    assert_eq!(Runnable::name(&pods), "pods");
    assert_eq!(pods.group(), Group::Leader);
    assert_eq!(controller(&diary, ControllerOptions::new().need_leader_election(false)).group(), Group::Always);
    let switch = Switch::off();
    pods.watch(switched("a", &diary, &switch)).await.unwrap();
    let (cx, runs) = (RunContext::new(), pods.clone());
    let context = cx.clone();
    let task = tokio::spawn(async move { Runnable::run(&runs, context).await });
    let mut ready = pods.ready(&cx);
    assert!(tokio::time::timeout(Duration::from_secs(60), &mut ready).await.is_err());
    switch.on();
    ready.await.unwrap();
    cx.stop.cancel();
    task.await.unwrap().unwrap();
}

//! What the tests of this crate have in common.

use std::sync::Arc;
use std::time::Duration;

use kubewire_controller::{
    Attempt, Controller, ControllerMetrics, ControllerOptions, Outcome, Reconciler, Request, RunContext, StartError,
};
use parking_lot::Mutex;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use tokio::task::JoinHandle;

/// On paused time this returns when nothing else is left to do.
pub(crate) async fn settle() {
    tokio::time::sleep(Duration::from_nanos(1)).await;
}

pub(crate) async fn pass(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

pub(crate) fn request(name: &str) -> Request {
    Request::new("default", name)
}

/// What happened, in order.
#[derive(Clone, Default)]
pub(crate) struct Diary(Arc<Mutex<Vec<String>>>);

impl Diary {
    pub(crate) fn write(&self, line: impl Into<String>) {
        self.0.lock().push(line.into());
    }

    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().clone()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().len()
    }
}

/// A reconciler that writes the names of its requests into a diary.
pub(crate) fn writes(diary: &Diary) -> impl Reconciler<Request> {
    let diary = diary.clone();
    move |request: Request, _: Attempt| {
        diary.write(request.name());
        async { Ok::<_, std::io::Error>(Outcome::Done) }
    }
}

pub(crate) fn failed(text: &str) -> Result<Outcome, anyhow::Error> {
    Err(anyhow::anyhow!("{text}"))
}

/// A controller that runs, with its metrics.
pub(crate) struct Running {
    pub(crate) controller: Controller,
    pub(crate) cx: RunContext,
    pub(crate) metrics: ControllerMetrics,
    registry: Registry,
    task: JoinHandle<Result<(), StartError>>,
}

impl Running {
    pub(crate) fn start(options: ControllerOptions, reconciler: impl Reconciler<Request>) -> Self {
        let metrics = ControllerMetrics::new();
        let controller = Controller::with_metrics("c", reconciler, options, &metrics);
        Self::of(controller, metrics)
    }

    pub(crate) fn of(controller: Controller, metrics: ControllerMetrics) -> Self {
        let mut registry = Registry::default();
        metrics.register(&mut registry);
        let (cx, runs) = (RunContext::new(), controller.clone());
        let context = cx.clone();
        let task = tokio::spawn(async move { runs.run(context).await });
        Self { controller, cx, metrics, registry, task }
    }

    pub(crate) fn add(&self, name: &str) {
        self.controller.queue().add(request(name), 0);
    }

    pub(crate) fn requeues(&self, name: &str) -> u32 {
        self.controller.queue().queue().num_requeues(&request(name))
    }

    /// The value of the series whose line begins so.
    pub(crate) fn metric(&self, series: &str) -> f64 {
        self.metrics.refresh();
        let mut text = String::new();
        encode(&mut text, &self.registry).unwrap();
        let line = text.lines().find(|line| line.rsplit_once(' ').is_some_and(|(name, _)| name == series));
        let (_, value) = line.unwrap_or_else(|| panic!("no {series} in\n{text}")).rsplit_once(' ').unwrap();
        value.parse().unwrap()
    }

    /// A metric of the controller by the part of its name that tells it.
    pub(crate) fn counted(&self, name: &str) -> f64 {
        self.metric(&format!(r#"controller_runtime_{name}{{controller="c"}}"#))
    }

    pub(crate) fn results(&self, result: &str) -> f64 {
        self.metric(&format!(r#"controller_runtime_reconcile_total{{controller="c",result="{result}"}}"#))
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.task.is_finished()
    }

    pub(crate) async fn ended(self) -> Result<(), StartError> {
        self.task.await.unwrap()
    }

    /// Takes the panic out that ended it.
    pub(crate) async fn panicked(self) -> String {
        let panic = self.task.await.unwrap_err().into_panic();
        panic.downcast_ref::<&str>().map(|text| (*text).to_owned()).unwrap_or_default()
    }

    pub(crate) async fn stop(self) {
        self.cx.stop.cancel();
        tokio::time::timeout(Duration::from_secs(3600), self.ended()).await.expect("it ends").unwrap();
    }
}

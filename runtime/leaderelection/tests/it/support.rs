//! What the tests share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use kubewire_leaderelection::{ElectionError, Elector, ElectorBuilder, Leadership, Lock, Record};
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub(crate) const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// What happened, in order.
#[derive(Clone, Default)]
pub(crate) struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    pub(crate) fn note(&self, what: impl Into<String>) {
        self.0.lock().push(what.into());
    }

    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock())
    }
}

/// An elector that runs in a task.
pub(crate) struct Running {
    pub(crate) leadership: Leadership,
    pub(crate) stop: CancellationToken,
    pub(crate) task: JoinHandle<Result<(), ElectionError>>,
}

impl Running {
    pub(crate) async fn stopped(self) -> Result<(), ElectionError> {
        self.stop.cancel();
        self.task.await.unwrap()
    }

    pub(crate) async fn leads(&self) {
        let _ = self.leadership.wait_for_leadership().await.expect("it runs");
    }
}

pub(crate) fn start(builder: ElectorBuilder) -> Running {
    let (elector, stop) = (builder.build().unwrap(), CancellationToken::new());
    let leadership = elector.leadership();
    let task = tokio::spawn({
        let stop = stop.clone();
        async move { elector.run(stop).await }
    });
    Running { leadership, stop, task }
}

/// A candidate that logs what it is told.
pub(crate) fn candidate(lock: impl Lock, name: &str, log: &Log) -> ElectorBuilder {
    let (stopped, leader) = (log.clone(), log.clone());
    Elector::builder(lock, name)
        .seed(7)
        .on_stopped_leading(move || stopped.note("stopped"))
        .on_new_leader(move |name| leader.note(format!("leader {name:?}")))
}

pub(crate) fn held_by(holder: &str) -> Record {
    Record { holder: holder.into(), lease_duration_seconds: 15, transitions: 3, ..Record::default() }
}

/// Work that notes its begin and its end, and takes a while to end.
pub(crate) fn work(
    log: &Log,
    takes: Duration,
) -> impl Fn(kubewire_leaderelection::Term) -> futures::future::BoxFuture<'static, ()> + Send + Sync + 'static {
    let log = log.clone();
    move |term| {
        let log = log.clone();
        Box::pin(async move {
            log.note("work begins");
            term.token().cancelled().await;
            tokio::time::sleep(takes).await;
            log.note(if term.is_valid() { "work ends, valid" } else { "work ends, over" });
        })
    }
}

/// True once it was dropped.
pub(crate) struct DropFlag(pub(crate) Arc<AtomicBool>);

impl Drop for DropFlag {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

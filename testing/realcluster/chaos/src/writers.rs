//! Those who change what the server has.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures::{TryStreamExt, stream};
use http::Method;
use kube_client::Client;
use serde::de::IgnoredAny;
use serde_json::json;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::dice::Dice;
use crate::follower::ROUND;
use crate::requests::{Failure, post, send};

const WRITERS: usize = 4;
const NAMESPACES: u64 = 4;
/// Each writer has so many names in each namespace, so that they are made, changed and deleted again and again.
const NAMES: u64 = 15;

/// How many requests are under way at once when pods are churned.
pub(crate) const CONCURRENCY: usize = 48;

/// What became of the writes of a run.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) done: AtomicU64,
    pub(crate) failed: AtomicU64,
}

/// The namespaces that everybody writes into.
pub(crate) async fn make_namespaces(client: &Client) -> Result<(), Failure> {
    for number in 0..NAMESPACES {
        let object = json!({ "metadata": { "name": format!("chaos-{number}") } });
        let _: IgnoredAny = post(client, "/api/v1/namespaces", &object).await?;
    }
    Ok(())
}

/// The writers at work.
pub(crate) struct Writing {
    stop: CancellationToken,
    tasks: JoinSet<()>,
}

pub(crate) fn start(client: &Client, tally: &Arc<Tally>, dice: &mut Dice) -> Writing {
    let (stop, mut tasks) = (CancellationToken::new(), JoinSet::new());
    for writer in 0..WRITERS {
        let (client, tally, stop, mut dice) = (client.clone(), Arc::clone(tally), stop.clone(), dice.fork());
        tasks.spawn(async move {
            let mut pause = Duration::ZERO;
            while stop.run_until_cancelled(tokio::time::sleep(pause)).await.is_some() {
                pause = match write(&client, writer, &mut dice).await {
                    Ok(done) => {
                        tally.done.fetch_add(u64::from(done), Ordering::Relaxed);
                        dice.up_to(Duration::from_millis(80))
                    }
                    Err(_) => {
                        tally.failed.fetch_add(1, Ordering::Relaxed);
                        Duration::from_millis(200) + dice.up_to(Duration::from_millis(300))
                    }
                };
            }
        });
    }
    Writing { stop, tasks }
}

impl Writing {
    /// Ends the writers. A request that got no answer may still be carried out.
    pub(crate) async fn stop(mut self) {
        self.stop.cancel();
        while self.tasks.join_next().await.is_some() {}
    }
}

/// Makes, changes or deletes a pod. Says whether there was something to do.
async fn write(client: &Client, writer: usize, dice: &mut Dice) -> Result<bool, Failure> {
    let pod = Pod { namespace: dice.below(NAMESPACES), name: format!("w{writer}-{}", dice.below(NAMES)) };
    let round = dice.below(5);
    let answer = match dice.below(10) {
        0..4 => pod.create(client).await,
        4..8 => pod.change(client, round).await,
        _ => pod.delete(client).await,
    };
    match answer {
        Ok(()) => Ok(true),
        // It is there already, or not there.
        Err(failure) if matches!(failure.code(), Some(404 | 409)) => Ok(false),
        Err(failure) => Err(failure),
    }
}

struct Pod {
    namespace: u64,
    name: String,
}

impl Pod {
    fn collection(&self) -> String {
        format!("/api/v1/namespaces/chaos-{}/pods", self.namespace)
    }

    fn path(&self) -> String {
        format!("{}/{}", self.collection(), self.name)
    }

    async fn create(&self, client: &Client) -> Result<(), Failure> {
        let object = json!({
            "metadata": { "name": self.name, "labels": { "app": "chaos", ROUND: "new" } },
            "spec": { "containers": [{ "name": "main", "image": "example.com/main:1" }] },
        });
        post(client, &self.collection(), &object).await.map(|IgnoredAny| ())
    }

    async fn change(&self, client: &Client, round: u64) -> Result<(), Failure> {
        let patch = json!({ "metadata": { "labels": { ROUND: round.to_string() } } });
        send(client, Method::PATCH, &self.path(), Some(&patch)).await.map(|IgnoredAny| ())
    }

    async fn delete(&self, client: &Client) -> Result<(), Failure> {
        let path = format!("{}?gracePeriodSeconds=0", self.path());
        send(client, Method::DELETE, &path, None).await.map(|IgnoredAny| ())
    }
}

/// What is done to each of many pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Churn {
    Create,
    Change,
    Delete,
}

/// Does this to so many pods, many at once, as fast as the server goes.
pub(crate) async fn churn(client: &Client, pods: u64, what: Churn, tally: &Tally) -> Result<(), Failure> {
    stream::iter((0..pods).map(Ok))
        .try_for_each_concurrent(CONCURRENCY, |number| async move {
            let pod = Pod { namespace: number % NAMESPACES, name: format!("churn-{number}") };
            insist(client, &pod, what).await?;
            tally.done.fetch_add(1, Ordering::Relaxed);
            Ok(())
        })
        .await
}

/// How often a write is tried again.
const TRIES_MAX: u32 = 20;

/// Until it is done: a busy server may refuse a request, and one without an answer may have been carried out.
async fn insist(client: &Client, pod: &Pod, what: Churn) -> Result<(), Failure> {
    let mut tries = 0;
    loop {
        let answer = match what {
            Churn::Create => pod.create(client).await,
            Churn::Change => pod.change(client, 9).await,
            Churn::Delete => pod.delete(client).await,
        };
        let Err(failure) = answer else { return Ok(()) };
        match (what, failure.code()) {
            (Churn::Create, Some(409)) | (Churn::Delete, Some(404)) if tries > 0 => return Ok(()),
            _ if tries == TRIES_MAX => return Err(failure),
            _ => tokio::time::sleep(Duration::from_millis(200)).await,
        }
        tries += 1;
    }
}

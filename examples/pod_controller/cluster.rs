//! Where the pods come from: a small simulated cluster in this process, or a real one.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Parser;
use k8s_openapi::api::core::v1::Pod;
use kube_client::{Client, Config};
use kubewire_apiserver::{ApiServer, RunningSimulation, Simulation};
pub(crate) use kubewire_examples::stop_signal;
use kubewire_examples::{duration, from_kubeconfig};
use kubewire_listwatch::{ListWatch, client_from_config};
use serde_json::json;

/// The pods whose names begin so fail to sync, to show retries.
const BROKEN: &str = "broken";

/// A pod controller, written by hand. Without options it brings a small simulated cluster of its own.
#[derive(Parser)]
pub(crate) struct Args {
    /// Use the cluster of this kubeconfig.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Use this context of the kubeconfig (of the default one, if none is named).
    #[arg(long)]
    context: Option<String>,
    /// Use the cluster in which this process runs as a pod.
    #[arg(long, conflicts_with_all = ["kubeconfig", "context"])]
    in_cluster: bool,
    /// Look at this namespace only.
    #[arg(long)]
    namespace: Option<String>,
    /// Look at pods with these labels only, such as `app=web,tier!=test`.
    #[arg(long)]
    selector: Option<String>,
    /// How many keys are worked on at once.
    #[arg(long, default_value = "2")]
    pub(crate) workers: NonZeroUsize,
    /// Give up when the cache is not full after this time.
    #[arg(long, default_value = "2m", value_parser = duration)]
    pub(crate) sync_timeout: Duration,
    /// Stop after this time, instead of running until Ctrl-C.
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub(crate) run_for: Option<Duration>,
}

/// A connection, and the server behind it where it is ours.
pub(crate) struct Cluster {
    pub(crate) client: Client,
    /// Lives as long as the connection.
    _simulation: Option<RunningSimulation>,
}

impl Args {
    /// What to list and watch.
    pub(crate) fn pods(&self, client: Client) -> anyhow::Result<ListWatch<Arc<Pod>>> {
        let pods = match &self.namespace {
            Some(namespace) => ListWatch::namespaced(client, namespace),
            None => ListWatch::all(client),
        };
        let pods = match &self.selector {
            Some(selector) => pods.labels(selector).with_context(|| format!("invalid --selector {selector:?}"))?,
            None => pods,
        };
        pods.check().with_context(|| format!("invalid --namespace {:?}", self.namespace))?;
        Ok(pods)
    }
}

/// Connects to the cluster that the arguments name, or starts one.
pub(crate) async fn connect(args: &Args) -> anyhow::Result<Cluster> {
    let config = if args.in_cluster {
        Config::incluster().context("not in a cluster")?
    } else if args.kubeconfig.is_some() || args.context.is_some() {
        from_kubeconfig(args.kubeconfig.as_deref(), args.context.as_deref()).await?
    } else {
        return simulated().await;
    };
    // As `Client::try_from`, but without hidden retries, which would keep a throttled request from the informer's back-off.
    let client = client_from_config(config).context("cannot build a client from the kubeconfig")?;
    Ok(Cluster { client, _simulation: None })
}

/// A server in this process, with pods that come, change and go, and one that fails to sync.
async fn simulated() -> anyhow::Result<Cluster> {
    println!("No --kubeconfig: simulating a small cluster in this process");
    let server = ApiServer::start().await;
    let name = format!("{BROKEN}-1");
    server.create(
        "pods",
        json!({
            "metadata": { "name": name, "namespace": "default" },
            "spec": { "containers": [{ "name": "main", "image": "example.com/main:1" }] },
        }),
    )?;
    let simulation = Simulation::new(1).start(&server);
    Ok(Cluster { client: server.client(), _simulation: Some(simulation) })
}

/// Whether the pod is one of those that fail to sync on purpose.
pub(crate) fn is_broken(pod: &Pod) -> bool {
    pod.metadata.name.as_deref().is_some_and(|name| name.starts_with(BROKEN))
}

/// The phase of the pod, for people.
pub(crate) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("phase unknown")
}

#[tokio::test]
async fn what_the_arguments_name_wrongly_is_refused_before_any_request() {
    let client = ApiServer::start().await.client();
    let refused = |arguments: &[&str]| {
        let args = Args::parse_from(["pod_controller"].iter().chain(arguments));
        args.pods(client.clone()).err().map(|error| format!("{error:#}"))
    };
    assert_eq!(refused(&["--namespace", "default", "--selector", "app in (a,b),!c"]), None);
    assert!(refused(&["--selector", "app in (a"]).is_some_and(|error| error.starts_with("invalid --selector")));
    assert!(refused(&["--namespace", "a/b"]).is_some_and(|error| error.starts_with("invalid --namespace")));
}

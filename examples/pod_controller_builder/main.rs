//! The pod controller of `pod_controller`, with the builder: it watches the same pods, prints the same lines, and gives up
//! a pod after as many tries. What is left to write is what to do with a pod.
//!
//! ```text
//! cargo run --example pod_controller_builder                              # a small simulated cluster, in this process
//! cargo run --example pod_controller_builder -- --kubeconfig FILE         # a real one
//! ```

#[path = "../pod_controller/cluster.rs"]
mod cluster;

use std::sync::Arc;

use clap::Parser;
use k8s_openapi::api::core::v1::Pod;
use kubewire_controller::{Attempt, Controller, ControllerOptions, Outcome, Request, RunContext, TerminalError};
use kubewire_indexer::Indexer;
use kubewire_informer::Informer;

/// How often a pod that fails is tried again before it is dropped.
const RETRIES_MAX: u32 = 5;

/// The business logic: here it prints the pod.
fn reconcile(pods: &Indexer<Arc<Pod>>, request: &Request, attempt: &Attempt) -> anyhow::Result<Outcome> {
    match pods.get_by_key(request) {
        None => println!("Pod {request} does not exist anymore"),
        Some(pod) if cluster::is_broken(&pod) => {
            let error = anyhow::anyhow!("pod {request} is marked as broken");
            let last = attempt.failures() == RETRIES_MAX;
            return Err(if last { TerminalError::new(error).into() } else { error });
        }
        Some(pod) => println!("Sync/Add/Update for Pod {request}, {}", cluster::phase(&pod)),
    }
    Ok(Outcome::Done)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = cluster::Args::parse();
    tracing_subscriber::fmt().with_env_filter(args.log_filter()).with_writer(std::io::stderr).init();
    run(args).await
}

async fn run(args: cluster::Args) -> anyhow::Result<()> {
    let stop = cluster::stop_signal(args.run_for);
    let cluster = cluster::connect(&args).await?;
    let pods = Informer::new(args.pods(cluster.client.clone())?);
    let store = pods.indexer();
    let options =
        ControllerOptions::new().max_concurrent_reconciles(args.workers.get()).cache_sync_timeout(args.sync_timeout);
    let controller = Controller::builder().for_(&pods).options(options).build(move |request: Request, attempt| {
        let outcome = reconcile(&store, &request, &attempt);
        async { outcome }
    })?;
    let informer = pods.start(stop.clone());
    controller.run(RunContext { stop, ..RunContext::default() }).await?;
    informer.join().await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn it_watches_the_simulated_cluster_until_it_is_stopped() {
    run(cluster::Args::parse_from(["pod_controller_builder", "--for", "30s"])).await.unwrap();
}

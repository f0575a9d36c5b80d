//! The pod controller of `pod_controller`, with the controller layer: it watches the same pods, prints the same lines, and
//! gives up a pod after as many tries. What is left to write is what to do with a pod.
//!
//! ```text
//! cargo run --example pod_controller_builder                              # a small simulated cluster, in this process
//! cargo run --example pod_controller_builder -- --kubeconfig FILE         # a real one
//! ```

#[path = "../pod_controller/cluster.rs"]
mod cluster;

use std::sync::Arc;

use anyhow::anyhow;
use clap::Parser;
use k8s_openapi::api::core::v1::Pod;
use kubewire_controller::{
    Attempt, CacheOptions, Cached, Cluster, Controller, ControllerOptions, Manager, ManagerOptions, Outcome, Request,
    TerminalError, with_state,
};

/// The business logic: here it prints the pod. One that fails is tried again five times, then dropped.
async fn reconcile(pods: Cached<Arc<Pod>>, request: Request, attempt: Attempt) -> anyhow::Result<Outcome> {
    match pods.get_by_key(&request)? {
        None => println!("Pod {request} does not exist anymore"),
        Some(pod) if cluster::is_broken(&pod) && attempt.failures() < 5 => {
            return Err(anyhow!("pod {request} is marked as broken"));
        }
        Some(pod) if cluster::is_broken(&pod) => {
            return Err(TerminalError::new(anyhow!("pod {request} is still marked as broken")).into());
        }
        Some(pod) => println!("Sync/Add/Update for Pod {request}, {}", cluster::phase(&pod)),
    }
    Ok(Outcome::Done)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = cluster::Args::parse();
    kubewire_examples::log("warn");
    run(args).await
}

async fn run(args: cluster::Args) -> anyhow::Result<()> {
    let stop = cluster::stop_signal(args.run_for);
    let cluster = cluster::connect(&args).await?;
    let cache = CacheOptions::new().sync_timeout(args.sync_timeout);
    let manager = Manager::new(Cluster::with_cache("cluster", cluster.client.clone(), cache), ManagerOptions::new());
    let pods = manager.cache().watch_from(args.pods(cluster.client.clone())?, true)?;
    let options = ControllerOptions::new().max_concurrent_reconciles(args.workers.get());
    Controller::builder().for_(&pods).options(options).complete(&manager, with_state(pods.clone(), reconcile))?;
    Ok(manager.run(stop).await?)
}

#[tokio::test(start_paused = true)]
async fn it_watches_the_simulated_cluster_until_it_is_stopped() {
    run(cluster::Args::parse_from(["pod_controller_builder", "--for", "30s"])).await.unwrap();
}

//! An operator as ReplicaSet's: a custom resource says how many pods there are to be, and so many there are, whoever deletes
//! them. With status, finalizer, events, metrics, health, and leader election by choice.
//!
//! ```text
//! cargo run --example replica_operator                                      # a server in this process, until Ctrl-C
//! cargo run --example replica_operator -- --for 10s --leader-elect
//! cargo run --example replica_operator -- --kubeconfig FILE --metrics-address 127.0.0.1:8080
//! cargo run --example replica_operator -- --kubeconfig FILE --leader-elect --alone     # as many of these as you like
//! ```
//!
//! `web_set.rs` is the resource, `operator.rs` what is done for it, `surroundings.rs` who keeps it busy; `rbac.yaml` has the
//! rights that it needs. `testing/realcluster/check_operator.sh` runs several of it against a real API server, and kills them.

mod args;
mod operator;
mod surroundings;
mod web_set;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Parser;
use k8s_openapi::api::core::v1::Pod;
use kube_client::Client;
use kubewire_apiserver::ApiServer;
use kubewire_controller::{
    Attempt, CacheOptions, Cluster, Controller, ControllerOptions, Manager, ManagerOptions, MetricsRegistry, Request,
};
use kubewire_examples::{from_kubeconfig, stop_signal};
use kubewire_informer::InformerName;
use kubewire_leaderelection::{Elector, LeaseLock, Settings};
use kubewire_listwatch::client_from_config;
use prometheus_client::metrics::counter::Counter;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use crate::args::Args;
use crate::operator::Operator;
use crate::web_set::WebSet;

const NAMESPACE: &str = "default";

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    kubewire_examples::log("warn");
    let stop = stop_signal(args.run_for);
    let metrics = MetricsRegistry::new();
    let (client, _server) = connect(&args, &metrics).await?;
    let manager = manager(&args, client.clone(), metrics)?;
    let _surroundings = (!args.alone).then(|| surround(&args, client));
    run(&args, manager, stop).await
}

/// The operator: a manager with one controller.
fn manager(args: &Args, client: Client, metrics: MetricsRegistry) -> anyhow::Result<Manager> {
    let mut options = ManagerOptions::new()
        .health_address(args.health_address)
        .metrics_address(args.metrics_address)
        .metrics(metrics.clone())
        .watch_tolerance(args.watch_tolerance)
        .grace_period(args.grace_period);
    if args.election.leader_elect {
        options = options.elector(elector(args, client.clone(), metrics.clone())?);
    }
    let cache = CacheOptions::new().metrics(InformerName::new(&args.name)?, Arc::new(metrics.clone()));
    let manager = Manager::new(Cluster::with_cache("cluster", client.clone(), cache), options);
    let sets = manager.cluster().cache().watch::<Arc<WebSet>>()?;
    let pods = manager.cluster().cache().watch::<Arc<Pod>>()?.indexed_by_owner()?;

    let made = Counter::default();
    metrics.register(|registry| registry.register("websets_pods_created", "Pods made", made.clone()));
    let recorder = manager.event_recorder(&format!("example.com/{}", args.name))?;
    let operator = Operator { client, sets: sets.clone(), pods: pods.clone(), recorder, made, think: args.think };
    Controller::builder()
        .for_(&sets)
        .owns(&pods)
        .options(ControllerOptions::new().max_concurrent_reconciles(2).reconcile_timeout(Duration::from_secs(30)))
        .complete(&manager, move |request: Request, _: Attempt| {
            let operator = operator.clone();
            async move { operator.reconcile(&request).await }
        })?;
    Ok(manager)
}

fn elector(args: &Args, client: Client, metrics: MetricsRegistry) -> anyhow::Result<Elector> {
    let lock = LeaseLock::new(client, NAMESPACE, &args.name);
    // A manager stops its elector when its work has ended.
    let settings = args.election.lease.settings(Settings::default());
    let elector = Elector::builder(lock, &args.election.identity).settings(settings);
    elector.metrics(Arc::new(metrics)).build().context("cannot take part in an election")
}

async fn run(args: &Args, manager: Manager, stop: CancellationToken) -> anyhow::Result<()> {
    let running = tokio::spawn({
        let manager = manager.clone();
        async move { manager.run(stop).await }
    });
    if manager.started().await.is_ok() {
        let bound =
            |address: Option<SocketAddr>| address.map_or("nowhere".to_owned(), |address| format!("http://{address}"));
        println!("health at {}/readyz", bound(manager.health_server().bound()));
        println!("metrics at {}/metrics", bound(manager.metrics_server().and_then(|server| server.bound())));
    }
    if args.election.leader_elect {
        println!("{} waits for the lease", args.election.identity);
        if manager.elected().await.is_ok() {
            println!("{} leads", args.election.identity);
        }
    }
    running.await??;
    println!("stopped; nothing was left in flight");
    Ok(())
}

/// A client whose requests are counted, and the server in this process, if it is that one.
async fn connect(args: &Args, metrics: &MetricsRegistry) -> anyhow::Result<(Client, Option<ApiServer>)> {
    let Some(kubeconfig) = &args.kubeconfig else {
        println!("No --kubeconfig: the cluster is a server in this process");
        let server = ApiServer::builder().custom_resource(web_set::served()).start().await?;
        return Ok((metrics.count_requests(server.client(), "embedded"), Some(server)));
    };
    let config = from_kubeconfig(Some(kubeconfig), None).await?;
    let host = config.cluster_url.authority().map(ToString::to_string).unwrap_or_default();
    let client = client_from_config(config).context("cannot build a client from the kubeconfig")?;
    let client = metrics.count_requests(client, host);
    web_set::install(client.clone()).await?;
    Ok((client, None))
}

/// Those who keep the operator busy, until this is dropped.
fn surround(args: &Args, client: Client) -> Vec<AbortOnDropHandle<()>> {
    let told = |name: &'static str, ended: anyhow::Result<()>| {
        if let Err(error) = ended {
            println!("the {name} has failed: {error:#}");
        }
    };
    let (user, saboteur) = (client.clone(), client.clone());
    let deletions = args.deletions;
    let mut tasks = vec![
        tokio::spawn(async move { told("user", surroundings::user(user).await) }),
        tokio::spawn(async move { told("saboteur", surroundings::saboteur(saboteur, deletions).await) }),
    ];
    if args.kubeconfig.is_none() {
        tasks.push(tokio::spawn(async move { told("kubelet", surroundings::kubelet(client).await) }));
    }
    tasks.into_iter().map(AbortOnDropHandle::new).collect()
}

#[cfg(test)]
async fn converges(arguments: &[&str]) {
    let args = Args::parse_from(["replica_operator"].iter().chain(arguments));
    let metrics = MetricsRegistry::new();
    let (client, server) = connect(&args, &metrics).await.unwrap();
    let server = server.unwrap();
    let manager = manager(&args, client.clone(), metrics).unwrap();
    let _surroundings = surround(&args, client);
    let stop = CancellationToken::new();
    let leader_elect = args.election.leader_elect;
    let running = tokio::spawn({
        let (manager, stop) = (manager.clone(), stop.clone());
        async move { run(&args, manager, stop).await }
    });
    manager.elected().await.unwrap();
    tokio::time::sleep(Duration::from_secs(20)).await;

    // Whoever deleted what: the shop has its 5 pods, each owned, and says so; the cart is gone, and its pods.
    let resource = web_set::served().name();
    assert_eq!(server.count(&resource), 1);
    let shop = server.get(&resource, NAMESPACE, "shop").unwrap();
    assert_eq!(shop["status"]["readyReplicas"], 5, "{shop}");
    assert_eq!(shop["status"]["observedGeneration"], 2, "{shop}");
    let pods = server.list("pods");
    assert_eq!(pods.len(), 5);
    assert!(pods.iter().all(|pod| pod["metadata"]["ownerReferences"][0]["uid"] == shop["metadata"]["uid"]));
    assert!(manager.readyz().run("readyz", "").await.0);
    let text = manager.metrics().text().unwrap();
    let made = 3 + 2 + 2 + 4;
    assert!(text.contains(&format!("websets_pods_created_total {made}\n")), "{text}");
    assert!(text.contains("controller_runtime_reconcile_total{"), "{text}");
    assert_eq!(server.count("coordination.k8s.io/v1/leases"), usize::from(leader_elect));
    assert_eq!(text.contains("leader_election_master_status{name=\"leading\"} 1\n"), leader_elect, "{text}");

    stop.cancel();
    running.await.unwrap().unwrap();
    let events = server.list("events.k8s.io/v1/events");
    let has = |reason: &str| events.iter().any(|event| event["reason"] == reason);
    assert!(has("PodCreated") && has("Finalized"), "{events:?}");
}

#[tokio::test(start_paused = true)]
async fn it_keeps_as_many_pods_as_are_wanted_whoever_deletes_them() {
    converges(&[]).await;
}

#[tokio::test(start_paused = true)]
async fn it_does_so_as_the_leader_too() {
    converges(&["--leader-elect", "--name", "leading"]).await;
}

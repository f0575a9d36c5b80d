//! How many connections informers need with a real kube-apiserver, and what gzip costs and saves there.
//!
//! `check_transport.sh` starts it. It ends with 1 where something is not as it must be; times decide nothing.
#![forbid(unsafe_code)]

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use clap::Parser;
use futures::StreamExt;
use http::Request;
use http::header::ACCEPT_ENCODING;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube_client::api::PostParams;
use kube_client::client::Body;
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_client::{Api, Config};
use kubewire_informer::{Informer, RunningInformer};
use kubewire_listwatch::{ClientOptions, ListOptions, ListWatch, ListerWatcher, Packed, Protocol};
use serde_json::json;
use tokio_util::sync::CancellationToken;

#[derive(Parser)]
#[command(about = "Connections, GOAWAY and gzip with a real kube-apiserver; check_transport.sh calls it")]
struct Args {
    /// How to reach the server.
    kubeconfig: PathBuf,
    /// How many pods to list, compressed and not.
    #[arg(long, default_value_t = 1000)]
    pods: usize,
    /// The server was started with `--goaway-chance=0.02`: only whether that loses anybody anything.
    #[arg(long)]
    goaway: bool,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let kubeconfig = Kubeconfig::read_from(&args.kubeconfig)?;
    let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    if args.goaway {
        return goaway(&config).await;
    }
    println!("{:<34} {:>9} {:>12} {:>10}", "", "informers", "connections", "all heard");
    for (name, protocol, count, wanted) in [
        ("HTTP/1.1", Protocol::Http1, 50, 50..=52),
        ("negotiated (HTTP/2)", Protocol::Negotiated, 50, 1..=1),
        ("negotiated (HTTP/2)", Protocol::Negotiated, 150, 2..=2),
    ] {
        let cast = Cast::start(&config, ClientOptions::new().protocol(protocol), count).await?;
        let heard = cast.hears(name, count).await?;
        let connections = connections(&config)?;
        println!("{name:<34} {count:>9} {connections:>12} {heard:>10.0?}");
        ensure!(wanted.contains(&connections), "{wanted:?} connections were to be expected");
        cast.stop().await?;
    }
    gzip(&config, args.pods).await
}

/// Informers over one client.
struct Cast {
    config: Config,
    client: kube_client::Client,
    informers: Vec<(Informer<Arc<ConfigMap>>, RunningInformer)>,
}

impl Cast {
    async fn start(config: &Config, options: ClientOptions, count: usize) -> anyhow::Result<Self> {
        let client = options.build(config.clone())?;
        let informers: Vec<_> = (0..count)
            .map(|_| {
                let informer = Informer::new(ListWatch::<Arc<ConfigMap>>::namespaced(client.clone(), "default"));
                let running = informer.start(CancellationToken::new());
                (informer, running)
            })
            .collect();
        for (informer, _) in &informers {
            tokio::time::timeout(Duration::from_secs(60), informer.synced()).await.context("no sync")??;
        }
        Ok(Self { config: config.clone(), client, informers })
    }

    /// How long it takes until all have heard of a new object.
    async fn hears(&self, name: &str, count: usize) -> anyhow::Result<Duration> {
        let name = format!("{}-{count}", name.to_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "-"));
        let name = name.trim_matches('-').replace("---", "-").replace("--", "-");
        let object = serde_json::from_value(json!({"metadata": {"name": name}}))?;
        let begin = Instant::now();
        let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), "default");
        let made: ConfigMap = maps.create(&PostParams::default(), &object).await?;
        let version = made.metadata.resource_version.context("no version")?;
        for (informer, _) in &self.informers {
            let seen = informer.wait_for_version(&version);
            tokio::time::timeout(Duration::from_secs(60), seen).await.context("not heard")??;
        }
        Ok(begin.elapsed())
    }

    async fn stop(self) -> anyhow::Result<()> {
        for (_, running) in self.informers {
            running.stop();
            running.join().await;
        }
        drop(self.client);
        for _ in 0..500 {
            if connections(&self.config)? == 0 {
                return Ok(());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        anyhow::bail!("connections are left")
    }
}

/// The connections of this process with the server that are open, by the system's own list. (The server has some with
/// itself.)
fn connections(config: &Config) -> anyhow::Result<usize> {
    let port = config.cluster_url.port_u16().context("an address with a port")?;
    let remote = format!(":{port:04X}");
    let files = std::fs::read_dir("/proc/self/fd").context("this needs Linux")?;
    let targets = files.flatten().filter_map(|file| std::fs::read_link(file.path()).ok());
    let inode = |target: PathBuf| Some(target.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned());
    let ours: HashSet<String> = targets.filter_map(inode).collect();
    let is_ours = |line: &&str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        matches!(fields[..], [_, _, address, "01", _, _, _, _, _, inode, ..] if address.ends_with(&remote) && ours.contains(inode))
    };
    Ok(std::fs::read_to_string("/proc/net/tcp")?.lines().filter(is_ours).count())
}

/// A server that ends one connection in fifty requests in good order loses nobody anything.
async fn goaway(config: &Config) -> anyhow::Result<()> {
    const REQUESTS: usize = 600;
    let cast = Cast::start(config, ClientOptions::new(), 50).await?;
    let (most, failed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let maps: Api<ConfigMap> = Api::namespaced(cast.client.clone(), "default");
    futures::stream::iter(0..REQUESTS)
        .for_each_concurrent(4, |_| async {
            if maps.list(&Default::default()).await.is_err() {
                failed.fetch_add(1, Ordering::Relaxed);
            }
            most.fetch_max(connections(config).unwrap_or(0), Ordering::Relaxed);
        })
        .await;
    drop(maps);
    let heard = cast.hears("goaway", 50).await?;
    let most = most.load(Ordering::Relaxed);
    println!(
        "50 informers and {REQUESTS} requests, GOAWAY by chance: at most {most} connections, all heard in {heard:.0?}"
    );
    ensure!(failed.load(Ordering::Relaxed) == 0, "{failed:?} requests failed");
    let restarts: Vec<_> =
        cast.informers.iter().flat_map(|(informer, _)| informer.status().reflector.restarts).collect();
    ensure!(restarts.is_empty(), "informers had to ask again: {restarts:?}");
    cast.stop().await
}

/// One list of pods: its bytes and its time, compressed and not.
async fn gzip(config: &Config, pods: usize) -> anyhow::Result<()> {
    let client = ClientOptions::new().build(config.clone())?;
    let api: Api<Pod> = Api::namespaced(client.clone(), "default");
    let made = futures::stream::iter(0..pods).map(|n| {
        let api = &api;
        async move { api.create(&PostParams::default(), &pod(n)?).await.map(drop).map_err(anyhow::Error::from) }
    });
    let mut made = made.buffer_unordered(32);
    while let Some(made) = made.next().await {
        made?;
    }
    println!("\n{:<34} {:>9} {:>12} {:>10}", format!("one list of {pods} pods"), "bytes", "time", "CPU here");
    for (name, packed) in [("not compressed", false), ("gzip", true)] {
        let encoding = if packed { "gzip" } else { "identity" };
        let request =
            Request::get("/api/v1/namespaces/default/pods?resourceVersion=0").header(ACCEPT_ENCODING, encoding);
        let bytes = client.send(request.body(Body::empty())?).await?.into_body().collect_bytes().await?.len();
        let options = ClientOptions::new().gzip(packed);
        let list = ListWatch::<Packed<Pod>>::namespaced(options.build(config.clone())?, "default");
        let (mut times, rounds, cpu) = (Vec::new(), 9_u32, cpu());
        for _ in 0..rounds {
            let (begin, mut count) = (Instant::now(), 0);
            list.list(&ListOptions::default().at_version("0"), &mut |_| count += 1).await?;
            ensure!(count == pods, "{count} pods of {pods}");
            times.push(begin.elapsed());
        }
        times.sort();
        let (time, cpu) = (times[times.len() / 2], (self::cpu() - cpu) / rounds);
        println!("{name:<34} {bytes:>9} {time:>12.1?} {cpu:>10.1?}");
    }
    Ok(())
}

fn pod(n: usize) -> serde_json::Result<Pod> {
    let env: Vec<_> =
        (0..30).map(|e| json!({"name": format!("SETTING_{e}"), "value": format!("value-{n}-{e}")})).collect();
    serde_json::from_value(json!({
        "metadata": {"name": format!("pod-{n}"), "labels": {"app": format!("app-{}", n % 50), "tier": "web"}},
        "spec": {"containers": [{"name": "main", "image": format!("registry.example/app-{}:1.{n}", n % 50), "env": env}]},
    }))
}

/// The processor time of this process, to the hundredth of a second.
fn cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(") ").next().unwrap_or_default().split_whitespace();
    let ticks: u64 = fields.skip(11).take(2).filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}

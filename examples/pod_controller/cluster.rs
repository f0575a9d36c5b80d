//! Where the pods come from: a small simulated cluster in this process, or a real one.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Parser;
use k8s_openapi::api::core::v1::Pod;
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_client::{Client, Config};
use kubewire_apiserver::{ApiServer, RunningSimulation, Simulation};
use kubewire_listwatch::{ListWatch, client_from_config};
use serde_json::json;
use tokio_util::sync::CancellationToken;

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
    /// What `RUST_LOG` says, or else warnings, and what this example tells of its retries.
    pub(crate) fn log_filter(&self) -> tracing_subscriber::EnvFilter {
        tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "warn,pod_controller=info".into())
    }

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
        from_kubeconfig(args).await?
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

/// The configuration that `--kubeconfig` and `--context` name.
async fn from_kubeconfig(args: &Args) -> anyhow::Result<Config> {
    let kubeconfig = match &args.kubeconfig {
        Some(file) => {
            Kubeconfig::read_from(file).with_context(|| format!("cannot read the kubeconfig {}", file.display()))?
        }
        None => Kubeconfig::read().context("cannot read the default kubeconfig")?,
    };
    let options = KubeConfigOptions { context: args.context.clone(), ..KubeConfigOptions::default() };
    Config::from_custom_kubeconfig(kubeconfig, &options).await.with_context(|| match &args.context {
        Some(context) => format!("cannot use the context {context:?} of the kubeconfig"),
        None => "cannot use the kubeconfig's current context".to_owned(),
    })
}

/// Whether the pod is one of those that fail to sync on purpose.
pub(crate) fn is_broken(pod: &Pod) -> bool {
    pod.metadata.name.as_deref().is_some_and(|name| name.starts_with(BROKEN))
}

/// The phase of the pod, for people.
pub(crate) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("phase unknown")
}

/// A token that is cancelled by Ctrl-C, by SIGTERM, and after `run_for`.
pub(crate) fn stop_signal(run_for: Option<Duration>) -> CancellationToken {
    let stop = CancellationToken::new();
    let cancelled = stop.clone();
    tokio::spawn(async move {
        let after = async {
            match run_for {
                Some(time) => tokio::time::sleep(time).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            () = terminated() => {}
            () = after => {}
        }
        cancelled.cancel();
    });
    stop
}

#[cfg(unix)]
async fn terminated() {
    match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        Ok(mut signal) => drop(signal.recv().await),
        Err(_) => std::future::pending().await,
    }
}

#[cfg(not(unix))]
async fn terminated() {
    std::future::pending().await
}

/// `500ms`, `10s`, `2m`, `1h`.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no time: write 10s, 2m or 1h");
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?);
    let seconds = match unit {
        "ms" => return number.parse().map(Duration::from_millis).map_err(|_| wrong()),
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    number.checked_mul(seconds).map(Duration::from_secs).ok_or_else(wrong)
}

#[test]
fn times_have_a_unit_and_anything_else_is_refused_with_a_hint() {
    assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
    assert_eq!(duration("10s"), Ok(Duration::from_secs(10)));
    assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
    assert_eq!(duration("1h"), Ok(Duration::from_secs(3600)));
    for text in ["", "10", "s", "-1s", "1d", "1.5s", "99999999999999999999s", "18446744073709551615h", "ü"] {
        assert!(duration(text).is_err_and(|hint| hint.contains("write 10s")), "{text}");
    }
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

/// What a whole run ends with against a server that answers every request with these bytes.
#[cfg(test)]
async fn outcome_against(answer: &'static str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = tokio::spawn(async move {
        loop {
            let (mut connection, _) = listener.accept().await.unwrap();
            let mut request = [0; 4096];
            let _ = connection.read(&mut request).await;
            let _ = connection.write_all(answer.as_bytes()).await;
        }
    });
    let client = client_from_config(Config::new(url.parse().unwrap())).unwrap();
    let args = Args::parse_from(["pod_controller", "--sync-timeout", "500ms"]);
    let controller = crate::Controller::new(args.pods(client).unwrap()).unwrap();
    let run = Arc::new(controller).run(1, args.sync_timeout, CancellationToken::new());
    let error = run.await.expect_err("nothing that could be synced came");
    server.abort();
    format!("{error:#}")
}

#[tokio::test]
async fn a_server_that_speaks_something_else_is_told_of_when_the_sync_has_timed_out() {
    let plain = outcome_against("hello\n").await;
    assert!(plain.contains("pods: ") && plain.contains("transport"), "{plain}");
    let text = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close\r\ncontent-length: 6\r\n\r\nhello\n";
    let text = outcome_against(text).await;
    assert!(text.contains("cannot ") && text.contains("hello"), "{text}");
}

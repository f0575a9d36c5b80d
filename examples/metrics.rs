//! All metrics of a controller, for Prometheus: those of its queue and of its informer, as text on a port.
//!
//! ```text
//! cargo run --example metrics                  # one scrape, printed
//! cargo run --example metrics -- --port 9090   # http://127.0.0.1:9090/metrics, until Ctrl-C
//! ```
//!
//! `kubewire-prometheus` makes the series. `docs/metrics.md` says what each metric means and when to be alarmed.

use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use k8s_openapi::api::core::v1::ConfigMap;
use kubewire_apiserver::ApiServer;
use kubewire_indexer::{Object, ObjectKey};
use kubewire_informer::{HandlerOptions, Informer, InformerName, InformerOptions, ResourceEventHandlerFuncs};
use kubewire_listwatch::ListWatch;
use kubewire_prometheus::{InformerSeries, QueueSeries};
use kubewire_workqueue::{Queue, RateLimitingQueue};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

#[derive(Parser)]
struct Args {
    /// Where to serve the metrics; 0 for any port, and one scrape.
    #[arg(long, default_value_t = 0)]
    port: u16,
}

type Keys = RateLimitingQueue<ObjectKey>;

/// All metrics as text.
fn text(registry: &Registry) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    encode(&mut text, registry)?;
    Ok(text)
}

/// Ties an informer to a queue; both have metrics under the name of the controller.
fn controller(server: &ApiServer, registry: &mut Registry) -> anyhow::Result<(Informer<Arc<ConfigMap>>, Keys)> {
    let (queues, informers) = (QueueSeries::new(), InformerSeries::new());
    queues.register(registry);
    informers.register(registry);
    let queue = Queue::builder().name("config-controller").metrics(Arc::new(queues)).build();
    let queue = RateLimitingQueue::with_queue(queue, kubewire_ratelimit::default_controller_rate_limiter());
    let options =
        InformerOptions::new().informer_name(InformerName::new("config-controller")?).metrics(Arc::new(informers));
    let informer = Informer::with_options(ListWatch::all(server.client()), options)?;
    let (added, changed, gone) = (queue.clone(), queue.clone(), queue.clone());
    let handler = ResourceEventHandlerFuncs::new()
        .on_add(move |config: Arc<ConfigMap>, _| added.add(config.key()))
        .on_update(move |_, config| changed.add(config.key()))
        .on_delete(move |deleted| gone.add(deleted.key()));
    informer.add_handler_with(handler, HandlerOptions::new().name("enqueue"))?;
    Ok((informer, queue))
}

async fn worker(queue: Keys) {
    while let Some(key) = queue.get().await {
        match queue.num_requeues(&key) {
            0 => queue.add_rate_limited((*key).clone()), // Once more, as if it had failed.
            _ => queue.forget(&key),
        }
    }
}

/// Answers each connection with all metrics. A program that has an HTTP server does it there.
async fn serve(listener: TcpListener, registry: Arc<Registry>, refresh: impl Fn()) -> anyhow::Result<()> {
    loop {
        let (mut connection, _) = listener.accept().await?;
        let mut request = [0; 1024];
        let _ = connection.read(&mut request).await?;
        refresh(); // The gauges of this moment.
        let body = text(&registry)?;
        let head = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: application/openmetrics-text; version=1.0.0; charset=utf-8";
        connection.write_all(format!("{head}\r\ncontent-length: {}\r\n\r\n{body}", body.len()).as_bytes()).await?;
    }
}

async fn scrape(port: u16) -> anyhow::Result<String> {
    let mut connection = TcpStream::connect(("127.0.0.1", port)).await?;
    connection.write_all(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n").await?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).await?;
    let (_, body) = answer.split_once("\r\n\r\n").unwrap_or_default();
    Ok(body.to_owned())
}

async fn run(port: u16) -> anyhow::Result<String> {
    let server = ApiServer::start().await;
    server.create("configmaps", json!({ "metadata": { "name": "settings", "namespace": "default" } }))?;
    let mut registry = Registry::default();
    let (informer, queue) = controller(&server, &mut registry)?;
    let registry = Arc::new(registry);
    let stop = CancellationToken::new();
    let running = informer.start(stop.clone());
    let work = tokio::spawn(worker(queue.clone()));
    informer.synced().await?;
    server.close_watches(); // So that there is a restart to see.

    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    let bound = listener.local_addr()?.port();
    let (gauges_of_informer, gauges_of_queue) = (informer.clone(), queue.clone());
    let serving = tokio::spawn(serve(listener, Arc::clone(&registry), move || {
        gauges_of_informer.refresh_metrics();
        gauges_of_queue.refresh_metrics();
    }));
    let mut scraped = String::new();
    if port == 0 {
        // Until the watch was cut and the key was worked on again.
        for n in 0.. {
            let metadata = json!({ "name": "settings", "namespace": "default" });
            server.update("configmaps", json!({ "metadata": metadata, "data": { "n": n.to_string() } }))?;
            tokio::time::sleep(Duration::from_millis(20)).await;
            scraped = scrape(bound).await?;
            let has = |name: &str| scraped.contains(&format!("\n{name}"));
            if has("reflector_restarts_total{")
                && has("workqueue_retries_total{")
                && has("reflector_watch_duration_seconds_count")
            {
                break;
            }
        }
    } else {
        println!("http://127.0.0.1:{bound}/metrics");
        tokio::signal::ctrl_c().await?;
    }
    stop.cancel();
    running.join().await;
    serving.abort();
    queue.shut_down();
    work.await?;
    anyhow::ensure!(!text(&registry)?.contains("\ninformer_"), "no series outlives its informer");
    Ok(scraped)
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let text = run(Args::parse().port).await?;
    print!("{text}");
    Ok(())
}

/// Each metric that there is, with its labels; the names are those of the crates' tables.
#[tokio::test]
async fn all_metrics_are_exported_by_their_names() {
    use kubewire_informer::metrics::names as informer;
    use kubewire_workqueue::metrics::names as queue;

    let text = tokio::time::timeout(Duration::from_secs(60), run(0)).await.unwrap().unwrap();
    let queues = queue::ALL.map(|name| (name, r#"name="config-controller""#));
    let informers =
        informer::ALL.map(|name| (name, r#"name="config-controller",group="",version="v1",resource="configmaps""#));
    for (name, labels) in queues.into_iter().chain(informers) {
        let is_one = |line: &&str| {
            let rest = line.strip_prefix(name);
            rest.is_some_and(|rest| rest.starts_with('{') || rest.starts_with("_count{"))
        };
        let line = text.lines().find(is_one).unwrap_or_else(|| panic!("{name} is not exported: {text}"));
        assert!(line.contains(labels), "{line}");
    }
    for series in [r#"resource="configmaps",handler="enqueue"} "#, r#"resource="configmaps",cause="closed"} "#] {
        assert!(text.contains(series), "{series}: {text}");
    }
    assert!(text.ends_with("# EOF\n"), "{text}");
}

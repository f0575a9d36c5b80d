//! client-go's pod controller sample, by hand: list and watch -> delta FIFO -> indexer -> handlers -> queue ->
//! workers. Nothing of the loop is hidden; only where the pods come from stands in `cluster.rs`.
//!
//! ```text
//! cargo run --example pod_controller                              # a small simulated cluster, in this process
//! cargo run --example pod_controller -- --kubeconfig FILE         # a real one
//! ```

mod cluster;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::Parser;
use k8s_openapi::api::core::v1::Pod;
use kubewire_indexer::{Indexer, Indexers, Object, ObjectKey};
use kubewire_informer::{Informer, new_indexer_informer, wait_for_cache_sync};
use kubewire_listwatch::ListWatch;
use kubewire_ratelimit::{default_controller_rate_limiter, until};
use kubewire_workqueue::RateLimitingQueue;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// How often a key that fails is tried again before it is dropped.
const RETRIES_MAX: u32 = 5;

/// Prints the pods of a cluster as they come, change and go.
struct Controller {
    indexer: Indexer<Arc<Pod>>,
    queue: RateLimitingQueue<ObjectKey>,
    informer: Informer<Arc<Pod>>,
}

impl Controller {
    /// Ties the informer to the queue: each change puts the key of its pod into the queue.
    fn new(pods: ListWatch<Arc<Pod>>) -> anyhow::Result<Self> {
        let queue = RateLimitingQueue::new(default_controller_rate_limiter());
        let (on_add, on_update, on_delete) = (queue.clone(), queue.clone(), queue.clone());
        let (indexer, informer) = new_indexer_informer(
            pods,
            Duration::ZERO,
            |handler| {
                handler
                    .on_add(move |pod, _initial| on_add.add(pod.key()))
                    .on_update(move |_old, new| on_update.add(new.key()))
                    // The deletion itself may have been missed; then this is a tombstone, which has a key as well.
                    .on_delete(move |deleted| on_delete.add(deleted.key()))
            },
            Indexers::none(),
        )?;
        Ok(Self { indexer, queue, informer })
    }

    /// Takes one key, works on it, and decides what becomes of it. `false` when the queue has shut down.
    async fn process_next_item(&self) -> bool {
        // No other worker gets this key until the guard is dropped, which tells the queue that it is done.
        let Some(key) = self.queue.get().await else { return false };
        let result = self.sync_to_stdout(&key);
        self.handle_err(result, &key);
        true
    }

    /// The business logic: here it prints the pod. It must not retry by itself, that is `handle_err`'s part.
    fn sync_to_stdout(&self, key: &ObjectKey) -> anyhow::Result<()> {
        match self.indexer.get_by_key(key) {
            // A pod that was deleted: below we may see it again, if one of the same name is created.
            None => println!("Pod {key} does not exist anymore"),
            Some(pod) if cluster::is_broken(&pod) => anyhow::bail!("pod {key} is marked as broken"),
            // A pod of the same name may have been deleted and created anew in between: compare uids if it matters.
            Some(pod) => println!("Sync/Add/Update for Pod {key}, {}", cluster::phase(&pod)),
        }
        Ok(())
    }

    /// Forgets the key's failures on success; else retries, with growing delays, up to [`RETRIES_MAX`] times.
    fn handle_err(&self, result: anyhow::Result<()>, key: &ObjectKey) {
        let Err(error) = result else { return self.queue.forget(key) };
        if self.queue.num_requeues(key) < RETRIES_MAX {
            tracing::info!("Error syncing pod {key}: {error}");
            return self.queue.add_rate_limited(key.clone());
        }
        self.queue.forget(key);
        tracing::error!("Dropping pod {key} out of the queue: {error}");
    }

    /// Runs until `stop`: the informer in the background, and as many workers once its cache is full.
    async fn run(
        self: Arc<Self>,
        workers: usize,
        sync_timeout: Duration,
        stop: CancellationToken,
    ) -> anyhow::Result<()> {
        println!("Starting Pod controller");
        let informer = self.informer.start(stop.clone());
        wait_for_cache_sync(&stop, sync_timeout, [&self.informer]).await?;

        let mut tasks = JoinSet::new();
        for _ in 0..workers {
            let this = Arc::clone(&self);
            // A worker whose loop ended is started again after a second.
            tasks.spawn(until(stop.clone().cancelled_owned(), Duration::from_secs(1), move || {
                let this = Arc::clone(&this);
                async move { while this.process_next_item().await {} }
            }));
        }
        stop.cancelled().await;

        println!("Stopping Pod controller");
        self.queue.shut_down();
        tasks.join_all().await;
        informer.join().await;
        Ok(())
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let args = cluster::Args::parse();
    kubewire_examples::log("warn,pod_controller=info"); // and what it tells of its retries
    match controller(args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn controller(args: cluster::Args) -> anyhow::Result<()> {
    let stop = cluster::stop_signal(args.run_for);
    let cluster = cluster::connect(&args).await?;
    let pods = args.pods(cluster.client.clone())?;
    Arc::new(Controller::new(pods)?).run(args.workers.get(), args.sync_timeout, stop).await
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
    let client = kubewire_listwatch::client_from_config(kube_client::Config::new(url.parse().unwrap())).unwrap();
    let args = cluster::Args::parse_from(["pod_controller", "--sync-timeout", "500ms"]);
    let controller = Controller::new(args.pods(client).unwrap()).unwrap();
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

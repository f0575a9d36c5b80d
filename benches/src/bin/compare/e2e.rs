//! From an update at an API server to a worker's processing of its key. The writer is `peers load`, another process.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use k8s_openapi::api::core::v1::Pod;
use kubewire_indexer::{Indexer, Object, ObjectKey};
use kubewire_informer::ResourceEventHandlerFuncs;
use kubewire_listwatch::{Json, Pb, Protobuf};
use kubewire_ratelimit::default_controller_rate_limiter;
use kubewire_workqueue::RateLimitingQueue;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::flags::{Defaults, Flags};
use crate::line::{Line, percentiles, rounded};
use crate::process::{cpu_seconds, status};
use crate::representation::{PodForm, Speaks, Wire};
use crate::runtime::runtime;
use crate::sample::expect;
use crate::server;

pub(crate) const FLAGS: Defaults = &[
    ("kubeconfig", ""),
    ("n", "2000"),
    ("keys", "1000"),
    ("qps", "200"),
    ("workers", "1"),
    ("watchlist", "true"),
    ("page", "0"),
    ("transform", "false"),
    ("protobuf", "false"),
];

/// `RUN SEQUENCE NANOSECONDS` of the update that set it.
const SENT: &str = "peers.example.com/sent";

type Queue = RateLimitingQueue<ObjectKey>;

/// What the workers have seen of one run.
struct Seen {
    run: String,
    /// When each update was first seen, in nanoseconds of the epoch; 0: not yet.
    at: Vec<AtomicI64>,
    count: AtomicUsize,
    reconciles: AtomicUsize,
}

/// One update as the writer tells of it, in nanoseconds of the epoch.
struct Update {
    sent: i64,
    acknowledged: i64,
}

/// What a worker reads of a pod.
trait Annotated: Object {
    fn annotation(&self, name: &str) -> Option<&str>;
}

impl Annotated for Arc<Pod> {
    fn annotation(&self, name: &str) -> Option<&str> {
        Some(self.metadata.annotations.as_ref()?.get(name)?)
    }
}

impl Annotated for Arc<Pb<k8s_pb::api::core::v1::Pod>> {
    fn annotation(&self, name: &str) -> Option<&str> {
        Some(self.metadata.as_ref()?.annotations.get(name)?)
    }
}

pub(crate) fn run(flags: &Flags) -> anyhow::Result<()> {
    if flags.get("protobuf")? {
        follow::<Arc<Pb<k8s_pb::api::core::v1::Pod>>, Protobuf>(flags)
    } else {
        follow::<Arc<Pod>, Json>(flags)
    }
}

fn follow<O: PodForm + Annotated, C: Speaks<O>>(flags: &Flags) -> anyhow::Result<()> {
    let n: usize = flags.get("n")?;
    let queue = Queue::new(default_controller_rate_limiter());
    let informer = runtime().block_on(async { server::informer::<O, C>(server::connect(flags).await?, flags) })?;
    let add = || {
        let queue = queue.clone();
        move |key| queue.add(key)
    };
    let (added, updated, deleted) = (add(), add(), add());
    let registration = informer.add_handler(
        ResourceEventHandlerFuncs::new()
            .on_add(move |pod: O, _| added(pod.key()))
            .on_update(move |_, pod: O| updated(pod.key()))
            .on_delete(move |pod| deleted(pod.key())),
    )?;
    let running = runtime().block_on(async {
        let running = informer.start(CancellationToken::new());
        registration.synced().await?;
        anyhow::Ok(running)
    })?;

    let seen = Arc::new(Seen::new(n));
    let workers: usize = flags.get("workers")?;
    let workers: Vec<_> =
        (0..workers).map(|_| runtime().spawn(work(informer.indexer(), queue.clone(), Arc::clone(&seen)))).collect();
    while !queue.is_empty() {
        std::thread::sleep(Duration::from_millis(1)); // the initial list
    }

    let cpu = cpu_seconds();
    let (written, updates) = write(flags, &seen.run)?;
    let end = Instant::now() + Duration::from_secs(5);
    while seen.count.load(Relaxed) < n && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(10));
    }
    let cpu = cpu_seconds() - cpu;
    runtime().block_on(async {
        queue.shut_down_with_full_drain().await;
        for worker in workers {
            worker.await?;
        }
        running.stop();
        running.join().await;
        anyhow::Ok(())
    })?;
    print(flags, C::WIRE, &seen, &written, &updates, cpu)
}

/// As any controller's worker: takes keys, reads the cache, forgets.
async fn work<O: Annotated>(pods: Indexer<O>, queue: Queue, seen: Arc<Seen>) {
    while let Some(key) = queue.get().await {
        if let Some(pod) = pods.get_by_key(&*key) {
            seen.look(&pod);
        }
        queue.forget(&key);
    }
}

impl Seen {
    fn new(n: usize) -> Self {
        Self {
            run: format!("e2e-{}", std::process::id()),
            at: (0..n).map(|_| AtomicI64::new(0)).collect(),
            count: AtomicUsize::new(0),
            reconciles: AtomicUsize::new(0),
        }
    }

    fn look(&self, pod: &impl Annotated) {
        let Some((run, rest)) = pod.annotation(SENT).and_then(|sent| sent.split_once(' ')) else { return };
        let number = rest.split(' ').next().and_then(|number| number.parse::<usize>().ok());
        let Some(place) = number.and_then(|number| self.at.get(number)) else { return };
        if run == self.run {
            self.reconciles.fetch_add(1, Relaxed);
            if place.compare_exchange(0, now(), Relaxed, Relaxed).is_ok() {
                self.count.fetch_add(1, Relaxed);
            }
        }
    }
}

fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i64)
}

/// Has the peers' program write; gives back its line and its trace.
fn write(flags: &Flags, run: &str) -> anyhow::Result<(Value, Vec<Update>)> {
    let trace = std::env::temp_dir().join(format!("compare-{run}"));
    let writer = Command::new(peers())
        .args(["load", "-op", "update", "-protobuf", "-run", run])
        .args(["-kubeconfig", &server::kubeconfig(flags), "-n", flags.text("n")])
        .args(["-keys", flags.text("keys"), "-qps", flags.text("qps"), "-trace"])
        .arg(&trace)
        .stderr(Stdio::inherit())
        .output()
        .context("the writer is `peers`: build it by benches/peers/build.sh")?;
    anyhow::ensure!(writer.status.success(), "the writer failed");
    let text = fs::read_to_string(&trace)?;
    fs::remove_file(&trace)?;
    let update = |line: &str| {
        let mut numbers = line.split(' ').skip(1).map(|number| number.parse().ok());
        Some(Update { sent: numbers.next()??, acknowledged: numbers.next()?? })
    };
    let updates = text.lines().map(update).collect::<Option<_>>().context("the writer's trace")?;
    Ok((serde_json::from_slice(&writer.stdout)?, updates))
}

fn peers() -> PathBuf {
    let built = std::env::var_os("PEERS_BUILD").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default().join(".cache/kubewire/peers");
    built.unwrap_or_else(home).join("bin/peers")
}

/// An update that was not seen must have been superseded by another of its pod, acknowledged after this one was sent.
fn print(flags: &Flags, wire: Wire, seen: &Seen, written: &Value, updates: &[Update], cpu: f64) -> anyhow::Result<()> {
    let (n, pods) = (seen.at.len(), flags.keys()?.min(seen.at.len()));
    expect("updates in the writer's trace", updates.len(), n);
    let at = |i: usize| Some(seen.at[i].load(Relaxed)).filter(|&at| at > 0);
    let (mut from_sent, mut from_ack, mut superseded, mut lost) = (Vec::new(), Vec::new(), 0, 0);
    for (i, update) in updates.iter().enumerate() {
        if let Some(at) = at(i) {
            from_sent.push(at - update.sent);
            from_ack.push(at - update.acknowledged);
        } else if (i % pods..n).step_by(pods).any(|j| at(j).is_some() && updates[j].acknowledged > update.sent) {
            superseded += 1;
        } else {
            lost += 1;
        }
    }
    Line::new("e2e")
        .with("representation", "typed")
        .with_all(server::wire(flags, wire)?)
        .with("qps", flags.get::<f64>("qps")?)
        .with("n", n)
        .with("processed", from_sent.len())
        .with("superseded", superseded)
        .with("lost", lost)
        .with("reconciles", seen.reconciles.load(Relaxed))
        .with("cpu_s", rounded(cpu))
        .with_all(percentiles(["from_sent_p50_us", "from_sent_p99_us", "from_sent_max_us"], &mut from_sent))
        .with_all(percentiles(["from_ack_p50_us", "from_ack_p99_us", "from_ack_max_us"], &mut from_ack))
        .with("write_p50_us", written["request_p50_us"].clone())
        .with("write_p99_us", written["request_p99_us"].clone())
        .with("peak_rss_bytes", status("VmHWM"))
        .print();
    expect("lost updates", lost, 0);
    Ok(())
}

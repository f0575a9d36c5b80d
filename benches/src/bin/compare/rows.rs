//! What the table shows: the works on which we and the peers are measured, and what we want to reach.

/// One row: a figure of ours beside the same one of the peers.
pub(crate) struct Row {
    pub(crate) work: &'static str,
    /// The member of the lines that is shown, as a time in nanoseconds or a size in bytes.
    pub(crate) member: &'static str,
    /// The key of our case, see `results.rs`.
    pub(crate) ours: &'static str,
    /// The program and key of each peer's case.
    pub(crate) peers: &'static [(&'static str, &'static str)],
    pub(crate) target: Target,
}

/// The most that ours may be.
#[derive(Clone, Copy)]
pub(crate) enum Target {
    Open,
    /// A part of the first peer's.
    Part(f64),
    /// So much, whatever the machine: for sizes.
    AtMost(f64),
}

use Target::{AtMost, Open, Part};

impl Row {
    /// What prints this row's figure by itself, as arguments of the program.
    pub(crate) fn command(&self) -> String {
        let (work, rest) = self.ours.split_once('/').unwrap_or((self.ours, ""));
        let form = |codec_flag: &str| {
            let (codec, form) = rest.split_once('/').unwrap_or((rest, ""));
            let form = form.trim_end_matches("/watchlist").trim_end_matches("/one-core");
            let representation = form.trim_end_matches("-no-managed-fields");
            let codec = if codec == "protobuf" { codec_flag } else { "" };
            let transform = if form == representation { "" } else { " -transform" };
            format!("{codec} -as {representation}{transform}")
        };
        match work {
            "priority-queue-metrics" => "priority-queue".to_owned(),
            "store" => format!("{work} -sizes {}", rest.split('/').nth(1).unwrap_or_default()),
            "informer-fanout" if rest.contains("modifications") => format!("{work} -modify"),
            "list-decode" | "memory" if rest.starts_with("protobuf") => format!("{work} -f pods.pb{}", form("")),
            "list-decode" | "memory" => format!("{work} -f pods.json{}", form("")),
            "sync" => format!("{work}{}", form(" -protobuf")),
            "e2e" if rest.starts_with("protobuf") => format!("{work} -protobuf"),
            _ => work.to_owned(),
        }
    }
}

const GO: &str = "client-go";
const CR: &str = "controller-runtime";
const KUBE: &str = "kube";

/// A row of a time whose case has one name everywhere.
const fn time(
    work: &'static str,
    case: &'static str,
    peers: &'static [(&'static str, &'static str)],
    target: Target,
) -> Row {
    Row { work, member: "ns_per_op", ours: case, peers, target }
}

const fn size(
    work: &'static str,
    member: &'static str,
    ours: &'static str,
    peers: &'static [(&'static str, &'static str)],
    target: Target,
) -> Row {
    Row { work, member, ours, peers, target }
}

macro_rules! go {
    ($work:literal, $case:literal, $target:expr) => {
        time($work, $case, &[(GO, $case)], $target)
    };
}

macro_rules! cr {
    ($work:literal, $case:literal, $target:expr) => {
        time($work, $case, &[(CR, $case)], $target)
    };
}

const QUARTER: Target = Part(1.0 / 4.0);
const THIRD: Target = Part(1.0 / 3.0);

/// Times of one operation.
pub(crate) const TIMES: &[Row] = &[
    go!("queue: add, get, done, uncontended", "queue-cycle/uncontended", QUARTER),
    go!("the same, one producer, 1 worker", "queue-cycle/1-producer-1-workers", QUARTER),
    go!("the same, 8 workers", "queue-cycle/1-producer-8-workers", QUARTER),
    go!("the same, 64 workers", "queue-cycle/1-producer-64-workers", QUARTER),
    go!("the same, 9 of 10 adds duplicates", "queue-cycle/hot-90pct-duplicates", QUARTER),
    go!("queue with metrics, uncontended", "queue-cycle-metrics/uncontended", Part(1.0 / 8.0)),
    go!("queue with metrics, 64 workers", "queue-cycle-metrics/1-producer-64-workers", Part(1.0 / 8.0)),
    cr!("queue by priority, uncontended", "priority-queue/uncontended", Part(1.0 / 10.0)),
    cr!("queue by priority, 64 workers", "priority-queue/1-producer-64-workers", Part(1.0 / 10.0)),
    cr!("queue by priority with metrics, uncontended", "priority-queue-metrics/uncontended", Part(1.0 / 10.0)),
    go!("add_after beside 100,000 that wait", "queue-delayed/add-after-new-while-n-wait", QUARTER),
    go!("add_rate_limited", "queue-ratelimited/default/add-rate-limited", QUARTER),
    go!("a key that fails three times", "queue-ratelimited/retry-3-times", QUARTER),
    go!("indexer of 100,000: add", "store/indexer/100000/add", THIRD),
    go!("indexer of 100,000: get", "store/indexer/100000/get", THIRD),
    go!("indexer of 100,000: by namespace, 100 results", "store/indexer/100000/by-namespace-of-100", THIRD),
    go!("indexer of 100,000: list", "store/indexer/100000/list", THIRD),
    go!("get beside a writer, 1 reader", "store/indexer/100000/get-1-readers-1-writer", THIRD),
    go!("get beside a writer, 8 readers", "store/indexer/100000/get-8-readers-1-writer", THIRD),
    go!("delta FIFO: push and pop", "fifo/delta-fifo/push-all-pop-all", QUARTER),
    go!("delta FIFO with store", "fifo/delta-fifo/producer-and-consumer-with-store", QUARTER),
    go!("in order, in batches", "fifo/real-fifo-batch/push-all-pop-all", QUARTER),
    go!("in order, in batches, with store", "fifo/real-fifo-batch/producer-and-consumer-with-store", QUARTER),
    go!("event to 1 handler", "informer-fanout/events-to-1-handlers", QUARTER),
    go!("event to 10 handlers", "informer-fanout/events-to-10-handlers", QUARTER),
    go!("event to 100 handlers", "informer-fanout/events-to-100-handlers", QUARTER),
    time(
        "update to 1 handler",
        "informer-fanout/modifications-to-1-handlers",
        &[(KUBE, "informer-fanout/modifications-to-1-handlers"), (GO, "informer-fanout/modifications-to-1-handlers")],
        Part(0.5),
    ),
    time(
        "update to 100 handlers",
        "informer-fanout/modifications-to-100-handlers",
        &[
            (KUBE, "informer-fanout/modifications-to-100-handlers"),
            (GO, "informer-fanout/modifications-to-100-handlers"),
        ],
        Part(0.5),
    ),
    time(
        "JSON list, a pod, typed",
        "list-decode/json/typed",
        &[(KUBE, "list-decode/json/typed"), (GO, "list-decode/json/typed")],
        Part(0.7),
    ),
    time(
        "the same on one core",
        "list-decode/json/typed/one-core",
        &[(KUBE, "list-decode/json/typed/one-core"), (GO, "list-decode/json/typed/one-core")],
        Part(0.7),
    ),
    time(
        "JSON list, typed, without managedFields",
        "list-decode/json/typed-no-managed-fields",
        &[(KUBE, "list-decode/json/typed"), (GO, "list-decode/json/typed")],
        Part(0.7),
    ),
    time(
        "the same on one core",
        "list-decode/json/typed-no-managed-fields/one-core",
        &[(KUBE, "list-decode/json/typed/one-core"), (GO, "list-decode/json/typed/one-core")],
        Part(0.7),
    ),
    time(
        "JSON list, six fields",
        "list-decode/json/small",
        &[(KUBE, "list-decode/json/typed"), (GO, "list-decode/json/typed")],
        Part(10.0 / 57.0),
    ),
    time(
        "JSON list, packed",
        "list-decode/json/packed",
        &[(KUBE, "list-decode/json/typed"), (GO, "list-decode/json/typed")],
        Part(10.0 / 57.0),
    ),
    time(
        "the same on one core",
        "list-decode/json/packed/one-core",
        &[(KUBE, "list-decode/json/typed/one-core"), (GO, "list-decode/json/typed/one-core")],
        Part(10.0 / 57.0),
    ),
    time(
        "JSON list, zipped",
        "list-decode/json/zipped",
        &[(KUBE, "list-decode/json/typed"), (GO, "list-decode/json/typed")],
        Open,
    ),
    time(
        "protobuf list, a pod, typed",
        "list-decode/protobuf/typed-no-managed-fields",
        &[(GO, "list-decode/protobuf/typed")],
        Part(15.0 / 20.9),
    ),
    time(
        "protobuf list, six fields",
        "list-decode/protobuf/small-no-managed-fields",
        &[(GO, "list-decode/protobuf/typed")],
        Part(3.0 / 20.9),
    ),
    time(
        "protobuf list, packed",
        "list-decode/protobuf/packed-no-managed-fields",
        &[(GO, "list-decode/protobuf/typed")],
        Part(3.0 / 20.9),
    ),
    time(
        "the same on one core",
        "list-decode/protobuf/packed-no-managed-fields/one-core",
        &[(GO, "list-decode/protobuf/typed/one-core")],
        Part(3.0 / 20.9),
    ),
];

/// Delayed keys, which are more than one figure.
pub(crate) const DELAYED: &[Row] = &[
    size(
        "100,000 keys due over a second: CPU",
        "cpu_ns_per_op",
        "queue-delayed/spread-over-1s",
        &[(GO, "queue-delayed/spread-over-1s")],
        QUARTER,
    ),
    size(
        "the same: lateness, p99 (us)",
        "lateness_p99_us",
        "queue-delayed/spread-over-1s",
        &[(GO, "queue-delayed/spread-over-1s")],
        Part(2.0 / 37.0),
    ),
];

const PEERS_MEMORY: &[(&str, &str)] =
    &[(GO, "memory/json/typed-no-managed-fields"), (KUBE, "memory/json/typed-no-managed-fields")];

const PEERS_MEMORY_PROTOBUF: &[(&str, &str)] =
    &[(GO, "memory/protobuf/typed-no-managed-fields"), (KUBE, "memory/json/typed-no-managed-fields")];

/// Bytes of a cached pod.
pub(crate) const MEMORY: &[Row] = &[
    size(
        "cached pod, typed",
        "heap_bytes_per_item",
        "memory/json/typed",
        &[(GO, "memory/json/typed"), (KUBE, "memory/json/typed")],
        Open,
    ),
    size(
        "cached pod, typed, without managedFields",
        "heap_bytes_per_item",
        "memory/json/typed-no-managed-fields",
        PEERS_MEMORY,
        AtMost(26_000.0),
    ),
    size("cached pod, packed", "heap_bytes_per_item", "memory/json/packed", PEERS_MEMORY, AtMost(5_500.0)),
    size("cached pod, zipped", "heap_bytes_per_item", "memory/json/zipped", PEERS_MEMORY, AtMost(1_300.0)),
    size("cached pod, six fields", "heap_bytes_per_item", "memory/json/small", PEERS_MEMORY, AtMost(400.0)),
    size(
        "cached pod of protobuf, typed, without managedFields",
        "heap_bytes_per_item",
        "memory/protobuf/typed-no-managed-fields",
        PEERS_MEMORY_PROTOBUF,
        Open,
    ),
    size(
        "cached pod of protobuf, packed",
        "heap_bytes_per_item",
        "memory/protobuf/packed",
        PEERS_MEMORY_PROTOBUF,
        AtMost(3_000.0),
    ),
    size(
        "cached pod of protobuf, six fields",
        "heap_bytes_per_item",
        "memory/protobuf/small",
        PEERS_MEMORY_PROTOBUF,
        Open,
    ),
];

const PEERS_PEAK: &[(&str, &str)] = &[(GO, "memory/json/typed"), (KUBE, "memory/json/typed")];

/// What a list may take beside its result.
const BESIDE: Target = AtMost(16e6);

const fn peak(work: &'static str, member: &'static str, ours: &'static str, target: Target) -> Row {
    size(work, member, ours, PEERS_PEAK, target)
}

/// Memory beyond what was there, while a list of 10,000 pods is taken in; the result is in it but for the rows that say so.
pub(crate) const PEAKS: &[Row] = &[
    peak("peak while the list comes, typed", "peak_extra_bytes", "memory/json/typed", Open),
    peak("peak, typed, without managedFields", "peak_extra_bytes", "memory/json/typed-no-managed-fields", Open),
    peak("peak, packed", "peak_extra_bytes", "memory/json/packed", Open),
    peak("peak, zipped", "peak_extra_bytes", "memory/json/zipped", Open),
    peak("peak, six fields", "peak_extra_bytes", "memory/json/small", Open),
    size(
        "peak, protobuf, packed",
        "peak_extra_bytes",
        "memory/protobuf/packed",
        &[(GO, "memory/protobuf/typed")],
        Open,
    ),
];

/// The same without the result.
pub(crate) const BESIDES: &[Row] = &[
    peak("typed", "peak_beside_result_bytes", "memory/json/typed", BESIDE),
    peak("typed, without managedFields", "peak_beside_result_bytes", "memory/json/typed-no-managed-fields", BESIDE),
    peak("packed", "peak_beside_result_bytes", "memory/json/packed", BESIDE),
    peak("zipped", "peak_beside_result_bytes", "memory/json/zipped", BESIDE),
    peak("six fields", "peak_beside_result_bytes", "memory/json/small", BESIDE),
    size(
        "protobuf, packed",
        "peak_beside_result_bytes",
        "memory/protobuf/packed",
        &[(GO, "memory/protobuf/typed")],
        BESIDE,
    ),
];

const PEERS_SYNC: &[(&str, &str)] =
    &[(GO, "sync/protobuf/typed/watchlist"), (GO, "sync/json/typed/watchlist"), (KUBE, "sync/json/typed")];
const KUBE_SYNC: &[(&str, &str)] = &[(KUBE, "sync/json/typed"), (GO, "sync/json/typed/watchlist")];
const GO_UPDATE: &[(&str, &str)] = &[(GO, "e2e/protobuf/typed/watchlist")];

const TIME: &str = "ns_per_op";
const CPU: &str = "cpu_s";
const PEAK: &str = "peak_rss_bytes";
const HALF: Target = Part(1.0 / 2.0);

/// On a real API server. Memory is the whole process's.
pub(crate) const SYNC: &[Row] = &[
    size("first sync, protobuf, packed: time", TIME, "sync/protobuf/packed/watchlist", PEERS_SYNC, Part(1.0)),
    size("the same: CPU", CPU, "sync/protobuf/packed/watchlist", PEERS_SYNC, Open),
    size("the same: peak memory", PEAK, "sync/protobuf/packed/watchlist", PEERS_SYNC, Part(1.0 / 5.0)),
    size("protobuf, six fields: time", TIME, "sync/protobuf/small/watchlist", PEERS_SYNC, Open),
    size("the same: peak memory", PEAK, "sync/protobuf/small/watchlist", PEERS_SYNC, Part(1.0 / 15.0)),
    size("protobuf, typed: time", TIME, "sync/protobuf/typed/watchlist", PEERS_SYNC, Open),
    size("the same: peak memory", PEAK, "sync/protobuf/typed/watchlist", PEERS_SYNC, Open),
    size(
        "JSON, typed, without managedFields: time",
        TIME,
        "sync/json/typed-no-managed-fields/watchlist",
        KUBE_SYNC,
        HALF,
    ),
    size("the same: CPU", CPU, "sync/json/typed-no-managed-fields/watchlist", KUBE_SYNC, Open),
    size("the same: peak memory", PEAK, "sync/json/typed-no-managed-fields/watchlist", KUBE_SYNC, HALF),
    size("JSON, typed: time", TIME, "sync/json/typed/watchlist", KUBE_SYNC, HALF),
    size("the same: CPU", CPU, "sync/json/typed/watchlist", KUBE_SYNC, Open),
    size("the same: peak memory", PEAK, "sync/json/typed/watchlist", KUBE_SYNC, HALF),
    size("JSON, packed: time", TIME, "sync/json/packed/watchlist", KUBE_SYNC, Open),
    size("the same: CPU", CPU, "sync/json/packed/watchlist", KUBE_SYNC, Open),
    size("the same: peak memory", PEAK, "sync/json/packed/watchlist", KUBE_SYNC, Open),
    size("JSON, zipped: time", TIME, "sync/json/zipped/watchlist", KUBE_SYNC, Open),
    size("the same: peak memory", PEAK, "sync/json/zipped/watchlist", KUBE_SYNC, Open),
    size("JSON, six fields: time", TIME, "sync/json/small/watchlist", KUBE_SYNC, Open),
    size("the same: peak memory", PEAK, "sync/json/small/watchlist", PEERS_SYNC, Part(1.0 / 15.0)),
    size(
        "update to worker, protobuf, p50 (us)",
        "from_sent_p50_us",
        "e2e/protobuf/typed/watchlist",
        GO_UPDATE,
        Part(1.0),
    ),
    size("the same, p99 (us)", "from_sent_p99_us", "e2e/protobuf/typed/watchlist", GO_UPDATE, Part(1.0)),
    size("the same: CPU", CPU, "e2e/protobuf/typed/watchlist", GO_UPDATE, Open),
    size("update to worker, JSON, p50 (us)", "from_sent_p50_us", "e2e/json/typed/watchlist", GO_UPDATE, Open),
    size("the same, p99 (us)", "from_sent_p99_us", "e2e/json/typed/watchlist", GO_UPDATE, Open),
    size("the same: CPU", CPU, "e2e/json/typed/watchlist", GO_UPDATE, Open),
];

/// All tables with their titles.
pub(crate) const TABLES: &[(&str, &[Row])] = &[
    ("Time of one operation", TIMES),
    ("Delayed keys", DELAYED),
    ("Live heap of a cached pod", MEMORY),
    ("Peak memory", PEAKS),
    ("The peak without the result", BESIDES),
    ("On a real API server, 20,000 pods; times of a first sync for each pod", SYNC),
];

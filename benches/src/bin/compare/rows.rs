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
    /// The most that ours may be, as a part of the first peer's. 0: there is none.
    pub(crate) target: f64,
}

const GO: &str = "client-go";
const CR: &str = "controller-runtime";
const KUBE: &str = "kube";

/// A row of a time whose case has one name everywhere.
const fn time(
    work: &'static str,
    case: &'static str,
    peers: &'static [(&'static str, &'static str)],
    target: f64,
) -> Row {
    Row { work, member: "ns_per_op", ours: case, peers, target }
}

const fn size(
    work: &'static str,
    member: &'static str,
    ours: &'static str,
    peers: &'static [(&'static str, &'static str)],
    target: f64,
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

const QUARTER: f64 = 1.0 / 4.0;
const THIRD: f64 = 1.0 / 3.0;

/// Times of one operation.
pub(crate) const TIMES: &[Row] = &[
    go!("queue: add, get, done, uncontended", "queue-cycle/uncontended", QUARTER),
    go!("the same, one producer, 1 worker", "queue-cycle/1-producer-1-workers", QUARTER),
    go!("the same, 8 workers", "queue-cycle/1-producer-8-workers", QUARTER),
    go!("the same, 64 workers", "queue-cycle/1-producer-64-workers", QUARTER),
    go!("the same, 9 of 10 adds duplicates", "queue-cycle/hot-90pct-duplicates", QUARTER),
    go!("queue with metrics, uncontended", "queue-cycle-metrics/uncontended", 1.0 / 8.0),
    go!("queue with metrics, 64 workers", "queue-cycle-metrics/1-producer-64-workers", 1.0 / 8.0),
    cr!("queue by priority, uncontended", "priority-queue/uncontended", 1.0 / 10.0),
    cr!("queue by priority, 64 workers", "priority-queue/1-producer-64-workers", 1.0 / 10.0),
    cr!("queue by priority with metrics, uncontended", "priority-queue-metrics/uncontended", 1.0 / 10.0),
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
        0.5,
    ),
    time(
        "update to 100 handlers",
        "informer-fanout/modifications-to-100-handlers",
        &[
            (KUBE, "informer-fanout/modifications-to-100-handlers"),
            (GO, "informer-fanout/modifications-to-100-handlers"),
        ],
        0.5,
    ),
    time(
        "JSON list, a pod, typed",
        "list-decode/json/typed",
        &[(KUBE, "list-decode/json/typed"), (GO, "list-decode/json/typed")],
        0.7,
    ),
    time(
        "JSON list, typed, without managedFields",
        "list-decode/json/typed-no-managed-fields",
        &[(KUBE, "list-decode/json/typed"), (GO, "list-decode/json/typed")],
        0.7,
    ),
    time(
        "JSON list, six fields",
        "list-decode/json/small",
        &[(KUBE, "list-decode/json/typed"), (GO, "list-decode/json/typed")],
        10.0 / 57.0,
    ),
    time(
        "JSON list, packed",
        "list-decode/json/packed",
        &[(KUBE, "list-decode/json/typed"), (GO, "list-decode/json/typed")],
        10.0 / 57.0,
    ),
    time(
        "JSON list, zipped",
        "list-decode/json/zipped",
        &[(KUBE, "list-decode/json/typed"), (GO, "list-decode/json/typed")],
        0.0,
    ),
    time(
        "protobuf list, a pod, typed",
        "list-decode/protobuf/typed-no-managed-fields",
        &[(GO, "list-decode/protobuf/typed")],
        15.0 / 20.9,
    ),
    time(
        "protobuf list, six fields",
        "list-decode/protobuf/small-no-managed-fields",
        &[(GO, "list-decode/protobuf/typed")],
        3.0 / 20.9,
    ),
    time(
        "protobuf list, packed",
        "list-decode/protobuf/packed-no-managed-fields",
        &[(GO, "list-decode/protobuf/typed")],
        3.0 / 20.9,
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
        2.0 / 37.0,
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
        0.0,
    ),
    size(
        "cached pod, typed, without managedFields",
        "heap_bytes_per_item",
        "memory/json/typed-no-managed-fields",
        PEERS_MEMORY,
        26.0 / 12.7,
    ),
    size("cached pod, packed", "heap_bytes_per_item", "memory/json/packed", PEERS_MEMORY, 5.5 / 12.7),
    size("cached pod, zipped", "heap_bytes_per_item", "memory/json/zipped", PEERS_MEMORY, 1.3 / 12.7),
    size("cached pod, six fields", "heap_bytes_per_item", "memory/json/small", PEERS_MEMORY, 0.4 / 12.7),
    size(
        "cached pod of protobuf, typed, without managedFields",
        "heap_bytes_per_item",
        "memory/protobuf/typed-no-managed-fields",
        PEERS_MEMORY_PROTOBUF,
        0.0,
    ),
    size(
        "cached pod of protobuf, packed",
        "heap_bytes_per_item",
        "memory/protobuf/packed",
        PEERS_MEMORY_PROTOBUF,
        3.0 / 12.7,
    ),
    size(
        "cached pod of protobuf, six fields",
        "heap_bytes_per_item",
        "memory/protobuf/small",
        PEERS_MEMORY_PROTOBUF,
        0.0,
    ),
];

const PEERS_PEAK: &[(&str, &str)] = &[(GO, "memory/json/typed"), (KUBE, "memory/json/typed")];

/// Memory beyond what was there, while a list is taken in; the result is in it.
pub(crate) const PEAKS: &[Row] = &[
    size("peak while the list comes, typed", "peak_extra_bytes", "memory/json/typed", PEERS_PEAK, 0.0),
    size(
        "peak, typed, without managedFields",
        "peak_extra_bytes",
        "memory/json/typed-no-managed-fields",
        PEERS_PEAK,
        0.0,
    ),
    size("peak, packed", "peak_extra_bytes", "memory/json/packed", PEERS_PEAK, 0.0),
    size("peak, zipped", "peak_extra_bytes", "memory/json/zipped", PEERS_PEAK, 0.0),
    size("peak, six fields", "peak_extra_bytes", "memory/json/small", PEERS_PEAK, 0.0),
    size("peak, protobuf, packed", "peak_extra_bytes", "memory/protobuf/packed", &[(GO, "memory/protobuf/typed")], 0.0),
];

const PEERS_SYNC: &[(&str, &str)] =
    &[(GO, "sync/protobuf/typed/watchlist"), (GO, "sync/json/typed/watchlist"), (KUBE, "sync/json/typed")];

/// On a real API server.
pub(crate) const SYNC: &[Row] = &[
    size("first sync, typed: time", "ns_per_op", "sync/json/typed/watchlist", PEERS_SYNC, 0.0),
    size("first sync, six fields: time", "ns_per_op", "sync/json/small/watchlist", PEERS_SYNC, 0.0),
    size("first sync, packed: time", "ns_per_op", "sync/json/packed/watchlist", PEERS_SYNC, 0.0),
    size("first sync, zipped: time", "ns_per_op", "sync/json/zipped/watchlist", PEERS_SYNC, 0.0),
    size("first sync, protobuf, typed: time", "ns_per_op", "sync/protobuf/typed/watchlist", PEERS_SYNC, 0.0),
    size("first sync, protobuf, six fields: time", "ns_per_op", "sync/protobuf/small/watchlist", PEERS_SYNC, 0.0),
    size("first sync, protobuf, packed: time", "ns_per_op", "sync/protobuf/packed/watchlist", PEERS_SYNC, 0.0),
    size("first sync, protobuf, packed: CPU", "cpu_s", "sync/protobuf/packed/watchlist", PEERS_SYNC, 0.0),
    size(
        "first sync, protobuf, packed: peak memory",
        "peak_rss_bytes",
        "sync/protobuf/packed/watchlist",
        PEERS_SYNC,
        0.0,
    ),
    size("first sync, typed: peak memory", "peak_rss_bytes", "sync/json/typed/watchlist", PEERS_SYNC, 0.0),
    size("first sync, six fields: peak memory", "peak_rss_bytes", "sync/json/small/watchlist", PEERS_SYNC, 1.0 / 15.0),
    size("first sync, packed: peak memory", "peak_rss_bytes", "sync/json/packed/watchlist", PEERS_SYNC, 1.0 / 5.0),
    size("first sync, zipped: peak memory", "peak_rss_bytes", "sync/json/zipped/watchlist", PEERS_SYNC, 0.0),
    size(
        "update to worker, JSON, p50 (us)",
        "from_sent_p50_us",
        "e2e/json/typed/watchlist",
        &[(GO, "e2e/protobuf/typed/watchlist")],
        0.0,
    ),
    size(
        "update to worker, protobuf, p50 (us)",
        "from_sent_p50_us",
        "e2e/protobuf/typed/watchlist",
        &[(GO, "e2e/protobuf/typed/watchlist")],
        1.0,
    ),
    size(
        "update to worker, JSON, p99 (us)",
        "from_sent_p99_us",
        "e2e/json/typed/watchlist",
        &[(GO, "e2e/protobuf/typed/watchlist")],
        0.0,
    ),
    size(
        "update to worker, protobuf, p99 (us)",
        "from_sent_p99_us",
        "e2e/protobuf/typed/watchlist",
        &[(GO, "e2e/protobuf/typed/watchlist")],
        1.0,
    ),
];

/// All tables with their titles.
pub(crate) const TABLES: &[(&str, &[Row])] = &[
    ("Time of one operation", TIMES),
    ("Delayed keys", DELAYED),
    ("Live heap of a cached pod", MEMORY),
    ("Peak memory", PEAKS),
    ("On a real API server, 20,000 pods; times of a first sync for each pod", SYNC),
];

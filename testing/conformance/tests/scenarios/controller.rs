//! What controller-runtime does, as rows, metrics and scenarios: `controller/*.txt`, `CONTROLLER.md`.

use crate::list::{List, Section};

const METRICS: &[&str] = &[
    "controller_runtime_reconcile_total",
    "controller_runtime_reconcile_errors_total",
    "controller_runtime_terminal_reconcile_errors_total",
    "controller_runtime_reconcile_panics_total",
    "controller_runtime_reconcile_timeouts_total",
    "controller_runtime_reconcile_time_seconds",
    "controller_runtime_max_concurrent_reconciles",
    "controller_runtime_active_workers",
    "workqueue_depth",
    "workqueue_adds_total",
    "workqueue_retries_total",
    "workqueue_queue_duration_seconds",
    "workqueue_work_duration_seconds",
    "workqueue_unfinished_work_seconds",
    "workqueue_longest_running_processor_seconds",
    "leader_election_master_status",
    "rest_client_requests_total",
    "controller_runtime_webhook_latency_seconds",
    "controller_runtime_webhook_requests_total",
    "controller_runtime_webhook_requests_in_flight",
    "controller_runtime_webhook_panics_total",
    "certwatcher_read_certificate_total",
    "certwatcher_read_certificate_errors_total",
];

fn list() -> List {
    let rows = [
        ("Rows: the pod controller wired by hand", 1..=11),
        ("Rows: the controller and its loop", 12..=30),
        ("Rows: sources, handlers, events, predicates", 31..=41),
        ("Rows: manager, cluster, client", 42..=66),
        ("Rows: builder, webhook", 67..=75),
    ];
    let scenarios = [
        ("Reconcile loop and results", 1..=31),
        ("Controller construction and start", 32..=54),
        ("Warm-up", 55..=62),
        ("Sources", 63..=78),
        ("Handlers", 79..=98),
        ("Predicates", 99..=110),
        ("Priority queue", 111..=135),
        ("Manager", 136..=156),
        ("Leader election", 157..=168),
        ("Probes and metrics", 169..=176),
        ("Cache and client", 177..=200),
        ("Builder, helpers, aids for tests", 201..=210),
    ];
    let metrics = METRICS.iter().map(|name| format!("metric {name}")).collect();
    let mut sections: Vec<_> =
        rows.into_iter().map(|(title, numbers)| Section::numbered(title, "row ", numbers)).collect();
    sections.push(Section { title: "Metrics".to_owned(), keys: metrics });
    sections.extend(scenarios.into_iter().map(|(title, numbers)| Section::numbered(title, "", numbers)));
    List {
        folder: "controller",
        table: "CONTROLLER.md",
        heading: "What controller-runtime does, and our tests",
        source: "Rows are the systems that a controller layer consists of, numbers the scenarios drawn from controller-runtime's own tests and behaviour.",
        sections,
        label: |reason| (!reason.is_empty()).then_some(REASON),
        labels: &[REASON],
    }
}

const REASON: &str = "have a reason why there is none";

#[test]
fn the_sections_have_75_rows_the_metrics_and_210_scenarios() {
    let keys: Vec<_> = list().sections.into_iter().flat_map(|section| section.keys).collect();
    let rows = (1..=75).map(|number| format!("row {number}"));
    let metrics = METRICS.iter().map(|name| format!("metric {name}"));
    let scenarios = (1..=210).map(|number: u32| number.to_string());
    assert_eq!(keys, rows.chain(metrics).chain(scenarios).collect::<Vec<_>>());
}

#[test]
fn every_test_that_is_named_exists() {
    let problems = list().problems();
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn the_table_says_what_the_files_say() {
    list().check_table();
}

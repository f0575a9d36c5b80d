//! With leases of the embedded API server.

use std::time::Duration;

use kube_client::Client;
use kubewire_apiserver::{ApiServer, Fault, Matching, Network, Status, Verb};
use kubewire_leaderelection::{
    ElectionError, Elector, EndCause, LeaseLock, Lock, LockError, Record, Versioned, unique_identity,
};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::support::{Log, Running, candidate, secs, start, work};

const LEASES: &str = "coordination.k8s.io/v1/leases";

fn lock(client: Client) -> LeaseLock {
    LeaseLock::new(client, "default", "controller")
}

fn spec(server: &ApiServer) -> Value {
    server.get(LEASES, "default", "controller").map(|lease| lease["spec"].clone()).unwrap_or_default()
}

fn holder(server: &ApiServer) -> String {
    spec(server)["holderIdentity"].as_str().unwrap_or_default().to_owned()
}

/// Longest pause between two tries of a candidate.
const RETRY_MAX: Duration = Duration::from_millis(4400);

/// A leader `a` that releases, and a standby `b`.
async fn two(server: &ApiServer, log: &Log) -> (Running, Running) {
    let a = start(candidate(lock(server.client()), "a", log).release_on_stop(true));
    a.leads().await;
    let b = start(Elector::builder(lock(server.client()), "b"));
    sleep(secs(5)).await;
    assert!(!b.leadership.is_leader());
    (a, b)
}

#[tokio::test(start_paused = true)]
async fn of_two_candidates_one_leads_and_the_other_follows_soon_after_a_release() {
    let server = ApiServer::start().await;
    let log = Log::default();
    let (a, b) = two(&server, &log).await;
    assert_eq!(b.leadership.holder(), "a");
    assert_eq!(a.stopped().await, Ok(()));
    assert_eq!(log.take(), ["leader \"a\"", "stopped", "leader \"\""]);
    let released = spec(&server);
    assert_eq!((&released["holderIdentity"], &released["leaseDurationSeconds"]), (&json!(""), &json!(1)));
    let begin = Instant::now();
    b.leads().await;
    assert!(begin.elapsed() <= RETRY_MAX, "{:?}", begin.elapsed());
    assert_eq!((holder(&server).as_str(), &spec(&server)["leaseTransitions"]), ("b", &json!(1)));
}

#[tokio::test(start_paused = true)]
async fn without_a_release_the_other_waits_until_the_lease_is_over() {
    let server = ApiServer::start().await;
    let a = start(Elector::builder(lock(server.client()), "a"));
    a.leads().await;
    let b = start(Elector::builder(lock(server.client()), "b"));
    sleep(secs(5)).await;
    assert_eq!(a.stopped().await, Ok(()));
    let begin = Instant::now();
    b.leads().await;
    let waited = begin.elapsed();
    assert!(waited >= secs(12) && waited <= secs(15) + RETRY_MAX, "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn a_release_that_meets_a_changed_label_reads_again_and_is_done() {
    let server = ApiServer::start().await;
    let log = Log::default();
    let (a, b) = two(&server, &log).await;
    let (server_of_fault, updates) = (server.clone(), Matching::any().verb(Verb::Update).resource(LEASES));
    server_of_fault.fault(Fault::answer(Status::new(409, "Conflict", "a label was changed")).on(updates));
    server.modify(LEASES, "default", "controller", |lease| lease["metadata"]["labels"] = json!({"x": "y"})).unwrap();
    assert_eq!(a.stopped().await, Ok(()));
    assert_eq!(holder(&server), "");
    let lease = server.get(LEASES, "default", "controller").unwrap();
    assert_eq!(lease["metadata"]["labels"], json!({"x": "y"}), "the label stays");
    let begin = Instant::now();
    b.leads().await;
    assert!(begin.elapsed() <= RETRY_MAX);
}

#[tokio::test(start_paused = true)]
async fn who_was_cut_off_does_not_empty_the_lease_of_who_took_over() {
    let server = ApiServer::start().await;
    let network = Network::new(&server, 1);
    let elector = Elector::builder(lock(network.client()), "a").release_on_stop(true).build().unwrap();
    let (leadership, stop) = (elector.leadership(), tokio_util::sync::CancellationToken::new());
    let a = tokio::spawn({
        let stop = stop.clone();
        async move { elector.run_until_stopped(stop).await }
    });
    leadership.wait_for_leadership().await.unwrap();
    network.cut(true);
    let b = start(Elector::builder(lock(server.client()), "b"));
    b.leads().await;
    assert!(!leadership.is_leader());
    network.take_arrived();
    stop.cancel();
    network.cut(false);
    assert_eq!(a.await.unwrap(), Ok(()));
    assert!(network.take_arrived().iter().all(|method| method == "GET"));
    sleep(secs(5)).await;
    assert_eq!(holder(&server), "b");
    assert!(b.leadership.is_leader());
}

#[tokio::test(start_paused = true)]
async fn a_release_while_the_server_is_away_ends_in_time() {
    let server = ApiServer::start().await;
    let a = start(Elector::builder(lock(server.client()), "a").release_on_stop(true));
    a.leads().await;
    server.fault(Fault::stall().always());
    let begin = Instant::now();
    assert_eq!(a.stopped().await, Ok(()));
    assert!(begin.elapsed() <= secs(10));
}

#[tokio::test(start_paused = true)]
async fn errors_within_the_deadline_cost_no_leadership() {
    let server = ApiServer::start().await;
    let a = start(Elector::builder(lock(server.client()), "a"));
    a.leads().await;
    let term = a.leadership.term().unwrap();
    server.fault(Fault::internal_error().on(Matching::any().verb(Verb::Update)).times(3));
    sleep(secs(60)).await;
    assert!(term.is_valid());
    assert_eq!(spec(&server)["leaseTransitions"], 0);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_was_deleted_is_made_anew_by_its_leader() {
    let server = ApiServer::start().await;
    let log = Log::default();
    let (a, b) = two(&server, &log).await;
    let term = a.leadership.term().unwrap();
    // Between two reads of the standby.
    let reads = || server.requests().len();
    let before = reads();
    while reads() == before {
        sleep(Duration::from_millis(10)).await;
    }
    server.delete(LEASES, "default", "controller").unwrap();
    sleep(secs(20)).await;
    let leaders = [&a, &b].iter().filter(|candidate| candidate.leadership.is_leader()).count();
    assert_eq!(leaders, 1);
    assert_eq!(term.is_valid(), holder(&server) == "a");
}

#[tokio::test(start_paused = true)]
async fn a_name_that_is_written_by_force_ends_leadership_when_it_is_seen() {
    let server = ApiServer::start().await;
    let log = Log::default();
    let a = start(candidate(lock(server.client()), "a", &log).on_started_leading(work(&log, secs(9))));
    a.leads().await;
    server.modify(LEASES, "default", "controller", |lease| lease["spec"]["holderIdentity"] = json!("b")).unwrap();
    assert_eq!(a.task.await.unwrap(), Err(ElectionError::Lost(EndCause::Taken { by: "b".into() })));
    assert_eq!(holder(&server), "b");
}

#[tokio::test(start_paused = true)]
async fn missing_rights_are_told_and_make_no_hot_loop() {
    let server = ApiServer::start().await;
    server.fault(Fault::answer(Status::new(403, "Forbidden", "leases is forbidden")).always());
    let a = start(Elector::builder(lock(server.client()), "a"));
    sleep(secs(5)).await;
    assert!(server.requests().len() <= 3, "{} requests", server.requests().len());
    let error = a.leadership.last_error().unwrap();
    assert!(error.contains("leases is forbidden") && error.contains("get, create and update"), "{error}");
    assert!(!a.task.is_finished(), "it goes on trying");
    server.clear_faults();
    a.leads().await;
}

#[tokio::test(start_paused = true)]
async fn times_far_in_the_future_cost_one_lease_duration_and_no_more() {
    for hours in [-2, 2] {
        let server = ApiServer::start().await;
        let dead = jiff(hours);
        let lease = json!({
            "metadata": {"name": "controller", "namespace": "default"},
            "spec": {"holderIdentity": "dead", "leaseDurationSeconds": 15, "renewTime": dead, "leaseTransitions": 4},
        });
        server.create(LEASES, lease).unwrap();
        let a = start(Elector::builder(lock(server.client()), unique_identity()));
        let begin = Instant::now();
        a.leads().await;
        assert!(begin.elapsed() >= secs(15) && begin.elapsed() <= secs(15) + RETRY_MAX, "{:?}", begin.elapsed());
        assert_eq!(spec(&server)["leaseTransitions"], 5);
    }
}

/// So many hours from the beginning of 2026, as a lease says it.
fn jiff(hours: i64) -> String {
    let time = k8s_openapi::jiff::Timestamp::from_second(1_767_225_600 + 3600 * hours).unwrap();
    format!("{time:.6}")
}

#[tokio::test(start_paused = true)]
async fn candidates_with_wall_clocks_hours_apart_do_not_rob_each_other() {
    let server = ApiServer::start().await;
    let clock = |hours: i64| move || k8s_openapi::jiff::Timestamp::from_second(1_767_225_600 + 3600 * hours).unwrap();
    let a = start(Elector::builder(lock(server.client()), "a").wall_clock(clock(0)));
    a.leads().await;
    let b = start(Elector::builder(lock(server.client()), "b").wall_clock(clock(2)));
    let c = start(Elector::builder(lock(server.client()), "c").wall_clock(clock(-2)));
    sleep(secs(600)).await;
    assert!(a.leadership.is_leader() && !b.leadership.is_leader() && !c.leadership.is_leader());
    assert_eq!(spec(&server)["leaseTransitions"], 0);
}

#[tokio::test(start_paused = true)]
async fn the_lock_tells_conflicts_from_failures_and_keeps_what_is_not_its() {
    let server = ApiServer::start().await;
    let client = server.client();
    let lock = lock(client.clone()).labels([("app", "x")]);
    assert_eq!(lock.get().await.unwrap(), None);
    let record = Record { holder: "a".into(), lease_duration_seconds: 15, ..Record::default() };
    let unread = Versioned { record: record.clone(), version: "1".into() };
    assert!(matches!(lock.update(unread).await, Err(LockError::NotRead)));

    let made = lock.create(record.clone()).await.unwrap();
    assert_eq!(made.record, record);
    assert!(matches!(lock.create(record.clone()).await, Err(LockError::Conflict)));

    server
        .modify(LEASES, "default", "controller", |lease| {
            lease["metadata"]["labels"]["other"] = json!("y");
            lease["metadata"]["annotations"] = json!({"note": "z"});
        })
        .unwrap();
    assert!(matches!(lock.update(made).await, Err(LockError::Conflict)));
    let read = lock.get().await.unwrap().unwrap();
    let next = Versioned { record: Record { transitions: 1, ..record.clone() }, version: read.version };
    let written = lock.update(next.clone()).await.unwrap();
    assert_eq!(written.record, next.record);
    let lease = server.get(LEASES, "default", "controller").unwrap();
    assert_eq!(lease["metadata"]["labels"], json!({"app": "x", "other": "y"}));
    assert_eq!(lease["metadata"]["annotations"], json!({"note": "z"}));

    // The server takes no lease of zero seconds.
    let zero = Record { lease_duration_seconds: 0, ..record };
    let refused = lock.update(Versioned { record: zero, version: written.version.clone() }).await;
    assert!(matches!(refused, Err(LockError::Request(_))));
    server.fault(Fault::internal_error());
    assert!(matches!(lock.get().await, Err(LockError::Request(_))));
    server.delete(LEASES, "default", "controller").unwrap();
    assert!(matches!(lock.update(written).await, Err(LockError::NotFound)));
    assert_eq!(lock.reference().to_string(), "default/controller");
    assert!(format!("{lock:?}").contains("default/controller"));
}

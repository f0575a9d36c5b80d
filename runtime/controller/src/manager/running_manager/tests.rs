//! In paused time, with a controller over a cluster in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kubewire_apiserver::ApiServer;
use serde_json::json;
use tokio::time::{Instant, sleep, timeout};

use super::*;
use crate::{Attempt, BoxError, Controller, Ended, ManagerOptions, Outcome, Request};

const QUIET: Duration = Duration::from_millis(1);

/// A manager whose controller takes ten seconds for each config.
async fn slow() -> (ApiServer, Manager, Arc<AtomicU32>) {
    let server = ApiServer::start().await;
    server.create("configmaps", json!({"metadata": {"namespace": "default", "name": "a"}})).unwrap();
    let manager = Manager::new(server.client(), ManagerOptions::new());
    let configs = manager.cache().watch::<Arc<ConfigMap>>().unwrap();
    let done = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&done);
    let reconcile = move |_: Request, _: Attempt| {
        let done = Arc::clone(&count);
        async move {
            sleep(Duration::from_secs(10)).await;
            done.fetch_add(1, Ordering::Relaxed);
            Ok::<_, BoxError>(Outcome::RequeueAfter(Duration::from_secs(3600)))
        }
    };
    Controller::builder().for_(&configs).complete(&manager, reconcile).unwrap();
    (server, manager, done)
}

#[tokio::test(start_paused = true)]
async fn idle_is_who_has_done_all_that_is_at_hand_and_is_not_what_comes_later() {
    let (server, manager, done) = slow().await;
    let running = manager.spawn(CancellationToken::new());
    let began = Instant::now();
    manager.wait_idle(QUIET).await.unwrap();
    assert_eq!(done.load(Ordering::Relaxed), 1, "though it comes back in an hour");
    assert!(began.elapsed() >= Duration::from_secs(10));
    for name in ["b", "c"] {
        server.create("configmaps", json!({"metadata": {"namespace": "default", "name": name}})).unwrap();
    }
    manager.wait_idle(QUIET).await.unwrap();
    assert_eq!(done.load(Ordering::Relaxed), 3);
    // Quiet for an hour it never is.
    let quiet_for_long = manager.wait_idle(Duration::from_secs(3600));
    assert!(timeout(Duration::from_secs(36_000), quiet_for_long).await.is_err());
    running.stop().await.unwrap();
    assert_eq!(manager.wait_idle(QUIET).await, Err(Ended));
}

#[tokio::test(start_paused = true)]
async fn who_begins_something_within_the_quiet_time_is_not_idle_though_nothing_is_at_hand() {
    let server = ApiServer::start().await;
    let manager = Manager::new(server.client(), ManagerOptions::new());
    let again = |_: Request, _: Attempt| async { Ok::<_, BoxError>(Outcome::RequeueAfter(Duration::from_millis(3))) };
    let controller = Controller::new("again", again, crate::ControllerOptions::new());
    controller.queue().add(Request::new("default", "a"), 0);
    manager.add(controller).unwrap();
    let running = manager.spawn(CancellationToken::new());
    assert!(timeout(Duration::from_secs(60), manager.wait_idle(5 * QUIET)).await.is_err());
    manager.wait_idle(QUIET).await.unwrap();
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn before_the_start_nobody_is_idle() {
    let (_server, manager, _) = slow().await;
    assert!(timeout(Duration::from_secs(60), manager.wait_idle(QUIET)).await.is_err());
    let (idle, running) = (manager.wait_idle(QUIET), manager.spawn(CancellationToken::new()));
    idle.await.unwrap();
    running.stop().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_stop_a_token_or_nobody_who_holds_it_ends_it_in_order() {
    // By itself: what is in flight is done first.
    let (_server, manager, done) = slow().await;
    let running = manager.spawn(CancellationToken::new());
    sleep(Duration::from_secs(1)).await;
    assert!(!running.is_finished());
    running.stop().await.unwrap();
    assert_eq!(done.load(Ordering::Relaxed), 1);
    // By its token.
    let (_server, manager, done) = slow().await;
    let stop = CancellationToken::new();
    let running = manager.spawn(stop.clone());
    let joined = tokio::spawn(running.join());
    sleep(Duration::from_secs(1)).await;
    assert!(!joined.is_finished() && !manager.groups().is_stopping(), "who waits for the end does not bring it about");
    stop.cancel();
    joined.await.unwrap().unwrap();
    assert_eq!(done.load(Ordering::Relaxed), 1);
    // Dropped; the token that it was given stays as it is.
    let (server, manager, done) = slow().await;
    let stop = CancellationToken::new();
    let running = manager.spawn(stop.clone());
    sleep(Duration::from_secs(1)).await;
    drop(running);
    manager.ended().await;
    assert_eq!((done.load(Ordering::Relaxed), stop.is_cancelled()), (1, false));
    assert_eq!(server.requests_open(), 0);
}

#[tokio::test]
async fn where_it_listens_is_known_once_it_does() {
    let server = ApiServer::start().await;
    let address = ([127, 0, 0, 1], 0).into();
    let manager = Manager::new(server.client(), ManagerOptions::new().health_address(address).metrics_address(address));
    assert_eq!((manager.health_bound(), manager.metrics_bound()), (None, None));
    let running = manager.spawn(CancellationToken::new());
    manager.started().await.unwrap();
    let (health, metrics) = (manager.health_bound().unwrap(), manager.metrics_bound().unwrap());
    assert!(health.port() != 0 && metrics.port() != 0 && health != metrics);
    running.stop().await.unwrap();
    let silent = Manager::new(server.client(), ManagerOptions::new());
    assert_eq!((silent.health_bound(), silent.metrics_bound()), (None, None));
}

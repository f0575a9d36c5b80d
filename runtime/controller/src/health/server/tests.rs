//! Over a real port.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::*;
use crate::test_http::get::get;
use crate::{AddCheckError, RunnableGroups};

fn local() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

/// Runs it until the token is cancelled.
async fn run(
    server: &HealthServer,
) -> (SocketAddr, CancellationToken, tokio::task::JoinHandle<Result<(), crate::RunError>>) {
    let groups = RunnableGroups::new();
    groups.add(server.clone()).unwrap();
    let stop = CancellationToken::new();
    let running = tokio::spawn({
        let (groups, stop) = (groups.clone(), stop.clone());
        async move { groups.run(stop).await }
    });
    groups.started().await.unwrap();
    (server.bound().unwrap(), stop, running)
}

#[tokio::test]
async fn an_endpoint_answers_by_its_checks_and_without_any_there_is_none() {
    let server = HealthServer::new(local());
    let healthy = Arc::new(AtomicBool::new(false));
    let is_healthy = Arc::clone(&healthy);
    server.readyz().add("first", || Ok::<(), BoxError>(())).unwrap();
    let check = move || if is_healthy.load(Ordering::SeqCst) { Ok(()) } else { Err("the disk is full") };
    server.readyz().add("disk", check).unwrap();
    server.readyz().add("panics", || -> Result<(), BoxError> { panic!("no") }).unwrap();
    server.readyz().add_async("panics", || async { Ok::<(), BoxError>(()) }).unwrap();
    let (address, stop, running) = run(&server).await;

    assert_eq!(get(address, "/healthz").await.0, 404, "no check, no endpoint");
    let failed = "[-]disk failed: reason withheld\n[+]first ok\n[+]panics ok\nreadyz check failed\n";
    assert_eq!(get(address, "/readyz").await, (500, failed.to_owned()));
    assert_eq!(get(address, "/readyz?exclude=disk").await, (200, "ok".to_owned()));
    let (status, text) = get(address, "/readyz/disk").await;
    assert_eq!((status, text.as_str()), (500, "internal server error: the disk is full\n"));
    assert_eq!(get(address, "/readyz/first").await, (200, "ok".to_owned()));
    for path in ["/readyz/nope", "/readyz/", "/other", "/"] {
        assert_eq!(get(address, path).await.0, 404, "{path}");
    }
    healthy.store(true, Ordering::SeqCst);
    assert_eq!(get(address, "/readyz").await, (200, "ok".to_owned()), "nothing is remembered");
    let verbose = "[+]disk ok\n[+]first ok\n[+]panics ok\nreadyz check passed\n";
    assert_eq!(get(address, "/readyz?verbose").await, (200, verbose.to_owned()));
    let unknown = get(address, "/readyz?verbose&exclude=x").await.1;
    assert!(unknown.contains("warn: some health checks cannot be excluded: no matches for \"x\"\n"), "{unknown}");

    assert_eq!(server.healthz().add("late", || Ok::<(), BoxError>(())), Err(AddCheckError));
    stop.cancel();
    running.await.unwrap().unwrap();
    assert!(tokio::net::TcpStream::connect(address).await.is_err(), "the port is closed");
}

#[tokio::test(start_paused = true)]
async fn a_check_that_hangs_or_panics_has_failed() {
    let server = HealthServer::new(local());
    server.readyz().add_async("hangs", std::future::pending::<Result<(), BoxError>>).unwrap();
    server.readyz().add("panics", || -> Result<(), BoxError> { panic!("no") }).unwrap();
    let before = tokio::time::Instant::now();
    let (ok, text) = server.readyz().run("readyz", "").await;
    assert!(!ok && text.contains("[-]hangs") && text.contains("[-]panics"), "{text}");
    assert_eq!(before.elapsed(), Duration::from_secs(10));
    let error = server.readyz().run_one("panics").await.unwrap().unwrap_err();
    assert_eq!(error.to_string(), "the check panicked");
}

/// Counts the lines of the log.
#[derive(Clone, Default)]
struct Lines(Arc<AtomicUsize>);

impl tracing::Subscriber for Lines {
    fn enabled(&self, _: &tracing::Metadata<'_>) -> bool {
        true
    }
    fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        tracing::span::Id::from_u64(1)
    }
    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, _: &tracing::Event<'_>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}
}

#[tokio::test(start_paused = true)]
async fn a_check_that_fails_for_an_hour_writes_few_lines_and_one_when_it_is_over() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    let (checks, well) = (HealthChecks::new(), Arc::new(AtomicBool::new(false)));
    let seen = Arc::clone(&well);
    checks.add("disk", move || if seen.load(Ordering::Relaxed) { Ok(()) } else { Err("there is none") }).unwrap();
    // As a kubelet asks.
    for _ in 0..360 {
        assert!(!checks.run("readyz", "").await.0);
        tokio::time::sleep(Duration::from_secs(10)).await;
    }
    let written = lines.0.load(Ordering::Relaxed);
    assert!((2..=12).contains(&written), "{written}");
    well.store(true, Ordering::Relaxed);
    for _ in 0..10 {
        assert!(checks.run("readyz", "").await.0);
    }
    assert_eq!(lines.0.load(Ordering::Relaxed), written + 1);
}

/// With controller-runtime a port that is in use while a cache waits for what it serves hangs the start.
#[tokio::test]
async fn a_port_that_is_in_use_is_the_error_of_the_run() {
    let taken = tokio::net::TcpListener::bind(local()).await.unwrap();
    let groups = RunnableGroups::new();
    groups.add(HealthServer::new(taken.local_addr().unwrap())).unwrap();
    let error = groups.run(CancellationToken::new()).await.unwrap_err();
    assert_eq!(error.find::<std::io::Error>().unwrap().kind(), std::io::ErrorKind::AddrInUse);
    assert!(error.to_string().contains("cannot listen on 127.0.0.1:"), "{error}");
}

//! Who is told what went wrong, and what the status says.

use std::sync::Arc;
use std::time::Duration;

use kubewire_informer::reflector::{ReflectorOptions, ReflectorPhase, RestartCause};
use kubewire_listwatch::ErrorClass;
use parking_lot::Mutex;

use super::fake_server::status;
use super::running::Running;

fn recording() -> (ReflectorOptions, Arc<Mutex<Vec<String>>>) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&told);
    (ReflectorOptions::new().error_handler(move |error| sink.lock().push(error.to_string())), told)
}

#[tokio::test(start_paused = true)]
async fn a_forbidden_list_tells_the_handler_once_for_each_try_and_the_status_says_why() {
    let (options, told) = recording();
    let running = Running::start(false, options);
    for _ in 0..3 {
        running.server.list().await.fail(status(403, "Forbidden"));
    }
    let list = running.server.list().await;
    assert_eq!(*told.lock(), ["pods: cannot list: forbidden: Forbidden"; 3]);
    let now = running.monitor.status();
    let last = now.last_error.expect("an error");
    assert_eq!((last.error.class(), last.error.resource()), (ErrorClass::Forbidden, "pods"));
    assert_eq!((now.failures_in_a_row, now.last_list, now.phase), (3, None, ReflectorPhase::Listing));
    list.ok(&[], "5");
    running.server.watch().await;
    let now = running.monitor.status();
    assert_eq!((now.failures_in_a_row, now.last_error.is_some(), now.last_list.is_some()), (0, true, true));
    assert_eq!(now.restarts_by(RestartCause::Failed(ErrorClass::Forbidden)), 3);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_expired_watch_tells_nobody_and_lists_from_the_last_version_after_a_delay() {
    let (options, told) = recording();
    let running = Running::start(false, options);
    let stream = running.server.list_and_watch(&[], "10").await;
    stream.send("+a@12");
    let start = tokio::time::Instant::now();
    stream.error(status(410, "Expired"));
    let list = running.server.list().await;
    assert_eq!((list.version(), told.lock().len()), ("12", 0));
    assert!(start.elapsed() >= Duration::from_millis(800));
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_cannot_be_opened_tells_the_handler() {
    let (options, told) = recording();
    let running = Running::start(false, options);
    running.server.list().await.ok(&[], "10");
    running.server.watch().await.fail(status(429, "TooManyRequests"));
    running.server.watch().await.fail(status(410, "Expired"));
    running.server.list().await;
    assert_eq!(
        *told.lock(),
        ["pods: cannot watch: throttled: TooManyRequests", "pods: cannot watch: expired: Expired"]
    );
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_panicking_handler_harms_nobody_and_is_counted() {
    let options = ReflectorOptions::new().error_handler(|_| panic!("handler"));
    let running = Running::start(false, options);
    for _ in 0..2 {
        running.server.list().await.fail(status(500, "InternalError"));
    }
    running.server.list().await.ok(&["a@1"], "1");
    running.store.until("list 1: a@1").await;
    assert_eq!(running.monitor.status().handler_panics, 2);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_kind_that_is_defined_late_is_picked_up() {
    let running = Running::start(false, ReflectorOptions::new());
    running.server.list().await.fail(status(404, "NotFound"));
    running.server.list().await.fail(status(404, "NotFound"));
    running.server.list().await.ok(&["a@1"], "1");
    running.store.until("list 1: a@1").await;
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_refused_streaming_list_is_no_failure_where_the_list_after_it_succeeds() {
    let (options, told) = recording();
    let running = Running::start(true, options);
    running.server.watch().await.fail(status(403, "Forbidden"));
    let list = running.server.list().await;
    let now = running.monitor.status();
    assert_eq!((now.failures_in_a_row, told.lock().len()), (0, 0));
    assert_eq!(now.last_error.map(|last| last.error.class()), Some(ErrorClass::Forbidden));
    list.fail(status(403, "Forbidden"));
    running.server.watch().await;
    assert_eq!((running.monitor.status().failures_in_a_row, told.lock().len()), (1, 1));
    running.stop().await;
}

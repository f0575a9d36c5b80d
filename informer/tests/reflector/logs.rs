//! What a reflector logs: few lines of many failures, with the number of those left out, and once that it is over.

use kubewire_informer::reflector::ReflectorOptions;
use kubewire_listwatch::{EventKind, ListMeta};

use super::fake_server::{bad_event, bad_item, pod, status};
use super::running::Running;
use crate::log_lines::{LogLines, field};

#[tokio::test(start_paused = true)]
async fn an_outage_of_a_thousand_failures_writes_few_lines_that_count_the_others_and_its_end_is_logged_once() {
    let log = LogLines::gather();
    let running = Running::start(false, ReflectorOptions::new());
    for _ in 0..1000 {
        running.server.list().await.fail(status(503, "ServiceUnavailable"));
    }
    let stream = running.server.list_and_watch(&["a@1"], "10").await;
    stream.send("+b@11");
    running.store.until("version 11").await;
    let errors = log.with("list and watch goes on after an error");
    // Some twelve hours of it: no more than six lines an hour.
    assert!((10..=85).contains(&errors.len()), "{} lines of 1000 failures", errors.len());
    assert!(errors.iter().all(|line| line.contains("pods: cannot list: unavailable")), "{errors:?}");
    let told_left_out: u64 = errors.iter().map(|line| field(line, "left_out")).sum();
    let over = log.with("list and watch works again");
    assert_eq!((over.len(), field(&over[0], "failures")), (1, 1000), "{over:?}");
    assert_eq!(field(&over[0], "left_out") + errors.len() as u64, 1000);
    assert!(told_left_out <= field(&over[0], "left_out"));
    assert_eq!(log.len(), errors.len() + 1, "and nothing else");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_refused_after_each_list_writes_few_lines_and_no_recovery() {
    let log = LogLines::gather();
    let running = Running::start(false, ReflectorOptions::new());
    for _ in 0..300 {
        running.server.list().await.ok(&["a@1"], "10");
        running.server.watch().await.fail(status(403, "Forbidden"));
    }
    running.server.list().await;
    let lines = log.len();
    assert!((5..=40).contains(&lines), "{lines} lines of 300 failures in some four hours");
    assert_eq!(log.with("works again").len(), 0, "a list alone is no recovery");
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_breaks_and_opens_again_and_again_writes_few_lines() {
    let log = LogLines::gather();
    let running = Running::start(false, ReflectorOptions::new());
    let mut stream = running.server.list_and_watch(&[], "10").await;
    for version in 11..511 {
        stream.send(&format!("+a@{version}"));
        stream.error(status(500, "InternalError"));
        stream = running.server.list_and_watch(&[], &version.to_string()).await;
    }
    let lines = log.len();
    assert!((5..=100).contains(&lines), "{lines} lines of 500 failures and recoveries in some six hours");
    drop(stream);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_list_of_a_thousand_objects_that_cannot_be_decoded_writes_two_lines() {
    let log = LogLines::gather();
    let running = Running::start(false, ReflectorOptions::new());
    let bad = (0..1000).map(|n| Err(bad_item(Some(&format!("bad-{n}")), None)));
    let items = bad.chain([Ok(pod("a@1"))]).collect();
    running.server.list().await.items(items, ListMeta::new("10"));
    let stream = running.server.watch().await.open();
    let lines = log.with("");
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert!(lines[0].contains("spec.replicas: a text where a number belongs"), "{lines:?}");
    assert_eq!((field(&lines[1], "skipped"), field(&lines[1], "left_out")), (1000, 999), "{lines:?}");
    for version in 0..1000 {
        stream.event(bad_event(EventKind::Modified, Some("bad-1"), Some(&version.to_string())));
    }
    running.store.until("version 999").await;
    assert!(log.len() <= 3, "{} lines", log.len());
    assert_eq!(running.monitor.status().undecodable, 2000);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_error_handler_that_panics_each_time_writes_ten_lines_in_a_thousand_times() {
    let log = LogLines::gather();
    let running = Running::start(false, ReflectorOptions::new().error_handler(|_| panic!("handler")));
    for _ in 0..1000 {
        running.server.list().await.fail(status(500, "InternalError"));
    }
    running.server.list().await;
    let lines = log.with("the watch error handler panicked");
    assert_eq!((lines.len(), field(&lines[9], "panics")), (10, 512));
    assert_eq!(running.monitor.status().handler_panics, 1000);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_line_says_which_reflector_and_which_request_it_is_about() {
    let log = LogLines::gather();
    let running = Running::start(false, ReflectorOptions::new());
    running.server.list().await.fail(status(503, "ServiceUnavailable"));
    running.server.list().await.ok(&["a@1"], "10");
    running.server.watch().await.open().error(status(500, "InternalError"));
    running.server.list().await;
    let lines = log.with("");
    assert!(lines[0].contains(r#"reflector{resource="pods"}:list{resource_version="0" limit=500}: "#), "{lines:?}");
    let watch = r#"reflector{resource="pods"}:watch{resource_version="10" streaming_list=false}: "#;
    assert!(lines[1].contains(watch) && lines[1].contains("works again"), "{lines:?}");
    assert!(lines[2].contains(watch) && lines[2].contains("internal"), "{lines:?}");
    running.stop().await;
}

//! What an operator reads.

use std::time::Duration;

use kubewire_informer::{HandlerOptions, InformerPhase};
use kubewire_listwatch::ErrorClass;
use tokio_util::sync::CancellationToken;

use super::recorder::Recorder;
use super::source::{Source, settle};

#[tokio::test(start_paused = true)]
async fn the_status_is_one_line_that_says_what_it_does_what_it_has_and_what_failed() {
    let source = Source::new();
    source.put("ns/a", "1");
    let informer = source.informer();
    assert_eq!(informer.status().to_string(), "pods: not started; not synced; 0 objects");
    informer.add_handler_with(Recorder::new(), HandlerOptions::new().name("web")).unwrap();
    let stream = informer.subscribe_with(HandlerOptions::new().name("stream")).unwrap();
    let running = informer.start(CancellationToken::new());
    informer.synced().await.unwrap();
    tokio::time::sleep(Duration::from_secs(7)).await;
    assert_eq!(
        informer.status().to_string(),
        "pods: watching; synced; 1 objects at 1; heard 7s ago; listed 7s ago; \
         handlers: web backlog=0, stream backlog=1 busy=7s (not synced)"
    );
    drop(stream);

    source.fail_always(ErrorClass::Forbidden, "no right to pods");
    source.expire();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let status = informer.status();
    assert_eq!((status.phase, status.reflector.failures_in_a_row), (InformerPhase::Running, 1));
    let last = status.last_error().unwrap();
    assert_eq!((last.error.class(), status.at.duration_since(last.at).as_secs()), (ErrorClass::Expired, 0));
    assert_eq!(status.since_last_sync().map(|ago| ago.as_secs()), Some(7));
    // The next try comes after 0.8 to 1.6 s.
    tokio::time::sleep(Duration::from_millis(1200)).await;
    let line = informer.status().to_string();
    let want = "pods: backing off, failing 2 in a row; synced; 1 objects at 1; heard 8s ago; listed 8s ago; \
                restarts closed=1 expired=1 forbidden=1; last error ";
    assert!(line.starts_with(want), "{line}");
    assert!(
        line.contains("s ago (forbidden): pods: cannot list: forbidden: no right to pods; handlers: web"),
        "{line}"
    );
    assert!(!line.contains('\n'));

    source.stop_failing();
    tokio::time::sleep(Duration::from_secs(60)).await;
    settle().await;
    running.stop();
    running.join().await;
    let line = informer.status().to_string();
    assert!(line.starts_with("pods: stopped; synced; 1 objects at 2;"), "{line}");
}

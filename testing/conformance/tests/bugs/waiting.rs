//! Waiting for the first list: B50.

use std::time::Duration;

use kubewire_informer::{CacheSyncReason, wait_for_cache_sync, wait_for_cache_sync_unless_refused};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::PodRef;
use crate::support::Run;

const MINUTE: Duration = Duration::from_secs(60);

/// B50: each that is not synced is named, with its last error and the number of tries; the good one is not held up.
#[tokio::test(start_paused = true)]
async fn a_wait_that_fails_says_which_kind_and_why_for_every_class() {
    for (fault, class) in [
        ("403", "forbidden"),
        ("404", "not_found"),
        ("401", "unauthorized"),
        ("500", "internal"),
        ("REFUSED", "connection_refused"),
        ("RST", "transport"),
        ("200 $html", "decode"),
    ] {
        let server = kubewire_conformance::wire::Server::new(&format!("LIST ×∞ → {fault}")).bytes("html", "<html>");
        let bad = Run::<PodRef>::of(&server);
        bad.requests(1).await;
        let good = Run::<PodRef>::script("LIST → [x@1] rv=1");
        let stop = CancellationToken::new();
        let error = wait_for_cache_sync(&stop, MINUTE, [&bad.informer, &good.informer]).await.unwrap_err();
        assert_eq!(error.reason, CacheSyncReason::TimedOut(MINUTE));
        assert_eq!(error.unsynced.len(), 1);
        let text = error.to_string();
        assert!(text.contains("pods") && text.contains(class) && text.contains("tries"), "{text}");
        good.converges().await;
        good.ends().await;
        bad.ends().await;
    }
}

/// B50: rights that are missing can end the wait at once.
#[tokio::test(start_paused = true)]
async fn missing_rights_may_end_the_wait_at_once() {
    let run = Run::<PodRef>::script("LIST ×∞ → 403");
    let began = Instant::now();
    let error =
        wait_for_cache_sync_unless_refused(&CancellationToken::new(), MINUTE, [&run.informer]).await.unwrap_err();
    assert_eq!(error.reason, CacheSyncReason::Refused);
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    run.ends().await;
}

/// B50: the definition comes later.
#[tokio::test(start_paused = true)]
async fn a_kind_that_is_defined_later_is_synced_within_its_delay() {
    let run = Run::<PodRef>::script("LIST ×∞ → 404");
    run.requests(2).await;
    run.server.recover();
    run.server.restored(&["x@1"], 1);
    let recovered = Instant::now();
    wait_for_cache_sync(&CancellationToken::new(), MINUTE, [&run.informer]).await.unwrap();
    assert!(recovered.elapsed() < Duration::from_secs(5), "{:?}", recovered.elapsed());
    run.converges_and_ends().await;
}

/// B50: a stop ends every wait, at once.
#[tokio::test(start_paused = true)]
async fn a_stop_of_either_side_ends_every_wait() {
    for fault in ["403", "DEAD", "REFUSED"] {
        for by_signal in [true, false] {
            let run = Run::<PodRef>::script(&format!("LIST ×∞ → {fault}"));
            let (stop, informer) = (CancellationToken::new(), run.informer.clone());
            let (signal, waited) = (stop.clone(), run.informer.clone());
            let wait = tokio::spawn(async move { wait_for_cache_sync(&signal, MINUTE, [&waited]).await });
            let registration = run.registration.clone();
            let handler = tokio::spawn(async move { registration.synced().await });
            run.requests(1).await;
            let before = Instant::now();
            if by_signal {
                stop.cancel()
            } else {
                informer.stop()
            }
            let error = wait.await.unwrap().unwrap_err();
            let reason = if by_signal { CacheSyncReason::Cancelled } else { CacheSyncReason::Stopped };
            assert_eq!(error.reason, reason, "{fault}");
            informer.stop();
            assert!(handler.await.unwrap().is_err());
            assert!(informer.wait_for_version("5").await.is_err());
            assert!(before.elapsed() < Duration::from_millis(100), "{:?}", before.elapsed());
            drop(informer);
            run.ends().await;
        }
    }
}

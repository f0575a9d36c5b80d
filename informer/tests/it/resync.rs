//! Resync: everything told again, by the clock, without a request.

use std::time::Duration;

use kubewire_informer::{Buffering, Delivery, HandlerOptions, InformerOptions};
use tokio_util::sync::CancellationToken;

use super::recorder::Recorder;
use super::source::{PodRef, Source, options, settle};

const SECOND: Duration = Duration::from_secs(1);

fn every(seconds: u64) -> InformerOptions<PodRef> {
    options().resync_period(SECOND * u32::try_from(seconds).unwrap())
}

fn resync(period: Duration) -> HandlerOptions {
    HandlerOptions::new().resync_period(period)
}

#[tokio::test(start_paused = true)]
async fn each_handler_is_told_again_by_its_own_period_and_the_server_is_not_asked() {
    for delivery in [Delivery::PerKey, Delivery::InOrder, Delivery::Coalescing] {
        let source = Source::new();
        source.put("ns/a", "1");
        let informer = source.informer_with(every(1).delivery(delivery));
        let logs = [Recorder::new(), Recorder::new(), Recorder::new()];
        for (log, period) in logs.iter().zip([0, 2, 3]) {
            informer.add_handler_with(log.clone(), resync(SECOND * period)).unwrap();
        }
        let _running = informer.start(CancellationToken::new());
        informer.synced().await.unwrap();
        settle().await;
        let requests = source.requests();
        let mut counts = vec![];
        for _ in 1..=6 {
            tokio::time::sleep(SECOND).await;
            let told = logs.each_ref().map(|log| log.take().iter().filter(|text| *text == "~ns/a@1>1").count());
            counts.push(told);
        }
        assert_eq!(counts, [[0, 0, 0], [0, 1, 0], [0, 0, 1], [0, 1, 0], [0, 0, 0], [0, 1, 1]], "{delivery:?}");
        assert_eq!(source.requests(), requests);
    }
}

#[tokio::test(start_paused = true)]
async fn the_checks_come_by_the_shortest_period_at_the_start() {
    let source = Source::new();
    source.put("ns/a", "1");
    let informer = source.informer_with(every(12 * 3600));
    let (five, minute) = (Recorder::new(), Recorder::new());
    informer.add_handler_with(Recorder::new(), resync(Duration::ZERO)).unwrap();
    informer.add_handler_with(minute.clone(), resync(SECOND * 60)).unwrap();
    informer.add_handler_with(five.clone(), resync(SECOND * 5)).unwrap();
    let _running = informer.start(CancellationToken::new());
    informer.synced().await.unwrap();
    settle().await;
    tokio::time::sleep(SECOND * 60).await;
    assert_eq!((five.len() - 1, minute.len() - 1), (12, 1));
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_comes_after_the_start_gets_no_more_checks_than_there_are() {
    let source = Source::new();
    source.put("ns/a", "1");
    let informer = source.informer_with(every(10));
    let _running = informer.start(CancellationToken::new());
    informer.synced().await.unwrap();
    let hasty = Recorder::new();
    informer.add_handler_with(hasty.clone(), resync(Duration::from_millis(1))).unwrap();
    tokio::time::sleep(SECOND * 31).await;
    assert_eq!(hasty.take(), ["+ns/a@1!", "~ns/a@1>1", "~ns/a@1>1", "~ns/a@1>1"]);
}

#[tokio::test(start_paused = true)]
async fn an_informer_without_resync_resyncs_nobody() {
    let source = Source::new();
    source.put("ns/a", "1");
    let informer = source.informer();
    let log = Recorder::new();
    informer.add_handler_with(log.clone(), resync(SECOND)).unwrap();
    let _running = informer.start(CancellationToken::new());
    tokio::time::sleep(SECOND * 100).await;
    assert_eq!(log.take(), ["+ns/a@1!"]);
}

#[tokio::test(start_paused = true)]
async fn periods_below_a_second_count_as_a_second_and_the_longest_one_never_comes() {
    let source = Source::new();
    source.put("ns/a", "1");
    let informer = source.informer_with(options().resync_period(Duration::from_millis(1)));
    let (own, never) = (Recorder::new(), Recorder::new());
    informer.add_handler(own.clone()).unwrap();
    informer.add_handler_with(never.clone(), resync(Duration::MAX)).unwrap();
    let _running = informer.start(CancellationToken::new());
    informer.synced().await.unwrap();
    settle().await;
    tokio::time::sleep(SECOND * 10).await;
    assert_eq!(own.len(), 11);
    assert_eq!(never.take(), ["+ns/a@1!"]);
}

#[tokio::test(start_paused = true)]
async fn unchanged_objects_of_a_new_list_go_only_to_handlers_that_were_due_at_the_last_check() {
    let source = Source::new();
    source.put("ns/pod1", "1");
    source.put("ns/pod2", "1");
    let informer = source.informer_with(every(1));
    let (none, resynced) = (Recorder::new(), Recorder::new());
    informer.add_handler_with(none.clone(), resync(Duration::ZERO)).unwrap();
    informer.add_handler(resynced.clone()).unwrap();
    let _running = informer.start(CancellationToken::new());
    informer.synced().await.unwrap();
    tokio::time::sleep(SECOND + SECOND / 2).await;
    none.take();
    resynced.take();
    source.expire();
    source.put("ns/pod3", "1");
    source.put("ns/pod2", "2");
    source.expire();
    // Longer than a back-off; the checks begin anew with the list.
    while none.len() < 2 {
        settle().await;
    }
    settle().await;
    let seen = none.take_sorted();
    assert_eq!(seen.len(), 2);
    assert!(seen[0].starts_with("+ns/pod3") && seen[1].starts_with("~ns/pod2"), "{seen:?}");
    assert!(resynced.take().iter().any(|text| text == "~ns/pod1@1>1"));
}

#[tokio::test(start_paused = true)]
async fn without_any_check_unchanged_objects_of_a_new_list_go_to_all() {
    let source = Source::new();
    source.put("ns/a", "1");
    let informer = source.informer();
    let log = Recorder::new();
    informer.add_handler(log.clone()).unwrap();
    let _running = informer.start(CancellationToken::new());
    informer.synced().await.unwrap();
    settle().await;
    log.take();
    source.expire();
    tokio::time::sleep(SECOND * 61).await;
    assert_eq!(log.take(), ["~ns/a@1>1"]);
}

#[tokio::test(start_paused = true)]
async fn rounds_do_not_pile_up_for_a_handler_that_is_behind() {
    for buffering in [Buffering::Unbounded, Buffering::Coalescing] {
        let source = Source::new();
        (0..100).for_each(|n| drop(source.put(&format!("ns/{n}"), "1")));
        let informer = source.informer_with(every(1));
        let idle = informer.subscribe_with(HandlerOptions::new().buffering(buffering)).unwrap();
        let _running = informer.start(CancellationToken::new());
        informer.synced().await.unwrap();
        tokio::time::sleep(SECOND * 10).await;
        assert!(idle.registration().backlog() <= 200, "the initial list and one round at most");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pending_change_is_told_once_with_its_new_state() {
    let source = Source::new();
    source.put("ns/a", "1");
    let informer = source.informer_with(every(1));
    let log = Recorder::new();
    informer.add_handler(log.clone()).unwrap();
    let _running = informer.start(CancellationToken::new());
    informer.synced().await.unwrap();
    log.take();
    tokio::time::sleep(SECOND - Duration::from_millis(1)).await;
    source.put("ns/a", "2");
    settle().await;
    settle().await;
    let told = log.take();
    assert_eq!(told.iter().filter(|text| *text == "~ns/a@1>2").count(), 1);
    assert!(told.len() <= 2, "{told:?}");
}

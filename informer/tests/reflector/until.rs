//! Waiting until conditions are met.

use std::time::Duration;

use futures::stream;
use kubewire_indexer::Object;
use kubewire_informer::watch_tools::{Condition, UntilError, until, until_with_sync, until_without_retry};
use kubewire_listwatch::{RequestError, WatchEvent};

use super::PodRef;
use super::fake_server::{fake, pod, status};
use super::retry_watcher::text;

type Event = WatchEvent<PodRef>;

fn events(names: &[&str]) -> impl stream::Stream<Item = Result<Event, RequestError>> + use<> {
    let events: Vec<_> = names.iter().map(|name| Ok(WatchEvent::Added(pod(name)))).collect();
    stream::iter(events)
}

/// Met by the pod of this name.
fn named(name: &'static str) -> Condition<'static, PodRef> {
    Box::new(move |event| Ok(matches!(event, WatchEvent::Added(pod) if pod.id().name == name)))
}

fn name(event: Option<Event>) -> Option<String> {
    event.map(|event| text(&Ok(event)))
}

#[tokio::test(start_paused = true)]
async fn conditions_are_met_one_after_the_other() {
    let never = std::future::pending::<()>;
    let met = until_without_retry(events(&["a@1", "b@2"]), never(), vec![named("b")]).await;
    assert_eq!(name(met.expect("met")).as_deref(), Some("+b@2"));
    let met = until_without_retry(events(&["a@1", "b@2", "c@3"]), never(), vec![named("a"), named("c")]).await;
    assert_eq!(name(met.expect("met")).as_deref(), Some("+c@3"));
    let none = until_without_retry(events(&["a@1"]), never(), vec![]).await;
    assert_eq!(name(none.expect("nothing to meet")), None);
}

#[tokio::test(start_paused = true)]
async fn one_event_may_meet_two_conditions() {
    let met = until_without_retry(events(&["a@1"]), std::future::pending(), vec![named("a"), named("a")]).await;
    assert_eq!(name(met.expect("met")).as_deref(), Some("+a@1"));
}

#[tokio::test(start_paused = true)]
async fn a_condition_that_is_never_met_ends_with_the_watch_or_by_the_interruption() {
    let conditions = || vec![named("a"), named("b")];
    let closed = until_without_retry(events(&["a@1", "c@2"]), std::future::pending(), conditions()).await;
    let Err(UntilError::Closed { last }) = closed else { panic!("{closed:?}") };
    assert_eq!(name(last).as_deref(), Some("+c@2"));

    use futures::StreamExt;
    let open = events(&["a@1"]).chain(stream::pending());
    let interrupted = until_without_retry(open, tokio::time::sleep(Duration::from_secs(5)), conditions()).await;
    let Err(UntilError::Interrupted { last }) = interrupted else { panic!("{interrupted:?}") };
    assert_eq!(name(last).as_deref(), Some("+a@1"));

    let failing = events(&["a@1"]).chain(stream::iter([Err(status(410, "Expired"))]));
    let failed = until_without_retry(failing, std::future::pending(), conditions()).await;
    assert!(matches!(failed, Err(UntilError::Watch { last: Some(_), .. })), "{failed:?}");
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_always_has_another_event_can_be_interrupted_and_lets_others_have_a_turn() {
    let flood = || stream::repeat_with(|| Ok(WatchEvent::Added(pod("a@1"))));
    let at_once = until_without_retry(flood(), std::future::ready(()), vec![named("b")]).await;
    assert!(matches!(at_once, Err(UntilError::Interrupted { last: Some(_) })), "{at_once:?}");
    let (told, hears) = tokio::sync::oneshot::channel::<()>();
    let other = tokio::spawn(async { drop(told) });
    let by_another = until_without_retry(flood(), async { drop(hears.await) }, vec![named("b")]).await;
    assert!(matches!(by_another, Err(UntilError::Interrupted { last: Some(_) })), "{by_another:?}");
    other.await.expect("no panic");
}

#[tokio::test(start_paused = true)]
async fn the_error_of_a_condition_ends_the_wait() {
    let failing: Condition<'_, PodRef> = Box::new(|_| Err("no".into()));
    let failed = until_without_retry(events(&["a@1"]), std::future::pending(), vec![failing]).await;
    assert_eq!(failed.expect_err("an error").to_string(), "a condition failed: no");
}

#[tokio::test(start_paused = true)]
async fn until_watches_from_a_version_on_and_survives_a_closed_watch() {
    let (lister_watcher, server) = fake(false);
    let serve = async {
        let mut stream = server.watch().await.open();
        stream.send("+a@11");
        stream.close();
        let watch = server.watch().await;
        assert_eq!(watch.version(), "11");
        let stream = watch.open();
        stream.send("+b@12");
        stream
    };
    let wait = until(&lister_watcher, "10", std::future::pending(), vec![named("b")]);
    let (met, _stream) = tokio::join!(wait, serve);
    assert_eq!(name(met.expect("met")).as_deref(), Some("+b@12"));
    let refused = until(&lister_watcher, "0", std::future::pending(), vec![named("b")]).await;
    assert!(matches!(refused, Err(UntilError::Version(_))));
}

#[tokio::test(start_paused = true)]
async fn without_a_precondition_a_hanging_list_is_interrupted() {
    let (lister_watcher, server) = fake(false);
    let interrupted =
        until_with_sync(lister_watcher, tokio::time::sleep(Duration::from_secs(5)), None, vec![named("a")]).await;
    assert!(matches!(interrupted, Err(UntilError::Interrupted { last: None })), "{interrupted:?}");
    assert!(server.list().await.is_dropped(), "and the informer has ended");
}

#[tokio::test(start_paused = true)]
async fn with_a_precondition_a_hanging_or_forbidden_list_is_an_error_that_says_why() {
    let (lister_watcher, server) = fake(false);
    let wait = until_with_sync(
        lister_watcher,
        tokio::time::sleep(Duration::from_millis(500)),
        Some(Box::new(|_| unreachable!("it is never synced"))),
        vec![named("a")],
    );
    let (result, ()) = tokio::join!(wait, async { server.list().await.fail(status(403, "Forbidden")) });
    let message = result.expect_err("not synced").to_string();
    assert_eq!(message, "interrupted before the cache of pods was synced: cannot list: forbidden: Forbidden (1 try)");
}

#[tokio::test(start_paused = true)]
async fn a_precondition_that_is_met_needs_no_event_and_one_that_is_not_waits_for_one() {
    for (met, want) in [(true, None), (false, Some("+a@1"))] {
        let (lister_watcher, server) = fake(false);
        let wait = until_with_sync(
            lister_watcher,
            std::future::pending(),
            Some(Box::new(move |indexer| {
                assert_eq!(indexer.len(), 1);
                Ok(met)
            })),
            vec![named("a")],
        );
        let (result, _stream) = tokio::join!(wait, server.list_and_watch(&["a@1"], "5"));
        assert_eq!(name(result.expect("done")).as_deref(), want);
    }
}

//! Handlers that come while changes flow.

use futures::StreamExt;
use kubewire_informer::{Informer, Registration, ResourceEventHandlerFuncs};
use tokio_util::sync::CancellationToken;

use super::recorder::{Recorder, show};
use super::source::{PodRef, Source, settle};

#[tokio::test(start_paused = true)]
async fn a_late_handler_gets_the_store_as_its_initial_list_and_then_what_all_get() {
    let source = Source::new();
    source.put("ns/a", "1");
    source.put("ns/b", "1");
    let informer = source.informer();
    let early = Recorder::new();
    informer.add_handler(early.clone()).unwrap();
    let _running = informer.start(CancellationToken::new());
    informer.synced().await.unwrap();
    settle().await;
    early.take();
    let late = Recorder::new();
    let registration = informer.add_handler(late.clone()).unwrap();
    assert!(!registration.has_synced());
    registration.synced().await.unwrap();
    assert_eq!(late.take_sorted(), ["+ns/a@1!", "+ns/b@2!"]);
    assert!(early.take().is_empty(), "the others hear nothing of it");
    source.put("ns/c", "1");
    source.delete("ns/a");
    settle().await;
    assert_eq!(late.take(), ["+ns/c@3", "-ns/a@4"]);
    assert_eq!(early.take(), ["+ns/c@3", "-ns/a@4"]);
}

#[tokio::test(start_paused = true)]
async fn a_late_handler_of_an_empty_informer_is_synced() {
    let informer = Source::new().informer();
    let _running = informer.start(CancellationToken::new());
    informer.synced().await.unwrap();
    let registration = informer.add_handler(Recorder::new()).unwrap();
    registration.synced().await.unwrap();
    assert!(registration.has_synced());
}

#[tokio::test(start_paused = true)]
async fn a_handler_is_synced_when_it_has_had_its_own_initial_list() {
    let source = Source::new();
    (0..1000).for_each(|n| drop(source.put(&format!("ns/{n}"), "1")));
    let informer = source.informer();
    let mut stream = informer.subscribe().unwrap();
    let registration = stream.registration();
    assert!(!registration.has_synced(), "not started");
    let _running = informer.start(CancellationToken::new());
    informer.synced().await.unwrap();
    for _ in 0..500 {
        stream.next().await.unwrap();
    }
    settle().await;
    assert!(informer.has_synced() && !registration.has_synced());
    for n in 500..1000 {
        assert!(!registration.has_synced(), "at {n}");
        stream.next().await.unwrap();
    }
    assert!(!registration.has_synced(), "the last one is not handled yet");
    source.put("ns/x", "1");
    stream.next().await.unwrap();
    assert!(registration.has_synced());
    let mut late = informer.subscribe().unwrap();
    let waiting = tokio::spawn({
        let late = late.registration();
        async move { late.synced().await }
    });
    for _ in 0..1001 {
        settle().await;
        assert!(!waiting.is_finished());
        assert!(show(&late.next().await.unwrap()).ends_with('!'));
    }
    assert!(futures::poll!(late.next()).is_pending());
    waiting.await.unwrap().unwrap();
}

/// A handler whose first calls add another one.
fn breeder(informer: &Informer<PodRef>, log: Recorder, born: Recorder) -> Registration {
    let inner = informer.clone();
    let (added, changed, gone) = (log.clone(), log.clone(), log);
    let mut times = 0;
    let handler = ResourceEventHandlerFuncs::new()
        .on_add(move |pod, initial| {
            let mut log = added.clone();
            kubewire_informer::ResourceEventHandler::on_add(&mut log, pod, initial);
            times += 1;
            if times == 50 {
                inner.add_handler(born.clone()).unwrap();
            }
        })
        .on_update(move |old, new| kubewire_informer::ResourceEventHandler::on_update(&mut changed.clone(), old, new))
        .on_delete(move |deleted| kubewire_informer::ResourceEventHandler::on_delete(&mut gone.clone(), deleted));
    informer.add_handler(handler).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn handlers_that_come_at_random_moments_miss_nothing_and_hear_nothing_twice() {
    let source = Source::new();
    (0..200).for_each(|n| drop(source.put(&format!("ns/{n}"), "0")));
    let informer = source.informer();
    let mut logs = vec![Recorder::new(), Recorder::new()];
    breeder(&informer, logs[0].clone(), logs[1].clone());
    let running = informer.start(CancellationToken::new());
    let mut random = 12345_u64;
    let mut last = String::new();
    for n in 0..2000 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let name = format!("ns/{}", (random >> 33) % 250);
        last = if random >> 62 == 0 { source.delete(&name) } else { source.put(&name, &n.to_string()) };
        if n % 100 == 0 {
            let log = Recorder::new();
            informer.add_handler(log.clone()).unwrap();
            logs.push(log);
        }
        if n % 16 == 0 {
            tokio::task::yield_now().await;
        }
    }
    informer.wait_for_version(&last).await.unwrap();
    while informer.status().handlers.iter().any(|handler| handler.backlog > 0 || !handler.synced) {
        settle().await;
    }
    running.stop();
    running.join().await;
    for log in logs {
        assert_eq!(log.replay().into_values().collect::<Vec<_>>(), source.objects());
        let first = log.notifications().into_iter().find(|told| told.key() == source_key(&log));
        assert!(show(&first.unwrap()).starts_with('+'));
    }
}

fn source_key(log: &Recorder) -> kubewire_indexer::ObjectKey {
    log.replay().into_keys().next().unwrap()
}

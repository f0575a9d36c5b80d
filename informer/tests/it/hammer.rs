//! Many tasks at once.

use std::sync::Arc;

use kubewire_informer::{Buffering, Delivery, HandlerOptions, Stopped};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::recorder::Recorder;
use super::source::{Form, Source, options, settle};

/// A cheap source of numbers that are the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_hammered_source_and_what_handlers_saw_of_it_are_the_same() {
    for delivery in [Delivery::PerKey, Delivery::Coalescing, Delivery::InOrder, Delivery::InOrderItems] {
        let source = Source::new();
        let informer = source.informer_with(options().delivery(delivery));
        let logs = [Recorder::new(), Recorder::new()];
        informer.add_handler(logs[0].clone()).unwrap();
        let coalescing = HandlerOptions::new().buffering(Buffering::Coalescing);
        informer.add_handler_with(logs[1].clone(), coalescing).unwrap();
        let running = informer.start(CancellationToken::new());
        let mut tasks = JoinSet::new();
        for seed in 0..10 {
            let source = source.clone();
            tasks.spawn(async move {
                let mut random = Random(seed);
                for n in 0..100 {
                    let name = format!("ns/{}", random.below(20));
                    if random.below(3) == 0 {
                        source.delete(&name)
                    } else {
                        source.put(&name, &n.to_string())
                    };
                    tokio::task::yield_now().await;
                }
            });
        }
        tasks.join_all().await;
        informer.wait_for_version(&source.bookmark()).await.unwrap();
        while informer.status().handlers.iter().any(|handler| handler.backlog > 0 || !handler.synced) {
            settle().await;
        }
        running.stop();
        running.join().await;
        let objects = source.objects();
        for log in logs {
            assert_eq!(log.replay().into_values().collect::<Vec<_>>(), objects, "{delivery:?}");
        }
        let mut store: Vec<_> = informer.indexer().list().iter().map(Form::read).collect();
        store.sort();
        assert_eq!(store.len(), objects.len());
        assert!(objects.iter().all(|pod| store.contains(pod)));
        informer.indexer().store().validate().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn handlers_come_and_go_in_a_hundred_tasks_during_ten_thousand_changes() {
    let source = Source::new();
    (0..20).for_each(|n| drop(source.put(&format!("ns/{n}"), "0")));
    let informer = source.informer();
    let running = informer.start(CancellationToken::new());
    informer.synced().await.unwrap();
    let changing = tokio::spawn({
        let (source, informer) = (source.clone(), informer.clone());
        async move {
            for n in 0..10_000 {
                source.put(&format!("ns/{}", n % 20), &n.to_string());
                if n % 64 == 0 {
                    tokio::task::yield_now().await;
                }
            }
            informer.stop();
        }
    });
    let mut tasks = JoinSet::new();
    for _ in 0..100 {
        let informer = informer.clone();
        tasks.spawn(async move {
            let mut logs = 0;
            loop {
                let log = Recorder::new();
                let registration = match informer.add_handler(log.clone()) {
                    Ok(registration) => registration,
                    Err(Stopped) => return logs,
                };
                if registration.synced().await.is_ok() {
                    assert!(log.len() >= 20);
                }
                registration.shut_down().await;
                assert!(log.present().len() <= 20);
                logs += 1;
            }
        });
    }
    changing.await.unwrap();
    let rounds: usize = tasks.join_all().await.into_iter().sum();
    assert!(rounds > 0);
    running.join().await;
    assert!(informer.status().handlers.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn adding_handlers_races_with_start_and_stop() {
    for _ in 0..200 {
        let source = Source::new();
        source.put("ns/a", "1");
        let informer = source.informer();
        let barrier = Arc::new(tokio::sync::Barrier::new(3));
        let adding: Vec<_> = (0..2)
            .map(|_| {
                let (informer, barrier) = (informer.clone(), Arc::clone(&barrier));
                tokio::spawn(async move {
                    barrier.wait().await;
                    let log = Recorder::new();
                    let registration = informer.add_handler(log.clone())?;
                    registration.synced().await?;
                    assert_eq!(log.len(), 1, "told once of the one object, whichever came first");
                    Ok::<_, Stopped>(())
                })
            })
            .collect();
        barrier.wait().await;
        let running = informer.start(CancellationToken::new());
        for task in adding {
            task.await.unwrap().unwrap();
        }
        running.stop();
        running.join().await;
    }
}

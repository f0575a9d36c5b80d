//! The delta FIFO's shell: waiting, closing, transforms, and what is out.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use kubewire_indexer::{Deleted, Indexer, Object};
use kubewire_informer::{AdmitError, Closed, Delivery, DeltaFifo, DeltaFifoOptions, ReflectorStore, TransformError};

use super::source::{Form, Pod, PodRef, edited, settle};

fn pod(name: &str, version: &str) -> PodRef {
    let (name, version) = (name.to_owned(), version.to_owned());
    PodRef::make(&Pod { namespace: "ns".to_owned(), uid: format!("u-{name}"), name, version, ..Pod::default() })
}

fn fifo(delivery: Delivery) -> DeltaFifo<PodRef> {
    DeltaFifo::new(DeltaFifoOptions { delivery, ..DeltaFifoOptions::default() })
}

#[tokio::test(start_paused = true)]
async fn each_producers_objects_come_out_in_its_order() {
    for delivery in [Delivery::PerKey, Delivery::InOrder] {
        let fifo = fifo(delivery);
        for producer in 0..2 {
            let fifo = fifo.clone();
            tokio::spawn(async move {
                for n in 0..500 {
                    fifo.add(pod(&format!("p{producer}-{n:03}"), "1")).unwrap();
                    tokio::task::yield_now().await;
                }
            });
        }
        let mut names = Vec::new();
        for _ in 0..1000 {
            let popped = fifo.pop().await.unwrap();
            assert_eq!(popped.entries()[0].as_slice().len(), 1);
            names.push(popped.entries()[0].key().unwrap().name().to_owned());
        }
        for producer in ["p0", "p1"] {
            let own: Vec<_> = names.iter().filter(|name| name.starts_with(producer)).collect();
            assert!(own.is_sorted() && own.len() == 500);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_close_wakes_all_who_wait() {
    let fifo = fifo(Delivery::PerKey);
    let pops: Vec<_> = (0..10)
        .map(|_| {
            tokio::spawn({
                let fifo = fifo.clone();
                async move { fifo.pop().await.map(drop) }
            })
        })
        .collect();
    settle().await;
    fifo.close();
    for pop in pops {
        assert_eq!(pop.await.unwrap(), Err(Closed));
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_close_what_waits_is_still_given_out() {
    let fifo = fifo(Delivery::PerKey);
    fifo.add(pod("a", "1")).unwrap();
    fifo.close();
    fifo.add(pod("b", "1")).unwrap();
    drop(fifo.pop().await.unwrap());
    drop(fifo.pop().await.unwrap());
    assert_eq!(fifo.pop().await.unwrap_err(), Closed);
    assert_eq!(fifo.try_pop(1).unwrap_err(), Closed);
}

#[tokio::test(start_paused = true)]
async fn a_pop_that_is_given_up_takes_nothing() {
    let fifo = fifo(Delivery::PerKey);
    for n in 0..100 {
        let waiting = tokio::spawn({
            let fifo = fifo.clone();
            async move { fifo.pop().await.map(drop) }
        });
        tokio::task::yield_now().await;
        if n % 2 == 0 {
            fifo.add(pod("a", &n.to_string())).unwrap();
        }
        waiting.abort();
        let taken = waiting.await.is_ok();
        assert_eq!(fifo.len(), usize::from(n % 2 == 0 && !taken), "round {n}");
        drop(fifo.try_pop(1).unwrap());
    }
    let waiting = tokio::spawn({
        let fifo = fifo.clone();
        async move { fifo.pop().await.map(drop) }
    });
    settle().await;
    fifo.add(pod("a", "x")).unwrap();
    waiting.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn one_entry_is_out_at_a_time_and_producers_do_not_wait_for_it() {
    let fifo = fifo(Delivery::PerKey);
    fifo.add(pod("a", "1")).unwrap();
    fifo.add(pod("b", "1")).unwrap();
    let first = fifo.pop().await.unwrap();
    assert!(fifo.try_pop(1).unwrap().is_none(), "one at a time");
    fifo.update(pod("a", "2")).unwrap();
    assert_eq!(fifo.len(), 2);
    let next = tokio::spawn({
        let fifo = fifo.clone();
        async move { fifo.pop().await.map(|popped| popped.entries()[0].key().cloned()) }
    });
    settle().await;
    assert!(!next.is_finished());
    drop(first);
    assert_eq!(next.await.unwrap().unwrap().unwrap().name(), "b");
}

#[tokio::test(start_paused = true)]
async fn it_is_synced_only_when_the_last_of_the_first_list_is_processed() {
    let fifo = fifo(Delivery::InOrder);
    fifo.replace([pod("a", "1")], "1").unwrap();
    let popped = fifo.pop().await.unwrap();
    assert!(popped.is_initial() && !fifo.has_synced());
    let synced = tokio::spawn({
        let fifo = fifo.clone();
        async move { fifo.synced().await }
    });
    settle().await;
    assert!(!synced.is_finished());
    drop(popped);
    synced.await.unwrap();
    assert!(fifo.has_synced());
}

#[test]
fn the_transform_runs_once_over_each_object_and_never_over_a_tombstone() {
    for delivery in [Delivery::PerKey, Delivery::Coalescing, Delivery::InOrder, Delivery::InOrderItems] {
        let runs = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&runs);
        let indexer = Indexer::new();
        let fifo = DeltaFifo::new(DeltaFifoOptions {
            delivery,
            known_objects: Some(Arc::new(indexer.clone())),
            transform: Some(Arc::new(move |pod: PodRef| {
                counter.fetch_add(1, Ordering::Relaxed);
                assert!(pod.read().note.is_empty(), "transformed before");
                Ok(edited(&pod, |pod| pod.note = "seen".to_owned()))
            })),
            ..DeltaFifoOptions::default()
        });
        indexer.put(pod("known", "0").key(), edited(&pod("known", "0"), |pod| pod.note = "seen".to_owned()));
        fifo.add(pod("a", "1")).unwrap();
        fifo.update(pod("a", "2")).unwrap();
        fifo.delete(Deleted::Known(pod("a", "3"))).unwrap();
        fifo.delete(Deleted::final_state_unknown(pod("b", "").key(), None)).unwrap();
        fifo.resync();
        fifo.replace([pod("c", "4")], "4").unwrap();
        fifo.replace([], "5").unwrap();
        assert_eq!(runs.load(Ordering::Relaxed), 4, "{delivery:?}");
    }
}

#[test]
fn an_object_that_the_transform_refuses_is_not_queued() {
    let fifo = DeltaFifo::new(DeltaFifoOptions {
        transform: Some(Arc::new(|pod: PodRef| match pod.id().name {
            "bad" => Err(TransformError::new("no such thing")),
            "worse" => panic!("out of my depth"),
            _ => Ok(pod),
        })),
        delivery: Delivery::InOrder,
        ..DeltaFifoOptions::default()
    });
    let error = fifo.add(pod("bad", "1")).unwrap_err();
    assert_eq!(error.to_string(), "the transform of ns/bad failed: no such thing");
    assert_eq!(error.key(), Some(&pod("bad", "").key()));
    let error = fifo.update(pod("worse", "1")).unwrap_err();
    assert!(error.to_string().contains("out of my depth"), "{error}");
    fifo.replace([pod("good", "1"), pod("bad", "1")], "1").unwrap_err();
    assert_eq!(fifo.len(), 0, "nothing of a list that is refused");
}

#[test]
fn an_object_without_a_name_is_an_error_and_no_key() {
    let fifo = fifo(Delivery::PerKey);
    assert!(matches!(fifo.add(pod("", "1")), Err(AdmitError::Key(_))));
    assert_eq!(fifo.len(), 0);
}

#[test]
fn a_listed_object_whose_state_is_cached_is_the_cached_one() {
    let indexer = Indexer::new();
    let cached = pod("a", "1");
    indexer.put(cached.key(), cached.clone());
    let fifo =
        DeltaFifo::new(DeltaFifoOptions { known_objects: Some(Arc::new(indexer)), ..DeltaFifoOptions::default() });
    assert!(ReflectorStore::admit(&fifo, pod("a", "1")).unwrap().object().is_handle_of(&cached));
    for other in [pod("a", "2"), pod("a", ""), edited(&cached, |pod| pod.uid.clear())] {
        assert!(ReflectorStore::admit(&fifo, other.clone()).unwrap().object().is_handle_of(&other));
    }
}

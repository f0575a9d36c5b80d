//! A whole informer: its reflector, its FIFO, its store and its handlers, each in a task of its own.

use std::time::Duration;

use futures::StreamExt;
use kubewire_ratelimit::ManualClock;
use shuttle::future::block_on;
use shuttle::thread;
use tokio_util::sync::CancellationToken;

use super::model;
use super::witness::Told;
use super::world::{LAST, PodRef, World, key};
use crate::{
    Buffering, CacheSyncReason, FactoryOptions, HandlerOptions, Informer, Notification, SharedInformerFactory,
    WaitForVersionError, wait_for_cache_sync,
};

/// Stops an informer and waits until it has ended; all that is left are the objects in its store.
fn end(world: &World, informer: Informer<PodRef>, running: crate::RunningInformer) {
    informer.stop();
    block_on(running.join());
    let stored = informer.indexer().len();
    drop(informer);
    assert!(world.alive() <= stored, "{} objects are left of {stored}", world.alive());
}

#[test]
fn a_handler_that_is_added_at_any_moment_is_told_each_change_once_and_in_order() {
    model(|| {
        let world = World::default();
        let informer = world.informer(world.changes());
        let running = informer.start(CancellationToken::new());
        let handlers: Vec<_> =
            [HandlerOptions::new(), HandlerOptions::new().buffering(Buffering::Coalescing).own_thread()]
                .into_iter()
                .map(|options| {
                    let informer = informer.clone();
                    thread::spawn(move || {
                        let told = Told::default();
                        let handler = told.witness(Some(informer.indexer()));
                        let registration = informer.add_handler_with(handler, options).unwrap();
                        block_on(told.last().wait());
                        assert_eq!(told.known(), [("a", 5), ("c", LAST)].into());
                        block_on(registration.synced()).unwrap();
                        assert_eq!(registration.status().panics, 0);
                        told
                    })
                })
                .collect();
        let told: Vec<_> = handlers.into_iter().map(|handler| handler.join().unwrap()).collect();
        end(&world, informer, running);
        told.iter().for_each(Told::is_over);
        assert!(told.iter().all(Told::is_dropped));
    });
}

#[test]
fn a_removed_handler_hears_nothing_once_its_shut_down_has_returned_and_others_hear_all() {
    model(|| {
        let world = World::default();
        let informer = world.informer(world.changes());
        let (removed, stays) = (Told::default(), Told::default());
        let registration = informer.add_handler(removed.witness(None)).unwrap();
        let _stays = informer.add_handler(stays.witness(None)).unwrap();
        let running = informer.start(CancellationToken::new());
        // By now it is told of the first list.
        block_on(informer.synced()).unwrap();
        block_on(registration.shut_down());
        removed.is_over();
        assert!(registration.is_removed());
        block_on(stays.last().wait());
        assert_eq!(informer.status().handlers.len(), 1);
        end(&world, informer, running);
        assert!(removed.is_dropped());
    });
}

#[test]
fn a_registration_is_synced_when_its_handler_has_returned_from_all_of_the_first_list() {
    model(|| {
        let world = World::default();
        let informer = world.informer([]);
        let early = Told::default();
        let early_registration = informer.add_handler(early.witness(None)).unwrap();
        let running = informer.start(CancellationToken::new());
        let late = Told::default();
        let late_registration = informer.add_handler(late.witness(None)).unwrap();
        for (registration, told) in [(early_registration, early), (late_registration, late)] {
            block_on(registration.synced()).unwrap();
            assert!(!told.is_busy(), "synced in the midst of a call");
            assert_eq!(told.known(), [("a", 1)].into());
            assert!(informer.has_synced() && registration.has_synced());
        }
        end(&world, informer, running);
    });
}

#[test]
fn a_stream_that_is_dropped_takes_nothing_from_others() {
    model(|| {
        let world = World::default();
        let informer = world.informer(world.changes());
        let running = informer.start(CancellationToken::new());
        let reader = thread::spawn({
            let informer = informer.clone();
            move || {
                let mut stream = informer.subscribe().unwrap();
                let registration = stream.registration();
                let first = block_on(stream.next()).unwrap();
                assert!(matches!(first, Notification::Added { object, .. } if object.name == "a"));
                drop(stream);
                assert_eq!(registration.backlog(), 0);
            }
        });
        let told = Told::default();
        let _registration = informer.add_handler(told.witness(None)).unwrap();
        block_on(told.last().wait());
        reader.join().unwrap();
        assert_eq!(informer.status().handlers.len(), 1);
        end(&world, informer, running);
    });
}

#[test]
fn a_stop_joins_all_tasks_also_of_a_handler_that_is_just_being_added() {
    model(|| {
        let world = World::default();
        let informer = world.informer([]);
        let running = informer.start(CancellationToken::new());
        let told = Told::default();
        let adder = thread::spawn({
            let (informer, handler) = (informer.clone(), told.witness(None));
            move || informer.add_handler(handler)
        });
        informer.stop();
        block_on(running.join());
        let gone = told.is_dropped();
        if let Ok(registration) = adder.join().unwrap() {
            assert!(gone, "the handler outlives the join");
            assert!(registration.is_removed());
            block_on(registration.shut_down());
        }
        assert!(told.is_dropped());
        drop(informer);
        assert_eq!(world.alive(), 0);
    });
}

#[test]
fn a_start_beside_an_add_begins_each_handler_once() {
    model(|| {
        let world = World::default();
        let informer = world.informer(world.changes());
        let adder = thread::spawn({
            let informer = informer.clone();
            move || {
                let told = Told::default();
                let _registration = informer.add_handler(told.witness(None)).unwrap();
                block_on(told.last().wait());
                told
            }
        });
        let running = informer.start(CancellationToken::new());
        let told = adder.join().unwrap();
        end(&world, informer, running);
        assert_eq!(told.known(), [("a", 5), ("c", LAST)].into());
    });
}

#[test]
fn a_handler_that_is_removed_while_the_informer_starts_ends_and_hears_nothing_more() {
    model(|| {
        let world = World::default();
        let informer = world.informer([]);
        let told = Told::default();
        let registration = informer.add_handler(told.witness(None)).unwrap();
        let remover = thread::spawn({
            let told = told.clone();
            move || {
                block_on(registration.shut_down());
                told.is_over();
            }
        });
        let running = informer.start(CancellationToken::new());
        block_on(informer.synced()).unwrap();
        remover.join().unwrap();
        assert!(informer.status().handlers.is_empty());
        end(&world, informer, running);
        assert!(told.is_dropped());
    });
}

#[test]
fn who_waits_for_a_version_is_woken_by_it_or_by_the_stop() {
    model(|| {
        let world = World::default();
        let informer = world.informer(world.changes());
        let waiters = ["6", "7"].map(|version| {
            let informer = informer.clone();
            thread::spawn(move || {
                let waited = block_on(informer.wait_for_version(version));
                let stored = informer.indexer().get_by_key(&key("c")).map(|pod| pod.version);
                (waited, stored)
            })
        });
        let running = informer.start(CancellationToken::new());
        let [reached, never] = waiters;
        let (waited, stored) = reached.join().unwrap();
        assert_eq!((waited, stored), (Ok(()), Some(LAST)));
        informer.stop();
        assert!(matches!(never.join().unwrap().0, Err(WaitForVersionError::Stopped(_))));
        end(&world, informer, running);
    });
}

#[test]
fn a_wait_for_cache_sync_ends_by_the_sync_or_by_the_stop() {
    model(|| {
        let world = World::default();
        let informer = world.informer([]);
        let told = Told::default();
        let registration = informer.add_handler(told.witness(None)).unwrap();
        let running = informer.start(CancellationToken::new());
        let waiter = thread::spawn({
            let registration = registration.clone();
            move || {
                let never = CancellationToken::new();
                block_on(wait_for_cache_sync(&never, Duration::MAX, [&registration]))
            }
        });
        end(&world, informer, running);
        match waiter.join().unwrap() {
            Ok(()) => assert_eq!(told.known(), [("a", 1)].into()),
            Err(error) => assert_eq!(error.reason, CacheSyncReason::Stopped),
        }
    });
}

#[test]
fn handlers_may_remove_themselves_and_others_and_stop_the_informer() {
    model(|| {
        let world = World::default();
        let informer = world.informer(world.changes());
        let told = Told::default();
        let other = informer.add_handler(told.witness(None)).unwrap();
        let handler = crate::ResourceEventHandlerFuncs::new().on_update({
            let (informer, other) = (informer.clone(), other.clone());
            move |_, _| {
                other.remove();
                drop(informer.add_handler(Told::default().witness(None)));
                informer.stop();
            }
        });
        let own = informer.add_handler(handler).unwrap();
        let running = informer.start(CancellationToken::new());
        block_on(running.join());
        told.is_over();
        assert_eq!(own.status().panics, 0);
        drop(own);
        drop(informer);
        assert!(world.alive() <= 1, "{}", world.alive());
    });
}

#[test]
fn a_factory_that_is_shut_down_while_it_starts_leaves_no_task() {
    model(|| {
        let world = World::default();
        let factory = SharedInformerFactory::new(FactoryOptions::new().clock(ManualClock::new().clock()));
        let told = Told::default();
        let informer = factory.informer(|_| world.script([]));
        let registration = informer.add_handler(told.witness(None)).unwrap();
        let starter = thread::spawn({
            let factory = factory.clone();
            move || factory.start(&CancellationToken::new())
        });
        block_on(factory.shut_down());
        told.is_over();
        assert!(informer.is_stopped());
        assert!(registration.is_removed());
        starter.join().unwrap();
        told.is_over();
    });
}

//! One handler's buffer between the informer and the handler.

use std::sync::{Arc, Weak};

use futures::FutureExt;
use kubewire_indexer::Deleted;
use kubewire_ratelimit::Clock;
use shuttle::future::block_on;
use shuttle::thread;

use super::model;
use super::witness::Told;
use super::world::{LAST, PodRef, World, key};
use crate::health::Health;
use crate::listener::{AnyListener, Listener};
use crate::{Buffering, Notification, Registration, Subscription};

fn listener(buffering: Buffering) -> Arc<Listener<PodRef>> {
    Listener::new("listener".to_owned(), buffering, Arc::new(Health::default()), Clock::system(), Weak::new())
}

/// `a` comes, changes, goes, and comes again.
fn push_all(world: &World, listener: &Listener<PodRef>) {
    let added = |version| Notification::Added { object: world.pod("a", version), is_in_initial_list: false };
    let push = |notification| {
        let told = crate::notification::Told { key: key("a"), notification, resync: false };
        listener.push(vec![told], std::time::Instant::now());
    };
    let (first, second) = (world.pod("a", 1), world.pod("a", 2));
    push(Notification::Added { object: first.clone(), is_in_initial_list: false });
    push(Notification::Updated { old: first, new: second.clone() });
    push(Notification::Deleted(Deleted::Known(second)));
    push(added(LAST));
}

#[test]
fn a_handler_that_lags_behind_is_told_the_net_change_and_always_the_last_state() {
    for buffering in [Buffering::Unbounded, Buffering::Coalescing] {
        model(move || {
            let (world, told) = (World::default(), Told::default());
            let listener = listener(buffering);
            let calls = thread::spawn({
                let (listener, handler) = (Arc::clone(&listener), Box::new(told.witness(None)));
                move || block_on(listener.run(handler))
            });
            push_all(&world, &listener);
            block_on(told.last().wait());
            drop(listener.close());
            calls.join().unwrap();
            told.is_over();
            assert_eq!(told.known(), [("a", LAST)].into());
            assert_eq!(world.alive(), 0);
        });
    }
}

#[test]
fn a_close_at_any_moment_ends_the_calls_and_frees_what_waits() {
    model(|| {
        let (world, told) = (World::default(), Told::default());
        let listener = listener(Buffering::Unbounded);
        let calls = thread::spawn({
            let (listener, handler) = (Arc::clone(&listener), Box::new(told.witness(None)));
            move || block_on(listener.run(handler))
        });
        let pusher = thread::spawn({
            let (world, listener) = (world.clone(), Arc::clone(&listener));
            move || push_all(&world, &listener)
        });
        drop(listener.close());
        block_on(listener.ended().wait());
        told.is_over();
        calls.join().unwrap();
        pusher.join().unwrap();
        assert!(told.is_dropped());
        assert_eq!(world.alive(), 0);
    });
}

#[test]
fn a_stream_that_is_dropped_while_it_is_told_frees_what_waits() {
    model(|| {
        let world = World::default();
        let listener = listener(Buffering::Coalescing);
        let reader = thread::spawn({
            let mut stream = Subscription::new(Arc::clone(&listener));
            move || {
                let first = block_on(futures::StreamExt::next(&mut stream));
                drop(stream);
                assert!(first.is_some());
            }
        });
        push_all(&world, &listener);
        reader.join().unwrap();
        block_on(listener.ended().wait());
        assert_eq!(world.alive(), 0);
    });
}

#[test]
fn who_waits_for_a_handler_to_be_synced_learns_that_it_was_removed() {
    model(|| {
        let listener = listener(Buffering::Unbounded);
        let registration = Registration::new(Arc::clone(&listener) as Arc<dyn AnyListener>);
        let waiter = thread::spawn({
            let registration = registration.clone();
            move || block_on(registration.synced())
        });
        registration.remove();
        assert!(waiter.join().unwrap().is_err());
        assert!(registration.shut_down().now_or_never().is_some());
    });
}

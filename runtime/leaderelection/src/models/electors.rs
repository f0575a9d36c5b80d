//! Electors that are stopped, cut off and dropped.

use std::pin::pin;
use std::sync::Arc;

use futures::future::{Either, select};
use shuttle::future::block_on;
use tokio_util::sync::CancellationToken;

use super::model;
use super::world::{Running, World, draw, secs, spawn};
use crate::{ElectionError, Elector};

fn run(elector: &Arc<Elector>, stop: &CancellationToken) -> Running<Result<(), ElectionError>> {
    let (elector, stop) = (Arc::clone(elector), stop.clone());
    spawn(move || block_on(elector.run(stop)))
}

/// The first one is cut off and stands still at any moment, with late answers before. Then both are stopped.
#[test]
fn two_candidates_never_act_at_one_moment_and_a_stop_ends_both() {
    model(|| {
        let (world, stop) = (World::new(), CancellationToken::new());
        let candidates = ["a", "b"].map(|name| world.candidate(name, 2));
        let [(first, _), _] = &candidates;
        let first = first.clone();
        let electors = candidates.map(|(_, builder)| Arc::new(builder.build().unwrap()));
        let views = electors.each_ref().map(|elector| elector.leadership());
        let begin = |elector: &Arc<Elector>| {
            let (elector, stop) = (Arc::clone(elector), stop.clone());
            spawn(move || block_on(elector.run_until_stopped(stop)))
        };
        let one = begin(&electors[0]);
        world.pass(&views, || views[0].is_leader());
        let other = begin(&electors[1]);
        let cut = world.now() + secs(draw(8));
        world.pass(&views, || world.now() >= cut);
        first.cut_off(true);
        let end = world.now() + secs(18);
        world.pass(&views, || world.now() >= end);
        first.cut_off(false);
        stop.cancel();
        world.pass(&views, || one.has_ended() && other.has_ended());
        assert_eq!((one.join(), other.join()), (Ok(()), Ok(())));
        assert!(views.iter().all(|it| !it.is_leader()));
    });
}

/// The stop comes at any moment, also while a renewal, or the write that would make it the leader, is on its way.
#[test]
fn who_is_stopped_ends_its_work_then_releases_the_lease_and_the_next_one_leads() {
    model(|| {
        let world = World::new();
        let (replica, builder) = world.candidate("a", 2);
        let elector = Arc::new(builder.build().unwrap());
        let (first, stop) = (elector.leadership(), CancellationToken::new());
        let running = run(&elector, &stop);
        let end = world.now() + secs(draw(6));
        world.pass(&[first.clone()], || world.now() >= end);
        stop.cancel();
        let (stopped, led) = (world.now(), first.term().is_some());
        world.pass(&[first.clone()], || running.has_ended());
        let ended = running.join();
        assert!(!first.is_leader());
        // One may be on its way, and one be sent before the elector has come to see that the work is over.
        assert!(replica.renewals_after_work() <= 2, "the lease is renewed, and nobody works");
        if ended.is_ok() {
            assert!(!replica.is_at_work(), "the run has ended before its work");
        }
        // Within its grace period, in which the work is not aborted.
        if ended.is_ok() && led && world.now() < stopped + secs(4) {
            assert_eq!(world.holder(), "", "the lease is not given up");
        }
        let (_, builder) = world.candidate("b", 0);
        let elector = Arc::new(builder.build().unwrap());
        let (second, stop) = (elector.leadership(), CancellationToken::new());
        let running = run(&elector, &stop);
        world.pass(&[first.clone(), second.clone()], || second.is_leader());
        stop.cancel();
        world.pass(&[first, second], || running.has_ended());
        let _ = running.join();
    });
}

/// The one that was dropped can be run again at once.
#[test]
fn a_run_that_is_dropped_at_any_moment_ends_its_term_and_its_work() {
    model(|| {
        let world = World::new();
        let (replica, builder) = world.candidate("a", 2);
        let elector = Arc::new(builder.build().unwrap());
        let (leadership, give_up) = (elector.leadership(), CancellationToken::new());
        let dropped = spawn({
            let (elector, give_up, leadership) = (Arc::clone(&elector), give_up.clone(), leadership.clone());
            move || {
                let ended = block_on(async {
                    let run = Box::pin(elector.run(CancellationToken::new()));
                    match select(run, pin!(give_up.cancelled())).await {
                        Either::Left((ended, _)) => Some(ended),
                        Either::Right(_) => None,
                    }
                });
                assert!(!leadership.is_leader(), "the term goes on without its run");
                ended
            }
        });
        let end = world.now() + secs(draw(6));
        world.pass(&[leadership.clone()], || world.now() >= end);
        let term = leadership.term();
        give_up.cancel();
        world.pass(&[leadership.clone()], || dropped.has_ended() && !replica.is_at_work());
        dropped.join();
        assert!(term.is_none_or(|term| !term.is_valid()), "it is still valid for who holds it");
        let stop = CancellationToken::new();
        let again = run(&elector, &stop);
        world.pass(&[leadership.clone()], || leadership.is_leader() || again.has_ended());
        stop.cancel();
        world.pass(&[leadership.clone()], || again.has_ended());
        assert_ne!(again.join(), Err(ElectionError::AlreadyRunning));
    });
}

/// Whoever waits for the term, and for its end, has both, and the end not before: renewals move it.
#[test]
fn who_waits_for_a_term_gets_it_and_hears_of_its_end_and_not_before() {
    model(|| {
        let world = World::new();
        let (_, builder) = world.candidate("a", 0);
        let elector = Arc::new(builder.build().unwrap());
        let (leadership, stop) = (elector.leadership(), CancellationToken::new());
        let waits = spawn({
            let leadership = leadership.clone();
            move || {
                let term = block_on(leadership.wait_for_leadership());
                let Some(term) = term else { return };
                block_on(term.ended());
                assert!(!term.is_valid(), "it has ended and is valid");
                assert!(term.token().is_cancelled() || term.valid_for().is_zero());
            }
        });
        let running = spawn({
            let stop = stop.clone();
            // With its end the sender of the terms goes, too.
            move || block_on(elector.run(stop)).is_ok()
        });
        let end = world.now() + secs(12 + draw(8));
        world.pass(&[leadership.clone()], || world.now() >= end);
        stop.cancel();
        world.pass(&[leadership], || running.has_ended() && waits.has_ended());
        running.join();
        waits.join();
    });
}

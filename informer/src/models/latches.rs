//! What is set once and waited for.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use futures::FutureExt;
use shuttle::future::block_on;
use shuttle::thread;

use super::model;
use crate::latch::Latch;
use crate::{AsyncTracker, Lazy, SingleFileTracker};

#[test]
fn a_set_latch_wakes_all_who_wait_or_will_wait() {
    model(|| {
        let latch = Latch::default();
        let waiters = [(); 2].map(|()| {
            let latch = latch.clone();
            thread::spawn(move || block_on(latch.wait()))
        });
        latch.set();
        waiters.into_iter().for_each(|waiter| assert!(waiter.join().is_ok()));
    });
}

#[test]
fn a_wait_that_is_dropped_takes_no_wake_up_away() {
    model(|| {
        let latch = Latch::default();
        let dropped = thread::spawn({
            let latch = latch.clone();
            move || block_on(async { latch.wait().now_or_never() })
        });
        let waiter = thread::spawn({
            let latch = latch.clone();
            move || block_on(latch.wait())
        });
        latch.set();
        let _ = dropped.join().unwrap();
        waiter.join().unwrap();
    });
}

#[test]
fn a_tracker_is_synced_by_whoever_comes_last_and_not_before() {
    model(|| {
        let tracker = Arc::new(AsyncTracker::new());
        let steps = Arc::new(AtomicUsize::new(0));
        let threads = [Some("a"), Some("b"), None].map(|item| {
            let (tracker, steps) = (Arc::clone(&tracker), Arc::clone(&steps));
            item.into_iter().for_each(|item| tracker.start(item));
            thread::spawn(move || {
                steps.fetch_add(1, Ordering::SeqCst);
                match item {
                    Some(item) => tracker.finished(&item),
                    None => tracker.upstream_has_synced(),
                }
            })
        });
        block_on(tracker.synced());
        assert_eq!(steps.load(Ordering::SeqCst), 3);
        threads.into_iter().for_each(|thread| assert!(thread.join().is_ok()));
    });
}

#[test]
fn a_count_is_not_taken_for_synced_while_an_item_is_outstanding() {
    model(|| {
        let tracker = Arc::new(SingleFileTracker::new());
        let finished = Arc::new(AtomicBool::new(false));
        let source = thread::spawn({
            let (tracker, finished) = (Arc::clone(&tracker), Arc::clone(&finished));
            move || {
                tracker.start();
                tracker.upstream_has_synced();
                finished.store(true, Ordering::SeqCst);
                tracker.finished().unwrap();
            }
        });
        if tracker.has_synced() {
            assert!(finished.load(Ordering::SeqCst), "synced before the item was finished");
        }
        source.join().unwrap();
        assert!(tracker.has_synced());
    });
}

#[test]
fn a_lazy_value_is_never_older_than_the_last_invalidation() {
    model(|| {
        let source = Arc::new(shuttle::sync::atomic::AtomicUsize::new(0));
        let from = Arc::clone(&source);
        let lazy = Arc::new(Lazy::new(move || {
            let from = Arc::clone(&from);
            async move {
                let read = from.load(Ordering::SeqCst);
                shuttle::future::yield_now().await;
                Ok::<_, ()>(read)
            }
        }));
        let readers = [(); 2].map(|()| {
            let lazy = Arc::clone(&lazy);
            thread::spawn(move || block_on(lazy.get()).unwrap())
        });
        source.store(1, Ordering::SeqCst);
        lazy.invalidate();
        assert_eq!(block_on(lazy.get()), Ok(1));
        readers.into_iter().for_each(|reader| assert!(reader.join().is_ok()));
        assert_eq!(block_on(lazy.get()), Ok(1));
    });
}

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread::{self, ThreadId};

use parking_lot::Mutex;
use proptest::prelude::*;

use super::*;

/// Which piece it was, and what stood at its beginning.
fn read() -> Read<(u64, u8)> {
    Arc::new(|piece, position| (position, piece.first().copied().unwrap_or_default()))
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

/// All that comes out, and the most pieces that were held back at once.
async fn run(helpers: Helpers, lens: &[usize]) -> (Vec<(u64, u8)>, usize) {
    let mut pipeline = Pipeline::with_helpers(read(), helpers);
    let (mut out, mut held_max) = (Vec::new(), 0);
    let bytes = vec![7; lens.iter().copied().max().unwrap_or_default()];
    for (pushed, &len) in (1..).zip(lens) {
        pipeline.push(&bytes[..len], &mut |item| out.push(item)).await.unwrap();
        held_max = held_max.max(pushed - out.len());
    }
    assert_eq!(pipeline.is_empty(), out.len() == lens.len());
    pipeline.finish(&mut |item| out.push(item)).await.unwrap();
    assert!(pipeline.is_empty());
    (out, held_max)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn whoever_reads_a_piece_all_come_out_once_and_in_order(
        helpers in 0..4_usize,
        lens in prop::collection::vec(prop_oneof![0..100_usize, 5_000..50_000_usize, 200_000..600_000_usize], 0..200),
    ) {
        let (out, held_max) = block_on(run(Helpers::new(helpers), &lens));
        let expected: Vec<_> = (0..).zip(&lens).map(|(at, &len)| (at, if len == 0 { 0 } else { 7 })).collect();
        prop_assert_eq!(out, expected);
        prop_assert!(held_max <= (helpers + 2) * BATCH_PIECES);
        prop_assert!(helpers > 0 || held_max == 0, "with one core nothing is held back");
    }
}

#[tokio::test]
async fn small_bodies_are_handed_out_piece_by_piece() {
    let (_, held_max) = run(Helpers::new(3), &[SMALL_LEN / 64; 64]).await;
    assert_eq!(held_max, 0);
    let (_, held_max) = run(Helpers::new(3), &[SMALL_LEN / 64; 65]).await;
    assert_eq!(held_max, 1, "the next one waits for a batch");
}

#[tokio::test]
async fn an_empty_piece_behind_a_batch_keeps_its_place() {
    let (out, _) = run(Helpers::new(1), &[SMALL_LEN, 1, 0, 1]).await;
    assert_eq!(out, [(0, 7), (1, 7), (2, 0), (3, 7)]);
}

#[tokio::test]
async fn no_more_than_a_batch_for_each_core_and_one_that_fills_is_held() {
    let (out, held_max) = run(Helpers::new(2), &vec![1; SMALL_LEN + 20 * BATCH_PIECES]).await;
    assert_eq!(out.len(), SMALL_LEN + 20 * BATCH_PIECES);
    assert!(held_max <= 4 * BATCH_PIECES, "{held_max}");
}

#[tokio::test]
async fn a_batch_is_read_on_another_thread_and_without_a_free_helper_here() {
    let threads: Arc<Mutex<HashSet<ThreadId>>> = Arc::default();
    let seen = Arc::clone(&threads);
    let read: Read<()> = Arc::new(move |_, _| _ = seen.lock().insert(thread::current().id()));
    let helpers = Helpers::new(1);
    let body = vec![0; SMALL_LEN + BATCH_LEN];
    for (busy, count) in [(false, 1), (true, 0)] {
        let permit = busy.then(|| helpers.try_acquire().expect("it is free"));
        let mut pipeline = Pipeline::with_helpers(Arc::clone(&read), helpers.clone());
        pipeline.push(&body, &mut |()| {}).await.unwrap();
        pipeline.finish(&mut |()| {}).await.unwrap();
        drop(permit);
        let mut threads = std::mem::take(&mut *threads.lock());
        threads.remove(&thread::current().id());
        assert_eq!(threads.len(), count, "another thread helps unless it is busy");
        assert_eq!(helpers.free.available_permits(), 1);
    }
}

#[tokio::test]
async fn other_tasks_of_the_thread_have_a_turn_after_each_batch() {
    let turns = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&turns);
    let other = tokio::spawn(async move {
        loop {
            counter.fetch_add(1, Ordering::Relaxed);
            yield_now().await;
        }
    });
    run(Helpers::new(0), &[BATCH_LEN / 16; 16 * 20]).await;
    assert!(turns.load(Ordering::Relaxed) >= 20);
    other.abort();
}

#[tokio::test]
async fn dropped_it_gives_up_what_nobody_has_begun_and_frees_the_helper_when_that_ends() {
    let (go, gate) = mpsc::channel::<()>();
    let (begun, begins) = mpsc::channel();
    let gate = Mutex::new(gate);
    let read: Read<()> = Arc::new(move |_, _| {
        _ = begun.send(());
        _ = gate.lock().recv();
    });
    let helpers = Helpers::new(1);
    let mut pipeline = Pipeline::with_helpers(read, helpers.clone());
    let body = vec![0; SMALL_LEN + BATCH_LEN];
    pipeline.push(&body, &mut |()| panic!("it is not read yet")).await.unwrap();
    begins.recv().unwrap();
    drop(pipeline);
    assert!(helpers.try_acquire().is_none(), "it is still being read");
    drop(go);
    let freed = helpers.free.acquire().await;
    assert!(freed.is_ok() && begins.try_recv().is_err(), "nothing else was read");
}

#[tokio::test]
async fn a_panic_of_the_reader_is_that_of_the_task() {
    let read: Read<()> = Arc::new(|_, _| panic!("no"));
    let task = tokio::spawn(async move {
        let mut pipeline = Pipeline::with_helpers(read, Helpers::new(1));
        pipeline.push(&vec![0; SMALL_LEN + BATCH_LEN], &mut |()| {}).await.unwrap();
        pipeline.finish(&mut |()| {}).await.unwrap();
    });
    assert!(task.await.unwrap_err().is_panic());
}

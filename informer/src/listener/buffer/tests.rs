use std::collections::BTreeMap;

use kubewire_indexer::Deleted;
use proptest::prelude::*;

use super::*;

type Note = Notification<u32>;

/// States from a million on are of another object of the same name.
fn is_same(one: &u32, other: &u32) -> bool {
    (*one < 1_000_000) == (*other < 1_000_000)
}

fn one(key: &str, notification: Note, resync: bool) -> Batch<u32> {
    Batch::Own(vec![Told { key: ObjectKey::cluster(key), notification, resync }].into_iter())
}

fn push(buffer: &mut Buffer<u32>, key: u32, notification: Note) {
    let (waker, _garbage) = buffer.push(one(&format!("k{key}"), notification, false), Instant::now());
    assert!(waker.is_none());
}

fn add(object: u32) -> Note {
    Notification::Added { object, is_in_initial_list: false }
}

fn initial(object: u32) -> Note {
    Notification::Added { object, is_in_initial_list: true }
}

fn update(old: u32, new: u32) -> Note {
    Notification::Updated { old, new }
}

fn delete(object: u32) -> Note {
    Notification::Deleted(Deleted::Known(object))
}

fn drain(buffer: &mut Buffer<u32>) -> Vec<Note> {
    let mut out = Vec::new();
    while let Next::Told(Told { notification, .. }, _) = buffer.next(Instant::now()) {
        out.push(notification);
        buffer.validate();
    }
    out
}

fn coalesced(notifications: &[Note]) -> Vec<Note> {
    let mut buffer = Buffer::new(Buffering::Coalescing, is_same);
    for notification in notifications {
        push(&mut buffer, 0, notification.clone());
        buffer.validate();
    }
    buffer.join();
    let out = drain(&mut buffer);
    assert!(buffer.has_told_initial());
    out
}

#[test]
fn coalescing_keeps_the_first_old_and_the_last_new_state() {
    let rows: [(&[Note], &[Note]); 10] = [
        (&[add(1), update(1, 2), update(2, 3)], &[add(3)]),
        (&[initial(1), update(1, 2)], &[initial(2)]),
        (&[update(1, 2), update(2, 3)], &[update(1, 3)]),
        (&[update(1, 2), delete(2)], &[delete(2)]),
        (&[delete(1), add(2)], &[delete(1), add(2)]),
        (&[delete(1), add(2), update(2, 3)], &[delete(1), add(3)]),
        (&[delete(1), add(2), delete(3)], &[delete(1)]),
        (&[add(1), delete(1)], &[]),
        (&[initial(1), delete(1), add(2)], &[add(2)]),
        (&[initial(1), initial(2)], &[initial(2)]),
    ];
    for (pushed, want) in rows {
        assert_eq!(coalesced(pushed), want, "{pushed:?}");
    }
}

#[test]
fn what_is_deleted_is_the_object_that_the_handler_knows() {
    const ANEW: u32 = 1_000_000;
    let gone = |last| Notification::Deleted(Deleted::final_state_unknown(ObjectKey::cluster("k0"), Some(last)));
    // A watch that was away saw no deletion, and the new object is deleted before the handler has heard of it.
    assert_eq!(coalesced(&[update(1, ANEW), delete(ANEW + 1)]), [gone(1)]);
    assert_eq!(coalesced(&[update(1, 2), update(2, ANEW), gone(ANEW)]), [gone(1)]);
    assert_eq!(coalesced(&[update(1, ANEW), delete(ANEW), add(ANEW + 1)]), [gone(1), add(ANEW + 1)]);
    assert_eq!(coalesced(&[update(1, ANEW), update(ANEW, ANEW + 1)]), [update(1, ANEW + 1)]);
}

#[test]
fn a_buffer_has_told_its_initial_list_only_once_it_has_joined() {
    let mut buffer = Buffer::<u32>::new(Buffering::Unbounded, is_same);
    assert!(!buffer.has_told_initial(), "its list may be still to come");
    buffer.join();
    assert!(buffer.has_told_initial());
}

#[test]
fn a_resync_is_left_until_its_call_has_returned() {
    let mut buffer = Buffer::new(Buffering::Unbounded, is_same);
    for resync in [false, true] {
        buffer.push(one("k", update(1, 1), resync), Instant::now());
    }
    let mut left = vec![buffer.has_resyncs_left()];
    while let Next::Told(..) = buffer.next(Instant::now()) {
        left.push(buffer.has_resyncs_left());
    }
    left.push(buffer.has_resyncs_left());
    assert_eq!(left, [true, true, true, false]);
}

#[test]
fn initial_additions_count_until_their_calls_have_returned() {
    for buffering in [Buffering::Unbounded, Buffering::Coalescing] {
        let mut buffer = Buffer::new(buffering, is_same);
        push(&mut buffer, 0, initial(1));
        push(&mut buffer, 1, initial(2));
        assert!(!buffer.has_told_initial(), "not joined");
        buffer.join();
        buffer.next(Instant::now());
        assert!(!buffer.has_told_initial());
        buffer.next(Instant::now());
        assert!(!buffer.has_told_initial(), "the last call is running");
        buffer.told();
        assert!(buffer.has_told_initial());
    }
}

#[test]
fn an_object_that_comes_and_goes_untold_again_and_again_takes_no_room() {
    let mut buffer = Buffer::new(Buffering::Coalescing, is_same);
    for n in 0..1000 {
        push(&mut buffer, 0, add(n));
        push(&mut buffer, 0, delete(n));
        buffer.validate();
    }
    assert_eq!(buffer.len(), 1, "one key, with nothing to tell");
    assert_eq!(drain(&mut buffer), []);
    assert_eq!(buffer.len(), 0);
}

#[test]
fn the_room_of_a_burst_is_given_back() {
    for buffering in [Buffering::Unbounded, Buffering::Coalescing] {
        let mut buffer = Buffer::new(buffering, is_same);
        for n in 0..10_000 {
            push(&mut buffer, n, add(n));
        }
        // Not by `drain`, which looks at everything after each step.
        while let Next::Told(..) = buffer.next(Instant::now()) {}
        let capacity = match &buffer.waiting {
            Waiting::Unbounded { batches, .. } => batches.capacity(),
            Waiting::Coalescing { order, pending } => order.capacity().max(pending.capacity()),
        };
        assert!(capacity <= 2 * KEPT_CAPACITY, "{capacity}");
    }
}

#[test]
fn a_closed_buffer_drops_what_waits_and_takes_nothing() {
    let mut buffer = Buffer::new(Buffering::Unbounded, is_same);
    push(&mut buffer, 0, add(1));
    let (waker, _garbage) = buffer.close(true);
    assert!(waker.is_none());
    push(&mut buffer, 0, add(2));
    buffer.validate();
    assert!(matches!(buffer.next(Instant::now()), Next::Closed));
}

#[test]
fn a_handler_is_busy_from_the_first_that_waits_then_from_each_that_it_takes_until_the_last_has_returned() {
    let start = Instant::now();
    let at = |second| start + std::time::Duration::from_secs(second);
    for buffering in [Buffering::Unbounded, Buffering::Coalescing] {
        let mut buffer = Buffer::new(buffering, is_same);
        assert_eq!(buffer.busy_since(), None);
        for (key, second) in [("a", 1), ("b", 2)] {
            buffer.push(one(key, add(1), false), at(second));
        }
        assert_eq!(buffer.busy_since(), Some(at(1)), "nobody has come for the first");
        for second in [3, 4] {
            buffer.next(at(second));
            assert_eq!(buffer.busy_since(), Some(at(second)));
            buffer.validate();
        }
        buffer.told();
        buffer.validate();
        assert_eq!(buffer.busy_since(), None);
    }
}

#[test]
fn a_call_that_runs_when_the_buffer_is_closed_stays_visible_until_it_returns() {
    let now = Instant::now();
    let mut buffer = Buffer::new(Buffering::Unbounded, is_same);
    push(&mut buffer, 0, add(1));
    buffer.next(now);
    buffer.close(true);
    buffer.validate();
    assert_eq!(buffer.busy_since(), Some(now));
    buffer.told();
    buffer.validate();
    assert_eq!(buffer.busy_since(), None);
}

#[test]
fn what_is_shared_is_given_to_each_and_unchanged_objects_only_to_those_that_are_due() {
    let object = std::sync::Arc::new(1);
    let told = |key, resync| {
        let notification = Notification::Updated { old: object.clone(), new: object.clone() };
        Told { key: ObjectKey::cluster(key), notification, resync }
    };
    let all = std::sync::Arc::new(vec![told("a", false), told("b", true), told("c", false), told("d", true)]);
    for (due, want) in [(true, "abcd"), (false, "ac")] {
        let mut buffer = Buffer::new(Buffering::Unbounded, |_, _| true);
        buffer.push(Batch::Shared { told: all.clone(), next: 0, due }, Instant::now());
        assert_eq!(buffer.len(), want.len());
        assert_eq!(buffer.has_resyncs_left(), due);
        let mut got = String::new();
        while let Next::Told(Told { key, .. }, _) = buffer.next(Instant::now()) {
            got.push_str(key.as_str());
            buffer.validate();
        }
        assert_eq!(got, want);
        assert!(!buffer.has_resyncs_left());
    }
    assert_eq!(std::sync::Arc::strong_count(&all), 1, "both are done with it");
}

#[derive(Clone, Debug)]
enum Op {
    /// Puts a new object under the key.
    Put(u8),
    Delete(u8),
    Next,
}

proptest! {
    /// However slow the handler is, what it is told leads from the state it knows to the present one, and it is
    /// never told to update or delete what it does not have.
    #[test]
    fn what_is_told_adds_up(
        ops in prop::collection::vec(prop_oneof![
            4 => (0..4u8).prop_map(Op::Put),
            2 => (0..4u8).prop_map(Op::Delete),
            3 => Just(Op::Next),
        ], 0..100),
        coalescing: bool,
    ) {
        let mut buffer = Buffer::new(if coalescing { Buffering::Coalescing } else { Buffering::Unbounded }, is_same);
        let mut source: BTreeMap<u8, u32> = BTreeMap::new();
        let mut heard: BTreeMap<u8, u32> = BTreeMap::new();
        let mut object = 0;
        let mut tell = |notification: Note| -> Result<(), TestCaseError> {
            match notification {
                Notification::Added { object, .. } => {
                    prop_assert_eq!(heard.insert((object % 4) as u8, object), None);
                }
                Notification::Updated { old, new } => {
                    prop_assert_eq!(heard.insert((new % 4) as u8, new), Some(old));
                }
                Notification::Deleted(deleted) => {
                    let last = *deleted.last_known().unwrap();
                    prop_assert!(heard.remove(&((last % 4) as u8)).is_some());
                }
            }
            Ok(())
        };
        for op in ops {
            match op {
                Op::Put(key) => {
                    object += 4;
                    let new = object + u32::from(key);
                    let notification = match source.insert(key, new) {
                        Some(old) => update(old, new),
                        None => initial(new),
                    };
                    push(&mut buffer, key.into(), notification);
                }
                Op::Delete(key) => {
                    if let Some(old) = source.remove(&key) {
                        push(&mut buffer, key.into(), delete(old));
                    }
                }
                Op::Next => {
                    if let Next::Told(Told { notification, .. }, _) = buffer.next(Instant::now()) {
                        tell(notification)?;
                    }
                }
            }
            buffer.validate();
            prop_assert!(!coalescing || buffer.len() <= 4);
        }
        while let Next::Told(Told { notification, .. }, _) = buffer.next(Instant::now()) {
            tell(notification)?;
        }
        buffer.join();
        prop_assert!(buffer.has_told_initial());
        prop_assert_eq!(heard, source);
    }
}

use std::time::Duration;

use EventsApi::{CoreV1, EventsV1};
use WriteVerb::{Create, Patch};
use k8s_openapi::api::core::v1::ObjectReference;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{Event, WriteVerb};

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

struct Bench {
    outbox: Outbox,
    now: Instant,
    wall: Timestamp,
    /// What was sent: verb and the count that it told.
    sent: Vec<(WriteVerb, u64)>,
    last: Option<Write>,
}

fn object(name: &str) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".into()),
        kind: Some("Pod".into()),
        namespace: Some("ns1".into()),
        name: Some(name.into()),
        uid: Some(format!("uid of {name}")),
        ..ObjectReference::default()
    }
}

fn count_in(write: &Write) -> u64 {
    let count = if write.api == CoreV1 { &write.body["count"] } else { &write.body["series"]["count"] };
    count.as_u64().unwrap_or(1)
}

impl Bench {
    fn new(api: EventsApi) -> Self {
        Self::with(api, Limits::default())
    }

    fn with(api: EventsApi, limits: Limits) -> Self {
        let reporter = Reporter { controller: "c".into(), instance: "c-1".into(), host: "h".into() };
        let outbox = Outbox::new(api, reporter, limits, 1);
        let wall = Timestamp::from_second(1_000_000).unwrap();
        Self { outbox, now: Instant::now(), wall, sent: Vec::new(), last: None }
    }

    fn record(&mut self, name: &str, reason: &str, note: &str) {
        self.record_about(&object(name), reason, note);
    }

    fn record_about(&mut self, object: &ObjectReference, reason: &str, note: &str) {
        let body = Body::new(object, Event::warning(reason, "Do", note));
        self.outbox.record(body, "", self.now, self.wall);
        self.validate();
    }

    /// It costs the square of what waits.
    fn validate(&self) {
        if self.outbox.ready.len() < 20 && self.outbox.series.len() < 100 {
            self.outbox.validate();
        }
    }

    fn send(&mut self) -> Option<(u64, Write)> {
        let step = self.outbox.next(self.now, self.wall);
        self.validate();
        match step {
            Step::Send { ticket, write } => {
                self.sent.push((write.verb, count_in(&write)));
                self.last = Some(write.clone());
                Some((ticket, write))
            }
            _ => None,
        }
    }

    fn answer(&mut self, ticket: u64, outcome: Outcome) {
        self.outbox.answer(ticket, outcome, self.now);
        self.validate();
    }

    /// Sends all that is to be sent, with success.
    fn settle(&mut self) {
        while let Some((ticket, _)) = self.send() {
            self.answer(ticket, Outcome::Done);
        }
    }

    fn pass(&mut self, by: Duration) {
        self.now += by;
        self.wall += by;
    }

    fn take_sent(&mut self) -> Vec<(WriteVerb, u64)> {
        std::mem::take(&mut self.sent)
    }

    fn verbs(&mut self) -> (usize, usize) {
        let sent = self.take_sent();
        let created = sent.iter().filter(|(verb, _)| *verb == Create).count();
        (created, sent.len() - created)
    }
}

#[test]
fn an_event_seen_again_is_counted_up_and_other_objects_and_parts_have_counts_of_their_own() {
    for api in [CoreV1, EventsV1] {
        let mut bench = Bench::new(api);
        let part = ObjectReference { field_path: Some("spec.containers{b}".into()), ..object("x") };
        let other = ObjectReference { uid: Some("another".into()), ..object("x") };
        for about in [object("x"), object("x"), part, other] {
            bench.record_about(&about, "Failed", "no room");
            bench.settle();
        }
        assert_eq!(bench.take_sent(), [(Create, 1), (Patch, 2), (Create, 1), (Create, 1)], "{api:?}");
    }
}

#[test]
fn limits_that_are_none_are_taken() {
    let none = usize::MAX;
    for limits in [
        Limits { queue_len_max: none, ..Limits::default() },
        Limits { in_flight_max: none, cache_len_max: 0, ..Limits::default() },
        Limits { similar_max: none, retry_pause: Duration::MAX, refill: Duration::ZERO, ..Limits::default() },
        Limits { series_refresh: Duration::MAX, series_finish: Duration::MAX, ..Limits::default() },
    ] {
        let mut bench = Bench::with(EventsV1, limits);
        for note in ["a", "b", "a"] {
            bench.record("web", "Failed", note);
            bench.settle();
        }
        assert_eq!(bench.outbox.stats().created, 2);
    }
}

#[test]
fn the_version_of_the_object_makes_no_event_of_its_own() {
    let mut bench = Bench::new(CoreV1);
    for version in ["1", "2"] {
        let about = ObjectReference { resource_version: Some(version.into()), ..object("x") };
        bench.record_about(&about, "Failed", "no room");
        bench.settle();
    }
    assert_eq!(bench.take_sent(), [(Create, 1), (Patch, 2)]);
}

#[test]
fn many_identical_events_are_counted_and_not_combined() {
    let mut bench = Bench::new(CoreV1);
    for _ in 0..20 {
        bench.record("x", "Failed", "no room");
        bench.settle();
    }
    assert_eq!(bench.take_sent().last(), Some(&(Patch, 20)));
    assert_eq!(bench.last.unwrap().body["message"], "no room");
}

#[test]
fn the_tenth_note_of_similar_events_is_combined_and_later_ones_count_it_up() {
    for api in [CoreV1, EventsV1] {
        let mut bench = Bench::new(api);
        for number in 1..=15 {
            bench.record("x", "Failed", &format!("note {number}"));
            bench.settle();
        }
        let patches = if api == CoreV1 { 5 } else { 1 };
        let sent = bench.take_sent();
        assert_eq!(sent[..10], [(Create, 1); 10], "{api:?}");
        assert_eq!(sent[10], (Patch, 2));
        assert_eq!(sent.len(), 10 + patches, "{api:?}");
        // A note that was there before is counted where it belongs.
        bench.record("x", "Failed", "note 3");
        bench.settle();
        assert_eq!(bench.take_sent(), [(Patch, 2)]);
    }
    let mut bench = Bench::new(CoreV1);
    for number in 1..=11 {
        bench.record("x", "Failed", &format!("note {number}"));
        bench.settle();
    }
    assert_eq!(bench.last.unwrap().body["message"], "(combined from similar events): note 11");
}

#[test]
fn other_reasons_and_rare_notes_are_not_combined() {
    let mut bench = Bench::with(CoreV1, Limits { burst: 1000, ..Limits::default() });
    for number in 0..30 {
        bench.record("x", &format!("Reason{number}"), &format!("note {number}"));
    }
    bench.settle();
    assert_eq!(bench.take_sent(), [(Create, 1); 30]);
    for number in 0..30 {
        bench.record("y", "Failed", &format!("note {number}"));
        bench.pass(secs(601));
    }
    bench.settle();
    assert_eq!(bench.take_sent(), [(Create, 1); 30]);
}

#[test]
fn a_burst_about_one_object_is_25_writes_and_then_one_in_five_minutes() {
    let mut bench = Bench::new(CoreV1);
    for _ in 0..40 {
        bench.record("x", "Failed", "no room");
        bench.settle();
    }
    assert_eq!(bench.verbs(), (1, 24));
    assert_eq!(bench.outbox.stats().filtered, 15);
    bench.record("y", "Failed", "no room");
    bench.settle();
    assert_eq!(bench.verbs(), (1, 0), "another object has a burst of its own");
    bench.pass(secs(300));
    bench.record("x", "Failed", "no room");
    bench.settle();
    assert_eq!(bench.take_sent(), [(Patch, 41)], "what was filtered is counted");

    let mut bench = Bench::new(EventsV1);
    for number in 0..40 {
        bench.record("x", &format!("Reason{number}"), "no room");
        bench.settle();
    }
    assert_eq!(bench.verbs(), (25, 0));
}

#[test]
fn a_series_is_told_at_its_second_event_each_half_hour_and_when_it_is_over() {
    let mut bench = Bench::new(EventsV1);
    for _ in 0..100 {
        bench.record("x", "Failed", "no room");
        bench.settle();
    }
    assert_eq!(bench.take_sent(), [(Create, 1), (Patch, 2)]);
    // It goes on, once a minute, for an hour.
    for _ in 0..60 {
        bench.pass(secs(60));
        bench.record("x", "Failed", "no room");
        bench.settle();
    }
    let sent = bench.take_sent();
    assert_eq!(sent.len(), 2, "{sent:?}");
    assert_eq!(sent[0], (Patch, 130));
    // It ceases.
    bench.pass(secs(360));
    bench.settle();
    assert_eq!(bench.verbs().1, usize::from(sent[1].1 < 160), "the rest");
    bench.pass(secs(360));
    bench.settle();
    bench.record("x", "Failed", "no room");
    bench.settle();
    assert_eq!(bench.take_sent(), [(Create, 1)], "the next one is an event of its own");
}

#[test]
fn what_comes_while_the_first_is_under_way_goes_with_it_or_after_it() {
    for (api, wanted) in [(CoreV1, (Patch, 100)), (EventsV1, (Patch, 100))] {
        let mut bench = Bench::new(api);
        bench.record("x", "Failed", "no room");
        let (ticket, _) = bench.send().unwrap();
        for _ in 1..100 {
            bench.record("x", "Failed", "no room");
        }
        assert!(bench.send().is_none(), "one request at a time");
        bench.answer(ticket, Outcome::Done);
        bench.settle();
        assert_eq!(bench.take_sent(), [(Create, 1), wanted]);
    }
    let mut bench = Bench::new(EventsV1);
    for _ in 0..5 {
        bench.record("x", "Failed", "no room");
    }
    bench.settle();
    assert_eq!(bench.take_sent(), [(Create, 5)], "made as a series at once");
}

#[test]
fn an_event_that_is_gone_is_made_anew_with_its_count() {
    for api in [CoreV1, EventsV1] {
        let mut bench = Bench::new(api);
        bench.record("x", "Failed", "no room");
        bench.settle();
        bench.record("x", "Failed", "no room");
        let (ticket, patch) = bench.send().unwrap();
        bench.answer(ticket, Outcome::NotFound);
        let (ticket, create) = bench.send().unwrap();
        assert_ne!(patch.name, create.name);
        assert_eq!(create.body["metadata"].get("resourceVersion"), None);
        bench.answer(ticket, Outcome::Done);
        assert_eq!(bench.take_sent(), [(Create, 1), (Patch, 2), (Create, 2)], "{api:?}");
    }
}

#[test]
fn a_name_that_is_taken_is_changed_unless_it_is_our_own() {
    let mut bench = Bench::new(CoreV1);
    bench.record("x", "Failed", "no room");
    let (ticket, first) = bench.send().unwrap();
    bench.answer(ticket, Outcome::AlreadyExists);
    let (ticket, second) = bench.send().unwrap();
    assert_ne!(first.name, second.name);
    bench.answer(ticket, Outcome::Failed); // It was written, but the answer is lost.
    bench.pass(secs(10));
    let (ticket, again) = bench.send().unwrap();
    assert_eq!(again.name, second.name);
    bench.answer(ticket, Outcome::AlreadyExists);
    assert!(bench.send().is_none());
    bench.record("x", "Failed", "no room");
    bench.settle();
    assert_eq!(bench.take_sent().last(), Some(&(Patch, 2)));
}

#[test]
fn names_differ_while_the_wall_clock_stands_still_or_goes_back() {
    let mut bench = Bench::with(CoreV1, Limits { burst: 1000, ..Limits::default() });
    let mut names = HashSet::new();
    for number in 0..100_u32 {
        bench.wall = Timestamp::from_second(1_000_000 - i64::from(number / 50)).unwrap();
        bench.record("x", &format!("Reason{number}"), "no room");
        let (ticket, write) = bench.send().unwrap();
        bench.answer(ticket, Outcome::Done);
        assert!(names.insert(write.name));
    }
}

#[test]
fn a_failure_is_tried_twelve_times_a_refusal_once() {
    let mut bench = Bench::new(CoreV1);
    bench.record("x", "Failed", "no room");
    let mut tries = 0;
    let mut first_wait = None;
    loop {
        match bench.outbox.next(bench.now, bench.wall) {
            Step::Send { ticket, .. } => {
                tries += 1;
                bench.answer(ticket, Outcome::Failed);
            }
            Step::Wait(Some(at)) => {
                first_wait.get_or_insert(at - bench.now);
                let by = at - bench.now;
                bench.pass(by);
            }
            _ => break,
        }
    }
    assert_eq!((tries, bench.outbox.stats().dropped_failed), (12, 1));
    assert!(first_wait.unwrap() < secs(10), "by chance a part of it");

    let mut bench = Bench::new(CoreV1);
    bench.record("x", "Failed", "no room");
    let (ticket, _) = bench.send().unwrap();
    bench.answer(ticket, Outcome::Refused);
    assert_eq!(bench.outbox.next(bench.now, bench.wall), Step::Wait(None));
    assert_eq!(bench.outbox.stats().dropped_refused, 1);

    let mut bench = Bench::new(CoreV1);
    bench.record("x", "Failed", "no room");
    let (ticket, _) = bench.send().unwrap();
    bench.answer(ticket, Outcome::Failed);
    bench.pass(secs(10));
    bench.settle();
    assert_eq!(bench.take_sent().len(), 2, "it failed once");
}

#[test]
fn what_waits_and_what_is_remembered_is_bounded_and_every_event_is_accounted_for() {
    let limits = Limits { queue_len_max: 100, cache_len_max: 300, ..Limits::default() };
    let mut bench = Bench::with(CoreV1, limits);
    for number in 0..10_000 {
        bench.record(&format!("x{number}"), "Failed", "no room");
    }
    let stats = bench.outbox.stats();
    assert_eq!((stats.recorded, stats.dropped_queue_full), (10_000, 9_900));
    bench.settle();
    assert_eq!(bench.outbox.stats().created, 100);
    for number in 0..10_000 {
        bench.record(&format!("y{number}"), "Failed", "no room");
        bench.settle();
    }
    assert_eq!(bench.outbox.series.len(), 300);
    assert_eq!(bench.outbox.stats().created, 10_100);
}

#[test]
fn after_the_close_what_is_left_is_written_once_and_nothing_is_taken() {
    let mut bench = Bench::new(EventsV1);
    for _ in 0..50 {
        bench.record("x", "Failed", "no room");
        bench.settle();
    }
    bench.record("y", "Failed", "no room");
    let (ticket, _) = bench.send().unwrap();
    bench.answer(ticket, Outcome::Failed); // to be tried again later
    bench.take_sent();
    bench.outbox.close();
    bench.record("z", "Failed", "no room");
    let (ticket, _) = bench.send().unwrap();
    bench.answer(ticket, Outcome::Done);
    let (ticket, _) = bench.send().unwrap();
    bench.answer(ticket, Outcome::Failed);
    let mut sent = bench.take_sent();
    sent.sort_by_key(|(_, count)| *count);
    assert_eq!(sent, [(Create, 1), (Patch, 50)]);
    assert_eq!(bench.outbox.next(bench.now, bench.wall), Step::Drained, "one try each");
    let stats = bench.outbox.stats();
    assert_eq!((stats.dropped_failed, stats.dropped_shut_down), (1, 1));
}

#[test]
fn events_are_kept_where_their_object_is() {
    let node = ObjectReference { kind: Some("Node".into()), namespace: None, name: Some("n".into()), ..object("") };
    let empty = ObjectReference { namespace: Some(String::new()), ..object("x") };
    for api in [CoreV1, EventsV1] {
        for (about, namespace) in [(&node, "default"), (&empty, "default"), (&object("x"), "ns1")] {
            let mut bench = Bench::new(api);
            bench.record_about(about, "Failed", "no room");
            let (_, write) = bench.send().unwrap();
            assert_eq!(write.namespace, namespace);
            assert_eq!(write.body["metadata"]["namespace"], namespace);
            let field = if api == CoreV1 { "involvedObject" } else { "regarding" };
            let own = about.namespace.as_deref().filter(|namespace| !namespace.is_empty());
            assert_eq!(write.body[field]["namespace"], json!(own));
        }
    }
}

#[derive(Clone, Debug)]
enum Act {
    Record(u8, u8, u8),
    Send,
    Answer(u8, u8),
    Pass(u32),
    Close,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        8 => (0..6_u8, 0..2_u8, 0..20_u8).prop_map(|(object, reason, note)| Act::Record(object, reason, note)),
        5 => Just(Act::Send),
        5 => (0..8_u8, 0..8_u8).prop_map(|(which, outcome)| Act::Answer(which, outcome)),
        2 => (0..2000_u32).prop_map(Act::Pass),
        1 => Just(Act::Close),
    ];
    proptest::collection::vec(act, 1..300)
}

proptest! {
    /// Whatever happens: the invariants hold, no event is told twice, and each is accounted for in the end.
    #[test]
    fn every_event_is_told_dropped_or_remembered(acts in acts(), is_core in any::<bool>()) {
        let limits = Limits { queue_len_max: 5, cache_len_max: 12, in_flight_max: 3, burst: 8, ..Limits::default() };
        let mut bench = Bench::with(if is_core { CoreV1 } else { EventsV1 }, limits);
        let mut flying: Vec<(u64, Write)> = Vec::new();
        let mut told = 0;
        let mut known: HashMap<String, u64> = HashMap::new();
        let mut answer = |bench: &mut Bench, (ticket, write): (u64, Write), outcome: Outcome| {
            if outcome == Outcome::Done {
                let before = known.insert(write.name.clone(), count_in(&write)).unwrap_or(0);
                told += count_in(&write) - before;
            }
            if outcome == Outcome::NotFound {
                // It is gone, with what it told.
                told -= known.remove(&write.name).unwrap_or(0);
            }
            bench.answer(ticket, outcome);
        };
        for act in acts {
            match act {
                Act::Record(object, reason, note) => {
                    bench.record(&format!("x{object}"), &format!("R{reason}"), &format!("n{note}"));
                }
                Act::Send => flying.extend(bench.send()),
                Act::Answer(which, outcome) if !flying.is_empty() => {
                    let flight = flying.remove(usize::from(which) % flying.len());
                    let outcome = match (outcome, flight.1.verb) {
                        (0, Patch) => Outcome::NotFound,
                        (1, _) => Outcome::Refused,
                        (2, _) => Outcome::Failed,
                        _ => Outcome::Done,
                    };
                    answer(&mut bench, flight, outcome);
                }
                Act::Answer(..) => {}
                Act::Pass(seconds) => bench.pass(secs(seconds.into())),
                Act::Close => bench.outbox.close(),
            }
            prop_assert!(flying.len() <= 3);
        }
        bench.outbox.close();
        loop {
            for flight in std::mem::take(&mut flying) {
                answer(&mut bench, flight, Outcome::Done);
            }
            match bench.send() {
                Some(flight) => flying.push(flight),
                None if flying.is_empty() => break,
                None => {}
            }
        }
        prop_assert_eq!(bench.outbox.next(bench.now, bench.wall), Step::Drained);
        let stats = bench.outbox.stats();
        let kept: u64 = bench.outbox.series.keys().filter_map(|key| bench.outbox.series.peek(key))
            .map(|series| u64::from(series.seen.count - series.written)).sum();
        let dropped = stats.dropped_queue_full + stats.dropped_shut_down + stats.dropped_refused
            + stats.dropped_failed + stats.lost_counts;
        prop_assert_eq!(told + dropped + kept, stats.recorded, "{} {:?} {}", told, stats, kept);
        prop_assert!(kept <= stats.filtered);
    }
}

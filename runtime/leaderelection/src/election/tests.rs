use k8s_openapi::jiff::SignedDuration;

use super::*;

const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// One candidate, its clock, and a lock that the test plays.
struct Bench {
    election: Election,
    start: Instant,
    now: Instant,
    wall: Timestamp,
}

impl Bench {
    fn new(settings: Settings) -> Self {
        let start = Instant::now();
        let election = Election::new("a", settings, 1).unwrap();
        Self { election, start, now: start, wall: Timestamp::from_second(1_000_000).unwrap() }
    }

    fn next(&mut self) -> Step {
        let step = self.election.next(self.now, self.wall);
        self.election.validate();
        step
    }

    /// The request that is to be sent now.
    fn request(&mut self) -> (u64, Request) {
        match self.next() {
            Step::Send { ticket, request, .. } => (ticket, request),
            other => panic!("want a request at {:?}, got {other:?}", self.now - self.start),
        }
    }

    fn answer(&mut self, ticket: u64, outcome: Outcome) {
        self.election.answer(ticket, outcome, self.now);
        self.election.validate();
    }

    /// Lets time pass until there is a request, for so long at most; the time that passed.
    fn until_request(&mut self, most: Duration) -> Option<(Duration, u64, Request)> {
        let begin = self.now;
        loop {
            match self.next() {
                Step::Send { ticket, request, .. } => return Some((self.now - begin, ticket, request)),
                Step::Wait(at) if at - begin <= most => self.pass(at - self.now),
                _ => return None,
            }
        }
    }

    fn pass(&mut self, by: Duration) {
        self.now += by;
        self.wall += by;
    }

    /// Answers a get, and gives the next request if it comes at once.
    fn read(&mut self, found: Option<&Versioned>) -> Option<(u64, Request)> {
        let (ticket, request) = self.request();
        assert_eq!(request, Request::Get);
        self.answer(ticket, found.map_or(Outcome::NotFound, |found| Outcome::Found(found.clone())));
        self.until_request(Duration::ZERO).map(|(_, ticket, request)| (ticket, request))
    }

    /// Makes it the leader of a lease that was not there.
    fn lead(&mut self) -> Record {
        let Some((ticket, Request::Create(record))) = self.read(None) else { panic!("no create") };
        self.answer(ticket, Outcome::Written(Versioned { record: record.clone(), version: "1".into() }));
        assert!(self.election.is_leader(self.now));
        record
    }

    fn notices(&mut self) -> Vec<Notice> {
        self.election.take_notices()
    }
}

fn held(holder: &str, duration: i32, version: &str) -> Versioned {
    let time = Timestamp::from_second(500).ok();
    let record = Record {
        holder: holder.into(),
        lease_duration_seconds: duration,
        acquire_time: time,
        renew_time: time,
        transitions: 4,
        preferred_holder: String::new(),
    };
    Versioned { record, version: version.into() }
}

fn release() -> Settings {
    Settings { release_on_stop: true, ..Settings::default() }
}

#[test]
fn without_an_object_it_is_made_with_no_transitions() {
    let mut bench = Bench::new(Settings::default());
    let record = bench.lead();
    assert_eq!((record.holder.as_str(), record.transitions, record.lease_duration_seconds), ("a", 0, 15));
    assert_eq!(record.acquire_time, Some(bench.wall));
    let until = bench.now + secs(10);
    assert_eq!(bench.notices(), [Notice::NewHolder("a".into()), Notice::Started { until, transitions: 0 }]);
}

#[test]
fn what_is_seen_decides_whether_the_lease_is_taken() {
    let empty = Versioned { record: Record::default(), version: "7".into() };
    for (found, taken) in [
        (empty, Some(1)),              // an object without a record
        (held("", 15, "7"), Some(5)),  // free, though just seen
        (held("a", 15, "7"), Some(4)), // ours, from a process before
        (held("b", 15, "7"), None),    // somebody else's
    ] {
        let mut bench = Bench::new(Settings::default());
        let next = bench.read(Some(&found));
        match (next, taken) {
            (Some((_, Request::Update(update))), Some(transitions)) => {
                assert_eq!(update.version, "7");
                assert_eq!((update.record.holder.as_str(), update.record.transitions), ("a", transitions), "{found:?}");
                let keeps = found.record.holder == "a";
                assert_eq!(update.record.acquire_time == found.record.acquire_time, keeps);
            }
            (None, None) => assert_eq!(bench.notices(), [Notice::NewHolder("b".into())]),
            (next, _) => panic!("{found:?}: {next:?}"),
        }
    }
}

#[test]
fn a_lease_is_taken_when_it_was_seen_unchanged_for_as_long_as_it_says() {
    let mut bench = Bench::new(Settings::default());
    let found = held("b", 3, "7");
    assert_eq!(bench.read(Some(&found)), None);
    let mut taken_after = None;
    let first_seen = bench.now;
    while taken_after.is_none() {
        let (_, ticket, request) = bench.until_request(secs(5)).unwrap();
        match request {
            Request::Get => bench.answer(ticket, Outcome::Found(found.clone())),
            Request::Update(update) => {
                assert_eq!(update.record.transitions, 5);
                taken_after = Some(bench.now - first_seen);
            }
            other => panic!("{other:?}"),
        }
    }
    let taken_after = taken_after.unwrap();
    assert!(taken_after >= secs(3) && taken_after <= secs(3) + secs(2).mul_f64(2.2), "{taken_after:?}");
}

#[test]
fn each_change_of_the_record_starts_the_wait_anew_and_a_change_around_it_does_not() {
    let mut bench = Bench::new(Settings::default());
    assert_eq!(bench.read(Some(&held("b", 15, "1"))), None);
    let mut found = held("b", 15, "1");
    for round in 0..20_u32 {
        let (_, ticket, request) = bench.until_request(secs(5)).unwrap();
        assert_eq!(request, Request::Get, "round {round}: a holder that renews is not robbed");
        found.record.renew_time = Timestamp::from_second(i64::from(round)).ok();
        bench.answer(ticket, Outcome::Found(found.clone()));
    }
    let changed = bench.now;
    loop {
        let (_, ticket, request) = bench.until_request(secs(5)).unwrap();
        if request != Request::Get {
            break;
        }
        found.version += "1"; // a label
        bench.answer(ticket, Outcome::Found(found.clone()));
    }
    let waited = bench.now - changed;
    assert!(waited >= secs(15) && waited <= secs(15) + secs(2).mul_f64(2.2), "{waited:?}");
}

#[test]
fn a_record_that_says_no_duration_holds_for_ours() {
    for duration in [0, -1] {
        let mut bench = Bench::new(Settings::default());
        let found = held("b", duration, "1");
        assert_eq!(bench.read(Some(&found)), None);
        bench.pass(secs(14));
        assert_eq!(bench.read(Some(&found)), None);
        bench.pass(secs(5));
        assert!(matches!(bench.read(Some(&found)), Some((_, Request::Update(_)))));
    }
}

#[test]
fn times_of_other_machines_decide_nothing() {
    for renewed in [-4_000_000_000, 0, 1_000_000, 9_000_000_000] {
        let mut bench = Bench::new(Settings::default());
        let mut found = held("b", 15, "1");
        found.record.renew_time = Timestamp::from_second(renewed).ok();
        assert_eq!(bench.read(Some(&found)), None, "not stolen at first sight: {renewed}");
        bench.pass(secs(20));
        assert!(matches!(bench.read(Some(&found)), Some((_, Request::Update(_)))), "taken in time: {renewed}");
    }
}

#[test]
fn steps_of_the_own_wall_clock_change_nothing() {
    let mut bench = Bench::new(Settings::default());
    bench.lead();
    for step in [3600, -7200, 3600] {
        bench.wall += SignedDuration::from_secs(step);
        let (waited, ticket, request) = bench.until_request(secs(5)).unwrap();
        let Request::Update(update) = request else { panic!("{request:?}") };
        assert_eq!((waited, update.record.transitions), (secs(2), 0));
        bench.answer(ticket, Outcome::Written(update));
        assert!(bench.election.is_leader(bench.now + secs(9)));
    }
    assert!(bench.notices().iter().all(|notice| !matches!(notice, Notice::Ended(_))));
}

/// One that shows what was written last would make a renewal that changes nothing, and so nobody would see.
#[test]
fn each_renewal_changes_the_record_wherever_the_wall_clock_jumps_to() {
    let at = |micros: u64| Timestamp::from_second(1_000_000).unwrap() + Duration::from_micros(micros);
    let ends = [Timestamp::MAX, Timestamp::MAX, Timestamp::MAX, Timestamp::MIN, Timestamp::MIN];
    for walls in [[at(0), at(0), at(1), at(1), at(2)], [at(5), at(0), at(5), at(6), at(5)], ends] {
        let mut bench = Bench::new(Settings::default());
        bench.wall = walls[0];
        let mut before = bench.lead().renew_time;
        for wall in &walls[1..] {
            bench.now += secs(2);
            let step = bench.election.next(bench.now, *wall);
            let Step::Send { ticket, request: Request::Update(update), .. } = step else { panic!("{step:?}") };
            assert_ne!(update.record.renew_time, before, "at {wall} of {walls:?}");
            before = update.record.renew_time;
            bench.answer(ticket, Outcome::Written(update));
        }
    }
}

#[test]
fn each_renewal_changes_the_record_though_the_wall_clock_stands_still() {
    let mut bench = Bench::new(Settings::default());
    let mut times = vec![bench.lead().renew_time];
    let wall = bench.wall;
    for _ in 0..5 {
        let (_, ticket, request) = bench.until_request(secs(2)).unwrap();
        let Request::Update(update) = request else { panic!("{request:?}") };
        assert!(!times.contains(&update.record.renew_time), "others would not see that it was renewed");
        times.push(update.record.renew_time);
        bench.answer(ticket, Outcome::Written(update));
        bench.wall = wall;
    }
}

#[test]
fn a_leader_renews_without_reading_and_reads_where_that_fails() {
    let mut bench = Bench::new(Settings::default());
    let record = bench.lead();
    let (_, ticket, request) = bench.until_request(secs(2)).unwrap();
    let Request::Update(update) = request else { panic!("{request:?}") };
    assert_eq!(update.version, "1");
    assert_eq!(update.record.acquire_time, record.acquire_time);
    bench.answer(ticket, Outcome::Conflict);
    bench.notices();
    // Somebody changed a label: the record is what we wrote.
    let found = Versioned { record, version: "2".into() };
    let Some((ticket, Request::Update(update))) = bench.read(Some(&found)) else { panic!("no update") };
    assert_eq!((update.version.as_str(), update.record.transitions), ("2", 0));
    bench.answer(ticket, Outcome::Written(Versioned { version: "3".into(), ..update }));
    let until = bench.now + secs(10);
    assert_eq!(bench.notices(), [Notice::Renewed { until }]);
    let (waited, _, request) = bench.until_request(secs(2)).unwrap();
    assert!(matches!(request, Request::Update(Versioned { version, .. }) if version == "3"));
    assert_eq!(waited, secs(2));
}

#[test]
fn a_term_counts_from_before_its_renewal_was_sent() {
    let mut bench = Bench::new(Settings::default());
    let Some((ticket, Request::Create(record))) = bench.read(None) else { panic!("no create") };
    let sent = bench.now;
    bench.pass(secs(4));
    bench.answer(ticket, Outcome::Written(Versioned { record, version: "1".into() }));
    assert!(bench.election.is_leader(sent + secs(10) - Duration::from_nanos(1)));
    assert!(!bench.election.is_leader(sent + secs(10)));
}

#[test]
fn a_leader_that_cannot_renew_ends_at_its_deadline_and_asks_no_more() {
    let mut bench = Bench::new(Settings::default());
    bench.lead();
    let begin = bench.now;
    let mut requests = 0;
    while let Some((_, ticket, _)) = bench.until_request(secs(10)) {
        requests += 1;
        bench.answer(ticket, Outcome::Failed);
        assert!(bench.now - begin < secs(10));
    }
    assert_eq!(bench.now - begin, secs(10));
    assert_eq!(bench.next(), Step::Done);
    assert!(bench.notices().contains(&Notice::Ended(EndCause::RenewDeadline)));
    assert!(requests <= 10, "{requests} requests in 10 s");
}

#[test]
fn failures_within_the_deadline_cost_nothing() {
    let mut bench = Bench::new(Settings::default());
    bench.lead();
    for _ in 0..3 {
        let (_, ticket, _) = bench.until_request(secs(2)).unwrap();
        bench.answer(ticket, Outcome::Failed); // the fast way
        let (_, ticket, _) = bench.until_request(secs(2)).unwrap();
        bench.answer(ticket, Outcome::Failed); // the slow one
    }
    assert!(bench.election.is_leader(bench.now));
    let Some((ticket, request)) = bench.until_request(secs(2)).map(|(_, ticket, request)| (ticket, request)) else {
        panic!("no request")
    };
    let Request::Update(update) = request else { panic!("{request:?}") };
    bench.answer(ticket, Outcome::Written(update));
    assert!(bench.election.is_leader(bench.now + secs(9)));
}

#[test]
fn an_answer_that_comes_late_or_twice_is_not_heard() {
    let mut bench = Bench::new(Settings::default());
    let Some((ticket, Request::Create(record))) = bench.read(None) else { panic!("no create") };
    let written = Outcome::Written(Versioned { record: record.clone(), version: "1".into() });
    // The process stood still for a while: what it hears now is too old.
    bench.pass(secs(60));
    bench.answer(ticket, written.clone());
    assert!(!bench.election.is_leader(bench.now));
    // It finds the lease as it wrote it, and renews it before it acts.
    let (_, get, request) = bench.until_request(secs(5)).unwrap();
    assert_eq!(request, Request::Get);
    bench.answer(ticket, written.clone());
    bench.answer(get, Outcome::Found(Versioned { record, version: "1".into() }));
    assert!(!bench.election.is_leader(bench.now));
    let (ticket, request) = bench.request();
    let Request::Update(update) = request else { panic!("{request:?}") };
    bench.answer(ticket, Outcome::Written(update));
    assert!(bench.election.is_leader(bench.now));
    bench.answer(ticket, Outcome::Conflict);
    assert!(bench.election.is_leader(bench.now), "the same answer twice");
}

#[test]
fn a_leader_that_sees_the_lease_with_somebody_else_stops_at_once() {
    let other = held("b", 15, "9");
    let mut emptied = held("", 15, "9");
    emptied.record.transitions = 0;
    for (found, cause) in [(other, EndCause::Taken { by: "b".into() }), (emptied, EndCause::Emptied)] {
        let mut bench = Bench::new(Settings::default());
        bench.lead();
        let (_, ticket, _) = bench.until_request(secs(2)).unwrap();
        bench.answer(ticket, Outcome::Conflict);
        assert_eq!(bench.read(Some(&found)), None);
        assert!(!bench.election.is_leader(bench.now));
        assert!(bench.notices().contains(&Notice::Ended(cause)));
        assert_eq!(bench.next(), Step::Done);
    }
}

#[test]
fn a_lease_that_was_deleted_is_made_anew_and_goes_on_counting() {
    let mut bench = Bench::new(Settings::default());
    let Some((ticket, Request::Update(update))) = bench.read(Some(&held("", 15, "1"))) else { panic!("no update") };
    bench.answer(ticket, Outcome::Written(update));
    let (_, ticket, _) = bench.until_request(secs(2)).unwrap();
    bench.answer(ticket, Outcome::NotFound);
    let Some((ticket, Request::Create(record))) = bench.read(None) else { panic!("no create") };
    assert_eq!(record.transitions, 5);
    bench.answer(ticket, Outcome::Written(Versioned { record, version: "8".into() }));
    assert!(bench.election.is_leader(bench.now + secs(9)));
}

#[test]
fn two_of_one_identity_are_noticed_by_the_first_who_reads_and_it_steps_down() {
    let mut bench = Bench::new(Settings::default());
    let mut foreign = Versioned { record: bench.lead(), version: "5".into() };
    foreign.record.renew_time = Timestamp::from_second(77).ok();
    let (_, ticket, _) = bench.until_request(secs(2)).unwrap();
    bench.answer(ticket, Outcome::Conflict);
    assert_eq!(bench.read(Some(&foreign)), None);
    let notices = bench.notices();
    assert!(notices.contains(&Notice::SharedIdentity) && notices.contains(&Notice::Ended(EndCause::SharedIdentity)));
    // And it does not steal it back: it waits as for anybody else's.
    bench.election.contend();
    assert_eq!(bench.read(Some(&foreign)), None);
    bench.pass(secs(20));
    assert!(matches!(bench.read(Some(&foreign)), Some((_, Request::Update(_)))));
}

#[test]
fn who_stops_before_ever_leading_writes_nothing() {
    let mut bench = Bench::new(release());
    bench.read(Some(&held("b", 15, "1")));
    bench.notices();
    bench.election.stop(bench.now, true);
    assert_eq!((bench.next(), bench.notices()), (Step::Done, vec![]));

    let mut bench = Bench::new(release());
    bench.request();
    bench.election.stop(bench.now, true);
    assert_eq!((bench.next(), bench.notices()), (Step::Done, vec![]), "while it reads");
}

#[test]
fn a_release_reads_then_empties_what_is_ours_and_tries_again_after_a_conflict() {
    let mut bench = Bench::new(release());
    let record = bench.lead();
    bench.notices();
    bench.election.stop(bench.now, true);
    assert!(!bench.election.is_leader(bench.now));
    assert_eq!(bench.notices(), [Notice::Ended(EndCause::Stopped)]);
    for (version, outcome) in [("1", Some(Outcome::Conflict)), ("2", None)] {
        let found = Versioned { record: record.clone(), version: version.into() };
        let Some((ticket, Request::Update(update))) = bench.read(Some(&found)) else { panic!("no update") };
        assert_eq!(update.version, version);
        assert_eq!((update.record.holder.as_str(), update.record.lease_duration_seconds), ("", 1));
        assert_eq!(update.record.transitions, record.transitions);
        bench.answer(ticket, outcome.unwrap_or(Outcome::Written(update)));
    }
    assert_eq!(bench.next(), Step::Done);
    assert_eq!(bench.notices(), [Notice::NewHolder(String::new()), Notice::Released]);
}

#[test]
fn a_release_leaves_what_is_not_ours_any_more() {
    let mut bench = Bench::new(release());
    let mut twin = Versioned { record: bench.lead(), version: "5".into() };
    twin.record.renew_time = Timestamp::from_second(77).ok();
    for found in [Some(held("b", 15, "9")), Some(held("", 15, "9")), Some(twin), None] {
        let mut bench = Bench::new(release());
        bench.lead();
        bench.election.stop(bench.now, true);
        assert_eq!(bench.read(found.as_ref()), None, "{found:?}");
        assert_eq!(bench.next(), Step::Done);
    }
}

#[test]
fn a_release_that_fails_ends_at_the_renew_deadline_and_does_not_hammer() {
    for outcome in [Outcome::Failed, Outcome::Conflict] {
        let mut bench = Bench::new(release());
        let record = bench.lead();
        bench.election.stop(bench.now, true);
        let begin = bench.now;
        let mut requests = 0;
        while let Some((_, ticket, request)) = bench.until_request(secs(10)) {
            requests += 1;
            let found = Outcome::Found(Versioned { record: record.clone(), version: requests.to_string() });
            bench.answer(ticket, if request == Request::Get && requests > 1 { found } else { outcome.clone() });
        }
        assert_eq!(bench.next(), Step::Done);
        assert!(bench.now - begin <= secs(10), "{outcome:?}: {:?}", bench.now - begin);
        assert!((3..40).contains(&requests), "{requests} requests");
    }
}

#[test]
fn a_stop_while_the_lease_is_being_taken_starts_nothing_and_gives_it_back() {
    for is_late in [false, true] {
        let mut bench = Bench::new(release());
        let Some((ticket, Request::Create(record))) = bench.read(None) else { panic!("no create") };
        bench.notices();
        bench.election.stop(bench.now, true);
        let written = Versioned { record: record.clone(), version: "1".into() };
        if is_late {
            // Nobody knows whether it was taken: look.
            bench.answer(ticket, Outcome::Failed);
            let (_, ticket, request) = bench.until_request(secs(2)).unwrap();
            assert_eq!(request, Request::Get);
            bench.answer(ticket, Outcome::Found(written));
        } else {
            bench.answer(ticket, Outcome::Written(written));
        }
        let (_, Request::Update(update)) = bench.request() else { panic!("no release") };
        assert_eq!(update.record.holder, "");
        let started = bench.notices().iter().any(|notice| matches!(notice, Notice::Started { .. }));
        assert!(!started);
    }
}

#[test]
fn without_release_a_stop_asks_nothing() {
    let mut bench = Bench::new(Settings::default());
    bench.lead();
    bench.election.stop(bench.now, true);
    assert_eq!(bench.next(), Step::Done);
    let mut bench = Bench::new(release());
    bench.lead();
    bench.election.stop(bench.now, false);
    assert_eq!(bench.next(), Step::Done);
}

#[test]
fn in_a_coordinated_election_others_choose() {
    let coordinated = Settings { coordinated: true, ..Settings::default() };
    let mut wanted = held("a", 15, "1");
    wanted.record.preferred_holder = "b".into();
    for (found, renews) in [
        (None, false),                     // none is made
        (Some(held("b", 15, "1")), false), // another's is left
        (Some(held("", 15, "1")), false),  // a free one too
        (Some(wanted), false),             // somebody else is to have it
        (Some(held("a", 15, "1")), true),
    ] {
        let mut bench = Bench::new(coordinated);
        let next = bench.read(found.as_ref());
        assert_eq!(next.is_some(), renews, "{found:?}: {next:?}");
        if found.is_some() && !renews {
            bench.pass(secs(60));
            assert_eq!(bench.read(found.as_ref()), None, "not when it is over either");
        }
    }
}

#[test]
fn who_lost_contends_again_with_what_it_knows() {
    let mut bench = Bench::new(Settings::default());
    let record = bench.lead();
    bench.pass(secs(10));
    assert_eq!(bench.next(), Step::Done);
    bench.election.contend();
    // Nobody took it meanwhile.
    let found = Versioned { record, version: "1".into() };
    let Some((ticket, Request::Update(update))) = bench.read(Some(&found)) else { panic!("no update") };
    assert_eq!(update.record.transitions, 0);
    bench.answer(ticket, Outcome::Written(update));
    assert!(bench.election.is_leader(bench.now));
}

#[test]
fn a_candidate_waits_one_to_two_periods_and_a_fifth_between_tries() {
    let mut bench = Bench::new(Settings::default());
    let mut waits = Vec::new();
    for _ in 0..200 {
        let (waited, ticket, _) = bench.until_request(secs(5)).unwrap();
        bench.answer(ticket, Outcome::Failed);
        waits.push(waited.as_secs_f64());
    }
    waits.remove(0);
    let (least, most) = (waits.iter().copied().fold(9.0, f64::min), waits.iter().copied().fold(0.0, f64::max));
    assert!((2.0..2.2).contains(&least) && (4.2..=4.4).contains(&most), "{least} {most}");
}

#[test]
fn a_candidate_looks_at_the_lease_when_it_is_over_and_not_a_try_later() {
    for seed in 0..100 {
        let mut bench = Bench::new(Settings::default());
        bench.election = Election::new("a", Settings::default(), seed).unwrap();
        let found = held("b", 15, "1");
        assert_eq!(bench.read(Some(&found)), None);
        let seen = bench.now;
        let taken = loop {
            let (_, ticket, request) = bench.until_request(secs(5)).unwrap();
            match request {
                Request::Get => bench.answer(ticket, Outcome::Found(found.clone())),
                _ => break bench.now - seen,
            }
        };
        assert_eq!(taken, secs(15), "seed {seed}");
    }
}

#[test]
fn an_empty_identity_is_refused() {
    assert_eq!(Election::new("", Settings::default(), 1).unwrap_err(), SettingsError::NoIdentity);
}

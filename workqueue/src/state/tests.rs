//! The rules as tables, and against a naive queue.

use std::hash::BuildHasher;
use std::time::Duration;

use hashbrown::DefaultHashBuilder;
use proptest::prelude::*;

use super::*;
use crate::order::Fifo;

/// A state whose keys are letters and whose clock counts milliseconds.
struct Bench {
    state: State<char>,
    hasher: DefaultHashBuilder,
    start: Instant,
    millis: u64,
}

impl Bench {
    fn new() -> Self {
        Self {
            state: State::new(Box::new(Fifo::default())),
            hasher: DefaultHashBuilder::default(),
            start: Instant::now(),
            millis: 0,
        }
    }

    fn now(&self) -> Instant {
        self.start + Duration::from_millis(self.millis)
    }

    fn hash(&self, key: char) -> u64 {
        self.hasher.hash_one(key)
    }

    fn add(&mut self, key: char) -> bool {
        let now = self.now();
        self.state.add(self.hash(key), &mut Some(key), 0, || now)
    }

    fn add_after(&mut self, key: char, millis: u64) {
        self.state.add_at(self.hash(key), &mut Some(key), 0, self.now() + Duration::from_millis(millis));
    }

    fn cancel(&mut self, key: char) -> bool {
        self.state.cancel(self.hash(key), &key).is_some()
    }

    fn get(&mut self) -> Option<char> {
        self.state.get(self.now()).map(|hand_out| *self.state.key(&hand_out))
    }

    /// Gets a key; how many milliseconds it has waited.
    fn waited(&mut self) -> u128 {
        (self.now() - self.state.get(self.now()).unwrap().since).as_millis()
    }

    fn done(&mut self, key: char) -> bool {
        self.state.done_key(self.hash(key), &key, &mut None).is_some()
    }

    fn advance(&mut self, millis: u64) -> u64 {
        self.millis += millis;
        self.state.promote(self.now())
    }

    /// Runs a script: `+a` add, `~a50` add after 50 ms, `-a` cancel the delay, `>` advance by 10 ms, `.a` done, `!` shut
    /// down; and a bare letter is a get that must give it, `_` one that must give nothing.
    fn run(&mut self, script: &str) {
        for step in script.split_whitespace() {
            let mut chars = step.chars();
            let op = chars.next().unwrap();
            let key = chars.next().unwrap_or(' ');
            match op {
                '+' => _ = self.add(key),
                '~' => self.add_after(key, chars.as_str().parse().unwrap()),
                '-' => _ = self.cancel(key),
                '>' => _ = self.advance(10),
                '.' => _ = self.done(key),
                '!' => self.shut_down(),
                '_' => assert_eq!(self.get(), None, "{script}"),
                want => assert_eq!(self.get(), Some(want), "{script}"),
            }
            self.state.validate();
        }
    }

    fn shut_down(&mut self) {
        self.state.shut_down();
        while !self.state.drop_delayed().is_empty() {}
    }
}

#[test]
fn rules_of_the_queue_as_a_table() {
    #[rustfmt::skip]
    let table = [
        // keys come out as they went in, each once
        "+a +b +a a b _",
        // added while processed: waits again when done, as the last
        "+a +b +c a +a .a b c a _",
        "+a a +a _ .a a .a _",
        "+a a +a +a +a _ .a a .a _",
        // done of what is not processed: nothing
        ".a +a .a .a a _ .a .a _",
        // delays: the earliest counts, at its moment and not before
        "~a50 > > > > _ > a .a > > _",
        "~a50 ~a70 > > > > > a .a > > _",
        "~a50 ~a30 > > > a .a > > _",
        // due in the order of their moments, those of one moment as they were added
        "~a30 ~b20 ~c10 ~d20 > > > c b d a _",
        // an add takes no delay back, a cancel does
        "~a20 +a a .a _ > > a _",
        "~a20 -a > > > _",
        "~a20 +a -a a .a > > > _",
        // due while it waits: once; due while it is processed: when done
        "~a10 +a > a _ .a _",
        "~a10 +a a > _ .a a .a _",
        // shut down: what waits and what is dirty still comes, nothing else
        "+a +b a +a ! +c +a b .a a .a _ .b _",
        "~a10 +b ! > > b .b _",
        "~a10 +a a ! > .a _",
    ];
    for script in table {
        Bench::new().run(script);
    }
}

#[test]
fn priorities_of_a_prioritized_queue_as_a_table() {
    // `+a1` adds at priority 1, `~a30,1` after 30 ms at priority 1; `a1` is a get that must give a at priority 1.
    #[rustfmt::skip]
    let table = [
        // the highest first, as they went in among equals
        "+a0 +b1 +c0 +d1 b1 d1 a0 c0 _",
        // the highest of several counts
        "+a1 +a2 a2 .a +a2 +a1 a2 _",
        // what is raised goes to the end of its new priority; what is not keeps its place
        "+a0 +b1 +a1 b1 a1 _",
        "+a0 +b0 +c0 +c1 c1 a0 b0 _",
        "+a0 +b0 +a0 a0 b0 _",
        // a default add lifts what waits low
        "+a-9 +b-9 +b0 b0 a-9 _",
        // what waits is not delayed beside; an add takes the delay up, with the higher priority
        "+a0 ~a10,5 a5 .a > > _",
        "~a20,3 +a0 a3 .a > > > _",
        // the earlier moment and the higher priority
        "~a30,0 ~a50,9 > > _ > a9 .a > > _",
        "~a50,0 ~a30,0 > > > a0 .a > > _",
        // low and ready, high and due before the get
        "+a0 ~b10,1 > b1 a0 _",
        // due at one moment: by priority, then as they were added
        "~a10,0 ~b10,1 ~c10,0 > b1 a0 c0 _",
        // what is added while it is processed is an entry of its own; others pass
        "+a9 a9 +a-9 +b-8 _b b-8 .a a-9 .b _",
        "+a9 a9 +a-9 +a3 .a a3 _",
        "+a9 a9 ~a10,4 _ .a _ > a4 _",
        "+a9 a9 +a1 ~a10,4 .a a4 .a > > _",
        // a cancel takes the delay back with its priority
        "~a20,7 -a +a0 a0 _",
    ];
    for script in table {
        run_prioritized(script, Duration::ZERO);
    }
}

#[test]
fn waiting_is_worth_priority_where_it_ages() {
    // A step is worth 10 ms.
    #[rustfmt::skip]
    let table = [
        "+a-2 > +b0 > > +c0 b0 a-2 c0 _",
        // equal after its waiting: as they went in
        "+a-1 > +b0 a-1 b0 _",
        // what is raised keeps the time it has waited
        "+a-5 > > +b0 +a0 a0 b0 _",
    ];
    for script in table {
        run_prioritized(script, Duration::from_millis(10));
    }
}

fn run_prioritized(script: &str, aging: Duration) {
    let mut bench = Bench::new();
    bench.state = State::new(Box::new(crate::order::ByAddedPriority::new().aging(aging)));
    bench.state.merge();
    bench.state.gather_moves();
    for step in script.split_whitespace() {
        let mut chars = step.chars();
        let op = chars.next().unwrap();
        let number = |text: &str| text.parse::<i32>().unwrap_or_else(|_| panic!("{step} in {script}"));
        match op {
            '+' => {
                let key = chars.next().unwrap();
                let now = bench.now();
                bench.state.add(bench.hash(key), &mut Some(key), number(chars.as_str()), || now);
            }
            '~' => {
                let key = chars.next().unwrap();
                let (millis, priority) = chars.as_str().split_once(',').unwrap();
                let due = bench.now() + Duration::from_millis(millis.parse().unwrap());
                bench.state.add_at(bench.hash(key), &mut Some(key), number(priority), due);
            }
            '-' => _ = bench.cancel(chars.next().unwrap()),
            '>' => _ = bench.advance(10),
            '.' => _ = bench.done(chars.next().unwrap()),
            '_' if chars.as_str().is_empty() => assert_eq!(bench.get(), None, "{step} in {script}"),
            '_' => {}
            key => {
                let got = bench.state.get(bench.now()).map(|hand_out| (*bench.state.key(&hand_out), hand_out.priority));
                assert_eq!(got, Some((key, number(chars.as_str()))), "{step} in {script}");
            }
        }
        bench.state.validate();
    }
}

/// The depth by priority never goes below zero, and says what is pending.
#[test]
fn depth_moves_with_a_key_that_is_raised_while_it_waits() {
    let mut state = State::new(Box::new(crate::order::ByAddedPriority::new()));
    state.merge();
    state.gather_moves();
    let (now, later) = (Instant::now(), Instant::now() + Duration::from_secs(1));
    state.add(1, &mut Some('a'), 0, || now);
    assert_eq!(state.take_moves(), [(0, 1)]);
    state.add(1, &mut Some('a'), 1, || now);
    assert_eq!(state.take_moves(), [(0, -1), (1, 1)]);
    let hand_out = state.get(now).unwrap();
    assert_eq!(state.take_moves(), [(1, -1)]);
    state.add_at(1, &mut Some('a'), 5, later);
    state.add_at(1, &mut Some('a'), 6, later);
    assert!(state.take_moves().is_empty(), "what is delayed is not there yet");
    state.add(1, &mut Some('a'), 2, || now);
    assert_eq!(state.take_moves(), [(6, 1)]);
    state.add(1, &mut Some('a'), 7, || now);
    assert_eq!(state.take_moves(), [(6, -1), (7, 1)]);
    state.done(hand_out.claim, &mut None);
    assert!(state.take_moves().is_empty());
    assert_eq!(state.get(now).map(|hand_out| hand_out.priority), Some(7));
    assert_eq!(state.take_moves(), [(7, -1)]);
}

#[test]
fn shut_down_counts_the_delayed_keys_that_it_drops() {
    let mut bench = Bench::new();
    bench.run("~a10 ~b20 ~c30 +c > ! !");
    assert_eq!(bench.state.dropped(), 2, "a was due");
    assert_eq!(bench.state.delayed(), 0);
    assert_eq!(bench.state.len(), 2);
    bench.run("~d10 > > c a _");
}

/// They are dropped in steps, without the lock in between.
#[test]
fn a_delayed_key_that_a_shut_down_has_not_dropped_yet_wakes_up_no_more() {
    let mut bench = Bench::new();
    bench.run("~a10");
    bench.state.shut_down();
    assert_eq!(bench.advance(20), 0);
    assert_eq!(bench.get(), None);
}

#[test]
fn a_hand_out_is_finished_once_and_by_itself_only() {
    let mut bench = Bench::new();
    bench.add('a');
    let first = bench.state.get(bench.now()).unwrap();
    assert!(bench.done('a'));
    bench.add('a');
    let second = bench.state.get(bench.now()).unwrap();
    assert_ne!(first.claim, second.claim);
    assert!(bench.state.done(first.claim, &mut None).is_none(), "that hand-out is over");
    assert_eq!(bench.state.processing(), 1);
    assert!(bench.state.done(second.claim, &mut None).is_some());
    bench.state.validate();
}

#[test]
fn waiting_counts_from_the_first_accepted_add_and_delays_from_their_moment() {
    let mut bench = Bench::new();
    bench.add('a');
    bench.millis = 5;
    assert!(!bench.add('a'));
    assert_eq!(bench.waited(), 5);
    bench.millis = 7;
    assert!(bench.add('a'));
    bench.millis = 10;
    assert!(bench.done('a'));
    bench.millis = 20;
    assert_eq!(bench.waited(), 13, "from the add while it was processed");
    bench.add_after('b', 10);
    assert_eq!(bench.advance(100), 1);
    assert_eq!(bench.waited(), 90);
}

/// An order that loses what it is given, and then one that gives everything back twice.
#[test]
fn an_order_that_errs_costs_no_key() {
    struct Loses;
    impl Order<char> for Loses {
        fn push(&mut self, _: Item<'_, char>) {}
        fn pop(&mut self) -> Option<Slot> {
            None
        }
    }
    struct Doubles(Vec<Slot>);
    impl Order<char> for Doubles {
        fn push(&mut self, item: Item<'_, char>) {
            self.0.extend([item.slot; 2]);
        }
        fn pop(&mut self) -> Option<Slot> {
            self.0.pop()
        }
    }
    let orders: [Box<dyn Order<char>>; 2] = [Box::new(Loses), Box::new(Doubles(Vec::new()))];
    for order in orders {
        let mut bench = Bench::new();
        bench.state = State::new(order);
        for key in ['a', 'b', 'c'] {
            bench.add(key);
        }
        let mut got: Vec<_> = (0..3).filter_map(|_| bench.get()).collect();
        got.sort_unstable();
        assert_eq!(got, ['a', 'b', 'c']);
        assert_eq!(bench.get(), None);
        bench.state.validate();
    }
}

#[test]
fn an_emptied_state_gives_its_memory_back() {
    let mut state = State::new(Box::new(Fifo::default()));
    let hasher = DefaultHashBuilder::default();
    let now = Instant::now();
    for key in 0..100_000_u32 {
        state.add(hasher.hash_one(key), &mut Some(key), 0, || now);
        state.add_at(hasher.hash_one(key), &mut Some(key), 0, now + Duration::from_secs(1));
    }
    while let Some(hand_out) = state.get(now) {
        state.done(hand_out.claim, &mut None);
    }
    assert_eq!((state.len(), state.delayed()), (0, 100_000));
    state.validate();
    state.shut_down();
    while !state.drop_delayed().is_empty() {}
    assert_eq!(state.keys.capacity(), 0);
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Add(char),
    AddAfter(char, u64),
    Cancel(char),
    Get,
    Done(char),
    Advance(u64),
    ShutDown,
}

fn op() -> impl Strategy<Value = Op> {
    let key = || prop::sample::select(vec!['a', 'b', 'c', 'd', 'e']);
    prop_oneof![
        30 => key().prop_map(Op::Add),
        20 => (key(), 1..30_u64).prop_map(|(key, delay)| Op::AddAfter(key, delay)),
        5 => key().prop_map(Op::Cancel),
        30 => Just(Op::Get),
        30 => key().prop_map(Op::Done),
        20 => (0..20_u64).prop_map(Op::Advance),
        1 => Just(Op::ShutDown),
    ]
}

/// The naive queue: client-go's three sets as lists, and delays as a list.
#[derive(Default)]
struct Oracle {
    waiting: Vec<char>,
    dirty: Vec<char>,
    processing: Vec<char>,
    delayed: Vec<(u64, usize, char)>,
    shutting_down: bool,
    now: u64,
}

impl Oracle {
    fn add(&mut self, key: char) {
        if self.dirty.contains(&key) {
            return;
        }
        self.dirty.push(key);
        if !self.processing.contains(&key) {
            self.waiting.push(key);
        }
    }

    fn apply(&mut self, number: usize, op: Op) -> Option<char> {
        match op {
            Op::Add(key) if !self.shutting_down => self.add(key),
            Op::AddAfter(key, delay) if !self.shutting_down => {
                let due = self.now + delay;
                match self.delayed.iter_mut().find(|entry| entry.2 == key) {
                    Some(entry) if due < entry.0 => (entry.0, entry.1) = (due, number),
                    Some(_) => {}
                    None => self.delayed.push((due, number, key)),
                }
            }
            Op::Add(_) | Op::AddAfter(..) => {}
            Op::Cancel(key) => self.delayed.retain(|entry| entry.2 != key),
            Op::Get => {
                if !self.waiting.is_empty() {
                    let key = self.waiting.remove(0);
                    self.dirty.retain(|other| *other != key);
                    self.processing.push(key);
                    return Some(key);
                }
            }
            Op::Done(key) => {
                if self.processing.contains(&key) {
                    self.processing.retain(|other| *other != key);
                    if self.dirty.contains(&key) {
                        self.waiting.push(key);
                    }
                }
            }
            Op::Advance(millis) => {
                self.now += millis;
                self.delayed.sort_unstable();
                while let Some(&(due, _, key)) = self.delayed.first()
                    && due <= self.now
                {
                    self.delayed.remove(0);
                    self.add(key);
                }
            }
            Op::ShutDown => {
                self.shutting_down = true;
                self.delayed.clear();
            }
        }
        None
    }
}

proptest! {
    #[test]
    fn state_agrees_with_three_lists(ops in proptest::collection::vec(op(), 1..300)) {
        let mut bench = Bench::new();
        let mut oracle = Oracle::default();
        for (number, op) in ops.into_iter().enumerate() {
            let got = match op {
                Op::Add(key) => { bench.add(key); None }
                Op::AddAfter(key, delay) => { bench.add_after(key, delay); None }
                Op::Cancel(key) => { bench.cancel(key); None }
                Op::Get => bench.get(),
                Op::Done(key) => { bench.done(key); None }
                Op::Advance(millis) => { bench.advance(millis); None }
                Op::ShutDown => { bench.shut_down(); None }
            };
            prop_assert_eq!(got, oracle.apply(number, op));
            bench.state.validate();
            prop_assert_eq!(bench.state.len(), oracle.waiting.len());
            prop_assert_eq!(bench.state.processing(), oracle.processing.len());
            prop_assert_eq!(bench.state.delayed(), oracle.delayed.len());
            for key in ['a', 'b', 'c', 'd', 'e'] {
                let known = bench.state.find(bench.hash(key), &key);
                let dirty = known.as_ref().is_some_and(|known| known.waiting.is_some());
                let processing = known.as_ref().is_some_and(|known| known.processing.is_some());
                let due = known.and_then(|known| known.due).map(|due| (due - bench.start).as_millis() as u64);
                prop_assert_eq!(dirty, oracle.dirty.contains(&key));
                prop_assert_eq!(processing, oracle.processing.contains(&key));
                prop_assert_eq!(due, oracle.delayed.iter().find(|entry| entry.2 == key).map(|entry| entry.0));
            }
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Prioritized {
    Add(char, i32),
    AddAfter(char, i32, u64),
    Get,
    Done(char),
    Advance(u64),
}

fn prioritized_op() -> impl Strategy<Value = Prioritized> {
    let key = || prop::sample::select(vec!['a', 'b', 'c', 'd']);
    prop_oneof![
        4 => (key(), -2..3).prop_map(|(key, priority)| Prioritized::Add(key, priority)),
        4 => (key(), -2..3, 1..20_u64).prop_map(|(key, priority, delay)| Prioritized::AddAfter(key, priority, delay)),
        5 => Just(Prioritized::Get),
        5 => key().prop_map(Prioritized::Done),
        3 => (0..15_u64).prop_map(Prioritized::Advance),
    ]
}

/// The pending entry of a key in the naive prioritized queue.
#[derive(Clone, Copy, Debug)]
struct Pending {
    priority: i32,
    /// Until when it is delayed, and which of those of one moment came first; `None`: it is ready.
    delayed: Option<(u64, usize)>,
    /// Which of those of one priority came first: the operation, and which of those that it made ready.
    number: (usize, usize),
}

proptest! {
    /// controller-runtime's rules, written down: an entry a key, the earliest moment and the highest priority; what
    /// becomes ready or is raised goes to the end of its priority; never handed out while it is processed.
    #[test]
    fn a_prioritized_state_agrees_with_a_list_of_entries(
        ops in proptest::collection::vec(prioritized_op(), 1..150),
    ) {
        use std::collections::{BTreeMap, BTreeSet};
        let mut bench = Bench::new();
        bench.state = State::new(Box::new(crate::order::ByAddedPriority::new()));
        bench.state.merge();
        bench.state.gather_moves();
        let mut entries = BTreeMap::<char, Pending>::new();
        let mut processing = BTreeSet::new();
        let mut depth = BTreeMap::<i32, i64>::new();
        let mut now = 0;
        for (number, op) in ops.into_iter().enumerate() {
            match op {
                Prioritized::Add(key, priority) => {
                    let now = bench.now();
                    bench.state.add(bench.hash(key), &mut Some(key), priority, || now);
                    let entry = entries.entry(key).or_insert(Pending { priority, delayed: Some((0, 0)), number: (0, 0) });
                    if entry.delayed.is_some() || priority > entry.priority {
                        entry.number = (number, 0);
                    }
                    (entry.delayed, entry.priority) = (None, entry.priority.max(priority));
                }
                Prioritized::AddAfter(key, priority, delay) => {
                    let due = now + delay;
                    bench.state.add_at(bench.hash(key), &mut Some(key), priority, bench.start + Duration::from_millis(due));
                    let fresh = Pending { priority, delayed: Some((due, number)), number: (0, 0) };
                    let entry = entries.entry(key).or_insert(fresh);
                    if priority > entry.priority {
                        (entry.priority, entry.number) = (priority, (number, 0));
                    }
                    entry.delayed = entry.delayed.map(|delayed| if due < delayed.0 { (due, number) } else { delayed });
                }
                Prioritized::Get => {
                    let ready = entries.iter().filter(|(key, entry)| entry.delayed.is_none() && !processing.contains(*key));
                    let want = ready.max_by_key(|(_, entry)| (entry.priority, std::cmp::Reverse(entry.number)));
                    let want = want.map(|(key, entry)| (*key, entry.priority));
                    let got = bench.state.get(bench.now()).map(|hand_out| (*bench.state.key(&hand_out), hand_out.priority));
                    prop_assert_eq!(got, want);
                    if let Some((key, _)) = want {
                        entries.remove(&key);
                        processing.insert(key);
                    }
                }
                Prioritized::Done(key) => {
                    let was_processed = processing.remove(&key);
                    prop_assert_eq!(bench.done(key), was_processed);
                    if let Some(entry) = entries.get_mut(&key).filter(|_| was_processed) {
                        // It waits from now on.
                        entry.number = (number, 0);
                    }
                }
                Prioritized::Advance(millis) => {
                    bench.advance(millis);
                    now += millis;
                    let mut due: Vec<_> = entries.iter_mut().filter(|(_, entry)| entry.delayed.is_some_and(|(at, _)| at <= now)).collect();
                    due.sort_by_key(|(_, entry)| entry.delayed);
                    for (nth, (_, entry)) in due.into_iter().enumerate() {
                        (entry.delayed, entry.number) = (None, (number, nth));
                    }
                }
            }
            bench.state.validate();
            for (priority, change) in bench.state.take_moves() {
                *depth.entry(priority).or_default() += change;
            }
            let of = |priority| entries.values().filter(|entry| entry.delayed.is_none() && entry.priority == priority).count();
            for (&priority, &count) in &depth {
                prop_assert_eq!(count, of(priority) as i64, "the depth of {}", priority);
            }
        }
    }
}

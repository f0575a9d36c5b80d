//! One queue under one clock.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};

use kubewire_conformance::Stage;
use kubewire_ratelimit::ManualClock;
use kubewire_workqueue::{Guard, Queue, RateLimitingQueue};
use parking_lot::Mutex;

use super::{Answer, Due, Input, Woken};
use crate::limiter::{Limiter, whole_nanos};

/// Steps of time in one `advance` after which somebody is taken to sleep for nothing again and again.
const WAKES_MAX: usize = 1_000_000;

pub(super) struct Subject {
    stage: Stage,
    time: ManualClock,
    start: Instant,
    queue: Queue<String>,
    limited: Option<RateLimitingQueue<String>>,
    /// Keys that were got by `get`; the others are finished by hand.
    guards: HashMap<String, Guard<String>>,
    waits: Arc<Mutex<Waits>>,
    /// Whether the clock runs through time or jumps.
    runs: bool,
}

/// What waits in tasks of its own.
#[derive(Default)]
struct Waits {
    gets: usize,
    woken: Vec<Woken>,
    /// As the traces write it.
    drain: String,
}

impl Subject {
    pub(super) fn new(limiter: Option<Limiter>, runs: bool) -> Self {
        let time = ManualClock::new();
        let queue = Queue::builder().clock(time.clock()).build();
        Self {
            stage: Stage::new(),
            start: time.now(),
            time,
            limited: limiter.map(|limiter| RateLimitingQueue::with_queue(queue.clone(), limiter)),
            queue,
            guards: HashMap::new(),
            waits: Arc::default(),
            runs,
        }
    }

    pub(super) fn step(&mut self, op: &str, input: Input) -> Result<Answer, String> {
        let mut answer = Answer::default();
        let Input { key, delay_ns, by_ns } = input;
        match op {
            "add" => self.queue.add(key),
            "get" => self.get(&mut answer),
            "get_wait" => self.begin_get(),
            "get_all" => {
                while let Ok(guard) = self.queue.try_get() {
                    answer.groups.push(vec![guard.into_key()]);
                }
            }
            "done" => match self.guards.remove(&key) {
                Some(guard) => drop(guard),
                None => _ = self.queue.done(&key),
            },
            "shut_down" => self.queue.shut_down(),
            "shut_down_with_drain" => self.begin_drain(),
            "add_after" => {
                let delay = u64::try_from(delay_ns).map_or(Duration::ZERO, Duration::from_nanos);
                self.queue.add_after(key, delay);
            }
            "add_rate_limited" | "forget" | "num_requeues" => {
                let limited = self.limited.as_ref().ok_or("the queue has no limiter")?;
                match op {
                    "add_rate_limited" => {
                        answer.delay_ns = whole_nanos(limited.add_rate_limited_after(key.clone()));
                    }
                    "forget" => limited.forget(&key),
                    _ => {}
                }
                answer.requeues = limited.num_requeues(&key);
            }
            "advance" => answer.due = self.advance(Duration::from_nanos(by_ns))?,
            _ => return Err(format!("unknown operation {op:?}")),
        }
        self.stage.settle();
        self.observe(&mut answer);
        Ok(answer)
    }

    fn get(&mut self, answer: &mut Answer) {
        if self.queue.is_empty() && !self.queue.is_shutting_down() {
            answer.would_block = true;
            return;
        }
        match self.stage.block_on(self.queue.get()) {
            Some(guard) => {
                answer.key.clone_from(&guard);
                self.guards.insert(answer.key.clone(), guard);
            }
            None => answer.shutdown = true,
        }
    }

    fn begin_get(&self) {
        self.waits.lock().gets += 1;
        let (queue, waits) = (self.queue.clone(), Arc::clone(&self.waits));
        self.stage.spawn(async move {
            let got = queue.get_key().await;
            let mut waits = waits.lock();
            waits.gets -= 1;
            waits.woken.push(Woken { shutdown: got.is_none(), key: got.unwrap_or_default() });
        });
    }

    fn begin_drain(&self) {
        "waiting".clone_into(&mut self.waits.lock().drain);
        let (queue, waits) = (self.queue.clone(), Arc::clone(&self.waits));
        self.stage.spawn(async move {
            queue.shut_down_with_drain().await;
            "returned".clone_into(&mut waits.lock().drain);
        });
    }

    /// Lets time pass, and tells which delayed adds took place when.
    fn advance(&self, by: Duration) -> Result<Vec<Due>, String> {
        let end = self.time.now() + by;
        let mut due: BTreeMap<Instant, Vec<String>> = BTreeMap::new();
        for _ in 0..WAKES_MAX {
            let before = self.delayed();
            let next = if self.runs { self.next_moment(&before).filter(|next| *next <= end) } else { None };
            let now = next.unwrap_or(end);
            self.time.advance(now - self.time.now());
            self.stage.settle();
            let after = self.delayed();
            for (key, moment) in before.into_iter().filter(|(key, _)| !after.contains_key(key)) {
                // A clock that jumps shows only that the moment has passed.
                due.entry(if self.runs { now } else { moment }).or_default().push(key);
            }
            if next.is_none() {
                return Ok(due.into_iter().map(|(moment, keys)| self.due(moment, keys)).collect());
            }
        }
        Err(format!("after {WAKES_MAX} wakes the time is still not {by:?} later"))
    }

    /// The delayed keys with their moments.
    fn delayed(&self) -> BTreeMap<String, Instant> {
        let now = self.time.now();
        self.queue.snapshot().delayed.into_iter().map(|(key, delay)| (key, now + delay)).collect()
    }

    /// The next moment for which somebody sleeps, or at which a key is due.
    fn next_moment(&self, delayed: &BTreeMap<String, Instant>) -> Option<Instant> {
        self.time.next_wake().into_iter().chain(delayed.values().copied()).min()
    }

    fn due(&self, moment: Instant, mut keys: Vec<String>) -> Due {
        keys.sort();
        Due { at_ns: whole_nanos(moment - self.start), keys }
    }

    fn observe(&self, answer: &mut Answer) {
        answer.len = self.queue.len();
        answer.shutting_down = self.queue.is_shutting_down();
        let mut waits = self.waits.lock();
        answer.waiting = waits.gets;
        answer.woken = std::mem::take(&mut waits.woken);
        answer.woken.sort();
        answer.drain.clone_from(&waits.drain);
        if waits.drain == "returned" {
            waits.drain.clear();
        }
    }
}

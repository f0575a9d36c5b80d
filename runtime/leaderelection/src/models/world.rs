//! What the candidates of a model share: time, the server that holds the lease, and who acts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::jiff::Timestamp;
use kubewire_ratelimit::ManualClock;
use shuttle::rand::Rng;
use shuttle::sync::RwLock;
use shuttle::thread;

use crate::sync::{Handle, Mutex, complain};
use crate::{Elector, ElectorBuilder, Leadership, Lock, LockError, LockReference, Record, Settings, Term, Versioned};

pub(super) const fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

/// A number below this one.
pub(super) fn draw(below: u64) -> u64 {
    shuttle::rand::thread_rng().gen_range(0..below)
}

/// A thread, of which one can see that it has ended.
pub(super) struct Running<T> {
    thread: thread::JoinHandle<T>,
    has_ended: Arc<AtomicBool>,
}

/// Runs it in a thread of its own.
pub(super) fn spawn<T: Send + 'static>(run: impl FnOnce() -> T + Send + 'static) -> Running<T> {
    let has_ended = Arc::new(AtomicBool::new(false));
    let told = Arc::clone(&has_ended);
    let thread = thread::spawn(move || {
        let came = run();
        told.store(true, Ordering::SeqCst);
        came
    });
    Running { thread, has_ended }
}

impl<T> Running<T> {
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::SeqCst)
    }

    pub(super) fn join(self) -> T {
        self.thread.join().unwrap()
    }
}

#[derive(Clone)]
pub(super) struct World {
    shared: Arc<Shared>,
}

struct Shared {
    time: ManualClock,
    /// Held by whoever acts; time goes on where nobody does.
    still: RwLock<()>,
    lease: Mutex<(Option<Versioned>, u64)>,
    acting: AtomicUsize,
    /// The number of the last term in which somebody acted.
    last_term: AtomicI32,
}

/// One replica, as far as the server and the checks have to know it.
#[derive(Clone)]
pub(super) struct Replica {
    world: World,
    is_cut_off: Arc<AtomicBool>,
    work: Arc<AtomicUsize>,
    /// Renewals that were sent when the work had ended; none before.
    after_work: Arc<Mutex<Option<usize>>>,
}

impl World {
    pub(super) fn new() -> Self {
        let shared = Shared {
            time: ManualClock::new(),
            still: RwLock::new(()),
            lease: Mutex::default(),
            acting: AtomicUsize::new(0),
            last_term: AtomicI32::new(-1),
        };
        Self { shared: Arc::new(shared) }
    }

    pub(super) fn now(&self) -> Instant {
        self.shared.time.now()
    }

    pub(super) fn holder(&self) -> String {
        self.shared.lease.lock().0.as_ref().map(|lease| lease.record.holder.clone()).unwrap_or_default()
    }

    /// A replica whose work acts each second, and takes up to `winding_down` seconds to end.
    pub(super) fn candidate(&self, name: &str, winding_down: u64) -> (Replica, ElectorBuilder) {
        let replica = Replica {
            world: self.clone(),
            is_cut_off: Arc::default(),
            work: Arc::default(),
            after_work: Arc::default(),
        };
        let (at_work, reads) = (replica.clone(), replica.clone());
        // The least that is safe: a second more than the leader acts.
        let settings = Settings { lease_duration: secs(11), release_on_stop: true, ..Settings::default() };
        let builder = Elector::builder(replica.clone(), name)
            .settings(settings)
            .clock(self.shared.time.clock())
            .wall_clock(move || reads.wall_clock())
            .seed(draw(1000))
            .work_grace(secs(4))
            .on_started_leading(move |term| at_work.clone().lead(term, winding_down));
        (replica, builder)
    }

    /// Lets time pass until it is over, from one moment at which something is due to the next.
    pub(super) fn pass(&self, candidates: &[Leadership], mut is_over: impl FnMut() -> bool) {
        while !is_over() {
            self.expect_one_leader(candidates);
            {
                let _moves = self.shared.still.write();
                let next = self.shared.time.next_wake();
                // Where nobody waits for a moment it goes on as well.
                let by = next.map_or(secs(1), |next| next.saturating_duration_since(self.now()));
                self.shared.time.advance(by);
            }
            thread::yield_now();
        }
    }

    /// Only whoever lets time pass may ask: within one moment, no two terms are valid one in the midst of the other.
    fn expect_one_leader(&self, candidates: &[Leadership]) {
        let Some((index, term)) = candidates.iter().enumerate().find_map(|(i, it)| Some((i, it.term()?))) else {
            return;
        };
        let others = candidates.iter().enumerate().filter(|(other, it)| *other != index && it.is_leader()).count();
        assert!(others == 0 || !term.is_valid(), "two terms at one moment");
    }

    /// Something that only a leader may do.
    fn act(&self, term: &Term) {
        let _stands_still = self.shared.still.read();
        if !term.is_valid() {
            return;
        }
        assert_eq!(self.shared.acting.fetch_add(1, Ordering::SeqCst), 0, "two act at one moment");
        let number = term.transitions();
        let before = self.shared.last_term.swap(number, Ordering::SeqCst);
        assert!(before <= number, "a term of number {number} after one of {before}");
        thread::yield_now();
        self.shared.acting.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Replica {
    /// From now on its requests and the answers to them are lost, those under way too, and where its elector comes to a new
    /// step it stands still.
    pub(super) fn cut_off(&self, is_cut_off: bool) {
        self.is_cut_off.store(is_cut_off, Ordering::SeqCst);
    }

    /// The elector reads it in each step.
    fn wall_clock(&self) -> Timestamp {
        while self.is_cut_off.load(Ordering::SeqCst) {
            shuttle::future::block_on(self.world.shared.time.clock().sleep(secs(1)));
        }
        Timestamp::UNIX_EPOCH
    }

    /// The way of a request to the server, or of its answer, which takes some seconds at times; false where it is lost.
    async fn way(&self) -> bool {
        if draw(8) == 0 {
            self.world.shared.time.clock().sleep(secs(1 + draw(7))).await;
        } else {
            thread::yield_now();
        }
        !self.is_cut_off.load(Ordering::SeqCst)
    }

    /// Whether its work is under way.
    pub(super) fn is_at_work(&self) -> bool {
        self.work.load(Ordering::SeqCst) > 0
    }

    /// How often the lease was renewed after the work had ended.
    pub(super) fn renewals_after_work(&self) -> usize {
        self.after_work.lock().unwrap_or_default()
    }

    async fn lead(self, term: Term, winding_down: u64) {
        self.work.fetch_add(1, Ordering::SeqCst);
        let _ends = Ends(self.clone());
        let (stop, clock) = (term.token(), self.world.shared.time.clock());
        while !stop.is_cancelled() {
            self.world.act(&term);
            tokio::select! {
                biased;
                () = stop.cancelled() => {}
                () = clock.sleep(secs(1)) => {}
            }
        }
        clock.sleep(secs(draw(winding_down + 1))).await;
        self.world.act(&term);
    }

    /// Asks the server. What it was sent it does, whether or not somebody waits for its answer by then.
    fn ask<T: Send + 'static>(
        &self,
        act: impl FnOnce(&mut Option<Versioned>, &mut u64) -> Result<T, LockError> + Send + 'static,
    ) -> BoxFuture<'_, Result<T, LockError>> {
        let replica = self.clone();
        let answer = Handle::current().spawn(async move {
            if !replica.way().await {
                return None;
            }
            let answer = {
                let mut lease = replica.world.shared.lease.lock();
                let (lease, versions) = &mut *lease;
                act(lease, versions)
            };
            replica.way().await.then_some(answer)
        });
        async move {
            match answer.await {
                Ok(Some(answer)) => answer,
                _ => std::future::pending().await,
            }
        }
        .boxed()
    }
}

/// Notes the end of the work, when it is dropped.
struct Ends(Replica);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.work.fetch_sub(1, Ordering::SeqCst);
        *self.0.after_work.lock() = Some(0);
    }
}

fn put(lease: &mut Option<Versioned>, versions: &mut u64, record: Record) -> Versioned {
    *versions += 1;
    let written = Versioned { record, version: versions.to_string() };
    *lease = Some(written.clone());
    written
}

impl Lock for Replica {
    fn get(&self) -> BoxFuture<'_, Result<Option<Versioned>, LockError>> {
        self.ask(|lease, _| Ok(lease.clone()))
    }

    fn create(&self, record: Record) -> BoxFuture<'_, Result<Versioned, LockError>> {
        self.ask(|lease, versions| match lease {
            Some(_) => Err(LockError::Conflict),
            None => Ok(put(lease, versions, record)),
        })
    }

    fn update(&self, replaced: Versioned) -> BoxFuture<'_, Result<Versioned, LockError>> {
        // A panic would be taken for one of a lock.
        if replaced.record.holder.is_empty() && self.is_at_work() {
            complain("the lease is released while its holder is at work".to_owned());
        }
        if let Some(renewals) = self.after_work.lock().as_mut().filter(|_| !replaced.record.holder.is_empty()) {
            *renewals += 1;
        }
        self.ask(move |lease, versions| match lease {
            None => Err(LockError::NotFound),
            Some(before) if before.version != replaced.version => Err(LockError::Conflict),
            Some(_) => Ok(put(lease, versions, replaced.record)),
        })
    }

    fn reference(&self) -> LockReference {
        LockReference {
            api_version: "model/v1".to_owned(),
            kind: "Model".to_owned(),
            namespace: String::new(),
            name: "model".to_owned(),
        }
    }
}

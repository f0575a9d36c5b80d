//! One run.

use std::collections::BTreeMap;
use std::time::Duration;

use kubewire_apiserver::ApiServer;
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep};

use crate::dice::Dice;
use crate::digest::Digest;
use crate::faults;
use crate::keeper;
use crate::ledger::Ledger;
use crate::replica::{LEASE, Replica};
use crate::seeds::NameOnPanic;
use crate::tally::Outcome;

/// How often the replicas' clocks are moved, and it is looked who leads.
const TICK: Duration = Duration::from_millis(100);
/// For how long there is trouble.
const TROUBLE: Duration = Duration::from_secs(8 * 60);
/// How long a network is cut, or holds what is under way, at most: some leases.
const OUTAGE_SECONDS: u64 = 50;
/// How long everything may take to be right again: a failed request may wait up to 1000 s.
const RECOVERY: Duration = Duration::from_secs(60 * 60);
/// Faults of the server that wait for a request.
const FAULTS_MAX: usize = 4;

/// # Panics
///
/// Where anything is not as it should be; the seed is printed then.
pub(crate) fn play(seed: u64) -> Outcome {
    let _name = NameOnPanic { seed, test: "managers" };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let begun = Instant::now();
        let mut outcome = World::new(seed).await.run().await;
        // Whoever has not been told of the end, or waits for something that will never come, is still there.
        sleep(Duration::from_secs(3600)).await;
        assert_eq!(Handle::current().metrics().num_alive_tasks(), 0, "tasks are left behind");
        outcome.virtual_time = begun.elapsed();
        outcome
    })
}

struct World {
    server: ApiServer,
    dice: Dice,
    digest: Digest,
    ledger: Ledger,
    replicas: Vec<Replica>,
    /// When each network is well again, and the server is back.
    well: Vec<Instant>,
    back: Option<Instant>,
    written: u64,
    /// The latest term in which each config was written, by uid.
    terms: BTreeMap<String, i32>,
}

impl World {
    async fn new(seed: u64) -> Self {
        let builder = ApiServer::builder().seed(seed).namespaces_on_demand();
        let server = builder.bookmark_interval(Duration::from_secs(10)).start().await.expect("it needs no port");
        let (mut dice, digest) = (Dice::new(seed), Digest::new());
        let ledger = Ledger::new(&digest);
        let count = 2 + (seed % 2) as usize;
        let replicas = (0..count).map(|number| Replica::new(&server, number, &ledger, &mut dice)).collect();
        let well = vec![Instant::now(); count];
        Self { server, dice, digest, ledger, replicas, well, back: None, written: 0, terms: BTreeMap::new() }
    }

    async fn run(mut self) -> Outcome {
        let end = Instant::now() + TROUBLE;
        let mut next = [Instant::now(); 2];
        while Instant::now() < end {
            self.tick().await;
            if Instant::now() >= next[0] {
                self.look_at_terms();
                self.written += 1;
                keeper::write(&self.server, &mut self.dice, self.written);
                next[0] = Instant::now() + self.dice.seconds(4);
            }
            if Instant::now() >= next[1] {
                self.trouble().await;
                next[1] = Instant::now() + self.dice.seconds(12);
            }
        }
        self.calm().await;
        self.recover().await;
        self.end().await
    }

    async fn tick(&mut self) {
        sleep(TICK).await;
        for replica in &mut self.replicas {
            replica.pass(TICK).await;
        }
        let leaders = self.replicas.iter().filter(|replica| replica.leads()).count();
        assert!(leaders <= 1, "{leaders} replicas lead");
        for (replica, well) in self.replicas.iter().zip(&self.well) {
            if Instant::now() >= *well {
                replica.network.cut(false);
                replica.network.hold(false);
            }
        }
        if self.back.take_if(|back| Instant::now() >= *back).is_some() {
            self.server.come_back().await;
        }
    }

    /// No config was written by somebody whose time was over.
    fn look_at_terms(&mut self) {
        for (uid, term) in keeper::terms(&self.server) {
            let before = self.terms.insert(uid.clone(), term);
            assert!(before.is_none_or(|before| before <= term), "{uid} was written in term {term} after {before:?}");
        }
    }

    async fn trouble(&mut self) {
        let who = self.dice.below(self.replicas.len() as u64) as usize;
        // Whoever leads has more to lose.
        let who = self.replicas.iter().position(|replica| replica.leads() && self.dice.chance(0.6)).unwrap_or(who);
        let replica = &mut self.replicas[who];
        match self.dice.below(12) {
            0 => {
                replica.network.cut(true);
                self.well[who] = Instant::now() + self.dice.seconds(OUTAGE_SECONDS);
            }
            1 | 2 => {
                replica.network.hold(true);
                self.well[who] = Instant::now() + self.dice.seconds(OUTAGE_SECONDS);
            }
            3 => replica.kill(self.dice.seconds(20)).await,
            4 | 5 => replica.stop(),
            6 => {
                // Somebody labels the lease: the leader's next renewal is a conflict.
                let label = self.dice.below(1000).to_string();
                let _ = self.server.modify("coordination.k8s.io/v1/leases", keeper::NAMESPACE, LEASE, |lease| {
                    lease["metadata"]["labels"]["touched"] = label.into();
                });
            }
            7 => self.server.reset_watches(),
            8 => {
                self.server.skip_resource_versions(1);
                self.server.compact();
                self.server.reset_watches();
            }
            9 if self.back.is_none() => {
                self.server.go_down().await;
                self.back = Some(Instant::now() + self.dice.seconds(30));
            }
            _ if self.server.faults_left() < FAULTS_MAX => {
                let _ = self.server.fault(faults::any(&mut self.dice, true));
            }
            _ => {}
        }
    }

    /// Everything is well again, but for what cannot be known without a new list.
    async fn calm(&mut self) {
        self.server.clear_faults();
        self.server.come_back().await;
        for replica in &self.replicas {
            replica.network.cut(false);
            replica.network.hold(false);
            replica.network.bad(false);
        }
        if faults::may_keep_what_is_gone(&self.server.faults_hit()) {
            self.server.skip_resource_versions(1);
            self.server.compact();
            self.server.reset_watches();
        }
    }

    async fn recover(&mut self) {
        let begun = Instant::now();
        loop {
            self.tick().await;
            let undone = keeper::undone(&self.server);
            if undone.is_empty() && self.replicas.iter().any(Replica::leads) {
                return;
            }
            assert!(begun.elapsed() < RECOVERY, "not right after {RECOVERY:?}: {undone:#?}");
        }
    }

    async fn end(mut self) -> Outcome {
        while !self.replicas.iter().all(Replica::is_down) {
            self.replicas.iter_mut().for_each(Replica::retire);
            self.tick().await;
        }
        self.ledger.check();
        let (attempts, handovers) = (self.ledger.attempts(), self.ledger.handovers());
        assert!(handovers >= 1 && attempts >= 20, "{handovers} hand-overs, {attempts} attempts: this proves nothing");
        assert!(keeper::undone(&self.server).is_empty(), "a stop has undone something");
        let mut faults = self.server.faults_hit();
        for replica in &self.replicas {
            for (how, count) in replica.ends() {
                *faults.entry(how).or_default() += count;
            }
        }
        self.digest.note(|| format!("{faults:?}"));
        drop(self.replicas);
        // What is under way in a network arrives.
        sleep(Duration::from_secs(200)).await;
        assert_eq!(self.server.requests_open(), 0, "a request is left open");
        let requests = self.server.requests().len() as u64;
        self.server.shut_down();
        Outcome {
            digest: self.digest.value(),
            faults,
            virtual_time: Duration::ZERO,
            written: self.written,
            requests,
            told: 0,
            processed: attempts,
            handovers,
        }
    }
}

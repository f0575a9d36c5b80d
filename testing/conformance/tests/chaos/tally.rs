//! What was played, in figures.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use parking_lot::Mutex;

/// What came of a run that went well.
pub(crate) struct Outcome {
    pub(crate) digest: u64,
    pub(crate) faults: BTreeMap<&'static str, u64>,
    pub(crate) virtual_time: Duration,
    pub(crate) written: u64,
    pub(crate) requests: u64,
    pub(crate) told: u64,
    pub(crate) processed: u64,
    /// From one leader to another.
    pub(crate) handovers: u64,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    seeds: u64,
    pub(crate) faults: BTreeMap<&'static str, u64>,
    virtual_time: Duration,
    written: u64,
    requests: u64,
    told: u64,
    processed: u64,
    handovers: u64,
}

/// Of all tests of this program.
static ALL: Mutex<Option<Tally>> = Mutex::new(None);

/// Adds to the figures of the whole program, and gives them.
pub(crate) fn add_up(tally: &Tally) -> Tally {
    let mut all = ALL.lock();
    let all = all.get_or_insert_default();
    all.join(tally);
    all.clone()
}

impl Tally {
    pub(crate) fn add(&mut self, outcome: &Outcome) {
        self.join(&Self {
            seeds: 1,
            faults: outcome.faults.clone(),
            virtual_time: outcome.virtual_time,
            written: outcome.written,
            requests: outcome.requests,
            told: outcome.told,
            processed: outcome.processed,
            handovers: outcome.handovers,
        });
    }

    fn join(&mut self, other: &Self) {
        self.seeds += other.seeds;
        for (kind, count) in &other.faults {
            *self.faults.entry(kind).or_default() += count;
        }
        self.virtual_time += other.virtual_time;
        self.written += other.written;
        self.requests += other.requests;
        self.told += other.told;
        self.processed += other.processed;
        self.handovers += other.handovers;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hours = self.virtual_time.as_secs_f64() / 3600.0;
        let faults: u64 = self.faults.values().sum();
        write!(
            f,
            "{} seeds, {hours:.1} h of virtual time, {} changes written, {} requests, {} notifications, {} keys processed, \
             {} hand-overs, {faults} faults met a request or a stream:",
            self.seeds, self.written, self.requests, self.told, self.processed, self.handovers
        )?;
        for (n, (kind, count)) in self.faults.iter().enumerate() {
            write!(f, "{} {kind} {count}", if n == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

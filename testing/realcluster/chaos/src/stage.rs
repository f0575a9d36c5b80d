//! What a run has: the servers, the followers and the writers; and how it waits for them and judges them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use anyhow::{bail, ensure};
use kube_client::Client;
use kubewire_informer::reflector::ReflectorPhase;
use kubewire_listwatch::ErrorClass;

use crate::dice::Dice;
use crate::follower::{Follow, differences};
use crate::form::Form;
use crate::requests::fresh_list;
use crate::rights::Rights;
use crate::servers::Servers;
use crate::writers::{self, Tally, Writing};

/// How long anything may take before the run counts as failed. No speed is judged by it.
const PATIENCE: Duration = Duration::from_secs(240);

pub(crate) struct Stage {
    pub(crate) form: Form,
    pub(crate) servers: Servers,
    pub(crate) admin: Client,
    pub(crate) rights: Rights,
    pub(crate) followers: Vec<Box<dyn Follow>>,
    pub(crate) tally: Arc<Tally>,
    pub(crate) dice: Dice,
}

/// A stretch in which the server does not serve, and what was so at its beginning.
pub(crate) struct Outage {
    pub(crate) since: Instant,
    /// Of each follower.
    requests: Vec<u64>,
}

impl Outage {
    /// The last failure that its status tells, where that is of the outage and of these classes.
    pub(crate) fn failure(&self, follower: &dyn Follow, wanted: &[ErrorClass]) -> Option<ErrorClass> {
        let status = follower.status();
        let last = status.last_error().filter(|last| last.at >= self.since)?;
        Some(last.error.class()).filter(|class| wanted.contains(class))
    }
}

/// How often lists and watches were over, by cause, over all followers.
pub(crate) type Causes = BTreeMap<String, u64>;

impl Stage {
    /// The followers that do not take their time.
    pub(crate) fn quick(&self) -> impl Iterator<Item = &dyn Follow> {
        self.followers.iter().map(|follower| &**follower).filter(|follower| !follower.is_patient())
    }

    pub(crate) fn write(&mut self) -> Writing {
        writers::start(&self.admin, &self.tally, &mut self.dice)
    }

    /// Until the writers have done a good deal more.
    pub(crate) async fn until_written(&self) -> anyhow::Result<()> {
        let done = || self.tally.done.load(Ordering::Relaxed);
        let wanted = done() + self.form.writes;
        until("the writers to get on", || (done() < wanted).then(|| format!("{} of {wanted} writes", done()))).await
    }

    pub(crate) fn requests(&self) -> u64 {
        self.followers.iter().map(|follower| follower.line().requests()).sum()
    }

    pub(crate) fn causes(&self) -> Causes {
        let mut causes = Causes::new();
        for (cause, count) in self.followers.iter().flat_map(|follower| follower.status().reflector.restarts) {
            *causes.entry(cause.to_string()).or_default() += count;
        }
        causes
    }

    pub(crate) fn begin_outage(&self) -> Outage {
        let requests = self.followers.iter().map(|follower| follower.line().requests()).collect();
        Outage { since: Instant::now(), requests }
    }

    /// Until each of these has said by its status that its requests fail, and in this way.
    pub(crate) async fn until_seen(
        &self,
        outage: &Outage,
        wanted: &[ErrorClass],
        concerns: impl Fn(&dyn Follow) -> bool,
    ) -> anyhow::Result<()> {
        let mut left: Vec<_> = self.quick().filter(|follower| concerns(*follower)).collect();
        ensure!(!left.is_empty(), "the outage concerns nobody");
        until(&format!("the status to say {wanted:?}"), || {
            left.retain(|follower| outage.failure(*follower, wanted).is_none());
            let tell = |follower: &&dyn Follow| format!("{}: {}", follower.name(), trouble(*follower));
            (!left.is_empty()).then(|| left.iter().map(tell).collect::<Vec<_>>().join("; "))
        })
        .await
    }

    /// The status of each follower says for how long nothing has been heard.
    pub(crate) fn check_staleness(&self, outage: &Outage) -> anyhow::Result<Duration> {
        // What was on its way may still have come in the first moment.
        let lasted = outage.since.elapsed().saturating_sub(Duration::from_secs(2));
        let mut least = Duration::MAX;
        for follower in &self.followers {
            let Some(staleness) = follower.status().staleness else { continue };
            ensure!(staleness >= lasted, "{} says {staleness:?} stale after {lasted:?}", follower.name());
            least = least.min(staleness);
        }
        Ok(least)
    }

    /// How many requests were made in the outage: no follower may have asked more than about once a second.
    pub(crate) fn check_budget(&self, outage: &Outage) -> anyhow::Result<u64> {
        let budget = 8 + outage.since.elapsed().as_secs();
        let mut all = 0;
        for (follower, before) in self.followers.iter().zip(&outage.requests) {
            let made = follower.line().requests() - before;
            ensure!(made <= budget, "{} made {made} requests in an outage, the budget is {budget}", follower.name());
            all += made;
        }
        Ok(all)
    }

    /// Until everybody watches again.
    pub(crate) async fn until_healthy(&self) -> anyhow::Result<()> {
        until("everybody to watch again", || {
            let ill = self.quick().find(|follower| {
                let status = follower.status();
                !status.synced
                    || status.reflector.failures_in_a_row > 0
                    || status.reflector.phase != ReflectorPhase::Watching
            });
            ill.map(|follower| format!("{}: {}", follower.name(), trouble(follower)))
        })
        .await
    }

    /// Nobody writes now. Until every cache is what a fresh list says and nothing waits anywhere, and then
    /// everything must be right. Gives back how many pods there are.
    pub(crate) async fn settle(&self, with_patient: bool) -> anyhow::Result<usize> {
        let concerned: Vec<&dyn Follow> =
            self.followers.iter().map(|follower| &**follower).filter(|f| with_patient || !f.is_patient()).collect();
        let end = Instant::now() + PATIENCE;
        loop {
            let truth = fresh_list(&self.admin).await?;
            let behind = concerned.iter().find(|follower| !follower.is_idle() || follower.contents() != truth);
            let Some(behind) = behind else {
                // The list was made before the look at the caches; nothing may have moved meanwhile.
                if fresh_list(&self.admin).await? != truth {
                    continue;
                }
                let problems: Vec<String> = concerned.iter().flat_map(|follower| follower.problems(&truth)).collect();
                ensure!(problems.is_empty(), "{} violations:\n{}", problems.len(), problems.join("\n"));
                concerned.iter().for_each(|follower| follower.forget_gone());
                return Ok(truth.len());
            };
            if Instant::now() > end {
                let differences = differences(&behind.contents(), &truth);
                bail!("{} does not settle: {}; {differences:#?}", behind.name(), trouble(*behind));
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }
}

/// Waits until `open` says that nothing is open any more.
pub(crate) async fn until(what: &str, mut open: impl FnMut() -> Option<String>) -> anyhow::Result<()> {
    let end = Instant::now() + PATIENCE;
    while let Some(left) = open() {
        ensure!(Instant::now() < end, "waited {PATIENCE:?} for {what}: {left}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}

/// How a follower is, in a line.
pub(crate) fn trouble(follower: &dyn Follow) -> String {
    let status = follower.status();
    let last = status.last_error().map(|last| format!("{} ({:?} ago)", last.error, last.at.elapsed()));
    format!(
        "{:?}, {} failures in a row, {} objects at {:?}, stale {:?}, idle {}, last error {}",
        status.reflector.phase,
        status.reflector.failures_in_a_row,
        status.objects,
        status.reflector.resource_version,
        status.staleness,
        follower.is_idle(),
        last.unwrap_or_else(|| "none".to_owned()),
    )
}

//! What goes wrong, and what must be seen of it.

use std::fmt;
use std::time::{Duration, Instant};

use anyhow::ensure;
use kubewire_informer::reflector::RestartCause;
use kubewire_listwatch::ErrorClass;

use crate::cast;
use crate::follower::Follow;
use crate::footprint::{MIB, heap};
use crate::servers::Server;
use crate::stage::{Outage, Stage, trouble, until};
use crate::writers::{Churn, churn};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    KillApiserver,
    KillEtcd,
    StopApiserver,
    StopEtcd,
    Compaction,
    ShortRequests,
    NoWatchList,
    SmallWatchCache,
    NoWatchCacheAndCompaction,
    RightsTaken,
    TokenRevoked,
    Churn,
}

/// What a server may say, or its connections, while its etcd is away.
const ETCD_AWAY: &[ErrorClass] = &[
    ErrorClass::TimedOut,
    ErrorClass::Unavailable,
    ErrorClass::Throttled,
    ErrorClass::Internal,
    ErrorClass::VersionTooLarge,
];

impl Fault {
    /// All but the last one, which is the churn; in an order that the seed decides.
    pub(crate) const SHUFFLED: [Self; 11] = [
        Self::KillApiserver,
        Self::KillEtcd,
        Self::StopApiserver,
        Self::StopEtcd,
        Self::Compaction,
        Self::ShortRequests,
        Self::NoWatchList,
        Self::SmallWatchCache,
        Self::NoWatchCacheAndCompaction,
        Self::RightsTaken,
        Self::TokenRevoked,
    ];

    /// Those that leave a server behind which works in another way than by default.
    const CHANGE_THE_SERVER: [Self; 4] =
        [Self::ShortRequests, Self::NoWatchList, Self::SmallWatchCache, Self::NoWatchCacheAndCompaction];

    /// Those that kube-apiserver outlives, and with it the way in which it works.
    const LEAVE_THE_SERVER: [Self; 6] =
        [Self::KillEtcd, Self::StopApiserver, Self::StopEtcd, Self::Compaction, Self::RightsTaken, Self::TokenRevoked];

    /// Each kind of server, and everything that can happen to it.
    pub(crate) fn each_on_each_server() -> Vec<Self> {
        Self::CHANGE_THE_SERVER.iter().flat_map(|server| [&[*server], &Self::LEAVE_THE_SERVER[..]].concat()).collect()
    }

    /// Makes it, waits until it is seen where it must be, and takes it back. Gives back what there is to tell.
    pub(crate) async fn make(self, stage: &mut Stage) -> anyhow::Result<String> {
        match self {
            Self::KillApiserver => kill_apiserver(stage).await,
            Self::KillEtcd => kill_etcd(stage).await,
            Self::StopApiserver => stop_apiserver(stage).await,
            Self::StopEtcd => stop_etcd(stage).await,
            Self::Compaction => Ok(format!("compacted at {}", stage.servers.compact().await?)),
            Self::ShortRequests => short_requests(stage).await,
            Self::NoWatchList => away_over_restart(stage, "--feature-gates=WatchList=false").await,
            Self::SmallWatchCache => away_over_restart(stage, "--default-watch-cache-size=1").await,
            Self::NoWatchCacheAndCompaction => no_watch_cache(stage).await,
            Self::RightsTaken => rights_taken(stage).await,
            Self::TokenRevoked => token_revoked(stage).await,
            Self::Churn => churn_pods(stage).await,
        }
    }

    /// What must have come of it once everybody is healthy again; `before` is how often each follower had fallen.
    pub(crate) fn leaves(self) -> Option<RestartCause> {
        match self {
            Self::NoWatchList | Self::SmallWatchCache | Self::NoWatchCacheAndCompaction => {
                Some(RestartCause::Failed(ErrorClass::Expired))
            }
            _ => None,
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::KillApiserver => "kill -9 kube-apiserver, start it again",
            Self::KillEtcd => "kill -9 etcd, start it again",
            Self::StopApiserver => "SIGSTOP kube-apiserver",
            Self::StopEtcd => "SIGSTOP etcd",
            Self::Compaction => "compaction of etcd under open watches",
            Self::ShortRequests => "restart with --min-request-timeout=5, watches of 5 s",
            Self::NoWatchList => "away over a restart with --feature-gates=WatchList=false",
            Self::SmallWatchCache => "away over a restart with --default-watch-cache-size=1",
            Self::NoWatchCacheAndCompaction => {
                "restart with --watch-cache-sizes=pods#0, away over a compaction of etcd"
            }
            Self::RightsTaken => "the right to list and watch pods taken, and given back",
            Self::TokenRevoked => "token revoked, another one written into the file",
            Self::Churn => "pods created, changed and deleted at the server's top speed",
        })
    }
}

fn everybody(_: &dyn Follow) -> bool {
    true
}

/// The end of an outage: holds everybody to the budget, and says what was seen.
fn account(stage: &Stage, outage: &Outage, seen: &str) -> anyhow::Result<String> {
    let requests = stage.check_budget(outage)?;
    Ok(format!("{seen}; {requests} requests in {:.1} s", outage.since.elapsed().as_secs_f64()))
}

/// The same where kube-apiserver itself was away: every status says for how long.
fn account_stale(stage: &Stage, outage: &Outage, seen: &str) -> anyhow::Result<String> {
    let staleness = stage.check_staleness(outage)?;
    Ok(format!("{}, at least {:.1} s stale", account(stage, outage, seen)?, staleness.as_secs_f64()))
}

async fn kill_apiserver(stage: &mut Stage) -> anyhow::Result<String> {
    stage.servers.kill(Server::Apiserver).await?;
    let outage = stage.begin_outage();
    stage.until_seen(&outage, &[ErrorClass::ConnectionRefused], everybody).await?;
    tokio::time::sleep(stage.dice.up_to(stage.form.pause)).await;
    let told = account_stale(stage, &outage, "all said connection_refused")?;
    stage.servers.up("").await?;
    Ok(told)
}

/// An informer that begins in the outage; it is the last of the followers, and leaves when all is well again. A list
/// that is streamed needs etcd, so it must say that its requests fail; from a server that does not stream it gets one out
/// of the watch cache, maybe. Gives back which it was.
async fn newcomer(stage: &mut Stage) -> anyhow::Result<String> {
    let newcomer = cast::newcomer(&stage.rights, &mut stage.dice)?;
    let outage = stage.begin_outage();
    let mut outcome = None;
    until("one that began in the outage to say so", || {
        outcome = newcomer_outcome(&outage, &*newcomer);
        outcome.is_none().then(|| trouble(&*newcomer))
    })
    .await?;
    stage.followers.push(newcomer);
    Ok(format!("one that began in it {}", outcome.unwrap_or_default()))
}

fn newcomer_outcome(outage: &Outage, newcomer: &dyn Follow) -> Option<String> {
    let status = newcomer.status();
    let listed = status.synced && status.reflector.restarts_by(RestartCause::FallBackToList) > 0;
    let failed = outage.failure(newcomer, ETCD_AWAY).map(|class| format!("said {class}"));
    failed.or_else(|| listed.then(|| "got a list out of the watch cache".to_owned()))
}

async fn kill_etcd(stage: &mut Stage) -> anyhow::Result<String> {
    stage.servers.kill(Server::Etcd).await?;
    let outage = stage.begin_outage();
    let seen = newcomer(stage).await?;
    tokio::time::sleep(stage.dice.up_to(stage.form.pause)).await;
    let told = account(stage, &outage, &seen)?;
    stage.servers.up("").await?;
    Ok(told)
}

async fn stop_apiserver(stage: &mut Stage) -> anyhow::Result<String> {
    stage.servers.stop(Server::Apiserver)?;
    let outage = stage.begin_outage();
    // Streaming followers lose their connection too; the others sit before one on which nothing comes.
    stage.quick().filter(|follower| follower.streams()).for_each(|follower| follower.line().cut());
    stage.until_seen(&outage, &[ErrorClass::TimedOut], |follower| follower.streams()).await?;
    tokio::time::sleep(stage.form.stop.saturating_sub(outage.since.elapsed())).await;
    let told = account_stale(stage, &outage, "those that lost their connection said timed_out")?;
    stage.servers.resume(Server::Apiserver)?;
    Ok(told)
}

async fn stop_etcd(stage: &mut Stage) -> anyhow::Result<String> {
    stage.servers.stop(Server::Etcd)?;
    let outage = stage.begin_outage();
    let seen = newcomer(stage).await?;
    tokio::time::sleep(stage.form.stop.saturating_sub(outage.since.elapsed())).await;
    let told = account(stage, &outage, &seen)?;
    stage.servers.resume(Server::Etcd)?;
    Ok(told)
}

async fn restart(stage: &Stage, args: &str) -> anyhow::Result<()> {
    stage.servers.kill(Server::Apiserver).await?;
    stage.servers.up(args).await
}

/// Watches that end all the time: everybody goes on from its version, without a list.
async fn short_requests(stage: &mut Stage) -> anyhow::Result<String> {
    restart(stage, "--min-request-timeout=5").await?;
    stage.until_healthy().await?;
    let closed = |follower: &dyn Follow| follower.status().reflector.restarts_by(RestartCause::Closed);
    let lists = |follower: &dyn Follow| follower.status().reflector.list_requests;
    let before: Vec<_> = stage.quick().map(|follower| (closed(follower), lists(follower))).collect();
    stage.quick().for_each(|follower| follower.line().hurry(Some(Duration::from_secs(5))));
    // The first end is that of the watch that is cut.
    let wanted = stage.form.short_watches;
    until("watches of 5 s to end", || {
        let slow = stage.quick().zip(&before).find(|(follower, (before, _))| closed(*follower) <= before + wanted);
        slow.map(|(follower, _)| follower.name().to_owned())
    })
    .await?;
    let listed = stage.quick().zip(&before).find(|(follower, (_, before))| lists(*follower) > *before);
    stage.quick().for_each(|follower| follower.line().hurry(None));
    ensure!(listed.is_none(), "a watch that ended in good order was followed by a list");
    Ok(format!("each saw {wanted} watches or more end, and made no list"))
}

/// Changes that happen while everybody is away, before and behind a restart, after which the server knows nothing
/// of the versions before it.
async fn away_over_restart(stage: &mut Stage, args: &str) -> anyhow::Result<String> {
    stage.quick().for_each(|follower| follower.line().go_away());
    stage.until_written().await?;
    restart(stage, args).await?;
    stage.until_written().await?;
    stage.quick().for_each(|follower| follower.line().come_back());
    Ok("away for two stretches of writes".to_owned())
}

/// Lists and watches that come out of etcd itself, which has forgotten what was before.
async fn no_watch_cache(stage: &mut Stage) -> anyhow::Result<String> {
    restart(stage, "--watch-cache-sizes=pods#0").await?;
    stage.until_healthy().await?;
    stage.quick().for_each(|follower| follower.line().go_away());
    stage.until_written().await?;
    let revision = stage.servers.compact().await?;
    stage.quick().for_each(|follower| follower.line().come_back());
    Ok(format!("compacted at {revision} while all were away"))
}

async fn rights_taken(stage: &mut Stage) -> anyhow::Result<String> {
    stage.rights.take().await?;
    let outage = stage.begin_outage();
    stage.quick().for_each(|follower| follower.line().cut());
    stage.until_seen(&outage, &[ErrorClass::Forbidden], everybody).await?;
    tokio::time::sleep(stage.dice.up_to(stage.form.pause)).await;
    let told = account(stage, &outage, "all said forbidden")?;
    stage.rights.give().await?;
    Ok(told)
}

async fn token_revoked(stage: &mut Stage) -> anyhow::Result<String> {
    stage.rights.revoke_token().await?;
    let outage = stage.begin_outage();
    stage.quick().for_each(|follower| follower.line().cut());
    stage.until_seen(&outage, &[ErrorClass::Unauthorized], everybody).await?;
    tokio::time::sleep(stage.dice.up_to(stage.form.pause)).await;
    let told = account(stage, &outage, "all said unauthorized")?;
    stage.rights.write_token().await?;
    Ok(told)
}

/// All pods at once, then some of them again: by then every table has had its size, so the heap must not grow.
async fn churn_pods(stage: &mut Stage) -> anyhow::Result<String> {
    let pods = stage.form.pods;
    let told = churn_round(stage, pods).await?;
    let heap_before = heap();
    let again = churn_round(stage, (pods / 4).min(2_000)).await?;
    let grown = heap().saturating_sub(heap_before);
    ensure!(grown <= HEAP_GROWTH_MAX, "the heap has grown by {grown} bytes in the second round, from {heap_before}");
    Ok(format!("{told}\n          {again}"))
}

async fn churn_round(stage: &Stage, pods: u64) -> anyhow::Result<String> {
    let (mut speeds, mut full) = (Vec::new(), 0);
    for what in [Churn::Create, Churn::Change, Churn::Delete] {
        let begin = Instant::now();
        churn(&stage.admin, pods, what, &stage.tally).await?;
        speeds.push(format!("{what:?} {:.0}/s", pods as f64 / begin.elapsed().as_secs_f64()));
        if what == Churn::Change {
            // Everybody must have all of them; and one more handler comes while they are there.
            let settled = stage.settle(false).await?;
            ensure!(settled as u64 >= pods, "{settled} pods are there, of {pods}");
            full = heap() / MIB;
            stage.followers.iter().try_for_each(|follower| follower.visit())?;
        }
    }
    stage.settle(false).await?;
    let speeds = speeds.join(", ");
    Ok(format!("{pods} pods: {speeds}; heap {full} MiB while all were there, {} MiB afterwards", heap() / MIB))
}

/// What the second round may add: it makes nothing that the first one has not made.
const HEAP_GROWTH_MAX: usize = 2 * MIB;

//! Two managers, one lease, in paused time.

use std::sync::Arc;
use std::time::Duration;

use kubewire_apiserver::{ApiServer, Matching};
use kubewire_leaderelection::{LeaderMetrics, LeaseLock, names};
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::*;
use crate::{Cluster, Group, Manager, ManagerOptions, MetricsRegistry, RunContext, RunError, Runnable};

const SECOND: Duration = Duration::from_secs(1);

type Log = Arc<Mutex<Vec<String>>>;

/// Says when it begins and ends.
struct Leads {
    name: &'static str,
    log: Log,
    winds_down: Duration,
}

impl Runnable for Leads {
    fn name(&self) -> &str {
        self.name
    }

    fn run(&self, cx: RunContext) -> BoxFuture<'_, Result<(), BoxError>> {
        self.log.lock().push(format!("+{}", self.name));
        Box::pin(async move {
            cx.stop.cancelled().await;
            let _ = cx.cancel.run_until_cancelled(sleep(self.winds_down)).await;
            self.log.lock().push(format!("-{}", self.name));
            Ok(())
        })
    }

    fn group(&self) -> Group {
        Group::Leader
    }
}

struct Replica {
    manager: Manager,
    metrics: MetricsRegistry,
    stop: CancellationToken,
    running: JoinHandle<Result<(), RunError>>,
}

impl Replica {
    fn start(server: &ApiServer, name: &'static str, log: &Log, release: bool, winds_down: Duration) -> Self {
        let metrics = MetricsRegistry::new();
        let lock = LeaseLock::new(server.client(), "default", "lease");
        let elector =
            Elector::builder(lock, name).release_on_stop(release).metrics(Arc::new(metrics.clone())).build().unwrap();
        let options = ManagerOptions::new().elector(elector).metrics(metrics.clone());
        let manager = Manager::new(Cluster::new("here", server.client()), options);
        manager.add(Leads { name, log: Arc::clone(log), winds_down }).unwrap();
        let stop = CancellationToken::new();
        let running = tokio::spawn({
            let (manager, stop) = (manager.clone(), stop.clone());
            async move { manager.run(stop).await }
        });
        Self { manager, metrics, stop, running }
    }

    fn leads(&self) -> bool {
        self.metrics.text().unwrap().contains("leader_election_master_status{name=\"lease\"} 1")
    }
}

#[tokio::test(start_paused = true)]
async fn of_two_replicas_one_leads_and_the_other_takes_over_when_it_has_ended() {
    for release in [true, false] {
        let server = ApiServer::start().await;
        let log = Log::default();
        let one = Replica::start(&server, "one", &log, release, 5 * SECOND);
        one.manager.elected().await.unwrap();
        let two = Replica::start(&server, "two", &log, release, Duration::ZERO);
        two.manager.started().await.unwrap();
        sleep(60 * SECOND).await;
        assert_eq!(*log.lock(), ["+one"]);
        assert!(one.leads() && !two.leads());

        one.stop.cancel();
        sleep(4 * SECOND).await;
        assert_eq!(*log.lock(), ["+one"], "the lease is held while it ends its work");
        one.running.await.unwrap().unwrap();
        let ended = Instant::now();
        two.manager.elected().await.unwrap();
        let taken_over = ended.elapsed();
        assert_eq!(*log.lock(), ["+one", "-one", "+two"]);
        match release {
            true => assert!(taken_over <= 5 * SECOND, "{taken_over:?}: within a retry"),
            false => assert!(taken_over >= 10 * SECOND, "{taken_over:?}: it had to run out"),
        }
        two.stop.cancel();
        two.running.await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_cannot_renew_ends_at_once_before_another_one_leads() {
    let server = ApiServer::start().await;
    let log = Log::default();
    let one = Replica::start(&server, "one", &log, true, 3600 * SECOND);
    one.manager.elected().await.unwrap();
    sleep(60 * SECOND).await;
    let before = Instant::now();
    server.forbid(Matching::any().resource("coordination.k8s.io/v1/leases"));
    let error = one.running.await.unwrap().unwrap_err();
    assert!(error.is_leader_election_lost(), "{error}");
    assert!(before.elapsed() <= 12 * SECOND, "{:?}", before.elapsed());
    assert_eq!(*log.lock(), ["+one", "-one"]);
}

#[test]
fn the_status_of_a_lease_is_a_gauge() {
    let metrics = MetricsRegistry::new();
    metrics.master_status("lease", false);
    let line = |value: u8| format!("{}{{name=\"lease\"}} {value}\n", names::MASTER_STATUS);
    assert!(metrics.text().unwrap().contains(&line(0)));
    metrics.master_status("lease", true);
    metrics.slowpath("lease");
    let text = metrics.text().unwrap();
    assert!(text.contains(&line(1)) && text.contains("leader_election_slowpath_total{name=\"lease\"} 1\n"), "{text}");
    metrics.master_status("lease", false);
    assert!(metrics.text().unwrap().contains(&line(0)));
}

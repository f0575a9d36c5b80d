//! Two replicas, one lease: one of them leads, is killed, and the other one takes over when the lease is over.
//!
//! Killed is meant: the replica does nothing from one moment to the next, and its lease stays. At the end the one that is
//! left is stopped, as by SIGTERM: it ends its work, then frees the lease.
//!
//! ```text
//! cargo run --example leader_election                                    # a server in this process
//! cargo run --example leader_election -- --lease-duration 15s --renew-deadline 10s --retry-period 2s
//! cargo run --example leader_election -- --kubeconfig FILE               # a real one; the lease is made in `default`
//! ```

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Parser;
use kube_client::Client;
use kubewire_apiserver::ApiServer;
use kubewire_examples::{LeaseArgs, duration, from_kubeconfig, log, stop_signal};
use kubewire_leaderelection::{ElectionError, Elector, Leadership, LeaseLock, Settings, Term};
use kubewire_listwatch::client_from_config;
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

const NAMESPACE: &str = "default";
const LEASE: &str = "leader-election-example";

/// Two replicas of which one leads, until it is killed.
#[derive(Parser)]
struct Args {
    /// Use the cluster of this kubeconfig.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// 3 s, 2 s and 500 ms unless told otherwise, so that there is something to see soon.
    #[command(flatten)]
    lease: LeaseArgs,
    /// How long each of them leads before it is killed, or stopped.
    #[arg(long, default_value = "2s", value_parser = duration)]
    lead_for: Duration,
    /// Stop after this time, also where the other one does not lead yet.
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    run_for: Option<Duration>,
}

impl Args {
    fn settings(&self) -> Settings {
        self.lease.settings(Settings {
            lease_duration: Duration::from_secs(3),
            renew_deadline: Duration::from_secs(2),
            retry_period: Duration::from_millis(500),
            ..Settings::default()
        })
    }
}

/// When the other one leads at the latest: it has seen the last renewal 2.2 retry periods late, and looks at the lease
/// 2.2 retry periods after it was over.
fn takeover_at_the_latest(settings: &Settings) -> Duration {
    settings.lease_duration + 2 * settings.retry_period.mul_f64(2.2)
}

/// What has happened, and when.
#[derive(Clone)]
struct Story {
    begin: Instant,
    /// Whose turns it was, one after the other.
    acts: Arc<Mutex<Vec<&'static str>>>,
}

impl Story {
    fn tell(&self, text: &str) {
        println!("{:6.2} s  {text}", self.begin.elapsed().as_secs_f64());
    }

    /// The work of a leader: it acts as long as its term holds.
    async fn work(self, name: &'static str, term: Term) {
        self.tell(&format!("{name} leads, as holder number {}", term.transitions()));
        let stop = term.token();
        while !stop.is_cancelled() {
            if term.is_valid() {
                self.acts.lock().push(name);
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = sleep(Duration::from_millis(100)) => {}
            }
        }
        self.tell(&format!("{name} has ended its work"));
    }
}

/// One candidate: in a program of one's own it is a process.
struct Replica {
    name: &'static str,
    leadership: Leadership,
    stop: CancellationToken,
    running: JoinHandle<Result<(), ElectionError>>,
}

impl Replica {
    fn start(name: &'static str, client: Client, settings: Settings, story: &Story) -> anyhow::Result<Self> {
        let for_work = story.clone();
        let elector = Elector::builder(LeaseLock::new(client, NAMESPACE, LEASE), name)
            .settings(settings)
            .on_started_leading(move |term| for_work.clone().work(name, term))
            .build()?;
        let (leadership, stop) = (elector.leadership(), CancellationToken::new());
        let running = tokio::spawn({
            let stop = stop.clone();
            async move { elector.run_until_stopped(stop).await }
        });
        Ok(Self { name, leadership, stop, running })
    }

    /// As kill -9: from here on it does nothing at all.
    async fn kill(self) {
        self.running.abort();
        let _ = self.running.await;
    }

    /// As SIGTERM.
    async fn stop(self) -> anyhow::Result<()> {
        self.stop.cancel();
        Ok(self.running.await??)
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    log("warn");
    let stop = stop_signal(args.run_for);
    tokio::select! {
        shown = run(&args) => {
            let Shown { takeover, acts, killed } = shown?;
            println!("{} acts, 1 hand-over, {:.2} s after {killed} was killed", acts.len(), takeover.as_secs_f64());
        }
        () = stop.cancelled() => println!("Stopped before the end"),
    }
    Ok(())
}

/// What a run has shown.
#[derive(Debug)]
struct Shown {
    /// From the kill until the other one led.
    takeover: Duration,
    /// Who has acted, in order.
    acts: Vec<&'static str>,
    killed: &'static str,
}

async fn run(args: &Args) -> anyhow::Result<Shown> {
    let settings = args.settings();
    settings.validate()?;
    let (client, _server) = connect(args).await?;
    let story = Story { begin: Instant::now(), acts: Arc::default() };
    let one = Replica::start("one", client.clone(), settings, &story)?;
    let two = Replica::start("two", client.clone(), settings, &story)?;

    // A lease that an earlier run has left behind is waited for.
    let (leader, other) = tokio::select! {
        _ = one.leadership.wait_for_leadership() => (one, two),
        _ = two.leadership.wait_for_leadership() => (two, one),
    };
    sleep(args.lead_for).await;
    let killed = leader.name;
    leader.kill().await;
    let at = Instant::now();
    story.tell(&format!("{killed} is killed, and leaves its lease behind; {} waits until that is over", other.name));

    let taken_over = timeout(10 * takeover_at_the_latest(&settings), other.leadership.wait_for_leadership()).await;
    taken_over.ok().flatten().with_context(|| format!("{} does not lead", other.name))?;
    let takeover = at.elapsed();
    story.tell(&format!("{} has taken over after {:.2} s", other.name, takeover.as_secs_f64()));
    sleep(args.lead_for).await;

    let leadership = other.leadership.clone();
    let name = other.name;
    other.stop().await?;
    anyhow::ensure!(leadership.holder().is_empty(), "the lease was not released");
    story.tell(&format!("{name} is stopped; the lease is free"));

    let acts = story.acts.lock().clone();
    let hand_overs = acts.windows(2).filter(|pair| pair[0] != pair[1]).count();
    anyhow::ensure!(hand_overs == 1, "they acted in turns: there were two leaders");
    Ok(Shown { takeover, acts, killed })
}

async fn connect(args: &Args) -> anyhow::Result<(Client, Option<ApiServer>)> {
    let Some(kubeconfig) = &args.kubeconfig else {
        println!("No --kubeconfig: the lease is in a server in this process");
        let server = ApiServer::start().await;
        return Ok((server.client(), Some(server)));
    };
    let config = from_kubeconfig(Some(kubeconfig), None).await?;
    Ok((client_from_config(config).context("cannot build a client from the kubeconfig")?, None))
}

#[tokio::test(start_paused = true)]
async fn the_other_one_takes_over_when_the_lease_is_over_and_never_before() {
    for more in [&[][..], &["--lease-duration", "15s", "--renew-deadline", "10s", "--retry-period", "2s"]] {
        let args = Args::parse_from(["leader_election"].iter().chain(more));
        let Shown { takeover, acts, killed } = run(&args).await.unwrap();
        let settings = args.settings();
        // The lease was renewed a retry period before the kill at the earliest.
        assert!(takeover >= settings.lease_duration - settings.retry_period, "{takeover:?}");
        assert!(takeover <= takeover_at_the_latest(&settings), "{takeover:?}");
        assert_eq!(acts.first(), Some(&killed));
        assert_ne!(acts.last(), Some(&killed));
    }
}

#[tokio::test]
async fn durations_that_cannot_work_are_refused_before_anything_starts() {
    let args = Args::parse_from(["leader_election", "--renew-deadline", "3s"]);
    assert!(run(&args).await.unwrap_err().to_string().starts_with("lease_duration must be longer"));
}

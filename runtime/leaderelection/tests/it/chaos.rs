//! Two and three electors against the embedded API server, each with a clock of its own rate, over bad networks, while
//! some stand still and some are stopped and run again.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use kubewire_apiserver::{ApiServer, Network};
use kubewire_leaderelection::{Elector, Leadership, LeaseLock};
use kubewire_ratelimit::{ManualClock, Random};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// How often the world is looked at.
const TICK: Duration = Duration::from_millis(100);

/// A process: it can stand still.
struct Process<F> {
    stands_still: Arc<AtomicBool>,
    inside: Pin<Box<F>>,
}

impl<F: Future> Future for Process<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        if self.stands_still.load(Ordering::Relaxed) {
            // The driver lets time pass meanwhile.
            let waker = cx.waker().clone();
            tokio::spawn(async move {
                sleep(TICK).await;
                waker.wake();
            });
            return Poll::Pending;
        }
        self.inside.as_mut().poll(cx)
    }
}

struct Replica {
    leadership: Leadership,
    time: ManualClock,
    rate: f64,
    network: Network,
    stands_still: Arc<AtomicBool>,
    /// Ends the present run; another one follows.
    restart: tokio::sync::watch::Sender<CancellationToken>,
}

fn replica(server: &ApiServer, seed: u64, who: u64, random: &mut Random) -> Replica {
    let network = Network::new(server, seed * 10 + who);
    network.bad(true);
    let time = ManualClock::new();
    time.advance(Duration::from_secs((random.fraction() * 1e6) as u64));
    let wall = (random.fraction() * 2e9) as i64;
    let elector = Elector::builder(LeaseLock::new(network.client(), "default", "controller"), format!("{who}"))
        .clock(time.clock())
        .wall_clock(move || Timestamp::from_second(wall).unwrap_or(Timestamp::UNIX_EPOCH))
        .seed(seed ^ who)
        .release_on_stop(true)
        .build()
        .unwrap();
    let leadership = elector.leadership();
    let stands_still = Arc::new(AtomicBool::new(false));
    let (restart, mut stops) = tokio::sync::watch::channel(CancellationToken::new());
    let runs = async move {
        loop {
            let stop = stops.borrow_and_update().clone();
            let _ = elector.run_until_stopped(stop).await;
            if stops.changed().await.is_err() {
                return;
            }
        }
    };
    tokio::spawn(Process { stands_still: Arc::clone(&stands_still), inside: Box::pin(runs) });
    let rate = 0.85 + 0.35 * random.fraction();
    Replica { leadership, time, rate, network, stands_still, restart }
}

async fn play(seed: u64) -> (u32, u32) {
    let mut random = Random::seeded(seed);
    let server = ApiServer::start().await;
    let count = 2 + seed % 2;
    let replicas: Vec<Replica> = (0..count).map(|who| replica(&server, seed, who, &mut random)).collect();
    let (mut led, mut changes, mut last) = (0, 0, None);
    let ticks = 3000;
    for tick in 0..ticks {
        sleep(TICK).await;
        for replica in &replicas {
            replica.time.advance(TICK.mul_f64(replica.rate));
            // Also within the tick: nobody leads who has not looked.
            let leaders: Vec<usize> = (0..replicas.len()).filter(|&who| replicas[who].leadership.is_leader()).collect();
            assert!(leaders.len() <= 1, "seed {seed}, tick {tick}: {leaders:?} lead");
            led += u32::from(!leaders.is_empty());
            if let Some(&leader) = leaders.first()
                && last.replace(leader) != Some(leader)
            {
                changes += 1;
            }
        }
        let trouble = tick % 40 == 0 && tick < ticks - 800;
        if trouble {
            let replica = &replicas[(random.fraction() * replicas.len() as f64) as usize];
            match (random.fraction() * 4.0) as u32 {
                0 => replica.network.cut(random.fraction() < 0.5),
                1 => replica.stands_still.store(random.fraction() < 0.5, Ordering::Relaxed),
                2 => {
                    let before = replica.restart.send_replace(CancellationToken::new());
                    before.cancel();
                }
                _ => {}
            }
        }
        if tick == ticks - 800 {
            for replica in &replicas {
                replica.network.cut(false);
                replica.network.bad(false);
                replica.stands_still.store(false, Ordering::Relaxed);
            }
        }
    }
    let leaders = replicas.iter().filter(|replica| replica.leadership.is_leader()).count();
    assert_eq!(leaders, 1, "seed {seed}: nobody leads though all is calm");
    (changes, led / count as u32 * 100 / ticks)
}

/// `KUBEWIRE_SEED=7` plays that seed, `KUBEWIRE_SEEDS=500` so many.
#[test]
fn electors_on_bad_networks_and_odd_clocks_never_lead_at_one_moment() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seeds = match number("KUBEWIRE_SEED") {
        Some(seed) => seed..seed + 1,
        None => 0..number("KUBEWIRE_SEEDS").unwrap_or(12),
    };
    let (mut changes, mut led, mut played) = (0, 0, 0);
    for seed in seeds {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        let (more, percent) = runtime.block_on(play(seed));
        (changes, led, played) = (changes + more, led + percent, played + 1);
    }
    println!("{played} seeds of 5 minutes, {changes} changes of leader, somebody led {} % of the time", led / played);
    assert!(changes > 2 * played, "{changes} changes: too calm to mean anything");
}

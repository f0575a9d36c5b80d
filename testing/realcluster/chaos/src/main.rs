//! Informers, handlers, queues and workers against a real kube-apiserver and etcd, to which everything happens that
//! happens to them in production. In the end everything must be as if nothing had happened.
//!
//! `chaos.sh` starts it, and stops the servers whatever comes of it.
#![forbid(unsafe_code)]

mod cast;
mod dice;
mod fault;
mod follower;
mod footprint;
mod form;
mod requests;
mod rights;
mod servers;
mod stage;
mod tap;
mod witness;
mod workers;
mod writers;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

use anyhow::ensure;
use clap::Parser;
use kubewire_ratelimit::Backoff;

use dice::Dice;
use fault::Fault;
use footprint::{MIB, heap, memory_peak, sockets};
use form::Form;
use rights::Rights;
use servers::Servers;
use stage::{Causes, Stage, trouble, until};

#[derive(Parser)]
#[command(about = "Faults against a real kube-apiserver and etcd; chaos.sh calls it")]
struct Args {
    /// Where the servers keep their files.
    run_dir: PathBuf,
    /// The short form, for every change.
    #[arg(long)]
    short: bool,
    /// Decides the order of the faults, how long they last and what is written. Default: the time.
    #[arg(long)]
    seed: Option<u64>,
    /// Every fault on every kind of server, in place of each fault once.
    #[arg(long)]
    each: bool,
    /// How many pods to churn, in place of what the form says.
    #[arg(long)]
    pods: Option<u64>,
    /// Keeps one deletion in twenty from one informer: the run must fail.
    #[arg(long)]
    sabotage: bool,
}

/// As the default, but for a cap of 2 to 4 s instead of 30 to 60: a dozen outages in a few minutes.
pub(crate) fn quick_backoff() -> Backoff {
    Backoff::new(Duration::from_millis(800)).factor(2.0).jitter(1.0).cap(Duration::from_secs(2)).steps(38)
}

fn main() -> ExitCode {
    let args = Args::parse();
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "error".into());
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let clock = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let seed = args.seed.unwrap_or_else(clock);
    let mut form = if args.short { Form::SHORT } else { Form::FULL };
    form.pods = args.pods.unwrap_or(form.pods);
    println!("chaos against a real kube-apiserver: seed {seed}, {} form", form.name);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let outcome = runtime.map_err(anyhow::Error::from).and_then(|runtime| runtime.block_on(run(&args, form, seed)));
    match outcome {
        Ok(summary) => {
            println!("passed: seed {seed}, {} form, {summary}", form.name);
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("FAILED: seed {seed}, {} form: {error:#}", form.name);
            ExitCode::FAILURE
        }
    }
}

async fn run(args: &Args, form: Form, seed: u64) -> anyhow::Result<String> {
    let begin = Instant::now();
    let mut dice = Dice::new(seed);
    let mut faults = if args.each { Fault::each_on_each_server() } else { Fault::SHUFFLED.to_vec() };
    if !args.each {
        dice.shuffle(&mut faults);
    }
    faults.push(Fault::Churn);

    let servers = Servers::new(&args.run_dir, &mut dice)?;
    servers.up("").await?;
    let sockets_before = sockets();
    let admin = servers.admin().await?;
    writers::make_namespaces(&admin).await?;
    let rights = Rights::new(&servers, admin.clone()).await?;
    let followers = cast::all(&rights, &mut dice, args.sabotage)?;
    let mut stage = Stage { form, servers, admin, rights, followers, tally: Arc::default(), dice };
    stage.until_healthy().await?;
    let before = Before { heap: heap(), sockets: sockets_before };
    println!("[{:5.1} s] {} followers watch", begin.elapsed().as_secs_f64(), stage.followers.len());

    let mut slowest = Duration::ZERO;
    for (number, fault) in faults.iter().enumerate() {
        println!("[{:5.1} s] {}/{} {fault}", begin.elapsed().as_secs_f64(), number + 1, faults.len());
        let recovery = play(&mut stage, *fault).await.inspect_err(|_| tell_all(&stage))?;
        slowest = slowest.max(recovery);
    }
    stage.settle(true).await.inspect_err(|_| tell_all(&stage))?;
    finish(stage, faults.len(), slowest, before).await
}

/// One fault: writes before it, in it and behind it, then everything must be right. Gives back how long it took until
/// everybody watched again.
async fn play(stage: &mut Stage, fault: Fault) -> anyhow::Result<Duration> {
    let (requests, causes, residents) = (stage.requests(), stage.causes(), stage.followers.len());
    let (done, failed) = (stage.tally.done.load(Ordering::Relaxed), stage.tally.failed.load(Ordering::Relaxed));
    let fallen = |stage: &Stage| -> Vec<u64> {
        let cause = fault.leaves();
        stage.quick().map(|f| cause.map_or(0, |cause| f.status().reflector.restarts_by(cause))).collect()
    };
    let fallen_before = fallen(stage);

    let writing = (fault != Fault::Churn).then(|| stage.write());
    if writing.is_some() {
        stage.until_written().await?;
    }
    stage.followers.iter().try_for_each(|follower| follower.visit())?;
    let seen = fault.make(stage).await?;
    let begin = Instant::now();
    stage.until_healthy().await?;
    let recovery = begin.elapsed();
    if let Some(writing) = writing {
        stage.until_written().await?;
        writing.stop().await;
    }
    let pods = stage.settle(false).await?;
    let settled = begin.elapsed();

    if let Some(cause) = fault.leaves() {
        let fallen_now = fallen(stage);
        let missed = stage.quick().zip(fallen_before.iter().zip(&fallen_now)).find(|(_, (before, now))| before == now);
        ensure!(missed.is_none(), "{} saw no {cause}", missed.map_or("", |(follower, _)| follower.name()));
    }
    println!("          {seen}");
    println!(
        "          all watch again after {:.1} s, all equal after {:.1} s: {pods} pods; {} writes, {} failed; {} requests, over: {}; heap {} MiB",
        recovery.as_secs_f64(),
        settled.as_secs_f64(),
        stage.tally.done.load(Ordering::Relaxed) - done,
        stage.tally.failed.load(Ordering::Relaxed) - failed,
        stage.requests() - requests,
        tell_causes(&stage.causes(), &causes),
        heap() / MIB,
    );
    for guest in stage.followers.drain(residents..).collect::<Vec<_>>() {
        guest.stop().await;
    }
    Ok(recovery)
}

/// What the process had at first.
struct Before {
    /// When all watched, and there was nothing to see yet.
    heap: usize,
    /// Before anybody spoke to the server.
    sockets: usize,
}

/// By so much the heap may have grown when the churned pods are gone: for the pods of the writers, and for the room
/// that tables keep which were full of keys once. That nothing leaks shows the second round of the churn.
fn heap_growth_max(form: Form) -> usize {
    16 * MIB + 8 * 1024 * form.pods as usize
}

/// The end: everybody stops, and nothing is left.
async fn finish(stage: Stage, faults: usize, slowest: Duration, before: Before) -> anyhow::Result<String> {
    let (mut told, mut worker_failures, mut lists, mut watches) = (0, 0, 0, 0);
    for follower in &stage.followers {
        let (status, figures) = (follower.status().reflector, follower.figures());
        (told, worker_failures) = (told + figures.0, worker_failures + figures.1);
        (lists, watches) = (lists + status.list_requests, watches + status.watch_requests);
    }
    let over = tell_causes(&stage.causes(), &BTreeMap::new());
    let (done, failed) = (stage.tally.done.load(Ordering::Relaxed), stage.tally.failed.load(Ordering::Relaxed));
    let (peak, heap, open) = (memory_peak(), heap(), sockets());
    let grown = heap.saturating_sub(before.heap);
    ensure!(grown <= heap_growth_max(stage.form), "the heap has grown by {grown} bytes, from {}", before.heap);
    // Each has its watch, and one connection more that a list has used; and the writers have theirs.
    let open_max = before.sockets + 3 * stage.followers.len() + 2 * writers::CONCURRENCY;
    ensure!(open <= open_max, "{open} sockets are open, at most {open_max} were to be expected");

    let Stage { followers, admin, rights, servers, .. } = stage;
    let count = followers.len();
    for follower in followers {
        follower.stop().await;
    }
    drop((admin, rights, servers));
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let left =
        || (tasks() > 0 || sockets() > before.sockets).then(|| format!("{} tasks, {} sockets", tasks(), sockets()));
    until("tasks and sockets to go", left).await?;
    Ok(format!(
        "{faults} faults, {count} followers: {done} writes ({failed} failed), {told} notifications, {worker_failures} \
         worker failures, {lists} lists and {watches} watches, over: {over}; all watched again within {:.1} s; heap \
         {} MiB at first, {} in the end, resident at most {peak} MiB; {open} sockets, after the stop none, and no task",
        slowest.as_secs_f64(),
        before.heap / MIB,
        heap / MIB,
    ))
}

fn tell_causes(now: &Causes, before: &Causes) -> String {
    let grown = now.iter().map(|(cause, count)| (cause, count - before.get(cause).copied().unwrap_or(0)));
    let told: Vec<_> = grown.filter(|(_, count)| *count > 0).map(|(cause, count)| format!("{cause} {count}")).collect();
    if told.is_empty() { "none".to_owned() } else { told.join(", ") }
}

/// How everybody is, for who reads of a failure.
fn tell_all(stage: &Stage) {
    for follower in &stage.followers {
        println!("          {}: {}", follower.name(), trouble(&**follower));
    }
}

//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Parser;
use kubewire_examples::{LeaseArgs, duration};
use kubewire_leaderelection::unique_identity;

/// Keeps as many pods as each WebSet wants.
#[derive(Parser)]
pub(crate) struct Args {
    /// Use the cluster of this kubeconfig; the definition of the resource is created there.
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The operator's name: in its lease, its metrics and its events.
    #[arg(long, default_value = "replica-operator")]
    pub(crate) name: String,
    /// Only the operator: nobody makes WebSets, and nobody deletes pods.
    #[arg(long)]
    pub(crate) alone: bool,
    /// How many pods somebody deletes behind its back, one a second.
    #[arg(long, default_value_t = 4)]
    pub(crate) deletions: u32,
    /// How long it thinks about each WebSet before it does something.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) think: Option<Duration>,
    /// Serve /healthz and /readyz here.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub(crate) health_address: SocketAddr,
    /// Serve /metrics here.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub(crate) metrics_address: SocketAddr,
    /// For how long its watches may fail before it is not ready any more.
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = duration)]
    pub(crate) watch_tolerance: Duration,
    /// How long it has to end its work when it is stopped.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration)]
    pub(crate) grace_period: Duration,
    /// Stop after this time, instead of running until Ctrl-C.
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub(crate) run_for: Option<Duration>,
    #[command(flatten)]
    pub(crate) election: ElectionArgs,
}

#[derive(clap::Args)]
pub(crate) struct ElectionArgs {
    /// Work only while this replica has the lease.
    #[arg(long)]
    pub(crate) leader_elect: bool,
    /// What it is called in the lease: each replica needs a name of its own. Default: the host's name and some letters.
    #[arg(long, default_value_t = unique_identity(), hide_default_value = true)]
    pub(crate) identity: String,
    /// 15 s, 10 s and 2 s unless told otherwise.
    #[command(flatten)]
    pub(crate) lease: LeaseArgs,
}

//! Examples for kubewire: each stands in a folder or file of its own beside this one; this library is what their command
//! lines have in common. Begin with `pod_controller`.
#![forbid(unsafe_code)]

use std::io::IsTerminal;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use kube_client::Config;
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kubewire_leaderelection::Settings;
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

/// The configuration of a kubeconfig (the default one, if none is named) and one of its contexts (the current one, if none
/// is named).
///
/// # Errors
/// It cannot be read, or has no such context.
pub async fn from_kubeconfig(kubeconfig: Option<&Path>, context: Option<&str>) -> anyhow::Result<Config> {
    let kubeconfig = match kubeconfig {
        Some(file) => {
            Kubeconfig::read_from(file).with_context(|| format!("cannot read the kubeconfig {}", file.display()))?
        }
        None => Kubeconfig::read().context("cannot read the default kubeconfig")?,
    };
    let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    Config::from_custom_kubeconfig(kubeconfig, &options).await.with_context(|| match context {
        Some(context) => format!("cannot use the context {context:?} of the kubeconfig"),
        None => "cannot use the kubeconfig's current context".to_owned(),
    })
}

/// Logs to standard error what `RUST_LOG` says, or else this.
pub fn log(filter: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| filter.into());
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_target(false)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
}

/// A token that is cancelled by Ctrl-C, by SIGTERM, and after `run_for`.
#[must_use = "without the token nothing stops"]
pub fn stop_signal(run_for: Option<Duration>) -> CancellationToken {
    let stop = CancellationToken::new();
    let cancelled = stop.clone();
    tokio::spawn(async move {
        let after = async {
            match run_for {
                Some(time) => tokio::time::sleep(time).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            () = terminated() => {}
            () = after => {}
        }
        cancelled.cancel();
    });
    stop
}

#[cfg(unix)]
async fn terminated() {
    match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
        Ok(mut signal) => drop(signal.recv().await),
        Err(_) => std::future::pending().await,
    }
}

#[cfg(not(unix))]
async fn terminated() {
    std::future::pending().await
}

/// The times of a lease, as arguments of the command line.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct LeaseArgs {
    /// How long the lease holds after it was renewed for the last time.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    lease_duration: Option<Duration>,
    /// How long a leader acts without a renewal.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    renew_deadline: Option<Duration>,
    /// How often the lease is renewed, or looked at.
    #[arg(long, value_name = "TIME", value_parser = duration)]
    retry_period: Option<Duration>,
}

impl LeaseArgs {
    /// With these, or the given ones where nothing is said, who stops in good order gives the lease up.
    pub fn settings(&self, or: Settings) -> Settings {
        Settings {
            lease_duration: self.lease_duration.unwrap_or(or.lease_duration),
            renew_deadline: self.renew_deadline.unwrap_or(or.renew_deadline),
            retry_period: self.retry_period.unwrap_or(or.retry_period),
            release_on_stop: true,
            ..or
        }
    }
}

/// `500ms`, `10s`, `2m`, `1h`, as an argument of the command line.
///
/// # Errors
/// It is something else; the text says what to write.
pub fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no time: write 10s, 2m or 1h");
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?);
    let seconds = match unit {
        "ms" => return number.parse().map(Duration::from_millis).map_err(|_| wrong()),
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    number.checked_mul(seconds).map(Duration::from_secs).ok_or_else(wrong)
}

#[test]
fn times_have_a_unit_and_anything_else_is_refused_with_a_hint() {
    assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
    assert_eq!(duration("10s"), Ok(Duration::from_secs(10)));
    assert_eq!(duration("2m"), Ok(Duration::from_secs(120)));
    assert_eq!(duration("1h"), Ok(Duration::from_secs(3600)));
    for text in ["", "10", "s", "-1s", "1d", "1.5s", "99999999999999999999s", "18446744073709551615h", "ü"] {
        assert!(duration(text).is_err_and(|hint| hint.contains("write 10s")), "{text}");
    }
}

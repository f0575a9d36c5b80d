//! SIGINT and SIGTERM as a stop token.

use std::io;

use tokio_util::sync::CancellationToken;

/// A token that the first SIGINT or SIGTERM cancels; the second one ends the process with exit code 1, whatever is still
/// running. As controller-runtime's `SetupSignalHandler`, but that it may be called more than once: each token is cancelled.
///
/// ```no_run
/// # async fn f(groups: kubewire_controller::RunnableGroups) -> Result<(), Box<dyn std::error::Error>> {
/// groups.run(kubewire_controller::stop_on_signal()?).await?;
/// # Ok(()) }
/// ```
///
/// Cost: a task that lives as long as the runtime.
///
/// # Errors
/// The handlers cannot be installed.
///
/// # Panics
/// Outside a tokio runtime with its IO driver.
pub fn stop_on_signal() -> io::Result<CancellationToken> {
    let mut signals = Signals::new()?;
    let stop = CancellationToken::new();
    let token = stop.clone();
    tokio::spawn(async move {
        signals.next().await;
        tracing::info!("stopping; a second signal ends at once");
        stop.cancel();
        signals.next().await;
        tracing::error!("a second signal: ending at once");
        std::process::exit(1);
    });
    Ok(token)
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self)
    }

    async fn next(&mut self) {
        // An error means that there is no such signal to wait for.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

//! Why a control plane does not run.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use crate::Component;

/// Why a [`TestEnv`](crate::TestEnv) cannot do what it was asked for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EnvError {
    /// A variable or the builder names a place where the program is not.
    #[error("no {program} at {}: correct TEST_ASSET_… or KUBEBUILDER_ASSETS, or fetch it, e.g. with setup-envtest", path.display())]
    Missing {
        /// Which one.
        program: &'static str,
        /// Where it should be.
        path: PathBuf,
    },
    /// The programs are nowhere, and there is no Go to build them with.
    #[error(
        "no etcd and kube-apiserver: set KUBEBUILDER_ASSETS to a directory that has them, e.g. by setup-envtest, or install Go"
    )]
    NoAssets,
    /// The build of the programs failed.
    #[error("etcd and kube-apiserver cannot be built:\n{output}")]
    Build {
        /// What the build said.
        output: String,
    },
    /// A file, a port or a process.
    #[error("cannot {what}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// A certificate cannot be made.
    #[error("cannot make a certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    /// A program ended by itself.
    #[error("{component} ended ({status}) before it was ready; its last output:\n{output}")]
    Exited {
        /// Which one.
        component: Component,
        /// How.
        status: ExitStatus,
        /// The last lines it wrote.
        output: String,
    },
    /// A program runs, but does not become ready.
    #[error(
        "{component} was not ready after {} s (KUBEBUILDER_CONTROLPLANE_START_TIMEOUT gives it longer): {last}; its last output:\n{output}",
        timeout.as_secs()
    )]
    NotReady {
        /// Which one.
        component: Component,
        /// How long it had.
        timeout: Duration,
        /// What it answered last.
        last: String,
        /// The last lines it wrote.
        output: String,
    },
    /// A program had to be killed.
    #[error("{component} did not end within {} s and was killed", timeout.as_secs())]
    Killed {
        /// Which one.
        component: Component,
        /// How long it had.
        timeout: Duration,
    },
    /// The kubeconfig cannot be used.
    #[error("the kubeconfig cannot be used: {0}")]
    Kubeconfig(#[from] kube_client::config::KubeconfigError),
    /// No configuration of the existing cluster.
    #[error("USE_EXISTING_CLUSTER is set, but there is no configuration of one: {0}")]
    NoExistingCluster(#[from] kube_client::config::InferConfigError),
    /// No client can be made.
    #[error("cannot make a client: {0}")]
    Client(#[from] kube_client::Error),
    /// It needs programs of our own.
    #[error("an existing cluster is used: it cannot {what}")]
    NotOurs {
        /// What was asked for.
        what: &'static str,
    },
}

impl EnvError {
    /// Gives an error of the system its sentence.
    pub(crate) fn io(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { what, source }
    }

    /// A foreign program was faster with a port: another one will do.
    pub(crate) fn is_port_taken(&self) -> bool {
        matches!(self, Self::Exited { output, .. } if output.contains("address already in use"))
    }
}

//! What a test environment is made of.

use std::path::PathBuf;
use std::time::Duration;

use kube_client::Config;

use crate::assets::locate;
use crate::control_plane::{ControlPlane, Plan};
use crate::timeouts::Timeouts;
use crate::{EnvError, Flags, TestEnv};

/// Makes a [`TestEnv`]; see there.
#[derive(Clone, Debug, Default)]
#[must_use = "it does nothing until `start`"]
pub struct TestEnvBuilder {
    assets: Option<PathBuf>,
    etcd_flags: Flags,
    api_server_flags: Flags,
    start_timeout: Option<Duration>,
    stop_timeout: Option<Duration>,
    attached: Option<bool>,
    existing: Option<bool>,
}

/// A foreign program may take a port between its choice and its use.
const ATTEMPTS: usize = 3;

impl TestEnvBuilder {
    /// Where etcd and kube-apiserver are, unless the variables of the environment say otherwise.
    pub fn assets(mut self, directory: impl Into<PathBuf>) -> Self {
        self.assets = Some(directory.into());
        self
    }

    /// Changes to the flags of kube-apiserver, after those that were given before.
    pub fn api_server_flags(mut self, flags: Flags) -> Self {
        self.api_server_flags.extend(flags);
        self
    }

    /// Changes to the flags of etcd, after those that were given before.
    pub fn etcd_flags(mut self, flags: Flags) -> Self {
        self.etcd_flags.extend(flags);
        self
    }

    /// How long each program may take to be ready; 20 s unless `KUBEBUILDER_CONTROLPLANE_START_TIMEOUT` says otherwise.
    pub fn start_timeout(mut self, timeout: Duration) -> Self {
        self.start_timeout = Some(timeout);
        self
    }

    /// How long each program may take to end by itself; 20 s unless `KUBEBUILDER_CONTROLPLANE_STOP_TIMEOUT` says otherwise.
    pub fn stop_timeout(mut self, timeout: Duration) -> Self {
        self.stop_timeout = Some(timeout);
        self
    }

    /// Whether the output of both programs is shown on the standard error; unless said here, where
    /// `KUBEBUILDER_ATTACH_CONTROL_PLANE_OUTPUT` is `true`.
    pub fn attach_output(mut self, attach: bool) -> Self {
        self.attached = Some(attach);
        self
    }

    /// Whether the cluster of the ambient kubeconfig is used and nothing started; unless said here, where
    /// `USE_EXISTING_CLUSTER` is `true`.
    pub fn use_existing_cluster(mut self, existing: bool) -> Self {
        self.existing = Some(existing);
        self
    }

    /// Starts all, and waits until it is ready.
    ///
    /// Whatever was started ends again where that fails, or where the future is dropped.
    ///
    /// # Errors
    /// No programs, or they do not become ready; the error has the last that they wrote.
    pub async fn start(self) -> Result<TestEnv, EnvError> {
        if self.existing.unwrap_or_else(|| is_true("USE_EXISTING_CLUSTER")) {
            return Ok(TestEnv::existing(Config::infer().await?));
        }
        let configured = self.assets.clone();
        let located = tokio::task::spawn_blocking(move || locate(configured)).await;
        // It is not cancelled, and does not panic.
        let assets = located.map_err(|error| EnvError::io("look for the programs")(std::io::Error::other(error)))??;
        let mut timeouts = Timeouts::of(|name| std::env::var(name).ok());
        timeouts.start = self.start_timeout.unwrap_or(timeouts.start);
        timeouts.stop = self.stop_timeout.unwrap_or(timeouts.stop);
        let plan = Plan {
            assets,
            etcd_flags: self.etcd_flags,
            api_server_flags: self.api_server_flags,
            timeouts,
            attached: self.attached.unwrap_or_else(|| is_true("KUBEBUILDER_ATTACH_CONTROL_PLANE_OUTPUT")),
        };
        let mut attempts = 0;
        loop {
            attempts += 1;
            match ControlPlane::start(plan.clone()).await {
                Ok((plane, admin)) => return Ok(TestEnv::own(plane, admin)),
                Err(error) if error.is_port_taken() && attempts < ATTEMPTS => {
                    tracing::info!(%error, "a port was taken by another program: once more with others");
                }
                Err(error) => return Err(error),
            }
        }
    }
}

fn is_true(variable: &str) -> bool {
    std::env::var(variable).is_ok_and(|value| ["1", "t", "true"].contains(&value.to_lowercase().as_str()))
}

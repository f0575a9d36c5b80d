//! A control plane for tests.

use std::path::{Path, PathBuf};

use kube_client::{Client, Config};
use rustix::process::Signal;

use crate::control_plane::ControlPlane;
use crate::install::{install, uninstall};
use crate::{Authority, Component, EnvError, InstallError, LocalWebhooks, Manifests, TestEnvBuilder, User};

/// A real etcd and kube-apiserver on free ports of the loopback address, with a directory of their own; or, where
/// `USE_EXISTING_CLUSTER` says so, the cluster of the ambient kubeconfig.
///
/// Dropping it kills both and removes the directory, also while a panic unwinds; that takes milliseconds, on the thread that
/// drops. [`stop`](Self::stop) asks them to end, which takes longer and tells whether they do. When the process ends without
/// dropping it, killed or with the environment in a static, a watchdog does the same.
pub struct TestEnv {
    backing: Backing,
}

enum Backing {
    // It is some hundred bytes; the other is as large.
    Own { plane: Box<ControlPlane>, admin: Box<User> },
    Existing { config: Box<Config> },
}

impl TestEnv {
    /// Starts one as it is by default.
    ///
    /// Whatever was started ends again where that fails, or where the future is dropped.
    ///
    /// # Errors
    /// See [`TestEnvBuilder::start`].
    pub async fn start() -> Result<Self, EnvError> {
        Self::builder().start().await
    }

    /// To change flags, time-outs and more.
    pub fn builder() -> TestEnvBuilder {
        TestEnvBuilder::default()
    }

    pub(crate) fn own(plane: ControlPlane, admin: User) -> Self {
        Self { backing: Backing::Own { plane: Box::new(plane), admin: Box::new(admin) } }
    }

    pub(crate) fn existing(config: Config) -> Self {
        Self { backing: Backing::Existing { config: Box::new(config) } }
    }

    /// How a client reaches the API server as one who may do everything (of the group `system:masters`).
    pub fn config(&self) -> &Config {
        match &self.backing {
            Backing::Own { admin, .. } => admin.config(),
            Backing::Existing { config } => config,
        }
    }

    /// A new client that may do everything. It lives on the runtime on which it is made: tests that share an environment make
    /// one each.
    ///
    /// # Errors
    /// There is no TLS.
    pub fn client(&self) -> Result<Client, EnvError> {
        Ok(Client::try_from(self.config().clone())?)
    }

    /// A file with the kubeconfig of one who may do everything, for kubectl. Its text is that of [`admin`](Self::admin).
    pub fn kubeconfig(&self) -> Option<PathBuf> {
        self.plane().map(|plane| plane.file("kubeconfig"))
    }

    /// The user that may do everything; none in an existing cluster.
    pub fn admin(&self) -> Option<&User> {
        match &self.backing {
            Backing::Own { admin, .. } => Some(admin),
            Backing::Existing { .. } => None,
        }
    }

    /// A further user, of these groups. It may do nothing until roles are bound to it.
    ///
    /// # Errors
    /// It is an existing cluster, whose authority is not ours.
    pub async fn user(&self, name: &str, groups: &[&str]) -> Result<User, EnvError> {
        let plane = self.plane().ok_or(EnvError::NotOurs { what: "make users" })?;
        let groups: Vec<String> = groups.iter().map(|group| (*group).to_owned()).collect();
        plane.user(name, &groups).await
    }

    /// Installs the custom resource definitions and the webhook configurations among these: what is there is updated. Waits
    /// until all served versions of all definitions are found by discovery, 10 s each.
    ///
    /// The API server calls a webhook some moments after its configuration is there: wait for the first call.
    ///
    /// # Errors
    /// There is none among them, or the API server refuses one or does not serve it.
    pub async fn install(&self, manifests: &Manifests) -> Result<(), InstallError> {
        install(&self.client()?, manifests).await
    }

    /// Deletes what [`install`](Self::install) has brought, for an existing cluster. What is gone is passed over.
    ///
    /// # Errors
    /// The API server refuses.
    pub async fn uninstall(&self, manifests: &Manifests) -> Result<(), InstallError> {
        uninstall(&self.client()?, manifests).await
    }

    /// A place for a webhook server that runs in the tests.
    ///
    /// # Errors
    /// No port, or no certificate.
    pub fn local_webhooks(&self) -> Result<LocalWebhooks, EnvError> {
        LocalWebhooks::new()
    }

    /// The authority that signed the certificates of the API server and the users.
    pub fn authority(&self) -> Option<&Authority> {
        self.plane().map(ControlPlane::authority)
    }

    /// Where the data, the certificates and the kubeconfig are until the end.
    pub fn directory(&self) -> Option<&Path> {
        self.plane().map(ControlPlane::directory)
    }

    /// The address of etcd, without TLS, e.g. to have it compacted.
    pub fn etcd_url(&self) -> Option<String> {
        self.plane().map(ControlPlane::etcd_url)
    }

    /// The last lines that it wrote.
    pub fn output(&self, component: Component) -> String {
        self.plane().map(|plane| plane.output(component)).unwrap_or_default()
    }

    /// The number of its process, while it runs.
    pub fn pid(&self, component: Component) -> Option<u32> {
        self.plane().and_then(|plane| plane.pid(component))
    }

    /// Kills it, as a machine that fails does, and waits until it is gone. Its port is kept for it.
    ///
    /// # Errors
    /// It is an existing cluster.
    pub fn kill(&mut self, component: Component) -> Result<(), EnvError> {
        self.plane_mut("kill its programs")?.kill(component);
        Ok(())
    }

    /// Starts it again after it was killed, on the same port with the same data, and waits until it is ready.
    ///
    /// Where the future is dropped, it runs, and may be not ready yet.
    ///
    /// # Errors
    /// It is an existing cluster, or it does not become ready.
    pub async fn revive(&mut self, component: Component) -> Result<(), EnvError> {
        self.plane_mut("start its programs")?.start_component(component).await
    }

    /// Stops it where it is: its connections stay open, and nothing more comes.
    ///
    /// # Errors
    /// It is an existing cluster, or does not run.
    pub fn pause(&mut self, component: Component) -> Result<(), EnvError> {
        self.signal(component, Signal::STOP)
    }

    /// Lets it go on after a [`pause`](Self::pause).
    ///
    /// # Errors
    /// It is an existing cluster, or does not run.
    pub fn resume(&mut self, component: Component) -> Result<(), EnvError> {
        self.signal(component, Signal::CONT)
    }

    fn signal(&mut self, component: Component, signal: Signal) -> Result<(), EnvError> {
        let plane = self.plane_mut("signal its programs")?;
        plane.signal(component, signal).map_err(EnvError::io("signal a program"))
    }

    /// Lets both programs end by themselves (SIGTERM), and kills what has not ended in time. An existing cluster stays.
    ///
    /// Where the future is dropped, they are killed.
    ///
    /// # Errors
    /// One had to be killed. Nothing is left even so.
    pub async fn stop(self) -> Result<(), EnvError> {
        match self.backing {
            Backing::Own { plane, .. } => plane.stop().await,
            Backing::Existing { .. } => Ok(()),
        }
    }

    fn plane(&self) -> Option<&ControlPlane> {
        match &self.backing {
            Backing::Own { plane, .. } => Some(plane),
            Backing::Existing { .. } => None,
        }
    }

    fn plane_mut(&mut self, what: &'static str) -> Result<&mut ControlPlane, EnvError> {
        match &mut self.backing {
            Backing::Own { plane, .. } => Ok(plane),
            Backing::Existing { .. } => Err(EnvError::NotOurs { what }),
        }
    }
}

//! An etcd and a kube-apiserver of our own.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Request;
use kube_client::{Client, Config};
use rcgen::KeyPair;
use rustix::process::Signal;
use tempfile::TempDir;

use crate::assets::Assets;
use crate::kubeconfig::kubeconfig;
use crate::port::Port;
use crate::process::Process;
use crate::timeouts::Timeouts;
use crate::watchdog::Watchdog;
use crate::{Authority, Component, EnvError, Flags, User};

/// What a control plane is made of.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) assets: Assets,
    pub(crate) etcd_flags: Flags,
    pub(crate) api_server_flags: Flags,
    pub(crate) timeouts: Timeouts,
    pub(crate) attached: bool,
}

/// The fields are dropped in their order: first what runs, last the directory.
pub(crate) struct ControlPlane {
    api_server: Option<Process>,
    etcd: Option<Process>,
    watchdog: Arc<Watchdog>,
    directory: TempDir,
    plan: Plan,
    authority: Authority,
    api_port: Port,
    etcd_port: Port,
    peer_port: Port,
}

/// How often is asked whether it is ready; as envtest.
const READY_POLL: Duration = Duration::from_millis(100);
/// An answer to that question takes no longer.
const READY_TIMEOUT: Duration = Duration::from_secs(5);

impl ControlPlane {
    /// Starts both, and waits until they are ready. Whatever was started ends where that fails, or the future is dropped.
    pub(crate) async fn start(plan: Plan) -> Result<(Self, User), EnvError> {
        let directory = TempDir::with_prefix("kubewire-envtest-").map_err(EnvError::io("make a directory"))?;
        let watchdog = Watchdog::start(directory.path()).map_err(EnvError::io("start a shell"))?;
        let port = || Port::reserve().map_err(EnvError::io("find a free port"));
        let mut this = Self {
            api_server: None,
            etcd: None,
            watchdog: Arc::new(watchdog),
            directory,
            plan,
            authority: Authority::new("kubewire-envtest")?,
            api_port: port()?,
            etcd_port: port()?,
            peer_port: port()?,
        };
        this.write_certificates()?;
        this.start_component(Component::Etcd).await?;
        this.start_component(Component::KubeApiserver).await?;
        let admin = this.admin().await?;
        write_private(&this.file("kubeconfig"), admin.kubeconfig()).map_err(EnvError::io("write the kubeconfig"))?;
        Ok((this, admin))
    }

    fn write_certificates(&self) -> Result<(), EnvError> {
        let server = self.authority.server(&["127.0.0.1", "localhost", "kubernetes.default.svc"])?;
        let service_accounts = KeyPair::generate()?;
        let files = [
            ("apiserver.crt", server.certificate_pem),
            ("apiserver.key", server.key_pem),
            ("ca.crt", self.authority.pem()),
            ("service-accounts.key", service_accounts.serialize_pem()),
            ("service-accounts.pub", service_accounts.public_key_pem()),
        ];
        for (name, text) in &files {
            write_private(&self.file(name), text).map_err(EnvError::io("write a certificate"))?;
        }
        Ok(())
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn authority(&self) -> &Authority {
        &self.authority
    }

    fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.api_port.number())
    }

    pub(crate) fn etcd_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.etcd_port.number())
    }

    /// A user of these groups.
    pub(crate) async fn user(&self, name: &str, groups: &[String]) -> Result<User, EnvError> {
        let certificate = self.authority.user(name, groups)?;
        User::new(name, kubeconfig(&self.url(), &self.authority.pem(), name, &certificate)).await
    }

    async fn admin(&self) -> Result<User, EnvError> {
        self.user("admin", &["system:masters".to_owned()]).await
    }

    fn etcd_defaults(&self) -> Vec<(&'static str, String)> {
        let (client, peer) = (self.etcd_url(), format!("http://127.0.0.1:{}", self.peer_port.number()));
        vec![
            ("data-dir", self.file("etcd").display().to_string()),
            ("listen-client-urls", client.clone()),
            ("advertise-client-urls", client),
            ("listen-peer-urls", peer.clone()),
            ("initial-advertise-peer-urls", peer.clone()),
            ("initial-cluster", format!("default={peer}")),
            // The data outlive a killed etcd, not a failing machine.
            ("unsafe-no-fsync", "true".to_owned()),
        ]
    }

    fn api_server_defaults(&self) -> Vec<(&'static str, String)> {
        let file = |name: &str| self.file(name).display().to_string();
        vec![
            ("etcd-servers", self.etcd_url()),
            ("bind-address", "127.0.0.1".to_owned()),
            ("secure-port", self.api_port.number().to_string()),
            ("cert-dir", file("certificates")),
            ("tls-cert-file", file("apiserver.crt")),
            ("tls-private-key-file", file("apiserver.key")),
            ("client-ca-file", file("ca.crt")),
            ("service-account-issuer", "https://kubernetes.default.svc".to_owned()),
            ("service-account-key-file", file("service-accounts.pub")),
            ("service-account-signing-key-file", file("service-accounts.key")),
            ("authorization-mode", "RBAC".to_owned()),
            ("allow-privileged", "true".to_owned()),
            ("disable-admission-plugins", "ServiceAccount".to_owned()),
            ("service-cluster-ip-range", "10.0.0.0/24".to_owned()),
        ]
    }

    /// Starts one, with what was there before, and waits until it is ready. Where it runs, it is waited for.
    pub(crate) async fn start_component(&mut self, component: Component) -> Result<(), EnvError> {
        if self.place(component).as_mut().is_none_or(|process| process.ended().is_some()) {
            let (program, arguments) = match component {
                Component::Etcd => (&self.plan.assets.etcd, self.plan.etcd_flags.arguments(self.etcd_defaults())),
                Component::KubeApiserver => {
                    let arguments = self.plan.api_server_flags.arguments(self.api_server_defaults());
                    (&self.plan.assets.kube_apiserver, arguments)
                }
            };
            let started = Process::start(program, &arguments, self.plan.attached, &self.watchdog);
            *self.place(component) = Some(started.map_err(EnvError::io("start a program of the control plane"))?);
        }
        let (client, paths) = match component {
            Component::Etcd => (self.etcd_client()?, &["/health"][..]),
            Component::KubeApiserver => (self.admin().await?.client()?, &["/readyz", "/api/v1/namespaces/default"][..]),
        };
        let timeout = self.plan.timeouts.start;
        let Some(process) = self.place(component) else { return Ok(()) };
        let begun = Instant::now();
        for path in paths {
            ready(process, component, &client, path, begun, timeout).await?;
        }
        Ok(())
    }

    fn etcd_client(&self) -> Result<Client, EnvError> {
        // An address of digits is one.
        let url = self.etcd_url().parse().map_err(|error| EnvError::io("reach etcd")(io::Error::other(error)))?;
        Ok(Client::try_from(Config::new(url))?)
    }

    fn place(&mut self, component: Component) -> &mut Option<Process> {
        match component {
            Component::Etcd => &mut self.etcd,
            Component::KubeApiserver => &mut self.api_server,
        }
    }

    /// Kills it, and waits until it is gone.
    pub(crate) fn kill(&mut self, component: Component) {
        // Dropping it does so.
        *self.place(component) = None;
    }

    /// Sends it a signal.
    pub(crate) fn signal(&mut self, component: Component, signal: Signal) -> io::Result<()> {
        match self.place(component) {
            Some(process) => process.signal(signal),
            None => Err(io::Error::other("it does not run")),
        }
    }

    /// The last lines of its output; empty where it does not run.
    pub(crate) fn output(&self, component: Component) -> String {
        let process = match component {
            Component::Etcd => &self.etcd,
            Component::KubeApiserver => &self.api_server,
        };
        process.as_ref().map(Process::output).unwrap_or_default()
    }

    pub(crate) fn pid(&self, component: Component) -> Option<u32> {
        let process = match component {
            Component::Etcd => &self.etcd,
            Component::KubeApiserver => &self.api_server,
        };
        process.as_ref().map(Process::id)
    }

    /// Lets both end by themselves, the API server first, and removes the directory.
    pub(crate) async fn stop(mut self) -> Result<(), EnvError> {
        let timeout = self.plan.timeouts.stop;
        let mut killed = None;
        for component in [Component::KubeApiserver, Component::Etcd] {
            if let Some(mut process) = self.place(component).take() {
                // What was stopped by a signal could not hear of another.
                let _ = process.signal(Signal::CONT);
                if !process.terminate(timeout).await {
                    killed = killed.or(Some(component));
                }
            }
        }
        match killed {
            None => Ok(()),
            Some(component) => Err(EnvError::Killed { component, timeout }),
        }
    }
}

/// Readable for the owner alone, as keys must be.
pub(crate) fn write_private(file: &Path, text: &str) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(file)?;
    file.write_all(text.as_bytes())
}

/// Asks until it answers with success, or has ended, or the time is over.
async fn ready(
    process: &mut Process,
    component: Component,
    client: &Client,
    path: &str,
    begun: Instant,
    timeout: Duration,
) -> Result<(), EnvError> {
    loop {
        if let Some(status) = process.ended() {
            return Err(EnvError::Exited { component, status, output: process.output() });
        }
        let last = match Request::get(path).body(Vec::new()) {
            Err(error) => error.to_string(),
            Ok(request) => match tokio::time::timeout(READY_TIMEOUT, client.request_text(request)).await {
                Ok(Ok(_)) => return Ok(()),
                Ok(Err(error)) => error.to_string(),
                Err(_) => "no answer".to_owned(),
            },
        };
        if begun.elapsed() >= timeout {
            return Err(EnvError::NotReady { component, timeout, last, output: process.output() });
        }
        tokio::time::sleep(READY_POLL).await;
    }
}

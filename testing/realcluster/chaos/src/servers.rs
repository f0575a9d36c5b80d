//! kube-apiserver and etcd as processes: started by `up.sh`, known by their pid files.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_client::{Client, Config};
use kubewire_listwatch::client_from_config;
use serde_json::{Value, json};

use crate::dice::Dice;
use crate::requests::post;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Server {
    Apiserver,
    Etcd,
}

impl Server {
    /// The name of its pid file.
    fn file(self) -> &'static str {
        match self {
            Self::Apiserver => "apiserver.pid",
            Self::Etcd => "etcd.pid",
        }
    }
}

/// The real control plane of one run.
#[derive(Clone)]
pub(crate) struct Servers {
    run: PathBuf,
    api_port: u16,
    etcd_port: u16,
}

impl Servers {
    /// Those of a folder, not started yet, on ports that nobody uses.
    pub(crate) fn new(run: &Path, dice: &mut Dice) -> anyhow::Result<Self> {
        let free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
        // Below the ports that systems give to clients: there a server that is away for a while finds its own again.
        let mut draw = || 20_000 + dice.below(10_000) as u16;
        for _ in 0..1000 {
            let (api_port, etcd_port) = (draw(), draw());
            let ports = [api_port, etcd_port, etcd_port + 1];
            if api_port.abs_diff(etcd_port) > 1 && ports.iter().all(free) {
                return Ok(Self { run: run.to_owned(), api_port, etcd_port });
            }
        }
        bail!("no free ports between 20000 and 30000")
    }

    /// Starts what does not run, kube-apiserver with these further arguments, and waits until all is ready.
    pub(crate) async fn up(&self, apiserver_args: &str) -> anyhow::Result<()> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../up.sh");
        let mut command = Command::new(&script);
        command.arg(&self.run).args([self.api_port, self.etcd_port].map(|port| port.to_string()));
        command.env("APISERVER_ARGS", apiserver_args);
        let output = tokio::task::spawn_blocking(move || command.output()).await?;
        let output = output.with_context(|| format!("cannot run {}", script.display()))?;
        ensure!(output.status.success(), "up.sh: {}", String::from_utf8_lossy(&output.stderr));
        Ok(())
    }

    fn pid(&self, server: Server) -> anyhow::Result<u32> {
        let file = self.run.join(server.file());
        let text = std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        text.trim().parse().with_context(|| format!("no pid in {}", file.display()))
    }

    fn signal(&self, server: Server, signal: &str) -> anyhow::Result<()> {
        let status = Command::new("kill").arg(signal).arg(self.pid(server)?.to_string()).status()?;
        ensure!(status.success(), "kill {signal}: there is no {server:?} any more");
        Ok(())
    }

    /// Kills it, as a machine that fails does, and waits until it is gone.
    pub(crate) async fn kill(&self, server: Server) -> anyhow::Result<()> {
        let stat = format!("/proc/{}/stat", self.pid(server)?);
        self.signal(server, "-KILL")?;
        // Gone, or dead and not yet buried: its ports are free.
        while std::fs::read_to_string(&stat).is_ok_and(|text| !text.contains(") Z ")) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        std::fs::remove_file(self.run.join(server.file()))?;
        Ok(())
    }

    /// Stops it: its connections stay open, and nothing more comes.
    pub(crate) fn stop(&self, server: Server) -> anyhow::Result<()> {
        self.signal(server, "-STOP")
    }

    pub(crate) fn resume(&self, server: Server) -> anyhow::Result<()> {
        self.signal(server, "-CONT")
    }

    /// Lets etcd forget all states before the present one. Says which one that is.
    pub(crate) async fn compact(&self) -> anyhow::Result<String> {
        let etcd = client_from_config(Config::new(format!("http://127.0.0.1:{}", self.etcd_port).parse()?))?;
        // Keys travel in base64; this one is the byte 0.
        let answer: Value = post(&etcd, "/v3/kv/range", &json!({ "key": "AA==" })).await?;
        let revision = answer["header"]["revision"].as_str().context("etcd told no revision")?.to_owned();
        let order = json!({ "revision": revision, "physical": true });
        let _: Value = post(&etcd, "/v3/kv/compaction", &order).await?;
        Ok(revision)
    }

    /// How to reach kube-apiserver as one who may do everything.
    pub(crate) async fn config(&self) -> anyhow::Result<Config> {
        let kubeconfig = Kubeconfig::read_from(self.run.join("kubeconfig"))?;
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
        // A server that has been stopped is to be noticed within a short run.
        config.connect_timeout = Some(Duration::from_secs(3));
        Ok(config)
    }

    /// A client for one who may do everything.
    pub(crate) async fn admin(&self) -> anyhow::Result<Client> {
        Ok(client_from_config(self.config().await?)?)
    }

    /// A file of the run.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.run.join(name)
    }
}

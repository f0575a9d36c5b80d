//! The embedded API server as a program: loopback only, without credentials, for trying things out.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::Parser;
use kubewire_apiserver::{ApiServer, Resource, Simulation};

/// An in-memory Kubernetes API server on the loopback interface.
#[derive(Debug, Parser)]
#[command(version)]
struct Args {
    /// The port; 0 takes a free one.
    #[arg(long, default_value_t = 18080)]
    port: u16,
    /// Where to write a kubeconfig that names the server.
    #[arg(long, value_name = "FILE")]
    kubeconfig_out: Option<PathBuf>,
    /// Begin with so many realistic pods of about 9 kB each.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pods: usize,
    /// Let a few pods in the namespace `default` come, change and go.
    #[arg(long)]
    simulate: bool,
    /// For uids, generated names and the simulation; without it they differ from run to run.
    #[arg(long)]
    seed: Option<u64>,
    /// Serve a custom resource too, such as `example.com/v1/foos/Foo`; may be given more than once.
    #[arg(long, value_name = "GROUP/VERSION/PLURAL/KIND", value_parser = custom_resource)]
    custom_resource: Vec<Resource>,
    /// Serve the custom resource of a CustomResourceDefinition (YAML or JSON) too; may be given more than once.
    #[arg(long, value_name = "FILE")]
    definition: Vec<PathBuf>,
    /// Seconds from one bookmark to the next.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    bookmark_interval: u64,
}

fn custom_resource(text: &str) -> Result<Resource, String> {
    match *text.split('/').collect::<Vec<_>>() {
        [group, version, plural, kind] if [group, version, plural, kind].iter().all(|part| !part.is_empty()) => {
            let [group, version, plural, kind] = [group, version, plural, kind].map(str::to_owned);
            Ok(Resource::custom(group, version, kind, plural).with_status())
        }
        _ => Err("want GROUP/VERSION/PLURAL/KIND, such as example.com/v1/foos/Foo".to_owned()),
    }
}

fn defined(file: &Path) -> anyhow::Result<Resource> {
    let definition: serde_json::Value = serde_saphyr::from_str(&std::fs::read_to_string(file)?)?;
    Ok(Resource::from_definition(&definition)?)
}

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // With its causes, in one line, and without a backtrace: it is the user who has to do something.
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> anyhow::Result<()> {
    let filter = tracing_subscriber::EnvFilter::try_from_default_env().unwrap_or_else(|_| "info".into());
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    let args = Args::parse();

    let mut builder = ApiServer::builder()
        .port(args.port)
        .pods(args.pods)
        .bookmark_interval(Duration::from_secs(args.bookmark_interval));
    if let Some(seed) = args.seed {
        builder = builder.seed(seed);
    }
    for resource in args.custom_resource {
        builder = builder.custom_resource(resource);
    }
    for file in &args.definition {
        builder = builder.custom_resource(defined(file).with_context(|| format!("cannot serve {}", file.display()))?);
    }
    let server = builder
        .start()
        .await
        .with_context(|| format!("cannot listen on 127.0.0.1:{}: choose another port by --port, or 0", args.port))?;
    if let (Some(file), Some(kubeconfig)) = (&args.kubeconfig_out, server.kubeconfig()) {
        std::fs::write(file, kubeconfig).with_context(|| format!("cannot write {}", file.display()))?;
    }
    let simulation = args.simulate.then(|| Simulation::new(args.seed.unwrap_or(1)).start(&server));
    println!("listening on {}", server.url().unwrap_or_default());
    if let Some(file) = &args.kubeconfig_out {
        println!("try: kubectl --kubeconfig {} get pods -A", file.display());
    }

    tokio::signal::ctrl_c().await.context("cannot wait for Ctrl-C")?;
    drop(simulation);
    server.shut_down();
    println!("stopped");
    Ok(())
}

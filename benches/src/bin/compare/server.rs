//! How to reach a real API server.

use kube_client::config::{KubeConfigOptions, Kubeconfig};
use kube_client::{Client, Config};
use kubewire_indexer::Indexers;
use kubewire_informer::reflector::ReflectorOptions;
use kubewire_informer::{Informer, InformerOptions};
use kubewire_listwatch::client_from_config;

use crate::flags::Flags;
use crate::line::Members;
use crate::representation::{PodForm, Speaks, Wire, list_watch};

/// A client of the server that the flag `kubeconfig` names, by default the environment.
pub(crate) async fn connect(flags: &Flags) -> anyhow::Result<Client> {
    let file = kubeconfig(flags);
    anyhow::ensure!(!file.is_empty(), "which server? -kubeconfig FILE, or $KUBECONFIG");
    let config = Kubeconfig::read_from(&file)?;
    Ok(client_from_config(Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await?)?)
}

pub(crate) fn kubeconfig(flags: &Flags) -> String {
    match flags.text("kubeconfig") {
        "" => std::env::var("KUBECONFIG").unwrap_or_default(),
        file => file.to_owned(),
    }
}

/// An informer of all pods, as a controller would have it.
pub(crate) fn informer<O: PodForm, C: Speaks<O>>(client: Client, flags: &Flags) -> anyhow::Result<Informer<O>> {
    let pods = list_watch::<O, C>(client, flags.get("transform")?);
    let reflector = ReflectorOptions::new().watch_list(flags.get("watchlist")?).page_size(flags.get("page")?);
    let options = InformerOptions::new().indexers(Indexers::by_namespace()).reflector(reflector);
    Ok(Informer::with_options(pods, options)?)
}

/// How the server was asked. It is never asked to compress.
pub(crate) fn wire(flags: &Flags, wire: Wire) -> anyhow::Result<Members> {
    Ok(vec![
        ("content_type", wire.media_type().into()),
        ("gzipped", false.into()),
        ("watchlist", flags.get::<bool>("watchlist")?.into()),
        ("transform", flags.get::<bool>("transform")?.into()),
        ("page", flags.get::<u32>("page")?.into()),
    ])
}

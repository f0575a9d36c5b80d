//! A handler as a stream: changes come when they are asked for, in order, and can be awaited among other things.
//!
//! ```text
//! cargo run --example handler_stream
//! ```

use std::sync::Arc;

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kubewire_apiserver::ApiServer;
use kubewire_informer::{Informer, Notification};
use kubewire_listwatch::ListWatch;
use serde_json::json;
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let server = ApiServer::start().await;
    let config = |port: u16| {
        json!({
            "metadata": { "name": "settings", "namespace": "default" },
            "data": { "port": port.to_string() },
        })
    };
    server.create("configmaps", config(8080))?;

    let configs = ListWatch::<Arc<ConfigMap>>::namespaced(server.client(), "default").named("settings");
    let informer = Informer::new(configs);
    let mut changes = informer.subscribe()?;
    let stop = CancellationToken::new();
    let running = informer.start(stop.clone());

    // A stream that nobody polls holds up nobody: the store goes on, and what waits is told later.
    let mut log = Vec::new();
    while let Some(change) = changes.next().await {
        let port =
            |config: &ConfigMap| config.data.as_ref().and_then(|data| data.get("port").cloned()).unwrap_or_default();
        match change {
            Notification::Added { object, is_in_initial_list } => {
                log.push(format!("added, port {}, in the first list: {is_in_initial_list}", port(&object)));
                server.update("configmaps", config(9090))?;
            }
            Notification::Updated { old, new } => {
                log.push(format!("port {} is now {}", port(&old), port(&new)));
                server.delete("configmaps", "default", "settings")?;
            }
            // Known, or a tombstone where the deletion itself was missed: both have a key.
            Notification::Deleted(deleted) => {
                log.push(format!("{} is gone", deleted.key()));
                stop.cancel(); // Which ends the stream.
            }
            _ => {}
        }
        println!("{}", log.last().map_or("", String::as_str));
    }
    running.join().await;

    anyhow::ensure!(
        log == ["added, port 8080, in the first list: true", "port 8080 is now 9090", "default/settings is gone"]
    );
    Ok(())
}

#[test]
fn it_runs() {
    main().unwrap();
}

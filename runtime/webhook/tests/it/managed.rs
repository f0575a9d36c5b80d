//! A webhook server that a manager runs.

use std::sync::Arc;

use futures::future::BoxFuture;
use kube_client::{Client, Config};
use kubewire_controller::{BoxError, Group, Manager, ManagerOptions, RunContext, Runnable};
use kubewire_envtest::Authority;
use kubewire_webhook::{AdmissionResponse, WebhookServer};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use crate::support::{JSON, VALIDATE, post, review, widget, write};
use crate::widget::webhooks;

type Diary = Arc<Mutex<Vec<String>>>;

/// Writes down when it begins and ends, and whether webhooks are served then.
struct Witness {
    name: &'static str,
    group: Group,
    server: Arc<WebhookServer>,
    diary: Diary,
}

impl Witness {
    fn write(&self, what: &str) {
        let served = if self.server.check()().is_ok() { "served" } else { "not served" };
        self.diary.lock().push(format!("{what}{} {served}", self.name));
    }
}

impl Runnable for Witness {
    fn name(&self) -> &str {
        self.name
    }

    fn run(&self, cx: RunContext) -> BoxFuture<'_, Result<(), BoxError>> {
        self.write("+");
        Box::pin(async move {
            cx.stop.cancelled().await;
            self.write("-");
            Ok(())
        })
    }

    fn group(&self) -> Group {
        self.group
    }
}

/// A client of a server that is not there: nothing is asked of it.
fn client() -> Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::try_from(Config::new("http://127.0.0.1:1".parse().unwrap())).unwrap()
}

#[tokio::test]
async fn a_manager_serves_webhooks_before_its_caches_start_and_drains_them_when_those_have_ended() {
    let (authority, directory) = (Authority::new("test").unwrap(), tempfile::tempdir().unwrap());
    write(&directory, &authority);
    let (entered, go) = (CancellationToken::new(), CancellationToken::new());
    let (inside, gate) = (entered.clone(), go.clone());
    let webhooks = webhooks().admission("/waits", move |_| {
        let (inside, gate) = (inside.clone(), gate.clone());
        async move {
            inside.cancel();
            gate.cancelled().await;
            AdmissionResponse::denied("late")
        }
    });
    let server = WebhookServer::new(webhooks.service().unwrap(), directory.path()).unwrap();
    let server = Arc::new(server.address(([127, 0, 0, 1], 0).into()));

    let (manager, diary) = (Manager::new(client(), ManagerOptions::new()), Diary::default());
    for (name, group) in
        [("leader", Group::Leader), ("always", Group::Always), ("cache", Group::Caches), ("http", Group::Http)]
    {
        let (server, diary) = (Arc::clone(&server), Arc::clone(&diary));
        manager.add(Witness { name, group, server, diary }).unwrap();
    }
    manager.groups().add_shared(Arc::clone(&server) as Arc<dyn Runnable>).unwrap();
    manager.readyz().add("webhooks", server.check()).unwrap();
    let ready = async || manager.readyz().run("readyz", "").await;
    assert!(ready().await.1.contains("[-]webhooks"));

    let running = manager.spawn(CancellationToken::new());
    manager.synced().await.unwrap();
    assert!(ready().await.0, "{}", ready().await.1);
    let address = server.local_address().unwrap();
    let body = review("CREATE", widget(1), Value::Null);
    let (status, answer) = post(address, &authority, VALIDATE, JSON, &body).await.unwrap();
    assert_eq!((status, &answer["response"]["allowed"]), (200, &Value::Bool(true)));
    assert_eq!(
        std::mem::take(&mut *diary.lock()),
        ["+http not served", "+cache served", "+always served", "+leader served"]
    );

    let open = tokio::spawn(async move { post(address, &authority, "/waits", JSON, &body).await });
    entered.cancelled().await;
    let stopped = tokio::spawn(running.stop());
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    let (well, report) = ready().await;
    assert!(!well && report.contains("[-]webhooks") && report.contains("[-]manager"), "{report}");
    assert_eq!(*diary.lock(), ["-always served", "-leader served", "-cache served"]);
    assert!(!stopped.is_finished() && !open.is_finished());
    go.cancel();
    let (_, answer) = open.await.unwrap().unwrap();
    assert_eq!(answer["response"]["status"]["message"], "late");
    stopped.await.unwrap().unwrap();
    assert_eq!(diary.lock().last().unwrap(), "-http not served");
}

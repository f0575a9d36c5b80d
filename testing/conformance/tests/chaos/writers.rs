//! Those who change what the server has.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kubewire_apiserver::ApiServer;
use kubewire_indexer::{Object, ObjectKey};
use kubewire_informer::Informer;
use serde_json::json;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::RESOURCE;
use crate::dice::Dice;

const WRITERS: usize = 3;
const NAMESPACES: u64 = 4;
const NAMES: u64 = 12;
/// Nobody else writes there.
const PROBES: &str = "probes";

/// The writers at work.
pub(crate) struct Writing {
    stop: CancellationToken,
    tasks: JoinSet<()>,
    written: Arc<AtomicU64>,
}

pub(crate) fn start<O: Object>(
    server: &ApiServer,
    informer: &Informer<O>,
    stop: &CancellationToken,
    dice: &mut Dice,
) -> Writing {
    let (stop, written, mut tasks) = (stop.child_token(), Arc::new(AtomicU64::new(0)), JoinSet::new());
    for _ in 0..WRITERS {
        let (server, mut dice, written, stop) = (server.clone(), dice.fork(), Arc::clone(&written), stop.clone());
        tasks.spawn(async move {
            while stop.run_until_cancelled(tokio::time::sleep(pause(&mut dice))).await.is_some() {
                for _ in 0..=dice.below(4) {
                    written.fetch_add(u64::from(write(&server, &mut dice)), Ordering::Relaxed);
                }
            }
        });
    }
    tasks.spawn(probe(server.clone(), informer.clone(), dice.fork(), stop.clone()));
    Writing { stop, tasks, written }
}

impl Writing {
    /// Ends the writers, and says how many changes they made.
    pub(crate) async fn stop(mut self) -> u64 {
        self.stop.cancel();
        while let Some(ended) = self.tasks.join_next().await {
            ended.expect("a writer has not panicked");
        }
        self.written.load(Ordering::Relaxed)
    }
}

/// Mostly busy, at times quiet.
fn pause(dice: &mut Dice) -> Duration {
    if dice.chance(0.03) { dice.up_to(Duration::from_secs(200)) } else { dice.up_to(Duration::from_secs(10)) }
}

/// Makes, changes or deletes something. Says whether that could be done.
pub(crate) fn write(server: &ApiServer, dice: &mut Dice) -> bool {
    let (namespace, name) = (format!("ns-{}", dice.below(NAMESPACES)), format!("map-{}", dice.below(NAMES)));
    if server.get(RESOURCE, &namespace, &name).is_none() {
        let object = json!({"metadata": {"namespace": namespace, "name": name}, "data": {"round": "0"}});
        return server.create(RESOURCE, object).is_ok();
    }
    if dice.chance(0.3) {
        let deleted = server.delete(RESOURCE, &namespace, &name).is_ok();
        // At times it is there again at once, under the same name.
        return deleted && (dice.chance(0.7) || write(server, dice));
    }
    let round = dice.below(1_000_000).to_string();
    server.modify(RESOURCE, &namespace, &name, |object| object["data"] = json!({ "round": round })).is_ok()
}

/// Writes, waits for the version of the write, and must then find it in the store.
async fn probe<O: Object>(server: ApiServer, informer: Informer<O>, mut dice: Dice, stop: CancellationToken) {
    for n in 0.. {
        let name = format!("probe-{n}");
        let object = json!({"metadata": {"namespace": PROBES, "name": name}});
        let written = server.create(RESOURCE, object).expect("nobody else writes there");
        let version = written["metadata"]["resourceVersion"].as_str().expect("it has a version").to_owned();
        // Also after the writers were told to stop: by then the trouble is over, and it must come.
        let arrived = tokio::time::timeout(crate::RECOVERY, informer.wait_for_version(&version)).await;
        match arrived {
            Ok(reached) => reached.expect("it runs"),
            Err(_) => panic!("version {version} is never reached: {:#?}\nlast requests: {:#?}", informer.status(), {
                let requests = server.requests();
                requests[requests.len().saturating_sub(8)..].to_vec()
            }),
        }
        let found = informer.indexer().get_by_key(&ObjectKey::new(PROBES, &name)).expect("the store has the write");
        assert_eq!(found.id().resource_version, version);
        server.delete(RESOURCE, PROBES, &name).expect("it is there");
        if stop.run_until_cancelled(tokio::time::sleep(dice.up_to(Duration::from_secs(60)))).await.is_none() {
            return;
        }
    }
}

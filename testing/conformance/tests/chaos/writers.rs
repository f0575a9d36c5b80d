//! Those who change what the server has.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kubewire_apiserver::ApiServer;
use kubewire_indexer::{Object, ObjectKey};
use kubewire_informer::Informer;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::dice::Dice;
use crate::faults;
use crate::play::RECOVERY;
use crate::restores::Restores;
use crate::scope::{Scope, stored};

const WRITERS: usize = 3;
const NAMESPACES: u64 = 3;
const NAMES: u64 = 7;
/// Nobody else writes there.
const PROBES: &str = "probes";

/// Which resources are written.
const RESOURCES: [&str; 2] = ["configmaps", "pods"];

/// The writers at work.
pub(crate) struct Writing {
    stop: CancellationToken,
    tasks: JoinSet<()>,
    written: Arc<AtomicU64>,
}

pub(crate) fn start<O: Object>(
    server: &ApiServer,
    probed: &Informer<O>,
    spoils: bool,
    restores: &Restores,
    stop: &CancellationToken,
    dice: &mut Dice,
) -> Writing {
    let (stop, written, mut tasks) = (stop.child_token(), Arc::new(AtomicU64::new(0)), JoinSet::new());
    for _ in 0..WRITERS {
        let (server, restores, mut dice) = (server.clone(), restores.clone(), dice.fork());
        let (written, stop) = (Arc::clone(&written), stop.clone());
        tasks.spawn(async move {
            while stop.run_until_cancelled(tokio::time::sleep(pause(&mut dice))).await.is_some() {
                restores.may_write().await;
                for _ in 0..=dice.below(4) {
                    written.fetch_add(u64::from(write(&server, &mut dice, spoils)), Ordering::Relaxed);
                }
            }
        });
    }
    let probe =
        Probe { server: server.clone(), informer: probed.clone(), restores: restores.clone(), dice: dice.fork() };
    tasks.spawn(probe.run(stop.clone()));
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
    if dice.chance(0.03) { dice.seconds(60) } else { dice.seconds(6) }
}

/// Makes, changes or deletes something, into what no type could hold where it `spoils`. Says whether that could be done.
pub(crate) fn write(server: &ApiServer, dice: &mut Dice, spoils: bool) -> bool {
    let resource = dice.one_of(&RESOURCES);
    let (namespace, name) = (format!("ns-{}", dice.below(NAMESPACES)), format!("it-{}", dice.below(NAMES)));
    let is_new = server.get(resource, &namespace, &name).is_none();
    if !is_new && dice.chance(0.3) {
        let deleted = server.delete(resource, &namespace, &name).is_ok();
        // At times it is there again at once, under the same name.
        return deleted && (dice.chance(0.6) || put(server, resource, &namespace, &name, dice, spoils));
    }
    put(server, resource, &namespace, &name, dice, spoils)
}

/// Makes an object, or changes it.
fn put(server: &ApiServer, resource: &str, namespace: &str, name: &str, dice: &mut Dice, spoils: bool) -> bool {
    // One is selected by its label and the other is not, so that objects move into and out of a selection.
    let labels = json!({"tier": dice.one_of(&["front", "back"])});
    let content = content(resource, dice, spoils);
    let fill = |object: &mut Value| {
        object["metadata"]["labels"] = labels.clone();
        for (field, value) in content.as_object().into_iter().flatten() {
            object[field] = value.clone();
        }
    };
    if server.get(resource, namespace, name).is_some() {
        return server.modify(resource, namespace, name, fill).is_ok();
    }
    let mut object = json!({"metadata": {"namespace": namespace, "name": name}});
    fill(&mut object);
    server.create(resource, object).is_ok()
}

/// What an object says. At times nothing that its type could hold, or a value that no client knows yet.
fn content(resource: &str, dice: &mut Dice, spoils: bool) -> Value {
    let round = dice.below(1_000_000).to_string();
    match (resource, dice.below(20)) {
        ("configmaps", 0) if spoils => json!({"data": 7}),
        ("configmaps", 1) => json!({"data": {"round": round}, "immutable": null, "fieldOfNextYear": [{}, null]}),
        ("configmaps", _) => json!({"data": {"round": round}}),
        (_, 0) if spoils => json!({"spec": "none"}),
        (_, 1) => {
            let spec = json!({"containers": [], "restartPolicy": "WhenTheMoonIsFull"});
            json!({"spec": spec, "status": {"phase": "Confused", "conditions": [{"type": "New", "status": "Perhaps"}]}})
        }
        _ => json!({"spec": {"containers": [], "nodeName": round}, "status": {"phase": "Running"}}),
    }
}

/// How many objects there are of the resource that has most.
pub(crate) fn objects(server: &ApiServer) -> u64 {
    RESOURCES.iter().map(|resource| server.count(*resource) as u64).max().unwrap_or_default()
}

/// Makes everything readable again.
pub(crate) fn repair(server: &ApiServer) {
    for resource in RESOURCES {
        for object in server.list(resource) {
            let meta = &object["metadata"];
            let text = |name: &str| meta[name].as_str().unwrap_or_default().to_owned();
            let fixed = match resource {
                "configmaps" if object["data"].is_number() => json!({"data": {}}),
                "pods" if object["spec"].is_string() => json!({"spec": {"containers": []}}),
                _ => continue,
            };
            let (field, value) = fixed.as_object().and_then(|fixed| fixed.iter().next()).expect("one field");
            server
                .modify(resource, &text("namespace"), &text("name"), |object| object[field] = value.clone())
                .expect("it is there");
        }
    }
}

/// Writes, waits for the version of the write, and must then find it in the store.
struct Probe<O: Object> {
    server: ApiServer,
    informer: Informer<O>,
    restores: Restores,
    dice: Dice,
}

impl<O: Object> Probe<O> {
    async fn run(mut self, stop: CancellationToken) {
        for n in 0.. {
            self.restores.may_write().await;
            self.once(&format!("probe-{n}")).await;
            if stop.run_until_cancelled(tokio::time::sleep(self.dice.seconds(60))).await.is_none() {
                return;
            }
        }
    }

    async fn once(&self, name: &str) {
        let restores = self.restores.count();
        let object = json!({"metadata": {"namespace": PROBES, "name": name}});
        let written = self.server.create("configmaps", object).expect("nobody else writes there");
        let version = written["metadata"]["resourceVersion"].as_str().expect("it has a version").to_owned();
        // Also after the writers were told to stop: by then the trouble is over, and it must come.
        match tokio::time::timeout(RECOVERY, self.informer.wait_for_version(&version)).await {
            Ok(reached) => reached.expect("it runs"),
            Err(_) => panic!("version {version} is never reached: {:#?}", self.informer.status()),
        }
        // A restore may have taken the write back.
        if self.restores.count() == restores {
            let found = self.informer.indexer().get_by_key(&ObjectKey::new(PROBES, name));
            assert_eq!(found.expect("the store has the write").id().resource_version, version);
            self.compare(&version);
            self.server.delete("configmaps", PROBES, name).expect("it is there");
        }
    }

    /// The store has taken in all that happened up to this version: where nothing was written since, it has exactly what the
    /// server has. Not so where an object cannot be read. Where a list proved nothing of what it lacks, what is gone may
    /// still be there, but nothing else may differ.
    fn compare(&self, version: &str) {
        let is_readable = self.server.list("configmaps").iter().all(|object| !object["data"].is_number());
        if self.server.resource_version().to_string() == version && is_readable {
            let served = Scope::all("configmaps").served(&self.server);
            let mut stored = stored(&self.informer.indexer());
            if faults::may_keep_what_is_gone(&self.server.faults_hit()) {
                stored.retain(|key, _| served.contains_key(key));
            }
            assert_eq!(stored, served, "at version {version}, amid the trouble");
        }
    }
}

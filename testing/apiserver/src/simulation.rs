//! A small cluster whose pods come, change and go by themselves.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::MissedTickBehavior;
use tokio_util::task::AbortOnDropHandle;

use crate::ApiServer;
use crate::rng::Rng;

/// A small cluster to look at: each tick one pod is created, scheduled, started, restarted, relabelled or deleted. The
/// same seed gives the same course.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(async {
/// use kubewire_apiserver::{ApiServer, Simulation};
///
/// let server = ApiServer::start().await;
/// let simulation = Simulation::new(1).start(&server);
/// tokio::time::sleep(std::time::Duration::from_secs(10)).await;
/// assert!(server.count("pods") > 0);
/// drop(simulation); // stops it
/// # });
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing happens until `start`"]
pub struct Simulation {
    rng: Rng,
    namespace: String,
    pods_max: usize,
    interval: Duration,
    pods: Vec<SimulatedPod>,
}

#[derive(Clone, Debug)]
struct SimulatedPod {
    name: String,
    stage: Stage,
    restarts: u32,
}

/// How far a pod is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Created,
    Scheduled,
    Running,
}

/// What happens in one tick.
#[derive(Debug, PartialEq)]
enum Step {
    Create(Value),
    /// The pod of this name gets this merged into it.
    Change(String, Value),
    Delete(String),
}

/// A simulation that runs. Dropping it stops it; what it made stays.
#[derive(Debug)]
#[must_use = "the simulation stops when this is dropped"]
pub struct RunningSimulation(#[expect(dead_code, reason = "held for its drop")] AbortOnDropHandle<()>);

impl Simulation {
    /// A simulation with this seed: up to 8 pods in the namespace `default`, twice a second a change.
    pub fn new(seed: u64) -> Self {
        Self {
            rng: Rng::new(seed),
            namespace: "default".to_owned(),
            pods_max: 8,
            interval: Duration::from_millis(500),
            pods: Vec::new(),
        }
    }

    /// The namespace of the pods; it must be there.
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = namespace.into();
        self
    }

    /// How many pods there are at most; at least one.
    pub fn pods_max(mut self, pods: usize) -> Self {
        self.pods_max = pods.max(1);
        self
    }

    /// The time from one change to the next.
    pub fn interval(mut self, interval: Duration) -> Self {
        self.interval = interval.max(Duration::from_millis(1));
        self
    }

    /// Starts it. The server stays alive as long as it runs. Must be called in a tokio runtime.
    pub fn start(mut self, server: &ApiServer) -> RunningSimulation {
        let server = server.clone();
        RunningSimulation(AbortOnDropHandle::new(tokio::spawn(async move {
            let mut ticks = tokio::time::interval(self.interval);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                self.tick(&server);
            }
        })))
    }

    fn tick(&mut self, server: &ApiServer) {
        let namespace = self.namespace.clone();
        let result = match self.step() {
            Step::Create(pod) => server.create("pods", pod),
            Step::Change(name, change) => {
                server.modify("pods", &namespace, &name, |pod| json_patch::merge(pod, &change))
            }
            Step::Delete(name) => server.delete("pods", &namespace, &name),
        };
        if let Err(error) = result {
            // Somebody else deleted the pod, most likely: forget all that are not there.
            tracing::debug!(%error, "simulation");
            self.pods.retain(|pod| server.get("pods", &namespace, &pod.name).is_some());
        }
    }

    fn step(&mut self) -> Step {
        let may_create = self.pods.len() < self.pods_max;
        if self.pods.is_empty() || (may_create && self.rng.below(3) == 0) {
            return self.create();
        }
        let at = self.rng.below(self.pods.len() as u64) as usize;
        let pod = &mut self.pods[at];
        match pod.stage {
            Stage::Created => {
                pod.stage = Stage::Scheduled;
                let node = format!("node-{}", self.rng.below(3));
                Step::Change(pod.name.clone(), json!({"spec": {"nodeName": node}}))
            }
            Stage::Scheduled => {
                pod.stage = Stage::Running;
                Step::Change(pod.name.clone(), json!({"status": running(pod.restarts)}))
            }
            Stage::Running => match self.rng.below(4) {
                0 => Step::Delete(self.pods.swap_remove(at).name),
                1 => {
                    pod.restarts += 1;
                    Step::Change(pod.name.clone(), json!({"status": running(pod.restarts)}))
                }
                _ => {
                    let revision = self.rng.below(1000).to_string();
                    Step::Change(pod.name.clone(), json!({"metadata": {"labels": {"revision": revision}}}))
                }
            },
        }
    }

    fn create(&mut self) -> Step {
        let app = ["web", "worker", "cache"][self.rng.below(3) as usize];
        let name = format!("{app}-{}", self.rng.suffix(5));
        self.pods.push(SimulatedPod { name: name.clone(), stage: Stage::Created, restarts: 0 });
        Step::Create(json!({
            "metadata": {"name": name, "namespace": self.namespace, "labels": {"app": app}},
            "spec": {"containers": [{"name": "app", "image": format!("registry.example.com/{app}:v1")}]},
        }))
    }
}

fn running(restarts: u32) -> Value {
    json!({
        "phase": "Running",
        "conditions": [{"type": "Ready", "status": "True"}],
        "containerStatuses": [{
            "name": "app", "ready": true, "started": true, "restartCount": restarts, "image": "", "imageID": "",
            "state": {"running": {}},
        }],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_course_and_all_kinds_of_changes() {
        let course = |seed| {
            let mut simulation = Simulation::new(seed);
            (0..200).map(|_| simulation.step()).collect::<Vec<_>>()
        };
        let steps = course(1);
        assert_eq!(steps, course(1));
        assert_ne!(steps, course(2));
        let count = |is: fn(&Step) -> bool| steps.iter().filter(|step| is(step)).count();
        let (created, deleted) = (count(|s| matches!(s, Step::Create(_))), count(|s| matches!(s, Step::Delete(_))));
        assert!(deleted > 5 && created > deleted && created <= deleted + 8, "{created} created, {deleted} deleted");
        assert!(count(|s| matches!(s, Step::Change(..))) > 50);
    }
}

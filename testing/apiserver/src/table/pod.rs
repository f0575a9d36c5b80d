//! The columns of pods. A pod's status in one word is not a field: it is read from phase, reason, conditions and the
//! states of the containers, as kubectl's users know it.

use serde_json::Value;

use super::column::{AGE, Column, NAME, Row, text, text_at};
use super::duration;

pub(super) const COLUMNS: &[Column] = &[
    NAME,
    text("Ready", |row| {
        let summary = Summary::of(row);
        format!("{}/{}", summary.ready, summary.total).into()
    }),
    text("Status", |row| Summary::of(row).status.into()),
    text("Restarts", |row| {
        let summary = Summary::of(row);
        match summary.last_restart {
            Some(time) if summary.restarts != 0 => {
                format!("{} ({} ago)", summary.restarts, duration::since(Some(time), row.now)).into()
            }
            _ => summary.restarts.to_string().into(),
        }
    }),
    AGE,
    text("IP", |row| row.text_or("/status/podIPs/0/ip", row.text_or("/status/podIP", "<none>")).into()).wide(),
    text("Node", |row| row.text_or("/spec/nodeName", "<none>").into()).wide(),
    text("Nominated Node", |row| row.text_or("/status/nominatedNodeName", "<none>").into()).wide(),
    text("Readiness Gates", readiness_gates).wide(),
];

fn readiness_gates(row: &Row<'_>) -> Value {
    let gates = row.list("/spec/readinessGates");
    if gates.is_empty() {
        return "<none>".into();
    }
    let open = gates.iter().filter(|gate| is_true(row, text_at(gate, "/conditionType"))).count();
    format!("{open}/{}", gates.len()).into()
}

/// Whether the first condition of this type is true.
fn is_true(row: &Row<'_>, condition: &str) -> bool {
    let mut conditions = row.list("/status/conditions").iter();
    conditions.find(|c| text_at(c, "/type") == condition).is_some_and(|c| text_at(c, "/status") == "True")
}

/// What the containers' states add up to.
struct Summary<'v> {
    ready: usize,
    total: usize,
    restarts: i64,
    /// When a container last ended that was then started again.
    last_restart: Option<&'v str>,
    status: String,
}

impl<'v> Summary<'v> {
    fn of(row: &Row<'v>) -> Self {
        let sidecars = row.list("/spec/initContainers").iter().filter(|c| is_sidecar(c));
        let mut summary = Summary {
            ready: 0,
            total: row.list("/spec/containers").len() + sidecars.count(),
            restarts: 0,
            last_restart: None,
            status: row.text_or("/status/reason", row.text("/status/phase")).to_owned(),
        };
        let conditions = row.list("/status/conditions");
        if conditions.iter().any(|c| text_at(c, "/type") == "PodScheduled" && text_at(c, "/reason") == GATED) {
            summary.status = GATED.to_owned();
        }
        let initializing = summary.add_init_containers(row);
        if !initializing || is_true(row, "Initialized") {
            summary.add_containers(row);
        }
        if row.is_terminating() {
            let phase = row.text("/status/phase");
            if row.text("/status/reason") == "NodeLost" {
                summary.status = "Unknown".to_owned();
            } else if phase != "Succeeded" && phase != "Failed" {
                summary.status = "Terminating".to_owned();
            }
        }
        summary
    }

    /// Goes through the init containers up to the first that has not done its work; true if there is one.
    fn add_init_containers(&mut self, row: &Row<'v>) -> bool {
        let specs = row.list("/spec/initContainers");
        let mut sidecars = (0, None);
        let mut initializing = false;
        for (index, container) in row.list("/status/initContainerStatuses").iter().enumerate() {
            let name = text_at(container, "/name");
            let sidecar = specs.iter().any(|spec| text_at(spec, "/name") == name && is_sidecar(spec));
            self.add_restarts(container);
            if sidecar {
                sidecars = (sidecars.0 + restarts(container), later(sidecars.1, ended(container)));
            }
            let ended = container.pointer("/state/terminated");
            let waiting = text_at(container, "/state/waiting/reason");
            if ended.is_some_and(|ended| exit_code(ended) == 0) {
                continue;
            }
            if sidecar && container["started"] == true {
                self.ready += usize::from(container["ready"] == true);
                continue;
            }
            self.status = match ended {
                Some(ended) => format!("Init:{}", ending(ended)),
                None if !waiting.is_empty() && waiting != "PodInitializing" => format!("Init:{waiting}"),
                None => format!("Init:{index}/{}", specs.len()),
            };
            initializing = true;
            break;
        }
        if !initializing || is_true(row, "Initialized") {
            // Once initialized, only those init containers count that run beside the others.
            (self.restarts, self.last_restart) = sidecars;
        }
        initializing
    }

    fn add_containers(&mut self, row: &Row<'v>) {
        let mut running = false;
        let mut failure = None;
        for container in row.list("/status/containerStatuses").iter().rev() {
            self.add_restarts(container);
            let waiting = text_at(container, "/state/waiting/reason");
            if !waiting.is_empty() {
                self.status = waiting.to_owned();
            } else if let Some(ended) = container.pointer("/state/terminated") {
                self.status = ending(ended);
                if exit_code(ended) != 0 {
                    failure = Some(self.status.clone());
                }
            } else if container["ready"] == true && container.pointer("/state/running").is_some() {
                running = true;
                self.ready += 1;
            }
        }
        // One container that completed does not complete the pod.
        if self.status == "Completed" {
            match failure {
                _ if running && is_true(row, "Ready") => self.status = "Running".to_owned(),
                Some(failure) => self.status = failure,
                None if running => self.status = "NotReady".to_owned(),
                None => {}
            }
        }
    }

    fn add_restarts(&mut self, container: &'v Value) {
        self.restarts += restarts(container);
        self.last_restart = later(self.last_restart, ended(container));
    }
}

const GATED: &str = "SchedulingGated";

fn is_sidecar(container: &Value) -> bool {
    text_at(container, "/restartPolicy") == "Always"
}

fn restarts(container: &Value) -> i64 {
    container["restartCount"].as_i64().unwrap_or_default()
}

fn ended(container: &Value) -> Option<&str> {
    container.pointer("/lastState/terminated/finishedAt")?.as_str()
}

fn exit_code(ended: &Value) -> i64 {
    ended["exitCode"].as_i64().unwrap_or_default()
}

/// The later of two times as the API writes them: in UTC, to the second, so that the texts compare as the times do.
fn later<'v>(a: Option<&'v str>, b: Option<&'v str>) -> Option<&'v str> {
    a.max(b)
}

/// Why a container ended: its reason, else its signal, else its exit code.
fn ending(ended: &Value) -> String {
    let signal = ended["signal"].as_i64().unwrap_or_default();
    match text_at(ended, "/reason") {
        "" if signal != 0 => format!("Signal:{signal}"),
        "" => format!("ExitCode:{}", exit_code(ended)),
        reason => reason.to_owned(),
    }
}

/// How `kubectl get -w` and `kubectl wait` know that a pod is done: the row's conditions.
pub(super) fn row_conditions(object: &Value) -> Option<Value> {
    let phase = text_at(object, "/status/phase");
    let message = match phase {
        "Succeeded" => "The pod has completed successfully.",
        "Failed" => "The pod failed.",
        _ => return None,
    };
    Some(serde_json::json!([{"type": "Completed", "status": "True", "reason": phase, "message": message}]))
}

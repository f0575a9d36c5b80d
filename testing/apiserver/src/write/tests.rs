//! Random writes against a naive picture of what they should do.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::Registry;
use crate::collection::HistoryLimits;
use crate::store::CollectionId;
use crate::world::{Now, World};

/// What the picture knows of a pod.
#[derive(Clone, Debug)]
struct Pod {
    uid: String,
    version: u64,
    generation: i64,
    spec: u8,
    status: u8,
    finalizers: Vec<&'static str>,
    on_node: bool,
    /// When its grace period ends; `Some(None)`: it is over, and only finalizers keep it.
    deleting: Option<Option<u64>>,
}

struct Model {
    world: World,
    pods: CollectionId,
    start: Instant,
    second: u64,
    picture: BTreeMap<String, Pod>,
}

const FINALIZERS: [&[&str]; 3] = [&[], &["x/one"], &["x/one", "x/two"]];

impl Model {
    fn new() -> Self {
        let limits = HistoryLimits { events_max: 1000, superseded_bytes_max: 1 << 30 };
        let start = Instant::now();
        let now = Now { instant: start, wall: Timestamp::UNIX_EPOCH };
        let world = World::new(Arc::new(Registry::default()), limits, 1, now);
        let pods = world.id(&"pods".into()).unwrap();
        Self { world, pods, start, second: 0, picture: BTreeMap::new() }
    }

    fn now(&self) -> Now {
        let instant = self.start + Duration::from_secs(self.second);
        Now { instant, wall: Timestamp::from_second(self.second as i64).unwrap() }
    }

    fn target(name: &str, status: bool) -> Target {
        Target { namespace: "default".to_owned(), name: name.to_owned(), status, ..Target::default() }
    }

    fn create(&mut self, name: &str, spec: u8, finalizers: &'static [&'static str], on_node: bool) {
        let object = json!({
            "metadata": {"name": name, "finalizers": finalizers},
            "spec": {"n": spec, "nodeName": if on_node { "n1" } else { "" }},
            "status": {"n": 9},
        });
        let (target, now) = (Self::target("", false), self.now());
        let made = self.world.create(self.pods, &target, object, now);
        if self.picture.contains_key(name) {
            assert_eq!(made.unwrap_err().reason, "AlreadyExists");
            return;
        }
        let made = made.unwrap().to_value();
        let finalizers = finalizers.to_vec();
        let uid = meta_text(&made, "uid").to_owned();
        let pod = Pod { uid, version: 0, generation: 1, spec, status: 0, finalizers, on_node, deleting: None };
        self.picture.insert(name.to_owned(), pod);
        self.learn_version(name, &made);
    }

    fn learn_version(&mut self, name: &str, object: &Value) {
        if let Some(pod) = self.picture.get_mut(name) {
            pod.version = meta_text(object, "resourceVersion").parse().unwrap();
        }
    }

    /// A PUT of the whole object, from the present version or from an old one.
    fn update(&mut self, name: &str, spec: u8, finalizers: &'static [&'static str], is_stale: bool) {
        let Some(stored) = self.world.store.get(self.pods, &ObjectKey::new("default", name)).cloned() else {
            let missing = self.world.update(self.pods, &Self::target(name, false), json!({}));
            assert_eq!(missing.unwrap_err().reason, "NotFound");
            return;
        };
        let mut object = stored.to_value();
        object["spec"]["n"] = json!(spec);
        object["status"] = json!({"n": 99});
        metadata(&mut object).insert("finalizers".to_owned(), json!(finalizers));
        for owned in ["deletionTimestamp", "generation", "creationTimestamp"] {
            metadata(&mut object).remove(owned);
        }
        if is_stale {
            metadata(&mut object).insert("resourceVersion".to_owned(), json!((stored.version - 1).to_string()));
        }
        let result = self.world.update(self.pods, &Self::target(name, false), object);
        let pod = self.picture.get_mut(name).unwrap();
        let adds = finalizers.iter().any(|finalizer| !pod.finalizers.contains(finalizer));
        if is_stale {
            assert_eq!(result.unwrap_err().reason, "Conflict");
        } else if pod.deleting.is_some() && adds {
            assert_eq!(result.unwrap_err().reason, "Invalid");
        } else {
            pod.generation += i64::from(pod.spec != spec);
            (pod.spec, pod.finalizers) = (spec, finalizers.to_vec());
            let written = result.unwrap();
            if pod.deleting == Some(None) && pod.finalizers.is_empty() {
                assert!(self.world.store.get(self.pods, &stored.key).is_none());
                let version = written.to_value()["metadata"]["resourceVersion"].clone();
                assert_eq!(version, json!(stored.version.to_string()), "what was wanted was never written");
                self.picture.remove(name);
            } else {
                self.learn_version(name, &written.to_value());
            }
        }
    }

    fn set_status(&mut self, name: &str, status: u8) {
        let patch = |mut object: Value| {
            object["status"]["n"] = json!(status);
            object["spec"]["n"] = json!(77);
            Ok(object)
        };
        let result = self.world.patch(self.pods, &Self::target(name, true), patch);
        let Some(pod) = self.picture.get_mut(name) else {
            assert_eq!(result.unwrap_err().reason, "NotFound");
            return;
        };
        pod.status = status;
        // As for a PUT: the status of a pod that waits for nothing any more is the last write to it.
        let written = result.unwrap().to_value();
        self.learn_version(name, &written);
    }

    fn delete(&mut self, name: &str, grace: i64) {
        let options = DeleteOptions { grace_period_seconds: Some(grace), ..DeleteOptions::default() };
        let now = self.now();
        let result = self.world.delete(self.pods, &Self::target(name, false), &options, now);
        let Some(pod) = self.picture.get_mut(name) else {
            assert_eq!(result.unwrap_err().reason, "NotFound");
            return;
        };
        let written = result.unwrap();
        let grace = if pod.on_node { grace as u64 } else { 0 };
        if grace == 0 && pod.finalizers.is_empty() {
            assert!(matches!(written, Written::Removed(_)));
            self.picture.remove(name);
            return;
        }
        let ends = (grace > 0).then_some(self.second + grace);
        let is_shorter = match pod.deleting {
            None => true,
            Some(None) => false,
            // What counts is the length, not the moment of the end.
            Some(Some(_)) => written.to_value()["metadata"]["deletionGracePeriodSeconds"] == json!(grace),
        };
        let before = pod.version;
        let object = written.to_value();
        self.learn_version(name, &object);
        let pod = self.picture.get_mut(name).unwrap();
        if pod.version != before {
            assert!(is_shorter);
            pod.generation += 1;
            // An earlier end that was planned already stays planned: it ends what is there then.
            pod.deleting = Some(match (pod.deleting, ends) {
                (_, None) => None,
                (Some(Some(planned)), Some(ends)) => Some(planned.min(ends)),
                (_, ends) => ends,
            });
        }
    }

    fn wait(&mut self, seconds: u64) {
        self.second += seconds;
        let now = self.now();
        self.world.end_grace_periods(now.instant);
        assert!(self.world.next_deadline().is_none_or(|next| next > now.instant));
        let second = self.second;
        self.picture.retain(|_, pod| {
            if matches!(pod.deleting, Some(Some(ends)) if ends <= second) {
                pod.deleting = Some(None);
                return !pod.finalizers.is_empty();
            }
            true
        });
        for name in self.picture.keys().cloned().collect::<Vec<_>>() {
            let stored = self.world.store.get(self.pods, &ObjectKey::new("default", &name)).unwrap().to_value();
            self.learn_version(&name, &stored);
        }
    }

    fn validate(&self) {
        let collection = self.world.store.collection(self.pods);
        collection.validate();
        let page = collection.page(self.world.store.version(), None, None, usize::MAX, |_| true).unwrap();
        let names: Vec<&str> = page.items.iter().map(|object| object.key.name()).collect();
        assert_eq!(names, self.picture.keys().collect::<Vec<_>>());
        for (stored, pod) in page.items.iter().zip(self.picture.values()) {
            let object = stored.to_value();
            let metadata = &object["metadata"];
            assert_eq!((&*stored.uid, stored.version), (pod.uid.as_str(), pod.version));
            assert_eq!(metadata["generation"], json!(pod.generation), "{object}");
            assert_eq!(object["spec"]["n"], json!(pod.spec));
            assert_eq!(object["status"]["n"].as_u64().unwrap_or(0), u64::from(pod.status));
            assert_eq!(finalizers(&object), pod.finalizers);
            assert_eq!(!metadata["deletionTimestamp"].is_null(), pod.deleting.is_some());
            assert!(metadata["creationTimestamp"].is_string());
            let is_over = metadata["deletionGracePeriodSeconds"] == json!(0);
            assert_eq!(is_over, pod.deleting == Some(None), "{object}");
        }
    }
}

proptest! {
    #[test]
    fn random_writes_do_what_a_naive_picture_says(
        steps in prop::collection::vec((0..9u8, 0..3usize, 0..3u8, 0..3usize, any::<bool>()), 1..80),
    ) {
        let mut model = Model::new();
        for (what, name, number, finalizers, flag) in steps {
            let name = ["a", "b", "c"][name];
            match what {
                0 | 1 => model.create(name, number, FINALIZERS[finalizers], flag),
                2 | 3 => model.update(name, number, FINALIZERS[finalizers], flag && number == 0),
                4 => model.set_status(name, number + 1),
                5 | 6 => model.delete(name, [0, 5, 30][usize::from(number)]),
                _ => model.wait([1, 4, 40][usize::from(number)]),
            }
            model.validate();
        }
    }
}

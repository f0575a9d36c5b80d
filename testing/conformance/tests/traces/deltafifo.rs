//! Area `deltafifo`: the queue of deltas between reflector and informer.

use std::collections::BTreeMap;
use std::sync::Arc;

use kubewire_conformance::Area;
use kubewire_indexer::{Deleted, Object, ObjectKey};
use kubewire_informer::{AdmitError, Closed, Delivery, Delta, DeltaFifo, DeltaFifoOptions, KnownObjects, Transform};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::record::{Form, Pod, edited};

/// client-go takes at most so many entries in a batch.
const BATCH_MAX: usize = 1000;

pub(crate) struct DeltaFifos<O: Form> {
    fifo: DeltaFifo<O>,
    known: Arc<Known<O>>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    queue: String,
    known_objects: bool,
    emit_replaced: bool,
    transform: String,
}

/// An object as the traces write it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Thing {
    key: String,
    version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    note: String,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Input {
    object: Option<Thing>,
    objects: Vec<Thing>,
    key: String,
    version: String,
    tombstone: bool,
    no_key: bool,
    fail: bool,
}

#[derive(Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Answer {
    pending: usize,
    synced: bool,
    deltas: Vec<Told>,
    initial: bool,
    batched: bool,
    would_block: bool,
    error: String,
}

/// A delta as the traces write it.
#[derive(Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Told {
    r#type: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    key: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    version: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    note: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    tombstone: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    objects: Vec<Thing>,
}

/// The objects that were popped. They list their keys in ascending order.
struct Known<O> {
    objects: Mutex<BTreeMap<String, O>>,
}

impl<O: Form> KnownObjects<O> for Known<O> {
    fn known_keys(&self) -> Vec<ObjectKey> {
        self.objects.lock().values().map(Object::key).collect()
    }

    fn known(&self, key: &ObjectKey) -> Option<O> {
        self.objects.lock().get(key.as_str()).cloned()
    }
}

impl<O: Form> Known<O> {
    fn apply(&self, delta: Delta<O>) {
        match delta {
            Delta::Deleted(deleted) => drop(self.objects.lock().remove(deleted.key().as_str())),
            other => {
                if let Some(object) = other.object() {
                    self.objects.lock().insert(object.key().to_string(), object.clone());
                }
            }
        }
    }
}

impl<O: Form> Area for DeltaFifos<O> {
    type Config = Config;
    type Input = Input;
    type Answer = Answer;

    fn build(config: Config, _: &[String]) -> Result<Self, String> {
        let delivery = match config.queue.as_str() {
            "delta" => Delivery::PerKey,
            "real" => Delivery::InOrderItems,
            "real_atomic" => Delivery::InOrder,
            other => return Err(format!("unknown queue {other:?}")),
        };
        let transform: Option<Transform<O>> = match config.transform.as_str() {
            "" => None,
            "append" => Some(Arc::new(|object| Ok(edited(&object, |pod| pod.note.push('+'))))),
            other => return Err(format!("unknown transform {other:?}")),
        };
        let known = Arc::new(Known { objects: Mutex::default() });
        let known_objects: Option<Arc<dyn KnownObjects<O>>> =
            if config.known_objects { Some(Arc::clone(&known) as _) } else { None };
        let options = DeltaFifoOptions { delivery, known_objects, emit_replaced: config.emit_replaced, transform };
        Ok(Self { fifo: DeltaFifo::new(options), known })
    }

    fn step(&mut self, op: &str, input: Input) -> Result<Answer, String> {
        let mut answer = match op {
            "pop" => self.pop(1, input.fail),
            "pop_batch" => self.pop(BATCH_MAX, input.fail),
            _ => self.push(op, input)?,
        };
        answer.pending = self.fifo.len();
        answer.synced = self.fifo.has_synced();
        Ok(answer)
    }
}

impl<O: Form> DeltaFifos<O> {
    fn push(&self, op: &str, input: Input) -> Result<Answer, String> {
        let Self { fifo, known } = self;
        let object = || {
            let given = if input.no_key { Some(Thing::default()) } else { input.object.clone() };
            given.map(|thing| thing.made::<O>()).ok_or_else(|| format!("{op} without an object"))
        };
        let done = match op {
            "add" => fifo.add(object()?),
            "update" => fifo.update(object()?),
            "delete" => {
                let object = object()?;
                fifo.delete(if input.tombstone {
                    let known = !object.id().resource_version.is_empty();
                    Deleted::final_state_unknown(object.key(), Some(object).filter(|_| known))
                } else {
                    Deleted::Known(object)
                })
            }
            "replace" => {
                let nameless = input.no_key.then(Thing::default);
                fifo.replace(input.objects.into_iter().chain(nameless).map(|thing| thing.made()), &input.version)
            }
            "resync" => {
                fifo.resync();
                Ok(())
            }
            "bookmark" => {
                fifo.bookmark(&input.version);
                Ok(())
            }
            "close" => {
                fifo.close();
                Ok(())
            }
            "known_set" => {
                let object = object()?;
                known.objects.lock().insert(object.key().to_string(), object);
                Ok(())
            }
            "known_remove" => {
                known.objects.lock().remove(&input.key);
                Ok(())
            }
            _ => return Err(format!("unknown operation {op:?}")),
        };
        let error = match done {
            Ok(()) => "",
            Err(AdmitError::Key(_)) => "key",
            Err(AdmitError::Transform { .. }) => "transform",
            Err(other) => return Err(format!("an error without a class: {other}")),
        };
        Ok(Answer { error: error.to_owned(), ..Answer::default() })
    }

    /// Takes entries and processes them, or fails to.
    fn pop(&self, max: usize, fail: bool) -> Answer {
        let mut popped = match self.fifo.try_pop(max) {
            Ok(Some(popped)) => popped,
            Ok(None) => return Answer { would_block: true, ..Answer::default() },
            Err(Closed) => return Answer { error: "closed".to_owned(), ..Answer::default() },
        };
        let (initial, batched) = (popped.is_initial(), popped.entries().len() > 1);
        let deltas: Vec<Delta<O>> = popped.take_entries().flatten().collect();
        let told = deltas.iter().map(Told::of).collect();
        let error = if fail {
            "process".to_owned()
        } else {
            deltas.into_iter().for_each(|delta| self.known.apply(delta));
            String::new()
        };
        Answer { deltas: told, initial, batched, error, ..Answer::default() }
    }
}

impl Thing {
    fn made<O: Form>(&self) -> O {
        let (namespace, name) = self.key.split_once('/').unwrap_or(("", &self.key));
        O::make(&Pod {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            version: self.version.clone(),
            note: self.note.clone(),
            ..Pod::default()
        })
    }

    fn of<O: Form>(object: &O) -> Self {
        let Pod { version, note, .. } = object.read();
        Self { key: object.key().to_string(), version, note }
    }
}

impl Told {
    fn of<O: Form>(delta: &Delta<O>) -> Self {
        let mut told = Self { r#type: delta.kind().to_owned(), ..Self::default() };
        match delta {
            Delta::Deleted(deleted) => {
                told.key = deleted.key().to_string();
                told.tombstone = deleted.is_final_state_unknown();
            }
            Delta::ReplacedAll(list) => {
                told.version.clone_from(&list.resource_version);
                told.objects = list.items.iter().map(|item| Thing::of(item.object())).collect();
            }
            Delta::Bookmark(version) => told.version.clone_from(version),
            other => told.key = other.object().map(|object| object.key().to_string()).unwrap_or_default(),
        }
        if let Some(object) = delta.object() {
            let Pod { version, note, .. } = object.read();
            (told.version, told.note) = (version, note);
        }
        told
    }
}

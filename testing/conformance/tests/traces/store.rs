//! Area `store`: the thread safe store, and the indexer on top of it.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::hash::Hash;

use kubewire_conformance::Area;
use kubewire_indexer::{Deleted, IndexError, IndexFunc, Indexer, Indexers, ObjectKey, Store, UnknownIndex};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::record::{Form, Pod};

/// The two levels.
pub(crate) enum Stores<O: Form> {
    /// Takes keys from the objects.
    Indexer(Indexer<O>),
    /// Gets them beside the objects.
    ThreadSafe(Store<String, O>),
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    level: String,
    indexers: BTreeMap<String, String>,
}

/// An object as the traces write it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Item {
    key: String,
    version: String,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    fields: BTreeMap<String, Vec<String>>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Input {
    object: Option<Item>,
    objects: Vec<Item>,
    entries: BTreeMap<String, Item>,
    key: String,
    tombstone: bool,
    version: String,
    index: String,
    value: String,
    indexers: BTreeMap<String, String>,
}

#[derive(Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Answer {
    found: bool,
    object: Option<Item>,
    objects: Vec<Item>,
    keys: Vec<String>,
    values: Vec<String>,
    names: Vec<String>,
    version: String,
    error: String,
}

impl Item {
    /// The object, whose fields are written into its note.
    fn made<O: Form>(self) -> O {
        let (namespace, name) = self.key.split_once('/').unwrap_or(("", &self.key));
        let note = if self.fields.is_empty() { String::new() } else { json!(self.fields).to_string() };
        O::make(&Pod {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            version: self.version,
            note,
            ..Pod::default()
        })
    }

    fn of<O: Form>(object: &O) -> Self {
        let pod = object.read();
        let key = if pod.namespace.is_empty() { pod.name } else { format!("{}/{}", pod.namespace, pod.name) };
        Self { key, version: pod.version, fields: fields(&pod.note) }
    }
}

fn fields(note: &str) -> BTreeMap<String, Vec<String>> {
    serde_json::from_str(note).unwrap_or_default()
}

impl<O: Form> Area for Stores<O> {
    type Config = Config;
    type Input = Input;
    type Answer = Answer;

    fn build(config: Config, _: &[String]) -> Result<Self, String> {
        let indexers = indexers(&config.indexers)?;
        match config.level.as_str() {
            "indexer" => Indexer::with_indexers(indexers).map(Self::Indexer).map_err(|error| error.to_string()),
            "thread_safe_store" => {
                Store::with_indexers(indexers).map(Self::ThreadSafe).map_err(|error| error.to_string())
            }
            other => Err(format!("unknown level {other:?}")),
        }
    }

    fn step(&mut self, op: &str, input: Input) -> Result<Answer, String> {
        match (op, &*self) {
            ("add" | "update" | "delete" | "replace" | "get" | "get_by_key", Self::Indexer(indexer)) => {
                with_objects(indexer, op, input)
            }
            ("add" | "update" | "delete" | "replace" | "get" | "get_by_key", Self::ThreadSafe(store)) => {
                with_keys(store, op, input)
            }
            (_, Self::Indexer(indexer)) => with_indices(indexer.store(), op, input),
            (_, Self::ThreadSafe(store)) => with_indices(store, op, input),
        }
    }

    fn agrees(&self, expected: &Answer, got: &Answer) -> bool {
        expected.sorted() == got.sorted()
    }
}

impl Answer {
    /// Lists are sets.
    fn sorted(&self) -> Self {
        Self {
            found: self.found,
            object: self.object.clone(),
            objects: sorted(self.objects.iter().cloned()),
            keys: sorted(self.keys.iter().cloned()),
            values: sorted(self.values.iter().cloned()),
            names: sorted(self.names.iter().cloned()),
            version: self.version.clone(),
            error: self.error.clone(),
        }
    }
}

/// What differs between the levels, where objects have their own keys.
fn with_objects<O: Form>(indexer: &Indexer<O>, op: &str, input: Input) -> Result<Answer, String> {
    let object = || input.object.clone().map(|item| item.made::<O>()).ok_or_else(|| format!("{op} without an object"));
    match op {
        "add" => drop(indexer.add(object()?).map_err(|error| error.to_string())?),
        "update" => drop(indexer.update(object()?).map_err(|error| error.to_string())?),
        "delete" => {
            let deleted = match object() {
                Ok(object) => Deleted::Known(object),
                Err(_) if input.tombstone => Deleted::final_state_unknown(key(&input.key), None),
                Err(error) => return Err(error),
            };
            drop(indexer.delete_deleted(&deleted).map_err(|error| error.to_string())?);
        }
        "replace" => {
            let objects = input.objects.into_iter().map(|item| item.made());
            indexer.replace(objects, &input.version).map_err(|error| error.to_string())?;
        }
        "get" => return Ok(found(indexer.get(&object()?))),
        _ => return Ok(found(indexer.get_by_key(&key(&input.key)))),
    }
    Ok(Answer::default())
}

/// What differs between the levels, where keys are given.
fn with_keys<O: Form>(store: &Store<String, O>, op: &str, input: Input) -> Result<Answer, String> {
    let object = || input.object.clone().map(|item| item.made::<O>()).ok_or_else(|| format!("{op} without an object"));
    match op {
        "add" => drop(store.add(input.key.clone(), object()?)),
        "update" => drop(store.update(input.key.clone(), object()?)),
        "delete" => drop(store.delete(&input.key)),
        "replace" => {
            let entries = input.entries.into_iter().map(|(key, item)| (key, item.made()));
            store.replace_at(entries, &input.version);
        }
        _ => return Ok(found(store.get(&input.key))),
    }
    Ok(Answer::default())
}

/// What is the same at both levels.
fn with_indices<K, O: Form>(store: &Store<K, O>, op: &str, input: Input) -> Result<Answer, String>
where
    K: Clone + Display + Eq + Hash + Ord,
{
    let Input { index, value, .. } = &input;
    let unknown = |_: UnknownIndex| error("unknown_index");
    Ok(match op {
        "list" => objects(store.list().to_vec()),
        "list_keys" => keys(store.list_keys()),
        "index" => match store.index(index, &input.object.clone().ok_or("index without an object")?.made()) {
            Ok(found) => objects(found),
            Err(IndexError::Unknown(cause)) => unknown(cause),
            Err(other) => return Err(other.to_string()),
        },
        "by_index" => store.by_index(index, value).map_or_else(unknown, objects),
        "index_keys" => store.index_keys(index, value).map_or_else(unknown, keys),
        "list_index_values" => {
            let values = store.list_index_func_values(index);
            Answer { values: values.iter().map(ToString::to_string).collect(), ..Answer::default() }
        }
        "add_indexers" => match store.add_indexers(indexers(&input.indexers)?) {
            Ok(()) => Answer::default(),
            Err(_) => error("index_conflict"),
        },
        "indexer_names" => {
            let names = store.indexer_names();
            Answer { names: names.iter().map(ToString::to_string).collect(), ..Answer::default() }
        }
        "bookmark" => {
            store.bookmark(&input.version);
            Answer::default()
        }
        "last_version" => Answer { version: store.last_version(), ..Answer::default() },
        _ => return Err(format!("unknown operation {op:?}")),
    })
}

/// Index functions by their descriptions.
fn indexers<O: Form>(described: &BTreeMap<String, String>) -> Result<Indexers<O>, String> {
    described
        .iter()
        .map(|(name, function)| {
            let function = match (function.as_str(), function.strip_prefix("field:")) {
                ("namespace", _) => IndexFunc::namespace(),
                ("name", _) => IndexFunc::name(),
                (_, Some(field)) => {
                    let field = field.to_owned();
                    IndexFunc::many(move |object: &O| {
                        fields(object.label("note").unwrap_or_default()).remove(&field).unwrap_or_default()
                    })
                }
                (other, None) => return Err(format!("unknown index function {other:?}")),
            };
            Ok((name.as_str(), function))
        })
        .collect()
}

/// A key by its text. One that does not parse is no object's key, and is looked for as it is.
fn key(text: &str) -> ObjectKey {
    text.parse().unwrap_or_else(|_| ObjectKey::cluster(text))
}

fn found<O: Form>(object: Option<O>) -> Answer {
    Answer { found: object.is_some(), object: object.as_ref().map(Item::of), ..Answer::default() }
}

fn objects<O: Form>(found: Vec<O>) -> Answer {
    Answer { objects: found.iter().map(Item::of).collect(), ..Answer::default() }
}

fn keys<K: Display>(found: Vec<K>) -> Answer {
    Answer { keys: found.iter().map(ToString::to_string).collect(), ..Answer::default() }
}

fn error(class: &str) -> Answer {
    Answer { error: class.to_owned(), ..Answer::default() }
}

fn sorted<T: Ord>(list: impl Iterator<Item = T>) -> Vec<T> {
    let mut list: Vec<T> = list.collect();
    list.sort();
    list
}

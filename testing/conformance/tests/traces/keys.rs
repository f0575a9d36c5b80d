//! Area `keys`: keys of objects, and back.

use std::sync::Arc;

use kubewire_conformance::Area;
use kubewire_indexer::{Deleted, Id, KeyError, Meta, Object, ObjectKey};
use serde::{Deserialize, Serialize};

/// Nothing to build: keys are functions.
pub(crate) struct Keys;

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Input {
    input: Thing,
    key: String,
}

/// What a key is asked of: one of the four.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Thing {
    object: Option<Named>,
    tombstone: Option<Tombstone>,
    explicit_key: Option<String>,
    not_an_object: bool,
}

#[derive(Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Named {
    namespace: String,
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Tombstone {
    key: String,
    object: Option<Named>,
}

#[derive(Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Answer {
    key: String,
    namespace: String,
    name: String,
    values: Vec<String>,
    error: String,
}

impl Meta for Named {
    fn id(&self) -> Id<'_> {
        Id::new(&self.namespace, &self.name)
    }
}

impl Area for Keys {
    type Config = Config;
    type Input = Input;
    type Answer = Answer;

    fn build(_: Config, _: &[String]) -> Result<Self, String> {
        Ok(Self)
    }

    fn step(&mut self, op: &str, input: Input) -> Result<Answer, String> {
        let thing = input.input;
        let given =
            [thing.object.is_some(), thing.tombstone.is_some(), thing.explicit_key.is_some(), thing.not_an_object];
        if given.into_iter().filter(|given| *given).count() != usize::from(!op.starts_with("split")) {
            return Err("the input is to be one of object, tombstone, explicit_key, not_an_object".to_owned());
        }
        Ok(match op {
            "key" => match (thing.object, thing.explicit_key) {
                (Some(object), _) => key(&Arc::new(object).key()),
                (None, Some(text)) => key(&opaque(&text)),
                (None, None) => not_an_object(),
            },
            "key_or_tombstone" => match (thing.object, thing.tombstone, thing.explicit_key) {
                (Some(object), ..) => key(&Deleted::Known(Arc::new(object)).key()),
                (None, Some(tombstone), _) => key(&tombstone.deleted().key()),
                (None, None, Some(text)) => key(&opaque(&text)),
                (None, None, None) => not_an_object(),
            },
            "name_or_tombstone" => match (thing.object, thing.tombstone) {
                (Some(object), _) => name(Ok(Deleted::Known(Arc::new(object)).key())),
                (None, Some(tombstone)) => name(tombstone.deleted().key().as_str().parse()),
                (None, None) => not_an_object(),
            },
            "namespace_index" => match thing.object {
                Some(object) => Answer { values: namespace_values(object), ..Answer::default() },
                None => not_an_object(),
            },
            "split" => name(input.key.parse()),
            "split_and_join" => match input.key.parse::<ObjectKey>() {
                Ok(split) => key(&ObjectKey::new(split.namespace(), split.name())),
                Err(error) => failed(&error),
            },
            _ => return Err(format!("unknown operation {op:?}")),
        })
    }
}

impl Tombstone {
    fn deleted(self) -> Deleted<Arc<Named>> {
        Deleted::final_state_unknown(opaque(&self.key), self.object.map(Arc::new))
    }
}

/// A key that passes through as it is, whatever is in it: a tombstone's, or one given in place of an object.
fn opaque(text: &str) -> ObjectKey {
    ObjectKey::cluster(text)
}

fn key(key: &ObjectKey) -> Answer {
    Answer { key: key.to_string(), ..Answer::default() }
}

fn name(key: Result<ObjectKey, KeyError>) -> Answer {
    match key {
        Ok(key) => Answer { namespace: key.namespace().to_owned(), name: key.name().to_owned(), ..Answer::default() },
        Err(error) => failed(&error),
    }
}

fn failed(error: &KeyError) -> Answer {
    let error = match error {
        KeyError::Format(_) => "key_format".to_owned(),
        other => format!("{other:?}"),
    };
    Answer { error, ..Answer::default() }
}

/// What is no object cannot be given to any of these functions: the types do not fit.
fn not_an_object() -> Answer {
    Answer { error: "not_an_object".to_owned(), ..Answer::default() }
}

fn namespace_values(object: Named) -> Vec<String> {
    vec![Arc::new(object).id().namespace.to_owned()]
}

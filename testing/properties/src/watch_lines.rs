//! The watch: the same lines whatever the chunks, and the same event by the quick way and by the slow one.

use std::sync::Arc;

use kubewire_indexer::{Id, Meta};
use kubewire_listwatch::fuzzing::{read_line, split_lines};
use kubewire_listwatch::{Packed, RequestError, WatchEvent};
use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::pieces;

#[derive(Debug, Deserialize)]
struct Thing {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    #[expect(dead_code, reason = "read so that some objects cannot be")]
    size: u32,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    namespace: String,
    name: String,
    uid: String,
    resource_version: String,
}

impl Meta for Thing {
    fn id(&self) -> Id<'_> {
        let Metadata { namespace, name, resource_version, uid } = &self.metadata;
        Id::new(namespace, name).resource_version(resource_version).uid(uid)
    }
}

const LIMIT: usize = 1 << 20;

/// Where the text is cut (see [`pieces`]), and the body of a watch.
pub type Input<'a> = (Vec<u8>, &'a [u8]);

/// Panics where it does not hold.
pub fn check(input: Input<'_>) {
    let (cuts, text) = input;
    let whole = split_lines(&[text], LIMIT);
    assert_eq!(split_lines(&pieces(text, &cuts), LIMIT), whole, "in pieces");
    let expected: Vec<&[u8]> = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).collect();
    let (rest, lines) = expected.split_last().expect("at least one part");
    assert_eq!(whole.1.as_deref(), Ok(*rest));
    assert!(whole.0.iter().map(Vec::as_slice).eq(lines.iter().copied().filter(|line| !line.is_empty())));
    for line in whole.0.iter().map(Vec::as_slice).chain([*rest]) {
        let quick = read_line::<Arc<Thing>>(line);
        let _ = read_line::<Packed<Thing>>(line);
        // With a blank in front it is not guessed.
        let slow = read_line::<Arc<Thing>>(&[b" ", line].concat());
        // Into what is skipped the quick way does not look: it may take what is no JSON there.
        if serde_json::from_slice::<IgnoredAny>(line).is_ok() {
            assert_eq!(words(&quick), words(&slow));
        }
    }
}

/// What an event is, without the columns at which errors were.
fn words(event: &Result<WatchEvent<Arc<Thing>>, RequestError>) -> String {
    match event {
        Ok(WatchEvent::Undecodable { kind, error }) => {
            format!("undecodable {kind:?} {:?} {:?}", error.key, error.resource_version)
        }
        Err(error) => format!("{:?}", error.class()),
        other => format!("{other:?}"),
    }
}

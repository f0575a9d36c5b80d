//! Lists, watches and objects in protobuf: the same whatever the chunks, and what prost reads where prost reads it.
use std::sync::Arc;

use kubewire_indexer::{Id, Meta, Metadata, Object};
use kubewire_listwatch::fuzzing::{read_frame, split_frames, split_message_list};
use kubewire_listwatch::{Packed, WatchEvent, messages};
use prost::Message;

use crate::pieces;

const LIMIT: usize = 1 << 16;

struct Anything;

#[derive(Clone, PartialEq, Message)]
struct Thing {
    #[prost(message, required, tag = "1")]
    metadata: messages::ObjectMeta,
}

impl Meta for Thing {
    fn id(&self) -> Id<'_> {
        Metadata::id(&self.metadata)
    }
}

/// Where the bytes are cut (see [`pieces`]), what they stand for, and the bytes.
pub type Input<'a> = (Vec<u8>, u8, &'a [u8]);

/// Panics where it does not hold.
pub fn check(input: Input<'_>) {
    let (cuts, form, bytes) = input;
    match form % 4 {
        0 => list(&cuts, bytes),
        1 => list(&cuts, &[&b"k8s\0\x12\x80\x01"[..], bytes].concat()),
        2 => watch(&cuts, bytes),
        _ => object(bytes),
    }
}

fn list(cuts: &[u8], body: &[u8]) {
    let (items, meta) = split_message_list(&[body], LIMIT);
    let (same_items, same_meta) = split_message_list(&pieces(body, cuts), LIMIT);
    // Where an error is noted depends on the piece it is met in; that there is one does not.
    assert_eq!((&same_items, same_meta.as_ref().ok()), (&items, meta.as_ref().ok()), "in pieces");
    let (few, limited) = split_message_list(&pieces(body, cuts), 8);
    assert!(items.starts_with(&few));
    assert!(few.iter().all(|item| item.len() <= 8));
    if let Ok(limited) = limited {
        assert_eq!((&few, Ok(limited)), (&items, meta));
    }
    items.iter().for_each(|item| object(item));
}

fn watch(cuts: &[u8], body: &[u8]) {
    let (frames, end) = split_frames(&[body], LIMIT);
    assert_eq!(split_frames(&pieces(body, cuts), LIMIT), (frames.clone(), end), "in pieces");
    for frame in frames {
        let packed = read_frame::<Packed<Anything>>(&frame);
        if let Ok(WatchEvent::Added(packed) | WatchEvent::Modified(packed)) = &packed {
            assert!(!packed.id().name.is_empty());
        }
        let _ = read_frame::<Arc<Thing>>(&frame);
    }
}

/// What is packed reads as it did before.
fn object(message: &[u8]) {
    let Ok(packed) = Packed::<Anything>::from_protobuf(message) else { return };
    let kept = packed.protobuf().expect("it came as protobuf");
    assert!(kept.len() <= message.len());
    let again = Packed::<Anything>::from_protobuf(kept).expect("it is still a message");
    assert_eq!((again.id(), again.protobuf()), (packed.id(), packed.protobuf()));
    if let (Ok(before), Ok(after)) = (Thing::decode(message), Thing::decode(kept)) {
        assert_eq!(before, after);
        assert_eq!(before.id(), packed.id());
        let labels: Vec<_> = before.metadata.labels.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(packed.labels().collect::<Vec<_>>(), labels);
    }
}

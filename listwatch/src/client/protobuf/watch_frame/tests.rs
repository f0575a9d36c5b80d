use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kubewire_indexer::Object;
use proptest::prelude::*;

use super::*;
use crate::client::protobuf::written::{bytes, envelope, event, object};
use crate::{EventKind, Packed};

fn options() -> DecodeOptions {
    let types = Types { api_version: "v1".into(), kind: "Pod".into(), metadata_only: false };
    DecodeOptions { types: Some(types), ..DecodeOptions::default() }
}

fn read(frame: &[u8]) -> Result<WatchEvent<Packed<Pod>>, RequestError> {
    read_frame(frame, &options())
}

fn pod(name: &str, version: &str) -> Vec<u8> {
    envelope("v1", "Pod", &object(&[bytes(1, name), bytes(6, version)]))
}

#[test]
fn each_change_comes_with_its_object() {
    for (kind, expected) in
        [("ADDED", EventKind::Added), ("MODIFIED", EventKind::Modified), ("DELETED", EventKind::Deleted)]
    {
        let (kind, object) = match read(&event(kind, &pod("x", "7"))).unwrap() {
            WatchEvent::Added(object) => (EventKind::Added, object),
            WatchEvent::Modified(object) => (EventKind::Modified, object),
            WatchEvent::Deleted(object) => (EventKind::Deleted, object),
            other => panic!("{other:?}"),
        };
        assert_eq!((kind, object.id().name, object.id().resource_version), (expected, "x", "7"));
    }
}

#[test]
fn a_recorded_watch_is_read_event_by_event() {
    let types = Types { api_version: "v1".into(), kind: "ConfigMap".into(), metadata_only: false };
    let options = DecodeOptions { types: Some(types), ..DecodeOptions::default() };
    let mut rest = &include_bytes!("../../../../tests/it/protobuf/watch.pb")[..];
    let mut seen = Vec::new();
    while let Some((length, behind)) = rest.split_first_chunk() {
        let (frame, behind) = behind.split_at(u32::from_be_bytes(*length) as usize);
        rest = behind;
        seen.push(match read_frame::<Packed<ConfigMap>>(frame, &options).unwrap() {
            WatchEvent::Added(object) => format!("+{}", object.key()),
            WatchEvent::Modified(object) => format!("~{}", object.key()),
            WatchEvent::Deleted(object) => format!("-{}", object.key()),
            WatchEvent::Bookmark { initial_events_end, .. } => format!("bookmark {initial_events_end}"),
            other => panic!("{other:?}"),
        });
    }
    let initial = ["+default/c1", "+default/c2", "+default/c3", "bookmark true"];
    assert_eq!(seen, [&initial[..], &["~default/c2", "-default/c3", "bookmark false"]].concat());
}

#[test]
fn an_error_event_and_a_bare_status_are_errors_and_never_objects() {
    let expired =
        envelope("v1", "Status", &[bytes(2, "Failure"), bytes(4, "Expired"), b"\x30\x9a\x03".to_vec()].concat());
    assert_eq!(read(&event("ERROR", &expired)).unwrap_err().class(), ErrorClass::Expired);
    assert_eq!(read(&expired).unwrap_err().class(), ErrorClass::Expired);
    let json = br#"{"kind":"Status","code":410}"#;
    assert_eq!(read(&event("ERROR", json)).unwrap_err().class(), ErrorClass::Expired);
    for object in [&b""[..], b"k8s\0", b"foreign", &pod("x", "7")] {
        assert_eq!(read(&event("ERROR", object)).unwrap_err().class(), ErrorClass::Other, "{object:?}");
    }
}

#[test]
fn a_bookmark_counts_if_it_is_of_the_right_kind_and_ends_the_list_if_it_says_true() {
    let bookmark =
        |kind: &str, metadata: &[Vec<u8>]| read(&event("BOOKMARK", &envelope("v1", kind, &object(metadata)))).unwrap();
    let end = |value: &str| bytes(12, [bytes(1, INITIAL_EVENTS_END), bytes(2, value)].concat());
    for (annotation, expected) in [(end("true"), true), (end("false"), false), (end("True"), false), (vec![], false)] {
        let event = bookmark("Pod", &[bytes(6, "9"), annotation]);
        let WatchEvent::Bookmark { resource_version, initial_events_end } = event else { panic!("{event:?}") };
        assert_eq!((resource_version.as_str(), initial_events_end), ("9", expected));
    }
    for event in [bookmark("Pod", &[]), bookmark("Node", &[bytes(6, "9")])] {
        assert!(matches!(event, WatchEvent::Unknown { .. }), "{event:?}");
    }
    assert!(matches!(read(&event("BOOKMARK", b"")).unwrap(), WatchEvent::Unknown { .. }));
}

#[test]
fn an_object_that_cannot_be_decoded_tells_its_key_and_its_version() {
    let nameless = envelope("v1", "Pod", &object(&[bytes(3, "n")]));
    let broken = envelope("v1", "Pod", &[object(&[bytes(1, "x"), bytes(6, "7")]), b"\x0b".to_vec()].concat());
    let node = envelope("v1", "Node", &object(&[bytes(1, "x"), bytes(6, "7")]));
    for (object, key, message) in [
        (nameless, None, "name"),
        (broken, Some("x"), "a group"),
        (node, Some("x"), "kind is \"Node\", wanted is v1 Pod"),
        (b"{}".to_vec(), None, "no `k8s\\0`"),
    ] {
        let WatchEvent::Undecodable { kind: EventKind::Deleted, error } = read(&event("DELETED", &object)).unwrap()
        else {
            panic!("{object:?}")
        };
        assert_eq!(error.key.as_ref().map(|key| key.as_str()), key);
        assert!(error.message.contains(message), "{error}");
    }
}

#[test]
fn what_is_no_event_ends_the_stream_and_an_unknown_type_does_not() {
    for frame in
        [&b""[..], b"\x0a", b"\x0a\x01\xff", b"foreign text", &bytes(1, "ADDED"), &bytes(2, bytes(1, pod("x", "7")))]
    {
        assert_eq!(read(frame).unwrap_err().class(), ErrorClass::Decode, "{frame:?}");
    }
    let event = read(&event("SOMETHING", &pod("x", "7"))).unwrap();
    assert!(matches!(&event, WatchEvent::Unknown { kind } if kind == "SOMETHING"), "{event:?}");
}

proptest! {
    #[test]
    fn hostile_bytes_are_an_error_or_an_event_but_never_a_panic(
        hostile in proptest::collection::vec(any::<u8>(), 0..50),
        inside in 0u8..4,
    ) {
        let frame = match inside {
            0 => hostile,
            1 => event("ADDED", &hostile),
            2 => event("MODIFIED", &envelope("v1", "Pod", &hostile)),
            _ => event("BOOKMARK", &envelope("v1", "Pod", &bytes(1, hostile))),
        };
        if let Ok(WatchEvent::Added(object) | WatchEvent::Modified(object)) = read(&frame) {
            prop_assert!(!object.id().name.is_empty());
        }
    }
}

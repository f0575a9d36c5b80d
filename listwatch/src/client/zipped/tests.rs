use std::sync::{Arc, Weak};
use std::thread;

use k8s_openapi::api::core::v1::Pod;
use kubewire_indexer::{Id, Object};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::first_objects::ENOUGH_OBJECTS;
use super::frame::{Dictionary, FrameError, unzip, zip};
use super::zipper::DICTIONARY_HELPS_LEN;
use super::*;
use crate::client::protobuf::written::{bytes, varint_field};

/// A pod with much that others have too.
fn pod(n: usize) -> Value {
    let owner = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": format!("web-{}", n / 3), "uid": format!("o{n}"), "controller": true});
    json!({
        "metadata": {
            "namespace": format!("team-{}", n % 7), "name": format!("web-{n}"), "uid": format!("uid-{:x}", n * 7919),
            "resourceVersion": (1000 + n).to_string(), "generation": n,
            "labels": {"app": "web", "pod-template-hash": format!("{:x}", n * 104_729)}, "ownerReferences": [owner],
            "managedFields": [{"manager": "kubelet"}],
        },
        "spec": {
            "nodeName": format!("node-{}", n % 50), "serviceAccountName": "default", "schedulerName": "default-scheduler",
            "containers": [{"name": "app", "image": format!("registry.example.com/web:v1.{n}"), "imagePullPolicy": "IfNotPresent",
                "env": [{"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                "resources": {"requests": {"cpu": format!("{}m", n % 11), "memory": "128Mi"}}}],
        },
        "status": {"phase": "Running", "podIP": format!("10.0.{}.{}", n / 250, n % 250), "qosClass": "Burstable"},
    })
}

fn read(object: &Value, options: &DecodeOptions) -> Zipped<Pod> {
    <Zipped<Pod> as Decode<Json>>::decode(object.to_string().as_bytes(), options).unwrap()
}

fn packed(object: &Value) -> Packed<Pod> {
    Packed::from_json(object.to_string().as_bytes()).unwrap()
}

/// Whatever can be asked of both is the same.
#[track_caller]
fn assert_same(zipped: &Zipped<Pod>, packed: &Packed<Pod>) {
    assert_eq!(zipped.id(), packed.id());
    assert_eq!(zipped.key(), packed.key());
    assert_eq!(zipped.labels().collect::<Vec<_>>(), packed.labels().collect::<Vec<_>>());
    for (name, value) in packed.labels() {
        assert_eq!(zipped.label(name), Some(value));
    }
    assert_eq!(zipped.label("no such"), None);
    assert_eq!(zipped.owner_references().collect::<Vec<_>>(), packed.owner_references().collect::<Vec<_>>());
    assert_eq!(zipped.controller(), packed.controller());
    assert_eq!((zipped.generation(), zipped.is_being_deleted()), (packed.generation(), packed.is_being_deleted()));
    assert_eq!(zipped.json().unwrap().as_deref(), packed.json());
    assert_eq!(zipped.protobuf().unwrap().as_deref(), packed.protobuf());
    let unzipped = zipped.unzip().unwrap();
    assert_eq!((unzipped.id(), unzipped.json(), unzipped.protobuf()), (packed.id(), packed.json(), packed.protobuf()));
    assert_eq!(unzipped.labels().collect::<Vec<_>>(), packed.labels().collect::<Vec<_>>());
    assert_eq!(unzipped.owner_references().collect::<Vec<_>>(), packed.owner_references().collect::<Vec<_>>());
    if packed.json().is_some() {
        assert_eq!(zipped.decode().unwrap(), packed.decode().unwrap());
        assert_eq!(zipped.peek::<Value>().unwrap(), packed.peek::<Value>().unwrap());
    }
}

#[test]
fn an_object_by_itself_stays_packed_and_says_all_that_a_packed_one_does() {
    let mut of = pod(3);
    of["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    of["metadata"]["annotations"] = json!({"a\"b": "\u{e9}"});
    let zipped = Zipped::from_json(of.to_string().as_bytes()).unwrap();
    zipped.settle();
    assert!(!zipped.is_zipped());
    assert_same(&zipped, &packed(&of));
    assert!(zipped.is_being_deleted());
    let typed = zipped.decode().unwrap();
    assert_same(&Zipped::of(&typed).unwrap(), &Packed::of(&typed).unwrap());
    assert_eq!(size_of::<Zipped<Pod>>(), 8);
    assert!(format!("{zipped:?}").contains("is_zipped: false"));
}

#[test]
fn the_first_objects_are_zipped_in_place_and_the_others_as_they_come() {
    let options = DecodeOptions::default();
    let first: Vec<_> = (0..ENOUGH_OBJECTS - 1).map(|n| read(&pod(n), &options)).collect();
    first[0].settle();
    assert!(!first.iter().any(Zipped::is_zipped), "there are not enough");
    let before = first[7].clone();
    let (id, size) = (before.id(), before.size());

    // One that goes on its way to the cache, a copy of the options, and the last that was missing.
    drop(read(&pod(9_999), &options.clone()));
    let last = read(&pod(ENOUGH_OBJECTS - 1), &options.clone());
    last.settle();
    assert!(first.iter().chain([&last]).all(Zipped::is_zipped));
    assert_eq!(id, before.id(), "what was borrowed is there still");
    assert!(before.size() < size / 2, "{} of {size}", before.size());

    let later = read(&pod(20_000), &options);
    assert!(later.is_zipped());
    assert!(format!("{later:?}").contains("is_zipped: true"));
    for (n, zipped) in first.iter().chain([&last]).enumerate() {
        assert_same(zipped, &packed(&pod(n)));
    }
    assert_same(&later, &packed(&pod(20_000)));
    // Other options have learned nothing.
    assert!(!read(&pod(1), &DecodeOptions::default()).is_zipped());
}

#[test]
fn the_states_of_one_object_are_not_enough_to_learn_from() {
    let options = DecodeOptions::default();
    // With one that changes, its new state and its old one, which is there still when the new one comes.
    let others: Vec<_> = (0..ENOUGH_OBJECTS - 3).map(|n| read(&pod(n), &options)).collect();
    let mut last = read(&pod(0), &options);
    for n in 0..2 * ENOUGH_OBJECTS {
        last = read(&pod(n), &options);
    }
    last.settle();
    assert!(!last.is_zipped() && !others.iter().any(Zipped::is_zipped));
}

#[test]
fn a_long_object_is_zipped_at_once_without_a_dictionary_and_numbers_grow_with_it() {
    let options = DecodeOptions::default();
    for len in [DICTIONARY_HELPS_LEN, 70_000, 200_000] {
        let mut long = pod(1);
        long["metadata"]["annotations"] = json!({"pad": "x\"y".repeat(len / 3)});
        let zipped = read(&long, &options);
        assert!(zipped.is_zipped());
        assert!(zipped.size() < 3_000, "{}", zipped.size());
        assert_same(&zipped, &packed(&long));
    }
}

#[test]
fn where_nothing_can_be_learned_objects_are_zipped_without() {
    let options = DecodeOptions::default();
    let empty = || <Zipped<Pod> as Decode<Protobuf>>::decode(b"", &options).unwrap();
    let all: Vec<_> = (0..ENOUGH_OBJECTS).map(|_| empty()).collect();
    all[0].settle();
    assert!(all.iter().all(Zipped::is_zipped));
    assert!(all[0].stored.zipper().dictionary_for(10).is_none());
    assert_same(&all[0], &Packed::from_protobuf(b"").unwrap());
    let later = read(&pod(1), &options);
    assert!(later.is_zipped());
    assert_same(&later, &packed(&pod(1)));
}

#[test]
fn the_dictionary_goes_with_the_last_object_and_the_options() {
    let options = DecodeOptions::default();
    let mut all: Vec<_> = (0..ENOUGH_OBJECTS).map(|n| read(&pod(n), &options)).collect();
    all[0].settle();
    let zipper: Weak<Zipper> = Arc::downgrade(&options.shared.get(Zipper::new));
    drop(options);
    let last = all.pop().unwrap();
    drop(all);
    assert!(zipper.upgrade().is_some());
    assert_same(&last, &packed(&pod(ENOUGH_OBJECTS - 1)));
    drop(last);
    assert!(zipper.upgrade().is_none());
}

#[test]
fn objects_that_came_as_protobuf_are_zipped_too() {
    let message = |n: usize| {
        let label = bytes(11, [bytes(1, "app"), bytes(2, format!("web-{}", n % 5))].concat());
        let metadata =
            [bytes(1, format!("pod-{n}")), bytes(3, "default"), bytes(6, n.to_string()), label, bytes(17, "m")];
        [
            bytes(1, metadata.concat()),
            bytes(2, [bytes(10, format!("node-{n}")), bytes(20, "scheduler".repeat(20))].concat()),
        ]
        .concat()
    };
    let options = DecodeOptions::default();
    let read = |n| <Zipped<Pod> as Decode<Protobuf>>::decode(&message(n), &options).unwrap();
    let all: Vec<_> = (0..ENOUGH_OBJECTS + 10).map(read).collect();
    all[0].settle();
    for (n, zipped) in all.iter().enumerate() {
        assert!(zipped.is_zipped());
        assert_same(zipped, &Packed::from_protobuf(&message(n)).unwrap());
    }
    for error in [all[4].decode().unwrap_err(), all[4].peek::<Value>().unwrap_err()] {
        assert_eq!(
            (error.key.as_ref().unwrap().as_str(), error.resource_version.as_deref()),
            ("default/pod-4", Some("4"))
        );
        assert!(error.message.contains("came as protobuf"), "{error}");
    }
    let one = Zipped::<crate::Pb<k8s_pb::api::core::v1::Pod>>::from_protobuf(
        &[bytes(1, [bytes(1, "a"), varint_field(7, 3)].concat()), bytes(2, bytes(10, "n1"))].concat(),
    );
    let one = one.unwrap();
    assert_eq!((one.decode().unwrap().spec.as_ref().unwrap().node_name(), one.generation()), ("n1", Some(3)));
}

#[test]
fn an_object_that_does_not_fit_tells_which_it_is_when_it_is_zipped_too() {
    let options = DecodeOptions::default();
    let mut broken = pod(1);
    broken["spec"]["containers"][0]["name"] = 1.into();
    let broken = read(&broken, &options);
    let rest: Vec<_> = (0..ENOUGH_OBJECTS).map(|n| read(&pod(n), &options)).collect();
    broken.settle();
    assert!(broken.is_zipped() && rest[0].is_zipped());
    let error = broken.decode().unwrap_err();
    assert_eq!(error.key.unwrap().as_str(), "team-1/web-1");
    assert!(error.message.starts_with("spec.containers[0].name: invalid type"), "{}", error.message);
}

#[test]
fn readers_meet_whole_objects_while_they_are_being_zipped() {
    let options = DecodeOptions::default();
    let all: Vec<_> = (0..ENOUGH_OBJECTS - 1).map(|n| read(&pod(n), &options)).collect();
    let last = read(&pod(ENOUGH_OBJECTS - 1), &options);
    thread::scope(|scope| {
        for part in 0..3 {
            let (all, last) = (&all, &last);
            scope.spawn(move || {
                for round in 0_usize.. {
                    let done = last.is_zipped();
                    let n = (round * 31 + part) % all.len();
                    assert_eq!(all[n].json().unwrap().as_deref(), packed(&pod(n)).json());
                    if done && round > all.len() {
                        break;
                    }
                }
            });
        }
    });
}

/// A dictionary of pods.
fn dictionary(of: impl Fn(usize) -> String) -> Dictionary {
    let samples: Vec<String> = (0..300).map(of).collect();
    Dictionary::train(samples.concat().as_bytes(), &samples.iter().map(String::len).collect::<Vec<_>>()).unwrap()
}

#[test]
fn frames_that_are_damaged_too_long_or_of_another_dictionary_are_errors() {
    let ours = dictionary(|n| pod(n).to_string());
    let text = pod(77).to_string();
    let frame = zip(text.as_bytes(), Some(&ours)).unwrap();
    assert!(frame.len() * 4 < text.len(), "{} of {}", frame.len(), text.len());
    assert_eq!(unzip(&frame, Some(&ours), text.len()).unwrap(), text.as_bytes());
    let too_long = FrameError::TooLong { len: text.len() as u64, max: text.len() - 1 };
    assert_eq!(unzip(&frame, Some(&ours), text.len() - 1), Err(too_long));
    assert_eq!(unzip(b"", None, 100), Err(FrameError::NoLength));
    for end in 1..frame.len() {
        assert!(unzip(&frame[..end], Some(&ours), text.len()).is_err(), "{end}");
    }
    let other = dictionary(|n| format!("{{\"other\":[{n},{}]}}", "kind of thing".repeat(n % 9)));
    for dictionary in [None, Some(&other)] {
        assert!(matches!(unzip(&frame, dictionary, text.len()), Err(FrameError::Zstd(_))));
    }
    let plain = zip(b"abc", None).unwrap();
    let two = [&plain[..], &plain].concat();
    assert!(unzip(&two, None, 100).is_err());
    // A frame that says it has 2^62 bytes.
    let huge = b"\x28\xb5\x2f\xfd\xe0\x00\x00\x00\x00\x00\x00\x00\x40\x01\x00\x00";
    assert_eq!(unzip(huge, None, 1 << 20), Err(FrameError::TooLong { len: 1 << 62, max: 1 << 20 }));
}

#[test]
fn a_damaged_zip_is_an_error_that_tells_the_object() {
    let error =
        Zipped::<Pod>::from_json(br#"{"metadata":{"namespace":"n","name":"x","resourceVersion":"7"}}"#).unwrap();
    let error = error.error(&FrameError::NoLength);
    assert_eq!((error.key.unwrap().as_str(), error.resource_version.as_deref()), ("n/x", Some("7")));
    assert_eq!(Zipped::<Pod>::from_json(b"{}").unwrap().id(), Id::default());
}

proptest! {
    #[test]
    fn whatever_was_zipped_is_what_comes_out(parts in prop::collection::vec("[a-z\"{}:,]{0,20}", 0..40), learned in any::<bool>()) {
        static LEARNED: std::sync::LazyLock<Dictionary> = std::sync::LazyLock::new(|| dictionary(|n| pod(n).to_string()));
        let text = parts.concat();
        let dictionary = learned.then_some(&*LEARNED);
        let frame = zip(text.as_bytes(), dictionary).unwrap();
        prop_assert_eq!(unzip(&frame, dictionary, text.len()).unwrap(), text.as_bytes());
    }

    #[test]
    fn hostile_frames_are_errors_or_no_longer_than_allowed(
        hostile in prop::collection::vec(any::<u8>(), 0..60),
        at in any::<prop::sample::Index>(),
        written in any::<bool>(),
    ) {
        let frame = if written {
            let mut frame = zip(pod(1).to_string().as_bytes(), None).unwrap().to_vec();
            let at = at.index(frame.len());
            let end = frame.len().min(at + hostile.len());
            frame[at..end].copy_from_slice(&hostile[..end - at]);
            frame
        } else {
            [&b"\x28\xb5\x2f\xfd"[..], &hostile].concat()
        };
        if let Ok(bytes) = unzip(&frame, None, 4096) {
            prop_assert!(bytes.len() <= 4096);
        }
    }
}

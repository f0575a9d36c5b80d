use k8s_openapi::api::core::v1::Pod;
use kubewire_indexer::ObjectKey;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::client::protobuf::written::{bytes, varint_field};

fn packed(json: &str) -> Packed<Pod> {
    Packed::from_json(json.as_bytes()).unwrap()
}

/// Of JSON with escapes and of protobuf alike.
#[test]
fn annotations_are_read_when_they_are_asked_for() {
    let json = br#"{"metadata":{"name":"a","annotations":{"x":"1","y":"a\"b"}},"spec":{}}"#;
    let pod: Packed<Pod> = Packed::from_json(json).unwrap();
    assert_eq!(pod.all_annotations(), [("x".into(), "1".into()), ("y".into(), "a\"b".into())]);
    let bare: Packed<Pod> = Packed::from_json(br#"{"metadata":{"name":"a","annotations":null}}"#).unwrap();
    assert!(bare.all_annotations().is_empty());
    // The metadata: name "a", annotations {"x": "1"}.
    let pod: Packed<Pod> = Packed::from_protobuf(b"\x0a\x0b\x0a\x01a\x62\x06\x0a\x01x\x12\x011").unwrap();
    assert_eq!((pod.id().name, pod.all_annotations()), ("a", vec![("x".into(), "1".into())]));
}

#[test]
fn what_a_cache_needs_is_noted_while_cutting() {
    let pod = packed(
        r#"{"metadata":{"name":"a","namespace":"n","uid":"u","resourceVersion":"7","generation":3,
            "deletionTimestamp":"2026-01-01T00:00:00Z","labels":{"z":"1","app":"web","null":null},
            "ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"r","uid":"v","controller":true,"x":{}},{"name":"s"}]},
            "spec":{"containers":[]}}"#,
    );
    assert_eq!(pod.id(), Id::new("n", "a").uid("u").resource_version("7"));
    assert_eq!(pod.key(), ObjectKey::new("n", "a"));
    assert_eq!((pod.generation(), pod.is_being_deleted()), (Some(3), true));
    assert_eq!(pod.labels().collect::<Vec<_>>(), [("app", "web"), ("null", ""), ("z", "1")]);
    for (name, value) in [("app", Some("web")), ("z", Some("1")), ("a", None), ("zz", None), ("b", None)] {
        assert_eq!(pod.label(name), value, "{name}");
    }
    let owner = OwnerReference::new("apps/v1", "ReplicaSet", "r").uid("v").controller(true);
    assert_eq!(pod.owner_references().collect::<Vec<_>>(), [owner, OwnerReference::new("", "", "s")]);
    assert_eq!(pod.controller(), Some(owner));
}

#[test]
fn missing_and_null_parts_are_empty() {
    for json in [
        "{}",
        r#"{"metadata":null}"#,
        r#"{"metadata":{"name":null,"labels":null,"ownerReferences":null,"generation":null,"deletionTimestamp":null}}"#,
    ] {
        let pod = packed(json);
        assert_eq!(pod.id(), Id::default(), "{json}");
        assert_eq!((pod.labels().len(), pod.owner_references().len()), (0, 0));
        assert_eq!((pod.generation(), pod.is_being_deleted(), pod.label("a")), (None, false, None));
        assert_eq!(pod.json(), Some(json));
    }
}

#[test]
fn managed_fields_are_cut_out_wherever_they_stand() {
    let table = [
        (r#"{"metadata":{"managedFields":[{"a":1}],"name":"x"}}"#, r#"{"metadata":{"name":"x"}}"#),
        (r#"{"metadata":{"name":"x","managedFields":[{"a":1}]}}"#, r#"{"metadata":{"name":"x"}}"#),
        (r#"{"metadata":{"name":"x","managedFields":[],"uid":"u"}}"#, r#"{"metadata":{"name":"x","uid":"u"}}"#),
        (r#"{"metadata":{"managedFields":null}}"#, r#"{"metadata":{}}"#),
        (r#"{"metadata":{"managedFields":1,"managedFields":2}}"#, r#"{"metadata":{}}"#),
        (r#"{"metadata":{"name":"x","managedFields":1,"managedFields":2}}"#, r#"{"metadata":{"name":"x"}}"#),
        (r#"{"metadata":{ "name" : "x" , "managedFields" : 1 }}"#, r#"{"metadata":{ "name" : "x"  }}"#),
        (r#"{"metadata":{ "managedFields" : 1 , "name" : "x" }}"#, r#"{"metadata":{ "name" : "x" }}"#),
        (r#"{"managedFields":1,"spec":{"managedFields":1}}"#, r#"{"managedFields":1,"spec":{"managedFields":1}}"#),
    ];
    for (json, cut) in table {
        let pod = packed(json);
        assert_eq!(pod.json(), Some(cut));
        assert_eq!(pod.id().name, if cut.contains("name\"") { "x" } else { "" }, "{json}");
    }
}

#[test]
fn parts_behind_and_within_escapes_are_found() {
    let pod = packed(
        r#"{"spec":{"a":"\"}é"},"metadata":{"managedFields":[{}],"labels":{"a\/b":"\u00e9","\u0061":"1"},"n\u0061me":"x","namespace":"é"}}"#,
    );
    assert_eq!(pod.id(), Id::new("é", "x"));
    assert_eq!(pod.labels().collect::<Vec<_>>(), [("a", "1"), ("a/b", "é")]);
}

#[test]
fn of_two_fields_of_one_name_the_last_one_counts() {
    let pod = packed(
        r#"{"metadata":{"name":"x","uid":"u","generation":1,"labels":{"a":"1"}},"metadata":{"name":"y","labels":{"b":"1"},"labels":{"c":"1","c":"2"}}}"#,
    );
    assert_eq!((pod.id(), pod.generation()), (Id::new("", "y"), None));
    assert_eq!(pod.labels().collect::<Vec<_>>(), [("c", "2")]);
    assert_eq!(pod.decode().unwrap().metadata.name.as_deref(), Some("y"));
}

#[test]
fn what_is_no_object_is_refused() {
    for json in [
        "",
        "null",
        "[]",
        "1",
        "\"x\"",
        "{",
        "{}}",
        r#"{"metadata":[]}"#,
        r#"{"metadata":"x"}"#,
        r#"{"metadata":{"name":7}}"#,
        r#"{"metadata":{"labels":[]}}"#,
        r#"{"metadata":{"labels":{"a":1}}}"#,
        r#"{"metadata":{"ownerReferences":{}}}"#,
        r#"{"metadata":{"ownerReferences":[null]}}"#,
        r#"{"metadata":{"generation":"1"}}"#,
        r#"{"spec":{"a":01}}"#,
        r#"{"spec":tru}"#,
        "{\"a\":\"\n\"}",
        r#"{"spec":{"a":"\x"}}"#,
        r#"{"spec":{"a":"\u00g0"}}"#,
    ] {
        assert!(Packed::<Pod>::from_json(json.as_bytes()).is_err(), "{json}");
    }
    assert!(Packed::<Pod>::from_json(b"{\"a\":\"\xff\"}").is_err());
    let error = Packed::<Pod>::from_json(br#"{"metadata":{"namespace":"n","name":"x","generation":"1"}}"#).unwrap_err();
    assert_eq!(error.key.unwrap().as_str(), "n/x");
}

#[test]
fn named_fields_are_cut_out_too_and_the_kind_is_checked() {
    let mut options = DecodeOptions::default();
    options.drop.add(&["metadata", "labels", "b"]);
    options.drop.add(&["spec", "containers", "env"]);
    options.drop.add(&["status"]);
    let json = r#"{"metadata":{"labels":{"a":"1","b":"2"}},"spec":{"containers":[{"env":[1]},{"name":"c","env":[]},7]},"status":{}}"#;
    let pod = Packed::<Pod>::pack(json.as_bytes(), &options).unwrap();
    let cut = r#"{"metadata":{"labels":{"a":"1"}},"spec":{"containers":[{},{"name":"c"},7]}}"#;
    assert_eq!(pod.json(), Some(cut));
    assert_eq!(pod.labels().collect::<Vec<_>>(), [("a", "1")]);

    options.types =
        Some(crate::client::shaped::Types { api_version: "v1".into(), kind: "Pod".into(), metadata_only: false });
    let error = Packed::<Pod>::pack(br#"{"kind":"Table"}"#, &options).unwrap_err();
    assert!(error.message.starts_with("kind is \"Table\", wanted is v1 Pod"), "{error}");
}

#[test]
fn a_decode_that_fails_names_the_object_and_the_field() {
    let pod = packed(r#"{"metadata":{"name":"x","resourceVersion":"7"},"spec":{"containers":[{"name":1}]}}"#);
    let error = pod.decode().unwrap_err();
    assert_eq!((error.key.as_ref().unwrap().as_str(), error.resource_version.as_deref()), ("x", Some("7")));
    assert!(error.message.starts_with("spec.containers[0].name: invalid type"), "{error}");
    let error = pod.peek::<std::collections::BTreeMap<String, u8>>().unwrap_err();
    assert!(error.message.starts_with("metadata: invalid type"), "{error}");
}

#[test]
fn an_object_takes_its_text_and_little_more() {
    let mut pod = Pod::default();
    pod.metadata.name = Some("x".into());
    pod.metadata.labels = Some((0..5).map(|index| (format!("l{index}"), "v".repeat(20))).collect());
    let packed = Packed::of(&pod).unwrap();
    assert_eq!(packed.decode().unwrap(), pod);
    let len = packed.json().unwrap().len();
    assert!(packed.size() < len + 180, "{} of {len}", packed.size());
    assert_eq!(size_of::<Packed<Pod>>(), 16);
}

#[test]
fn of_a_message_the_same_is_noted_and_managed_fields_are_cut_out() {
    let owner =
        [bytes(1, "ReplicaSet"), bytes(3, "r"), bytes(4, "v"), bytes(5, "apps/v1"), varint_field(6, 1)].concat();
    let label = |name: &str, value: &str| bytes(11, [bytes(1, name), bytes(2, value)].concat());
    let kept = [
        bytes(1, "a"),
        bytes(3, "n"),
        bytes(5, "u"),
        bytes(6, "7"),
        varint_field(7, 3),
        bytes(9, varint_field(1, 1_700_000_000)),
        label("z", "1"),
        label("app", "old"),
        label("app", "web"),
        bytes(13, owner),
        bytes(13, bytes(3, "s")),
    ]
    .concat();
    let spec = bytes(2, bytes(10, "n1"));
    let managed = bytes(17, "x".repeat(300));
    let whole = [bytes(1, [&managed[..], &kept, &managed].concat()), spec.clone()].concat();
    let pod = Packed::<Pod>::from_protobuf(&whole).unwrap();
    assert_eq!(pod.protobuf(), Some(&[bytes(1, &kept), spec].concat()[..]));
    assert_eq!(pod.json(), None);
    assert_eq!(pod.id(), Id::new("n", "a").uid("u").resource_version("7"));
    assert_eq!((pod.generation(), pod.is_being_deleted()), (Some(3), true));
    assert_eq!(pod.labels().collect::<Vec<_>>(), [("app", "web"), ("z", "1")]);
    assert_eq!((pod.label("app"), pod.label("a")), (Some("web"), None));
    let owner = OwnerReference::new("apps/v1", "ReplicaSet", "r").uid("v").controller(true);
    assert_eq!(pod.owner_references().collect::<Vec<_>>(), [owner, OwnerReference::new("", "", "s")]);
}

#[test]
fn a_packed_message_decodes_to_what_names_its_fields_and_tells_what_it_is_not() {
    let message = [bytes(1, [bytes(1, "a"), bytes(6, "7")].concat()), bytes(2, bytes(10, "n1"))].concat();
    let pod = Packed::<crate::Pb<k8s_pb::api::core::v1::Pod>>::from_protobuf(&message).unwrap();
    assert_eq!(pod.decode().unwrap().spec.as_ref().unwrap().node_name(), "n1");
    assert_eq!(pod.message::<k8s_pb::api::core::v1::Pod>().unwrap(), pod.decode().unwrap().0);
    // A type of k8s-openapi cannot be read from it.
    let pod = Packed::<Pod>::from_protobuf(&message).unwrap();
    for error in [pod.decode().unwrap_err(), pod.peek::<Value>().unwrap_err()] {
        assert_eq!((error.key.as_ref().unwrap().as_str(), error.resource_version.as_deref()), ("a", Some("7")));
        assert!(error.message.contains("came as protobuf"), "{error}");
    }
    let error = packed(r#"{"metadata":{"name":"a"}}"#).message::<crate::messages::ObjectMeta>().unwrap_err();
    assert_eq!(error.key.unwrap().as_str(), "a");
    assert!(error.message.contains("came as JSON"), "{}", error.message);
}

#[test]
fn missing_parts_of_a_message_are_empty_and_two_metadata_come_together() {
    // API servers write a generation of 0 where JSON has none.
    for message in [&b""[..], b"\x0a\x00", b"\x12\x00", b"\x0a\x02\x38\x00"] {
        let pod = Packed::<Pod>::from_protobuf(message).unwrap();
        assert_eq!((pod.id(), pod.generation(), pod.is_being_deleted()), (Id::default(), None, false));
        assert_eq!((pod.labels().len(), pod.owner_references().len(), pod.protobuf()), (0, 0, Some(message)));
    }
    let parts = [bytes(1, bytes(1, "x")), bytes(1, [bytes(17, "m"), bytes(1, "y"), bytes(3, "n")].concat())].concat();
    assert_eq!(Packed::<Pod>::from_protobuf(&parts).unwrap().id(), Id::new("n", "y"));
}

#[test]
fn messages_whose_metadata_cannot_be_read_are_refused() {
    for metadata in [
        bytes(1, b"\xff"),
        varint_field(1, 1),
        bytes(7, "x"),
        bytes(11, b"\x0a\x05"),
        bytes(11, bytes(1, b"\xff")),
        bytes(13, varint_field(1, 1)),
        b"\x0b".to_vec(),
        b"\x0a\x05x".to_vec(),
    ] {
        assert!(Packed::<Pod>::from_protobuf(&bytes(1, &metadata)).is_err(), "{metadata:?}");
    }
    for message in [varint_field(1, 1), b"\x0a\x05".to_vec(), b"\x07".to_vec()] {
        assert!(Packed::<Pod>::from_protobuf(&message).is_err(), "{message:?}");
    }
    let message = bytes(1, [bytes(1, "x"), bytes(3, "n"), bytes(7, "1")].concat());
    assert_eq!(Packed::<Pod>::from_protobuf(&message).unwrap_err().key.unwrap().as_str(), "n/x");
}

#[test]
fn named_fields_of_the_metadata_are_cut_out_of_messages_too() {
    let mut options = DecodeOptions::default();
    options.drop.add(&["metadata", "annotations"]);
    options.drop.add(&["metadata", "labels"]);
    assert_eq!(options.drop.beyond_metadata(), None);
    let entry = [bytes(1, "k"), bytes(2, "v")].concat();
    let metadata = [bytes(1, "x"), bytes(11, &entry), bytes(12, &entry), bytes(14, "f"), bytes(17, "m")].concat();
    let pod = Packed::<Pod>::pack_message(&bytes(1, metadata), &options).unwrap();
    assert_eq!(pod.protobuf(), Some(&bytes(1, [bytes(1, "x"), bytes(14, "f")].concat())[..]));
    assert_eq!(pod.labels().len(), 0);
    options.drop.add(&["metadata", "labels", "a"]);
    options.drop.add(&["spec"]);
    assert_eq!(options.drop.beyond_metadata(), Some("metadata.labels.a"));
}

#[test]
fn long_objects_have_the_same_table_with_wider_numbers() {
    for len in [65_400, 65_535, 65_536, 200_000] {
        let long = "x".repeat(len);
        let pod = packed(&format!(
            r#"{{"spec":"{long}","metadata":{{"name":"a\"","generation":-2,"labels":{{"b":"2","a":"1"}},"ownerReferences":[{{"uid":"u"}}]}}}}"#
        ));
        assert_eq!((pod.id().name, pod.generation()), ("a\"", Some(-2)), "{len}");
        assert_eq!(pod.labels().collect::<Vec<_>>(), [("a", "1"), ("b", "2")]);
        assert_eq!(pod.owner_references().next().unwrap().uid, "u");
        let message = [bytes(2, long), bytes(1, [bytes(1, "a"), varint_field(7, u64::MAX)].concat())].concat();
        let pod = Packed::<Pod>::from_protobuf(&message).unwrap();
        assert_eq!((pod.id().name, pod.generation()), ("a", Some(-1)), "{len}");
    }
}

fn value() -> impl Strategy<Value = Value> {
    let leaf =
        prop_oneof![Just(Value::Null), any::<i64>().prop_map(Value::from), "[a\"\\\\é/]{0,5}".prop_map(Value::from)];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::btree_map("[ab\"]{1,2}", inner, 0..3)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_object_stays_what_it_was_without_its_managed_fields(
        name in "[a-z\"\\\\é]{0,6}",
        labels in proptest::collection::btree_map("[a-c/\"é]{1,3}", "[a-z\\\\]{0,4}", 0..4),
        generation in proptest::option::of(any::<i64>()),
        others in proptest::collection::btree_map("[l-o]{1,2}", value(), 0..3),
        spec in value(),
        pretty in any::<bool>(),
    ) {
        let mut metadata = json!({"name": name, "labels": labels, "generation": generation, "managedFields": [spec]});
        for (key, value) in others {
            metadata[key] = value;
        }
        let mut object = json!({"metadata": metadata, "spec": spec});
        let json = if pretty { serde_json::to_string_pretty(&object) } else { serde_json::to_string(&object) }.unwrap();
        let packed = Packed::<Value>::from_json(json.as_bytes()).unwrap();
        prop_assert_eq!(packed.id().name, name);
        prop_assert_eq!(packed.generation(), generation);
        let expected: Vec<_> = labels.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        prop_assert_eq!(packed.labels().collect::<Vec<_>>(), expected);
        for (name, value) in &labels {
            prop_assert_eq!(packed.label(name), Some(value.as_str()));
        }
        object["metadata"].as_object_mut().unwrap().remove("managedFields");
        prop_assert_eq!(serde_json::from_str::<Value>(packed.json().unwrap()).unwrap(), object);
    }

    #[test]
    fn hostile_bytes_are_refused_or_packed_but_never_a_panic(bytes in "[{}\\[\\],:\"a1 ]{0,40}", inside in any::<bool>()) {
        let json = if inside { format!(r#"{{"metadata":{{"managedFields":{bytes}}}}}"#) } else { bytes };
        if let Ok(packed) = Packed::<Value>::from_json(json.as_bytes()) {
            prop_assert!(serde_json::from_str::<Value>(packed.json().unwrap()).is_ok(), "{:?} of {}", packed.json(), json);
        }
    }

    #[test]
    fn any_message_stays_what_it_was_without_its_managed_fields(
        name in "[a-zé]{0,6}",
        labels in proptest::collection::btree_map("[a-c/é]{1,3}", "[a-z]{0,4}", 0..20),
        managed in proptest::collection::vec("[a-z]{0,200}", 0..3),
        seed in any::<[u8; 2]>(),
    ) {
        let mut fields = vec![bytes(1, &name), bytes(8, ""), varint_field(7, seed[0].into())];
        fields.extend(labels.iter().map(|(name, value)| bytes(11, [bytes(1, name), bytes(2, value)].concat())));
        let kept = fields.concat();
        for (index, managed) in managed.iter().enumerate() {
            fields.insert((usize::from(seed[1]) * (index + 1)) % (fields.len() + 1), bytes(17, managed));
        }
        let spec = bytes(2, "spec");
        let packed = Packed::<Value>::from_protobuf(&[bytes(1, fields.concat()), spec.clone()].concat()).unwrap();
        prop_assert_eq!(packed.protobuf(), Some(&[bytes(1, kept), spec].concat()[..]));
        prop_assert_eq!(packed.id().name, name);
        prop_assert_eq!(packed.generation(), Some(i64::from(seed[0])).filter(|generation| *generation != 0));
        let expected: Vec<_> = labels.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        prop_assert_eq!(packed.labels().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn hostile_messages_are_refused_or_packed_but_never_a_panic(
        hostile in proptest::collection::vec(any::<u8>(), 0..40),
        inside in any::<bool>(),
    ) {
        let message = if inside { bytes(1, hostile) } else { hostile };
        if let Ok(packed) = Packed::<Value>::from_protobuf(&message) {
            prop_assert!(packed.protobuf().unwrap().len() <= message.len());
            let _ = (packed.id(), packed.labels().count(), packed.owner_references().count());
            prop_assert!(Packed::<Value>::from_protobuf(packed.protobuf().unwrap()).is_ok());
        }
    }
}

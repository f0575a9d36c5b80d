use k8s_pb::api::apps::v1::Deployment;
use k8s_pb::api::coordination::v1::Lease;
use k8s_pb::api::core::v1::{ConfigMap, Pod, PodList, Secret, Volume};
use k8s_pb::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, Status as PbStatus, WatchEvent};
use k8s_pb::apimachinery::pkg::runtime::Unknown;
use k8s_pb::apimachinery::pkg::util::intstr::IntOrString;
use prost::Message;
use serde_json::json;

use super::super::to_json;
use super::*;
use crate::Status;

fn type_of(api_version: &str, kind: &str) -> &'static Type {
    Type::of_object(api_version, kind).unwrap()
}

/// What another implementation reads of what was written.
fn read<M: Message + Default>(object: &Value) -> M {
    let bytes = to_protobuf(object).unwrap();
    let envelope = Unknown::decode(bytes.strip_prefix(MAGIC).unwrap()).unwrap();
    let type_meta = envelope.type_meta.unwrap();
    assert_eq!(
        (type_meta.api_version.as_deref(), type_meta.kind.as_deref()),
        (Some(said(object).0), Some(said(object).1))
    );
    M::decode(&envelope.raw.unwrap()[..]).unwrap()
}

#[test]
fn generated_pods_are_read_by_another_implementation_and_come_back_the_same() {
    for index in 0..50 {
        let mut pod = crate::pods::pod(index);
        pod["metadata"]["resourceVersion"] = json!("7");
        assert_eq!(to_json(&to_protobuf(&pod).unwrap()).unwrap(), pod);
        let message: Pod = read(&pod);
        // All that it has, and nothing else.
        let again = to_json(&envelope("v1", "Pod", &message.encode_to_vec())).unwrap();
        assert_eq!(again, pod);
        let (spec, metadata) = (message.spec.unwrap(), message.metadata.unwrap());
        assert_eq!(metadata.name(), pod["metadata"]["name"]);
        assert_eq!(spec.node_name(), pod["spec"]["nodeName"]);
        assert_eq!(spec.containers.len(), pod["spec"]["containers"].as_array().unwrap().len());
        let quantity = &spec.containers[0].resources.as_ref().unwrap().limits["memory"];
        assert_eq!(quantity.string.as_deref(), pod["spec"]["containers"][0]["resources"]["limits"]["memory"].as_str());
    }
}

#[test]
fn each_shape_of_value_is_read_by_another_implementation() {
    let metadata = json!({"name": "x", "labels": {"b": "2", "a": ""}});
    let map: ConfigMap = read(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata,
        "data": {"k": "é"}, "binaryData": {"b": "AP+A"}, "immutable": false}));
    assert_eq!(
        (map.data["k"].as_str(), &map.binary_data["b"][..], map.immutable),
        ("é", &[0, 255, 128][..], Some(false))
    );
    assert_eq!(
        map.metadata.unwrap().labels.into_iter().collect::<Vec<_>>(),
        [("a".into(), "".into()), ("b".into(), "2".into())]
    );
    let secret: Secret = read(&json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": {"k": "/wD+"}}));
    assert_eq!((&secret.data["k"][..], secret.r#type.as_deref()), (&[255, 0, 254][..], Some("Opaque")));
    let lease: Lease = read(&json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "spec": {"leaseDurationSeconds": -1, "renewTime": "1969-12-31T23:59:59.600000Z"}}));
    let spec = lease.spec.unwrap();
    let time = spec.renew_time.unwrap();
    assert_eq!((spec.lease_duration_seconds, time.seconds, time.nanos), (Some(-1), Some(-1), Some(600_000_000)));
    let deployment: Deployment = read(&json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {
        "replicas": 0, "paused": true,
        "strategy": {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}},
        "template": {"spec": {"volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}]}}}}));
    let spec = deployment.spec.unwrap();
    assert_eq!((spec.replicas, spec.paused), (Some(0), Some(true)));
    let rolling = spec.strategy.unwrap().rolling_update.unwrap();
    let either = |either: IntOrString| (either.r#type(), either.int_val(), either.str_val().to_owned());
    assert_eq!(either(rolling.max_surge.unwrap()), (1, 0, "25%".to_owned()));
    assert_eq!(either(rolling.max_unavailable.unwrap()), (0, 1, String::new()));
    let volumes: Vec<Volume> = spec.template.unwrap().spec.unwrap().volumes;
    assert_eq!(
        volumes[0].volume_source.as_ref().unwrap().empty_dir.as_ref().unwrap().medium.as_deref(),
        Some("Memory")
    );
    let managed: ConfigMap = read(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"managedFields": [
        {"manager": "m", "operation": "Update", "fieldsV1": {"f:data": {}}, "time": "2026-01-02T03:04:05Z"}]}}));
    let entry: ManagedFieldsEntry = managed.metadata.unwrap().managed_fields.remove(0);
    assert_eq!(entry.fields_v1.unwrap().raw(), br#"{"f:data":{}}"#);
}

#[test]
fn a_list_a_status_and_an_event_are_read_by_another_implementation() {
    let item = json!({"metadata": {"name": "x"}});
    let list: PodList = read(&json!({"apiVersion": "v1", "kind": "PodList", "items": [item, {}],
        "metadata": {"resourceVersion": "9", "continue": "token", "remainingItemCount": 3}}));
    let metadata = list.metadata.unwrap();
    assert_eq!(
        (metadata.resource_version(), metadata.r#continue(), metadata.remaining_item_count()),
        ("9", "token", 3)
    );
    assert_eq!(list.items.len(), 2);
    let status: PbStatus = read(&Status::version_too_large(9, 7).to_value());
    let details = status.details.clone().unwrap();
    assert_eq!((status.code(), details.retry_after_seconds(), status.reason()), (504, 1, "Timeout"));
    assert_eq!(details.causes[0].reason(), "ResourceVersionTooLarge");

    let object = to_protobuf(&json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}})).unwrap();
    let frame = frame("ADDED", &object);
    let (len, event) = frame.split_at(4);
    assert_eq!(u32::from_be_bytes(len.try_into().unwrap()) as usize, event.len());
    let event = WatchEvent::decode(event).unwrap();
    assert_eq!((event.r#type(), event.object.as_ref().unwrap().raw()), ("ADDED", &object[..]));
}

#[test]
fn a_list_in_pieces_is_the_list_as_a_whole() {
    let pods: Vec<Value> = (0..3).map(crate::pods::pod).collect();
    let metadata = json!({"resourceVersion": "5"});
    let whole =
        to_protobuf(&json!({"apiVersion": "v1", "kind": "PodList", "metadata": metadata, "items": pods})).unwrap();
    let messages: Vec<_> = pods.iter().map(|pod| message(type_of("v1", "Pod"), pod)).collect();
    let items_len = messages.iter().map(|message| item_len(message)).sum();
    let ListHead { head: mut pieces, end } = ListHead::new("v1", "PodList", &metadata, items_len);
    messages.iter().for_each(|message| put_item(message, &mut pieces));
    pieces.extend(end);
    assert_eq!(pieces, whole);
}

#[test]
fn a_value_of_another_type_cannot_be_read_either() {
    let pod = type_of("v1", "Pod");
    for object in [
        json!({"spec": 7}),
        json!({"spec": "none"}),
        json!({"spec": []}),
        json!({"spec": {"containers": {}}}),
        json!({"spec": {"nodeName": {}}}),
        json!({"spec": {"hostNetwork": "yes"}}),
        json!({"spec": {"priority": 1.5}}),
        json!({"metadata": {"name": 7}}),
        json!({"metadata": {"labels": {"a": []}}}),
        json!({"metadata": {"creationTimestamp": "now"}}),
    ] {
        assert!(Pod::decode(&message(pod, &object)[..]).is_err(), "{object}");
    }
    for object in [json!({}), json!(null), json!({"fieldOfNextYear": [{}, null], "spec": null})] {
        assert_eq!(Pod::decode(&message(pod, &object)[..]), Ok(Pod::default()), "{object}");
    }
    assert_eq!(to_protobuf(&json!({"apiVersion": "example.com/v1", "kind": "Thing"})), None);
}

//! The documents as kubectl reads them, and objects as the server reads them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;
use crate::resource::{Registry, Resource};

fn registry() -> Registry {
    let mut registry = Registry::default();
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object"}}});
    registry.add(Resource::custom("example.com", "v1", "Foo", "foos").with_status().with_schema(schema));
    registry.add(Resource::custom("example.com", "v1", "Bar", "bars").cluster_scoped());
    registry
}

fn body(path: &str) -> Value {
    let document = document(&registry(), path, "application/json").unwrap_or_else(|| panic!("{path}"));
    assert_eq!(document.content_type, "application/json");
    serde_json::from_slice(&document.body).unwrap()
}

#[test]
fn every_built_in_resource_has_a_type() {
    for resource in Registry::default().iter() {
        assert!(Type::of_kind(&resource.group, &resource.version, &resource.kind).is_some(), "{}", resource.kind);
    }
}

#[test]
fn the_index_leads_to_a_document_for_each_group_version() {
    let index = body("/openapi/v3");
    let paths = index["paths"].as_object().unwrap();
    assert_eq!(paths.len(), registry().group_versions().len());
    for (path, entry) in paths {
        let url = entry["serverRelativeURL"].as_str().unwrap();
        assert_eq!(url, format!("/openapi/v3/{path}"));
        assert_eq!(body(url)["openapi"], "3.0.0");
    }
    for path in ["/openapi", "/openapi/v4", "/openapi/v3/api/v2", "/openapi/v3/apis/nope/v1", "/openapi/v3/apis//v1"] {
        assert_eq!(document(&registry(), path, ""), None, "{path}");
    }
}

#[test]
fn every_reference_is_to_a_schema_of_the_same_document() {
    fn references(value: &Value, into: &mut BTreeSet<String>) {
        match value {
            Value::Object(object) => {
                into.extend(object.get("$ref").and_then(Value::as_str).map(str::to_owned));
                object.values().for_each(|value| references(value, into));
            }
            Value::Array(list) => list.iter().for_each(|value| references(value, into)),
            _ => {}
        }
    }
    for (group, version) in registry().group_versions() {
        let path = if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") };
        let document = body(&format!("/openapi/v3/{path}"));
        let mut all = BTreeSet::new();
        references(&document, &mut all);
        assert!(!all.is_empty());
        for reference in all {
            assert!(document.pointer(reference.trim_start_matches('#')).is_some_and(Value::is_object), "{reference}");
        }
    }
}

/// kubectl looks for the PATCH operation of the kind: a query parameter, and the media types of the body.
#[test]
fn the_patch_operation_says_that_fields_are_validated_and_which_patches_are_taken() {
    for (document, group, kind, is_strategic) in [
        ("api/v1", "", "Pod", true),
        ("api/v1", "", "Node", true),
        ("apis/apps/v1", "apps", "Deployment", true),
        ("apis/example.com/v1", "example.com", "Foo", false),
        ("apis/example.com/v1", "example.com", "Bar", false),
    ] {
        let document = body(&format!("/openapi/v3/{document}"));
        let gvk = json!({"group": group, "version": "v1", "kind": kind});
        let operations: Vec<&Value> = document["paths"]
            .as_object()
            .unwrap()
            .values()
            .filter_map(|path| path.get("patch"))
            .filter(|operation| operation["x-kubernetes-group-version-kind"] == gvk)
            .collect();
        assert!(!operations.is_empty(), "{kind}");
        for operation in operations {
            let parameters = operation["parameters"].as_array().unwrap();
            assert!(parameters.iter().any(|p| p["name"] == "fieldValidation" && p["in"] == "query"));
            let content = operation["requestBody"]["content"].as_object().unwrap();
            assert!(content.contains_key("application/merge-patch+json"));
            assert_eq!(content.contains_key("application/strategic-merge-patch+json"), is_strategic, "{kind}");
        }
        let schemas = document["components"]["schemas"].as_object().unwrap().values();
        assert_eq!(schemas.filter(|s| s["x-kubernetes-group-version-kind"] == json!([gvk])).count(), 1, "{kind}");
    }
}

#[test]
fn paths_are_those_of_the_resources() {
    let core = body("/openapi/v3/api/v1");
    let methods = |document: &Value, path: &str| -> Vec<String> {
        document["paths"][path].as_object().map(|p| p.keys().cloned().collect()).unwrap_or_default()
    };
    assert_eq!(methods(&core, "/api/v1/namespaces/{namespace}/pods"), ["get", "post", "delete"]);
    assert_eq!(methods(&core, "/api/v1/namespaces/{namespace}/pods/{name}"), ["get", "put", "patch", "delete"]);
    assert_eq!(methods(&core, "/api/v1/namespaces/{namespace}/pods/{name}/status"), ["get", "put", "patch"]);
    assert_eq!(methods(&core, "/api/v1/nodes/{name}"), ["get", "put", "patch", "delete"]);
    let custom = body("/openapi/v3/apis/example.com/v1");
    assert_eq!(methods(&custom, "/apis/example.com/v1/bars"), ["get", "post", "delete"]);
    let reviews = body("/openapi/v3/apis/authorization.k8s.io/v1");
    assert_eq!(methods(&reviews, "/apis/authorization.k8s.io/v1/subjectaccessreviews"), ["post"]);
}

#[test]
fn merge_keys_stand_in_the_schemas() {
    let core = body("/openapi/v3/api/v1");
    let field = |of: &str, field: &str| core["components"]["schemas"][of]["properties"][field].clone();
    let containers = field("io.k8s.api.core.v1.PodSpec", "containers");
    assert_eq!(containers["x-kubernetes-patch-merge-key"], "name");
    assert_eq!(containers["x-kubernetes-patch-strategy"], "merge");
    assert_eq!(containers["items"]["$ref"], "#/components/schemas/io.k8s.api.core.v1.Container");
    assert_eq!(field("io.k8s.api.core.v1.PodSpec", "volumes")["x-kubernetes-patch-strategy"], "merge,retainKeys");
    let apps = body("/openapi/v3/apis/apps/v1");
    let strategy = &apps["components"]["schemas"]["io.k8s.api.apps.v1.DeploymentSpec"]["properties"]["strategy"];
    assert_eq!(strategy["x-kubernetes-patch-strategy"], "retainKeys");
    assert_eq!(strategy["allOf"][0]["$ref"], "#/components/schemas/io.k8s.api.apps.v1.DeploymentStrategy");
}

#[test]
fn a_custom_resource_has_the_schema_it_was_given_or_an_open_one() {
    let document = body("/openapi/v3/apis/example.com/v1");
    let foo = &document["components"]["schemas"]["com.example.v1.Foo"];
    assert_eq!(foo["properties"]["spec"], json!({"type": "object"}));
    assert_eq!(foo["properties"]["kind"], json!({"type": "string"}));
    let bar = &document["components"]["schemas"]["com.example.v1.Bar"];
    assert_eq!(bar["x-kubernetes-preserve-unknown-fields"], true);
}

#[test]
fn version_2_is_an_empty_document_in_both_forms() {
    let protobuf = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
    let answer = document(&registry(), "/openapi/v2", &protobuf.replace("v2.", "v2@")).unwrap();
    assert_eq!(answer.content_type, protobuf);
    assert_eq!(&answer.body[..], b"\x0a\x032.0\x12\x19\x0a\x0aKubernetes\x12\x0bunversioned");
    assert_eq!(body("/openapi/v2")["swagger"], "2.0");
}

fn decoded(kind: (&str, &str), mut object: Value) -> Result<(Value, Vec<String>), String> {
    let of = Type::of_kind(kind.0, "v1", kind.1).unwrap();
    decode(of, &mut object).map(|unknown| (object, unknown)).map_err(|error| error.to_string())
}

#[test]
fn unknown_fields_and_nulls_are_dropped_and_the_former_told() {
    let object = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "creationTimestamp": null, "nmae": "x"},
        "spec": {"containers": [{"name": "a"}, {"name": "b", "imgae": "x", "env": [{"nam": 1}]}], "Containers": []},
        "extra": {"a": 1},
    });
    let (object, unknown) = decoded(("", "Pod"), object).unwrap();
    let expected = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
                          "spec": {"containers": [{"name": "a"}, {"name": "b", "env": [{}]}]}});
    assert_eq!(object, expected);
    assert_eq!(
        unknown,
        [
            r#"unknown field "metadata.nmae""#,
            r#"unknown field "spec.containers[1].imgae""#,
            r#"unknown field "spec.containers[1].env[0].nam""#,
            r#"unknown field "spec.Containers""#,
            r#"unknown field "extra""#,
        ]
    );
}

/// Each row: kind, object, and the message; empty: it is fine.
#[test]
fn a_value_of_the_wrong_type_is_an_error() {
    let pod = ("", "Pod");
    let secret = ("", "Secret");
    let deployment = ("apps", "Deployment");
    let lease = ("coordination.k8s.io", "Lease");
    let limit = |quantity: Value| json!({"spec": {"containers": [{"resources": {"limits": {"cpu": quantity}}}]}});
    let quantity = |got: &str| {
        format!("spec.containers[0].resources.limits.cpu: expected a quantity such as 100m or 1Gi, got {got}")
    };
    let rows = [
        (
            deployment,
            json!({"spec": {"replicas": "3"}}),
            r#"spec.replicas: expected an integer of 32 bits, got "3""#.to_owned(),
        ),
        (
            deployment,
            json!({"spec": {"replicas": 3.5}}),
            "spec.replicas: expected an integer of 32 bits, got 3.5".to_owned(),
        ),
        (
            deployment,
            json!({"spec": {"replicas": 3_000_000_000_u32}}),
            "spec.replicas: expected an integer of 32 bits, got 3000000000".to_owned(),
        ),
        (
            deployment,
            json!({"spec": {"strategy": {"rollingUpdate": {"maxSurge": "25%", "maxUnavailable": 1}}}}),
            String::new(),
        ),
        (
            deployment,
            json!({"spec": {"strategy": {"rollingUpdate": {"maxSurge": true}}}}),
            "spec.strategy.rollingUpdate.maxSurge: expected an integer of 32 bits or a string, got true".to_owned(),
        ),
        (pod, json!({"spec": []}), "spec: expected an object, got a list".to_owned()),
        (pod, json!({"spec": {"containers": {}}}), "spec.containers: expected a list, got an object".to_owned()),
        (pod, json!({"spec": {"containers": ["a"]}}), r#"spec.containers[0]: expected an object, got "a""#.to_owned()),
        (
            pod,
            json!({"spec": {"containers": [{"tty": "yes"}]}}),
            r#"spec.containers[0].tty: expected true or false, got "yes""#.to_owned(),
        ),
        (pod, json!({"metadata": {"labels": {"a": 1}}}), "metadata.labels.a: expected a string, got 1".to_owned()),
        (
            pod,
            json!({"metadata": {"creationTimestamp": "now"}}),
            r#"metadata.creationTimestamp: expected a time of RFC 3339, got "now""#.to_owned(),
        ),
        (pod, json!([]), "the object: expected an object, got a list".to_owned()),
        (pod, limit(json!("100m")), String::new()),
        (pod, limit(json!("1.5Gi")), String::new()),
        (pod, limit(json!("1e3")), String::new()),
        (pod, limit(json!(2)), String::new()),
        (pod, limit(json!("1.5.5")), quantity(r#""1.5.5""#)),
        (pod, limit(json!("10 GB")), quantity(r#""10 GB""#)),
        (pod, limit(json!("")), quantity(r#""""#)),
        (secret, json!({"data": {"a": "YWI="}}), String::new()),
        (secret, json!({"data": {"a": "plain text"}}), r#"data.a: expected base64 data, got "plain text""#.to_owned()),
        (lease, json!({"spec": {"renewTime": "2026-01-01T00:00:00.000000Z"}}), String::new()),
    ];
    for (kind, object, message) in rows {
        assert_eq!(decoded(kind, object.clone()).err().unwrap_or_default(), message, "{object}");
    }
}

/// Each row: what client-go writes in protobuf, in hexadecimal digits, and what it writes in JSON.
#[test]
fn protobuf_is_read_as_the_json_that_the_same_client_writes() {
    let rows = [
        (
            "6b3873000a150a07617070732f7631120a4465706c6f796d656e741297020a390a016412001a0022002a0032003800420808\
         a5ebdcca0610005a060a01611201315a050a016212006a0f0a014b1a016f2201752a027631300012cb01080012080a060a01\
         611201311a9f010a100a0012001a0022002a00320038004200128a010a0f0a0176120a12080a064d656d6f7279125b0a0163\
         120022017822002a00420f0a0d0a0363707512060a043130306d52280a1312110a001209080110001a037765621a00220010\
         00180020ffffffffffffffffff01280030006a0072007a022000800100880100900100a201001a00320042004a0052005800\
         600068008201008a01009a0100c2010022170a0012130a06080010001a001209080110001a03323525280038011a0c080010\
         0018002000280038001a002200",
            json!({"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"d","creationTimestamp":"2026-01-02T03:04:05Z","labels":{"a":"1","b":""},"ownerReferences":[{"apiVersion":"v1","kind":"K","name":"o","uid":"u","controller":false}]},"spec":{"replicas":0,"selector":{"matchLabels":{"a":"1"}},"template":{"metadata":{},"spec":{"volumes":[{"name":"v","emptyDir":{"medium":"Memory"}}],"containers":[{"name":"c","args":["x",""],"resources":{"limits":{"cpu":"100m"}},"livenessProbe":{"httpGet":{"port":"web"},"periodSeconds":-1},"securityContext":{"runAsUser":0}}]}},"strategy":{"rollingUpdate":{"maxUnavailable":0,"maxSurge":"25%"}},"paused":true},"status":{}}),
        ),
        (
            "6b3873000a0c0a027631120653656372657412210a110a017312001a0022002a0032003800420012080a016b1203ff00fe1a\
         0028001a002200",
            json!({"kind":"Secret","apiVersion":"v1","metadata":{"name":"s"},"immutable":false,"data":{"k":"/wD+"}}),
        ),
        (
            "6b3873000a1f0a16636f6f7264696e6174696f6e2e6b38732e696f2f763112054c6561736512250a110a016c12001a002200\
         2a003200380042001210100f220c08a5ebdcca0610808c8d9e021a002200",
            json!({"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"l"},"spec":{"leaseDurationSeconds":15,"renewTime":"2026-01-02T03:04:05.600000Z"}}),
        ),
        (
            "6b3873000a2e0a17617574686f72697a6174696f6e2e6b38732e696f2f763112135375626a65637441636365737352657669\
         657712300a100a0012001a0022002a0032003800420012121a01752a0b0a016b12060a01610a016232001a08080012001a00\
         20001a002200",
            json!({"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v1","metadata":{},"spec":{"user":"u","extra":{"k":["a","b"]}},"status":{"allowed":false}}),
        ),
    ];
    for (digits, expected) in rows {
        let bytes: Vec<u8> =
            (0..digits.len()).step_by(2).map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap()).collect();
        assert_eq!(to_json(&bytes).unwrap(), expected);
        assert_eq!(to_json(&to_protobuf(&expected).unwrap()).unwrap(), expected);
        for len in 0..bytes.len() / 2 {
            assert_ne!(to_json(&bytes[..len]).ok(), Some(expected.clone()), "{len}");
        }
    }
}

#[test]
fn what_is_no_protobuf_of_a_known_kind_is_refused() {
    // A field with these bytes, and the envelope of a kind: its type (1) and its object (2).
    let field = |number: u8, bytes: &[u8]| {
        let len = [bytes.len() as u8 | 0x80, (bytes.len() >> 7) as u8];
        [&[number << 3 | 2][..], &len, bytes].concat()
    };
    let body = |api_version: &str, kind: &str, object: &[u8]| {
        let type_meta = [field(1, api_version.as_bytes()), field(2, kind.as_bytes())].concat();
        [b"k8s\0".to_vec(), field(1, &type_meta), field(2, object)].concat()
    };
    // A schema that is not what is not what is not ...
    let schema = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.";
    let number = |of: &str, name: &str| {
        let field = Type::named(&format!("{schema}{of}")).and_then(|of| of.field(name)).unwrap();
        field.number[0] as u8
    };
    let mut nested = vec![];
    // Numbers above 15 need a tag of two bytes.
    let not = number("JSONSchemaProps", "not");
    for _ in 0..200 {
        let len = [nested.len() as u8 | 0x80, (nested.len() >> 7) as u8];
        nested = [&[(not << 3 | 2) | 0x80, not >> 4][..], &len, &nested].concat();
    }
    for (of, name) in [
        ("CustomResourceValidation", "openAPIV3Schema"),
        ("CustomResourceDefinitionVersion", "schema"),
        ("CustomResourceDefinitionSpec", "versions"),
        ("CustomResourceDefinition", "spec"),
    ] {
        nested = field(number(of, name), &nested);
    }
    let rows = [
        (b"{}".to_vec(), "does not begin with `k8s`"),
        (body("v1", "Nope", b""), "no protobuf is known for Nope of v1: send JSON"),
        (body("example.com/v1", "Foo", b""), "no protobuf is known for Foo of example.com/v1"),
        (body("v1", "Pod", &[10, 9]), "ends early"),
        (body("v1", "Pod", &[8, 1]), "a field is of another type"),
        (body("v1", "Pod", &[15]), "of an unknown kind"),
        (body("v1", "ConfigMap", &[10, 4, 10, 2, 0xff, 0xff]), "not UTF-8"),
        (body("v1", "Pod", &[0xff; 12]), "ends early"),
        (body("apiextensions.k8s.io/v1", "CustomResourceDefinition", &nested), "nested too deeply"),
    ];
    for (body, message) in rows {
        let error = to_json(&body).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
    let options = to_json(&body("v1", "DeleteOptions", &[8, 0])).unwrap();
    assert_eq!(options, json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}));
    let newer = to_json(&body("v1", "ConfigMap", &[0xf8, 0x3f, 1])).unwrap();
    assert_eq!(newer, json!({"apiVersion": "v1", "kind": "ConfigMap"}), "a field of a newer version is passed over");
}

#[test]
fn objects_within_objects_may_name_their_kind() {
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}});
    let object = json!({"spec": {"serviceName": "s", "volumeClaimTemplates": [claim]}});
    assert_eq!(decoded(("apps", "StatefulSet"), object.clone()), Ok((object, vec![])));
    let object = json!({"deleteOptions": {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0}});
    assert_eq!(decoded(("policy", "Eviction"), object.clone()), Ok((object, vec![])));
}

//! Tables of what a client sends and what becomes of the object, and merge patch against an oracle.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn apply_as(patch_type: PatchType, kind: (&str, &str), object: &Value, patch: &Value) -> Result<Value, PatchError> {
    apply(patch_type, patch.to_string().as_bytes(), object.clone(), Type::of_kind(kind.0, "v1", kind.1))
}

fn strategic(kind: (&str, &str), object: &Value, patch: &Value) -> Result<Value, PatchError> {
    apply_as(PatchType::Strategic, kind, object, patch)
}

const POD: (&str, &str) = ("", "Pod");

/// Each row: what it shows, the list of the pod's containers before, the patch of them, and after.
#[test]
fn containers_are_merged_by_name() {
    let rows = [
        (
            "a new container goes first",
            json!([{"name": "a"}]),
            json!([{"name": "b"}]),
            json!([{"name": "b"}, {"name": "a"}]),
        ),
        (
            "an image is changed and the rest kept",
            json!([{"name": "a", "image": "x:1", "tty": true}, {"name": "b"}]),
            json!([{"name": "a", "image": "x:2"}]),
            json!([{"name": "a", "image": "x:2", "tty": true}, {"name": "b"}]),
        ),
        (
            "a container is deleted by a directive",
            json!([{"name": "a"}, {"name": "b"}]),
            json!([{"name": "a", "$patch": "delete"}]),
            json!([{"name": "b"}]),
        ),
        (
            "the list is replaced by a directive",
            json!([{"name": "a"}, {"name": "b"}]),
            json!([{"$patch": "replace"}, {"name": "c"}]),
            json!([{"name": "c"}]),
        ),
        (
            "an environment variable is changed, one added, one deleted",
            json!([{"name": "a", "env": [{"name": "X", "value": "1"}, {"name": "Y", "value": "2"}]}]),
            json!([{"name": "a", "env": [{"name": "X", "$patch": "delete"}, {"name": "Y", "value": "3"}, {"name": "Z"}]}]),
            json!([{"name": "a", "env": [{"name": "Y", "value": "3"}, {"name": "Z"}]}]),
        ),
        (
            "ports are merged by containerPort, mounts by mountPath, and args replaced",
            json!([{"name": "a", "ports": [{"containerPort": 80, "name": "web"}], "args": ["1", "2"],
                    "volumeMounts": [{"mountPath": "/d", "name": "d"}]}]),
            json!([{"name": "a", "ports": [{"containerPort": 80, "protocol": "TCP"}], "args": ["3"],
                    "volumeMounts": [{"mountPath": "/d", "readOnly": true}]}]),
            json!([{"name": "a", "ports": [{"containerPort": 80, "name": "web", "protocol": "TCP"}], "args": ["3"],
                    "volumeMounts": [{"mountPath": "/d", "name": "d", "readOnly": true}]}]),
        ),
        (
            "null removes a member",
            json!([{"name": "a", "image": "x", "tty": true}]),
            json!([{"name": "a", "tty": null}]),
            json!([{"name": "a", "image": "x"}]),
        ),
        ("an empty patch changes nothing", json!([{"name": "a"}]), json!([]), json!([{"name": "a"}])),
    ];
    for (what, before, patch, after) in rows {
        for list in ["containers", "initContainers", "ephemeralContainers"] {
            let object = json!({"spec": {list: before, "nodeName": "n"}});
            let patched = strategic(POD, &object, &json!({"spec": {list: patch}})).unwrap();
            assert_eq!(patched, json!({"spec": {list: after, "nodeName": "n"}}), "{what}");
        }
    }
}

#[test]
fn the_pod_template_of_every_workload_is_merged_as_a_pod() {
    let change = json!([{"name": "a", "image": "x:2"}]);
    let after = json!([{"name": "a", "image": "x:2", "tty": true}, {"name": "b"}]);
    let spec = |containers: Value| json!({"template": {"spec": {"containers": containers}}});
    let before = json!([{"name": "a", "image": "x:1", "tty": true}, {"name": "b"}]);
    for kind in [
        ("apps", "Deployment"),
        ("apps", "ReplicaSet"),
        ("apps", "StatefulSet"),
        ("apps", "DaemonSet"),
        ("batch", "Job"),
    ] {
        let object = json!({"spec": spec(before.clone())});
        let patched = strategic(kind, &object, &json!({"spec": spec(change.clone())})).unwrap();
        assert_eq!(patched, json!({"spec": spec(after.clone())}), "{kind:?}");
    }
    let object = json!({"spec": {"jobTemplate": {"spec": spec(before)}}});
    let patch = json!({"spec": {"jobTemplate": {"spec": spec(change)}}});
    let patched = strategic(("batch", "CronJob"), &object, &patch).unwrap();
    assert_eq!(patched, json!({"spec": {"jobTemplate": {"spec": spec(after)}}}));
}

/// Each row: kind, path of the list, before, patch, after.
#[test]
fn every_list_has_the_strategy_that_the_api_states() {
    let rows = [
        (POD, "/metadata/finalizers", json!(["a", "b"]), json!(["b", "c"]), json!(["a", "b", "c"])),
        (
            POD,
            "/metadata/ownerReferences",
            json!([{"uid": "1", "name": "x"}]),
            json!([{"uid": "1", "controller": true}]),
            json!([{"uid": "1", "name": "x", "controller": true}]),
        ),
        (
            POD,
            "/spec/tolerations",
            json!([{"key": "a"}, {"key": "b"}]),
            json!([{"key": "b", "effect": "NoExecute"}]),
            json!([{"key": "b", "effect": "NoExecute"}]),
        ),
        (
            POD,
            "/spec/imagePullSecrets",
            json!([{"name": "a"}]),
            json!([{"name": "a"}, {"name": "b"}]),
            json!([{"name": "a"}, {"name": "b"}]),
        ),
        (
            POD,
            "/spec/hostAliases",
            json!([{"ip": "::1", "hostnames": ["a"]}]),
            json!([{"ip": "::1", "hostnames": ["b"]}]),
            json!([{"ip": "::1", "hostnames": ["b"]}]),
        ),
        (
            POD,
            "/spec/topologySpreadConstraints",
            json!([{"topologyKey": "zone", "maxSkew": 1}]),
            json!([{"topologyKey": "zone", "maxSkew": 2}]),
            json!([{"topologyKey": "zone", "maxSkew": 2}]),
        ),
        (
            POD,
            "/status/conditions",
            json!([{"type": "Ready", "status": "False"}, {"type": "Initialized", "status": "True"}]),
            json!([{"type": "Ready", "status": "True"}]),
            json!([{"type": "Ready", "status": "True"}, {"type": "Initialized", "status": "True"}]),
        ),
        (
            POD,
            "/spec/volumes",
            json!([{"name": "v", "emptyDir": {}}]),
            json!([{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}]),
            json!([{"name": "v", "hostPath": {"path": "/x"}}]),
        ),
        (
            ("", "Service"),
            "/spec/ports",
            json!([{"port": 80, "name": "http"}]),
            json!([{"port": 80, "targetPort": "web"}]),
            json!([{"port": 80, "name": "http", "targetPort": "web"}]),
        ),
        (
            ("", "ServiceAccount"),
            "/secrets",
            json!([{"name": "a"}]),
            json!([{"name": "a", "$patch": "delete"}]),
            json!([]),
        ),
        (
            ("", "Node"),
            "/status/addresses",
            json!([{"type": "InternalIP", "address": "1"}, {"type": "Hostname", "address": "h"}]),
            json!([{"type": "InternalIP", "address": "2"}]),
            json!([{"type": "InternalIP", "address": "2"}, {"type": "Hostname", "address": "h"}]),
        ),
        // Taints carry a key, and yet the API states no merge key for them.
        (("", "Node"), "/spec/taints", json!([{"key": "a"}]), json!([{"key": "b"}]), json!([{"key": "b"}])),
        (
            ("apps", "Deployment"),
            "/status/conditions",
            json!([{"type": "Progressing", "reason": "a"}]),
            json!([{"type": "Progressing", "reason": "b"}]),
            json!([{"type": "Progressing", "reason": "b"}]),
        ),
    ];
    fn at(path: &str, value: &Value) -> Value {
        path.rsplit('/').filter(|name| !name.is_empty()).fold(value.clone(), |value, name| json!({ name: value }))
    }
    for (kind, path, before, patch, after) in rows {
        let patched = strategic(kind, &at(path, &before), &at(path, &patch)).unwrap();
        assert_eq!(patched, at(path, &after), "{kind:?} {path}");
    }
}

#[test]
fn a_finalizer_is_removed_as_kubectl_does_it() {
    let object = json!({"metadata": {"finalizers": ["a", "b", "c"]}});
    let patch = json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["b"],
                                    "$setElementOrder/finalizers": ["c", "a"]}});
    let patched = strategic(POD, &object, &patch).unwrap();
    assert_eq!(patched, json!({"metadata": {"finalizers": ["c", "a"]}}));
    let nothing = strategic(POD, &json!({"metadata": {}}), &patch).unwrap();
    assert_eq!(nothing, json!({"metadata": {}}));
}

#[test]
fn elements_stand_in_the_order_that_is_set_and_those_of_the_server_keep_their_place() {
    let names = |names: &str| -> Value { names.chars().map(|name| json!({"name": name.to_string()})).collect() };
    for (before, order, change, after) in [
        ("abc", "cba", "", "cba"),
        ("abc", "ca", "", "bca"),
        ("abc", "dab", "d", "dabc"),
        ("xay", "ba", "b", "bxay"),
        ("", "ab", "ab", "ab"),
    ] {
        let mut patch = json!({"spec": {"$setElementOrder/containers": names(order)}});
        if !change.is_empty() {
            patch["spec"]["containers"] = names(change);
        }
        let object =
            if before.is_empty() { json!({"spec": {}}) } else { json!({"spec": {"containers": names(before)}}) };
        let patched = strategic(POD, &object, &patch).unwrap();
        assert_eq!(patched["spec"]["containers"], names(after), "{before} {order} {change}");
    }
}

#[test]
fn objects_are_replaced_emptied_and_kept_in_part_by_directives() {
    let object =
        json!({"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}, "replicas": 1}});
    for (patch, after) in [
        (json!({"$patch": "replace", "type": "Recreate"}), json!({"type": "Recreate"})),
        (json!({"$patch": "delete"}), json!({})),
        (json!({"$retainKeys": ["type"], "type": "Recreate"}), json!({"type": "Recreate"})),
        (json!({"type": "Recreate", "rollingUpdate": null}), json!({"type": "Recreate"})),
        (
            json!({"rollingUpdate": {"maxUnavailable": 2}}),
            json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 2}}),
        ),
    ] {
        let patched = strategic(("apps", "Deployment"), &object, &json!({"spec": {"strategy": patch}})).unwrap();
        assert_eq!(patched, json!({"spec": {"strategy": after, "replicas": 1}}));
    }
    let budget = json!({"spec": {"selector": {"matchLabels": {"a": "1"}}}});
    let patch = json!({"spec": {"selector": {"matchLabels": {"b": "2"}}}});
    assert_eq!(
        strategic(("policy", "PodDisruptionBudget"), &budget, &patch).unwrap(),
        patch,
        "its strategy is replace"
    );
}

#[test]
fn what_the_patch_brings_anew_is_stored_without_directives_and_nulls() {
    let patch = json!({"spec": {"containers": [{"name": "a", "tty": null, "env": [{"name": "X", "$patch": "delete"}]}],
                                "volumes": [{"name": "v", "$retainKeys": ["name"]}], "hostname": null}});
    let patched = strategic(POD, &json!({}), &patch).unwrap();
    assert_eq!(patched, json!({"spec": {"containers": [{"name": "a", "env": []}], "volumes": [{"name": "v"}]}}));
}

/// Each row: type, patch of a pod with one container, a field that is a list and one that is not; status, and a part
/// of the message.
#[test]
fn a_bad_patch_says_what_is_wrong_with_it() {
    use PatchType::{Json, Merge, Strategic};
    let pod = json!({"metadata": {"labels": {"a": "1"}}, "spec": {"containers": [{"name": "a"}]}});
    let rows = [
        (Strategic, r#"{"spec":{"containers":[{"image":"x"}]}}"#, 422, "does not contain declared merge key: name"),
        (
            Strategic,
            r#"{"spec":{"containers":["x"]}}"#,
            422,
            "expected an object with the merge key name, got a string",
        ),
        (Strategic, r#"{"spec":{"containers":[{"$patch":"merge","name":"a"}]}}"#, 400, "expected replace or delete"),
        (Strategic, r#"{"spec":{"$patch":"keep"}}"#, 400, "invalid patch format of $patch"),
        (Strategic, r#"{"spec":{"$retainKeys":"x"}}"#, 400, "$retainKeys: it is a string, not a list"),
        (Strategic, r#"{"spec":{"$retainKeys":["x"],"y":1}}"#, 400, "the patch sets y"),
        (Strategic, r#"{"metadata":{"$deleteFromPrimitiveList/finalizers":1}}"#, 400, "expected a list, got a number"),
        (Strategic, r#"{"spec":{"$setElementOrder/containers":{}}}"#, 400, "expected a list, got an object"),
        (
            Strategic,
            r#"{"spec":{"$setElementOrder/containers":[{"name":"b"}],"containers":[{"name":"c"}]}}"#,
            400,
            r#""c" of the patch is not in it"#,
        ),
        (Strategic, r#"{"spec":{"$setElementOrder/volumes":[],"volumes":[{}]}}"#, 422, "declared merge key: name"),
        (Strategic, r#"{"metadata":{"$setElementOrder/labels":["a"]}}"#, 422, "labels is an object, not a list"),
        (Strategic, "[]", 400, "a merge patch is a JSON object, not a list"),
        (Strategic, "{", 400, "error decoding patch: EOF"),
        (Merge, "5", 400, "a merge patch is a JSON object, not a number"),
        (Merge, "{]", 400, "error decoding patch"),
        (Json, "{}", 400, "error decoding patch"),
        (Json, r#"[{"op":"jump","path":"/a"}]"#, 400, "unknown variant `jump`"),
        (Json, r#"[{"op":"remove","path":"/spec/x"}]"#, 422, "failed at path '/spec/x': path is invalid"),
        (Json, r#"[{"op":"replace","path":"/specs/x","value":1}]"#, 422, "failed at path '/specs/x'"),
        (
            Json,
            r#"[{"op":"add","path":"/b","value":1},{"op":"test","path":"/metadata/labels/a","value":"2"}]"#,
            422,
            "operation '/1' failed at path '/metadata/labels/a': value did not match",
        ),
        (Json, r#"[{"op":"replace","path":"","value":7}]"#, 422, "leaves a number where an object was"),
    ];
    for (patch_type, patch, status, message) in rows {
        let of = Type::of_kind("", "v1", "Pod");
        let error = apply(patch_type, patch.as_bytes(), pod.clone(), of).expect_err(patch);
        assert_eq!(error.status_code(), status, "{patch}: {error}");
        assert!(error.to_string().contains(message), "{patch}: {error}");
    }
}

#[test]
fn a_json_patch_is_bounded_in_operations_and_in_what_it_copies() {
    let operations = vec![json!({"op": "test", "path": "/a", "value": 1}); JSON_PATCH_OPERATIONS_MAX + 1];
    let error = apply_as(PatchType::Json, POD, &json!({"a": 1}), &json!(operations)).unwrap_err();
    assert_eq!(error.status_code(), 413);
    assert_eq!(error.to_string(), "The allowed maximum operations in a JSON patch is 10000, got 10001");

    let doubling = vec![json!({"op": "copy", "from": "/a", "path": "/a/-"}); 64];
    let error = apply_as(PatchType::Json, POD, &json!({"a": ["0123456789"]}), &json!(doubling)).unwrap_err();
    assert_eq!(error.status_code(), 413);
}

#[test]
fn the_content_type_decides_and_custom_resources_take_no_strategic_merge() {
    for (content_type, built_in, expected) in [
        ("application/json-patch+json", true, Some(PatchType::Json)),
        ("application/merge-patch+json; charset=utf-8", false, Some(PatchType::Merge)),
        ("Application/Strategic-Merge-Patch+JSON", true, Some(PatchType::Strategic)),
        ("application/strategic-merge-patch+json", false, None),
        ("application/apply-patch+yaml", true, None),
        ("application/json", true, None),
        ("", true, None),
    ] {
        assert_eq!(PatchType::from_content_type(content_type, built_in).ok(), expected, "{content_type}");
    }
    let error = PatchType::from_content_type("application/apply-patch+yaml", false).unwrap_err();
    assert_eq!(error.status_code(), 415);
    assert_eq!(
        error.to_string(),
        "the body of the request was in an unknown format (application/apply-patch+yaml) - accepted media types \
         include: application/json-patch+json, application/merge-patch+json"
    );
}

#[test]
fn a_json_patch_is_applied_in_order() {
    let object = json!({"metadata": {"labels": {"a": "1"}, "finalizers": ["x", "y"]}});
    let patch = json!([
        {"op": "test", "path": "/metadata/labels/a", "value": "1"},
        {"op": "replace", "path": "/metadata/labels/a", "value": "2"},
        {"op": "add", "path": "/metadata/labels/b~1c", "value": "3"},
        {"op": "remove", "path": "/metadata/finalizers/0"},
        {"op": "add", "path": "/metadata/finalizers/-", "value": "z"},
        {"op": "copy", "from": "/metadata/labels", "path": "/metadata/annotations"},
        {"op": "move", "from": "/metadata/annotations/a", "path": "/metadata/annotations/moved"},
    ]);
    let patched = apply_as(PatchType::Json, POD, &object, &patch).unwrap();
    assert_eq!(
        patched,
        json!({"metadata": {"labels": {"a": "2", "b/c": "3"}, "finalizers": ["y", "z"],
                            "annotations": {"b/c": "3", "moved": "2"}}})
    );
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![Just(Value::Null), any::<bool>().prop_map(Value::from), (0..4).prop_map(Value::from)];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::btree_map("[a-d]", inner, 0..4).prop_map(|m| m.into_iter().collect::<Value>()),
        ]
    })
}

fn json_object() -> impl Strategy<Value = Value> {
    proptest::collection::btree_map("[a-d]", json_value(), 0..4).prop_map(|m| m.into_iter().collect::<Value>())
}

/// RFC 7396's definition, member by member: what stands at a name afterwards.
fn merge_oracle(target: Option<&Value>, patch: &Value) -> Value {
    let Value::Object(patch) = patch else { return patch.clone() };
    let old = target.and_then(Value::as_object).cloned().unwrap_or_default();
    let names = old.keys().chain(patch.keys()).collect::<std::collections::BTreeSet<_>>();
    let after = |name: &String| match (old.get(name), patch.get(name)) {
        (_, Some(Value::Null)) | (None, None) => None,
        (Some(old), None) => Some(old.clone()),
        (old, Some(change)) => Some(merge_oracle(old, change)),
    };
    names.into_iter().filter_map(|name| Some((name.clone(), after(name)?))).collect()
}

/// No lists, and no nulls in the object: there a strategic merge without a type is a merge patch.
fn without_lists_and_nulls(value: Value, keep_nulls: bool) -> Value {
    match value {
        Value::Array(list) => json!(list.len()),
        Value::Object(object) => object
            .into_iter()
            .filter(|(_, value)| keep_nulls || !value.is_null())
            .map(|(name, value)| (name, without_lists_and_nulls(value, keep_nulls)))
            .collect(),
        value => value,
    }
}

proptest! {
    #[test]
    fn a_merge_patch_does_what_its_rfc_defines(object in json_object(), patch in json_object()) {
        let patched = apply_as(PatchType::Merge, POD, &object, &patch).unwrap();
        prop_assert_eq!(patched, merge_oracle(Some(&object), &patch));
    }

    #[test]
    fn without_lists_a_strategic_merge_is_a_merge_patch(object in json_object(), patch in json_object()) {
        let object = without_lists_and_nulls(object, false);
        let patch = without_lists_and_nulls(patch, true);
        let patched = apply(PatchType::Strategic, patch.to_string().as_bytes(), object.clone(), None).unwrap();
        prop_assert_eq!(patched, merge_oracle(Some(&object), &patch));
    }

    #[test]
    fn a_patch_never_panics(object in json_object(), patch in json_value(), directive in "[$]patch|[$]retainKeys|[$]setElementOrder/a|[$]deleteFromPrimitiveList/a") {
        for patch in [patch.clone(), json!({"a": {directive.clone(): patch.clone()}}), json!({directive: patch})] {
            for patch_type in PatchType::ALL {
                drop(apply_as(patch_type, POD, &object, &patch));
            }
        }
    }
}

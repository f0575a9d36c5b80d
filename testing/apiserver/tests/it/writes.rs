//! Create, update, patch, delete.

use std::time::Duration;

use kubewire_apiserver::{ApiServer, Resource};
use serde_json::{Value, json};

use crate::raw::{get, next, patch_as, watch, write};

const PODS: &str = "/api/v1/namespaces/default/pods";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const FOOS: &str = "/apis/example.com/v1/namespaces/default/foos";

fn pod(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "app", "image": "app:1"}]}})
}

async fn with_foos() -> ApiServer {
    let foos = Resource::custom("example.com", "v1", "Foo", "foos").with_status();
    ApiServer::builder().custom_resource(foos).start().await.unwrap()
}

#[tokio::test]
async fn what_is_created_has_what_the_server_gives_and_not_what_it_owns() {
    let server = ApiServer::start().await;
    let mut sent = pod("a");
    sent["status"] = json!({"phase": "Running"});
    sent["metadata"]["generation"] = json!(7);
    sent["metadata"]["uid"] = json!("mine");
    sent["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let made = write(&server, "POST", PODS, sent).await;
    assert_eq!(made.code, 201);
    let metadata = &made.body["metadata"];
    assert_eq!((&metadata["namespace"], &metadata["generation"]), (&json!("default"), &json!(1)));
    assert_eq!(metadata["uid"].as_str().unwrap().len(), 36);
    assert!(metadata["creationTimestamp"].as_str().unwrap().ends_with('Z'));
    assert_eq!(metadata["deletionTimestamp"], Value::Null);
    assert_eq!(
        (&made.body["status"]["phase"], &made.body["spec"]["restartPolicy"]),
        (&json!("Pending"), &json!("Always"))
    );
    assert_eq!((&made.body["kind"], &made.body["apiVersion"]), (&json!("Pod"), &json!("v1")));
}

#[tokio::test]
async fn a_create_that_is_not_right_is_refused_with_the_reason() {
    let server = ApiServer::start().await;
    let named = |name: &str| json!({"metadata": {"name": name}});
    for (path, body, expected) in [
        (MAPS, json!({}), (422, "Invalid", "name or generateName is required")),
        (MAPS, named("A_b"), (422, "Invalid", "a lowercase RFC 1123 subdomain")),
        (MAPS, named(&"a".repeat(254)), (422, "Invalid", "must be no more than 253 characters")),
        (MAPS, named("a/b"), (422, "Invalid", "RFC 1123")),
        ("/api/v1/namespaces", named("a.b"), (422, "Invalid", "RFC 1123 label")),
        (
            MAPS,
            json!({"metadata": {"name": "a", "namespace": "other"}}),
            (400, "BadRequest", "does not match the namespace"),
        ),
        (MAPS, json!({"metadata": {"name": "a", "resourceVersion": "5"}}), (400, "BadRequest", "should not be set")),
        (MAPS, json!({"kind": "Pod", "metadata": {"name": "a"}}), (400, "BadRequest", "ConfigMap")),
        (MAPS, json!({"metadata": {"name": "a", "labels": {"a": 1}}}), (400, "BadRequest", "labels")),
        (MAPS, json!([]), (400, "BadRequest", "object")),
        ("/api/v1/namespaces/nope/configmaps", named("a"), (404, "NotFound", "namespaces \"nope\" not found")),
    ] {
        let answer = write(&server, "POST", path, body.clone()).await;
        assert_eq!(answer.reason(), (expected.0, expected.1), "{body}: {}", answer.body);
        assert!(answer.message().contains(expected.2), "{body}: {}", answer.message());
    }
    let text = crate::raw::send(&server, "POST", MAPS, &[], "not JSON").await.unwrap();
    assert_eq!(text.status(), 400);
    let long = crate::raw::send(&server, "POST", MAPS, &[], vec![b' '; 3 * 1024 * 1024 + 1]).await.unwrap();
    assert_eq!(long.status(), 413);
    let yaml = crate::raw::send(&server, "POST", MAPS, &[("content-type", "application/yaml")], "a: b").await.unwrap();
    assert_eq!(yaml.status(), 415);
}

#[tokio::test]
async fn generated_names_differ_and_keep_within_the_limit() {
    let server = ApiServer::builder().seed(1).start().await.unwrap();
    let long = "a".repeat(100);
    for base in ["x-", &long] {
        let mut names = Vec::new();
        for _ in 0..20 {
            let made = write(&server, "POST", MAPS, json!({"metadata": {"generateName": base}})).await;
            names.push(made.body["metadata"]["name"].as_str().unwrap().to_owned());
        }
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 20);
        assert!(names.iter().all(|name| name.len() == base.len().min(58) + 5));
    }
}

#[tokio::test]
async fn the_same_seed_gives_the_same_names_and_uids() {
    let mut made = Vec::new();
    for _ in 0..2 {
        let server = ApiServer::builder().seed(42).start().await.unwrap();
        let map = write(&server, "POST", MAPS, json!({"metadata": {"generateName": "x-"}})).await;
        made.push((map.body["metadata"]["name"].clone(), map.body["metadata"]["uid"].clone()));
    }
    assert_eq!(made[0], made[1]);
}

#[tokio::test]
async fn an_update_from_an_old_version_or_of_another_object_is_refused() {
    let server = ApiServer::start().await;
    let first = write(&server, "POST", MAPS, json!({"metadata": {"name": "a"}})).await.body;
    let path = format!("{MAPS}/a");
    let mut second = first.clone();
    second["data"] = json!({"x": "1"});
    assert_eq!(write(&server, "PUT", &path, second.clone()).await.code, 200);
    let conflict = write(&server, "PUT", &path, second.clone()).await;
    assert_eq!(conflict.reason(), (409, "Conflict"));
    let message = "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your \
        changes to the latest version and try again";
    assert_eq!(conflict.message(), message);

    second["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    second["data"] = json!({"x": "2"});
    assert_eq!(write(&server, "PUT", &path, second.clone()).await.code, 200, "without a version: whatever the state");
    second["metadata"]["uid"] = json!("another");
    let other = write(&server, "PUT", &path, second.clone()).await;
    assert!(other.message().contains("Precondition failed: UID"), "{}", other.message());
    second["metadata"]["name"] = json!("b");
    assert_eq!(write(&server, "PUT", &path, second).await.reason(), (400, "BadRequest"));
    assert_eq!(write(&server, "PUT", &format!("{MAPS}/c"), json!({})).await.reason(), (404, "NotFound"));
}

#[tokio::test]
async fn custom_resources_are_updated_only_with_a_version() {
    let server = with_foos().await;
    write(&server, "POST", FOOS, json!({"metadata": {"name": "f"}})).await;
    let answer = write(&server, "PUT", &format!("{FOOS}/f"), json!({"metadata": {"name": "f"}})).await;
    assert_eq!(answer.reason(), (422, "Invalid"));
    assert!(answer.message().contains("must be specified for an update"));
}

#[tokio::test]
async fn status_and_the_rest_are_written_apart_and_only_the_rest_counts_as_a_generation() {
    let server = with_foos().await;
    let made =
        write(&server, "POST", FOOS, json!({"metadata": {"name": "f"}, "spec": {"n": 1}, "status": {"n": 1}})).await;
    assert_eq!((&made.body["status"], &made.body["metadata"]["generation"]), (&Value::Null, &json!(1)));
    let (path, status) = (format!("{FOOS}/f"), format!("{FOOS}/f/status"));

    let patched = write(
        &server,
        "PATCH",
        &status,
        json!({"spec": {"n": 9}, "status": {"n": 2}, "metadata": {"labels": {"a": "b"}}}),
    )
    .await;
    assert_eq!((&patched.body["spec"]["n"], &patched.body["status"]["n"]), (&json!(1), &json!(2)));
    assert_eq!(
        (&patched.body["metadata"]["generation"], &patched.body["metadata"]["labels"]),
        (&json!(1), &Value::Null)
    );
    let mut whole = patched.body.clone();
    whole["status"] = json!({"n": 3});
    whole["spec"] = json!({"n": 5});
    let put = write(&server, "PUT", &path, whole).await;
    assert_eq!((&put.body["spec"]["n"], &put.body["status"]["n"]), (&json!(5), &json!(2)));
    assert_eq!(put.body["metadata"]["generation"], json!(2));
    let labelled = write(&server, "PATCH", &path, json!({"metadata": {"labels": {"a": "b"}}})).await;
    assert_eq!(labelled.body["metadata"]["generation"], json!(2));
    assert_eq!(get(&server, &status).await.body, get(&server, &path).await.body);
    assert_eq!(get(&server, &format!("{MAPS}/x/status")).await.code, 404, "a kind without a status");
}

#[tokio::test]
async fn a_write_that_changes_nothing_makes_no_version() {
    let server = ApiServer::start().await;
    let made = write(&server, "POST", MAPS, json!({"metadata": {"name": "a"}, "data": {"x": "1"}})).await.body;
    let same = write(&server, "PATCH", &format!("{MAPS}/a"), json!({"data": {"x": "1"}})).await.body;
    assert_eq!(made, same);
    assert_eq!(write(&server, "PUT", &format!("{MAPS}/a"), made.clone()).await.body, made);
}

#[tokio::test]
async fn all_kinds_of_patches_are_taken() {
    let server = with_foos().await;
    write(&server, "POST", PODS, pod("a")).await;
    write(&server, "POST", FOOS, json!({"metadata": {"name": "f"}})).await;
    let (path, foo) = (format!("{PODS}/a"), format!("{FOOS}/f"));
    let strategic = "application/strategic-merge-patch+json";
    let sidecar = json!({"spec": {"containers": [{"name": "side", "image": "side:1"}]}});
    let merged = patch_as(&server, "PATCH", &path, strategic, sidecar.clone()).await;
    assert_eq!(merged.body["spec"]["containers"].as_array().unwrap().len(), 2);
    let replace = json!([{"op": "replace", "path": "/spec/containers/1/image", "value": "side:2"}]);
    let replaced = patch_as(&server, "PATCH", &path, "application/json-patch+json", replace).await;
    assert_eq!(replaced.body["spec"]["containers"].as_array().unwrap().len(), 2, "{}", replaced.body);
    let merged = write(&server, "PATCH", &path, sidecar).await;
    assert_eq!(merged.body["spec"]["containers"].as_array().unwrap().len(), 1, "a merge patch replaces lists");

    for (path, content_type, body, code) in [
        (&path, "application/apply-patch+yaml", json!({}), 422),
        (&path, "text/plain", json!({}), 415),
        (&foo, strategic, json!({}), 415),
        (&path, "application/json-patch+json", json!([{"op": "test", "path": "/spec/x", "value": 1}]), 422),
        (&path, "application/merge-patch+json", json!({"metadata": {"resourceVersion": "1"}}), 409),
        (&path, "application/merge-patch+json", json!({"metadata": {"name": "b"}}), 400),
        (&format!("{PODS}/none"), "application/merge-patch+json", json!({}), 404),
    ] {
        let answer = patch_as(&server, "PATCH", path, content_type, body.clone()).await;
        assert_eq!(answer.code, code, "{content_type} {body}: {}", answer.body);
    }
}

#[tokio::test]
async fn patches_cannot_nest_an_object_deeper_than_it_can_be_read() {
    let server = with_foos().await;
    let nested = |levels: usize| -> Value {
        serde_json::from_str(&format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels))).unwrap()
    };
    write(&server, "POST", FOOS, json!({"metadata": {"name": "f"}, "spec": nested(90)})).await;
    let deeper = json!([{"op": "add", "path": format!("/spec{}", "/a".repeat(80)), "value": nested(90)}]);
    let answer = patch_as(&server, "PATCH", &format!("{FOOS}/f"), "application/json-patch+json", deeper).await;
    assert_eq!(answer.reason(), (400, "BadRequest"));
    assert!(answer.message().contains("nested deeper"), "{}", answer.message());
    assert_eq!(get(&server, &format!("{FOOS}/f")).await.body["spec"], nested(90));
}

#[tokio::test]
async fn fields_that_do_not_exist_are_refused_warned_of_or_dropped() {
    let server = ApiServer::start().await;
    let sent = json!({"metadata": {"name": "a"}, "spec": {"bogus": 1, "containers": []}});
    let strict = write(&server, "POST", &format!("{PODS}?fieldValidation=Strict"), sent.clone()).await;
    assert_eq!(strict.reason(), (400, "BadRequest"));
    assert!(strict.message().contains("strict decoding error: unknown field \"spec.bogus\""));
    let warned = write(&server, "POST", PODS, sent).await;
    assert_eq!((warned.code, &warned.body["spec"]["bogus"]), (201, &Value::Null));
    assert_eq!(warned.headers["warning"], "299 - \"unknown field \\\"spec.bogus\\\"\"");
    let strict =
        write(&server, "PATCH", &format!("{PODS}/a?fieldValidation=Strict"), json!({"spec": {"bogus": 1}})).await;
    assert_eq!(strict.code, 400);
    let mistyped = write(&server, "POST", PODS, json!({"metadata": {"name": "b"}, "spec": {"nodeName": 5}})).await;
    assert!(mistyped.message().contains("spec.nodeName"), "{}", mistyped.message());
}

#[tokio::test]
async fn a_dry_run_checks_all_and_writes_nothing() {
    let server = ApiServer::start().await;
    let version = server.resource_version();
    let made = write(&server, "POST", &format!("{MAPS}?dryRun=All"), json!({"metadata": {"name": "a"}})).await;
    assert_eq!((made.code, &made.body["metadata"]["name"]), (201, &json!("a")));
    assert_eq!(
        write(&server, "POST", &format!("{MAPS}?dryRun=All"), json!({"metadata": {"name": "A"}})).await.code,
        422
    );
    assert_eq!(write(&server, "POST", &format!("{MAPS}?dryRun=Some"), json!({})).await.code, 422);
    write(&server, "POST", MAPS, json!({"metadata": {"name": "a"}})).await;
    let patched = write(&server, "PATCH", &format!("{MAPS}/a?dryRun=All"), json!({"data": {"x": "1"}})).await;
    assert_eq!(patched.body["data"]["x"], "1");
    assert_eq!(write(&server, "DELETE", &format!("{MAPS}/a?dryRun=All"), Value::Null).await.code, 200);
    assert_eq!(server.resource_version(), version + 1);
}

#[tokio::test]
async fn a_delete_answers_a_status_or_the_object_and_keeps_to_its_preconditions() {
    let server = ApiServer::start().await;
    let made = write(&server, "POST", MAPS, json!({"metadata": {"name": "a"}})).await.body;
    let path = format!("{MAPS}/a");
    for wrong in [json!({"uid": "x"}), json!({"resourceVersion": "1"})] {
        let refused = write(&server, "DELETE", &path, json!({"preconditions": wrong})).await;
        assert_eq!(refused.reason(), (409, "Conflict"));
    }
    let right = json!({"preconditions": {"uid": made["metadata"]["uid"], "resourceVersion": made["metadata"]["resourceVersion"]}});
    let deleted = write(&server, "DELETE", &path, right).await;
    assert_eq!(
        (&deleted.body["status"], &deleted.body["details"]["uid"]),
        (&json!("Success"), &made["metadata"]["uid"])
    );
    assert_eq!(write(&server, "DELETE", &path, Value::Null).await.reason(), (404, "NotFound"));
    write(&server, "POST", PODS, pod("p")).await;
    assert_eq!(write(&server, "DELETE", &format!("{PODS}/p"), Value::Null).await.body["kind"], "Pod");
}

#[tokio::test]
async fn an_object_with_finalizers_stays_until_they_are_gone() {
    let server = ApiServer::start().await;
    let path = format!("{MAPS}/a");
    write(&server, "POST", MAPS, json!({"metadata": {"name": "a", "finalizers": ["x/one", "x/two"]}})).await;
    let mut events = watch(&server, &format!("{MAPS}?watch=true&resourceVersion={}", server.resource_version())).await;
    let marked = write(&server, "DELETE", &path, Value::Null).await;
    assert!(marked.body["metadata"]["deletionTimestamp"].is_string());
    let again = write(&server, "DELETE", &path, Value::Null).await;
    assert_eq!(again.body, marked.body, "a second delete changes nothing");
    let more = write(&server, "PATCH", &path, json!({"metadata": {"finalizers": ["x/one", "x/two", "x/three"]}})).await;
    assert!(more.message().contains("no new finalizers can be added"), "{}", more.message());
    let one =
        write(&server, "PATCH", &path, json!({"metadata": {"finalizers": ["x/two"], "deletionTimestamp": null}})).await;
    assert_eq!(one.body["metadata"]["deletionTimestamp"], marked.body["metadata"]["deletionTimestamp"]);
    write(&server, "PATCH", &path, json!({"metadata": {"finalizers": null}})).await;
    assert_eq!(get(&server, &path).await.code, 404);
    let told = next(&mut events, 3).await;
    let kinds: Vec<&str> = told.iter().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(kinds, ["MODIFIED", "MODIFIED", "DELETED"]);
}

#[tokio::test(start_paused = true)]
async fn a_pod_on_a_node_gets_its_grace_period_and_any_other_goes_at_once() {
    let server = ApiServer::start().await;
    let mut running = pod("a");
    running["spec"]["nodeName"] = json!("n1");
    for name in ["a", "b", "c"] {
        running["metadata"]["name"] = json!(name);
        write(&server, "POST", PODS, running.clone()).await;
    }
    write(&server, "POST", PODS, pod("unscheduled")).await;
    write(&server, "DELETE", &format!("{PODS}/unscheduled"), Value::Null).await;
    assert_eq!(get(&server, &format!("{PODS}/unscheduled")).await.code, 404);
    write(&server, "DELETE", &format!("{PODS}/c?gracePeriodSeconds=0"), Value::Null).await;
    assert_eq!(server.count("pods"), 2);

    let deleted = write(&server, "DELETE", &format!("{PODS}/a"), Value::Null).await.body;
    assert_eq!(
        (&deleted["metadata"]["deletionGracePeriodSeconds"], &deleted["metadata"]["generation"]),
        (&json!(30), &json!(2))
    );
    write(&server, "DELETE", &format!("{PODS}/b"), json!({"gracePeriodSeconds": 100})).await;
    let longer = write(&server, "DELETE", &format!("{PODS}/a"), json!({"gracePeriodSeconds": 60})).await.body;
    assert_eq!(longer, deleted, "a grace period is only shortened");
    write(&server, "DELETE", &format!("{PODS}/b"), json!({"gracePeriodSeconds": 10})).await;
    for (seconds, left) in [(9, 2), (2, 1), (18, 1), (2, 0)] {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        assert_eq!(server.count("pods"), left, "after {seconds} seconds more");
    }
}

#[tokio::test(start_paused = true)]
async fn a_pod_of_the_same_name_is_not_hit_by_the_end_of_its_predecessors_grace_period() {
    let server = ApiServer::start().await;
    let mut running = pod("a");
    running["spec"]["nodeName"] = json!("n1");
    write(&server, "POST", PODS, running.clone()).await;
    write(&server, "DELETE", &format!("{PODS}/a"), Value::Null).await;
    write(&server, "DELETE", &format!("{PODS}/a?gracePeriodSeconds=0"), Value::Null).await;
    write(&server, "POST", PODS, running).await;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(server.count("pods"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_pod_with_finalizers_outlives_its_grace_period() {
    let server = ApiServer::start().await;
    let mut running = pod("a");
    running["spec"]["nodeName"] = json!("n1");
    running["metadata"]["finalizers"] = json!(["x/one"]);
    write(&server, "POST", PODS, running).await;
    write(&server, "DELETE", &format!("{PODS}/a"), Value::Null).await;
    tokio::time::sleep(Duration::from_secs(31)).await;
    assert_eq!(server.get("pods", "default", "a").unwrap()["metadata"]["deletionGracePeriodSeconds"], 0);
    write(&server, "PATCH", &format!("{PODS}/a"), json!({"metadata": {"finalizers": []}})).await;
    assert_eq!(server.count("pods"), 0);
}

#[tokio::test]
async fn a_collection_is_deleted_by_selector() {
    let server = ApiServer::start().await;
    for (name, app) in [("a", "x"), ("b", "y"), ("c", "x")] {
        write(&server, "POST", MAPS, json!({"metadata": {"name": name, "labels": {"app": app}}})).await;
    }
    let deleted = write(&server, "DELETE", &format!("{MAPS}?labelSelector=app=x"), Value::Null).await;
    assert_eq!(deleted.names(), ["a", "c"]);
    assert_eq!(get(&server, MAPS).await.names(), ["b"]);
}

#[tokio::test]
async fn with_a_namespace_goes_what_is_in_it() {
    let server = with_foos().await;
    write(&server, "POST", "/api/v1/namespaces", json!({"metadata": {"name": "ns"}})).await;
    server.create("configmaps", json!({"metadata": {"name": "a", "namespace": "ns"}})).unwrap();
    server.create("example.com/v1/foos", json!({"metadata": {"name": "a", "namespace": "ns"}})).unwrap();
    let mut events =
        watch(&server, &format!("/api/v1/configmaps?watch=true&resourceVersion={}", server.resource_version())).await;
    write(&server, "DELETE", "/api/v1/namespaces/ns", Value::Null).await;
    assert!(next(&mut events, 1).await[0].starts_with("DELETED a@"));
    assert_eq!(server.count("example.com/v1/foos"), 0);
    assert_eq!(get(&server, "/api/v1/namespaces/ns").await.code, 404);
    assert!(server.create("configmaps", json!({"metadata": {"name": "a", "namespace": "ns"}})).is_err());
    let lenient = ApiServer::builder().namespaces_on_demand().start().await.unwrap();
    lenient.create("configmaps", json!({"metadata": {"name": "a", "namespace": "ns"}})).unwrap();
    assert!(lenient.get("namespaces", "", "ns").is_some());
}

#[tokio::test]
async fn a_test_writes_directly_with_the_status_it_wants() {
    let server = ApiServer::start().await;
    let made = server
        .create(
            "pods",
            json!({"metadata": {"name": "a", "namespace": "default", "uid": "u1"}, "status": {"phase": "Running"}}),
        )
        .unwrap();
    assert_eq!((&made["status"]["phase"], &made["metadata"]["uid"]), (&json!("Running"), &json!("u1")));
    let changed = server.modify("pods", "default", "a", |pod| pod["status"]["phase"] = json!("Failed")).unwrap();
    assert_eq!(changed["status"]["phase"], "Failed");
    assert_eq!(server.list("pods"), std::slice::from_ref(&changed));
    server.delete("pods", "default", "a").unwrap();
    assert_eq!(server.modify("pods", "default", "a", |_| {}).unwrap_err().code, 404);
    assert_eq!(server.create("nothing", json!({})).unwrap_err().code, 404);
}

#[tokio::test]
async fn defaults_of_a_schema_are_filled_in_by_every_write_and_a_test_can_wait_for_a_state() {
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "default": {}, "properties": {
        "n": {"type": "integer", "default": 1},
        "list": {"type": "array", "items": {"type": "object", "properties": {"proto": {"type": "string", "default": "TCP"}}}},
        "map": {"type": "object", "additionalProperties": {"type": "object", "properties": {"on": {"default": true}}}},
    }}}});
    let foos = Resource::custom("example.com", "v1", "Foo", "foos").with_schema(schema);
    let server = ApiServer::builder().custom_resource(foos).start().await.unwrap();
    let path = "/apis/example.com/v1/namespaces/default/foos";
    let foo =
        |spec: Value| json!({"apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "a"}, "spec": spec});
    let is_two = |object: Option<&Value>| object.is_some_and(|object| object["spec"]["n"] == 2);
    let two = server.wait_until("example.com/v1/foos", "default", "a", is_two);
    let writes = async {
        let sent = json!({"list": [{}, {"proto": "UDP"}], "map": {"a": {}}});
        let made = write(&server, "POST", path, foo(sent)).await.body;
        let filled = json!({"list": [{"proto": "TCP"}, {"proto": "UDP"}], "map": {"a": {"on": true}}, "n": 1});
        assert_eq!(made["spec"], filled);
        let patch = json!({"spec": {"n": 2, "list": [{}], "map": null}});
        let patched = write(&server, "PATCH", &format!("{path}/a"), patch).await.body;
        assert_eq!(patched["spec"], json!({"list": [{"proto": "TCP"}], "n": 2}));
    };
    let (two, ()) = tokio::join!(two, writes);
    assert!(is_two(two.as_ref()));
}

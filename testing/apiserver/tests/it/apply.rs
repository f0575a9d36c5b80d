//! Server-side apply.

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ConfigMap;
use kube_client::api::{Api, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use kube_client::core::ApiResource;
use kube_client::{Client, Error};
use kubewire_apiserver::{ApiServer, Resource};
use serde_json::{Value, json};

use crate::raw::{get, patch_as, send};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn by(manager: &str) -> PatchParams {
    PatchParams::apply(manager)
}

fn map(data: Value) -> Patch<Value> {
    Patch::Apply(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": data}))
}

fn value(object: &impl serde::Serialize) -> Value {
    serde_json::to_value(object).unwrap()
}

/// Manager, operation, subresource and fields of each entry.
fn owners(object: &Value) -> Vec<(String, String, String, Value)> {
    let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let text = |entry: &Value, name: &str| entry[name].as_str().unwrap_or_default().to_owned();
    let owner = |e: &Value| (text(e, "manager"), text(e, "operation"), text(e, "subresource"), e["fieldsV1"].clone());
    entries.iter().map(owner).collect()
}

fn owner(manager: &str, operation: &str, fields: Value) -> (String, String, String, Value) {
    (manager.to_owned(), operation.to_owned(), String::new(), fields)
}

fn refusal<T: std::fmt::Debug>(result: Result<T, Error>) -> Value {
    match result.unwrap_err() {
        Error::Api(status) => value(&status),
        other => panic!("{other}"),
    }
}

async fn with_maps() -> (ApiServer, Api<ConfigMap>) {
    let server = ApiServer::start().await;
    let client = Client::new(server.service(), "default");
    (server, Api::default_namespaced(client))
}

#[tokio::test]
async fn an_apply_makes_the_object_and_a_second_one_writes_nothing() {
    let (_server, maps) = with_maps().await;
    let made = maps.patch("m", &by("a"), &map(json!({"x": "1"}))).await.unwrap();
    assert!(made.metadata.uid.is_some() && made.metadata.creation_timestamp.is_some());
    let entry = &value(&made)["metadata"]["managedFields"][0];
    assert_eq!((&entry["apiVersion"], &entry["fieldsType"]), (&json!("v1"), &json!("FieldsV1")));
    assert!(entry["time"].is_string());
    assert_eq!(owners(&value(&made)), [owner("a", "Apply", json!({"f:data": {"f:x": {}}}))]);
    let again = maps.patch("m", &by("a"), &map(json!({"x": "1"}))).await.unwrap();
    assert_eq!(again, made);
    let dry = maps.patch("m", &by("a").dry_run(), &map(json!({"x": "2"}))).await.unwrap();
    assert_eq!(dry.data.unwrap()["x"], "2");
    assert_eq!(maps.get("m").await.unwrap(), made);
}

#[tokio::test]
async fn another_value_for_a_field_of_another_manager_is_a_conflict_unless_it_is_forced() {
    let (_server, maps) = with_maps().await;
    maps.patch("m", &by("a"), &map(json!({"x": "1", "y": "1"}))).await.unwrap();
    let shared = maps.patch("m", &by("b"), &map(json!({"x": "1"}))).await.unwrap();
    assert_eq!(owners(&value(&shared)).len(), 2, "the same value is shared");
    let status = refusal(maps.patch("m", &by("b"), &map(json!({"x": "2"}))).await);
    assert_eq!((&status["code"], &status["reason"]), (&json!(409), &json!("Conflict")));
    assert_eq!(status["message"], "Apply failed with 1 conflict: conflict with \"a\": .data.x");
    let cause = json!({"reason": "FieldManagerConflict", "message": "conflict with \"a\"", "field": ".data.x"});
    assert_eq!(status["details"]["causes"], json!([cause]));
    let status = refusal(maps.patch("m", &by("b"), &map(json!({"x": "2", "y": "2"}))).await);
    assert_eq!(status["message"], "Apply failed with 2 conflicts: conflicts with \"a\":\n- .data.x\n- .data.y");

    let forced = maps.patch("m", &by("b").force(), &map(json!({"x": "2"}))).await.unwrap();
    assert_eq!(forced.data.as_ref().unwrap()["x"], "2");
    assert_eq!(
        owners(&value(&forced)),
        [owner("a", "Apply", json!({"f:data": {"f:y": {}}})), owner("b", "Apply", json!({"f:data": {"f:x": {}}})),]
    );
}

#[tokio::test]
async fn what_its_only_manager_drops_is_removed_and_what_others_own_stays() {
    let (_server, maps) = with_maps().await;
    maps.patch("m", &by("a"), &map(json!({"mine": "1", "shared": "1"}))).await.unwrap();
    maps.patch("m", &by("b"), &map(json!({"shared": "1", "other": "1"}))).await.unwrap();
    let left = maps.patch("m", &by("a"), &map(json!({}))).await.unwrap();
    assert_eq!(value(&left.data), json!({"shared": "1", "other": "1"}));
    let none = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}});
    let gone = maps.patch("m", &by("b"), &Patch::Apply(none)).await.unwrap();
    assert!(gone.data.unwrap_or_default().is_empty());
}

#[tokio::test]
async fn other_writes_own_what_they_change() {
    let (server, maps) = with_maps().await;
    let plain: ConfigMap = serde_json::from_value(json!({"metadata": {"name": "m"}, "data": {"x": "1"}})).unwrap();
    let post = PostParams { field_manager: Some("creator".to_owned()), ..PostParams::default() };
    let made = maps.create(&post, &plain).await.unwrap();
    assert_eq!(owners(&value(&made)), [owner("creator", "Update", json!({"f:data": {".": {}, "f:x": {}}}))]);
    let status = refusal(maps.patch("m", &by("a"), &map(json!({"x": "2"}))).await);
    assert_eq!(status["message"], "Apply failed with 1 conflict: conflict with \"creator\" using v1: .data.x");

    let merge = Patch::Merge(json!({"data": {"x": "3", "y": "3"}}));
    let patch = PatchParams { field_manager: Some("patcher".to_owned()), ..PatchParams::default() };
    let patched = maps.patch("m", &patch, &merge).await.unwrap();
    assert_eq!(
        owners(&value(&patched)),
        [
            owner("creator", "Update", json!({"f:data": {}})),
            owner("patcher", "Update", json!({"f:data": {"f:x": {}, "f:y": {}}})),
        ]
    );
    let mut replaced = patched.clone();
    replaced.data.as_mut().unwrap().remove("x");
    replaced.metadata.managed_fields = None;
    let replaced = maps.replace("m", &PostParams::default(), &replaced).await.unwrap();
    let owners_left = owners(&value(&replaced));
    assert_eq!(owners_left[1].3, json!({"f:data": {"f:y": {}}}), "what is removed is nobody's");
    let reset = json!({"metadata": {"managedFields": [{}]}});
    let reset = patch_as(&server, "PATCH", &format!("{MAPS}/m"), "application/merge-patch+json", reset).await;
    assert_eq!(owners(&reset.body), []);
    let first = refusal(maps.patch("m", &by("a"), &map(json!({"y": "9"}))).await);
    assert!(first["message"].as_str().unwrap().contains("\"before-first-apply\" using v1"), "{first}");
}

#[tokio::test]
async fn items_of_keyed_lists_belong_to_their_managers() {
    let server = ApiServer::start().await;
    let deployments: Api<Deployment> = Api::default_namespaced(Client::new(server.service(), "default"));
    let web = |containers: Value| {
        let labels = json!({"app": "web"});
        let template = json!({"metadata": {"labels": labels}, "spec": {"containers": containers}});
        let spec = json!({"selector": {"matchLabels": labels}, "template": template});
        Patch::Apply(json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec,
        }))
    };
    let app = json!({"name": "app", "image": "app:1", "ports": [{"containerPort": 80}], "args": ["-v"]});
    let made = deployments.patch("web", &by("a"), &web(json!([app]))).await.unwrap();
    assert_eq!(made.metadata.generation, Some(1));
    let fields = &owners(&value(&made))[0].3["f:spec"];
    assert_eq!(fields["f:selector"], json!({}));
    assert_eq!(
        fields["f:template"]["f:spec"],
        json!({"f:containers": {"k:{\"name\":\"app\"}": {
            ".": {}, "f:name": {}, "f:image": {}, "f:args": {},
            "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}},
        }}})
    );
    let side = json!({"name": "side", "image": "side:1"});
    let both = deployments.patch("web", &by("b"), &web(json!([side]))).await.unwrap();
    let names = |of: &Deployment| {
        let of = value(of);
        let list = of["spec"]["template"]["spec"]["containers"].as_array().unwrap().clone();
        list.iter().map(|container| container["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!((names(&both), both.metadata.generation), (vec!["app".to_owned(), "side".to_owned()], Some(2)));
    let other = json!([{"name": "app", "image": "app:2"}]);
    let status = refusal(deployments.patch("web", &by("b"), &web(other)).await);
    let path = ".spec.template.spec.containers[name=\"app\"].image";
    assert_eq!(status["details"]["causes"][0]["field"], path);
    let left = deployments.patch("web", &by("a"), &web(json!([]))).await.unwrap();
    assert_eq!(names(&left), ["side"]);

    let twice = json!([{"name": "app"}, {"name": "app"}]);
    let status = refusal(deployments.patch("web", &by("a"), &web(twice)).await);
    assert_eq!(status["code"], 500);
    assert!(status["message"].as_str().unwrap().contains("duplicate entries for key [name=\"app\"]"), "{status}");
}

#[tokio::test]
async fn the_status_of_a_custom_resource_is_applied_apart() {
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {
            "plain": {"type": "array", "items": {"type": "string"}},
            "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        }},
        "status": {"type": "object", "properties": {"conditions": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
            "items": {"type": "object", "properties": {"type": {"type": "string"}, "status": {"type": "string"}}},
        }}},
    }});
    let foos = Resource::custom("example.com", "v1", "Foo", "foos").with_status().with_schema(schema);
    let server = ApiServer::builder().custom_resource(foos).start().await.unwrap();
    let of = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("example.com", "v1", "Foo"), "foos");
    let foos: Api<DynamicObject> = Api::default_namespaced_with(Client::new(server.service(), "default"), &of);
    let foo = |spec: Value, status: Value| {
        Patch::Apply(json!({
            "apiVersion": "example.com/v1", "kind": "Foo", "metadata": {"name": "f"}, "spec": spec, "status": status,
        }))
    };
    let condition = |of: &str| json!({"conditions": [{"type": of, "status": "True"}]});
    let missing = refusal(foos.patch_status("f", &by("a"), &foo(json!({}), condition("A"))).await);
    assert_eq!(missing["code"], 404);
    let spec = json!({"plain": ["1"], "set": ["1"]});
    let made = foos.patch("f", &by("a"), &foo(spec, condition("Ignored"))).await.unwrap();
    assert_eq!((made.metadata.generation, &made.data["status"]), (Some(1), &Value::Null));
    assert_eq!(owners(&value(&made))[0].3, json!({"f:spec": {"f:plain": {}, "f:set": {"v:\"1\"": {}}}}));

    foos.patch_status("f", &by("a"), &foo(json!({"plain": ["ignored"]}), condition("A"))).await.unwrap();
    let both = foos.patch_status("f", &by("b"), &foo(json!({}), condition("B"))).await.unwrap();
    assert_eq!(both.data["status"]["conditions"].as_array().unwrap().len(), 2);
    assert_eq!((&both.data["spec"]["plain"], both.metadata.generation), (&json!(["1"]), Some(1)));
    let places: Vec<(String, String)> = owners(&value(&both)).into_iter().map(|o| (o.0, o.2)).collect();
    let place = |manager: &str, subresource: &str| (manager.to_owned(), subresource.to_owned());
    assert_eq!(places, [place("a", ""), place("a", "status"), place("b", "status")]);

    let added = foos.patch("f", &by("b"), &foo(json!({"set": ["2"]}), json!({}))).await.unwrap();
    assert_eq!(added.data["spec"]["set"], json!(["1", "2"]));
    let status = refusal(foos.patch("f", &by("b"), &foo(json!({"plain": ["2"]}), json!({}))).await);
    assert_eq!(status["message"], "Apply failed with 1 conflict: conflict with \"a\": .spec.plain");
}

#[tokio::test]
async fn applies_that_are_not_right_are_refused_with_the_reason() {
    let (server, _) = with_maps().await;
    let path = format!("{MAPS}/m?fieldManager=a");
    let config = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}});
    let with = |pointer: &str, value: Value| {
        let mut changed = config.clone();
        match pointer.rsplit_once('/') {
            Some((parent, name)) => changed.pointer_mut(parent).unwrap()[name] = value,
            None => changed = value,
        }
        changed
    };
    for (path, body, code, message) in [
        (&format!("{MAPS}/m"), config.clone(), 422, "fieldManager: Required value: is required for apply patch"),
        (&path, with("/apiVersion", json!("v2")), 400, "Incorrect version specified in apply patch"),
        (&path, with("/kind", Value::Null), 400, "'Kind' is missing"),
        (&path, with("/kind", json!("Pod")), 400, "Pod"),
        (&path, with("/metadata/name", json!("other")), 400, "does not match the name on the URL"),
        (&path, with("/metadata/namespace", json!("other")), 400, "does not match the namespace"),
        (&path, with("/metadata/uid", json!("u")), 422, "metadata.uid: Invalid value: \"u\": field is immutable"),
        (&path, with("/metadata/managedFields", json!([])), 400, "metadata.managedFields must be nil"),
        (&path, with("/dat", json!({})), 500, ".dat: field not declared in schema"),
        (&path, json!([]), 400, "is not an object"),
    ] {
        let answer = patch_as(&server, "PATCH", path, "application/apply-patch+yaml", body.clone()).await;
        assert_eq!(answer.code, code, "{body}: {}", answer.body);
        assert!(answer.message().contains(message), "{body}: {}", answer.message());
    }
    let forced = format!("{MAPS}/m?force=true");
    assert_eq!(patch_as(&server, "PATCH", &forced, "application/merge-patch+json", json!({})).await.code, 422);
    assert_eq!(get(&server, &format!("{MAPS}/m")).await.code, 404);
    let yaml = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: m\ndata: {x: '1'}\n";
    for code in [201, 200] {
        let headers = [("content-type", "application/apply-patch+yaml")];
        assert_eq!(send(&server, "PATCH", &path, &headers, yaml).await.unwrap().status(), code);
    }
    let stale = with("/metadata/resourceVersion", json!("1"));
    let stale = patch_as(&server, "PATCH", &path, "application/apply-patch+json", stale).await;
    assert_eq!(stale.reason(), (409, "Conflict"));
    assert_eq!(get(&server, &format!("{MAPS}/m")).await.body["data"], json!({"x": "1"}));
}

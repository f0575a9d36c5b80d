//! What a list shows, and in which pages.

use kubewire_apiserver::{ApiServer, Resource};
use serde_json::{Value, json};

use crate::raw::{get, get_as};

const PATH: &str = "/api/v1/namespaces/default/configmaps";

fn put(server: &ApiServer, name: &str) -> u64 {
    let map = json!({"metadata": {"name": name, "namespace": "default"}});
    version(&server.create("configmaps", map).unwrap())
}

fn version(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

async fn five() -> (ApiServer, Vec<u64>) {
    let server = ApiServer::start().await;
    let versions = ["a", "b", "c", "d", "e"].iter().map(|name| put(&server, name)).collect();
    (server, versions)
}

#[tokio::test]
async fn a_list_has_its_kind_its_version_and_items_without_a_kind() {
    let (server, versions) = five().await;
    let list = get(&server, PATH).await;
    assert_eq!((&list.body["kind"], &list.body["apiVersion"]), (&json!("ConfigMapList"), &json!("v1")));
    assert_eq!(version(&list.body), *versions.last().unwrap());
    assert_eq!(list.names(), ["a", "b", "c", "d", "e"]);
    assert_eq!(list.body["items"][0]["kind"], Value::Null);
    let empty = get(&server, "/api/v1/namespaces/kube-system/configmaps").await;
    assert_eq!(empty.body["items"], json!([]));
}

#[tokio::test]
async fn items_of_custom_resources_have_a_kind() {
    let server = ApiServer::builder()
        .custom_resource(Resource::custom("example.com", "v1", "Foo", "foos"))
        .start()
        .await
        .unwrap();
    server.create("example.com/v1/foos", json!({"metadata": {"name": "x", "namespace": "default"}})).unwrap();
    let list = get(&server, "/apis/example.com/v1/foos").await;
    assert_eq!(list.body["kind"], "FooList");
    assert_eq!(
        (&list.body["items"][0]["kind"], &list.body["items"][0]["apiVersion"]),
        (&json!("Foo"), &json!("example.com/v1"))
    );
}

#[tokio::test]
async fn versions_are_understood_as_by_the_real_server() {
    let (server, versions) = five().await;
    let [old, now] = [versions[1], versions[4]];
    let too_far = now + 1000;
    for (query, expected) in [
        (String::new(), "abcde"),
        ("resourceVersion=".to_owned(), "abcde"),
        ("resourceVersion=0".to_owned(), "abcde"),
        ("resourceVersion=0&limit=2".to_owned(), "abcde"),
        (format!("resourceVersion={old}"), "abcde"),
        (format!("resourceVersion={old}&limit=1"), "a"),
        (format!("resourceVersion={old}&resourceVersionMatch=NotOlderThan"), "abcde"),
        (format!("resourceVersion={old}&resourceVersionMatch=Exact"), "ab"),
        ("resourceVersion=0&resourceVersionMatch=NotOlderThan".to_owned(), "abcde"),
        (format!("resourceVersion={too_far}"), "504 Timeout"),
        (format!("resourceVersion={too_far}&resourceVersionMatch=Exact"), "504 Timeout"),
        ("resourceVersion=x".to_owned(), "400 BadRequest"),
        ("limit=x".to_owned(), "400 BadRequest"),
        ("continue=x".to_owned(), "400 BadRequest"),
        ("labelSelector=a%20b".to_owned(), "400 BadRequest"),
        ("fieldSelector=a".to_owned(), "400 BadRequest"),
        ("fieldSelector=data=x".to_owned(), "400 BadRequest"),
        ("resourceVersionMatch=Exact".to_owned(), "422 Invalid"),
        ("resourceVersion=0&resourceVersionMatch=Exact".to_owned(), "422 Invalid"),
        (format!("resourceVersion={old}&resourceVersionMatch=Newest"), "422 Invalid"),
        ("sendInitialEvents=true".to_owned(), "422 Invalid"),
        ("fieldSelector=metadata.name=c".to_owned(), "c"),
        ("fieldSelector=metadata.name!=c,metadata.namespace=default".to_owned(), "abde"),
    ] {
        let answer = get(&server, &format!("{PATH}?{query}")).await;
        let found = match answer.code {
            200 => answer.names().concat(),
            _ => format!("{} {}", answer.code, answer.body["reason"].as_str().unwrap()),
        };
        assert_eq!(found, expected, "{query}: {}", answer.body);
    }
}

#[tokio::test]
async fn a_version_in_the_future_is_told_by_cause_and_by_message() {
    let server = ApiServer::start().await;
    let answer = get(&server, &format!("{PATH}?resourceVersion=1000000")).await;
    assert_eq!(answer.reason(), (504, "Timeout"));
    assert_eq!(answer.body["details"]["causes"][0]["reason"], "ResourceVersionTooLarge");
    assert!(answer.message().contains("Too large resource version: 1000000"));
    assert_eq!(answer.headers["retry-after"], "1");
}

#[tokio::test]
async fn pages_show_the_state_of_the_first_one_whatever_happens_between() {
    let (server, versions) = five().await;
    let first = get(&server, &format!("{PATH}?limit=2")).await;
    assert_eq!((first.names().concat(), &first.body["metadata"]["remainingItemCount"]), ("ab".to_owned(), &json!(3)));
    let token = first.body["metadata"]["continue"].as_str().unwrap();
    server.delete("configmaps", "default", "c").unwrap();
    server.modify("configmaps", "default", "d", |map| map["data"] = json!({"x": "y"})).unwrap();
    put(&server, "bb");
    put(&server, "z");

    let second = get(&server, &format!("{PATH}?limit=2&continue={token}")).await;
    assert_eq!(second.names().concat(), "cd");
    assert_eq!(second.body["items"][1]["data"], Value::Null, "as it was at the first page");
    assert_eq!(version(&second.body), versions[4]);
    let token = second.body["metadata"]["continue"].as_str().unwrap();
    let last = get(&server, &format!("{PATH}?limit=2&continue={token}")).await;
    assert_eq!((last.names().concat(), &last.body["metadata"]["continue"]), ("e".to_owned(), &Value::Null));

    let wrong = get(&server, &format!("{PATH}?limit=2&continue={token}&resourceVersion={}", versions[4])).await;
    assert_eq!(wrong.reason(), (400, "BadRequest"));
    let wrong = get(&server, &format!("{PATH}?continue={token}&resourceVersionMatch=Exact")).await;
    assert_eq!(wrong.reason(), (422, "Invalid"));
}

#[tokio::test]
async fn a_token_that_is_too_old_is_answered_410_with_one_that_goes_on_inconsistently() {
    let (server, versions) = five().await;
    let first = get(&server, &format!("{PATH}?limit=2")).await;
    let token = first.body["metadata"]["continue"].as_str().unwrap();
    server.delete("configmaps", "default", "c").unwrap();
    server.compact();
    let expired = get(&server, &format!("{PATH}?limit=2&continue={token}")).await;
    assert_eq!(expired.reason(), (410, "Expired"));
    let token = expired.body["metadata"]["continue"].as_str().unwrap();
    let rest = get(&server, &format!("{PATH}?continue={token}")).await;
    assert_eq!(rest.names().concat(), "de");
    let exact = get(&server, &format!("{PATH}?resourceVersion={}&resourceVersionMatch=Exact", versions[2])).await;
    assert_eq!(exact.reason(), (410, "Expired"));
}

#[tokio::test]
async fn what_is_left_is_not_counted_where_a_selector_narrows_the_list() {
    let (server, _) = five().await;
    let page = get(&server, &format!("{PATH}?limit=2&fieldSelector=metadata.name!=x")).await;
    assert!(page.body["metadata"]["continue"].is_string());
    assert_eq!(page.body["metadata"]["remainingItemCount"], Value::Null);
}

#[tokio::test]
async fn labels_and_fields_of_pods_select() {
    let server = ApiServer::start().await;
    for (name, app, node) in [("a", "web", "n1"), ("b", "web", ""), ("c", "db", "n1")] {
        let mut pod = json!({"metadata": {"name": name, "namespace": "default", "labels": {"app": app}}});
        if !node.is_empty() {
            pod["spec"] = json!({"nodeName": node});
        }
        server.create("pods", pod).unwrap();
    }
    for (query, expected) in [
        ("labelSelector=app%3Dweb", "ab"),
        ("labelSelector=app%20notin%20(web)", "c"),
        ("fieldSelector=spec.nodeName%3D", "b"),
        ("fieldSelector=spec.nodeName%3Dn1", "ac"),
        ("fieldSelector=status.phase!%3DSucceeded&labelSelector=app%3Dweb", "ab"),
        ("fieldSelector=spec.restartPolicy%3DAlways", "abc"),
    ] {
        assert_eq!(get(&server, &format!("/api/v1/pods?{query}")).await.names().concat(), expected, "{query}");
    }
    let error = get(&server, "/api/v1/pods?fieldSelector=spec.foo%3Dx").await;
    assert_eq!(error.message(), "field label not supported: spec.foo");
}

#[tokio::test]
async fn a_long_list_comes_in_chunks_of_bounded_length() {
    use http_body_util::BodyExt;
    let server = ApiServer::builder().pods(300).start().await.unwrap();
    let mut body = crate::raw::send(&server, "GET", "/api/v1/pods", &[], "").await.unwrap().into_body();
    let (mut chunks, mut bytes) = (0, Vec::new());
    while let Some(frame) = body.frame().await {
        let data = frame.unwrap().into_data().unwrap();
        assert!(data.len() <= 80 * 1024, "{} bytes", data.len());
        chunks += 1;
        bytes.extend_from_slice(&data);
    }
    assert!(chunks > 20, "{chunks}");
    let list: Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(list["items"].as_array().unwrap().len(), 300);
}

#[tokio::test]
async fn what_is_not_served_is_answered_by_a_status() {
    let server = ApiServer::start().await;
    for (path, expected) in [
        ("/api/v1/nothing", (404, "NotFound")),
        ("/apis/example.com/v1/foos", (404, "NotFound")),
        ("/nothing", (404, "NotFound")),
        ("/api/v1/namespaces/default/pods/x", (404, "NotFound")),
        ("/api/v1/namespaces/default/pods/x/log", (404, "NotFound")),
    ] {
        let answer = get(&server, path).await;
        assert_eq!((answer.reason(), &answer.body["kind"]), (expected, &json!("Status")), "{path}");
    }
    let answer = get_as(&server, "/api/v1/pods", "application/yaml").await;
    assert_eq!(answer.reason(), (406, "NotAcceptable"));
}

//! Answers in protobuf, as another implementation reads them.

use bytes::Bytes;
use futures::StreamExt;
use http_body_util::BodyExt;
use k8s_pb::api::core::v1::{Pod, PodList};
use k8s_pb::apimachinery::pkg::apis::meta::v1::{PartialObjectMetadata, PartialObjectMetadataList, Status, WatchEvent};
use k8s_pb::apimachinery::pkg::runtime::Unknown;
use kubewire_apiserver::{ApiServer, Fault, Resource};
use prost::Message;
use serde_json::json;

use crate::raw::{get, send};

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const METADATA: &str = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/// The code, the type of the content, and the body.
async fn ask(server: &ApiServer, path: &str, accept: &str) -> (u16, String, Bytes) {
    let response = send(server, "GET", path, &[("accept", accept)], "").await.unwrap();
    let (parts, body) = response.into_parts();
    let content_type = parts.headers["content-type"].to_str().unwrap().to_owned();
    (parts.status.as_u16(), content_type, body.collect().await.unwrap().to_bytes())
}

/// What the envelope says, and the object in it.
fn open<M: Message + Default>(bytes: &[u8]) -> (String, M) {
    let unknown = Unknown::decode(bytes.strip_prefix(b"k8s\0").expect("an envelope")).unwrap();
    let type_meta = unknown.type_meta.unwrap();
    let said = format!("{} {}", type_meta.api_version.unwrap_or_default(), type_meta.kind.unwrap_or_default());
    (said, M::decode(&unknown.raw.unwrap()[..]).unwrap())
}

async fn read<M: Message + Default>(server: &ApiServer, path: &str, accept: &str) -> (String, M) {
    let (code, content_type, body) = ask(server, path, accept).await;
    assert_eq!((code, content_type.as_str()), (200, PROTOBUF), "{path}");
    open(&body)
}

async fn server() -> ApiServer {
    ApiServer::builder()
        .pods(30)
        .custom_resource(Resource::custom("example.com", "v1", "Foo", "foos"))
        .start()
        .await
        .unwrap()
}

#[tokio::test]
async fn pages_of_a_list_and_single_objects_are_those_of_json() {
    let server = server().await;
    let whole = get(&server, "/api/v1/pods").await;
    let (mut names, mut token) = (Vec::new(), String::new());
    loop {
        let (said, page): (_, PodList) =
            read(&server, &format!("/api/v1/pods?limit=7&continue={token}"), PROTOBUF).await;
        assert_eq!(said, "v1 PodList");
        let metadata = page.metadata.unwrap();
        assert_eq!(metadata.resource_version(), whole.body["metadata"]["resourceVersion"]);
        names.extend(page.items.iter().map(|pod| pod.metadata.as_ref().unwrap().name().to_owned()));
        token = metadata.r#continue().to_owned();
        if token.is_empty() {
            assert_eq!(metadata.remaining_item_count, None);
            break;
        }
        assert_eq!(metadata.remaining_item_count, Some(30 - names.len() as i64));
    }
    assert_eq!(names, whole.names());

    let path = format!("/api/v1/namespaces/namespace-0/pods/{}", names[0]);
    let expected = get(&server, &path).await.body;
    let (said, pod): (_, Pod) = read(&server, &path, PROTOBUF).await;
    assert_eq!(said, "v1 Pod");
    let (metadata, spec) = (pod.metadata.unwrap(), pod.spec.unwrap());
    assert_eq!(
        (metadata.uid(), metadata.resource_version()),
        (expected["metadata"]["uid"].as_str().unwrap(), expected["metadata"]["resourceVersion"].as_str().unwrap())
    );
    assert_eq!(spec.containers[0].image(), expected["spec"]["containers"][0]["image"]);
    assert_eq!(pod.status.unwrap().pod_ip(), expected["status"]["podIP"]);
}

#[tokio::test]
async fn metadata_alone_is_there_of_custom_resources_too_and_their_objects_are_json() {
    let server = server().await;
    server
        .create(
            "example.com/v1/foos",
            json!({"metadata": {"namespace": "namespace-0", "name": "x", "labels": {"a": "b"}}, "spec": 1}),
        )
        .unwrap();
    let (said, list): (_, PartialObjectMetadataList) = read(&server, "/apis/example.com/v1/foos", METADATA_LIST).await;
    let labels = &list.items[0].metadata.as_ref().unwrap().labels;
    assert_eq!((said.as_str(), labels["a"].as_str()), ("meta.k8s.io/v1 PartialObjectMetadataList", "b"));
    let path = "/apis/example.com/v1/namespaces/namespace-0/foos/x";
    let (said, one): (_, PartialObjectMetadata) = read(&server, path, METADATA).await;
    assert_eq!((said.as_str(), one.metadata.unwrap().name()), ("meta.k8s.io/v1 PartialObjectMetadata", "x"));
    let (code, content_type, _) = ask(&server, path, &format!("{PROTOBUF},application/json")).await;
    assert_eq!((code, content_type.as_str()), (200, "application/json"));
    let (code, content_type, body) = ask(&server, path, PROTOBUF).await;
    let (_, status): (_, Status) = open(&body);
    assert_eq!((code, content_type.as_str(), status.reason()), (406, PROTOBUF, "NotAcceptable"));
}

#[tokio::test]
async fn a_failure_is_told_in_what_the_client_reads() {
    let server = server().await;
    let path = "/api/v1/namespaces/default/pods/none";
    for (accept, expected) in [
        (PROTOBUF, PROTOBUF),
        ("application/json,application/vnd.kubernetes.protobuf", "application/json"),
        ("text/plain", "application/json"),
    ] {
        let (code, content_type, body) = ask(&server, path, accept).await;
        assert_eq!((content_type.as_str(), code), (expected, if accept == "text/plain" { 406 } else { 404 }));
        if content_type == PROTOBUF {
            let (said, status): (_, Status) = open(&body);
            assert_eq!(
                (said.as_str(), status.reason(), status.details.as_ref().unwrap().name()),
                ("v1 Status", "NotFound", "none")
            );
        }
    }
    server.fault(Fault::too_many_requests(3));
    let (_, status): (_, Status) = open(&ask(&server, "/api/v1/pods", PROTOBUF).await.2);
    assert_eq!((status.code(), status.details.unwrap().retry_after_seconds()), (429, 3));
}

/// The frames of a watch up to its end: type, what the envelope says, name and version.
async fn frames(server: &ApiServer, query: &str, count: usize) -> Vec<String> {
    let path = format!("/api/v1/pods?watch=true&{query}");
    let response = send(server, "GET", &path, &[("accept", PROTOBUF)], "").await.unwrap();
    assert_eq!(response.headers()["content-type"], "application/vnd.kubernetes.protobuf;stream=watch");
    let mut pieces = response.into_body().into_data_stream();
    let (mut bytes, mut told) = (Vec::new(), Vec::new());
    while told.len() < count {
        let Some(piece) = pieces.next().await else { break };
        bytes.extend_from_slice(&piece.unwrap());
        while let Some((len, rest)) = bytes.split_at_checked(4) {
            let Some(event) = rest.get(..u32::from_be_bytes(len.try_into().unwrap()) as usize) else { break };
            let taken = 4 + event.len();
            let Ok(event) = WatchEvent::decode(event) else { break };
            let object = event.object.clone().unwrap();
            if event.r#type() == "ERROR" {
                let (said, status): (_, Status) = open(object.raw());
                told.push(format!("ERROR {said} {}", status.code()));
            } else {
                let (said, pod): (_, Pod) = open(object.raw());
                let metadata = pod.metadata.unwrap();
                let end = metadata.annotations.get("k8s.io/initial-events-end").map_or("", |_| " END");
                told.push(format!(
                    "{} {said} {}@{}{end}",
                    event.r#type(),
                    metadata.name(),
                    metadata.resource_version()
                ));
            }
            bytes.drain(..taken);
        }
    }
    told
}

#[tokio::test]
async fn a_watch_comes_in_frames_with_bookmarks_deletions_and_errors() {
    let server = ApiServer::start().await;
    let pod = |name: &str| json!({"metadata": {"namespace": "default", "name": name, "labels": {"a": "1"}}});
    let version = |object: serde_json::Value| object["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    let x = version(server.create("pods", pod("x")).unwrap());
    let y = version(server.create("pods", pod("y")).unwrap());
    let all = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    let initial = [format!("ADDED v1 Pod x@{x}"), format!("ADDED v1 Pod y@{y}"), format!("BOOKMARK v1 Pod @{y} END")];
    assert_eq!(frames(&server, all, 3).await, initial);

    server.modify("pods", "default", "x", |pod| pod["metadata"]["labels"]["a"] = json!("2")).unwrap();
    server.delete("pods", "default", "y").unwrap();
    let (left, gone) = (y.parse::<u64>().unwrap() + 1, y.parse::<u64>().unwrap() + 2);
    let after = format!("resourceVersion={y}");
    let told = [format!("MODIFIED v1 Pod x@{left}"), format!("DELETED v1 Pod y@{gone}")];
    assert_eq!(frames(&server, &after, 2).await, told);
    let selected = [format!("DELETED v1 Pod x@{left}"), format!("DELETED v1 Pod y@{gone}")];
    assert_eq!(frames(&server, &format!("{after}&labelSelector=a=1"), 2).await, selected);
    server.compact();
    assert_eq!(frames(&server, "resourceVersion=1", 9).await, ["ERROR v1 Status 410"]);
}

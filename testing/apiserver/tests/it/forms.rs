//! Objects as metadata only, and as rows of tables.

use futures::StreamExt;
use kubewire_apiserver::ApiServer;
use serde_json::{Value, json};

use crate::raw::{get_as, lines, send};

const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

async fn with_pods() -> ApiServer {
    ApiServer::builder().pods(2).start().await.unwrap()
}

#[tokio::test]
async fn metadata_alone_is_listed_read_and_watched() {
    let server = with_pods().await;
    let list = get_as(&server, "/api/v1/pods", METADATA_LIST).await.body;
    assert_eq!((&list["kind"], &list["apiVersion"]), (&json!("PartialObjectMetadataList"), &json!("meta.k8s.io/v1")));
    let item = &list["items"][0];
    assert_eq!((&item["kind"], &item["spec"]), (&json!("PartialObjectMetadata"), &Value::Null));
    assert_eq!(item["metadata"]["labels"]["environment"], "production");
    let name = item["metadata"]["name"].as_str().unwrap();
    let one = get_as(&server, &format!("/api/v1/namespaces/namespace-0/pods/{name}"), METADATA).await.body;
    assert_eq!(&one, item);

    let query = "watch=true&allowWatchBookmarks=true&labelSelector=environment=production";
    let response = send(&server, "GET", &format!("/api/v1/pods?{query}"), &[("accept", METADATA)], "").await.unwrap();
    let mut watch = lines(response);
    for kind in ["ADDED", "ADDED", "BOOKMARK"] {
        let line = watch.next().await.unwrap().unwrap();
        assert_eq!((&line["type"], &line["object"]["kind"]), (&json!(kind), &json!("PartialObjectMetadata")));
    }
    server.modify("pods", "namespace-0", name, |pod| pod["metadata"]["labels"] = json!({})).unwrap();
    let left = watch.next().await.unwrap().unwrap();
    assert_eq!((&left["type"], &left["object"]["kind"]), (&json!("DELETED"), &json!("PartialObjectMetadata")));
    assert_eq!(left["object"]["metadata"]["labels"]["environment"], "production");
}

#[tokio::test]
async fn tables_are_listed_read_and_watched() {
    let server = with_pods().await;
    let table = get_as(&server, "/api/v1/pods", TABLE).await.body;
    assert_eq!((&table["kind"], table["rows"].as_array().unwrap().len()), (&json!("Table"), 2));
    assert_eq!(table["columnDefinitions"][0]["name"], "Name");
    let row = &table["rows"][0];
    assert_eq!((&row["cells"][1], &row["cells"][2]), (&json!("2/2"), &json!("Running")));
    assert_eq!(row["object"]["kind"], "PartialObjectMetadata");
    assert!(table["metadata"]["resourceVersion"].is_string());
    let page = get_as(&server, "/api/v1/pods?limit=1&includeObject=None", TABLE).await.body;
    assert!(page["metadata"]["continue"].is_string() && page["rows"][0]["object"].is_null());
    let name = row["object"]["metadata"]["name"].as_str().unwrap();
    let one = get_as(&server, &format!("/api/v1/namespaces/namespace-0/pods/{name}"), TABLE).await.body;
    assert_eq!(one["rows"].as_array().unwrap().len(), 1);

    let response = send(&server, "GET", "/api/v1/pods?watch=true", &[("accept", TABLE)], "").await.unwrap();
    let mut watch = lines(response);
    let first = watch.next().await.unwrap().unwrap();
    assert!(first["object"]["columnDefinitions"].is_array());
    assert_eq!(first["object"]["rows"][0]["cells"][2], "Running");
    let second = watch.next().await.unwrap().unwrap();
    assert!(second["object"]["columnDefinitions"].is_null(), "only the first one tells the columns");
}

#[tokio::test]
async fn discovery_and_openapi_are_answered_in_the_form_that_is_asked_for() {
    let server = with_pods().await;
    let aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
    assert_eq!(get_as(&server, "/api", aggregated).await.body["kind"], "APIGroupDiscoveryList");
    assert_eq!(get_as(&server, "/api", "application/json").await.body["kind"], "APIVersions");
    assert_eq!(get_as(&server, "/apis", "*/*").await.body["kind"], "APIGroupList");
    assert_eq!(get_as(&server, "/apis/apps/v1/", "").await.body["kind"], "APIResourceList");
    assert!(get_as(&server, "/openapi/v3", "").await.body["paths"]["api/v1"].is_object());
    assert_eq!(get_as(&server, "/version", "").await.body["major"], "1");
    for path in ["/healthz", "/readyz", "/livez"] {
        assert_eq!(get_as(&server, path, "").await.body, "ok");
    }
}

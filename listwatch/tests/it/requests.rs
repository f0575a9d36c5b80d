//! What is sent, and what the answers mean.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube_core::{ApiResource, DynamicObject, PartialObjectMeta, Resource};
use kubewire_indexer::{Meta, Object, ObjectId};
use kubewire_listwatch::{
    ErrorClass, ListOptions, ListWatch, ListerWatcher, Packed, VersionMatch, WatchEvent, WatchOptions, list_all,
};
use serde::Deserialize;

use crate::mock::{answering, client, list, list_with, ok, status, watch_from};

const EMPTY: &str = r#"{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7"},"items":[]}"#;

#[tokio::test]
async fn lists_and_watches_ask_for_their_resource_in_json_without_compression() {
    let (client, asked) = answering(EMPTY);
    list(&ListWatch::<Arc<Pod>>::all(client.clone())).await.1.unwrap();
    list(&ListWatch::<Arc<Pod>>::namespaced(client.clone(), "ns1")).await.1.unwrap();
    list(&ListWatch::<Arc<Pod>>::namespaced(client.clone(), "")).await.1.unwrap();
    list(&ListWatch::<Arc<Node>>::all(client.clone())).await.1.unwrap();
    let deployments = ListWatch::<Arc<Deployment>>::namespaced(client, "ns1");
    let _ = deployments.watch(&watch_from("7")).await.unwrap();
    assert_eq!(deployments.resource(), "apps/v1 deployments");
    assert_eq!(
        asked.uris(),
        [
            "/api/v1/pods?",
            "/api/v1/namespaces/ns1/pods?",
            "/api/v1/pods?",
            "/api/v1/nodes?",
            "/apis/apps/v1/namespaces/ns1/deployments?watch=true&resourceVersion=7&allowWatchBookmarks=true&timeoutSeconds=300",
        ]
    );
    for request in [0, 4] {
        assert_eq!(asked.header(request, "accept"), "application/json");
        assert_eq!(asked.header(request, "accept-encoding"), "identity");
    }
}

#[tokio::test]
async fn metadata_only_representations_ask_for_metadata() {
    let (client, asked) = answering(r#"{"items":[]}"#);
    let typed = ListWatch::<Arc<PartialObjectMeta<Pod>>>::all(client.clone());
    list(&typed).await.1.unwrap();
    let _ = typed.watch(&watch_from("7")).await.unwrap();
    let resource = ApiResource::erase::<Pod>(&());
    list(&ListWatch::<Arc<PartialObjectMeta<DynamicObject>>>::dynamic(client, &resource)).await.1.unwrap();
    let list_accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";
    assert_eq!(asked.header(0, "accept"), list_accept);
    assert_eq!(
        asked.header(1, "accept"),
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
    );
    assert_eq!(asked.header(2, "accept"), list_accept);
    assert!(asked.uris().iter().all(|uri| uri.starts_with("/api/v1/pods?")));
}

#[tokio::test]
async fn a_namespace_that_no_path_can_carry_is_refused_without_a_request() {
    let (client, asked) = answering(EMPTY);
    for namespace in ["a/b", "..", ".", "%2e"] {
        let pods = ListWatch::<Arc<Pod>>::namespaced(client.clone(), namespace);
        assert_eq!(pods.check().unwrap_err().class(), ErrorClass::Invalid);
        assert_eq!(list(&pods).await.1.unwrap_err().class(), ErrorClass::Invalid);
        assert_eq!(pods.watch(&watch_from("7")).await.err().unwrap().class(), ErrorClass::Invalid);
    }
    assert!(asked.uris().is_empty());
}

#[tokio::test]
async fn selectors_are_checked_at_once_and_sent_with_each_request() {
    let (client, asked) = answering(EMPTY);
    let pods = ListWatch::<Arc<Pod>>::all(client);
    for bad in ["app=web)", "a=b=c", "in (x)"] {
        assert!(pods.clone().labels(bad).is_err(), "{bad}");
    }
    for bad in ["status.phase", "a=b=c"] {
        assert!(pods.clone().fields(bad).is_err(), "{bad}");
    }
    let selected = pods.labels("app=web, tier!=db").unwrap().fields("spec.nodeName=n1").unwrap().named("x");
    list(&selected).await.1.unwrap();
    let _ = selected.watch(&watch_from("7")).await.unwrap();
    let selectors = "labelSelector=app%3Dweb%2Ctier%21%3Ddb&fieldSelector=spec.nodeName%3Dn1%2Cmetadata.name%3Dx";
    assert_eq!(asked.uris()[0], format!("/api/v1/pods?{selectors}"));
    assert!(asked.uris()[1].starts_with(&format!("/api/v1/pods?{selectors}&watch=true")));
}

#[tokio::test]
async fn packed_objects_come_out_of_lists_and_watches_undecoded() {
    // The spec fits no pod: nobody looks at it.
    let pod = r#"{"metadata":{"name":"a","namespace":"n","managedFields":[{}],"labels":{"app":"web"}},"spec":7}"#;
    let (client, _) = client(move |request| match request.uri().query() {
        Some(query) if query.contains("watch") => ok(format!(r#"{{"type":"ADDED","object":{pod}}}"#)),
        _ => ok(format!(r#"{{"kind":"PodList","items":[{pod},{{"metadata":{{}}}}]}}"#)),
    });
    let pods = ListWatch::<Packed<Pod>>::namespaced(client, "n");
    let (items, _) = list(&pods).await;
    let packed = items[0].as_ref().unwrap();
    assert_eq!((packed.key().as_str(), packed.label("app")), ("n/a", Some("web")));
    assert_eq!(packed.json(), Some(&*pod.replace(r#""managedFields":[{}],"#, "")));
    assert!(packed.decode().is_err());
    assert!(items[1].is_err(), "an object without a name");
    let events: Vec<_> = pods.watch(&watch_from("7")).await.unwrap().collect().await;
    assert!(matches!(&events[..], [Ok(WatchEvent::Added(pod))] if pod.json() == packed.json()));
}

#[derive(Debug, Deserialize, Meta)]
#[kubewire(resource = Pod)]
struct PodBrief {
    metadata: ObjectId,
    #[serde(default)]
    status: Status,
}

#[derive(Debug, Default, Deserialize)]
struct Status {
    phase: String,
}

#[tokio::test]
async fn a_struct_of_ones_own_is_read_from_the_resource_that_it_names() {
    let (client, asked) = answering(
        r#"{"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a","namespace":"n"},"spec":{},"status":{"phase":"Running"}}]}"#,
    );
    let (items, _) = list(&ListWatch::<Arc<PodBrief>>::namespaced(client.clone(), "n")).await;
    let pod = items[0].as_ref().unwrap();
    assert_eq!((pod.key().as_str(), pod.status.phase.as_str()), ("n/a", "Running"));
    let resource = ApiResource::erase::<Pod>(&());
    let metadata = ListWatch::<Arc<PodBrief>>::for_resource(client, &resource).metadata_only();
    list(&metadata).await.1.unwrap();
    assert_eq!(asked.uris(), ["/api/v1/namespaces/n/pods?", "/api/v1/pods?"]);
    assert!(asked.header(1, "accept").contains("as=PartialObjectMetadataList"));
}

/// B04: missing and null parts, for typed and dynamic objects alike.
#[tokio::test]
async fn lists_with_missing_parts_are_taken_and_items_without_a_name_reported() {
    let no_name = "item 0 of the list: the object has no name (metadata.name is missing or empty)";
    type Row = (&'static str, &'static str, Result<&'static [&'static str], &'static str>);
    let table: &[Row] = &[
        // body, version, keys or the error of the only item
        (r#"{"metadata":{"resourceVersion":"7"},"items":[]}"#, "7", Ok(&[])),
        (r#"{"metadata":{"resourceVersion":"7"},"items":null}"#, "7", Ok(&[])),
        (r#"{"metadata":{"resourceVersion":"7"}}"#, "7", Ok(&[])),
        (r#"{"metadata":null,"items":[]}"#, "", Ok(&[])),
        (r#"{"items":[]}"#, "", Ok(&[])),
        (r#"{"metadata":{},"items":[]}"#, "", Ok(&[])),
        (
            r#"{"items":[{"metadata":{"name":"a","namespace":"n"}}],"metadata":{"resourceVersion":"7"}}"#,
            "7",
            Ok(&["n/a"]),
        ),
        (r#"{"metadata":{"resourceVersion":"7"},"items":[{"metadata":null}]}"#, "7", Err(no_name)),
        (r#"{"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":""}}]}"#, "7", Err(no_name)),
    ];
    let resource = ApiResource::erase::<Pod>(&());
    for (body, version, expected) in table {
        let (client, _) = answering(*body);
        let (typed, meta) = list(&ListWatch::<Arc<Pod>>::all(client.clone())).await;
        let (dynamic, dynamic_meta) = list(&ListWatch::<Arc<DynamicObject>>::dynamic(client, &resource)).await;
        assert_eq!(meta.unwrap().resource_version, *version, "{body}");
        assert_eq!(dynamic_meta.unwrap().resource_version, *version, "{body}");
        let typed: Vec<_> = typed.into_iter().map(|item| item.map(|pod| pod.key().to_string())).collect();
        let dynamic: Vec<_> = dynamic.into_iter().map(|item| item.map(|object| object.key().to_string())).collect();
        match expected {
            Ok(keys) => {
                assert_eq!(typed.into_iter().map(Result::unwrap).collect::<Vec<_>>(), *keys, "{body}");
                assert_eq!(dynamic.into_iter().map(Result::unwrap).collect::<Vec<_>>(), *keys, "{body}");
            }
            Err(message) => {
                assert_eq!(typed[0].as_ref().unwrap_err().to_string(), *message, "{body}");
                assert!(dynamic[0].is_err(), "{body}");
            }
        }
    }
}

#[tokio::test]
async fn dynamic_objects_get_the_type_that_the_server_leaves_out_of_lists() {
    let body = r#"{"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a"},"spec":{"x":1}}]}"#;
    let (client, _) = answering(body);
    let resource = ApiResource::erase::<Deployment>(&());
    let (items, _) = list(&ListWatch::<Arc<DynamicObject>>::dynamic(client.clone(), &resource)).await;
    let types = items[0].as_ref().unwrap().types.clone().unwrap();
    assert_eq!((types.api_version.as_str(), types.kind.as_str()), ("apps/v1", "Deployment"));
    assert_eq!(items[0].as_ref().unwrap().data, serde_json::json!({"spec": {"x": 1}}));

    let (items, _) = list(&ListWatch::<Arc<PartialObjectMeta<Pod>>>::all(client)).await;
    let types = items[0].as_ref().unwrap().types.clone().unwrap();
    assert_eq!((types.api_version.as_str(), types.kind.as_str()), ("meta.k8s.io/v1", "PartialObjectMetadata"));
}

/// B29: one bad object is one error, with key and path; the rest of the list is unharmed.
#[tokio::test]
async fn an_item_that_cannot_be_decoded_does_not_fail_its_list() {
    let body = r#"{"kind":"PodList","metadata":{"resourceVersion":"7"},"items":[
        {"metadata":{"name":"a","namespace":"n"}},
        {"metadata":{"name":"b","namespace":"n","resourceVersion":"5"},"spec":{"containers":[{"name":"c","ports":[{"containerPort":"http"}]}]}},
        {"metadata":{"name":"c","namespace":"n"}}]}"#;
    let (client, _) = answering(body);
    let (items, meta) = list(&ListWatch::<Arc<Pod>>::all(client)).await;
    assert_eq!(meta.unwrap().resource_version, "7");
    assert_eq!(items.iter().filter(|item| item.is_ok()).count(), 2);
    let error = items[1].as_ref().unwrap_err();
    assert_eq!(error.key.as_ref().unwrap().as_str(), "n/b");
    assert_eq!(error.resource_version.as_deref(), Some("5"));
    assert!(error.message.starts_with("spec.containers[0].ports[0].containerPort: invalid type: string"), "{error}");
}

/// B37: one rule for typed and dynamic objects.
#[tokio::test]
async fn of_two_fields_of_one_name_the_last_one_counts_in_typed_and_dynamic_objects() {
    let items = [
        r#"{"metadata":{"name":"x","labels":{"a":"1"},"labels":{"a":"2"}}}"#,
        r#"{"metadata":{"name":"x","labels":{"a":"1"}},"metadata":{"name":"x","labels":{"a":"2"}}}"#,
        r#"{"metadata":{"name":"x","resourceVersion":"1","resourceVersion":"2","labels":{"a":"1","a":"2"}}}"#,
    ];
    let (client, _) = answering(format!(r#"{{"items":[{}]}}"#, items.join(",")));
    let (typed, _) = list(&ListWatch::<Arc<Pod>>::all(client.clone())).await;
    let resource = ApiResource::erase::<Pod>(&());
    let (dynamic, _) = list(&ListWatch::<Arc<DynamicObject>>::dynamic(client, &resource)).await;
    for (typed, dynamic) in typed.into_iter().zip(dynamic) {
        let (typed, dynamic) = (typed.unwrap(), dynamic.unwrap());
        assert_eq!(typed.meta(), dynamic.meta());
        assert_eq!(Object::label(&typed, "a"), Some("2"));
    }
}

#[tokio::test]
async fn managed_fields_and_named_fields_are_left_out_where_wanted() {
    let pod = r#"{"metadata":{"name":"a","managedFields":[{"manager":"m"}],"annotations":{"a.b/c":"1","d":"2"}},
        "spec":{"containers":[{"name":"c","image":"i","env":[{"name":"E"}]}]}}"#;
    let (client, _) = answering(format!(r#"{{"items":[{pod}]}}"#));
    let kept = ListWatch::<Arc<Pod>>::all(client);
    let full = list(&kept).await.0.remove(0).unwrap();
    assert!(full.metadata.managed_fields.is_some());
    let slim = kept.drop_managed_fields().drop_field(["metadata", "annotations", "a.b/c"]).drop_field([
        "spec",
        "containers",
        "env",
    ]);
    let slim = list(&slim).await.0.remove(0).unwrap();
    let mut expected = Arc::unwrap_or_clone(full);
    expected.metadata.managed_fields = None;
    expected.metadata.annotations.as_mut().unwrap().remove("a.b/c");
    expected.spec.as_mut().unwrap().containers[0].env = None;
    assert_eq!(*slim, expected);
}

/// B07, B25, B41: answers of failure, by class.
#[tokio::test]
async fn answers_of_failure_have_a_class_and_keep_what_the_server_said() {
    let status_body =
        |reason: &str, code: u16| format!(r#"{{"kind":"Status","reason":"{reason}","code":{code},"message":"m"}}"#);
    let table = [
        (410, status_body("Expired", 410), ErrorClass::Expired),
        (410, status_body("Gone", 0), ErrorClass::Expired),
        (410, String::new(), ErrorClass::Expired),
        (401, "Unauthorized".to_owned(), ErrorClass::Unauthorized),
        (403, status_body("Forbidden", 403), ErrorClass::Forbidden),
        (404, "404 page not found".to_owned(), ErrorClass::NotFound),
        (429, "slow down".to_owned(), ErrorClass::Throttled),
        (400, status_body("BadRequest", 400), ErrorClass::Invalid),
        (422, status_body("Invalid", 422), ErrorClass::Invalid),
        (500, status_body("InternalError", 500), ErrorClass::Internal),
        (502, "<html>bad gateway".to_owned(), ErrorClass::Unavailable),
        (503, "x".repeat(1_000_000), ErrorClass::Unavailable),
        (302, String::new(), ErrorClass::Other),
    ];
    for (code, body, class) in table {
        let (client, _) = client(move |_| status(code, &body));
        let pods = ListWatch::<Arc<Pod>>::namespaced(client, "ns1");
        let error = list(&pods).await.1.unwrap_err();
        assert_eq!(error.class(), class, "{code}");
        assert_eq!(error.status().unwrap().code, code);
        assert!(error.to_string().contains("list pods in ns1: "), "{error}");
        let error = pods.watch(&watch_from("7")).await.err().unwrap();
        assert_eq!(error.class(), class, "{code}");
        assert!(error.to_string().contains("watch pods in ns1: "), "{error}");
    }
}

#[tokio::test]
async fn retry_after_comes_from_the_header_else_from_the_details() {
    let body = r#"{"kind":"Status","code":429,"details":{"retryAfterSeconds":7}}"#;
    for (header, expected) in [(None, 7), (Some("2"), 2), (Some("nonsense"), 7), (Some("100000"), 300)] {
        let (client, _) = client(move |_| {
            let mut response = status(429, body);
            if let Some(header) = header {
                response.headers_mut().insert("retry-after", header.parse().unwrap());
            }
            response
        });
        let error = list(&ListWatch::<Arc<Pod>>::all(client)).await.1.unwrap_err();
        assert_eq!((error.class(), error.retry_after()), (ErrorClass::Throttled, Some(Duration::from_secs(expected))));
    }
}

#[tokio::test]
async fn what_is_no_list_is_an_error_even_with_a_good_status_line() {
    let table = [
        ("plain text", ErrorClass::Decode),
        ("<html>no", ErrorClass::Decode),
        (r#"{"kind":"Status","status":"Failure","code":410}"#, ErrorClass::Expired),
        (r#"{"kind":"Table","rows":[]}"#, ErrorClass::Decode),
        (r#"{"kind":"Pod","metadata":{"name":"a"}}"#, ErrorClass::Decode),
        (r#"{"items":[{"metadata":{"name":"a"}}"#, ErrorClass::Truncated),
        ("", ErrorClass::Truncated),
    ];
    for (body, class) in table {
        let (client, _) = answering(body);
        let error = list(&ListWatch::<Arc<Pod>>::all(client)).await.1.unwrap_err();
        assert_eq!(error.class(), class, "{body}: {error}");
    }
}

#[tokio::test]
async fn a_table_is_an_error_of_a_list_and_no_object_of_a_watch() {
    let table = r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"7"},"rows":[]}"#;
    let (client, _) = client(move |request| match request.uri().query() {
        Some(query) if query.contains("watch") => ok(format!(r#"{{"type":"ADDED","object":{table}}}"#)),
        _ => ok(table),
    });
    async fn check(objects: impl ListerWatcher) {
        assert_eq!(list(&objects).await.1.unwrap_err().class(), ErrorClass::Decode);
        let events: Vec<_> = objects.watch(&watch_from("7")).await.unwrap().collect().await;
        let [Ok(WatchEvent::Undecodable { error, .. })] = &events[..] else { panic!("one event that is none") };
        assert!(error.message.contains("Table"), "{error}");
        assert_eq!(error.resource_version.as_deref(), Some("7"));
    }
    check(ListWatch::<Arc<Pod>>::all(client.clone())).await;
    check(ListWatch::<Packed<Pod>>::all(client.clone())).await;
    check(ListWatch::<Arc<PartialObjectMeta<Pod>>>::all(client.clone())).await;
    check(ListWatch::<Arc<DynamicObject>>::dynamic(client, &ApiResource::erase::<Pod>(&()))).await;
}

#[tokio::test]
async fn a_whole_list_comes_at_once_or_says_which_object_is_bad() {
    let (client, asked) = answering(r#"{"metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a"}}]}"#);
    let (pods, version) = list_all(&ListWatch::<Arc<Pod>>::all(client)).await.unwrap();
    assert_eq!((pods.len(), version.as_str()), (1, "7"));
    assert_eq!(asked.uris(), ["/api/v1/pods?"]);
    let (client, _) = answering(r#"{"items":[{"metadata":{"name":"a"},"spec":7},{"metadata":{}}]}"#);
    let error = list_all(&ListWatch::<Arc<Pod>>::all(client)).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Decode);
    assert!(error.to_string().starts_with("decode: list pods: a: spec: invalid type"), "{error}");
}

#[tokio::test]
async fn a_page_query_asks_for_what_the_options_say() {
    let (client, asked) =
        answering(r#"{"metadata":{"resourceVersion":"7","continue":"t","remainingItemCount":5},"items":[]}"#);
    let pods = ListWatch::<Arc<Pod>>::all(client);
    let options = ListOptions::default().at_version("0").limit(500);
    let meta = list_with(&pods, &options).await.1.unwrap();
    assert_eq!((meta.continue_token.as_deref(), meta.remaining_item_count), (Some("t"), Some(5)));
    let next = options.continued(meta.continue_token.unwrap()).matching(VersionMatch::Exact);
    list_with(&pods, &next).await.1.unwrap();
    let _ = pods.watch(&WatchOptions::streaming_list("", Duration::from_secs(400))).await.unwrap();
    assert_eq!(
        asked.uris(),
        [
            "/api/v1/pods?limit=500&resourceVersion=0",
            "/api/v1/pods?limit=500&continue=t",
            "/api/v1/pods?watch=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&sendInitialEvents=true&timeoutSeconds=400",
        ]
    );
}

#[tokio::test]
async fn a_watch_gives_its_events_and_ends_where_the_body_does() {
    let events = concat!(
        r#"{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"n"}}}"#,
        "\n",
        "\r\n",
        r#"{"type":"MODIFIED","object":{"metadata":{"name":"a","namespace":"n"},"spec":7}}"#,
        "\n",
        r#"{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}}"#,
        "\n",
        r#"{"type":"PING","object":{}}"#,
        "\n",
        r#"{"type":"DELETED","object":{"metadata":{"name":"a","namespace":"n"}}}"#,
    );
    let (client, _) = answering(events);
    let events: Vec<_> =
        ListWatch::<Arc<Pod>>::all(client).watch(&watch_from("7")).await.unwrap().map(Result::unwrap).collect().await;
    assert!(matches!(&events[0], WatchEvent::Added(pod) if pod.key().as_str() == "n/a"));
    assert!(
        matches!(&events[1], WatchEvent::Undecodable { error, .. } if error.key.as_ref().unwrap().as_str() == "n/a")
    );
    assert!(
        matches!(&events[2], WatchEvent::Bookmark { resource_version, initial_events_end: true } if resource_version == "9")
    );
    assert!(matches!(&events[3], WatchEvent::Unknown { kind } if kind == "PING"));
    assert!(matches!(&events[4], WatchEvent::Deleted(pod) if pod.key().as_str() == "n/a"));
    assert_eq!(events.len(), 5);
}

#[tokio::test]
async fn an_error_event_is_the_last_thing_of_a_watch() {
    let body = concat!(
        r#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}"#,
        "\n",
        r#"{"type":"ADDED","object":{"metadata":{"name":"a"}}}"#,
        "\n",
    );
    let (client, _) = client(move |_| ok(body));
    let mut events = ListWatch::<Arc<Pod>>::all(client).watch(&watch_from("7")).await.unwrap();
    assert_eq!(events.next().await.unwrap().unwrap_err().class(), ErrorClass::Expired);
    assert!(events.next().await.is_none());
}

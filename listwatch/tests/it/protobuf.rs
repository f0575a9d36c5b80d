//! Lists and watches in protobuf: bodies as an API server of version 1.37 wrote them.

use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{HeaderValue, Request, Response};
use http_body_util::{BodyExt, Full};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use k8s_pb::api::core::v1 as pb;
use kube_client::Client;
use kube_client::client::Body;
use kubewire_indexer::{Meta, Object};
use kubewire_listwatch::{
    Codec, ErrorClass, Json, Limits, ListMeta, ListWatch, ListerWatcher, Packed, Pb, Protobuf, ProtobufOrJson,
    RequestError, WatchEvent, messages,
};

use crate::mock::{Asked, MockBody, client, list, ok, status, streamed, watch_from};

const LIST: &[u8] = include_bytes!("protobuf/configmaps.pb");
const FIRST_PAGE: &[u8] = include_bytes!("protobuf/first_page.pb");
const METADATA: &[u8] = include_bytes!("protobuf/metadata.pb");
const NOT_FOUND: &[u8] = include_bytes!("protobuf/not_found.pb");
const TOO_LARGE: &[u8] = include_bytes!("protobuf/too_large.pb");
const WATCH: &[u8] = include_bytes!("protobuf/watch.pb");
const PODS: &[u8] = include_bytes!("protobuf/pods.pb");

fn as_protobuf(mut response: Response<MockBody>, media_type: &'static str) -> Response<MockBody> {
    response.headers_mut().insert("content-type", HeaderValue::from_static(media_type));
    response
}

fn body(bytes: &'static [u8]) -> Response<MockBody> {
    Response::new(Full::new(Bytes::from_static(bytes)).map_err(|never| match never {}).boxed_unsync())
}

/// A client whose answers are this, in protobuf.
fn answering(bytes: &'static [u8]) -> (Client, Asked) {
    client(move |request: &Request<Body>| {
        let watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        let media_type = "application/vnd.kubernetes.protobuf";
        as_protobuf(body(bytes), if watch { "application/vnd.kubernetes.protobuf;stream=watch" } else { media_type })
    })
}

fn config_maps<C>(client: Client, codec: C) -> ListWatch<Packed<ConfigMap>, C> {
    ListWatch::<Packed<ConfigMap>>::all(client).codec(codec)
}

/// A few fields of a ConfigMap.
#[derive(Clone, PartialEq, prost::Message, Meta)]
#[kubewire(resource = ConfigMap)]
struct Data {
    #[prost(message, required, tag = "1")]
    metadata: messages::LabeledId,
    #[prost(btree_map = "string, string", tag = "2")]
    data: std::collections::BTreeMap<String, String>,
}

/// The metadata of a ConfigMap.
#[derive(Clone, PartialEq, prost::Message, Meta)]
#[kubewire(resource = ConfigMap)]
struct Metadata {
    #[prost(message, required, tag = "1")]
    metadata: messages::ObjectMeta,
}

#[tokio::test]
async fn protobuf_is_asked_for_first_and_json_only_where_it_can_be_read() {
    let (client, asked) = answering(LIST);
    list(&config_maps(client.clone(), Protobuf)).await.1.unwrap();
    list(&config_maps(client.clone(), ProtobufOrJson)).await.1.unwrap();
    let _ = config_maps(client.clone(), ProtobufOrJson).watch(&watch_from("7")).await.unwrap();
    list(&config_maps(client.clone(), ProtobufOrJson).metadata_only()).await.1.unwrap();
    assert_eq!(asked.header(0, "accept"), "application/vnd.kubernetes.protobuf");
    for request in [1, 2] {
        assert_eq!(asked.header(request, "accept"), "application/vnd.kubernetes.protobuf,application/json");
    }
    let metadata = ";as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
    let expected = format!("application/vnd.kubernetes.protobuf{metadata},application/json{metadata},application/json");
    assert_eq!(asked.header(3, "accept"), expected);
}

#[tokio::test]
async fn a_list_comes_out_packed_typed_and_as_a_struct_of_ones_own() {
    let (client, _) = answering(LIST);
    let (packed, meta) = list(&config_maps(client.clone(), Protobuf)).await;
    assert_eq!(meta.unwrap(), ListMeta::new("365"));
    let packed: Vec<_> = packed.into_iter().map(Result::unwrap).collect();
    assert_eq!(
        packed.iter().map(|object| object.key().to_string()).collect::<Vec<_>>(),
        ["default/c1", "default/c2", "default/c3"]
    );
    assert!(packed.iter().all(|object| object.label("app") == Some("web") && object.id().uid.len() == 36));
    assert!(packed.iter().all(|object| object.protobuf().unwrap().len() < 110), "managedFields are gone");

    let typed = ListWatch::<Arc<Pb<pb::ConfigMap>>>::all(client.clone()).codec(Protobuf);
    let (whole, _) = list(&typed).await;
    let (slim, _) = list(&typed.drop_managed_fields()).await;
    for (whole, (slim, packed)) in whole.into_iter().zip(slim.into_iter().zip(&packed)) {
        let (mut whole, slim) = ((*whole.unwrap()).clone(), slim.unwrap());
        assert_eq!(whole.metadata.as_ref().unwrap().managed_fields.len(), 1);
        whole.metadata.as_mut().unwrap().managed_fields.clear();
        assert_eq!(whole, *slim);
        assert_eq!(packed.message::<pb::ConfigMap>().unwrap(), slim.0);
    }

    let (own, _) = list(&ListWatch::<Arc<Data>>::all(client).codec(Protobuf).drop_managed_fields()).await;
    let own = own[0].as_ref().unwrap();
    assert_eq!((own.id().name, own.label("n"), own.data["a"].as_str()), ("c1", Some("1"), "b"));
}

#[tokio::test]
async fn a_page_tells_how_it_goes_on() {
    let (client, _) = answering(FIRST_PAGE);
    let (items, meta) = list(&config_maps(client, Protobuf)).await;
    let meta = meta.unwrap();
    assert_eq!((items.len(), meta.remaining_item_count), (1, Some(2)));
    assert!(meta.continue_token.unwrap().starts_with("eyJ2"));
}

#[tokio::test]
async fn metadata_alone_are_read_as_an_object() {
    let (client, _) = answering(METADATA);
    let metadata = ListWatch::<Arc<Metadata>>::all(client.clone()).metadata_only().codec(Protobuf);
    let (items, _) = list(&metadata).await;
    let first = &items[0].as_ref().unwrap().metadata;
    assert_eq!((first.name.as_str(), first.labels.len()), ("c1", 2));
    assert!(first.creation_timestamp.unwrap().seconds > 1_700_000_000);
    let (items, _) = list(&config_maps(client.clone(), ProtobufOrJson).metadata_only()).await;
    assert_eq!(items[2].as_ref().unwrap().id().name, "c3");
    // Who did not ask for it does not take it for the objects.
    let (items, meta) = list(&config_maps(client, Protobuf)).await;
    assert_eq!((items.len(), meta.unwrap_err().class()), (0, ErrorClass::Decode));
}

#[tokio::test]
async fn a_list_of_other_objects_is_an_error_before_its_first_item() {
    let (client, _) = answering(LIST);
    let (items, meta) = list(&ListWatch::<Packed<Secret>>::all(client).codec(ProtobufOrJson)).await;
    let error = meta.unwrap_err();
    assert_eq!((items.len(), error.class()), (0, ErrorClass::Decode));
    assert!(error.to_string().contains("ConfigMapList of v1 came, wanted is a list of v1 Secret"), "{error}");
}

#[tokio::test]
async fn an_answer_in_json_is_read_as_json_where_the_codec_takes_it() {
    let (client, _) = client(|_| ok(r#"{"items":[{"metadata":{"name":"x"}}],"metadata":{"resourceVersion":"7"}}"#));
    let (items, meta) = list(&config_maps(client.clone(), ProtobufOrJson)).await;
    assert_eq!(meta.unwrap().resource_version, "7");
    assert_eq!(items[0].as_ref().unwrap().json(), Some(r#"{"metadata":{"name":"x"}}"#));
    let error = list(&config_maps(client, Protobuf)).await.1.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Decode);
    assert!(error.to_string().contains("the answer is JSON, which was not asked for"), "{error}");
    let (client, _) = answering(LIST);
    let error = list(&config_maps(client, Json)).await.1.unwrap_err();
    assert!(error.to_string().contains("the answer is protobuf, which was not asked for"), "{error}");
}

#[tokio::test]
async fn a_watch_in_json_is_read_as_json_where_the_codec_takes_it() {
    let (client, _) = client(|_| ok(r#"{"type":"ADDED","object":{"metadata":{"name":"x"}}}"#));
    let events: Vec<_> = config_maps(client, ProtobufOrJson).watch(&watch_from("7")).await.unwrap().collect().await;
    assert!(matches!(&events[..], [Ok(WatchEvent::Added(object))] if object.json().is_some()), "{events:?}");
}

#[tokio::test]
async fn a_resource_without_protobuf_says_what_to_ask_for() {
    let (client, _) =
        client(|_| status(406, r#"{"kind":"Status","code":406,"reason":"NotAcceptable","message":"only json"}"#));
    let error = list(&config_maps(client.clone(), Protobuf)).await.1.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Invalid);
    assert!(
        error.to_string().ends_with("only json; there is no protobuf of it: use `ProtobufOrJson`, or `Json`"),
        "{error}"
    );
    let error = list(&config_maps(client, ProtobufOrJson)).await.1.unwrap_err();
    assert!(!error.to_string().contains("no protobuf"), "{error}");
}

#[tokio::test]
async fn a_status_in_protobuf_is_an_error_of_the_class_that_it_has_in_json() {
    let error_of = |code: u16, bytes: &'static [u8]| async move {
        let (client, _) = client(move |_| {
            let mut response = as_protobuf(body(bytes), "application/vnd.kubernetes.protobuf");
            *response.status_mut() = http::StatusCode::from_u16(code).unwrap();
            response
        });
        let watched = config_maps(client.clone(), Protobuf).watch(&watch_from("7")).await.err();
        let listed = list(&config_maps(client, ProtobufOrJson)).await.1.unwrap_err();
        if let Some(watched) = watched {
            assert_eq!(watched.class(), listed.class());
        }
        listed
    };
    let error = error_of(404, NOT_FOUND).await;
    assert_eq!(error.class(), ErrorClass::NotFound);
    assert!(error.to_string().contains("configmaps \"x\" not found"), "{error}");
    let error = error_of(504, TOO_LARGE).await;
    assert_eq!((error.class(), error.retry_after().map(|wait| wait.as_secs())), (ErrorClass::VersionTooLarge, Some(1)));
    // With a good status line too.
    assert_eq!(error_of(200, NOT_FOUND).await.class(), ErrorClass::NotFound);
}

/// The events of the recorded watch, and its end.
async fn watched<C: Codec<Packed<ConfigMap>>>(
    lister: &ListWatch<Packed<ConfigMap>, C>,
) -> (Vec<String>, Option<RequestError>) {
    let mut events = lister.watch(&watch_from("7")).await.unwrap();
    let mut seen = Vec::new();
    while let Some(event) = events.next().await {
        seen.push(match event {
            Ok(WatchEvent::Added(object)) => format!("+{}", object.key()),
            Ok(WatchEvent::Modified(object)) => format!("~{}", object.key()),
            Ok(WatchEvent::Deleted(object)) => format!("-{}", object.key()),
            Ok(WatchEvent::Bookmark { initial_events_end, .. }) => format!("bookmark {initial_events_end}"),
            Ok(other) => panic!("{other:?}"),
            Err(error) => return (seen, Some(error)),
        });
    }
    (seen, None)
}

#[tokio::test]
async fn a_watch_cut_at_any_byte_gives_the_same_events() {
    let expected =
        ["+default/c1", "+default/c2", "+default/c3", "bookmark true", "~default/c2", "-default/c3", "bookmark false"];
    for cut in 0..WATCH.len() {
        let (client, _) = client(move |_| {
            let pieces = [&WATCH[..cut], &WATCH[cut..]].map(|piece| Ok(Bytes::from_static(piece)));
            as_protobuf(streamed(stream::iter(pieces)), "application/vnd.kubernetes.protobuf;stream=watch")
        });
        let (seen, error) = watched(&config_maps(client, ProtobufOrJson)).await;
        assert_eq!(
            (&seen[..], error.map(|error| error.class())),
            (&expected.map(String::from)[..], None),
            "cut at {cut}"
        );
    }
}

#[tokio::test]
async fn a_watch_that_ends_within_an_event_is_truncated() {
    let mut ends = 0;
    for end in 0..WATCH.len() {
        let (client, _) = answering(&WATCH[..end]);
        let (_, error) = watched(&config_maps(client, Protobuf)).await;
        match error {
            Some(error) => assert_eq!(error.class(), ErrorClass::Truncated, "end at {end}"),
            None => ends += 1,
        }
    }
    assert_eq!(ends, 7, "before the first event, and behind six");
}

#[tokio::test]
async fn a_list_that_ends_within_its_message_is_truncated() {
    for end in (0..LIST.len() - 4).step_by(7) {
        let (client, _) = answering(&LIST[..end]);
        assert_eq!(list(&config_maps(client, Protobuf)).await.1.unwrap_err().class(), ErrorClass::Truncated, "{end}");
    }
}

#[tokio::test]
async fn an_item_or_event_over_its_limit_is_a_named_error() {
    let limits = Limits::default().item(100).line(100);
    let error = list(&config_maps(answering(LIST).0, Protobuf).limits(limits)).await.1.unwrap_err();
    assert_eq!(error.class(), ErrorClass::TooLong);
    assert!(error.to_string().contains("an item is longer than the limit of 100 bytes"), "{error}");
    let (_, error) = watched(&config_maps(answering(WATCH).0, Protobuf).limits(limits)).await;
    let error = error.unwrap();
    assert_eq!(error.class(), ErrorClass::TooLong);
    assert!(error.to_string().contains("an event is longer than the limit of 100 bytes"), "{error}");
    // A list where a watch was asked for.
    let (_, error) = watched(&config_maps(answering(LIST).0, Protobuf)).await;
    assert!(error.unwrap().to_string().contains("one object came where a watch was asked for"));
}

#[tokio::test]
async fn an_item_that_cannot_be_decoded_does_not_fail_its_list() {
    /// Its field 2 is no text in any ConfigMap.
    #[derive(Clone, PartialEq, prost::Message, Meta)]
    #[kubewire(resource = ConfigMap)]
    struct Wrong {
        #[prost(message, required, tag = "1")]
        metadata: messages::LabeledId,
        #[prost(uint64, tag = "2")]
        data: u64,
    }
    let (client, _) = answering(LIST);
    let (items, meta) = list(&ListWatch::<Arc<Wrong>>::all(client).codec(Protobuf)).await;
    meta.unwrap();
    let errors: Vec<_> = items.into_iter().map(|item| item.unwrap_err().to_string()).collect();
    assert_eq!(errors.len(), 3);
    assert!(errors[1].starts_with("default/c2: ") && errors[1].contains("Wrong.data"), "{}", errors[1]);
}

#[tokio::test]
async fn what_protobuf_cannot_leave_out_is_refused_without_a_request() {
    let (client, asked) = answering(LIST);
    let maps = config_maps(client, ProtobufOrJson).drop_field(["data"]);
    for error in
        [maps.check().unwrap_err(), list(&maps).await.1.unwrap_err(), maps.watch(&watch_from("7")).await.err().unwrap()]
    {
        assert_eq!(error.class(), ErrorClass::Invalid);
        assert!(error.to_string().contains("data cannot be left out in protobuf"), "{error}");
    }
    assert!(asked.uris().is_empty());
    maps.codec(Json).check().unwrap();
}

#[tokio::test]
async fn a_real_pod_keeps_less_than_half_of_its_bytes_and_all_that_matters() {
    let (client, _) = answering(PODS);
    let (packed, _) = list(&ListWatch::<Packed<Pod>>::all(client.clone()).codec(ProtobufOrJson)).await;
    let (typed, _) = list(&ListWatch::<Arc<Pb<pb::Pod>>>::all(client).codec(Protobuf).drop_managed_fields()).await;
    assert_eq!(packed.len(), 2);
    for (packed, typed) in packed.into_iter().zip(typed) {
        let (packed, typed) = (packed.unwrap(), typed.unwrap());
        assert!(packed.size() < 3_000, "{}", packed.size());
        assert_eq!(packed.message::<pb::Pod>().unwrap(), typed.0);
        let metadata = typed.metadata.as_ref().unwrap();
        let labels: Vec<_> = metadata.labels.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(packed.labels().collect::<Vec<_>>(), labels);
        let owners: Vec<_> = metadata.owner_references.iter().map(|owner| owner.uid()).collect();
        assert_eq!(packed.owner_references().map(|owner| owner.uid).collect::<Vec<_>>(), owners);
        assert_eq!((packed.generation(), packed.id().uid), (metadata.generation, metadata.uid()));
    }
}

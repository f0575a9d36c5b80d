//! An object on its way into a cache, as each representation and in both formats: read from its bytes, as an event of a
//! watch, and as an item of a relist whose state is held already. The counts are exact: a bound would hide a second copy.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use http::Response;
use k8s_openapi::api::core::v1::Pod;
use k8s_pb::api::core::v1 as pb;
use kube_client::Client;
use kube_client::client::Body;
use kube_client::core::{ApiResource, DynamicObject, PartialObjectMeta};
use kubewire_indexer::{Id, Meta, Object};
use kubewire_listwatch::{
    Codec, Decode, DecodeOptions, Encoded, Held, HotCache, Json, ListOptions, ListWatch, ListerWatcher, Packed, Pb,
    Protobuf, WatchEvent, WatchOptions, Zipped, messages,
};
use serde::Deserialize;

use crate::counting::{Span, each};
use crate::lists::Brief;

/// A list of two pods, as an API server wrote it.
const PODS: &[u8] = include_bytes!("../../../listwatch/tests/it/protobuf/pods.pb");

/// Of a pod in protobuf: what `Brief` has of one in JSON.
#[derive(Clone, PartialEq, prost::Message, Meta)]
#[kubewire(resource = Pod)]
pub(crate) struct Tags {
    #[prost(message, required, tag = "1")]
    metadata: messages::LabeledId,
    #[prost(message, optional, tag = "2")]
    spec: Option<SpecTags>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct SpecTags {
    #[prost(string, tag = "10")]
    node_name: String,
}

/// The metadata of a pod in protobuf.
#[derive(Clone, PartialEq, prost::Message, Meta)]
#[kubewire(resource = Pod)]
pub(crate) struct MetadataMessage {
    #[prost(message, required, tag = "1")]
    metadata: messages::ObjectMeta,
}

/// A format, and bodies in it.
pub(crate) trait Wire: Default {
    const MEDIA_TYPE: &'static str;
    /// A pod as it stands in a list.
    fn item() -> Vec<u8>;
    fn list(items: usize) -> Vec<u8>;
    /// The event that the pod was changed, so many times.
    fn watch(events: usize) -> Vec<u8>;
}

impl Wire for Json {
    const MEDIA_TYPE: &'static str = "application/json";

    fn item() -> Vec<u8> {
        kubewire_benches::pods::pod(1).into_bytes()
    }

    fn list(items: usize) -> Vec<u8> {
        let items = vec![String::from_utf8(Self::item()).unwrap(); items].join(",");
        format!(r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"7"}},"items":[{items}]}}"#)
            .into()
    }

    fn watch(events: usize) -> Vec<u8> {
        let pod = String::from_utf8(Self::item()).unwrap();
        format!("{{\"type\":\"MODIFIED\",\"object\":{pod}}}\n").repeat(events).into()
    }
}

impl Wire for Protobuf {
    const MEDIA_TYPE: &'static str = "application/vnd.kubernetes.protobuf";

    /// The first of the list: its field 2, whose length of 6717 bytes stands in the body once before it.
    fn item() -> Vec<u8> {
        let start = PODS.windows(3).position(|bytes| bytes == [0x12, 0xbd, 0x34]).expect("an item") + 3;
        PODS[start..start + 0x34 * 0x80 + 0x3d].to_vec()
    }

    fn list(items: usize) -> Vec<u8> {
        let metadata = field(1, &field(2, b"7"));
        envelope("PodList", &[metadata, field(2, &Self::item()).repeat(items)].concat())
    }

    fn watch(events: usize) -> Vec<u8> {
        let object = field(2, &field(1, &envelope("Pod", &Self::item())));
        let event = [field(1, b"MODIFIED"), object].concat();
        let length = u32::try_from(event.len()).unwrap().to_be_bytes();
        [&length[..], &event].concat().repeat(events)
    }
}

/// A field of a message whose content has a length.
pub(crate) fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut field = vec![number << 3 | 2];
    prost::encode_length_delimiter(content.len(), &mut field).unwrap();
    field.extend(content);
    field
}

pub(crate) fn envelope(kind: &str, raw: &[u8]) -> Vec<u8> {
    let types = [field(1, b"v1"), field(2, kind.as_bytes())].concat();
    [&b"k8s\0"[..], &field(1, &types), &field(2, raw)].concat()
}

/// Pods from this body, and a runtime that answers on this thread.
fn pods<O: Object, C: Codec<O> + Wire>(body: Vec<u8>) -> (ListWatch<O, C>, tokio::runtime::Runtime) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let body = Bytes::from(body);
    let answer = move |_: http::Request<Body>| {
        let mut response = Response::new(Body::from(body.to_vec()));
        response.headers_mut().insert("content-type", C::MEDIA_TYPE.parse().unwrap());
        async move { Ok::<_, Infallible>(response) }
    };
    let client = {
        let _inside = runtime.enter();
        Client::new(tower::service_fn(answer), "default")
    };
    (ListWatch::for_resource(client, &ApiResource::erase::<Pod>(&())).codec(C::default()), runtime)
}

/// What one more of it costs: the difference of many and twice as many, so that what a request costs is left out.
fn one_more(cost: impl Fn(usize) -> usize) -> f64 {
    const MANY: usize = 32;
    (cost(2 * MANY) - cost(MANY)) as f64 / MANY as f64
}

fn read<O: Decode<C>, C: Wire>() -> f64 {
    let (item, options) = (C::item(), DecodeOptions::default());
    each(10, |_| drop(O::decode(&item, &options).unwrap()))
}

fn watched<O: Object, C: Codec<O> + Wire>() -> f64 {
    one_more(|events| {
        let (pods, runtime) = pods::<O, C>(C::watch(events));
        runtime.block_on(async {
            let options = WatchOptions::from_version("7", Duration::from_secs(60));
            let mut stream = pods.watch(&options).await.unwrap();
            let first = stream.next().await;
            assert!(matches!(first, Some(Ok(WatchEvent::Modified(_)))), "it can be read");
            let span = Span::begin();
            let mut count = 1;
            while let Some(event) = stream.next().await {
                assert!(matches!(event, Ok(WatchEvent::Modified(_))));
                count += 1;
            }
            let cost = span.end();
            assert_eq!(count, events);
            cost
        })
    })
}

fn held<O: Object + Clone, C: Codec<O> + Wire>() -> f64 {
    one_more(|items| {
        let (pods, runtime) = pods::<O, C>(C::list(items));
        runtime.block_on(async {
            let mut first = None;
            pods.list(&ListOptions::default(), &mut |item| first = Some(item.unwrap())).await.unwrap();
            let handle = first.expect("a list with items");
            let held: Held<O> = Arc::new(move |id: Id<'_>| (id == handle.id()).then(|| handle.clone()));
            let mut count = 0;
            let span = Span::begin();
            pods.relist(&ListOptions::default(), &held, &mut |item| count += usize::from(item.is_ok())).await.unwrap();
            let cost = span.end();
            assert_eq!(count, items);
            cost
        })
    })
}

/// Of one object: read, in a watch, in a relist that has its state.
fn of<O: Object + Clone + Decode<C>, C: Codec<O> + Wire>(name: &str) -> [f64; 3] {
    let counts = [read::<O, C>(), watched::<O, C>(), held::<O, C>()];
    println!("{name}, {}: {counts:?}", C::MEDIA_TYPE);
    counts
}

/// What is held already costs nothing.
#[test]
fn what_each_representation_allocates_for_an_object_on_its_way_in() {
    assert_eq!(of::<Arc<Pod>, Json>("typed"), [551.0, 553.0, 0.0]);
    assert_eq!(of::<Arc<DynamicObject>, Json>("dynamic"), [971.0, 971.0, 0.0]);
    assert_eq!(of::<Arc<PartialObjectMeta<Pod>>, Json>("metadata-only"), [529.0, 529.0, 0.0]);
    assert_eq!(of::<Arc<Brief>, Json>("a struct of one's own"), [3.0, 3.0, 0.0]);
    assert_eq!(of::<Packed<Pod>, Json>("packed"), [2.0, 2.0, 0.0]);
    assert_eq!(of::<Arc<Pb<pb::Pod>>, Protobuf>("typed"), [180.0, 180.0, 0.0]);
    assert_eq!(of::<Arc<Tags>, Protobuf>("a message of one's own"), [27.0, 27.0, 0.0]);
    assert_eq!(of::<Arc<MetadataMessage>, Protobuf>("the metadata"), [49.0, 49.0, 0.0]);
    assert_eq!(of::<Packed<Pod>, Protobuf>("packed"), [1.0, 1.0, 0.0]);
    // The list of the first objects grows by doubling.
    assert_eq!(of::<Zipped<Pod>, Json>("zipped").map(f64::floor), [4.0, 4.0, 0.0]);
    assert_eq!(of::<Zipped<Pod>, Protobuf>("zipped").map(f64::floor), [3.0, 3.0, 0.0]);
}

/// Borrows of what it looks at.
#[derive(Deserialize)]
struct OnNode<'a> {
    #[serde(borrow)]
    spec: NodeOf<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NodeOf<'a> {
    node_name: &'a str,
}

/// A look at one field that borrows it. A message has a text for each that it names.
#[test]
fn a_look_into_a_packed_object_allocates_what_it_gives() {
    let options = DecodeOptions::default();
    let json = <Packed<Pod> as Decode<Json>>::decode(&Json::item(), &options).unwrap();
    assert_eq!(each(10, |_| assert!(!json.peek::<OnNode<'_>>().unwrap().spec.node_name.is_empty())), 0.0);
    let protobuf = <Packed<Pod> as Decode<Protobuf>>::decode(&Protobuf::item(), &options).unwrap();
    // All but the `Arc` of the whole.
    assert_eq!(each(10, |_| drop(protobuf.message::<Tags>().unwrap())), read::<Arc<Tags>, Protobuf>() - 1.0);
}

/// Of packed and zipped objects, in both formats.
#[test]
fn an_object_that_is_hot_costs_nothing_to_decode() {
    fn hit<O: Encoded + Decode<C>, C: Wire>() {
        let object = <O as Decode<C>>::decode(&C::item(), &DecodeOptions::default()).unwrap();
        let hot = HotCache::new(10);
        assert_eq!(each(10, |_| drop(hot.decode(&object).unwrap())), 0.0);
        assert_eq!((hot.counts().hits, hot.counts().misses), (19, 1));
    }
    hit::<Packed<Pod>, Json>();
    hit::<Zipped<Pod>, Json>();
    hit::<Packed<Pb<pb::Pod>>, Protobuf>();
    hit::<Zipped<Pb<pb::Pod>>, Protobuf>();
}

//! Lists, from bytes to objects.

use std::convert::Infallible;
use std::sync::Arc;

use http::Response;
use k8s_openapi::api::core::v1::Pod;
use kube_client::Client;
use kube_client::client::Body;
use kubewire_indexer::{Meta, Object, ObjectId};
use kubewire_listwatch::{
    Decode, DecodeOptions, HotCache, Json, ListOptions, ListWatch, ListerWatcher, Packed, Represented, Zipped,
};
use serde::Deserialize;

use crate::counting::{Span, each};

const PODS: usize = 50;

#[derive(Deserialize, Meta)]
#[kubewire(resource = Pod)]
pub(crate) struct Brief {
    metadata: ObjectId,
    #[expect(dead_code, reason = "kept, as by who would read it")]
    spec: Spec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    #[expect(dead_code, reason = "kept, as by who would read it")]
    node_name: Box<str>,
}

/// The allocations for one pod of a list; the second list counts.
fn of_a_pod<O: Represented<Resource = Pod> + Decode<Json>>(drop_managed_fields: bool) -> f64 {
    let mut body = Vec::new();
    kubewire_benches::pods::write_list(PODS, &mut body).unwrap();
    let body = bytes::Bytes::from(body);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let answer = move |_: http::Request<Body>| {
            let body = body.clone();
            async move { Ok::<_, Infallible>(Response::new(Body::from(body.to_vec()))) }
        };
        let client = Client::new(tower::service_fn(answer), "default");
        let pods = ListWatch::<O>::all(client);
        let pods = if drop_managed_fields { pods.drop_managed_fields() } else { pods };
        let (mut items, mut count) = (Vec::with_capacity(PODS), 0);
        for _ in 0..2 {
            items.clear();
            let span = Span::begin();
            pods.list(&ListOptions::default(), &mut |item| items.push(item.unwrap())).await.unwrap();
            count = span.end();
        }
        assert_eq!(items.len(), PODS);
        count as f64 / PODS as f64
    })
}

/// An `Arc`, its key's text, its uid with its version, and the node's name; a request costs some too.
#[test]
fn a_small_struct_costs_a_few_allocations() {
    let each = of_a_pod::<Arc<Brief>>(false);
    println!("{each} for a pod as a small struct");
    assert!(each <= 8.0, "{each}");
}

#[test]
fn a_packed_object_costs_a_few_allocations() {
    let each = of_a_pod::<Packed<Pod>>(false);
    println!("{each} for a packed pod");
    assert!(each <= 12.0, "{each}");
}

/// Allocations of an object that is made of one pod's JSON.
fn of_one<O: Decode<Json>>(options: &DecodeOptions) -> f64 {
    let pod = kubewire_benches::pods::pod(1);
    each(10, |_| drop(O::decode(pod.as_bytes(), options).unwrap()))
}

/// One of its own; the parser unescapes texts in a buffer that grows.
#[test]
fn packing_an_object_allocates_once_beside_the_parser_and_reading_what_was_noted_never() {
    let options = DecodeOptions::default();
    let packing = of_one::<Packed<Pod>>(&options);
    println!("{packing} for packing a pod");
    assert!(packing <= 4.0, "{packing}");
    let packed = <Packed<Pod> as Decode<Json>>::decode(kubewire_benches::pods::pod(1).as_bytes(), &options).unwrap();
    let reading = each(10, |_| assert!(packed.id().name.len() + packed.label("app").unwrap().len() > 2));
    assert_eq!(reading, 0.0);
}

/// What is noted, the zip, and what the handles share; the packed object is there for a moment only.
#[test]
fn zipping_an_object_allocates_three_times_more_than_packing_and_reading_what_was_noted_never() {
    let options = DecodeOptions::default();
    let read = |number| {
        <Zipped<Pod> as Decode<Json>>::decode(kubewire_benches::pods::pod(number).as_bytes(), &options).unwrap()
    };
    let first: Vec<_> = (0..600).map(read).collect();
    first[0].settle();
    assert_eq!(of_one::<Zipped<Pod>>(&options) - of_one::<Packed<Pod>>(&DecodeOptions::default()), 3.0);
    let zipped = read(602);
    println!("{} bytes for a zipped pod", zipped.size());
    assert!(zipped.is_zipped() && zipped.size() < 1_150, "{}", zipped.size());
    let reading = each(10, |_| assert!(zipped.clone().id().name.len() + zipped.label("app").unwrap().len() > 2));
    assert_eq!(reading, 0.0);
    let hot = HotCache::new(10);
    let hits = each(10, |_| drop(hot.decode(&zipped).unwrap()));
    assert_eq!((hits, hot.counts().misses), (0.0, 1));
}

#[test]
fn managed_fields_that_are_dropped_are_not_decoded() {
    let [whole, stripped] = [false, true].map(of_a_pod::<Arc<Pod>>);
    println!("{whole} for a typed pod with managedFields, {stripped} without");
    assert!(stripped < whole / 1.5, "{whole} with them, {stripped} without");
}

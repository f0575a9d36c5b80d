//! Lists, from bytes to objects.

use std::convert::Infallible;
use std::sync::Arc;

use http::Response;
use k8s_openapi::api::core::v1::Pod;
use kube_client::Client;
use kube_client::client::Body;
use kubewire_indexer::{Meta, ObjectId};
use kubewire_listwatch::{Decode, Json, ListOptions, ListWatch, ListerWatcher, Packed, Represented};
use serde::Deserialize;

use crate::counting::Span;

const PODS: usize = 50;

#[derive(Deserialize, Meta)]
#[kubewire(resource = Pod)]
struct Brief {
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

#[test]
fn managed_fields_that_are_dropped_are_not_decoded() {
    let [whole, stripped] = [false, true].map(of_a_pod::<Arc<Pod>>);
    println!("{whole} for a typed pod with managedFields, {stripped} without");
    assert!(stripped < whole / 1.5, "{whole} with them, {stripped} without");
}

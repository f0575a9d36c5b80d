//! A relist on its whole way: request, body, reflector, FIFO, store, handlers.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use k8s_openapi::api::core::v1::Pod;
use k8s_pb::api::core::v1 as pb;
use kube_client::Client;
use kube_client::client::Body;
use kube_client::core::{ApiResource, DynamicObject, PartialObjectMeta};
use kubewire_indexer::Object;
use kubewire_informer::reflector::ReflectorOptions;
use kubewire_informer::{Informer, InformerOptions};
use kubewire_listwatch::{Codec, Json, ListWatch, Packed, Pb, Protobuf, Zipped};
use kubewire_ratelimit::Backoff;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::counting::Span;
use crate::lists::Brief;
use crate::ways_in::{MetadataMessage, Tags, Wire, envelope, field};

const EXPIRED: &str = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}"#;

/// A list of pods, each of its own name, in a format.
trait Pods: Wire {
    fn pods(count: usize) -> Vec<u8>;
}

impl Pods for Json {
    fn pods(count: usize) -> Vec<u8> {
        let mut body = Vec::new();
        kubewire_benches::pods::write_list(count, &mut body).unwrap();
        body
    }
}

/// Of a pod no more than its state.
impl Pods for Protobuf {
    fn pods(count: usize) -> Vec<u8> {
        let pod = |number: usize| {
            let name = format!("web-{number}");
            let id = [field(1, name.as_bytes()), field(3, b"default"), field(5, name.as_bytes()), field(6, b"7")];
            field(2, &[field(1, &id.concat()), field(2, b"")].concat())
        };
        let pods: Vec<_> = (0..count).map(pod).collect();
        envelope("PodList", &[field(1, &field(2, b"7")), pods.concat()].concat())
    }
}

/// What this thread allocates from one relist of so many unchanged pods to the next. Every watch is refused as expired.
fn of_a_relist<O, C>(pods: usize) -> usize
where
    O: Object + Clone,
    C: Codec<O> + Pods,
{
    let body = Bytes::from(C::pods(pods));
    let (lists, enough) = (Arc::new(Mutex::new(Vec::with_capacity(100))), Arc::new(Notify::new()));
    let (begun, told) = (Arc::clone(&lists), Arc::clone(&enough));
    let answer = move |request: http::Request<Body>| {
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
        if !is_watch {
            let mut lists = begun.lock();
            lists.push(Span::begin());
            if lists.len() == 5 {
                told.notify_one();
            }
        }
        let (code, body) = if is_watch { (410, EXPIRED.into()) } else { (200, body.to_vec()) };
        let response = Response::builder()
            .status(code)
            .header("content-type", if is_watch { "application/json" } else { C::MEDIA_TYPE });
        async move { Ok::<_, Infallible>(response.body(Body::from(body)).unwrap()) }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let client = Client::new(tower::service_fn(answer), "default");
        let pods_of_client = ListWatch::<O>::for_resource(client, &ApiResource::erase::<Pod>(&())).codec(C::default());
        let backoff = Backoff::new(Duration::from_millis(1)).steps(1000);
        let options = InformerOptions::new().reflector(ReflectorOptions::new().watch_list(false).backoff(backoff));
        let informer = Informer::with_options(pods_of_client, options).unwrap();
        let running = informer.start(CancellationToken::new());
        enough.notified().await;
        assert_eq!(informer.indexer().len(), pods);
        running.stop();
        running.join().await;
    });
    let lists = lists.lock();
    lists[3].until(&lists[4])
}

/// The list and the tables grow by doubling. Nothing beside: no object, no key, no notification, nothing for the look at an
/// item's state.
#[test]
fn a_relist_allocates_nothing_for_an_object_that_has_not_changed() {
    fn check<O, C>(name: &str)
    where
        O: Object + Clone,
        C: Codec<O> + Pods,
    {
        let [some, twice] = [40, 80].map(of_a_relist::<O, C>);
        println!("{name}, {}: {some} allocations for 40 unchanged pods, {twice} for 80", C::MEDIA_TYPE);
        assert!(twice - some <= 2, "{name}: {some}, {twice}");
    }
    check::<Arc<Pod>, Json>("typed");
    check::<Arc<DynamicObject>, Json>("dynamic");
    check::<Arc<PartialObjectMeta<Pod>>, Json>("metadata-only");
    check::<Arc<Brief>, Json>("a struct of one's own");
    check::<Packed<Pod>, Json>("packed");
    check::<Zipped<Pod>, Json>("zipped");
    check::<Arc<Pb<pb::Pod>>, Protobuf>("typed");
    check::<Arc<Tags>, Protobuf>("a message of one's own");
    check::<Arc<MetadataMessage>, Protobuf>("the metadata");
    check::<Packed<Pod>, Protobuf>("packed");
    check::<Zipped<Pod>, Protobuf>("zipped");
}

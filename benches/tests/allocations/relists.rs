//! A relist on its whole way: request, body, reflector, FIFO, store, handlers.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use k8s_openapi::api::core::v1::Pod;
use kube_client::Client;
use kube_client::client::Body;
use kubewire_informer::reflector::ReflectorOptions;
use kubewire_informer::{Informer, InformerOptions};
use kubewire_listwatch::{Codec, Json, ListWatch, Packed, Represented};
use kubewire_ratelimit::Backoff;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::counting::Span;

const EXPIRED: &str = r#"{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410}"#;

/// What this thread allocates from one relist of so many unchanged pods to the next. Every watch is refused as expired.
fn of_a_relist<O>(pods: usize) -> usize
where
    O: Represented<Resource = Pod> + Clone,
    Json: Codec<O>,
{
    let mut body = Vec::new();
    kubewire_benches::pods::write_list(pods, &mut body).unwrap();
    let body = Bytes::from(body);
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
        async move { Ok::<_, Infallible>(Response::builder().status(code).body(Body::from(body)).unwrap()) }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let client = Client::new(tower::service_fn(answer), "default");
        let backoff = Backoff::new(Duration::from_millis(1)).steps(1000);
        let options = InformerOptions::new().reflector(ReflectorOptions::new().watch_list(false).backoff(backoff));
        let informer = Informer::with_options(ListWatch::<O>::all(client), options).unwrap();
        let running = informer.start(CancellationToken::new());
        enough.notified().await;
        assert_eq!(informer.indexer().len(), pods);
        running.stop();
        running.join().await;
    });
    let lists = lists.lock();
    lists[3].until(&lists[4])
}

/// Four for a look at an item's state in JSON (`ways_in.rs`); the list and the tables grow by doubling. Nothing beside: no
/// object, no key, no notification.
#[test]
fn a_relist_allocates_nothing_for_an_object_that_has_not_changed_but_for_the_look_at_it() {
    fn check<O>(name: &str)
    where
        O: Represented<Resource = Pod> + Clone,
        Json: Codec<O>,
    {
        let [some, twice] = [40, 80].map(of_a_relist::<O>);
        println!("{name}: {some} allocations for 40 unchanged pods, {twice} for 80");
        assert!(twice - some <= 40 * 4 + 10, "{name}: {some}, {twice}");
    }
    check::<Packed<Pod>>("packed");
    check::<Arc<Pod>>("typed");
}

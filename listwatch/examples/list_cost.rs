//! What a list costs in each representation and codec: time and allocations an object, bytes that are kept of it.
//!
//! `cargo run --release -p kubewire-listwatch --example list_cost -- PODS.json PODS.pb`, of files with the body of a
//! list of pods; `benches/peers` writes such (`peers gen -n 10000 -o PODS.pb`).
//!
//! Everything behind the socket is measured: splitting, decoding, dropping managedFields. The bodies come from
//! memory, in pieces of 64 KiB. The median of five rounds counts.

use std::alloc::{GlobalAlloc, Layout, System};
use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use k8s_openapi::api::core::v1::Pod;
use kube_client::Client;
use kube_client::client::Body;
use kubewire_indexer::{Meta, ObjectId};
use kubewire_listwatch::{
    BoxError, Codec, Json, ListOptions, ListWatch, ListerWatcher, Packed, Pb, Protobuf, Represented, messages,
};
use serde::Deserialize;

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
static HELD: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call goes on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Relaxed);
        HELD.fetch_add(layout.size() as u64, Relaxed);
        // SAFETY: as above.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size() as u64, Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[derive(Meta, Deserialize)]
#[kubewire(resource = Pod)]
struct Brief {
    metadata: ObjectId,
    #[expect(dead_code, reason = "read so that it costs what it costs")]
    spec: BriefSpec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BriefSpec {
    #[expect(dead_code, reason = "read so that it costs what it costs")]
    node_name: Option<String>,
}

#[derive(Clone, PartialEq, prost::Message, Meta)]
#[kubewire(resource = Pod)]
struct BriefMessage {
    #[prost(message, required, tag = "1")]
    metadata: messages::LabeledId,
    #[prost(message, optional, tag = "2")]
    spec: Option<BriefMessageSpec>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct BriefMessageSpec {
    #[prost(string, tag = "10")]
    node_name: String,
}

fn main() -> Result<(), BoxError> {
    let files: Vec<String> = std::env::args().skip(1).collect();
    if files.is_empty() {
        return Err("usage: list_cost PODS.json PODS.pb".into());
    }
    println!("{:<12} {:<10} {:>10} {:>12} {:>12}", "codec", "as", "us/object", "allocations", "bytes kept");
    for file in files {
        let body = Bytes::from(std::fs::read(&file)?);
        match Path::new(&file).extension().is_some_and(|extension| extension == "pb") {
            true => {
                measure::<Packed<Pod>, _>("packed", &body, Protobuf)?;
                measure::<Arc<BriefMessage>, _>("few fields", &body, Protobuf)?;
                measure::<Arc<Pb<k8s_pb::api::core::v1::Pod>>, _>("typed", &body, Protobuf)?;
            }
            false => {
                measure::<Packed<Pod>, _>("packed", &body, Json)?;
                measure::<Arc<Brief>, _>("few fields", &body, Json)?;
                measure::<Arc<Pod>, _>("typed", &body, Json)?;
            }
        }
    }
    Ok(())
}

fn measure<O, C>(name: &str, body: &Bytes, codec: C) -> Result<(), BoxError>
where
    O: Represented<Resource: kube_core::Resource<DynamicType = ()>>,
    C: Codec<O> + Copy,
{
    let protobuf = body.starts_with(b"k8s\0");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let _in_runtime = runtime.enter();
    let pods = ListWatch::<O>::all(serving(body.clone(), protobuf)).drop_managed_fields().codec(codec);
    let mut rounds: Vec<(Duration, u64, u64, usize)> = Vec::new();
    for _ in 0..5 {
        let mut objects = Vec::with_capacity(100_000);
        let (allocations, held, start) = (ALLOCATIONS.load(Relaxed), HELD.load(Relaxed), Instant::now());
        runtime.block_on(pods.list(&ListOptions::default(), &mut |pod| objects.extend(pod.ok())))?;
        let took = start.elapsed();
        rounds.push((took, ALLOCATIONS.load(Relaxed) - allocations, HELD.load(Relaxed) - held, objects.len()));
    }
    rounds.sort();
    let (took, allocations, held, count) = rounds[rounds.len() / 2];
    let each = |number: f64| number / count as f64;
    let codec = if protobuf { "protobuf" } else { "json" };
    println!(
        "{codec:<12} {name:<10} {:>10.2} {:>12.2} {:>12.0}",
        each(took.as_secs_f64() * 1e6),
        each(allocations as f64),
        each(held as f64)
    );
    Ok(())
}

/// A client whose every answer is this body.
fn serving(body: Bytes, protobuf: bool) -> Client {
    let media_type = if protobuf { "application/vnd.kubernetes.protobuf" } else { "application/json" };
    let service = tower::service_fn(move |_: Request<Body>| {
        let body = body.clone();
        let pieces = (0..body.len())
            .step_by(64 << 10)
            .map(move |at| Ok::<_, BoxError>(Frame::data(body.slice(at..body.len().min(at + (64 << 10))))));
        let body = StreamBody::new(futures::stream::iter(pieces));
        let mut response = Response::new(body);
        response.headers_mut().insert("content-type", http::HeaderValue::from_static(media_type));
        async move { Ok::<_, Infallible>(response) }
    });
    Client::new(service, "default")
}

//! Packed and zipped objects, one at a time: `cargo bench -p kubewire-benches --bench objects`.
//!
//! The pod is that of the comparison, 9.4 kB of JSON, 5.2 kB without `managedFields`.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use k8s_openapi::api::core::v1::Pod;
use kubewire_benches::pods::pod;
use kubewire_listwatch::{Decode, DecodeOptions, Encoded, HotCache, Json, Packed, Zipped};
use serde::Deserialize;

/// Enough that a dictionary is learned.
const PODS: usize = 1_000;

#[derive(Deserialize)]
struct OnNode {
    spec: Spec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    node_name: String,
}

fn read<O: Decode<Json>>(json: &str, options: &DecodeOptions) -> O {
    O::decode(json.as_bytes(), options).expect("it is a pod")
}

fn of<O: Encoded<Decoded = Pod> + Decode<Json>>(c: &mut Criterion, name: &str, options: &DecodeOptions) {
    let json = pod(PODS + 1);
    let object: O = read(&json, options);
    let hot = HotCache::<O>::new(10);
    let mut group = c.benchmark_group(name);
    group.bench_function("make", |b| b.iter(|| read::<O>(black_box(&json), options)));
    group.bench_function("id", |b| b.iter(|| black_box(&object).id().name.len()));
    group.bench_function("label", |b| b.iter(|| black_box(&object).label("pod-template-hash").map(str::len)));
    group
        .bench_function("peek", |b| b.iter(|| black_box(&object).peek::<OnNode>().map(|pod| pod.spec.node_name.len())));
    group.bench_function("decode", |b| b.iter(|| black_box(&object).decode()));
    group.bench_function("hot", |b| b.iter(|| hot.decode(black_box(&object)).map(|pod| Arc::strong_count(&pod))));
    group.finish();
}

fn objects(c: &mut Criterion) {
    let options = DecodeOptions::default();
    let first: Vec<Zipped<Pod>> = (0..PODS).map(|number| read(&pod(number), &options)).collect();
    first[0].settle();
    println!("bytes: {} packed, {} zipped", read::<Packed<Pod>>(&pod(1), &options).size(), first[1].size());
    of::<Packed<Pod>>(c, "packed", &options);
    of::<Zipped<Pod>>(c, "zipped", &options);
    c.bench_function("zipped/unzip", |b| b.iter(|| black_box(&first[1]).unzip()));
}

criterion_group!(benches, objects);
criterion_main!(benches);

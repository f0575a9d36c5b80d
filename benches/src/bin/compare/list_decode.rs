//! A list's body, decoded.

use std::fs;

use bytes::Bytes;
use kubewire_listwatch::{ListOptions, ListerWatcher};

use crate::body::{Source, client};
use crate::flags::{Defaults, Flags};
use crate::line::rounded;
use crate::process::{reset_peak, status};
use crate::representation::{PodForm, Speaks, Wire, chosen, list_watch};
use crate::runtime::runtime;
use crate::sample::{bench, expect, fail, measure};

pub(crate) const FLAGS: Defaults = &[("n", "10000"), ("f", ""), ("repeat", "5"), ("as", "all"), ("transform", "false")];

/// Decodes a body so often, with or without `managedFields`, and prints the case.
pub(crate) type Case = fn(case: &str, body: &Bytes, transform: bool, repeat: usize);

pub(crate) fn run(flags: &Flags) -> anyhow::Result<()> {
    let (transform, repeat) = (flags.get("transform")?, flags.get("repeat")?);
    let body = match flags.text("f") {
        "" => {
            let mut body = Vec::new();
            kubewire_benches::pods::write_list(flags.get("n")?, &mut body)?;
            Bytes::from(body)
        }
        file => Bytes::from(fs::read(file)?),
    };
    for representation in chosen(flags, Wire::of_file(flags.text("f")))? {
        let stripped = if transform { "-no-managed-fields" } else { "" };
        let case = format!("list-decode/{}/{}{stripped}", representation.wire.name(), representation.name);
        (representation.list_decode)(&case, &body, transform, repeat);
    }
    Ok(())
}

pub(crate) fn case<O: PodForm, C: Speaks<O>>(case: &str, body: &Bytes, transform: bool, repeat: usize) {
    let resident = reset_peak();
    let n = decode::<O, C>(body, transform).len();
    let peak_extra = status("VmHWM") - resident;
    bench(case, n, repeat, || {
        let mut items = Vec::new();
        let sample = measure(|| items = decode::<O, C>(body, transform));
        expect("decoded", items.len(), n);
        let rate = body.len() as f64 / 1e6 / sample.wall.as_secs_f64();
        sample.with("bytes", body.len()).with("mb_per_s", rounded(rate)).with("peak_extra_bytes", peak_extra)
    });
}

/// The whole way of a list but for the connection: the body arrives in pieces, and is decoded item by item.
fn decode<O: PodForm, C: Speaks<O>>(body: &Bytes, transform: bool) -> Vec<O> {
    runtime().block_on(async {
        let pods = list_watch::<O, C>(client(Source::Bytes(body.clone()), C::WIRE), transform);
        let mut items = Vec::new();
        let mut each = |item| match item {
            Ok(item) => items.push(item),
            Err(error) => fail(error),
        };
        let list = pods.list(&ListOptions::default(), &mut each).await;
        if let Err(error) = list {
            fail(error);
        }
        items.first().inspect(|pod: &&O| pod.settle());
        items
    })
}

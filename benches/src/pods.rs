//! The pods that all programs are measured on, byte for byte those of `peers gen`: a list as a server answers it.
//!
//! Each pod has two containers, probes, volumes, labels, annotations, an owner, a full status and `managedFields`; it
//! is 9.4 kB of JSON. The same number gives the same pod.

use std::fmt::Write as _;
use std::io::{self, Write};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::field_set::FieldSet;
use crate::go_random::GoRandom;

/// A pod in the order in which Go writes its fields; `<name>` stands for what differs. White space is for readers.
const TEMPLATE: &str = include_str!("pods/pod.json");

/// When the first pod was made, in seconds of the epoch: 2026-03-01T08:00:00Z.
const FIRST_MADE: i64 = 1_772_352_000;

const APPS: [&str; 10] = [
    "checkout",
    "catalog",
    "payments",
    "inventory",
    "search",
    "recommender",
    "notifier",
    "gateway",
    "accounts",
    "shipping",
];
const TIERS: [&str; 4] = ["frontend", "backend", "batch", "cache"];

/// Writes a list of the first `count` pods, in JSON.
pub fn write_list(count: usize, out: &mut impl Write) -> io::Result<()> {
    write!(
        out,
        r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{"resourceVersion":"{}"}},"items":["#,
        version(count)
    )?;
    for number in 0..count {
        let comma = if number == 0 { "" } else { "," };
        write!(out, "{comma}{}", pod(number))?;
    }
    out.write_all(b"]}\n")
}

/// The version of a list of so many pods.
pub fn version(count: usize) -> u64 {
    100_000 + 2 * count as u64
}

/// One pod as JSON, without `apiVersion` and `kind`, as in a list.
pub fn pod(number: usize) -> String {
    let mut blanks = blanks(number);
    blanks.push(("managedFields", "null".to_owned()));
    let bare: Value = serde_json::from_str(&fill(&blanks)).expect("the template is JSON");
    if let Some((_, text)) = blanks.last_mut() {
        *text = managed_fields(bare, number);
    }
    fill(&blanks)
}

type Blanks = Vec<(&'static str, String)>;

/// What stands for each `<name>` of the template.
fn blanks(number: usize) -> Blanks {
    let set = number / 10; // ten pods of one replica set
    let mut own = GoRandom::seeded(number as u64, 1);
    let mut shared = GoRandom::seeded(set as u64, 2);
    let mut status = GoRandom::seeded(number as u64, 3);
    let (app, tier) = (shared.pick(&APPS), shared.pick(&TIERS));
    let hash = suffix(shared.below(1 << 30), 9);
    let token = suffix(own.below(1 << 24), 5);
    let checksum = (0..32).map(|_| char::from(b"0123456789abcdef"[own.below(16) as usize])).collect();
    let owner_uid = uid(&mut shared);
    let mut image = |name| {
        let [major, minor, patch] = [1 + shared.below(3), shared.below(20), shared.below(10)];
        format!("registry.example.com/{name}:v{major}.{minor}.{patch}")
    };
    let (app_image, proxy_image) = (image("app"), image("proxy"));
    let mut digest = || (0..4).fold(String::new(), |text, _| text + &format!("{:016x}", status.next_u64()));
    let node = number * 37 % 100;
    vec![
        ("owner", format!("{app}-{tier}-{hash}")),
        ("app", app.to_owned()),
        ("tier", tier.to_owned()),
        ("hash", hash),
        ("suffix", suffix(number as u64, 5)),
        ("namespace", format!("namespace-{}", number / 100)),
        ("uid", uid(&mut GoRandom::seeded(number as u64, 4))),
        ("version", (100_001 + 2 * number).to_string()),
        ("release", format!("{}", set % 20)),
        ("team", format!("{:02}", set % 40)),
        ("major", format!("{}", 1 + set % 3)),
        ("minor", format!("{}", set % 10)),
        ("cost", format!("{:04}", set % 500)),
        ("rollout", time(60 * set as i64)),
        ("timeout", format!("{}", 5 + set % 10)),
        ("token", token),
        ("checksum", checksum),
        ("ownerUid", owner_uid),
        ("appImage", app_image),
        ("proxyImage", proxy_image),
        ("digest0", digest()),
        ("digest1", digest()),
        ("digest2", digest()),
        ("digest3", digest()),
        ("cell", format!("{}", node % 4)),
        ("node", format!("{node:03}")),
        ("hostIP", format!("10.0.{}.{}", node / 50, 10 + node % 50)),
        ("podIP", format!("10.{}.{}.{}", 64 + (number >> 16), number >> 8 & 255, number & 255)),
        ("at0", time(number as i64)),
        ("at3", time(number as i64 + 3)),
        ("at14", time(number as i64 + 14)),
    ]
}

fn fill(blanks: &Blanks) -> String {
    let mut text = String::with_capacity(10_000);
    let mut parts = TEMPLATE.split(['<', '>']);
    while let Some(plain) = parts.next() {
        text.extend(plain.split_ascii_whitespace());
        if let Some(name) = parts.next() {
            let (_, value) = blanks.iter().find(|(blank, _)| *blank == name).expect("each blank is filled");
            text.push_str(value);
        }
    }
    text
}

/// The entries that the server would have made when the pod's creator sent it and the kubelet set its status.
fn managed_fields(pod: Value, number: usize) -> String {
    let part = |name: &str, without: &[&str]| {
        let mut fields = pod[name].as_object().cloned().unwrap_or_default();
        fields.retain(|field, _| !without.contains(&field.as_str()));
        Value::Object(fields)
    };
    let theirs = ["name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "managedFields"];
    let spec = serde_json::json!({ "metadata": part("metadata", &theirs), "spec": pod["spec"] });
    // The server sets the class by itself.
    let status = serde_json::json!({ "status": part("status", &["qosClass"]) });
    let mut text = "[".to_owned();
    for (manager, seconds, fields, end) in
        [("kube-controller-manager", 0, spec, "},"), ("kubelet", 14, status, r#","subresource":"status"}]"#)]
    {
        let (time, fields) = (time(number as i64 + seconds), FieldSet::of("", &fields));
        let written = write!(
            text,
            r#"{{"manager":"{manager}","operation":"Update","apiVersion":"v1","time":"{time}","fieldsType":"FieldsV1","fieldsV1":{fields}{end}"#
        );
        written.expect("a string takes everything");
    }
    text
}

/// So many seconds after the first pod was made.
fn time(seconds: i64) -> String {
    let first = Timestamp::from_second(FIRST_MADE).expect("it is in range");
    (first + SignedDuration::from_secs(seconds)).to_string()
}

/// A number in so many of the characters that Kubernetes makes names of.
fn suffix(mut number: u64, len: usize) -> String {
    const CHARACTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut text = vec![b' '; len];
    for place in text.iter_mut().rev() {
        *place = CHARACTERS[(number % 27) as usize];
        number /= 27;
    }
    text.into_iter().map(char::from).collect()
}

fn uid(random: &mut GoRandom) -> String {
    let (a, b) = (random.next_u64(), random.next_u64());
    format!(
        "{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}",
        a >> 32,
        a >> 16 & 0xffff,
        a & 0xfff,
        b >> 48 & 0xfff,
        b & 0xffff_ffff_ffff
    )
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    /// The hashes are of `peers gen -n COUNT -o FILE.json`.
    #[test]
    fn lists_are_those_of_the_peers_to_the_byte() {
        for (count, hash) in [
            (1, "92baacfb7573dd66992ce17f45e3a6d72ac8e244ede0aa629c26111e65a43225"),
            (250, "d8edbf3cc541ac0244eb9eaad89c9b60330c6bb8ca2ce9f32d9cff46d32e934a"),
        ] {
            let mut list = Vec::new();
            write_list(count, &mut list).expect("a vector takes everything");
            let found: String = Sha256::digest(&list).iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(found, hash, "{count} pods");
        }
    }
}

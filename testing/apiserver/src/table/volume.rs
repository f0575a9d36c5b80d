//! The columns of persistent volumes and the claims to them.

use serde_json::Value;

use super::column::{AGE, Column, NAME, Row, text, text_at};

pub(super) const PERSISTENT_VOLUME: &[Column] = &[
    NAME,
    text("Capacity", |row| row.text("/spec/capacity/storage").into()),
    text("Access Modes", |row| access_modes(row.list("/spec/accessModes")).into()),
    text("Reclaim Policy", |row| row.text("/spec/persistentVolumeReclaimPolicy").into()),
    text("Status", phase),
    text("Claim", |row| match row.object.pointer("/spec/claimRef") {
        Some(claim) => format!("{}/{}", text_at(claim, "/namespace"), text_at(claim, "/name")).into(),
        None => "".into(),
    }),
    text("StorageClass", |row| row.text("/spec/storageClassName").into()),
    text("VolumeAttributesClass", |row| row.text_or("/spec/volumeAttributesClassName", "<unset>").into()),
    text("Reason", |row| row.text("/status/reason").into()),
    AGE,
    text("VolumeMode", |row| row.text_or("/spec/volumeMode", "<unset>").into()).wide(),
];

pub(super) const PERSISTENT_VOLUME_CLAIM: &[Column] = &[
    NAME,
    text("Status", phase),
    text("Volume", |row| row.text("/spec/volumeName").into()),
    text("Capacity", |row| if_bound(row, row.text("/status/capacity/storage")).into()),
    text("Access Modes", |row| if_bound(row, &access_modes(row.list("/status/accessModes"))).into()),
    text("StorageClass", |row| row.text("/spec/storageClassName").into()),
    text("VolumeAttributesClass", |row| row.text_or("/spec/volumeAttributesClassName", "<unset>").into()),
    AGE,
    text("VolumeMode", |row| row.text_or("/spec/volumeMode", "<unset>").into()).wide(),
];

fn phase(row: &Row<'_>) -> Value {
    if row.is_terminating() { "Terminating".into() } else { row.text("/status/phase").into() }
}

fn if_bound(row: &Row<'_>, text: &str) -> String {
    if row.text("/spec/volumeName").is_empty() { String::new() } else { text.to_owned() }
}

fn access_modes(modes: &[Value]) -> String {
    let known =
        [("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];
    known
        .iter()
        .filter(|(mode, _)| modes.iter().any(|m| m == mode))
        .map(|(_, short)| *short)
        .collect::<Vec<_>>()
        .join(",")
}

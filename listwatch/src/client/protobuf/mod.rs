//! What travels in Kubernetes' protobuf: an envelope around each object, lists as messages, watches as frames.

pub(crate) mod edits;
pub(crate) mod envelope;
pub(crate) mod frame_splitter;
pub(crate) mod item;
pub(crate) mod list_head;
pub(crate) mod list_kind;
pub(crate) mod list_splitter;
#[cfg(feature = "prost")]
pub mod messages;
pub(crate) mod metadata;
#[cfg(feature = "k8s-pb")]
pub(crate) mod pb;
pub(crate) mod status;
pub(crate) mod watch_frame;
pub(crate) mod wire;
#[cfg(test)]
pub(crate) mod written;

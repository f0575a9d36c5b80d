//! What speaks HTTP: [`ListWatch`] and what it is made of.
//!
//! From the outside in: `list_watch` makes requests (`query`), `exchange` sends them and watches the time, `transport`,
//! `status` and `retry_after` say what an answer of failure means. The body of a list goes through `list_splitter` to
//! `decode`, and what remains to `list_head`; that of a watch through `line_splitter` to `watch_line`. Between splitting
//! and decoding stands the `pipeline`, which has other threads help with long ones. For answers in
//! protobuf the same stands in `protobuf`; `codec` says what is asked for, and the content type of the answer what it is.
//!
//! A client, from the outside in: `client_options` builds it, `gunzip` unpacks answers, `throttle_layer` makes requests
//! wait, `reauth` adds credentials, `http_service` sends by HTTP/1.1 or over `shared_connections` of HTTP/2, which are
//! `lanes` to it.

mod carry;
mod client_options;
mod codec;
mod decode;
mod drop_fields;
mod encoded;
mod excerpt;
mod exchange;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod gunzip;
mod hot_cache;
mod http2;
mod http_service;
mod json;
mod lanes;
mod limits;
mod line_splitter;
mod list_body;
mod list_head;
mod list_splitter;
mod list_watch;
mod packed;
mod peek;
mod pipeline;
pub(crate) mod protobuf;
mod query;
mod reading;
mod reauth;
mod represented;
mod retry_after;
mod shaped;
mod shared_connections;
#[cfg(feature = "zstd")]
mod shared_state;
mod status;
mod text;
mod throttle_layer;
mod tls_files;
mod transport;
mod value_scan;
mod watch_body;
mod watch_line;
#[cfg(feature = "zstd")]
mod zipped;

pub use client_options::{ClientOptions, client_from_config};
pub use codec::{Codec, Json, Protobuf, ProtobufOrJson};
pub use decode::{Decode, DecodeOptions};
pub use encoded::Encoded;
pub use hot_cache::{HotCache, HotCounts};
pub use http2::{Http2, Protocol};
pub use limits::{Limits, Timeouts};
pub use list_watch::ListWatch;
pub use packed::{Packed, Unpack};
#[cfg(feature = "prost")]
pub use protobuf::messages;
#[cfg(feature = "k8s-pb")]
pub use protobuf::pb::{Pb, PbResource};
pub use represented::Represented;
pub use throttle_layer::{ThrottleLayer, Throttled};
#[cfg(feature = "zstd")]
pub use zipped::Zipped;

//! Under construction.
#![forbid(unsafe_code)]

mod error;
mod event;
mod lister_watcher;
mod options;

#[cfg(feature = "client")]
mod client_options;
#[cfg(feature = "client")]
mod decode;
#[cfg(feature = "client")]
mod drop_fields;
#[cfg(feature = "client")]
mod excerpt;
#[cfg(feature = "client")]
mod exchange;
#[cfg(feature = "client")]
mod limits;
#[cfg(feature = "client")]
mod line_splitter;
#[cfg(feature = "client")]
mod list_head;
#[cfg(feature = "client")]
mod list_splitter;
#[cfg(feature = "client")]
mod list_watch;
#[cfg(feature = "client")]
mod packed;
#[cfg(feature = "client")]
mod query;
#[cfg(feature = "client")]
mod reauth;
#[cfg(feature = "client")]
mod represented;
#[cfg(feature = "client")]
mod retry_after;
#[cfg(feature = "client")]
mod shaped;
#[cfg(feature = "client")]
mod status;
#[cfg(feature = "client")]
mod text;
#[cfg(feature = "client")]
mod throttle_layer;
#[cfg(feature = "client")]
mod transport;
#[cfg(feature = "client")]
mod value_scan;
#[cfg(feature = "client")]
mod watch_body;
#[cfg(feature = "client")]
mod watch_line;

pub use error::{BoxError, ErrorClass, ItemError, RequestError, Status};
pub use event::{EventKind, ListMeta, WatchEvent};
pub use lister_watcher::{ItemSink, ListerWatcher, WatchStream};
pub use options::{ListOptions, VersionMatch, WatchOptions};

#[cfg(feature = "client")]
pub use client_options::{ClientOptions, client_from_config};
#[cfg(feature = "client")]
pub use decode::{Decode, DecodeOptions, Json};
#[cfg(feature = "client")]
pub use limits::{Limits, Timeouts};
#[cfg(feature = "client")]
pub use list_watch::ListWatch;
#[cfg(feature = "client")]
pub use packed::{OwnerReference, Packed};
#[cfg(feature = "client")]
pub use represented::Represented;
#[cfg(feature = "client")]
pub use throttle_layer::{ThrottleLayer, Throttled};

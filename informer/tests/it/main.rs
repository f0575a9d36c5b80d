//! Tests of the delta FIFO and of the informer against a server in memory, on paused time.
//!
//! They run over a plain struct here; `testing/conformance` runs the same files over every representation of an object.

use std::sync::Arc;

/// What the objects of these tests come as.
pub(crate) type PodRef = Arc<record::Pod>;

mod cache_sync;
mod delivery;
mod factory;
mod fifo;
mod hammer;
mod handlers;
mod inside_callbacks;
mod late_handlers;
mod lifecycle;
#[path = "../common/log_lines.rs"]
mod log_lines;
mod logs;
mod metrics;
#[path = "../../../indexer/tests/it/record.rs"]
mod record;
mod recorder;
mod relist;
mod resync;
mod source;
mod status;
mod transform;
mod user_panics;

//! The reflector against a scripted server and a store that writes down what it is told.
//!
//! They run over a plain struct here; `testing/conformance` runs the same files over every representation of an object.

use std::sync::Arc;

/// What the objects of these tests come as.
pub(crate) type PodRef = Arc<record::Pod>;

mod errors;
mod fake_server;
mod fake_store;
mod informer_watcher;
mod lifecycle;
mod list_and_watch;
#[path = "../common/log_lines.rs"]
mod log_lines;
mod logs;
mod pager;
#[path = "../../../indexer/tests/it/record.rs"]
#[expect(dead_code, reason = "objects are made here, and told by their ids")]
mod record;
mod release;
mod retry_watcher;
mod running;
mod streaming_list;
mod timing;
mod undecodable;
mod until;

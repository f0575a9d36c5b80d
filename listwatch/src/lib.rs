//! Under construction.
mod error;
mod event;
mod lister_watcher;
mod options;

pub use error::{BoxError, ErrorClass, ItemError, RequestError, Status};
pub use event::{EventKind, ListMeta, WatchEvent};
pub use lister_watcher::{ItemSink, ListerWatcher, WatchStream};
pub use options::{ListOptions, VersionMatch, WatchOptions};

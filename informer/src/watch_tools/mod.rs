//! Waiting for something to happen to an object: client-go's `tools/watch`.
//!
//! - [`RetryWatcher`]: a watch that is opened again where the last one ended. It never lists.
//! - [`InformerWatcher`]: an informer seen as a watch. It lists as often as it must.
//! - [`until_without_retry`], [`until`], [`until_with_sync`]: wait on a watch that is given, on a retry watcher, and
//!   on an informer watcher, until conditions are met.
//!
//! All of it is pulled: nothing is read that nobody asks for, and dropping it ends it.

mod informer_watcher;
mod retry_watcher;
mod until;

pub use informer_watcher::InformerWatcher;
pub use retry_watcher::{InvalidVersion, RetryWatcher};
pub use until::{Condition, Precondition, UntilError, until, until_with_sync, until_without_retry};

//! The runtime of all cases.

use std::sync::LazyLock;

use tokio::runtime::{Builder, Runtime};

/// tokio's multi-thread runtime with a worker for each processor.
pub(crate) fn runtime() -> &'static Runtime {
    static RUNTIME: LazyLock<Runtime> =
        LazyLock::new(|| Builder::new_multi_thread().enable_all().build().expect("threads can be started"));
    &RUNTIME
}

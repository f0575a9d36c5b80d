//! Controllers, their sources and the manager that runs them: what controller-runtime gives, on kubewire's building
//! blocks.
#![forbid(unsafe_code)]

// The controller.
mod runnable;

// The manager and the cluster.
mod manager;

// The controller.
pub use runnable::{BoxError, Group, RunContext, Runnable};

// The manager and the cluster.
pub use manager::{AddError, Cancelled, Elector, Ended, Failure, OnElected, RunError, RunnableGroups};

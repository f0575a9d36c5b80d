//! What runs, in which order it starts and stops.

mod driver;
mod elector;
mod run_error;
mod runnable_groups;
mod stages;

pub use elector::{Elector, OnElected};
pub use run_error::{AddError, Cancelled, Ended, Failure, RunError};
pub use runnable_groups::RunnableGroups;

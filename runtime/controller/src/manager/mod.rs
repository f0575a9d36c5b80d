//! What runs, in which order it starts and stops.

mod driver;
mod elector;
mod event_writing;
mod lease_elector;
#[expect(clippy::module_inception, reason = "the noun of the folder")]
mod manager;
mod manager_options;
mod run_error;
mod runnable_groups;
mod stages;

pub use elector::{Elector, OnElected};
pub use manager::{Manager, NameTaken};
pub use manager_options::ManagerOptions;
pub use run_error::{AddError, Cancelled, Ended, Failure, RunError};
pub use runnable_groups::RunnableGroups;

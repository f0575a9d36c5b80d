//! What runs, in which order it starts and stops.

mod driver;
mod event_writing;
mod leader_election;
mod lease_elector;
#[expect(clippy::module_inception, reason = "the noun of the folder")]
mod manager;
mod manager_options;
mod run_error;
mod runnable_groups;
mod running_manager;
mod stages;

pub use leader_election::{LeaderElection, OnElected};
pub use manager::{Manager, NameTaken};
pub use manager_options::ManagerOptions;
pub use run_error::{AddError, Cancelled, Ended, Failure, RunError};
pub use runnable_groups::RunnableGroups;
pub use running_manager::RunningManager;

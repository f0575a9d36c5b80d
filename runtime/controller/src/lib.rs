//! Controllers, their sources and the manager that runs them: what controller-runtime gives, on kubewire's building
//! blocks.
#![forbid(unsafe_code)]

// The controller.
mod attempt;
mod builder;
mod controller;
pub mod controller_metrics;
mod controller_options;
mod decision;
mod event;
mod event_handler;
mod outcome;
mod panic_text;
mod predicate;
mod reconcile_error;
mod reconciler;
mod request;
mod request_queue;
mod runnable;
mod source;
mod sources;
mod start_error;
mod terminal_error;
#[cfg(test)]
mod test_object;
mod watch;

// The manager and the cluster.
mod manager;

// The controller.
pub use attempt::{Attempt, ReconcileId};
pub use builder::{BuildError, Builder, ControllerHost, Watched, watched};
pub use controller::Controller;
pub use controller_metrics::ControllerMetrics;
pub use controller_options::{ControllerDefaults, ControllerOptions};
pub use event::{AnyObject, Event, LOW_PRIORITY};
pub use event_handler::{
    EnqueueRequestForObject, EnqueueRequestForOwner, EnqueueRequestsFromMap, EventHandler, EventHandlerFuncs,
    GroupKind, ScopeOfOwner, map,
};
pub use outcome::Outcome;
pub use predicate::{
    AllOf, And, AnnotationsChanged, AnyOf, GenerationChanged, GenerationOrDeletionChanged, LabelsChanged, LabelsMatch,
    Not, OnObject, Or, Predicate, PredicateFuncs, ResourceVersionChanged, on_object,
};
pub use reconcile_error::{ErrorKind, ReconcileError};
pub use reconciler::{Reconciler, reconcile_objects};
pub use request::{Request, RequestKey};
pub use request_queue::{Enqueue, PriorityQueue, RequestQueue};
pub use runnable::{BoxError, Group, RunContext, Runnable};
pub use source::{
    Channel, ChannelClosed, ChannelSource, KindSource, Source, SourceContext, Started, StreamSource, source_fn,
};
pub use start_error::StartError;
pub use terminal_error::{TerminalError, is_terminal};

// The manager and the cluster.
pub use manager::{AddError, Cancelled, Elector, Ended, Failure, OnElected, RunError, RunnableGroups};

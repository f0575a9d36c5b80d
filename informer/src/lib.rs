//! Under construction.
mod cache_sync;
mod delivery;
mod delta;
mod delta_fifo;
mod handler;
mod informer;
mod informer_factory;
mod informer_options;
mod informer_store;
mod known_objects;
mod latch;
mod listener;
mod listeners;
mod notification;
mod panics;
mod processing;
pub mod reflector;
mod reflector_store;
mod registration;
mod resync;
mod running_informer;
mod status;
mod subscription;
pub mod watch_tools;
mod sync_track;

pub use cache_sync::{
    CacheSync, CacheSyncError, CacheSyncReason, Hindrance, wait_for_cache_sync, wait_for_cache_sync_unless_refused,
};
pub use delivery::Delivery;
pub use delta::{Delta, Deltas};
pub use delta_fifo::{Closed, DeltaFifo, DeltaFifoOptions, Popped, Transform};
pub use handler::{FilteringResourceEventHandler, ResourceEventHandler, ResourceEventHandlerFuncs};
pub use informer::{AddIndexersError, Informer, WaitForVersionError, new_indexer_informer};
pub use informer_factory::{FactoryOptions, SharedInformerFactory};
pub use informer_options::{HandlerOptions, InformerOptions};
pub use known_objects::KnownObjects;
pub use listener::Buffering;
pub use notification::Notification;
pub use reflector_store::{AdmitError, Admitted, ReflectorStore, Replacement, TransformError};
pub use registration::{Registration, Stopped};
pub use running_informer::RunningInformer;
pub use status::{HandlerStatus, InformerPhase, InformerStatus};
pub use subscription::Subscription;
pub use sync_track::{AsyncTracker, Lazy, NotStarted, SingleFileTracker};

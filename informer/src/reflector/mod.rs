//! List, then watch, for ever: client-go's `Reflector`.
//!
//! A [`Reflector`] asks a [`ListerWatcher`](kubewire_listwatch::ListerWatcher) for a list, hands it to a
//! [`ReflectorStore`](crate::ReflectorStore) as one replacement, and passes on what a watch from there brings; when
//! the watch ends it opens the next one, when the version has expired it lists again, when nothing works it waits a
//! little longer each time. It never gives up by itself. The whole behaviour is a state machine without a clock, a
//! lock or a request (`machine.rs`); around it stands a thin driver that awaits.
//!
//! An informer has a reflector inside. Alone it is of use to whoever wants lists and events without a cache.

mod alarm;
mod consistency_check;
mod driver;
mod error_handler;
mod failure_delay;
mod gathering;
mod list_pager;
mod log_limit;
mod machine;
mod page_walk;
#[expect(clippy::module_inception, reason = "one noun a file: this one holds the type the module is named for")]
mod reflector;
mod reflector_error;
mod reflector_options;
mod reflector_status;
mod reporter;
pub(crate) mod resource_version;
mod retry_window;
pub(crate) mod rules;
mod watch_pace;

pub use error_handler::{WatchErrorHandler, log_errors};
pub use list_pager::{ListPager, PagedList, PagerError};
pub use reflector::{Reflector, RunError};
pub use reflector_error::{ReflectorError, ReflectorErrorKind};
pub use reflector_options::ReflectorOptions;
pub use reflector_status::{LastError, ReflectorMonitor, ReflectorPhase, ReflectorStatus, RestartCause};

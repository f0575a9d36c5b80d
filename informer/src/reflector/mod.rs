//! List, then watch, for ever: client-go's `Reflector`.
//!
//! A [`Reflector`] asks a [`ListerWatcher`](kubewire_listwatch::ListerWatcher) for a list, hands it to a
//! [`ReflectorStore`](crate::ReflectorStore) as one replacement, and passes on what a watch from there brings; when
//! the watch ends it opens the next one, when the version has expired it lists again, when nothing works it waits a
//! little longer each time. It never gives up by itself. The whole behaviour is a state machine without a clock, a
//! lock or a request (`machine.rs`); around it stands a thin driver that awaits.
//!
//! An informer has a reflector inside. Alone it is of use to whoever wants lists and events without a cache.
//! [`ListPager`] lists in pages without a watch.
//!
//! # Where it differs from client-go
//!
//! The requests are client-go's, in the same order, from the same versions; the recorded traces replay. The
//! differences protect the server and the cache where client-go does not:
//!
//! - A streaming list without its end mark is given up after a minute without progress, or after six streams in a row
//!   that ended before it; an ordinary list takes its place for ten minutes. client-go waits for ever, or asks again
//!   at once for ever.
//! - Watches that end at once are paced also where they brought a bookmark (then with back-off) or an object (then at
//!   no more than 20 a second): see [`ReflectorOptions::pace_short_streams`].
//! - A list is asked for not older than the newest version seen since the last list, also where a bookmark or an event
//!   has told an older one since; an older answer is refused (up to three times, as is a version that the server calls
//!   invalid; then the most recent state is asked for): see [`ReflectorOptions::refuse_older_answers`].
//! - A continue token that comes again, and a list without a version, are errors.
//! - The back-off starts over after two minutes of health, not two minutes after its last start; the wait that a server
//!   asks for is kept, within a minute, for lists too.
//! - An object that cannot be decoded is skipped, counted and told to the error handler, and what is cached under its
//!   key stays; a deletion of which only the key could be read still deletes.
//! - Each object is transformed once, also those of a streaming list.
//! - Every wait ends at once by the stop. A panic of the lister-watcher is the error of [`Reflector::run`].
//!
//! # Cost
//!
//! An event takes two short locks that nobody contends for (the stop, the status) beside what the store does. A list is
//! held once, as the objects that the store admitted: unchanged ones are those of the cache, and a
//! [`ListWatch`](kubewire_listwatch) does not even decode them.

mod admitting;
pub(crate) mod alarm;
mod consistency_check;
mod driver;
mod error_handler;
mod failure_delay;
mod gathering;
mod list_pager;
mod machine;
mod meter;
mod minder;
mod page_walk;
mod position;
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

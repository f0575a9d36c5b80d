//! A recorder of Kubernetes events that never blocks its caller, never fails, and never floods the API server.
//!
//! As client-go's `tools/record` and `tools/events`, in one. Repeats are counted, similar events combined, floods about
//! one object kept small, and texts brought to what the API server takes.
//!
//! ```
//! use k8s_openapi::api::core::v1::ObjectReference;
//! use kubewire_apiserver::ApiServer;
//! use kubewire_events::{Event, Recorder};
//! use tokio_util::sync::CancellationToken;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build()?.block_on(async {
//! let server = ApiServer::start().await; // in your program: a kube client
//! let (recorder, writer) = Recorder::builder(server.client(), "example.com/scaler").build();
//! let stop = CancellationToken::new();
//! let writing = tokio::spawn(writer.run(stop.clone()));
//!
//! let pod = ObjectReference { // or `kube::Resource::object_ref` of the object
//!     api_version: Some("v1".into()),
//!     kind: Some("Pod".into()),
//!     namespace: Some("default".into()),
//!     name: Some("web-0".into()),
//!     ..ObjectReference::default()
//! };
//! for _ in 0..100 {
//!     recorder.record(&pod, Event::warning("FailedScaling", "Scale", "the quota allows 2 replicas"));
//! }
//!
//! stop.cancel(); // What is left is written, for five seconds at most.
//! assert_eq!(writing.await?.left, 0);
//! let events = server.list("events.k8s.io/v1/events");
//! assert_eq!(events.len(), 1);
//! assert_eq!(events[0]["series"]["count"], 100);
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! # What there is
//!
//! - [`Recorder`], made by [`Recorder::builder`]: takes [`Event`]s; cheap to clone. [`RecorderStats`]: what became of them.
//! - [`EventWriter`]: the one task that writes them; [`Flushed`] says what was left at the stop.
//! - [`EventsApi`]: `events.k8s.io/v1`, or `v1` by choice. [`Limits`]: bounds and times.
//! - [`EventSink`]: where they go: a kube client, or a sink of a test, which gets [`Write`]s and answers [`SinkError`]s.
//!
//! # What becomes of an event
//!
//! 1. **Brought to size**: note 1024 bytes, reason, action and instance 128, cut between characters; the event's name and
//!    the controller are made valid. The object's own name is never changed.
//! 2. **Combined**: of events that are alike but for the note, the tenth different one within ten minutes, and later
//!    ones, become one event, `(combined from similar events): …`.
//! 3. **Counted**: an event that equals another one raises its count.
//! 4. **Filtered**: 25 writes about an object and type, and one more in five minutes. What is filtered is still counted.
//! 5. **Written**: one request at a time for an event, several for different ones. A failure is tried again (12 times,
//!    10 s apart), a refusal is not; an event that is gone (they live for an hour) is made anew with its count.
//!
//! In `events.k8s.io/v1` the second occurrence is written as a series; later ones are counted here, and told each half hour
//! or six minutes after the last. In `v1` each one that passes the filter counts the event up.
//!
//! # Costs and caveats
//!
//! - [`Recorder::record`] takes one lock, for O(log n), and awaits nothing. 1000 different events may wait, 4096 are
//!   remembered; everything beyond is dropped and counted.
//! - Events are a help for people, not a log: they may be lost when this process ends by force.
//! - The writer's own requests should not be limited by a client's QPS together with the controller's: give it a client of
//!   its own if that is set.
//!
//! # Other than client-go's
//!
//! | here | there | why |
//! |---|---|---|
//! | the note makes events of `events.k8s.io/v1` different | it does not: later notes are lost | they say what happened |
//! | filter and combining for both APIs | for `v1` only | floods come by either |
//! | 429 and 5xx are tried again | any answer with a status is final | a restart of the API server loses nothing |
//! | names, controller and instance are made valid | the instance is not: 422 | the event would be lost |
//! | several requests at a time, one for each event | one after another, for minutes where one fails | one bad event holds up nobody |
#![forbid(unsafe_code)]

mod body;
mod bounded_map;
mod event;
mod limits;
mod options;
mod outbox;
mod recorder;
mod sink;
mod write;

pub use event::{Event, EventType};
pub use options::{EventsApi, Limits, RecorderStats};
pub use recorder::{EventWriter, Flushed, Recorder, RecorderBuilder};
pub use sink::{EventSink, SinkError};
pub use write::{Write, WriteVerb};

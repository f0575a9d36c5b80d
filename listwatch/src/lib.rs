//! List and watch of a Kubernetes API server with bounded memory: the border between HTTP and an informer.
//!
//! [`ListWatch`] makes one request at a time and says what its answer means: client-go's `ListWatch`, and what lies
//! below it. It is no reflector: what to ask next, when to wait and what to keep is for others to decide
//! (kubewire-informer).
//!
//! ```no_run
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use futures::TryStreamExt;
//! use k8s_openapi::api::core::v1::Pod;
//! use kube_client::Config;
//! use kubewire_indexer::Object;
//! use kubewire_listwatch::{ListOptions, ListWatch, ListerWatcher, WatchEvent, WatchOptions, client_from_config};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let client = client_from_config(Config::infer().await?)?;
//! let pods = ListWatch::<Arc<Pod>>::namespaced(client, "default")
//!     .fields("status.phase!=Succeeded")? // checked here
//!     .drop_managed_fields();
//!
//! // Each pod is handed out as soon as its bytes are there; one that cannot be decoded harms no other.
//! let list = pods
//!     .list(&ListOptions::default(), &mut |pod| match pod {
//!         Ok(pod) => println!("{}", pod.key()),
//!         Err(error) => eprintln!("{error}"),
//!     })
//!     .await?;
//!
//! let minutes = Duration::from_secs(300);
//! let mut events = pods.watch(&WatchOptions::from_version(list.resource_version, minutes)).await?;
//! while let Some(event) = events.try_next().await? {
//!     match event {
//!         WatchEvent::Added(pod) | WatchEvent::Modified(pod) => println!("{} is there", pod.key()),
//!         WatchEvent::Deleted(pod) => println!("{} is gone", pod.key()),
//!         other => println!("{other:?}"),
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # What there is
//!
//! **The seam**, for who lists and watches, and for who fakes it: the trait [`ListerWatcher`], its requests
//! [`ListOptions`] and [`WatchOptions`], its answers [`ListMeta`] and [`WatchEvent`], its failures [`RequestError`]
//! with an [`ErrorClass`] each, and [`ItemError`] for one object among others. [`list_all`] is a whole list at once.
//! That much is there without the feature `client` too, and knows no HTTP.
//!
//! **The real one**: [`ListWatch`], over a `kube_client::Client`. What objects come out as is a type that the user
//! picks:
//!
//! | representation | what it holds | made by |
//! |---|---|---|
//! | `Arc<Pod>` | everything | [`ListWatch::all`], [`ListWatch::namespaced`] |
//! | `Arc<PodBrief>` | the fields of a struct of one's own, which says by `#[derive(Meta)]` what it is read from | the same |
//! | `Arc<PartialObjectMeta<Pod>>` | the metadata, and the server sends no more | the same |
//! | [`Packed<Pod>`](Packed) | everything, as the bytes it came in, decoded by who asks for it | the same |
//! | `Zipped<Pod>` (feature `zstd`) | everything, zipped with a dictionary learned from the first objects | the same |
//! | `Arc<DynamicObject>` | everything, of a resource that is known at run time only | [`ListWatch::dynamic`] |
//! | any struct | what it names, of any resource | [`ListWatch::for_resource`] |
//!
//! [`Encoded`] is what packed and zipped objects have in common, [`HotCache`] keeps those decoded that are asked for again.
//! [`Represented`] is how a representation knows its resource, [`Decode`] how it is read, in a format. A server is not
//! trusted beyond [`Limits`], nor waited for beyond [`Timeouts`].
//!
//! **In JSON or in protobuf**: [`ListWatch::codec`] says what to ask for, [`Json`] (the default), [`Protobuf`] or
//! [`ProtobufOrJson`]; which of them a representation can be read from is checked by the compiler ([`Codec`]).
//! Servers have protobuf of the built-in resources, and of the metadata of all. In it there are:
//!
//! | representation | what it holds | needs |
//! |---|---|---|
//! | [`Packed<Pod>`](Packed) | everything, as its message | |
//! | `Arc<PodTags>` | the fields of a struct of one's own that derives `prost::Message` and `Meta` | feature `prost`, see `messages` |
//! | `Arc<PodMetadata>` | the same with `messages::ObjectMeta` as its one field, for [`ListWatch::metadata_only`] | feature `prost` |
//! | `Arc<Pb<Pod>>` | everything, as a message of k8s-pb | feature `k8s-pb` |
//! | `Packed<Pb<Pod>>` | everything, as its message, which `decode` makes a message of k8s-pb of | feature `k8s-pb` |
//!
//! **A client that suits it**: [`client_from_config`], or [`ClientOptions`] with choices: [`Protocol`] and [`Http2`],
//! gzip, QPS and burst, a user agent. [`ThrottleLayer`] is QPS and burst for any client. A client made by
//! `Client::try_from` works too, but speaks HTTP/1.1 alone, and repeats requests that were answered by 429, 503 and 504
//! behind the scenes, for hours at worst, unless `Config::default_retry` is off.
//!
//! # A fake in ten lines
//!
//! ```
//! use std::sync::Arc;
//!
//! use futures::{StreamExt, stream};
//! use kubewire_indexer::{Meta, ObjectId};
//! use kubewire_listwatch::{
//!     ItemSink, ListMeta, ListOptions, ListerWatcher, RequestError, WatchEvent, WatchOptions, WatchStream,
//! };
//!
//! #[derive(Meta)]
//! struct Order {
//!     metadata: ObjectId,
//! }
//!
//! struct Fake(Vec<Arc<Order>>);
//!
//! impl ListerWatcher for Fake {
//!     type Object = Arc<Order>;
//!     async fn list(&self, _: &ListOptions, each: ItemSink<'_, Arc<Order>>) -> Result<ListMeta, RequestError> {
//!         self.0.iter().for_each(|order| each(Ok(Arc::clone(order))));
//!         Ok(ListMeta::new("1"))
//!     }
//!     async fn watch(&self, _: &WatchOptions) -> Result<WatchStream<Arc<Order>>, RequestError> {
//!         Ok(stream::pending().boxed()) // or stream::iter([Ok(WatchEvent::Added(order))])
//!     }
//! }
//! ```
//!
//! # What an answer means
//!
//! - **Half an answer is none.** A list that ends early, by an orderly close too, is [`ErrorClass::Truncated`], never
//!   a short list; so is a watch that ends within a line. A list whose connection breaks off is an error, and its
//!   items so far count for nothing.
//! - **An error is never an object.** `ERROR` events, a bare `Status`, a `Status` or a `Table` in place of a list,
//!   plain text: each is an error with a class, and ends the stream. What is no event at all ends it too, as it may
//!   have been a change.
//! - **One object is one object.** One that cannot be decoded, is of another kind or has no name is an [`ItemError`]
//!   or a [`WatchEvent::Undecodable`], with its key and version as far as they can be read; the others go on.
//! - Of a value that is skipped (a field that is dropped, or that a struct does not name) no more than brackets and quotes
//!   are looked at: what is wrong there goes unnoticed. What a [`Packed`] keeps is JSON.
//! - Of two fields of one name the last one counts, in every representation.
//! - [`ErrorClass::Truncated`], [`ErrorClass::Transport`] and [`ErrorClass::TimedOut`] of a watch say nothing against
//!   its version: watch again from the last one.
//!
//! # Costs and caveats
//!
//! - A watch holds one piece of the body and one event, a list of up to 1 MiB one piece and one item. Each byte is looked
//!   at once to find where items end, and once to decode them, on the task that polls.
//! - What a list, or a streaming list before its end mark, brings beyond the first MiB is decoded by batches of 256 KiB
//!   (or 1024 items) on the blocking threads of the runtime too, as many at a time, in the whole process, as there are cores
//!   but one, at most 7; a batch for each core used and one that fills are held beside. Order is kept. On one core nothing
//!   is batched. After 256 KiB decoded on a task other tasks have a turn.
//! - Of a relist what the caller holds is not decoded at all: [`ListerWatcher::relist`], as a reflector uses it.
//! - A decoder that panics makes an [`ItemError`].
//! - A watch that its server does not end is ended here, a little after the time it was asked to end at; so a dead
//!   connection costs that time at most. With HTTP/2 pings notice one after 45 s of silence.
//! - With HTTP/2, which is spoken where the server has it, 100 watches share a connection, and more get another. It takes
//!   `rustls-tls`. With HTTP/1.1 each open watch has a connection of its own. What a server that ends a connection has
//!   not begun with is sent anew on another, as by Go's client.
//! - Nothing is compressed unless [`ClientOptions::gzip`] asks for it.
//! - No TLS is chosen for the user: the features `rustls-tls` (with `ring` or `aws-lc-rs`) and `openssl-tls` pass
//!   through to kube-client.
//!
//! # Other names than client-go's
//!
//! | here | there | why |
//! |---|---|---|
//! | [`ListWatch::all`], [`namespaced`](ListWatch::namespaced) | `NewListWatchFromClient` | the type says what is listed |
//! | [`ListWatch::labels`], [`fields`](ListWatch::fields) | `NewFilteredListWatchFromClient` | parsed at once, not at the server |
//! | [`ListWatch::dynamic`], [`ListWatch::metadata_only`] | the dynamic and the metadata client | one type, any representation |
//! | [`ListWatch::named`] | `fields.OneTermEqualSelector("metadata.name", name)` | |
//! | [`ClientOptions`], [`ThrottleLayer`] | `rest.Config`'s `QPS`, `Burst`, `RateLimiter` | a layer for any client |
//! | [`ListerWatcher::supports_watch_list`] | `ToListWatcherWithWatchListSemantics` | a method with a default |
//! | [`ErrorClass`] | `apierrors.IsResourceExpired` … | one answer in place of many questions |
#![forbid(unsafe_code)]

#[cfg(feature = "client")]
mod client;
mod error;
mod event;
mod list_all;
mod lister_watcher;
mod options;
mod relist;

#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub use client::fuzzing;

/// What an object is, its keys and selectors: the crate `kubewire-indexer`.
pub use kubewire_indexer as indexer;

/// The client, in the version that [`ListWatch`] takes.
#[cfg(feature = "client")]
pub use kube_client;

/// Who owns an object, as [`Packed`] and the messages tell it.
#[cfg(feature = "client")]
pub use kubewire_indexer::OwnerReference;

#[cfg(feature = "zstd")]
pub use client::Zipped;
#[cfg(feature = "prost")]
pub use client::messages;
#[cfg(feature = "client")]
pub use client::{
    ClientOptions, Codec, Decode, DecodeOptions, Encoded, HotCache, HotCounts, Http2, Json, Limits, ListWatch, Packed,
    Protobuf, ProtobufOrJson, Protocol, Represented, ThrottleLayer, Throttled, Timeouts, Unpack, client_from_config,
};
#[cfg(feature = "k8s-pb")]
pub use client::{Pb, PbResource};
pub use error::{BoxError, ErrorClass, ItemError, RequestError, Status};
pub use event::{EventKind, ListMeta, WatchEvent};
pub use list_all::list_all;
pub use lister_watcher::{ItemSink, ListerWatcher, WatchStream};
pub use options::{ListOptions, VersionMatch, WatchOptions};
pub use relist::{Held, RelistSink, Relisted};

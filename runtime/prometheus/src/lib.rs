//! The metrics of work queues and informers as series of [`prometheus_client`], with client-go's names, labels and
//! buckets.
//!
//! The queue and the informer know no metrics library: each tells a `MetricsProvider`. [`QueueSeries`] and
//! [`InformerSeries`] are such providers. Who has a manager of `kubewire-controller` needs neither: its registry has them.
//!
#![cfg_attr(all(feature = "informer", feature = "workqueue"), doc = "```")]
#![cfg_attr(not(all(feature = "informer", feature = "workqueue")), doc = "```ignore")]
//! use std::sync::Arc;
//!
//! use kubewire_informer::{InformerName, InformerOptions};
//! use kubewire_prometheus::{InformerSeries, QueueSeries};
//! use kubewire_workqueue::Queue;
//! use prometheus_client::encoding::text::encode;
//! use prometheus_client::registry::Registry;
//!
//! let (queues, informers) = (QueueSeries::new(), InformerSeries::new());
//! let mut registry = Registry::default();
//! queues.register(&mut registry);
//! informers.register(&mut registry);
//!
//! let queue = Queue::builder().name("pods").metrics(Arc::new(queues)).build();
//! let options: InformerOptions<Arc<Pod>> =
//!     InformerOptions::new().informer_name(InformerName::new("pods")?).metrics(Arc::new(informers));
//! # struct Pod;
//! # impl kubewire_informer::indexer::Meta for Pod {
//! #     fn id(&self) -> kubewire_informer::indexer::Id<'_> { unreachable!() }
//! # }
//!
//! queue.add("default/web".to_owned());
//! queue.refresh_metrics(); // Before each text: the gauges of this moment.
//! let mut text = String::new();
//! encode(&mut text, &registry)?;
//! assert!(text.contains("workqueue_depth{name=\"pods\"} 1"));
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! # Features
//!
//! `informer` and `workqueue`, both on; each brings its crate. A program that has queues alone takes
//! `default-features = false, features = ["workqueue"]`.
//!
//! # Costs and caveats
//!
//! - The first value of a series makes it; each later one costs one short lock, a look-up and no allocation.
//! - A series is gone when its queue or informer is, one of a handler when that is removed.
//! - A queue or an informer without a name has no metrics. Two queues of one name share their series, and the first that
//!   goes takes them along: give each a name of its own.
#![forbid(unsafe_code)]

mod families;
#[cfg(feature = "informer")]
mod informer_series;
#[cfg(feature = "workqueue")]
mod queue_series;
mod series;

/// The metrics library, in the version of the registries that these series go into.
pub use prometheus_client;

#[cfg(feature = "informer")]
pub use informer_series::InformerSeries;
#[cfg(feature = "workqueue")]
pub use queue_series::QueueSeries;

//! An in-memory store with named indices, and the objects, keys, selectors and listers that belong to it: what
//! client-go's `tools/cache` has as `Store`, `Indexer`, `ThreadSafeStore` and around them.
//!
//! It is not a cache that fills itself: kubewire-informer keeps an [`Indexer`] up to date with an API server. This
//! crate knows no HTTP and no async, and without its feature `kube` nothing of Kubernetes' types.
//!
//! The smallest complete program, for somebody who has never heard of Kubernetes:
//!
//! ```
//! use std::sync::Arc;
//! use kubewire_indexer::{IndexFunc, Indexers, Store};
//!
//! struct Order { customer: String, articles: Vec<String> }
//!
//! let orders = Store::with_indexers(
//!     Indexers::none()
//!         .with("customer", IndexFunc::one(|order: &Arc<Order>| &order.customer))
//!         .with("article", IndexFunc::many(|order: &Arc<Order>| order.articles.clone())),
//! )?;
//! orders.add(1, Arc::new(Order { customer: "ann".into(), articles: vec!["ink".into(), "pen".into()] }));
//! orders.add(2, Arc::new(Order { customer: "bob".into(), articles: vec!["pen".into()] }));
//!
//! assert_eq!(orders.index_keys("article", "pen")?, [1, 2]);
//! assert_eq!(orders.by_index("customer", "bob")?[0].articles, ["pen"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # In the order in which one meets them
//!
//! - [`Store`]: a thread-safe map with named, multi-valued indices ([`IndexFunc`], [`Indexers`]). It knows no object.
//! - [`ObjectKey`]: `namespace/name`. [`Id`] is what identifies one state of an object: key, uid, version.
//! - [`Object`]: a handle to an object, cheap to clone, as all of kubewire passes it around. It is `Arc<T>` for
//!   every `T:` [`Meta`]: one method that gives the id.
//! - [`ObjectId`], [`LabeledId`] and [`DetailedId`]: what a struct of a few fields has as its `metadata`. [`Represents`] says which
//!   resource such a struct is read from.
//! - [`Indexer`]: a store of objects under their own keys, which remembers the version that it saw last.
//!   [`Change`] is one write of a transaction, [`Deleted`] a deletion that was seen or only concluded.
//! - [`Lister`]: a read-only view, by namespace and by label.
//! - [`LabelSelector`] and [`FieldSelector`]: exactly those of the API.
//! - [`MutationCache`]: reading one's own writes. [`ExpirationCache`], [`UndeltaStore`], [`Transforming`] and [`Heap`]:
//!   stores that expire, that tell full states, that transform what they are given, that hand out the smallest.
//!
//! # Costs and caveats
//!
//! - One readers-writer lock a store, held for a look-up, for the clones of a look-up's results, and for the commit
//!   of a write. A [`List`] is a snapshot that is walked without it, and a replacement is built before it is taken.
//! - User code (index functions, selectors' look-ups, `Drop` of values) runs without the lock, so that it may use
//!   the store. `Eq`, `Hash` and `Clone` of keys and `Clone` of values run under it.
//! - An index function that fails or panics costs its object nothing but its place in that index, see
//!   [`Store::index_failures`]. client-go panics.
//! - An entry costs about 18 bytes beside key and value, and 20 to 40 bytes in each index in which it has one value
//!   (the tables grow by doubling); an index holds each of its values once.
//! - Objects are shared and read-only. Nobody can change one behind the back of an index.
//! - Lists and look-ups by index come in no order; [`Store::index_keys`] is sorted.
//! - Readers, writers and makers of indices are modelled in every interleaving, within bounds, by loom: `tests/loom`.
//!
//! # By client-go's names
//!
//! | client-go | here |
//! |---|---|
//! | `cache.MetaNamespaceKeyFunc(obj)` | [`Object::key`]; [`Indexer::add`] and its kin say when there is no name |
//! | `cache.DeletionHandlingMetaNamespaceKeyFunc(obj)` | [`Deleted::key`] |
//! | `cache.SplitMetaNamespaceKey(key)` | [`split_key`] for a text; [`ObjectKey::namespace`] and [`ObjectKey::name`] |
//! | `cache.ObjectName` | [`ObjectKey`] |
//! | `cache.NewStore`, `NewThreadSafeStore` | [`Store`] for any key and value |
//! | `cache.NewIndexer(keyFunc, indexers)` | [`Indexer::with_indexers`]; the key is the object's own |
//! | `cache.Indexers{NamespaceIndex: MetaNamespaceIndexFunc}` | [`Indexers::by_namespace`] |
//! | `GetByKey("default/web")` | [`Indexer::get_by_key`] with `&key` or `&("default", "web")`: a text is parsed first |
//! | `Index`, `ByIndex`, `IndexKeys`, `ListIndexFuncValues` | [`Indexer::index`], [`by_index`](Indexer::by_index), [`index_keys`](Indexer::index_keys), [`list_index_func_values`](Indexer::list_index_func_values) |
//! | `GetIndexers`, `AddIndexers` | [`Indexer::indexer_names`], [`Indexer::add_indexers`] |
//! | `cache.NewGenericLister`, `ByNamespace` | [`Lister::new`], [`Lister::namespace`] |
//! | `Get` of a lister, with a NotFound error | [`Lister::require`]; [`Lister::get`] gives an `Option` |
//! | `labels.Parse`, `labels.Everything` | `text.parse::<LabelSelector>()`, [`LabelSelector::everything`] |
//! | `fields.ParseSelector` | `text.parse::<FieldSelector>()` |
//! | `cache.NewTTLStore`, `NewUndeltaStore`, `Heap` | [`ExpirationCache`], [`UndeltaStore`], [`Heap`] |
//!
//! # Features
//!
//! - `kube`: every `kube_core::Resource` (typed, dynamic, metadata-only) has [`Meta`].
//! - `serde`: [`ObjectId`], [`LabeledId`] and [`Labels`] are read from JSON, [`ObjectKey`] is read and written as text.
//! - `derive`: `#[derive(Meta)]` for a user's own struct.
#![forbid(unsafe_code)]

mod change;
mod compare_versions;
mod deleted;
mod expiration_cache;
mod heap;
mod index_definition;
mod index_error;
mod index_func;
mod index_table;
mod indexer;
mod indexers;
#[cfg(feature = "kube")]
mod kube;
mod labels;
mod list;
mod lister;
mod mutation_cache;
mod object;
mod object_id;
mod object_key;
mod owner_reference;
mod prepared;
mod resource;
mod selector;
#[cfg(feature = "serde")]
mod serde;
mod slots;
mod state;
mod store;
mod sync;
mod transforming;
mod undelta_store;
mod version;

pub use change::{Change, TransactionError};
pub use compare_versions::compare_versions;
pub use deleted::Deleted;
pub use expiration_cache::{ExpirationCache, Stamped};
pub use hashbrown::Equivalent;
pub use heap::{Heap, HeapClosed};
pub use index_error::{IndexConflict, IndexError, IndexFailure, UnknownIndex};
pub use index_func::{BoxError, IndexFunc, IndexKeyError, IndexValues};
pub use indexer::{Indexer, NAMESPACE_INDEX};
pub use indexers::Indexers;
#[cfg(feature = "derive")]
pub use kubewire_indexer_derive::Meta;
pub use labels::{LabelMap, Labels};
pub use list::{IntoValues, List};
pub use lister::{Lister, NamespaceLister, NotFound};
pub use mutation_cache::{MutationCache, MutationCacheOptions};
pub use object::{Id, Meta, Object};
pub use object_id::{DetailedId, LabeledId, Metadata, ObjectId, Owner};
pub use object_key::{KeyError, ObjectKey, split_key};
pub use owner_reference::OwnerReference;
pub use resource::Represents;
pub use selector::{
    FieldRequirement, FieldSelector, LabelSelector, Operator, Requirement, SelectorError, validate_label_name,
    validate_label_value,
};
pub use store::{Store, Write};
pub use transforming::{Transforming, WriteError};
pub use undelta_store::UndeltaStore;

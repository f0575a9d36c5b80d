//! A cluster, and what is kept of it.

mod cache;
mod cache_options;
mod cached;
#[expect(clippy::module_inception, reason = "the noun of the folder")]
mod cluster;
mod reader;
mod rest_mapper;
mod scopes;

pub use cache::{Cache, Unhealthy, WatchError};
pub use cache_options::{CacheOptions, TypeOptions, Unwatched};
pub use cached::{Cached, ListQuery, ReadError, WaitError};
pub use cluster::Cluster;
pub use reader::Reader;
pub use rest_mapper::{MapError, Mapping, RestMapper};
pub use scopes::ScopeOptions;

//! A cluster, and what is kept of it.

mod cache;
mod cache_options;
mod cached;
#[expect(clippy::module_inception, reason = "the noun of the folder")]
mod cluster;
mod list_query;
mod owner_index;
mod reader;
mod rest_mapper;
mod scopes;

pub use cache::{Cache, Unhealthy, WatchError};
pub use cache_options::{CacheOptions, TypeOptions, Unwatched};
pub use cached::{Cached, ReadError, WaitError};
pub use cluster::Cluster;
pub use list_query::ListQuery;
pub use owner_index::{OWNER_INDEX, controlling_owner};
pub use reader::Reader;
pub use rest_mapper::{MapError, Mapping, RestMapper};
pub use scopes::ScopeOptions;

//! Reads objects from the cache, or from the server.

use std::fmt;

use http::StatusCode;
use kube_client::Client;
use kube_client::api::{GetParams, Request};
use kube_core::{ApiResource, Resource};
use kubewire_listwatch::{Decode, DecodeOptions, Json, ListWatch, Represented, list_all};

use super::cache::is_namespaced;
use super::cache_options::Unwatched;
use super::cached::{Cached, ReadError};
use super::list_query::ListQuery;
use crate::Cache;

/// Reads objects in the representation that is asked for: from the [`Cache`] where they are watched, and as
/// [`CacheOptions::unwatched`](crate::CacheOptions::unwatched) says where not; or always from the server. Cloning gives another
/// handle.
///
/// It waits for a cache that is not synced yet, as long as the caller does. Whoever needs no such thing reads a
/// [`Cached`] at once, without a future.
///
/// What is read from a cache may be older than what was just written, see [`Cached::wait_for_version`]. It is never changed by
/// what this process writes.
#[derive(Clone)]
pub struct Reader {
    client: Client,
    /// `None`: always from the server.
    cache: Option<Cache>,
}

impl Reader {
    /// Reads from the cache, as far as its options say so.
    pub fn cached(client: Client, cache: Cache) -> Self {
        Self { client, cache: Some(cache) }
    }

    /// Reads from the server alone, as controller-runtime's `GetAPIReader`.
    pub fn live(client: Client) -> Self {
        Self { client, cache: None }
    }

    /// The object of this namespace and name; `None` where there is none. For types of cluster scope the namespace does not
    /// count. Cancel-safe.
    ///
    /// # Errors
    /// It is not watched, or the server did not answer well.
    pub async fn get<O>(&self, namespace: &str, name: &str) -> Result<Option<O>, ReadError>
    where
        O: Represented + Decode<Json>,
        O::Resource: Resource<DynamicType = (), Scope: 'static>,
    {
        match self.kept::<O>().await? {
            Some(watched) => watched.get(namespace, name),
            None => self.get_live(namespace, name).await,
        }
    }

    /// The objects that are meant, in no order. Cancel-safe.
    ///
    /// # Errors
    /// As of [`get`](Self::get); and a server knows no index.
    pub async fn list<O>(&self, query: &ListQuery) -> Result<Vec<O>, ReadError>
    where
        O: Represented + Decode<Json>,
        O::Resource: Resource<DynamicType = (), Scope: 'static>,
    {
        match self.kept::<O>().await? {
            Some(watched) => watched.list(query),
            None => self.list_live(query).await,
        }
    }

    /// What is to be read, once it is synced; `None`: the server.
    async fn kept<O>(&self) -> Result<Option<Cached<O>>, ReadError>
    where
        O: Represented + Decode<Json>,
        O::Resource: Resource<DynamicType = (), Scope: 'static>,
    {
        let Some(cache) = self.cache.as_ref().filter(|cache| !cache.is_live::<O>()) else { return Ok(None) };
        let watched = match (cache.cached::<O>(), cache.unwatched()) {
            (Err(ReadError::NotWatched { .. }), Unwatched::Live) => return Ok(None),
            (Err(ReadError::NotWatched { .. }), Unwatched::Watch) => cache.watch::<O>()?,
            (watched, _) => watched?,
        };
        if !cache.is_started() {
            let resource = watched.resource().plural.clone();
            return Err(ReadError::NotStarted { resource });
        }
        if let Err(stopped) = watched.synced().await {
            tracing::debug!(%stopped, "read from what was kept");
        }
        Ok(Some(watched))
    }

    async fn get_live<O>(&self, namespace: &str, name: &str) -> Result<Option<O>, ReadError>
    where
        O: Represented + Decode<Json>,
        O::Resource: Resource<DynamicType = (), Scope: 'static>,
    {
        let namespace = Some(namespace).filter(|_| is_namespaced::<O::Resource>());
        let requests = Request::new(O::Resource::url_path(&(), namespace));
        let parameters = GetParams::default();
        let request = match O::Resource::metadata_api() {
            true => requests.get_metadata(name, &parameters),
            false => requests.get(name, &parameters),
        };
        let answer = self.client.request_text(request.map_err(server)?).await;
        match answer {
            Err(kube_client::Error::Api(status)) if status.code == StatusCode::NOT_FOUND.as_u16() => Ok(None),
            Err(error) => Err(server(error)),
            Ok(text) => O::decode(text.as_bytes(), &DecodeOptions::default()).map(Some).map_err(server),
        }
    }

    async fn list_live<O>(&self, query: &ListQuery) -> Result<Vec<O>, ReadError>
    where
        O: Represented + Decode<Json>,
        O::Resource: Resource<DynamicType = (), Scope: 'static>,
    {
        if !query.indexed.is_empty() {
            let resource = ApiResource::erase::<O::Resource>(&()).plural;
            return Err(ReadError::IndexOfServer { resource });
        }
        let mut list_watch = ListWatch::<O>::all(self.client.clone()).label_selector(&query.labels);
        if is_namespaced::<O::Resource>() {
            list_watch = list_watch.in_namespace(&query.namespace);
        }
        let (mut objects, _) = list_all(&list_watch).await.map_err(server)?;
        objects.truncate(query.limit);
        Ok(objects)
    }
}

fn server(error: impl Into<kubewire_listwatch::BoxError>) -> ReadError {
    ReadError::Server(error.into())
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("cache", &self.cache).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;

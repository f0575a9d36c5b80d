//! Plain requests of JSON: what is not under test goes by none of the types under test.

use std::collections::BTreeMap;
use std::time::Duration;

use http::{Method, Request};
use kube_client::{Client, Error};
use kubewire_indexer::ObjectKey;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::witness::Contents;

/// How long a request may take, or it counts as failed. The server may carry it out later all the same.
const REQUEST_TIME: Duration = Duration::from_secs(15);

#[derive(Debug)]
pub(crate) enum Failure {
    Timeout,
    Answer(Box<Error>),
}

impl Failure {
    /// The status that the server answered with.
    pub(crate) fn code(&self) -> Option<u16> {
        match self {
            Self::Answer(error) => match &**error {
                Error::Api(status) => Some(status.code),
                _ => None,
            },
            Self::Timeout => None,
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Timeout => write!(f, "no answer within {REQUEST_TIME:?}"),
            Self::Answer(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for Failure {}

/// Sends one request; an empty body where there is none.
pub(crate) async fn send<T: DeserializeOwned>(
    client: &Client,
    method: Method,
    path: &str,
    body: Option<&Value>,
) -> Result<T, Failure> {
    let content_type = if method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", content_type)
        .body(body.map(|body| body.to_string().into_bytes()).unwrap_or_default())
        .map_err(|error| Failure::Answer(Box::new(Error::HttpError(error))))?;
    match tokio::time::timeout(REQUEST_TIME, client.request(request)).await {
        Ok(answer) => answer.map_err(|error| Failure::Answer(Box::new(error))),
        Err(_) => Err(Failure::Timeout),
    }
}

pub(crate) async fn post<T: DeserializeOwned>(client: &Client, path: &str, body: &Value) -> Result<T, Failure> {
    send(client, Method::POST, path, Some(body)).await
}

#[derive(Deserialize)]
struct List {
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    namespace: String,
    name: String,
    resource_version: String,
}

/// All pods, as of now: a list without a version is a quorum read.
pub(crate) async fn fresh_list(client: &Client) -> anyhow::Result<Contents> {
    let list: List = send(client, Method::GET, "/api/v1/pods", None).await?;
    let entry = |Item { metadata }: Item| {
        Ok((ObjectKey::new(&metadata.namespace, &metadata.name), metadata.resource_version.parse()?))
    };
    list.items.into_iter().map(entry).collect::<anyhow::Result<BTreeMap<_, _>>>()
}

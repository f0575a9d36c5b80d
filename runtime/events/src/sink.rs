//! Where events go.

use futures::FutureExt;
use futures::future::BoxFuture;
use kube_client::api::{ApiResource, DynamicObject, Patch, PatchParams, PostParams};
use kube_client::core::GroupVersionKind;
use kube_client::{Api, Client, Error};

use crate::{EventsApi, Write, WriteVerb};

/// Writes events. The real one is a [`Client`]; a test takes its own.
pub trait EventSink: Send + Sync + 'static {
    /// Does it. The future is dropped when it takes longer than the recorder waits.
    fn write(&self, write: Write) -> BoxFuture<'_, Result<(), SinkError>>;
}

/// Why an event was not written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SinkError {
    /// The event to be patched is gone: events live for an hour. It is made anew, with its count.
    #[error("the event is gone")]
    NotFound,
    /// An event of that name is there. It gets another name.
    #[error("there is an event of that name")]
    AlreadyExists,
    /// The server would refuse it again. It is dropped.
    #[error("the event was refused, see the cause: may this process create and patch events there?")]
    Refused(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The server could not be reached, or has no time. It is tried again.
    #[error("the event could not be written, see the cause")]
    Failed(#[source] Box<dyn std::error::Error + Send + Sync>),
}

impl EventSink for Client {
    fn write(&self, write: Write) -> BoxFuture<'_, Result<(), SinkError>> {
        let client = self.clone();
        async move {
            let (group, version) = write.api.group_version();
            let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, "Event"), "events");
            let events: Api<DynamicObject> = Api::namespaced_with(client, &write.namespace, &resource);
            let verb = write.verb;
            let result = match verb {
                WriteVerb::Create => {
                    let event = serde_json::from_value(write.body).map_err(|error| SinkError::Refused(error.into()))?;
                    events.create(&PostParams::default(), &event).await
                }
                WriteVerb::Patch => events.patch(&write.name, &PatchParams::default(), &Patch::Merge(write.body)).await,
            };
            result.map(drop).map_err(|error| sink_error(verb, error))
        }
        .boxed()
    }
}

fn sink_error(verb: WriteVerb, error: Error) -> SinkError {
    let Error::Api(status) = &error else { return SinkError::Failed(error.into()) };
    match (status.code, verb) {
        (404, WriteVerb::Patch) => SinkError::NotFound,
        (409, WriteVerb::Create) => SinkError::AlreadyExists,
        (409 | 429 | 500.., _) => SinkError::Failed(error.into()),
        _ => SinkError::Refused(error.into()),
    }
}

impl EventsApi {
    /// Group and version.
    pub const fn group_version(self) -> (&'static str, &'static str) {
        match self {
            Self::EventsV1 => ("events.k8s.io", "v1"),
            Self::CoreV1 => ("", "v1"),
        }
    }

    pub(crate) const fn api_version(self) -> &'static str {
        match self {
            Self::EventsV1 => "events.k8s.io/v1",
            Self::CoreV1 => "v1",
        }
    }
}

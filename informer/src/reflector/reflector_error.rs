//! What can go wrong in a reflector, and never ends it.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kubewire_indexer::ObjectKey;
use kubewire_listwatch::{ErrorClass, ItemError, RequestError};

use crate::AdmitError;

/// Something that went wrong in a reflector: of which resource, and what. The reflector goes on by itself.
///
/// Cheap enough to clone, so that it can be kept as the last error.
#[derive(Clone, Debug)]
pub struct ReflectorError {
    resource: Arc<str>,
    kind: ReflectorErrorKind,
}

/// What went wrong.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReflectorErrorKind {
    /// A list request failed. Asked again after a back-off delay; without a version, at once, where the version
    /// was refused.
    #[error("cannot list: {0}")]
    List(#[source] RequestError),
    /// A watch could not be opened.
    #[error("cannot watch: {0}")]
    Watch(#[source] RequestError),
    /// A watch ended by an error, of the server's or of the connection.
    #[error("the watch ended: {0}")]
    Stream(#[source] RequestError),
    /// The server closed a watch within a second and had sent nothing. A new list follows.
    #[error("the server closed the watch within a second and had sent nothing; is there a proxy that cuts it?")]
    VeryShortWatch,
    /// The list, or the end mark of a streaming list, has no version: no watch can begin there.
    #[error("the list has no resourceVersion, so no watch can follow it; is this really a Kubernetes list?")]
    NoListVersion,
    /// The server gave a continue token a second time: paging would never end.
    #[error("the server gave the same continue token again, so its list never ends")]
    RepeatedToken,
    /// The answer is older than what was asked for, and so than what is cached. It is not taken.
    #[error("the server answered with version {answered}, though one not older than {asked} was asked for")]
    OlderAnswer {
        /// The version asked for.
        asked: String,
        /// The version of the answer.
        answered: String,
    },
    /// The server began a streaming list and did not end it. An ordinary list follows.
    #[error("the server did not mark the end of the initial events; it seems not to support streaming lists")]
    NoEndMark,
    /// A streaming list and an ordinary one at the same version differ; see
    /// [`check_streaming_lists`](super::ReflectorOptions::check_streaming_lists).
    #[error("a streaming list and an ordinary list at version {version} differ, first in {key}")]
    Inconsistent {
        /// The first object that differs.
        key: ObjectKey,
        /// The version of both.
        version: String,
    },
    /// An object of a list or an event could not be decoded. It is skipped; what is cached under its key stays.
    #[error("skipped an object that cannot be decoded: {0}")]
    Item(#[source] ItemError),
    /// The store did not take an object: it has no name, or its transform failed. It is skipped; what is cached
    /// under its key stays.
    #[error("skipped an object: {0}")]
    NotTaken(#[source] AdmitError),
    /// An event of a type that is not known was skipped.
    #[error("skipped a watch event of the unknown type {0:?}")]
    UnknownEvent(String),
}

impl ReflectorError {
    pub(crate) fn new(resource: Arc<str>, kind: ReflectorErrorKind) -> Self {
        Self { resource, kind }
    }

    /// What was listed or watched, as the lister-watcher names it.
    pub fn resource(&self) -> &str {
        &self.resource
    }

    /// What went wrong.
    pub fn kind(&self) -> &ReflectorErrorKind {
        &self.kind
    }

    /// The class of the failure.
    pub fn class(&self) -> ErrorClass {
        self.kind.class()
    }
}

impl fmt::Display for ReflectorError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.resource, self.kind)
    }
}

impl std::error::Error for ReflectorError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.kind.source()
    }
}

impl ReflectorErrorKind {
    /// The class of the failure.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::List(error) | Self::Watch(error) | Self::Stream(error) => error.class(),
            Self::VeryShortWatch | Self::NoEndMark => ErrorClass::Truncated,
            Self::NoListVersion | Self::RepeatedToken | Self::Item(_) | Self::UnknownEvent(_) => ErrorClass::Decode,
            Self::OlderAnswer { .. } => ErrorClass::Unavailable,
            Self::NotTaken(_) | Self::Inconsistent { .. } => ErrorClass::Other,
        }
    }

    /// When the server wants to be asked again, where it said so.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::List(error) | Self::Watch(error) | Self::Stream(error) => error.retry_after(),
            _ => None,
        }
    }

    /// The failure of a request, if that is what it was.
    pub fn request_error(&self) -> Option<&RequestError> {
        match self {
            Self::List(error) | Self::Watch(error) | Self::Stream(error) => Some(error),
            _ => None,
        }
    }

    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        std::error::Error::source(self)
    }
}

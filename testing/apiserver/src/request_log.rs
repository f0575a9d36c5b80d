//! What was asked, for tests to look at.

use std::collections::VecDeque;

use http::{HeaderMap, Method};
use tokio::time::Instant;

use crate::route::Query;
use crate::{ResourceName, Verb};

/// One request that the server got, also where a fault answered it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RecordedRequest {
    /// When it came; on tokio's clock, so that a paused clock shows.
    pub at: Instant,
    /// The number of the connection; `None` in process.
    pub connection: Option<u64>,
    /// The method.
    pub method: Method,
    /// The path, as it came.
    pub path: String,
    /// The parameters.
    pub query: Query,
    /// The headers.
    pub headers: HeaderMap,
    /// What it does; `None` where it is no request for objects.
    pub verb: Option<Verb>,
    /// Of what; `None` where it is no request for objects.
    pub resource: Option<ResourceName>,
}

/// The latest requests.
#[derive(Debug, Default)]
pub(crate) struct RequestLog(VecDeque<RecordedRequest>);

/// Older ones are forgotten.
const LEN_MAX: usize = 100_000;

impl RequestLog {
    pub(crate) fn push(&mut self, request: RecordedRequest) {
        if self.0.len() == LEN_MAX {
            self.0.pop_front();
        }
        self.0.push_back(request);
    }

    pub(crate) fn snapshot(&self) -> Vec<RecordedRequest> {
        self.0.iter().cloned().collect()
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

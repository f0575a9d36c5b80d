//! The server as a tower service, in process.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Buf, Bytes};
use http::{Request, Response};
use http_body::Body;
use http_body_util::{BodyExt, LengthLimitError, Limited};

use crate::body::{BoxError, ResponseBody};
use crate::server::ApiServer;
use crate::{Status, handler};

/// The longest request body that is read, as in the real server.
pub(crate) const BODY_LEN_MAX: usize = 3 * 1024 * 1024;

/// The server without a network: `Client::new(server.service(), "default")`.
///
/// It keeps the server alive. Always ready; clones share the server.
#[derive(Clone, Debug)]
pub struct InProcess {
    pub(crate) server: ApiServer,
}

impl<B> tower::Service<Request<B>> for InProcess
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    type Response = Response<ResponseBody>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    /// Answers a request. Cancel-safe: a dropped future has written all or nothing.
    fn call(&mut self, request: Request<B>) -> Self::Future {
        let inner = self.server.inner().clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            handler::answer(&inner, parts, None, move || read(body)).await
        })
    }
}

/// Reads a body up to the limit.
pub(crate) async fn read<B>(body: B) -> Result<Bytes, Status>
where
    B: Body + Send,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    let collected = Limited::new(body, BODY_LEN_MAX).collect().await.map_err(|error| {
        if error.is::<LengthLimitError>() {
            return Status::too_large(BODY_LEN_MAX);
        }
        Status::bad_request(format!("cannot read the body: {error}"))
    })?;
    let mut buffer = collected.aggregate();
    let len = buffer.remaining();
    Ok(buffer.copy_to_bytes(len))
}

//! Requests on connections, of HTTP/1.1 or HTTP/2.

use std::task::{Context, Poll};

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::header::UPGRADE;
use http::{Request, Response, Uri};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper_util::client::legacy;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube_client::client::Body;
use tower::Service;

use crate::client::http2::Http2;
use crate::client::shared_connections::{Connector, Sent, SharedConnections};
use crate::{BoxError, Protocol};

/// The body of an answer, of any transport.
pub(crate) type AnswerBody = UnsyncBoxBody<Bytes, BoxError>;

/// Sends requests to one server. Those that shall become something else (`Upgrade`: exec, attach, port-forward) go by
/// HTTP/1.1, which alone knows that.
pub(crate) struct HttpService<C: Connector> {
    http1: legacy::Client<FirstUnused<C>, Body>,
    http2: Option<SharedConnections<C>>,
}

impl<C: Connector> HttpService<C> {
    /// By HTTP/1.1.
    pub(crate) fn http1(connector: C) -> Self {
        Self { http1: http1(FirstUnused { connector, connections: None }), http2: None }
    }

    /// By HTTP/2: over connections by `h2`, which offers it, or which are of it. By HTTP/1.1, over connections by
    /// `http1`, where it is not taken.
    pub(crate) fn http2(http1_connector: C, h2: C, server: Uri, protocol: Protocol, http2: Http2) -> Self {
        let connections = SharedConnections::new(h2, server, protocol, http2);
        let connector = FirstUnused { connector: http1_connector, connections: Some(connections.clone()) };
        Self { http1: http1(connector), http2: Some(connections) }
    }
}

fn http1<C: Connector>(connector: FirstUnused<C>) -> legacy::Client<FirstUnused<C>, Body> {
    legacy::Client::builder(TokioExecutor::new()).pool_timer(TokioTimer::new()).build(connector)
}

impl<C: Connector> Service<Request<Body>> for HttpService<C> {
    type Response = Response<AnswerBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<AnswerBody>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let Self { http1, http2 } = self.clone();
        async move {
            let request = match http2 {
                Some(connections) if !request.headers().contains_key(UPGRADE) => {
                    match connections.send(request).await? {
                        Sent::Answered(response) => return Ok(response),
                        Sent::Http1(request) => request,
                    }
                }
                _ => request,
            };
            let response = http1.request(request).await?;
            Ok(response.map(|body| body.map_err(BoxError::from).boxed_unsync()))
        }
        .boxed()
    }
}

impl<C: Connector> Clone for HttpService<C> {
    fn clone(&self) -> Self {
        Self { http1: self.http1.clone(), http2: self.http2.clone() }
    }
}

/// Connections of HTTP/1.1: first the one that was made to learn that it is spoken, then new ones.
struct FirstUnused<C: Connector> {
    connector: C,
    connections: Option<SharedConnections<C>>,
}

impl<C: Connector> Service<Uri> for FirstUnused<C> {
    type Response = C::Io;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<C::Io, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.connector.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        if let Some(io) = self.connections.as_ref().and_then(SharedConnections::take_unused) {
            return futures::future::ready(Ok(io)).boxed();
        }
        let connecting = self.connector.call(server);
        async move { connecting.await.map_err(Into::into) }.boxed()
    }
}

impl<C: Connector> Clone for FirstUnused<C> {
    fn clone(&self) -> Self {
        Self { connector: self.connector.clone(), connections: self.connections.clone() }
    }
}

//! A server that is a file, or bytes: it answers each list with them, and its watches say nothing.

use std::convert::Infallible;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use kube_client::Client;
use kube_client::client::Body;
use tower::service_fn;

use crate::representation::Wire;

/// The pieces in which a body comes: as large as a connection reads at once.
const CHUNK_LEN: usize = 64 * 1024;

/// Where the body of a list is.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    /// Held already.
    Bytes(Bytes),
    /// Read as it is asked for, as from a connection.
    File(PathBuf),
}

type Frames = BoxStream<'static, io::Result<Frame<Bytes>>>;

/// A client of such a server.
pub(crate) fn client(source: Source, wire: Wire) -> Client {
    let answer = move |request: Request<Body>| {
        let is_watch = request.uri().query().is_some_and(|query| query.contains("watch="));
        let frames = if is_watch { stream::pending().boxed() } else { frames(source.clone()) };
        let mut response = Response::new(StreamBody::new(frames));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(wire.media_type()));
        async move { Ok::<_, Infallible>(response) }
    };
    Client::new(service_fn(answer), "default")
}

fn frames(source: Source) -> Frames {
    match source {
        Source::Bytes(bytes) => {
            let starts = (0..bytes.len()).step_by(CHUNK_LEN);
            let chunks: Vec<_> = starts.map(|start| bytes.slice(start..(start + CHUNK_LEN).min(bytes.len()))).collect();
            stream::iter(chunks.into_iter().map(|chunk| Ok(Frame::data(chunk)))).boxed()
        }
        Source::File(path) => {
            let mut file = File::open(path);
            let read = move || -> io::Result<Option<Frame<Bytes>>> {
                let file = file.as_mut().map_err(|error| io::Error::from(error.kind()))?;
                let mut chunk = vec![0; CHUNK_LEN];
                let len = file.read(&mut chunk)?;
                chunk.truncate(len);
                Ok((len > 0).then(|| Frame::data(chunk.into())))
            };
            stream::iter(std::iter::from_fn({
                let mut read = read;
                move || read().transpose()
            }))
            .boxed()
        }
    }
}

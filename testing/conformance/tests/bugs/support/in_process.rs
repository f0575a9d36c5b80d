//! The scripted server behind a kube client without any socket, so that time can be paused.

use std::io::{Error, ErrorKind};

use bytes::Bytes;
use futures::stream;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use kube_client::Client;
use kube_client::client::Body;
use kubewire_conformance::wire::{Answer, Part, Server};

/// A client whose requests the server answers.
pub(crate) fn in_process(server: &Server) -> Client {
    let server = server.clone();
    let service = tower::service_fn(move |request: Request<Body>| {
        let target = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
        let headers = request.headers().iter();
        let headers = headers.map(|(name, value)| (name.to_string(), value.to_str().unwrap_or_default().to_owned()));
        let answer = server.answer(0, request.method().as_str(), &target, headers.collect());
        respond(answer)
    });
    Client::new(service, "default")
}

async fn respond(
    mut answer: Answer,
) -> Result<Response<StreamBody<impl futures::Stream<Item = Frames> + Send>>, Error> {
    let Some(status) = answer.status else {
        return Err(match answer.next().await {
            Part::Refused => ErrorKind::ConnectionRefused.into(),
            Part::Reset => ErrorKind::ConnectionReset.into(),
            Part::Dead => std::future::pending().await,
            _ => ErrorKind::UnexpectedEof.into(),
        });
    };
    let mut response = Response::builder().status(status);
    for (name, value) in &answer.headers {
        response = response.header(name, value);
    }
    let body = stream::unfold(Some(answer), |answer| async {
        let mut answer = answer?;
        match answer.next().await {
            Part::Bytes(bytes) => Some((Ok(Frame::data(Bytes::from(bytes))), Some(answer))),
            Part::End => None,
            Part::Reset => Some((Err(ErrorKind::ConnectionReset.into()), None)),
            Part::Cut | Part::Refused => Some((Err(ErrorKind::UnexpectedEof.into()), None)),
            Part::Dead => std::future::pending().await,
        }
    });
    Ok(response.body(StreamBody::new(body)).expect("the script's headers are good"))
}

type Frames = Result<Frame<Bytes>, Error>;

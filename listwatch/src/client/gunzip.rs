//! Answers that travel compressed (gzip), unpacked as they come.

use std::io::{self, ErrorKind, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use flate2::write::MultiGzDecoder;
use futures::FutureExt;
use futures::future::BoxFuture;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH};
use http::{HeaderValue, Request, Response};
use http_body::{Body, Frame};
use tower::{Layer, Service};

use crate::BoxError;

/// Asks for gzip, whatever the request says of it, and unpacks the answers that come so.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GzipLayer;

impl<S> Layer<S> for GzipLayer {
    type Service = Gzip<S>;

    fn layer(&self, inner: S) -> Gzip<S> {
        Gzip(inner)
    }
}

/// The service of a [`GzipLayer`].
#[derive(Clone, Debug)]
pub(crate) struct Gzip<S>(S);

impl<S, Q, B> Service<Request<Q>> for Gzip<S>
where
    S: Service<Request<Q>, Response = Response<B>, Future: Send + 'static>,
    B: Send + 'static,
{
    type Response = Response<Unpacked<B>>;
    type Error = S::Error;
    type Future = BoxFuture<'static, Result<Self::Response, S::Error>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, mut request: Request<Q>) -> Self::Future {
        request.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        let answer = self.0.call(request);
        async move { answer.await.map(unpacked) }.boxed()
    }
}

fn unpacked<B>(response: Response<B>) -> Response<Unpacked<B>> {
    let is_packed = response.headers().get(CONTENT_ENCODING).is_some_and(|encoding| encoding == "gzip");
    let (mut parts, body) = response.into_parts();
    if is_packed {
        parts.headers.remove(CONTENT_ENCODING);
        parts.headers.remove(CONTENT_LENGTH);
    }
    let state = if is_packed { State::Packed(Box::default()) } else { State::Plain };
    Response::from_parts(parts, Unpacked { body, state })
}

/// A body, unpacked where it came packed.
#[derive(Debug)]
pub(crate) struct Unpacked<B> {
    body: B,
    state: State,
}

#[derive(Debug)]
enum State {
    Plain,
    Packed(Box<Gunzip>),
    /// A packed one has ended, or failed.
    Over,
}

impl<B: Body<Data = Bytes, Error: Into<BoxError>> + Unpin> Body for Unpacked<B> {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Self { body, state } = &mut *self;
        let gunzip = match state {
            State::Plain => return Pin::new(body).poll_frame(cx).map_err(Into::into),
            State::Packed(gunzip) => gunzip,
            State::Over => return Poll::Ready(None),
        };
        let result = loop {
            match gunzip.piece() {
                Ok(Some(piece)) => return Poll::Ready(Some(Ok(Frame::data(piece)))),
                Ok(None) => {}
                Err(error) => break Err(error.into()),
            }
            match ready!(Pin::new(&mut *body).poll_frame(cx)) {
                // Trailers say nothing that anybody reads.
                Some(Ok(frame)) => gunzip.push(frame.into_data().unwrap_or_default()),
                Some(Err(error)) => break Err(error.into()),
                None => break gunzip.finish().map_err(Into::into),
            }
        };
        *state = State::Over;
        match result {
            Ok(rest) if rest.is_empty() => Poll::Ready(None),
            result => Poll::Ready(Some(result.map(Frame::data))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self.state {
            State::Plain => self.body.is_end_stream(),
            State::Packed(_) => false,
            State::Over => true,
        }
    }
}

/// PURE. Unpacks members of gzip, one after the other, from input that was cut anywhere: API servers pack each event of
/// a watch by itself. Holds one piece of input, and [`PIECE_LEN`] of output or a little more, however small the input
/// is that it comes from.
#[derive(Debug)]
struct Gunzip {
    decoder: MultiGzDecoder<Vec<u8>>,
    input: Bytes,
    /// Whether there was any input: none at all is an empty body.
    began: bool,
}

/// About so much is given out at once.
const PIECE_LEN: usize = 32 << 10;

impl Gunzip {
    /// To be called when there is no further [`piece`](Self::piece).
    fn push(&mut self, input: Bytes) {
        debug_assert!(self.input.is_empty(), "the piece before is used up");
        self.began |= !input.is_empty();
        self.input = input;
    }

    /// What can be unpacked from the input so far; `None` when that is used up.
    fn piece(&mut self) -> io::Result<Option<Bytes>> {
        while !self.input.is_empty() {
            // One step of the decoder gives out 32 KiB at most.
            let used = self.decoder.write(&self.input).map_err(no_gzip)?;
            if used == 0 {
                return Err(no_gzip("it goes on after its end"));
            }
            self.input.advance(used);
            if self.input.is_empty() {
                self.decoder.flush().map_err(no_gzip)?;
            }
            if self.decoder.get_ref().len() >= PIECE_LEN || self.input.is_empty() {
                let piece = std::mem::take(self.decoder.get_mut());
                if !piece.is_empty() {
                    return Ok(Some(piece.into()));
                }
            }
        }
        Ok(None)
    }

    /// The body has ended: what was left to give out, if it was whole.
    fn finish(&mut self) -> io::Result<Bytes> {
        if self.began {
            let cut =
                |error| io::Error::new(ErrorKind::UnexpectedEof, format!("the gzip stream is not whole: {error}"));
            self.decoder.try_finish().map_err(cut)?;
        }
        Ok(std::mem::take(self.decoder.get_mut()).into())
    }
}

impl Default for Gunzip {
    fn default() -> Self {
        Self { decoder: MultiGzDecoder::new(Vec::new()), input: Bytes::new(), began: false }
    }
}

fn no_gzip(error: impl std::fmt::Display) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, format!("the answer says it is gzip, but: {error}"))
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;

    use super::*;

    fn member(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    /// All that comes of these pieces of input, and how it ends.
    fn unpack(pieces: impl IntoIterator<Item = Vec<u8>>) -> (Vec<u8>, Option<ErrorKind>) {
        let (mut gunzip, mut text) = (Gunzip::default(), Vec::new());
        for piece in pieces {
            gunzip.push(piece.into());
            loop {
                match gunzip.piece() {
                    Ok(Some(piece)) => text.extend_from_slice(&piece),
                    Ok(None) => break,
                    Err(error) => return (text, Some(error.kind())),
                }
            }
        }
        match gunzip.finish() {
            Ok(rest) => text.extend_from_slice(&rest),
            Err(error) => return (text, Some(error.kind())),
        }
        (text, None)
    }

    #[test]
    fn an_event_comes_out_as_soon_as_its_member_is_there() {
        let mut gunzip = Gunzip::default();
        for event in ["one\n", "two\n", "three\n"] {
            gunzip.push(member(event.as_bytes()).into());
            assert_eq!(gunzip.piece().unwrap().unwrap(), event);
            assert!(gunzip.piece().unwrap().is_none());
        }
        assert!(gunzip.finish().unwrap().is_empty());
    }

    #[test]
    fn a_flushed_event_comes_out_before_its_member_ends() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        let mut gunzip = Gunzip::default();
        for event in ["one\n", "two\n"] {
            encoder.write_all(event.as_bytes()).unwrap();
            encoder.flush().unwrap();
            gunzip.push(std::mem::take(encoder.get_mut()).into());
            assert_eq!(gunzip.piece().unwrap().unwrap(), event);
        }
        assert_eq!(gunzip.finish().unwrap_err().kind(), ErrorKind::UnexpectedEof, "its end is missing");
    }

    #[test]
    fn a_bomb_comes_out_in_small_pieces() {
        const LEN: usize = 8 << 20;
        let bomb = member(&vec![0; LEN]);
        assert!(bomb.len() < 10_000);
        let mut gunzip = Gunzip::default();
        gunzip.push(bomb.into());
        let mut len = 0;
        while let Some(piece) = gunzip.piece().unwrap() {
            assert!(piece.len() <= 4 * PIECE_LEN, "{}", piece.len());
            len += piece.len();
        }
        assert_eq!(len + gunzip.finish().unwrap().len(), LEN);
    }

    #[test]
    fn what_is_no_gzip_or_no_whole_one_is_an_error_and_nothing_at_all_is_an_empty_body() {
        let whole = member(b"{\"items\":[]}");
        let mut wrong_sum = whole.clone();
        *wrong_sum.iter_mut().nth_back(6).unwrap() ^= 1;
        assert_eq!(unpack([vec![]]), (vec![], None));
        assert_eq!(unpack([b"{\"items\":[]}".to_vec()]).1, Some(ErrorKind::InvalidData));
        assert_eq!(unpack([[&whole[..], b"junk of some length"].concat()]).1, Some(ErrorKind::InvalidData));
        assert!(unpack([wrong_sum]).1.is_some());
        for len in 1..whole.len() {
            assert_eq!(unpack([whole[..len].to_vec()]).1, Some(ErrorKind::UnexpectedEof), "{len}");
        }
    }

    proptest! {
        #[test]
        fn members_cut_at_any_byte_give_the_same_text(
            texts in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 1..6),
            piece_len in 1..40_usize,
        ) {
            let packed: Vec<u8> = texts.iter().flat_map(|text| member(text)).collect();
            let pieces = packed.chunks(piece_len).map(<[u8]>::to_vec);
            prop_assert_eq!(unpack(pieces), (texts.concat(), None));
        }
    }
}

//! PURE. Cuts the body of a watch in protobuf into frames: four bytes of length, the highest first, then so many.

use bytes::Bytes;

use crate::client::protobuf::envelope::MAGIC;

/// A buffer larger than this is given back after the frame that needed it.
const KEPT_CAPACITY: usize = 64 << 10;

/// Cuts bytes into frames, whatever the chunks.
///
/// Used as the splitter for lines is: [`push`](Self::push) a chunk, [`next_frame`](Self::next_frame) until there is
/// none, the next chunk; [`is_whole`](Self::is_whole) tells whether the end was one.
///
/// Invariants:
/// 1. Of a frame no byte is looked at.
/// 2. At most one chunk and one frame are held, and of a frame no more than has come.
/// 3. What comes out does not depend on where the chunks were cut.
#[derive(Debug)]
pub(crate) struct FrameSplitter {
    frame_len_max: usize,
    /// What was not taken.
    chunk: Bytes,
    /// So many bytes of the length were there.
    length: [u8; 4],
    length_len: usize,
    /// Bytes of the present frame that are still to come; `None` before its length is known.
    left: Option<usize>,
    /// The beginning of a frame that an earlier chunk ended in; or a whole one, while it is lent out.
    carry: Vec<u8>,
    /// `carry` was lent out and is to be cleared.
    lent: bool,
    /// The last frame that lay within one chunk.
    frame: Bytes,
}

/// Why a body is no watch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    #[error("an event is longer than the limit of {limit} bytes; raise `Limits::line`")]
    TooLong { limit: usize },
    #[error("one object came where a watch was asked for")]
    NoFrame,
}

impl FrameSplitter {
    /// A splitter that takes frames up to this length.
    pub(crate) fn new(frame_len_max: usize) -> Self {
        Self {
            frame_len_max,
            chunk: Bytes::new(),
            length: [0; 4],
            length_len: 0,
            left: None,
            carry: Vec::new(),
            lent: false,
            frame: Bytes::new(),
        }
    }

    /// Feeds a chunk; the one before must be used up.
    pub(crate) fn push(&mut self, chunk: Bytes) {
        debug_assert!(self.chunk.is_empty(), "take all frames of a chunk before the next one");
        self.chunk = chunk;
    }

    /// The next frame; `None` where the chunk holds no further end of one.
    pub(crate) fn next_frame(&mut self) -> Result<Option<&[u8]>, FrameError> {
        if self.lent {
            self.lent = false;
            self.carry.clear();
            self.carry.shrink_to(KEPT_CAPACITY);
        }
        self.frame.clear();
        let Some(left) = self.length()? else { return Ok(None) };
        if self.chunk.len() < left {
            self.left = Some(left - self.chunk.len());
            self.carry.extend_from_slice(&self.chunk);
            self.chunk.clear();
            return Ok(None);
        }
        self.left = None;
        self.frame = self.chunk.split_to(left);
        self.lent = !self.carry.is_empty();
        if self.lent {
            self.carry.extend_from_slice(&self.frame);
            return Ok(Some(&self.carry));
        }
        Ok(Some(&self.frame))
    }

    /// Whether the bytes so far end with a frame.
    pub(crate) fn is_whole(&self) -> bool {
        self.length_len == 0 && self.left.is_none()
    }

    /// Bytes held beside the chunk.
    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        self.carry.capacity()
    }

    /// How many bytes are to come of the present frame, once that is known.
    fn length(&mut self) -> Result<Option<usize>, FrameError> {
        if self.left.is_some() {
            return Ok(self.left);
        }
        let taken = (self.length.len() - self.length_len).min(self.chunk.len());
        let bytes = self.chunk.split_to(taken);
        self.length[self.length_len..self.length_len + taken].copy_from_slice(&bytes);
        self.length_len += taken;
        if self.length_len < self.length.len() {
            return Ok(None);
        }
        self.length_len = 0;
        if self.length == MAGIC {
            return Err(FrameError::NoFrame);
        }
        match usize::try_from(u32::from_be_bytes(self.length)) {
            Ok(len) if len <= self.frame_len_max => Ok(Some(len)),
            _ => Err(FrameError::TooLong { limit: self.frame_len_max }),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn body(frames: &[&[u8]]) -> Vec<u8> {
        frames.iter().flat_map(|frame| [&(frame.len() as u32).to_be_bytes()[..], frame].concat()).collect()
    }

    /// The frames of a body, whether it ended with one, and the error, when it comes in chunks of this length.
    fn split(body: &[u8], chunk: usize, limit: usize) -> (Vec<Vec<u8>>, Result<bool, FrameError>) {
        let mut splitter = FrameSplitter::new(limit);
        let mut frames = Vec::new();
        for chunk in body.chunks(chunk) {
            splitter.push(Bytes::copy_from_slice(chunk));
            loop {
                match splitter.next_frame() {
                    Ok(Some(frame)) => frames.push(frame.to_vec()),
                    Ok(None) => break,
                    Err(error) => return (frames, Err(error)),
                }
            }
        }
        let whole = splitter.is_whole();
        (frames, Ok(whole))
    }

    #[test]
    fn frames_come_as_they_went_empty_ones_too() {
        let frames: [&[u8]; 4] = [b"abc", b"", b"d", b"\0\0\0\x01"];
        let body = body(&frames);
        for chunk in 1..=body.len() {
            assert_eq!(split(&body, chunk, 4), (frames.iter().map(|frame| frame.to_vec()).collect(), Ok(true)));
        }
    }

    #[test]
    fn an_end_within_a_frame_or_its_length_is_no_whole_one() {
        let body = body(&[b"abc", b"defg"]);
        for len in 0..=body.len() {
            let (frames, whole) = split(&body[..len], 3, 10);
            assert_eq!(
                (frames.len(), whole),
                (usize::from(len >= 7) + usize::from(len >= 15), Ok([0, 7, 15].contains(&len))),
                "{len}"
            );
        }
    }

    #[test]
    fn a_frame_over_the_limit_and_an_object_without_frames_are_refused() {
        for chunk in [1, 3, 100] {
            assert_eq!(
                split(&body(&[b"ab", b"abc"]), chunk, 2),
                (vec![b"ab".to_vec()], Err(FrameError::TooLong { limit: 2 }))
            );
            assert_eq!(split(b"\xff\xff\xff\xff", chunk, 2).1, Err(FrameError::TooLong { limit: 2 }));
            assert_eq!(split(b"k8s\0\x0a\x00", chunk, usize::MAX).1, Err(FrameError::NoFrame));
        }
    }

    #[test]
    fn of_a_long_frame_no_more_is_held_than_has_come_and_it_is_given_back() {
        let mut splitter = FrameSplitter::new(16 << 20);
        splitter.push(Bytes::from_static(b"\x00\x30\x00\x00"));
        assert_eq!(splitter.next_frame(), Ok(None));
        assert_eq!(splitter.held(), 0);
        for sent in 1..=3 << 10 {
            splitter.push(Bytes::from(vec![b'x'; 1024]));
            let len = splitter.next_frame().unwrap().map(<[u8]>::len);
            assert_eq!(len, (sent == 3 << 10).then_some(3 << 20));
            assert!(splitter.held() <= 2 * 1024 * sent);
        }
        splitter.push(Bytes::from_static(b"\0\0\0\x01x"));
        assert_eq!(splitter.next_frame().unwrap(), Some(&b"x"[..]));
        assert!(splitter.held() <= KEPT_CAPACITY);
    }

    proptest! {
        #[test]
        fn the_chunks_make_no_difference(
            body in proptest::collection::vec(proptest::sample::select(b"\0\0\0\0\x01\x02\x05ab".to_vec()), 0..60),
            chunk in 1usize..20,
        ) {
            prop_assert_eq!(split(&body, chunk, 5), split(&body, usize::MAX, 5));
        }
    }
}

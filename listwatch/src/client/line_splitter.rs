//! PURE. Cuts the body of a watch into lines.

use bytes::Bytes;

/// A buffer larger than this is given back after the line that needed it.
const KEPT_CAPACITY: usize = 64 << 10;

/// Cuts bytes at newlines, whatever the chunks. Blank lines are left out, a carriage return at the end of a line too.
///
/// Feed one chunk with [`push`](Self::push), take lines with [`next_line`](Self::next_line) until there is none,
/// feed the next; what is left at the end is the [`rest`](Self::rest).
///
/// Invariants:
/// 1. Each byte is looked at once.
/// 2. At most one chunk and one line are held.
/// 3. What comes out does not depend on where the chunks were cut.
#[derive(Debug)]
pub(crate) struct LineSplitter {
    line_len_max: usize,
    /// What was not looked at.
    chunk: Bytes,
    /// The beginning of a line that an earlier chunk ended in; or a whole one, while it is lent out.
    carry: Vec<u8>,
    /// `carry` was lent out and is to be cleared.
    lent: bool,
    /// The last line that lay within one chunk.
    line: Bytes,
}

/// A line is longer than the limit.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a line is longer than the limit of {limit} bytes; raise `Limits::line`")]
pub(crate) struct LineTooLong {
    limit: usize,
}

impl LineSplitter {
    /// A splitter that takes lines up to this length.
    pub(crate) fn new(line_len_max: usize) -> Self {
        Self { line_len_max, chunk: Bytes::new(), carry: Vec::new(), lent: false, line: Bytes::new() }
    }

    /// Feeds a chunk; the one before must be used up.
    pub(crate) fn push(&mut self, chunk: Bytes) {
        debug_assert!(self.chunk.is_empty(), "take all lines of a chunk before the next one");
        self.chunk = chunk;
    }

    /// The next line that is not blank, without its end; `None` where the chunk holds no further end of one.
    pub(crate) fn next_line(&mut self) -> Result<Option<&[u8]>, LineTooLong> {
        loop {
            if self.lent {
                self.lent = false;
                self.carry.clear();
                self.carry.shrink_to(KEPT_CAPACITY);
            }
            self.line.clear();
            let end = memchr::memchr(b'\n', &self.chunk);
            let len = end.unwrap_or(self.chunk.len());
            if self.carry.len() + len > self.line_len_max {
                return Err(LineTooLong { limit: self.line_len_max });
            }
            let Some(len) = end else {
                self.carry.extend_from_slice(&self.chunk);
                self.chunk.clear();
                return Ok(None);
            };
            self.line = self.chunk.split_to(len + 1);
            self.lent = !self.carry.is_empty();
            if self.lent {
                self.carry.extend_from_slice(&self.line[..len]);
            }
            // A second look at the line, as the first may not borrow across the loop.
            if !self.present().is_empty() {
                return Ok(Some(self.present()));
            }
        }
    }

    /// What came after the last newline; empty where it is blank.
    pub(crate) fn rest(&self) -> &[u8] {
        if self.lent { &[] } else { self.carry.trim_ascii() }
    }

    /// Bytes held beside the chunk.
    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        self.carry.capacity()
    }

    fn present(&self) -> &[u8] {
        if self.lent { self.carry.trim_ascii() } else { self.line.trim_ascii() }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The lines of a body, its rest, and whether a line was too long, when it comes in chunks of this length.
    fn split(body: &[u8], chunk: usize, limit: usize) -> (Vec<Vec<u8>>, Vec<u8>, bool) {
        let mut splitter = LineSplitter::new(limit);
        let mut lines = Vec::new();
        for chunk in body.chunks(chunk) {
            splitter.push(Bytes::copy_from_slice(chunk));
            loop {
                match splitter.next_line() {
                    Ok(Some(line)) => lines.push(line.to_vec()),
                    Ok(None) => break,
                    Err(_) => return (lines, Vec::new(), true),
                }
            }
        }
        (lines, splitter.rest().to_vec(), false)
    }

    #[test]
    fn lines_come_without_their_ends_and_blank_ones_not_at_all() {
        let body = b"a\r\n\n  \n\r\nbc\n\xc3\xa9\n\t\nrest";
        for chunk in 1..body.len() + 1 {
            let (lines, rest, too_long) = split(body, chunk, 100);
            assert_eq!(lines, [&b"a"[..], b"bc", b"\xc3\xa9"], "chunks of {chunk}");
            assert_eq!((rest.as_slice(), too_long), (&b"rest"[..], false));
        }
    }

    #[test]
    fn an_end_after_a_newline_leaves_no_rest() {
        for chunk in 1..5 {
            assert_eq!(split(b"ab\n\r\n", chunk, 100).1, b"");
        }
    }

    #[test]
    fn a_line_over_the_limit_is_refused_with_and_without_its_end() {
        for chunk in [1, 7, 1_000] {
            assert_eq!(
                split(b"abc\n0123456789\n", chunk, 10),
                (vec![b"abc".to_vec(), b"0123456789".to_vec()], vec![], false)
            );
            assert_eq!(split(b"abc\n0123456789x\n", chunk, 10), (vec![b"abc".to_vec()], vec![], true));
            assert_eq!(split(b"abc\n0123456789x", chunk, 10), (vec![b"abc".to_vec()], vec![], true));
        }
    }

    #[test]
    fn a_long_line_is_held_once_and_given_back() {
        let line = 3 << 20;
        let mut splitter = LineSplitter::new(16 << 20);
        for _ in 0..line / 1024 {
            splitter.push(Bytes::from(vec![b'x'; 1024]));
            assert_eq!(splitter.next_line().unwrap(), None);
            assert!(splitter.held() <= 2 * line);
        }
        splitter.push(Bytes::from_static(b"\nshort\n"));
        assert_eq!(splitter.next_line().unwrap().map(<[u8]>::len), Some(line));
        assert_eq!(splitter.next_line().unwrap(), Some(&b"short"[..]));
        assert!(splitter.held() <= KEPT_CAPACITY);
    }

    proptest! {
        #[test]
        fn the_chunks_make_no_difference(
            body in proptest::collection::vec(proptest::sample::select(b"ab \r\n".to_vec()), 0..60),
            chunk in 1usize..20,
        ) {
            prop_assert_eq!(split(&body, chunk, 5), split(&body, usize::MAX, 5));
        }
    }
}

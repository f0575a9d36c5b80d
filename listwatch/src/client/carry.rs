//! PURE. An item of a body that comes in chunks, put together where they cut it.

use std::ops::Range;

/// A buffer larger than this is given back after the item that needed it.
pub(crate) const KEPT_CAPACITY: usize = 256 << 10;

/// The beginning of an item that an earlier chunk ended in; or a whole one, while it is lent out.
///
/// An item that lies in one chunk is never copied.
#[derive(Debug, Default)]
pub(crate) struct Carry {
    bytes: Vec<u8>,
    /// It was lent out and is to be cleared.
    lent: bool,
}

/// Where an item lies that is whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ready {
    InChunk(Range<usize>),
    InCarry,
}

impl Carry {
    /// Bytes of the item that earlier chunks brought.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The item that was lent out last is done with.
    pub(crate) fn reclaim(&mut self) {
        if std::mem::take(&mut self.lent) {
            self.bytes.clear();
            self.bytes.shrink_to(KEPT_CAPACITY);
        }
    }

    /// Takes the next part of an item, and gives the item where this is its last part.
    pub(crate) fn take(&mut self, chunk: &[u8], part: Range<usize>, is_last: bool) -> Option<Ready> {
        if is_last && self.bytes.is_empty() {
            return Some(Ready::InChunk(part));
        }
        self.bytes.extend_from_slice(&chunk[part]);
        self.lent = is_last;
        is_last.then_some(Ready::InCarry)
    }

    /// Lends an item out.
    pub(crate) fn lend<'a>(&'a self, chunk: &'a [u8], item: Ready) -> &'a [u8] {
        match item {
            Ready::InChunk(range) => &chunk[range],
            Ready::InCarry => &self.bytes,
        }
    }

    /// Bytes held.
    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        self.bytes.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_item_within_a_chunk_is_lent_from_there() {
        let mut carry = Carry::default();
        let item = carry.take(b"xaby", 1..3, true).unwrap();
        assert_eq!(item, Ready::InChunk(1..3));
        assert_eq!(carry.lend(b"xaby", item), b"ab");
        assert_eq!((carry.len(), carry.held()), (0, 0));
    }

    #[test]
    fn an_item_over_many_chunks_is_put_together_once() {
        let mut carry = Carry::default();
        for _ in 0..2 {
            assert_eq!(carry.take(b"xa", 1..2, false), None);
            assert_eq!(carry.take(b"bc", 0..2, false), None);
            assert_eq!(carry.len(), 3);
            let item = carry.take(b"dx", 0..1, true).unwrap();
            assert_eq!(carry.lend(b"dx", item), b"abcd");
            carry.reclaim();
            assert_eq!(carry.len(), 0);
        }
        carry.take(b"a", 0..1, false);
        carry.reclaim();
        assert_eq!(carry.len(), 1, "what is not whole stays");
        assert_eq!(carry.take(b"bc", 0..0, true), Some(Ready::InCarry), "an end of nothing is one too");
        assert_eq!(carry.lend(b"", Ready::InCarry), b"a");
    }

    #[test]
    fn the_buffer_of_a_long_item_is_given_back() {
        let mut carry = Carry::default();
        let chunk = vec![b'x'; KEPT_CAPACITY];
        for is_last in [false, false, true] {
            carry.take(&chunk, 0..chunk.len(), is_last);
        }
        assert!(carry.held() > KEPT_CAPACITY);
        carry.reclaim();
        assert!(carry.held() <= KEPT_CAPACITY);
    }
}

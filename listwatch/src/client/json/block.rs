//! PURE. Where in 64 bytes of JSON quotes, backslashes and brackets stand: one bit for each byte, the first the lowest.

use wide::u8x16;

/// Bytes of a block.
pub(crate) const LEN: usize = 64;
/// Bytes that are compared at once.
const PART_LEN: usize = 16;

/// What there is in a block: one bit for each byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Block {
    pub(crate) quotes: u64,
    pub(crate) backslashes: u64,
    /// `{` and `[`.
    pub(crate) opens: u64,
    /// `}` and `]`.
    pub(crate) closes: u64,
}

impl Block {
    /// What stands where.
    #[inline]
    pub(crate) fn of(bytes: &[u8; LEN]) -> Self {
        let mut block = Self::default();
        let (parts, _) = bytes.as_chunks::<PART_LEN>();
        for (index, bytes) in parts.iter().enumerate() {
            let part = u8x16::new(*bytes);
            let is = |part: u8x16, byte| u64::from(part.simd_eq(u8x16::splat(byte)).to_bitmask()) << (index * PART_LEN);
            block.quotes |= is(part, b'"');
            block.backslashes |= is(part, b'\\');
            // With this bit set a bracket is a brace, and nothing else is one.
            let braces = part | u8x16::splat(0x20);
            block.opens |= is(braces, b'{');
            block.closes |= is(braces, b'}');
        }
        block
    }

    /// Which bytes stand behind a backslash that is no such byte itself, and whether the first byte of the next block does;
    /// `first` is told of this one's.
    #[inline]
    pub(crate) fn escaped(self, first: bool) -> (u64, bool) {
        let (mut escaped, mut goes_on) = (u64::from(first), false);
        let mut left = self.backslashes & !escaped;
        while left != 0 {
            let backslash = left & left.wrapping_neg();
            let next = backslash << 1;
            escaped |= next;
            goes_on |= next == 0;
            left &= !(backslash | next);
        }
        (escaped, goes_on)
    }

    /// Which bytes lie in a string (its first quote does, its last does not), where these quotes are escaped. All bits of
    /// `carry` are set where the block before ended in a string.
    #[inline]
    pub(crate) fn text(self, escaped: u64, carry: u64) -> u64 {
        let mut text = self.quotes & !escaped;
        for shift in [1, 2, 4, 8, 16, 32] {
            text ^= text << shift;
        }
        text ^ carry
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bits(bytes: &[u8], wanted: &[u8]) -> u64 {
        bytes.iter().enumerate().map(|(at, byte)| u64::from(wanted.contains(byte)) << at).sum()
    }

    proptest! {
        #[test]
        fn each_byte_has_its_bit(bytes in proptest::collection::vec(
            prop_oneof![proptest::sample::select(b"\"\\{}[]:;zZ\x02\xa2\xdc".to_vec()), any::<u8>()], LEN)
        ) {
            let block = Block::of(bytes.as_slice().try_into().unwrap());
            prop_assert_eq!(block.quotes, bits(&bytes, b"\""));
            prop_assert_eq!(block.backslashes, bits(&bytes, b"\\"));
            prop_assert_eq!(block.opens, bits(&bytes, b"{["));
            prop_assert_eq!(block.closes, bits(&bytes, b"}]"));
            let mut inside = false;
            for (at, byte) in bytes.iter().enumerate() {
                inside ^= *byte == b'"';
                prop_assert_eq!(block.text(0, 0) >> at & 1 == 1, inside);
                prop_assert_eq!(block.text(0, u64::MAX) >> at & 1 == 1, !inside);
            }
            for first in [false, true] {
                let (escaped, goes_on) = block.escaped(first);
                let mut is_escaped = first;
                for (at, byte) in bytes.iter().enumerate() {
                    prop_assert_eq!(escaped >> at & 1 == 1, is_escaped);
                    is_escaped = *byte == b'\\' && !is_escaped;
                }
                prop_assert_eq!(goes_on, is_escaped);
            }
        }
    }
}

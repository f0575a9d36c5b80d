//! PURE. Finds where one JSON value ends, however its bytes are cut into chunks.

use crate::client::json::block::{self, Block};

/// A scan over one JSON value. It looks at each byte once, keeps nothing of them and does not recurse.
///
/// It is no validator: brackets are counted, not matched. Whoever takes the value parses it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ValueScan {
    /// Open brackets and braces. Bounded by the length of the value.
    depth: u32,
    mode: Mode,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// A number, `true`, `false` or `null`: ends before the byte that cannot belong to it.
    Literal,
    /// Inside a container, outside a string.
    Container,
    /// Inside a string.
    Text,
    /// Inside a string, after a backslash.
    Escape,
}

impl ValueScan {
    /// No scan: a value to begin a field with.
    pub(crate) const NONE: Self = Self { depth: 0, mode: Mode::Literal };

    /// A scan of the value that begins with this byte (which is to be scanned too), if a value can.
    pub(crate) fn begin(first: u8) -> Option<Self> {
        let mode = match first {
            b'{' | b'[' | b'"' => Mode::Container,
            b'-' | b'0'..=b'9' | b't' | b'f' | b'n' => Mode::Literal,
            _ => return None,
        };
        Some(Self { depth: 0, mode })
    }

    /// Scans on. Where the value ends within `bytes`, the number of bytes that belong to it.
    pub(crate) fn scan(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        // What is no container is short, and what is one begins with a byte of its own.
        if self.depth == 0 {
            match (self.mode, bytes.first()) {
                (Mode::Container, Some(b'{' | b'[')) => (self.depth, at) = (1, 1),
                _ => return self.scan_bytes(bytes),
            }
        }
        while let Some(block) = bytes[at..].first_chunk() {
            if let Some(len) = self.scan_block(block) {
                return Some(at + len);
            }
            at += block::LEN;
        }
        self.scan_bytes(&bytes[at..]).map(|len| at + len)
    }

    /// Scans on in a container, a block at once: brackets outside strings are counted, and looked at one by one only
    /// where there are enough of them to end the value.
    #[inline]
    fn scan_block(&mut self, bytes: &[u8; block::LEN]) -> Option<usize> {
        let block = Block::of(bytes);
        let (escaped, goes_on) = block.escaped(self.mode == Mode::Escape);
        let text = block.text(escaped, if self.mode == Mode::Container { 0 } else { u64::MAX });
        if block.backslashes & !text != 0 {
            // This is no JSON: outside strings a backslash is a byte as others, here as there.
            return self.scan_bytes(bytes);
        }
        let (opens, closes) = (block.opens & !text, block.closes & !text);
        self.mode = match text >> (block::LEN - 1) == 1 {
            true if goes_on => Mode::Escape,
            true => Mode::Text,
            false => Mode::Container,
        };
        if closes.count_ones() < self.depth {
            self.depth = self.depth.saturating_add(opens.count_ones()) - closes.count_ones();
            return None;
        }
        let mut brackets = opens | closes;
        while brackets != 0 {
            let at = brackets.trailing_zeros();
            brackets &= brackets - 1;
            if opens >> at & 1 == 1 {
                self.depth = self.depth.saturating_add(1);
            } else {
                self.depth -= 1;
                if self.depth == 0 {
                    return Some(at as usize + 1);
                }
            }
        }
        None
    }

    /// Scans on byte by byte, but for strings.
    fn scan_bytes(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < bytes.len() {
            match self.mode {
                Mode::Text => {
                    at += text_len(&bytes[at..]);
                    match bytes.get(at) {
                        Some(b'"') if self.depth == 0 => return Some(at + 1),
                        Some(b'"') => self.mode = Mode::Container,
                        Some(_) => self.mode = Mode::Escape,
                        None => return None,
                    }
                }
                Mode::Escape => self.mode = Mode::Text,
                Mode::Container => match bytes[at] {
                    b'"' => self.mode = Mode::Text,
                    b'{' | b'[' => self.depth = self.depth.saturating_add(1),
                    b'}' | b']' => {
                        self.depth = self.depth.saturating_sub(1);
                        if self.depth == 0 {
                            return Some(at + 1);
                        }
                    }
                    _ => {}
                },
                Mode::Literal => {
                    if !matches!(bytes[at], b'-' | b'+' | b'.' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z') {
                        return Some(at);
                    }
                }
            }
            at += 1;
        }
        None
    }
}

/// How many bytes there are before the next quote or backslash; eight at a time, as most strings are short
/// and a call of `memchr2` for each would cost more than it saves.
fn text_len(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::from_ne_bytes([0x01; 8]);
    const HIGHS: u64 = u64::from_ne_bytes([0x80; 8]);
    const QUOTES: u64 = u64::from_ne_bytes([b'"'; 8]);
    const BACKSLASHES: u64 = u64::from_ne_bytes([b'\\'; 8]);
    // The lowest set high bit marks the first zero byte exactly; marks above it may be false.
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word & HIGHS;

    let (words, rest) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let hits = zeros(word ^ QUOTES) | zeros(word ^ BACKSLASHES);
        if hits != 0 {
            return index * 8 + (hits.trailing_zeros() / 8) as usize;
        }
    }
    let tail = rest.iter().position(|byte| matches!(byte, b'"' | b'\\')).unwrap_or(rest.len());
    words.len() * 8 + tail
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn whole(bytes: &[u8]) -> Option<usize> {
        ValueScan::begin(bytes[0])?.scan(bytes)
    }

    #[test]
    fn a_value_ends_where_json_says() {
        let table: &[(&str, Option<usize>)] = &[
            ("{} ", Some(2)),
            (r#"{"a":[1,{"b":"}"}]},"#, Some(19)),
            (r#""a\"b","#, Some(6)),
            (r#""\\""#, Some(4)),
            ("null,", Some(4)),
            ("-1.5e+3]", Some(7)),
            ("1E5,", Some(3)),
            ("12", None),
            (r#"{"a":"#, None),
            (r#""abcdefghijklmnop"#, None),
            (r#""abcdefghijklmnopqrstuvwxyz"}"#, Some(28)),
            ("]", None),
            ("x", None),
        ];
        for (text, end) in table {
            assert_eq!(whole(text.as_bytes()), *end, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_scan_in_pieces_ends_where_the_whole_does(text in "[\\[{\"][ -~]{0,60}", cut in 0usize..64) {
            let bytes = text.as_bytes();
            let cut = cut.min(bytes.len());
            let mut scan = ValueScan::begin(bytes[0]).unwrap();
            let pieces = match scan.scan(&bytes[..cut]) {
                Some(end) => Some(end),
                None => scan.scan(&bytes[cut..]).map(|end| end + cut),
            };
            prop_assert_eq!(pieces, whole(bytes));
        }

        #[test]
        fn blocks_and_bytes_scan_alike(text in "[\\[{]([\\[\\]{}\"a-f]|\\\\|[a-z:, ]{1,20}){0,200}") {
            let bytes = text.as_bytes();
            let (mut blocks, mut naive) = (ValueScan::begin(bytes[0]).unwrap(), ValueScan::begin(bytes[0]).unwrap());
            let ends = (blocks.scan(bytes), naive.scan_bytes(bytes));
            prop_assert_eq!(ends.0, ends.1);
            if ends.0.is_none() {
                prop_assert_eq!((blocks.depth, blocks.mode), (naive.depth, naive.mode));
            }
        }

        #[test]
        fn text_len_finds_the_first_quote_or_backslash(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let naive = bytes.iter().position(|byte| matches!(byte, b'"' | b'\\')).unwrap_or(bytes.len());
            prop_assert_eq!(text_len(&bytes), naive);
        }
    }
}

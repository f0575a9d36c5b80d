//! PURE. Where strings, numbers and words end.

use wide::u8x16;

/// How many bytes there are before the next quote, backslash or control character; sixteen at a time, which is more than
/// most strings have: a loop over shorter pieces ends where no processor foresees it.
#[inline]
pub(crate) fn plain_len(bytes: &[u8]) -> usize {
    const PART_LEN: usize = 16;
    let (parts, rest) = bytes.as_chunks::<PART_LEN>();
    for (index, bytes) in parts.iter().enumerate() {
        let part = u8x16::new(*bytes);
        let controls = part.min(u8x16::splat(b' ' - 1)).simd_eq(part);
        let hits = part.simd_eq(u8x16::splat(b'"')) | part.simd_eq(u8x16::splat(b'\\')) | controls;
        let hits = hits.to_bitmask();
        if hits != 0 {
            return index * PART_LEN + hits.trailing_zeros() as usize;
        }
    }
    let tail = rest.iter().position(|byte| matches!(byte, b'"' | b'\\' | ..b' ')).unwrap_or(rest.len());
    parts.len() * PART_LEN + tail
}

/// How many bytes of a string are left, its last quote among them, where those up to a backslash are taken; `None` where
/// an escape is none, or there is no end.
pub(super) fn escaped_len(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += plain_len(&bytes[at..]);
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += escape_len(&bytes[at..])?,
            _ => return None,
        }
    }
}

/// The length of the escape that stands here.
fn escape_len(bytes: &[u8]) -> Option<usize> {
    match bytes.get(1)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Some(2),
        b'u' => bytes.get(2..6)?.iter().all(u8::is_ascii_hexdigit).then_some(6),
        _ => None,
    }
}

/// Adds what a string stands for, which begins behind its first quote and ends with its last; `None` where it holds half
/// a pair of surrogates.
pub(super) fn unescape(mut text: &str, into: &mut String) -> Option<()> {
    while let Some(at) = text.find(['\\', '"']).filter(|at| text.as_bytes()[*at] == b'\\') {
        into.push_str(&text[..at]);
        let escape = &text[at..];
        let (char, len) = match escape.as_bytes().get(1)? {
            b'b' => ('\u{8}', 2),
            b'f' => ('\u{c}', 2),
            b'n' => ('\n', 2),
            b'r' => ('\r', 2),
            b't' => ('\t', 2),
            b'u' => unicode(escape)?,
            itself => (char::from(*itself), 2),
        };
        into.push(char);
        text = escape.get(len..)?;
    }
    into.push_str(text.strip_suffix('"')?);
    Some(())
}

/// The character that one escape by number stands for, or two, and their length.
fn unicode(escape: &str) -> Option<(char, usize)> {
    let unit = |at: usize| u16::from_str_radix(escape.get(at..at + 6)?.strip_prefix("\\u")?, 16).ok();
    let first = unit(0)?;
    match char::from_u32(first.into()) {
        Some(char) => Some((char, 6)),
        None => Some((char::decode_utf16([first, unit(6)?]).next()?.ok()?, 12)),
    }
}

/// A number: its length, and whether it is a whole one.
pub(super) fn number(bytes: &[u8]) -> Option<(usize, bool)> {
    let digits = |at: usize| bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let start = usize::from(bytes.first() == Some(&b'-'));
    let whole = digits(start);
    if whole == 0 || whole > 1 && bytes[start] == b'0' {
        return None;
    }
    let mut at = start + whole;
    let mut is_whole = true;
    if bytes.get(at) == Some(&b'.') {
        let fraction = digits(at + 1);
        if fraction == 0 {
            return None;
        }
        (at, is_whole) = (at + 1 + fraction, false);
    }
    if let Some(b'e' | b'E') = bytes.get(at) {
        at += 1 + usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let exponent = digits(at.min(bytes.len()));
        if exponent == 0 {
            return None;
        }
        (at, is_whole) = (at + exponent, false);
    }
    Some((at, is_whole))
}

/// The word that a value which is neither string, number nor container can be.
pub(super) fn word(bytes: &[u8]) -> Option<Word> {
    [Word::Null, Word::True, Word::False].into_iter().find(|word| bytes.starts_with(word.text().as_bytes()))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    Null,
    True,
    False,
}

impl Word {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::True => "true",
            Self::False => "false",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_what_is_plain_is_found_wherever_it_is() {
        let plain = "aé~\u{7f}! ".bytes().cycle().take(80).collect::<Vec<_>>();
        assert_eq!(plain_len(&plain), plain.len());
        for (at, end) in (0..plain.len()).flat_map(|at| [b'"', b'\\', 0, 0x1f].map(|end| (at, end))) {
            let mut bytes = plain.clone();
            bytes[at] = end;
            assert_eq!(plain_len(&bytes), at, "{end}");
            bytes[at..].fill(end);
            assert_eq!(plain_len(&bytes), at, "{end}");
        }
    }
}

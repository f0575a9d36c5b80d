//! PURE. Bounded pieces of foreign text, for messages.

/// How much of foreign text a message shows.
const EXCERPT_LEN_MAX: usize = 160;

/// The beginning of some bytes as one line of text.
pub(crate) fn excerpt(bytes: &[u8]) -> String {
    // Four bytes make one character at most, and blanks are folded: this much is enough.
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(EXCERPT_LEN_MAX * 4)]);
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.extend(word.chars().map(|char| if char.is_control() { '\u{fffd}' } else { char }));
    }
    cut(&mut line, EXCERPT_LEN_MAX);
    line
}

/// Cuts a text to at most `max` bytes and three dots.
pub(crate) fn cut(text: &mut String, max: usize) {
    if text.len() > max {
        let end = (0..=max).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_one_short_line() {
        assert_eq!(excerpt(b" a\r\n\tb\0c "), "a b\u{fffd}c");
        assert_eq!(excerpt(b"\xff"), "\u{fffd}");
        assert!(excerpt("é".repeat(1000).as_bytes()).len() <= EXCERPT_LEN_MAX + 3);
    }
}

//! What names and values labels can have.

/// Longest name part, and longest value.
const NAME_LEN_MAX: usize = 63;
/// Longest prefix of a name.
const PREFIX_LEN_MAX: usize = 253;

/// Whether a label can have this name: an optional prefix, which is a DNS subdomain, and a slash; then up to 63
/// letters, digits, `-`, `_` and `.`, with a letter or digit at both ends. Says what is wrong.
pub fn validate_label_name(name: &str) -> Result<(), &'static str> {
    let name = match name.split_once('/') {
        None => name,
        Some((prefix, name)) => {
            validate_prefix(prefix)?;
            name
        }
    };
    if name.is_empty() {
        return Err("the name (what stands behind the slash, if there is one) must not be empty");
    }
    if name.contains('/') {
        return Err("at most one slash is allowed, between a DNS prefix and the name");
    }
    validate_word(name)
}

/// Whether a label can have this value: empty, or up to 63 letters, digits, `-`, `_` and `.`, with a letter or
/// digit at both ends. Says what is wrong.
pub fn validate_label_value(value: &str) -> Result<(), &'static str> {
    if value.is_empty() { Ok(()) } else { validate_word(value) }
}

fn validate_word(word: &str) -> Result<(), &'static str> {
    if word.len() > NAME_LEN_MAX {
        return Err("at most 63 characters are allowed");
    }
    let inner = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if !word.as_bytes().iter().all(inner) {
        return Err("only ASCII letters, digits, `-`, `_` and `.` are allowed");
    }
    if !ends_are(word, u8::is_ascii_alphanumeric) {
        return Err("it must begin and end with a letter or digit");
    }
    Ok(())
}

fn validate_prefix(prefix: &str) -> Result<(), &'static str> {
    if prefix.is_empty() || prefix.len() > PREFIX_LEN_MAX {
        return Err("the prefix (what stands before the slash) must have 1 to 253 characters");
    }
    let edge = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let inner = |byte: &u8| edge(byte) || *byte == b'-';
    let is_label = |label: &str| label.as_bytes().iter().all(inner) && ends_are(label, edge);
    if !prefix.split('.').all(is_label) {
        return Err("the prefix (what stands before the slash) must be a DNS subdomain such as `example.com`: \
                    lower-case letters, digits, `-` and `.`");
    }
    Ok(())
}

/// Whether the text has a first and a last byte of this kind.
fn ends_are(text: &str, kind: impl Fn(&u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    bytes.first().is_some_and(&kind) && bytes.last().is_some_and(&kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_names() {
        let long = "a".repeat(64);
        let wide = format!("{}/x", "a".repeat(254));
        for good in ["a", "A-b_c.d", "app.kubernetes.io/name", "1", "x-1.y/Z", &long[..63], &wide[1..]] {
            assert_eq!(validate_label_name(good), Ok(()), "{good}");
        }
        for bad in ["", "/", "a/", "/a", "a/b/c", "-a", "a-", "a b", "ä", "A/b", "a..b/c", "-a/b", &long, &wide] {
            assert!(validate_label_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn label_values() {
        let long = "a".repeat(64);
        for good in ["", "a", "A-b_c.d", "1", &long[..63]] {
            assert_eq!(validate_label_value(good), Ok(()), "{good}");
        }
        for bad in ["-a", "a.", "a/b", "a b", "é", "_", &long] {
            assert!(validate_label_value(bad).is_err(), "{bad}");
        }
    }
}

//! PURE: what the API server takes, and how to keep to it without losing sight of what was meant.

/// The longest note, in bytes.
pub(crate) const NOTE_LEN_MAX: usize = 1024;

/// The longest reason, action and reporting instance, in bytes.
pub(crate) const FIELD_LEN_MAX: usize = 128;

/// The longest name of an object.
const NAME_LEN_MAX: usize = 253;

/// The longest last part of a qualified name.
const LABEL_LEN_MAX: usize = 63;

/// A dot and 16 hexadecimal digits.
const SUFFIX_LEN: usize = 17;

const ELLIPSIS: &str = "…";

/// The text, or its begin and an ellipsis, in `max` bytes at most; cut between characters.
///
/// `max` must leave room for the ellipsis: 3 bytes.
pub(crate) fn shortened(text: String, max: usize) -> String {
    if text.len() <= max {
        return text;
    }
    format!("{}{ELLIPSIS}", begin(&text, max - ELLIPSIS.len()))
}

/// The longest begin of whole characters in `max` bytes.
fn begin(text: &str, max: usize) -> &str {
    let mut end = max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The text, or its begin and a number made from all of it, so that two long ones stay different.
fn abridged(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    // FNV-1a: the same in each process, and nobody attacks it.
    let hash = text
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    format!("{}-{hash:016x}", begin(text, max - SUFFIX_LEN))
}

/// An instance that fits.
pub(crate) fn reporting_instance(text: &str) -> String {
    abridged(text, FIELD_LEN_MAX)
}

/// A controller's name as a qualified name: `[prefix/]name`, of letters, digits, `-`, `_` and `.`.
pub(crate) fn reporting_controller(text: &str) -> String {
    let (prefix, name) = text.rsplit_once('/').unwrap_or(("", text));
    let name = edges(&abridged(&replaced(name, |c| c.is_ascii_alphanumeric() || "-_.".contains(c)), LABEL_LEN_MAX));
    let name = if name.is_empty() { "controller".to_owned() } else { name };
    let prefix = subdomain(prefix, NAME_LEN_MAX);
    if prefix.is_empty() { name } else { format!("{prefix}/{name}") }
}

/// The name of an event about an object of this name: valid, readable, and different for each stamp.
pub(crate) fn event_name(object: &str, stamp: u64) -> String {
    let object = subdomain(object, NAME_LEN_MAX - SUFFIX_LEN);
    let object = if object.is_empty() { "event".to_owned() } else { object };
    format!("{object}.{stamp:016x}")
}

/// The text as a DNS subdomain of this length at most; may be empty.
fn subdomain(text: &str, max: usize) -> String {
    let text =
        replaced(&text.to_ascii_lowercase(), |c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.');
    let text = begin(&text, max);
    let labels: Vec<&str> =
        text.split('.').map(|label| label.trim_matches('-')).filter(|label| !label.is_empty()).collect();
    labels.join(".")
}

fn replaced(text: &str, is_allowed: impl Fn(char) -> bool) -> String {
    text.chars().map(|c| if is_allowed(c) { c } else { '-' }).collect()
}

/// Without what may not stand at either end.
fn edges(text: &str) -> String {
    text.trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn is_subdomain(name: &str) -> bool {
        let is_label = |label: &str| {
            !label.is_empty()
                && !label.starts_with('-')
                && !label.ends_with('-')
                && label.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        };
        name.len() <= NAME_LEN_MAX && name.split('.').all(is_label)
    }

    fn is_qualified_name(name: &str) -> bool {
        let (prefix, name) = name.rsplit_once('/').unwrap_or(("a", name));
        let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
        is_subdomain(prefix)
            && name.len() <= LABEL_LEN_MAX
            && edge(name.chars().next())
            && edge(name.chars().last())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
    }

    #[test]
    fn names_of_events_are_valid_and_say_what_they_are_about() {
        for (object, wanted) in [
            ("web-0", "web-0.000000000000002a"),
            ("team:reader", "team-reader.000000000000002a"),
            ("A_B", "a-b.000000000000002a"),
            ("..", "event.000000000000002a"),
            ("", "event.000000000000002a"),
        ] {
            assert_eq!(event_name(object, 42), wanted);
        }
        assert_eq!(event_name(&"a".repeat(253), 42).len(), 253);
    }

    #[test]
    fn long_controllers_and_instances_stay_different() {
        let (one, other) = ("c".repeat(120) + "1", "c".repeat(120) + "2");
        assert_ne!(reporting_controller(&one), reporting_controller(&other));
        let host = "h".repeat(63);
        assert_ne!(reporting_instance(&format!("{one}-{host}")), reporting_instance(&format!("{other}-{host}")));
        assert_eq!(reporting_controller("example.com/my_controller"), "example.com/my_controller");
        assert_eq!(reporting_controller("-"), "controller");
    }

    proptest! {
        #[test]
        fn whatever_comes_in_is_valid_and_short_enough(text in ".{0,400}", max in 3..2000_usize, stamp in any::<u64>()) {
            prop_assert!(is_subdomain(&event_name(&text, stamp)), "{}", event_name(&text, stamp));
            prop_assert!(is_qualified_name(&reporting_controller(&text)), "{}", reporting_controller(&text));
            prop_assert!(reporting_instance(&text).len() <= FIELD_LEN_MAX);
            let short = shortened(text.clone(), max);
            prop_assert!(short.len() <= max);
            prop_assert!(short == text || text.starts_with(short.strip_suffix(ELLIPSIS).unwrap()));
        }
    }
}

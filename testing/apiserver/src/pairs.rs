//! PURE. A few texts by name in one allocation: labels, and the fields that selectors may name.

/// Names and values, ended by NUL each, in one allocation; looked up by a walk. No text may hold a NUL: a pair
/// that does is left out (neither a label nor a selectable field can).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pairs(Box<str>);

impl Pairs {
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.iter().find(|(n, _)| *n == name).map(|(_, value)| value)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let mut texts = self.0.split_terminator('\0');
        std::iter::from_fn(move || Some((texts.next()?, texts.next()?)))
    }

    pub(crate) fn size(&self) -> usize {
        self.0.len()
    }
}

impl<'a> FromIterator<(&'a str, &'a str)> for Pairs {
    fn from_iter<I: IntoIterator<Item = (&'a str, &'a str)>>(pairs: I) -> Self {
        let mut text = String::new();
        for (name, value) in pairs {
            if !name.contains('\0') && !value.contains('\0') {
                text.extend([name, "\0", value, "\0"]);
            }
        }
        Self(text.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_found_by_name_and_empty_values_are_values() {
        let pairs: Pairs = [("a", "1"), ("b", ""), ("c", "3"), ("x\0", "y")].into_iter().collect();
        assert_eq!(pairs.get("a"), Some("1"));
        assert_eq!(pairs.get("b"), Some(""));
        assert_eq!(pairs.get("c"), Some("3"));
        assert_eq!(pairs.get("1"), None);
        assert_eq!(pairs.iter().count(), 3);
        assert_eq!(Pairs::default().get(""), None);
    }
}

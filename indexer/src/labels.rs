//! Labels of an object, small.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

/// The labels of an object, sorted by name: one slice, no map.
///
/// With the feature `serde` it is read from a JSON object; `null` is none, and of a name that comes twice the
/// later one counts.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Labels {
    /// Sorted by name, each name once.
    sorted: Box<[(Box<str>, Box<str>)]>,
}

impl Labels {
    /// The value of one label. Cost: O(log n).
    pub fn get(&self, name: &str) -> Option<&str> {
        let at = self.sorted.binary_search_by(|(other, _)| (**other).cmp(name)).ok()?;
        Some(&self.sorted[at].1)
    }

    /// All labels, sorted by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.sorted.iter().map(|(name, value)| (&**name, &**value))
    }

    /// The number of labels.
    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }
}

impl<N: Into<Box<str>>, V: Into<Box<str>>> FromIterator<(N, V)> for Labels {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(labels: I) -> Self {
        let mut sorted: Vec<_> = labels.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        // Stable, so that of equal names the later one comes last, and that one is kept.
        sorted.reverse();
        sorted.sort_by(|(a, _): &(Box<str>, Box<str>), (b, _)| a.cmp(b));
        sorted.dedup_by(|(later, _), (kept, _)| later == kept);
        Self { sorted: sorted.into_boxed_slice() }
    }
}

impl fmt::Debug for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// Something in which a label can be looked up: [`Labels`], or a standard map of `String`s, or an `Option` of
/// one. `#[derive(Meta)]` asks the field marked `#[kubewire(labels)]` for it.
pub trait LabelMap {
    /// The value of one label.
    fn label(&self, name: &str) -> Option<&str>;

    /// All labels, in no order.
    fn all(&self) -> Vec<(&str, &str)>;
}

impl LabelMap for Labels {
    fn label(&self, name: &str) -> Option<&str> {
        self.get(name)
    }

    fn all(&self) -> Vec<(&str, &str)> {
        self.iter().collect()
    }
}

impl LabelMap for BTreeMap<String, String> {
    fn label(&self, name: &str) -> Option<&str> {
        self.get(name).map(String::as_str)
    }

    fn all(&self) -> Vec<(&str, &str)> {
        self.iter().map(|(name, value)| (&**name, &**value)).collect()
    }
}

impl<S: std::hash::BuildHasher> LabelMap for HashMap<String, String, S> {
    fn label(&self, name: &str) -> Option<&str> {
        self.get(name).map(String::as_str)
    }

    fn all(&self) -> Vec<(&str, &str)> {
        self.iter().map(|(name, value)| (&**name, &**value)).collect()
    }
}

impl<M: LabelMap> LabelMap for Option<M> {
    fn label(&self, name: &str) -> Option<&str> {
        self.as_ref()?.label(name)
    }

    fn all(&self) -> Vec<(&str, &str)> {
        self.as_ref().map(M::all).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_label_that_comes_twice_the_later_one_counts() {
        let labels: Labels = [("b", "1"), ("a", "2"), ("b", "3"), ("b", "4")].into_iter().collect();
        assert_eq!(labels.iter().collect::<Vec<_>>(), [("a", "2"), ("b", "4")]);
        assert_eq!(labels.get("b"), Some("4"));
        assert_eq!(labels.get("c"), None);
    }
}

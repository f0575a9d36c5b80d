//! Selectors: what is taken prints to what is taken again, and selects the same.

use kubewire_indexer::{FieldSelector, LabelSelector};

/// A selector, and labels.
pub type Input<'a> = (&'a str, Vec<(&'a str, &'a str)>);

/// Panics where it does not hold.
pub fn check(input: Input<'_>) {
    let (text, labels) = input;
    let value = |name: &str| labels.iter().find(|(other, _)| *other == name).map(|(_, value)| *value);
    match text.parse::<LabelSelector>() {
        Ok(selector) => {
            let printed = selector.to_string();
            let again: LabelSelector = printed.parse().expect("a printed selector is taken");
            assert_eq!(again.to_string(), printed);
            assert_eq!(selector.matches(value), again.matches(value));
            let each = selector.requirements().iter().all(|requirement| requirement.matches(value(requirement.name())));
            assert_eq!(selector.matches(value), each);
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    match text.parse::<FieldSelector>() {
        Ok(selector) => {
            let again: FieldSelector = selector.to_string().parse().expect("a printed selector is taken");
            // In another order, maybe: as in the API, terms are sorted as they are written (`==z` before `=>`).
            assert_eq!(sorted(&again), sorted(&selector));
            assert_eq!(selector.matches(value), again.matches(value));
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

fn sorted(selector: &FieldSelector) -> Vec<(&str, &str, bool)> {
    let parts = selector.requirements().iter().map(|part| (part.field.as_str(), part.value.as_str(), part.differs));
    let mut parts: Vec<_> = parts.collect();
    parts.sort_unstable();
    parts
}

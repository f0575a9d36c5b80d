//! Label selectors.

use std::fmt;
use std::str::FromStr;

use super::{Operator, Requirement, SelectorError, parser};
use crate::Object;

/// Selects objects by their labels, with the meaning and the syntax of the API.
///
/// The text is a list of requirements, all of which must be met: `a=b`, `a==b`, `a!=b`, `a in (b,c)`,
/// `a notin (b,c)`, `a`, `!a`, `a>7`, `a<7`. An object without the label meets `!=`, `notin` and `!`. The empty text
/// selects everything. It prints as the same text, sorted by name, as the API server prints it.
///
/// ```
/// use kubewire_indexer::LabelSelector;
///
/// let selector: LabelSelector = "tier notin (cache), app=web".parse()?;
/// assert_eq!(selector.to_string(), "app=web,tier notin (cache)");
/// assert!(selector.matches(|label| (label == "app").then_some("web")));
/// assert!(!selector.matches(|label| (label == "tier").then_some("db")));
///
/// let error = "app=web)".parse::<LabelSelector>().unwrap_err();
/// assert_eq!(error.to_string(), r#"invalid selector "app=web)": found ")" at byte 7, want `,` or the end"#);
/// # Ok::<(), kubewire_indexer::SelectorError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct LabelSelector {
    /// Sorted by name; those of one name in the order in which they were given.
    requirements: Vec<Requirement>,
    nothing: bool,
}

impl LabelSelector {
    /// Selects all objects.
    pub const fn everything() -> Self {
        Self { requirements: Vec::new(), nothing: false }
    }

    /// Selects no object. No text can say this: a request to a server must not be made with it.
    pub const fn nothing() -> Self {
        Self { requirements: Vec::new(), nothing: true }
    }

    /// Selects the objects that meet all of these.
    pub fn of(requirements: impl IntoIterator<Item = Requirement>) -> Self {
        let mut requirements: Vec<_> = requirements.into_iter().collect();
        requirements.sort_by(|a, b| a.name().cmp(b.name()));
        Self { requirements, nothing: false }
    }

    /// The selector of a `matchLabels` and a `matchExpressions` (name, operator, values), as they stand in the
    /// spec of a Deployment, for instance. Without any it selects everything.
    ///
    /// ```
    /// use kubewire_indexer::LabelSelector;
    ///
    /// let selector = LabelSelector::from_parts([("app", "web")], [("tier", "NotIn", ["cache", "db"])])?;
    /// assert_eq!(selector.to_string(), "app=web,tier notin (cache,db)");
    /// # Ok::<(), kubewire_indexer::SelectorError>(())
    /// ```
    pub fn from_parts<N, V, M, P, I>(
        match_labels: impl IntoIterator<Item = (N, V)>,
        match_expressions: impl IntoIterator<Item = (M, P, I)>,
    ) -> Result<Self, SelectorError>
    where
        N: AsRef<str>,
        V: AsRef<str>,
        M: AsRef<str>,
        P: AsRef<str>,
        I: IntoIterator<Item: AsRef<str>>,
    {
        let mut requirements = Vec::new();
        for (name, value) in match_labels {
            requirements.push(Requirement::new(name.as_ref(), Operator::Equals, [value])?);
        }
        for (name, operator, values) in match_expressions {
            requirements.push(Requirement::new(name.as_ref(), operator.as_ref().parse()?, values)?);
        }
        Ok(Self::of(requirements))
    }

    /// Whether an object meets all requirements; `label` looks up one of its labels.
    ///
    /// Cost: one look-up for each requirement, until one is not met.
    pub fn matches<'a>(&self, label: impl Fn(&str) -> Option<&'a str>) -> bool {
        !self.nothing && self.requirements.iter().all(|requirement| requirement.matches(label(requirement.name())))
    }

    /// Whether an object meets all requirements.
    pub fn matches_object<O: Object>(&self, object: &O) -> bool {
        self.matches(|name| object.label(name))
    }

    /// Whether every object is selected, whatever its labels.
    pub fn is_everything(&self) -> bool {
        !self.nothing && self.requirements.is_empty()
    }

    /// Whether no object is selected, whatever its labels.
    pub fn is_nothing(&self) -> bool {
        self.nothing
    }

    /// The requirements, sorted by name.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }
}

impl FromStr for LabelSelector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        Ok(Self::of(parser::parse(text)?))
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, requirement) in self.requirements.iter().enumerate() {
            let comma = if position == 0 { "" } else { "," };
            write!(f, "{comma}{requirement}")?;
        }
        Ok(())
    }
}

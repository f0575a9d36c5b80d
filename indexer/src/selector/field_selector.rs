//! Field selectors.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use super::SelectorError;

/// Selects objects by their fields, with the meaning and the syntax of the API: `a.b=c`, `a.b==c`, `a.b!=c`, all of
/// which must be met, separated by commas.
///
/// In values `\\`, `\,` and `\=` stand for a backslash, a comma and an equals sign. A field that is absent counts
/// as empty. Which fields can be asked for is up to the server. The empty text selects everything.
///
/// ```
/// use kubewire_indexer::FieldSelector;
///
/// let selector: FieldSelector = "status.phase!=Succeeded,metadata.namespace==default".parse()?;
/// assert_eq!(selector.to_string(), "metadata.namespace=default,status.phase!=Succeeded");
/// assert!(selector.matches(|field| (field == "metadata.namespace").then_some("default")));
/// # Ok::<(), kubewire_indexer::SelectorError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct FieldSelector {
    /// Sorted as their texts are.
    requirements: Vec<FieldRequirement>,
}

/// One condition on one field.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct FieldRequirement {
    /// The path of the field, such as `status.phase`.
    pub field: String,
    /// The value, without escapes.
    pub value: String,
    /// Whether the field must differ from the value (`!=`).
    pub differs: bool,
}

impl FieldSelector {
    /// Selects all objects.
    pub const fn everything() -> Self {
        Self { requirements: Vec::new() }
    }

    /// Selects the objects whose field has this value.
    pub fn equals(field: impl Into<String>, value: impl Into<String>) -> Self {
        Self { requirements: vec![FieldRequirement { field: field.into(), value: value.into(), differs: false }] }
    }

    /// Whether an object meets all requirements; `field` looks up one of its fields.
    pub fn matches<V: AsRef<str>>(&self, field: impl Fn(&str) -> Option<V>) -> bool {
        self.requirements.iter().all(|requirement| {
            let value = field(&requirement.field);
            (value.as_ref().map_or("", AsRef::as_ref) == requirement.value) != requirement.differs
        })
    }

    /// Whether every object is selected.
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// The requirements.
    pub fn requirements(&self) -> &[FieldRequirement] {
        &self.requirements
    }

    /// The value that this field must have, if the selector asks for one: a server need not look at other
    /// objects then.
    pub fn required_value(&self, field: &str) -> Option<&str> {
        let found = self.requirements.iter().find(|requirement| requirement.field == field && !requirement.differs)?;
        Some(&found.value)
    }
}

impl FromStr for FieldSelector {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        let mut terms: Vec<_> = terms(text).filter(|term| !term.is_empty()).collect();
        terms.sort_unstable();
        let mut requirements = terms.into_iter().map(|term| requirement(text, term)).collect::<Result<Vec<_>, _>>()?;
        // The API takes `=` and `!=` alone for nothing said.
        requirements.retain(|requirement| !requirement.field.is_empty() || !requirement.value.is_empty());
        Ok(Self { requirements })
    }
}

/// Splits at the commas that have no backslash before them.
fn terms(text: &str) -> impl Iterator<Item = &str> {
    let mut escaped = false;
    text.split(move |c| {
        let splits = c == ',' && !escaped;
        escaped = c == '\\' && !escaped;
        splits
    })
}

fn requirement(text: &str, term: &str) -> Result<FieldRequirement, SelectorError> {
    // The first place at which an operator stands; there, the longer one.
    let found = term.char_indices().find_map(|(at, _)| Some((at, operator(&term[at..])?)));
    let Some((at, (sign, differs))) = found else {
        return Err(SelectorError::Term { text: text.to_owned(), term: term.to_owned() });
    };
    let value = &term[at + sign.len()..];
    let unescaped =
        unescape(value).ok_or_else(|| SelectorError::Escape { text: text.to_owned(), value: value.to_owned() })?;
    Ok(FieldRequirement { field: term[..at].to_owned(), value: unescaped.into_owned(), differs })
}

fn operator(rest: &str) -> Option<(&'static str, bool)> {
    [("!=", true), ("==", false), ("=", false)].into_iter().find(|(sign, _)| rest.starts_with(sign))
}

fn unescape(value: &str) -> Option<Cow<'_, str>> {
    if !value.contains(SPECIAL) {
        return Some(Cow::Borrowed(value));
    }
    let mut plain = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => plain.push(chars.next().filter(|c| SPECIAL.contains(c))?),
            ',' | '=' => return None,
            c => plain.push(c),
        }
    }
    Some(Cow::Owned(plain))
}

const SPECIAL: [char; 3] = ['\\', ',', '='];

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, requirement) in self.requirements.iter().enumerate() {
            let comma = if position == 0 { "" } else { "," };
            write!(f, "{comma}{requirement}")?;
        }
        Ok(())
    }
}

impl fmt::Display for FieldRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.field, if self.differs { "!=" } else { "=" })?;
        for c in self.value.chars() {
            if SPECIAL.contains(&c) {
                f.write_str("\\")?;
            }
            write!(f, "{c}")?;
        }
        Ok(())
    }
}

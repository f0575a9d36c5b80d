//! One condition on one label.

use std::fmt;
use std::str::FromStr;

use super::{SelectorError, validate_label_name, validate_label_value};

/// How a requirement compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operator {
    /// `name=value`
    Equals,
    /// `name==value`, which is the same
    DoubleEquals,
    /// `name!=value`; also true where the label is absent
    NotEquals,
    /// `name in (a,b)`
    In,
    /// `name notin (a,b)`; also true where the label is absent
    NotIn,
    /// `name`
    Exists,
    /// `!name`
    DoesNotExist,
    /// `name>7`: both are whole numbers
    GreaterThan,
    /// `name<7`: both are whole numbers
    LessThan,
}

/// The operators of `matchExpressions`: `In`, `NotIn`, `Exists`, `DoesNotExist`.
impl FromStr for Operator {
    type Err = SelectorError;

    fn from_str(text: &str) -> Result<Self, SelectorError> {
        match text {
            "In" => Ok(Self::In),
            "NotIn" => Ok(Self::NotIn),
            "Exists" => Ok(Self::Exists),
            "DoesNotExist" => Ok(Self::DoesNotExist),
            _ => Err(SelectorError::Operator(text.to_owned())),
        }
    }
}

/// One condition on one label: its name, an operator, and values as the operator wants them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Requirement {
    name: Box<str>,
    operator: Operator,
    /// Sorted, each once.
    values: Box<[Box<str>]>,
}

impl Requirement {
    /// A requirement of these parts.
    ///
    /// `In` and `NotIn` want at least one value, `Exists` and `DoesNotExist` none, the others exactly one, and
    /// `GreaterThan` and `LessThan` a whole number.
    pub fn new<V: AsRef<str>>(
        name: &str,
        operator: Operator,
        values: impl IntoIterator<Item = V>,
    ) -> Result<Self, SelectorError> {
        if let Err(problem) = validate_label_name(name) {
            return Err(SelectorError::Name { name: name.to_owned(), problem });
        }
        let mut sorted: Vec<Box<str>> = values.into_iter().map(|value| value.as_ref().into()).collect();
        sorted.sort_unstable();
        sorted.dedup();
        let (fits, want) = match operator {
            Operator::In | Operator::NotIn => (!sorted.is_empty(), "at least one value"),
            Operator::Exists | Operator::DoesNotExist => (sorted.is_empty(), "no value"),
            _ => (sorted.len() == 1, "exactly one value"),
        };
        if !fits {
            return Err(SelectorError::ValueCount { name: name.to_owned(), operator, want, got: sorted.len() });
        }
        for value in &sorted {
            let number = !matches!(operator, Operator::GreaterThan | Operator::LessThan) || number(value).is_some();
            let valid = if number { validate_label_value(value) } else { Err("it must be a whole number of 64 bits") };
            if let Err(problem) = valid {
                return Err(SelectorError::Value { name: name.to_owned(), value: value.to_string(), problem });
            }
        }
        Ok(Self { name: name.into(), operator, values: sorted.into_boxed_slice() })
    }

    /// The name of the label.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The operator.
    pub fn operator(&self) -> Operator {
        self.operator
    }

    /// The values, sorted, each once.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &str> {
        self.values.iter().map(|value| &**value)
    }

    /// Whether a label of this value, or one that is absent, meets the requirement.
    pub fn matches(&self, label: Option<&str>) -> bool {
        match self.operator {
            Operator::Equals | Operator::DoubleEquals | Operator::In => label.is_some_and(|label| self.has(label)),
            Operator::NotEquals | Operator::NotIn => !label.is_some_and(|label| self.has(label)),
            Operator::Exists => label.is_some(),
            Operator::DoesNotExist => label.is_none(),
            Operator::GreaterThan => self.compares(label, |label, value| label > value),
            Operator::LessThan => self.compares(label, |label, value| label < value),
        }
    }

    fn has(&self, label: &str) -> bool {
        self.values.binary_search_by(|value| (**value).cmp(label)).is_ok()
    }

    fn compares(&self, label: Option<&str>, compare: fn(i64, i64) -> bool) -> bool {
        let label = label.and_then(number);
        let value = self.values.first().and_then(|value| number(value));
        label.zip(value).is_some_and(|(label, value)| compare(label, value))
    }
}

fn number(text: &str) -> Option<i64> {
    text.parse().ok()
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before, between, after) = match self.operator {
            Operator::Exists => ("", "", ""),
            Operator::DoesNotExist => ("!", "", ""),
            Operator::Equals => ("", "=", ""),
            Operator::DoubleEquals => ("", "==", ""),
            Operator::NotEquals => ("", "!=", ""),
            Operator::GreaterThan => ("", ">", ""),
            Operator::LessThan => ("", "<", ""),
            Operator::In => ("", " in (", ")"),
            Operator::NotIn => ("", " notin (", ")"),
        };
        write!(f, "{before}{}{between}", self.name)?;
        for (position, value) in self.values().enumerate() {
            let comma = if position == 0 { "" } else { "," };
            write!(f, "{comma}{value}")?;
        }
        f.write_str(after)
    }
}

//! What can be wrong with a selector.

use super::Operator;

/// Why a text, or its parts, are no selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SelectorError {
    /// Something stands where something else should.
    #[error("invalid selector {text:?}: found {found}, want {want}")]
    Syntax {
        /// The selector.
        text: String,
        /// What stands there: a token in quotes and where it begins, or the end.
        found: String,
        /// What could stand there.
        want: &'static str,
    },
    /// The name of a label cannot be one.
    #[error("invalid label name {name:?}: {problem}")]
    Name {
        /// The name.
        name: String,
        /// What is wrong with it, and what would be right.
        problem: &'static str,
    },
    /// The value of a label cannot be one.
    #[error("invalid value {value:?} of the label {name:?}: {problem}")]
    Value {
        /// The name of the label.
        name: String,
        /// The value.
        value: String,
        /// What is wrong with it, and what would be right.
        problem: &'static str,
    },
    /// The number of values does not fit the operator.
    #[error("the operator {operator:?} on the label {name:?} wants {want}, got {got} values")]
    ValueCount {
        /// The name of the label.
        name: String,
        /// The operator.
        operator: Operator,
        /// What it wants.
        want: &'static str,
        /// How many values it was given.
        got: usize,
    },
    /// There is no such operator in a label selector.
    #[error("unknown operator {0:?}: want In, NotIn, Exists or DoesNotExist")]
    Operator(String),
    /// A part of a field selector has no operator.
    #[error("invalid field selector {text:?}: cannot understand {term:?}, want `field=value` or `field!=value`")]
    Term {
        /// The selector.
        text: String,
        /// The part.
        term: String,
    },
    /// The value in a field selector has a backslash, comma or equals sign that is not escaped.
    #[error(
        "invalid field selector {text:?}: in the value {value:?} write `\\\\`, `\\,` and `\\=` for `\\`, `,` and `=`"
    )]
    Escape {
        /// The selector.
        text: String,
        /// The value, as it stands there.
        value: String,
    },
}

//! Label and field selectors, exactly as the API's.

mod error;
mod field_selector;
mod label_selector;
mod label_syntax;
mod lexer;
mod parser;
mod requirement;

pub use error::SelectorError;
pub use field_selector::{FieldRequirement, FieldSelector};
pub use label_selector::LabelSelector;
pub use label_syntax::{validate_label_name, validate_label_value};
pub use requirement::{Operator, Requirement};

//! JSON texts, read as serde wants it: [`Reader`] for objects, over [`block`]s where values are skipped.
//!
//! What it has over serde_json: a value that nobody wants is skipped by its brackets and quotes, 64 bytes at once; arrays
//! say how long they are before they are read, so that vectors are made as long as they will be; where a value stands
//! can be asked ([`Span`]); an error tells the path of the value that is at fault.
//!
//! All objects are read by this one type of deserializer, and by no second one for what is rare: what serde makes of a
//! pod is thousands of functions for each.

pub(crate) mod block;
mod deserialize;
mod json_error;
mod key;
mod reader;
mod span;
#[cfg(test)]
mod tests;
mod token;

pub(crate) use json_error::JsonError;
pub(crate) use reader::Reader;
pub(crate) use span::Span;
pub(crate) use token::plain_len;

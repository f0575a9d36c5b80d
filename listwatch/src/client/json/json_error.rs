//! Why a text cannot be read, and where.

use std::fmt;

/// What is wrong, the path of the value that is at fault, and the place in the text.
#[derive(Debug)]
pub(crate) struct JsonError(Box<Fault>);

#[derive(Debug)]
struct Fault {
    what: String,
    /// The first byte behind what was read.
    at: Option<usize>,
    /// From the whole inwards. Empty for the whole.
    path: String,
}

impl JsonError {
    pub(super) fn new(what: String, at: usize) -> Self {
        Self(Box::new(Fault { what, at: Some(at), path: String::new() }))
    }

    /// The error of a member of an object; `key` is as it stands in the text, which was read up to `at`.
    #[cold]
    pub(super) fn in_member(self, key: &str, at: usize) -> Self {
        self.inside(key.to_owned(), at)
    }

    /// The error of an element of an array.
    #[cold]
    pub(super) fn in_element(self, index: usize, at: usize) -> Self {
        self.inside(format!("[{index}]"), at)
    }

    fn inside(mut self, mut path: String, at: usize) -> Self {
        let fault = &mut *self.0;
        if !fault.path.is_empty() && !fault.path.starts_with('[') {
            path.push('.');
        }
        path.push_str(&fault.path);
        fault.path = path;
        fault.at.get_or_insert(at);
        self
    }

    /// What is wrong, without the place.
    pub(crate) fn what(&self) -> &str {
        &self.0.what
    }
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Fault { what, at, path } = &*self.0;
        if !path.is_empty() {
            write!(f, "{path}: ")?;
        }
        f.write_str(what)?;
        at.map_or(Ok(()), |at| write!(f, " at byte {at}"))
    }
}

impl std::error::Error for JsonError {}

impl serde::de::Error for JsonError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self(Box::new(Fault { what: message.to_string(), at: None, path: String::new() }))
    }
}

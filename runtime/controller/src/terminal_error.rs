//! An error that no retry can heal.

use std::error::Error;
use std::fmt;

use crate::BoxError;

/// Says that an error will not pass by itself: the request is not tried again until something changes, and its failures
/// are forgotten. As controller-runtime's `TerminalError`, which does not forget them.
///
/// It is found anywhere in a chain of [sources](Error::source), so it may be wrapped.
///
/// ```
/// use kubewire_controller::{TerminalError, is_terminal};
///
/// let error = TerminalError::new("the image has no name");
/// assert_eq!(error.to_string(), "terminal error: the image has no name");
/// assert!(is_terminal(&error));
/// assert!(!is_terminal(&std::io::Error::other("the server is away")));
/// assert!(is_terminal(&std::io::Error::other(error)));
/// ```
#[derive(Debug)]
pub struct TerminalError {
    marked: Marked,
}

/// The link in the chain by which a terminal error is known. It is a link of its own, behind the error itself, since
/// whoever wraps an error may hide the error's own type but not its sources.
#[derive(Debug)]
struct Marked(Option<BoxError>);

impl TerminalError {
    /// This error is terminal.
    pub fn new(error: impl Into<BoxError>) -> Self {
        Self { marked: Marked(Some(error.into())) }
    }

    /// A terminal error of which nothing more is known.
    pub fn unexplained() -> Self {
        Self { marked: Marked(None) }
    }

    /// The error that is terminal.
    pub fn into_inner(self) -> Option<BoxError> {
        self.marked.0
    }
}

impl fmt::Display for TerminalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.marked.0 {
            Some(error) => write!(f, "terminal error: {error}"),
            None => f.write_str("terminal error without an explanation"),
        }
    }
}

impl Error for TerminalError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.marked)
    }
}

impl fmt::Display for Marked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(error) => error.fmt(f),
            None => f.write_str("no explanation"),
        }
    }
}

impl Error for Marked {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.0.as_deref().map(|error| error as &(dyn Error + 'static))
    }
}

/// Whether there is a [`TerminalError`] in the chain of this error.
pub fn is_terminal(error: &(dyn Error + 'static)) -> bool {
    let mut link = Some(error);
    while let Some(error) = link {
        if error.is::<TerminalError>() || error.is::<Marked>() {
            return true;
        }
        link = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("wrapped")]
    struct Wrapped(#[source] BoxError);

    fn boxed(error: impl Into<BoxError>) -> BoxError {
        error.into()
    }

    #[test]
    fn a_terminal_error_is_found_anywhere_in_a_chain() {
        let terminal = || TerminalError::new("no");
        let twice = Wrapped(boxed(Wrapped(boxed(terminal()))));
        // what | terminal
        let rows = [
            (boxed(terminal()), true),
            (boxed(TerminalError::unexplained()), true),
            (boxed(twice), true),
            (boxed(TerminalError::new(terminal())), true),
            (boxed(anyhow::Error::new(terminal())), true),
            (boxed(anyhow::Error::new(terminal()).context("while at it")), true),
            (boxed(anyhow::anyhow!("no")), false),
            (boxed("terminal error: no"), false),
            (boxed(Wrapped(boxed("no"))), false),
        ];
        for (error, want) in rows {
            assert_eq!(is_terminal(&*error), want, "{error:?}");
        }
        let in_a_result: Result<(), _> = Err(terminal()).context("while at it");
        assert!(is_terminal(&*boxed(in_a_result.unwrap_err())));
    }

    #[test]
    fn a_terminal_error_prints_with_and_without_an_explanation_and_gives_it_back() {
        assert_eq!(TerminalError::new("no").to_string(), "terminal error: no");
        assert_eq!(TerminalError::unexplained().to_string(), "terminal error without an explanation");
        let inner = TerminalError::new(std::io::Error::other("disk")).into_inner().unwrap();
        assert!(inner.is::<std::io::Error>());
        assert!(TerminalError::unexplained().into_inner().is_none());
        // What it is about is found in the chain too.
        let error = TerminalError::new(std::io::Error::other("disk"));
        assert!(error.source().and_then(Error::source).is_some_and(|inner| inner.is::<std::io::Error>()));
    }
}

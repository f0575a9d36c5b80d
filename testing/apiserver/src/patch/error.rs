//! Why a patch was refused.

use http::StatusCode;

/// Why a patch was refused, with the status code that the API server answers ([`PatchError::status_code`]).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum PatchError {
    /// The `Content-Type` is no patch, or none that this resource takes: strategic merge needs a built-in kind.
    #[error(
        "the body of the request was in an unknown format ({content_type}) - accepted media types include: {accepted}"
    )]
    UnsupportedMediaType {
        /// As the client sent it.
        content_type: String,
        /// What the resource takes, separated by commas.
        accepted: String,
    },
    /// The body is no JSON.
    #[error("error decoding patch: {0}")]
    Decode(#[from] serde_json::Error),
    /// The body of a merge patch is JSON, but not an object.
    #[error("invalid JSON document: a merge patch is a JSON object, not {0}")]
    NotAnObject(&'static str),
    /// A directive (`$patch`, `$retainKeys`, `$setElementOrder/…`, `$deleteFromPrimitiveList/…`) is malformed.
    #[error("invalid patch format of {directive}: {problem}")]
    Directive {
        /// The directive's member name.
        directive: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A JSON patch with more operations than the API server allows.
    #[error("The allowed maximum operations in a JSON patch is {max}, got {got}")]
    TooManyOperations {
        /// The limit.
        max: usize,
        /// How many the patch has.
        got: usize,
    },
    /// The `copy` operations of a JSON patch copy too much.
    #[error("the copy operations of a JSON patch may copy {max_bytes} bytes, and this one copies more")]
    TooManyCopies {
        /// The limit, in bytes of JSON.
        max_bytes: usize,
    },
    /// An operation of a JSON patch failed: a path that does not exist, a `test` that does not hold.
    #[error("the server rejected our request due to an error in our request: {0}")]
    Operation(#[from] json_patch::PatchError),
    /// The patch does not fit the object: an element without its merge key, a list of mixed types.
    #[error("the server rejected our request due to an error in our request: {0}")]
    Unprocessable(String),
}

impl PatchError {
    /// The HTTP status of the answer: 415, 400, 413 or 422.
    ///
    /// The API server answers 500 to an element without its merge key; here it is the client's error (422), so that no
    /// client retries it.
    pub(crate) fn status_code(&self) -> StatusCode {
        match self {
            PatchError::UnsupportedMediaType { .. } => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            PatchError::Decode(_) | PatchError::NotAnObject(_) | PatchError::Directive { .. } => {
                StatusCode::BAD_REQUEST
            }
            PatchError::TooManyOperations { .. } | PatchError::TooManyCopies { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            PatchError::Operation(_) | PatchError::Unprocessable(_) => StatusCode::UNPROCESSABLE_ENTITY,
        }
    }

    pub(super) fn directive(directive: impl Into<String>, problem: impl Into<String>) -> Self {
        PatchError::Directive { directive: directive.into(), problem: problem.into() }
    }
}

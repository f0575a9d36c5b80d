//! Answers of a server that are no errors to a reconciler.

use kube_client::Error;

/// `None` where the server says that there is no such object: as controller-runtime's `IgnoreNotFound`, for deletions.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use kube_client::Api;
/// use kubewire_controller::ignore_not_found;
///
/// # async fn f(pods: Api<Pod>) -> Result<(), kube_client::Error> {
/// ignore_not_found(pods.delete("web-0", &Default::default()).await)?; // Somebody else may have been quicker.
/// # Ok(()) }
/// ```
///
/// # Errors
/// All others.
pub fn ignore_not_found<T>(answer: Result<T, Error>) -> Result<Option<T>, Error> {
    match answer {
        Err(Error::Api(status)) if status.is_not_found() => Ok(None),
        answer => answer.map(Some),
    }
}

/// `None` where the server says that there is such an object already: as controller-runtime's `IgnoreAlreadyExists`, for
/// creations whose event the cache has not seen yet.
///
/// # Errors
/// All others; that of a write over another one's, which has the same code, among them.
pub fn ignore_already_exists<T>(answer: Result<T, Error>) -> Result<Option<T>, Error> {
    match answer {
        Err(Error::Api(status)) if status.is_already_exists() => Ok(None),
        answer => answer.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use kube_core::Status;

    use super::*;

    #[test]
    fn only_what_was_meant_is_ignored() {
        let answer = |code: u16, reason: &str| -> Result<(), Error> {
            Err(Error::Api(Status { code, reason: reason.to_owned(), ..Status::default() }.boxed()))
        };
        assert!(matches!(ignore_not_found(Ok(1)), Ok(Some(1))));
        assert!(matches!(ignore_not_found(answer(404, "NotFound")), Ok(None)));
        assert!(ignore_not_found(answer(410, "Gone")).is_err());
        assert!(matches!(ignore_already_exists(answer(409, "AlreadyExists")), Ok(None)));
        assert!(ignore_already_exists(answer(409, "Conflict")).is_err());
        assert!(ignore_already_exists(answer(409, "")).is_err());
    }
}

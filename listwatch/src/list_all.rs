//! A whole list at once.

use crate::{ErrorClass, ListOptions, ListerWatcher, RequestError};

/// All objects, in their present state, in one request, and the version of the list.
///
/// For lists that must not come in one piece (the server holds it as a whole) there is `ListPager` in
/// kubewire-informer; for a cache that stays up to date, its informers.
///
/// Cancel-safe: dropping it ends the request.
///
/// # Errors
/// Those of the request; and [`ErrorClass::Decode`] for the first object that could not be decoded.
pub async fn list_all<L: ListerWatcher>(lister: &L) -> Result<(Vec<L::Object>, String), RequestError> {
    let (mut objects, mut bad) = (Vec::new(), None);
    let mut each = |item| match item {
        Ok(object) => objects.push(object),
        Err(error) => bad = bad.take().or(Some(error)),
    };
    let meta = lister.list(&ListOptions::default(), &mut each).await?;
    match bad {
        None => Ok((objects, meta.resource_version)),
        Some(error) => {
            let message = format!("list {}: {error}", lister.resource());
            Err(RequestError::new(ErrorClass::Decode, message).with_source(error))
        }
    }
}

//! Who decides.

use futures::future::BoxFuture;

use crate::{AdmissionRequest, AdmissionResponse};

/// Answers admission requests of one path. An async closure is one, too.
///
/// ```
/// use kubewire_webhook::{AdmissionHandler, AdmissionRequest, AdmissionResponse, Rejection};
///
/// /// Nobody but robots may delete.
/// struct Robots;
///
/// impl AdmissionHandler for Robots {
///     async fn handle(&self, request: AdmissionRequest) -> AdmissionResponse {
///         match request.user_info.username.as_deref() {
///             Some(name) if name.starts_with("robot:") => AdmissionResponse::allowed(),
///             _ => AdmissionResponse::denied("robots only"),
///         }
///     }
/// }
///
/// # fn takes(_: impl AdmissionHandler) {}
/// takes(Robots);
/// takes(|request: AdmissionRequest| async move {
///     let deep = request.namespace.is_some();
///     if deep { AdmissionResponse::allowed() } else { Rejection::invalid("it needs a namespace").into() }
/// });
/// ```
pub trait AdmissionHandler: Send + Sync + 'static {
    /// Decides. The future is dropped where the API server waits no longer; a panic is caught, counted, and answered by 500.
    fn handle(&self, request: AdmissionRequest) -> impl Future<Output = AdmissionResponse> + Send;
}

impl<F, R> AdmissionHandler for F
where
    F: Fn(AdmissionRequest) -> R + Send + Sync + 'static,
    R: Future<Output = AdmissionResponse> + Send,
{
    fn handle(&self, request: AdmissionRequest) -> impl Future<Output = AdmissionResponse> + Send {
        self(request)
    }
}

/// The same for a table of handlers of all types.
pub(crate) trait ErasedHandler: Send + Sync {
    fn handle(&self, request: AdmissionRequest) -> BoxFuture<'_, AdmissionResponse>;
}

impl<H: AdmissionHandler> ErasedHandler for H {
    fn handle(&self, request: AdmissionRequest) -> BoxFuture<'_, AdmissionResponse> {
        Box::pin(AdmissionHandler::handle(self, request))
    }
}

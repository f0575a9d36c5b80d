//! Who makes what there is into what there should be.

use futures::future::BoxFuture;
use kubewire_indexer::{Indexer, Object, ObjectKey};

use crate::attempt::Attempt;
use crate::cluster::Cached;
use crate::outcome::Outcome;
use crate::request::{Request, RequestKey};
use crate::runnable::BoxError;

/// Makes what there is into what there should be, for one request at a time: controller-runtime's `Reconciler`.
///
/// It looks at the present state, which its request only names, and must be content with being called too often. One
/// request is never with two workers of a controller at a time; with several workers different ones are.
///
/// Any function or closure is one that takes a request and an [`Attempt`] and answers a future of a result:
///
/// ```
/// use kubewire_controller::{Attempt, Outcome, Reconciler, Request};
///
/// fn is_reconciler<R: Reconciler<Request>>(_: R) {}
///
/// async fn reconcile(pod: Request, attempt: Attempt) -> Result<Outcome, std::io::Error> {
///     println!("{pod}, attempt {}", attempt.id());
///     Ok(Outcome::Done)
/// }
/// is_reconciler(reconcile);
/// is_reconciler(|pod: Request, _: Attempt| async move {
///     println!("{pod}");
///     anyhow::Ok(Outcome::requeue_after_secs(60))
/// });
/// ```
///
/// A struct that holds what it needs is one by an `async fn`:
///
/// ```
/// use kubewire_controller::{Attempt, Outcome, Reconciler, Request};
///
/// struct Scaler { steps: u32 } // caches, a client, a recorder, …
///
/// impl Reconciler for Scaler {
///     type Error = std::io::Error;
///
///     async fn reconcile(&self, pod: Request, _: Attempt) -> Result<Outcome, Self::Error> {
///         println!("{pod} by {}", self.steps);
///         Ok(Outcome::Done)
///     }
/// }
/// ```
///
/// [`with_state`] makes one of a plain `async fn` and what that needs.
///
/// # How it is ended
/// After the [time-out](crate::ControllerOptions::reconcile_timeout), and when a controller that stops has no time left, the
/// future is dropped at the await where it stands. What must not be left half-done belongs into a task of its own, or has
/// to be found and finished by the next attempt.
pub trait Reconciler<R = Request>: Send + Sync + 'static {
    /// Why it failed; anything that can be boxed. A [`TerminalError`](crate::TerminalError) anywhere in its chain says
    /// that it is of no use to try again.
    type Error: Into<BoxError>;

    /// Reconciles one request.
    fn reconcile(&self, request: R, attempt: Attempt) -> impl Future<Output = Result<Outcome, Self::Error>> + Send;
}

impl<R, F, Fut, E> Reconciler<R> for F
where
    F: Fn(R, Attempt) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Outcome, E>> + Send,
    E: Into<BoxError>,
{
    type Error = E;

    fn reconcile(&self, request: R, attempt: Attempt) -> impl Future<Output = Result<Outcome, E>> + Send {
        self(request, attempt)
    }
}

/// A reconciler of a plain `async fn` and the state that it needs, which each attempt is given a clone of: an `Arc`, or a
/// struct of handles (a client, [`Cached`](crate::Cached) objects, a recorder), which are cheap to clone.
///
/// ```
/// use std::sync::Arc;
/// use k8s_openapi::api::core::v1::Pod;
/// use kubewire_controller::{Attempt, BuildError, Cached, Controller, Manager, Outcome, ReadError, Request, with_state};
///
/// async fn reconcile(pods: Cached<Arc<Pod>>, request: Request, _: Attempt) -> Result<Outcome, ReadError> {
///     match pods.get_by_key(&request)? {
///         Some(_) => println!("{request} is there"),
///         None => println!("{request} is gone"),
///     }
///     Ok(Outcome::Done)
/// }
///
/// fn add(manager: &Manager, pods: Cached<Arc<Pod>>) -> Result<Controller, BuildError> {
///     Controller::builder().for_(&pods).complete(manager, with_state(pods.clone(), reconcile))
/// }
/// ```
pub fn with_state<S, R, F, Fut, E>(state: S, reconcile: F) -> impl Reconciler<R, Error = E>
where
    S: Clone + Send + Sync + 'static,
    F: Fn(S, R, Attempt) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Outcome, E>> + Send,
    E: Into<BoxError> + Send + 'static,
{
    move |request: R, attempt| reconcile(state.clone(), request, attempt)
}

/// A reconciler that is given the object rather than its key; one that is not there any more is none of its business.
/// As controller-runtime's `AsReconciler`. `store` is what a cache keeps ([`Cached`](crate::Cached)), or an [`Indexer`].
///
/// ```
/// use std::sync::Arc;
/// use kubewire_controller::{Attempt, Outcome, Reconciler, Request, reconcile_objects};
/// use kubewire_indexer::{Id, Indexer, Meta};
///
/// struct Pod;
/// impl Meta for Pod {
///     fn id(&self) -> Id<'_> {
///         Id::new("default", "web")
///     }
/// }
///
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let store: Indexer<Arc<Pod>> = Indexer::new();
/// let reconciler = reconcile_objects(store.clone(), |_pod: Arc<Pod>, _: Attempt| async {
///     Ok::<_, std::io::Error>(Outcome::requeue_after_secs(60))
/// });
/// let request = Request::new("default", "web");
/// assert_eq!(reconciler.reconcile(request.clone(), Attempt::for_test()).await.unwrap(), Outcome::Done);
/// store.add(Arc::new(Pod)).unwrap();
/// let outcome = reconciler.reconcile(request, Attempt::for_test()).await.unwrap();
/// assert_eq!(outcome, Outcome::requeue_after_secs(60));
/// # });
/// ```
pub fn reconcile_objects<O, F, Fut, E>(
    store: impl ReadObjects<O>,
    reconcile: F,
) -> impl Reconciler<Request, Error = BoxError>
where
    O: Object,
    F: Fn(O, Attempt) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Outcome, E>> + Send,
    E: Into<BoxError> + Send + 'static,
{
    move |request: Request, attempt| {
        let found = store.read(&request).map(|found| found.map(|object| reconcile(object, attempt)));
        async move {
            match found? {
                Some(attempt) => attempt.await.map_err(|error| -> BoxError { error.into() }),
                None => Ok(Outcome::Done),
            }
        }
    }
}

/// What objects are read from by their key, at once.
pub trait ReadObjects<O>: Send + Sync + 'static {
    /// The object of this key, if there is one.
    ///
    /// # Errors
    /// It cannot be said.
    fn read(&self, key: &ObjectKey) -> Result<Option<O>, BoxError>;
}

impl<O: Object> ReadObjects<O> for Indexer<O> {
    fn read(&self, key: &ObjectKey) -> Result<Option<O>, BoxError> {
        Ok(self.get_by_key(key))
    }
}

impl<O: Object> ReadObjects<O> for Cached<O> {
    fn read(&self, key: &ObjectKey) -> Result<Option<O>, BoxError> {
        Ok(self.get_by_key(key)?)
    }
}

/// A reconciler of any type.
pub(crate) trait AnyReconciler<R>: Send + Sync + 'static {
    fn reconcile_boxed(&self, request: R, attempt: Attempt) -> BoxFuture<'_, Result<Outcome, BoxError>>;
}

impl<R: RequestKey, T: Reconciler<R>> AnyReconciler<R> for T {
    fn reconcile_boxed(&self, request: R, attempt: Attempt) -> BoxFuture<'_, Result<Outcome, BoxError>> {
        // Within the future, so that a panic before the first await is one of the future's too.
        Box::pin(async move { self.reconcile(request, attempt).await.map_err(Into::into) })
    }
}

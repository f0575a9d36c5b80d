//! A controller of informers, in a few lines.

use std::fmt;
use std::sync::Arc;

use kube_core::Resource;
use kubewire_indexer::Object;
use kubewire_informer::Informer;
use kubewire_listwatch::Represented;

use crate::cluster::Cached;
use crate::controller::Controller;
use crate::controller_metrics::ControllerMetrics;
use crate::controller_options::{ControllerDefaults, ControllerOptions};
use crate::event::AnyObject;
use crate::event_handler::{EnqueueRequestForObject, EnqueueRequestForOwner, EventHandler, GroupKind, ScopeOfOwner};
use crate::predicate::Predicate;
use crate::reconciler::Reconciler;
use crate::request::{Request, RequestKey};
use crate::runnable::{BoxError, Runnable};
use crate::source::{KindSource, Source};
use crate::watch::AnyPredicate;

/// Builds a controller whose sources are informers: controller-runtime's `ControllerManagedBy`.
///
/// The informers come from whoever made them, a factory or a manager's cluster: nothing is listed because a builder says so.
/// All it does is put a [`KindSource`] with the right handler for each watch into a [`Controller`].
///
/// ```
/// use std::sync::Arc;
/// use k8s_openapi::api::apps::v1::ReplicaSet;
/// use k8s_openapi::api::core::v1::{ConfigMap, Pod};
/// use kubewire_controller::{
///     Attempt, Controller, GenerationChanged, Outcome, Request, ResourceVersionChanged, map, watched,
/// };
/// use kubewire_informer::Informer;
///
/// # type Error = Box<dyn std::error::Error + Send + Sync>;
/// async fn reconcile(set: Request, _: Attempt) -> Result<Outcome, Error> {
///     println!("{set} has changed, or one of its pods");
///     Ok(Outcome::Done)
/// }
///
/// fn build(
///     sets: &Informer<Arc<ReplicaSet>>,
///     pods: &Informer<Arc<Pod>>,
///     configs: &Informer<Arc<ConfigMap>>,
/// ) -> Result<Controller, Error> {
///     let controller = Controller::builder()
///         .for_(watched(sets).when(GenerationChanged))
///         .owns(pods)
///         .watches(configs, map(|_: &Arc<ConfigMap>| [Request::new("default", "web")]))
///         .with_predicate(ResourceVersionChanged)
///         .build(reconcile)?;
///     assert_eq!(controller.name(), "replicaset");
///     Ok(controller)
/// }
/// ```
#[must_use = "a builder does nothing until `build` or `complete`"]
pub struct Builder<R: RequestKey = Request> {
    name: Option<String>,
    options: ControllerOptions<R>,
    metrics: Option<ControllerMetrics>,
    primary: Option<Primary>,
    /// A second `for_`.
    for_twice: bool,
    /// A `for_dynamic` of an informer.
    unknown_kind: bool,
    global: Vec<AnyPredicate>,
    watches: Vec<MakeSource<R>>,
}

/// What a controller is for.
#[derive(Clone, Debug)]
struct Primary {
    kind: GroupKind,
    cluster_scoped: bool,
}

/// Makes a source, once all is known.
type MakeSource<R> =
    Box<dyn FnOnce(Option<&Primary>, &[AnyPredicate]) -> Result<Box<dyn Source<R>>, BuildError> + Send>;

/// Why a controller was not built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// Neither `for_` nor `named`.
    #[error("a controller needs a name: call `for_`, whose kind names it, or `named`")]
    NoName,
    /// Two `for_`.
    #[error("a controller is for one kind: call `for_` once, and `watches` for others")]
    ForTwice,
    /// `for_dynamic` of something else than what a cache keeps.
    #[error("`for_dynamic` asks a cache for the kind, and an informer does not know it: call `for_kind`")]
    UnknownKind,
    /// `owns` without `for_`.
    #[error("`owns` asks for the owner's kind: call `for_` too, or `watches` with `EnqueueRequestForOwner`")]
    OwnsWithoutFor,
    /// There is nothing that would ever ask it for anything.
    #[error("there are no watches: call `for_`, `watches` or `watches_source`")]
    NoWatches,
    /// Its manager does not take it.
    #[error("the manager does not take the controller {controller}: {reason}")]
    Refused {
        /// The controller's name.
        controller: String,
        /// What the manager says.
        reason: String,
    },
}

/// For whom a controller is [completed](Builder::complete): a manager.
pub trait ControllerHost {
    /// What its controllers have in common.
    fn controller_defaults(&self) -> ControllerDefaults {
        ControllerDefaults::new()
    }

    /// How many requests controllers for a kind reconcile at a time, where they do not say so themselves.
    fn concurrency_of(&self, kind: &GroupKind) -> Option<usize> {
        let _ = kind;
        None
    }

    /// Where the metrics of its controllers go.
    fn controller_metrics(&self) -> ControllerMetrics;

    /// Takes a controller, to run it.
    ///
    /// # Errors
    /// The name is taken, or the host is stopping.
    fn add_controller(&self, controller: Arc<dyn Runnable>) -> Result<(), BoxError>;
}

/// The objects of an informer or of a cache, or those for which predicates say yes.
#[must_use = "it does nothing until it is given to a builder"]
pub struct Watched<O: Object> {
    informers: Vec<Informer<O>>,
    /// Where they come from a cache, which knows it.
    primary: Option<Primary>,
    predicates: Vec<Box<dyn Predicate<O>>>,
    any_owner: bool,
}

/// The objects of an informer, or of a cache, to be narrowed by [`when`](Watched::when). An informer by itself will do where
/// nothing is to be said about it; so will what a [cache](Cached) keeps of a type, whose informers of several namespaces count
/// as one.
pub fn watched<O: Object>(objects: impl Into<Watched<O>>) -> Watched<O> {
    objects.into()
}

impl<O: Object> Watched<O> {
    /// Only events for which this says yes. Of several all must.
    pub fn when(mut self, predicate: impl Predicate<O>) -> Self {
        self.predicates.push(Box::new(predicate));
        self
    }

    /// For [`owns`](Builder::owns): every owner of the kind counts, not only the one that controls the object.
    pub fn by_any_owner(self) -> Self {
        Self { any_owner: true, ..self }
    }
}

impl<O: Object> From<&Informer<O>> for Watched<O> {
    fn from(informer: &Informer<O>) -> Self {
        Self { informers: vec![informer.clone()], primary: None, predicates: Vec::new(), any_owner: false }
    }
}

impl<O: Object> From<&Cached<O>> for Watched<O> {
    fn from(cached: &Cached<O>) -> Self {
        let informers = cached.informers().map(|(_, informer)| informer.clone()).collect();
        let resource = cached.resource();
        let kind = GroupKind::new(&resource.group, &resource.kind);
        let primary = Some(Primary { kind, cluster_scoped: !cached.is_namespaced() });
        Self { informers, primary, predicates: Vec::new(), any_owner: false }
    }
}

impl Builder<Request> {
    /// The kind that it is for: each event of an object asks for that object. The kind names the controller, unless
    /// [`named`](Self::named) does. Once.
    pub fn for_<O: Represented>(self, objects: impl Into<Watched<O>>) -> Self
    where
        O::Resource: Resource<DynamicType = ()>,
        <O::Resource as Resource>::Scope: ScopeOfOwner,
    {
        let cluster_scoped = <O::Resource as Resource>::Scope::CLUSTER;
        self.for_kind(GroupKind::of::<O::Resource>(), cluster_scoped, objects)
    }

    /// As [`for_`](Self::for_), of a kind that the type does not tell.
    pub fn for_kind<O: Object>(
        mut self,
        kind: GroupKind,
        cluster_scoped: bool,
        objects: impl Into<Watched<O>>,
    ) -> Self {
        self.for_twice |= self.primary.is_some();
        self.primary = Some(Primary { kind, cluster_scoped });
        self.watches(objects, EnqueueRequestForObject)
    }

    /// As [`for_`](Self::for_), of a kind that is known at run time only: of what a cache
    /// [keeps](crate::Cache::watch_dynamic) of it.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use kube_core::DynamicObject;
    /// use kubewire_controller::{Attempt, Controller, Manager, Outcome, Request};
    ///
    /// # type Error = Box<dyn std::error::Error + Send + Sync>;
    /// async fn add(manager: &Manager, group: &str, kind: &str) -> Result<Controller, Error> {
    ///     let mapping = manager.cluster().mapper().kind(group, kind).await?;
    ///     let objects = manager.cache().watch_dynamic::<Arc<DynamicObject>>(&mapping)?;
    ///     Ok(Controller::builder().for_dynamic(&objects).complete(manager, |_: Request, _: Attempt| async {
    ///         Ok::<_, Error>(Outcome::Done)
    ///     })?)
    /// }
    /// ```
    pub fn for_dynamic<O: Object>(mut self, objects: impl Into<Watched<O>>) -> Self {
        let objects = objects.into();
        match &objects.primary {
            Some(Primary { kind, cluster_scoped }) => {
                let (kind, cluster_scoped) = (kind.clone(), *cluster_scoped);
                self.for_kind(kind, cluster_scoped, objects)
            }
            None => {
                self.unknown_kind = true;
                self
            }
        }
    }

    /// What objects of the kind that it is for make: each event of an object asks for its owner, if that controls it.
    pub fn owns<O: Object>(mut self, objects: impl Into<Watched<O>>) -> Self {
        let Watched { informers, predicates, any_owner, .. } = objects.into();
        self.watches.push(Box::new(move |primary, global| {
            let primary = primary.ok_or(BuildError::OwnsWithoutFor)?;
            let mut handler = EnqueueRequestForOwner::new(primary.kind.clone()).cluster_scoped(primary.cluster_scoped);
            if any_owner {
                handler = handler.any_owner();
            }
            Ok(Box::new(KindSource::of_all(informers, handler).with_global(global).with_predicates(predicates)))
        }));
        self
    }
}

impl<R: RequestKey> Builder<R> {
    /// A builder of a controller with any requests; [`Controller::builder`] is for the usual ones.
    pub fn new() -> Self {
        Self {
            name: None,
            options: ControllerOptions::new(),
            metrics: None,
            primary: None,
            for_twice: false,
            unknown_kind: false,
            global: Vec::new(),
            watches: Vec::new(),
        }
    }

    /// Objects whose events a handler turns into requests.
    pub fn watches<O: Object>(mut self, objects: impl Into<Watched<O>>, handler: impl EventHandler<O, R>) -> Self {
        let Watched { informers, predicates, .. } = objects.into();
        self.watches.push(Box::new(move |_, global| {
            Ok(Box::new(KindSource::of_all(informers, handler).with_global(global).with_predicates(predicates)))
        }));
        self
    }

    /// Any source. Predicates of the builder do not concern it.
    pub fn watches_source(mut self, source: impl Source<R>) -> Self {
        self.watches.push(Box::new(move |_, _| Ok(Box::new(source))));
        self
    }

    /// A predicate for all objects that are watched, of whatever type, asked before their own. Of several all must say yes.
    /// One about the objects of one type is [`Watched::when`].
    pub fn with_predicate(mut self, predicate: impl Predicate<dyn AnyObject>) -> Self {
        self.global.push(Arc::new(predicate));
        self
    }

    /// What it is called. Default: its kind in lower case, so that of two controllers for one kind one has to be named.
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..self }
    }

    /// How it is to behave. A second call replaces the first.
    pub fn options(self, options: ControllerOptions<R>) -> Self {
        Self { options, ..self }
    }

    /// Where its metrics go; default nowhere, or where its host says.
    pub fn metrics(self, metrics: &ControllerMetrics) -> Self {
        Self { metrics: Some(metrics.clone()), ..self }
    }

    /// The controller, for whoever runs it by hand.
    ///
    /// # Errors
    /// What was said does not make a controller.
    pub fn build(self, reconciler: impl Reconciler<R>) -> Result<Controller<R>, BuildError> {
        let Self { name, options, metrics, primary, for_twice, unknown_kind, global, watches } = self;
        if for_twice {
            return Err(BuildError::ForTwice);
        }
        if unknown_kind {
            return Err(BuildError::UnknownKind);
        }
        let kind_name = primary.as_ref().map(|primary| primary.kind.kind.to_lowercase());
        let name = name.or(kind_name).filter(|name| !name.is_empty()).ok_or(BuildError::NoName)?;
        if watches.is_empty() {
            return Err(BuildError::NoWatches);
        }
        let sources = watches.into_iter().map(|make| make(primary.as_ref(), &global)).collect::<Result<Vec<_>, _>>()?;
        let controller = Controller::with_metrics(name, reconciler, options, &metrics.unwrap_or_default());
        for source in sources {
            controller.watch_before_start(source);
        }
        Ok(controller)
    }

    /// The controller, given to a manager.
    ///
    /// # Errors
    /// What was said does not make a controller, or the manager does not take it.
    pub fn complete(
        mut self,
        host: &(impl ControllerHost + ?Sized),
        reconciler: impl Reconciler<R>,
    ) -> Result<Controller<R>, BuildError> {
        if self.options.is_concurrency_unset()
            && let Some(count) = self.primary.as_ref().and_then(|primary| host.concurrency_of(&primary.kind))
        {
            self.options = self.options.max_concurrent_reconciles(count);
        }
        self.options = self.options.or(&host.controller_defaults());
        self.metrics = self.metrics.or_else(|| Some(host.controller_metrics()));
        let controller = self.build(reconciler)?;
        host.add_controller(Arc::new(controller.clone())).map_err(|error| BuildError::Refused {
            controller: controller.name().to_owned(),
            reason: error.to_string(),
        })?;
        Ok(controller)
    }
}

impl<R: RequestKey> Default for Builder<R> {
    fn default() -> Self {
        Self::new()
    }
}

impl<R: RequestKey> fmt::Debug for Builder<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("name", &self.name)
            .field("options", &self.options)
            .field("primary", &self.primary)
            .field("watches", &self.watches.len())
            .finish_non_exhaustive()
    }
}

impl<O: Object> fmt::Debug for Watched<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Watched")
            .field("resources", &self.informers.iter().map(Informer::resource).collect::<Vec<_>>())
            .field("predicates", &self.predicates.len())
            .finish_non_exhaustive()
    }
}

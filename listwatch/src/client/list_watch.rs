//! The lister-watcher over kube-client.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use http::header::{ACCEPT, ACCEPT_ENCODING};
use http::{HeaderValue, Request};
use kube_client::Client;
use kube_client::client::Body;
use kube_core::{ApiResource, NamespaceScope, Resource};
use kubewire_indexer::{FieldSelector, LabelSelector, Object, SelectorError};

use crate::client::codec::{Format, Wanted, accept};
use crate::client::exchange::{Chunks, send};
use crate::client::line_splitter::LineSplitter;
use crate::client::list_body::ListBody;
use crate::client::list_splitter::ListSplitter;
use crate::client::pipeline::Pipeline;
use crate::client::protobuf;
use crate::client::protobuf::frame_splitter::FrameSplitter;
use crate::client::query::{Selectors, list_query, path, timeout_seconds, watch_query};
use crate::client::reading;
use crate::client::shaped::Types;
use crate::client::watch_body::WatchBody;
use crate::{
    Codec, DecodeOptions, ErrorClass, Held, ItemSink, Json, Limits, ListMeta, ListOptions, ListerWatcher, RelistSink,
    Relisted, Represented, RequestError, Timeouts, WatchOptions, WatchStream,
};

/// Lists and watches one resource, in one namespace or in all, over a `kube_client::Client`; client-go's `ListWatch`.
///
/// `O` is the representation that objects come out in, `C` the [`Codec`] that they travel in: JSON, unless
/// [`codec`](ListWatch::codec) says otherwise. Nothing is sent before the
/// first [`list`](ListerWatcher::list) or [`watch`](ListerWatcher::watch). A list is decoded item by item as its
/// bytes arrive, a watch event by event; long lists by batches, on several threads where there are cores. No more than a
/// piece of the body, one item, and a few batches are held at a time: the crate's costs have the figures.
///
/// Cloning counts references, but for a few short texts.
pub struct ListWatch<O, C = Json> {
    client: Client,
    resource: ApiResource,
    /// `None` lists all namespaces, or a resource of cluster scope.
    namespace: Option<String>,
    selectors: Selectors,
    metadata_only: bool,
    limits: Limits,
    timeouts: Timeouts,
    decode: Arc<DecodeOptions>,
    representation: PhantomData<fn() -> (O, C)>,
}

impl<O: Represented> ListWatch<O> {
    /// All objects of a resource that is known from the type: of all namespaces, or of the cluster.
    pub fn all(client: Client) -> Self
    where
        O::Resource: Resource<DynamicType = ()>,
    {
        Self::dynamic_of::<O::Resource>(client, &())
    }

    /// The objects in one namespace; in all where it is empty, as with client-go's `NamespaceAll`.
    ///
    /// A namespace that no request path can carry (`a/b`, `..`) makes each list and watch fail with
    /// [`ErrorClass::Invalid`], without a request; [`check`](ListWatch::check) tells at once.
    pub fn namespaced(client: Client, namespace: &str) -> Self
    where
        O::Resource: Resource<DynamicType = (), Scope: NamespaceScope>,
    {
        Self::all(client).in_namespace(namespace)
    }

    /// All objects of a resource that is known at run time only, for representations of any resource:
    /// `Arc<DynamicObject>`, `Arc<PartialObjectMeta<DynamicObject>>`, `Packed<DynamicObject>`.
    pub fn dynamic(client: Client, resource: &ApiResource) -> Self
    where
        O::Resource: Resource<DynamicType = ApiResource>,
    {
        Self::dynamic_of::<O::Resource>(client, resource)
    }

    fn dynamic_of<K: Resource>(client: Client, resource: &K::DynamicType) -> Self {
        let list_watch = Self::for_resource(client, &ApiResource::erase::<K>(resource));
        if K::metadata_api() { list_watch.metadata_only() } else { list_watch }
    }
}

impl<O: Object> ListWatch<O> {
    /// All objects of a resource, in a representation that does not know which: a struct without the derive, say.
    pub fn for_resource(client: Client, resource: &ApiResource) -> Self {
        let types =
            Types { api_version: resource.api_version.clone(), kind: resource.kind.clone(), metadata_only: false };
        Self {
            client,
            resource: resource.clone(),
            namespace: None,
            selectors: Selectors::default(),
            metadata_only: false,
            limits: Limits::default(),
            timeouts: Timeouts::default(),
            decode: Arc::new(DecodeOptions { types: Some(types), ..DecodeOptions::default() }),
            representation: PhantomData,
        }
    }
}

impl<O, C> ListWatch<O, C> {
    /// The same in another codec: [`Protobuf`](crate::Protobuf), [`ProtobufOrJson`](crate::ProtobufOrJson), [`Json`].
    ///
    /// A pod of 9.4 kB of JSON comes as 6.7 kB of protobuf (its managedFields stay JSON within it), and takes less than
    /// 3 kB packed.
    ///
    /// ```no_run
    /// use k8s_openapi::api::core::v1::Pod;
    /// use kubewire_listwatch::{ListWatch, Packed, ProtobufOrJson};
    ///
    /// # fn pods(client: kube_client::Client) -> ListWatch<Packed<Pod>, ProtobufOrJson> {
    /// ListWatch::<Packed<Pod>>::all(client).codec(ProtobufOrJson)
    /// # }
    /// ```
    #[must_use = "it gives the changed list-watch back"]
    pub fn codec<D>(self, _: D) -> ListWatch<O, D> {
        let Self { client, resource, namespace, selectors, metadata_only, limits, timeouts, decode, .. } = self;
        let representation = PhantomData;
        ListWatch { client, resource, namespace, selectors, metadata_only, limits, timeouts, decode, representation }
    }

    /// Only in this namespace; in all where it is empty. For code that is generic over the resource;
    /// [`namespaced`](ListWatch::namespaced) refuses resources of cluster scope at compile time.
    #[must_use = "it gives the changed list-watch back"]
    pub fn in_namespace(mut self, namespace: &str) -> Self {
        self.namespace = Some(namespace).filter(|namespace| !namespace.is_empty()).map(str::to_owned);
        self
    }

    /// Only the objects that this selects, such as `app=web,tier notin (cache)`; client-go's syntax. Asked again, an
    /// object must meet both.
    ///
    /// # Errors
    /// The text is no label selector.
    pub fn labels(self, selector: &str) -> Result<Self, SelectorError> {
        Ok(self.label_selector(&selector.parse()?))
    }

    /// [`labels`](Self::labels), for a selector that was made already.
    #[must_use = "it gives the changed list-watch back"]
    pub fn label_selector(mut self, selector: &LabelSelector) -> Self {
        self.selectors.add_labels(selector);
        self
    }

    /// Only the objects whose fields are like this: `status.phase!=Succeeded`, `spec.nodeName=n1`. Which fields can
    /// be asked for is up to the server. Asked again, an object must meet both.
    ///
    /// # Errors
    /// The text is no field selector.
    pub fn fields(self, selector: &str) -> Result<Self, SelectorError> {
        Ok(self.field_selector(&selector.parse()?))
    }

    /// [`fields`](Self::fields), for a selector that was made already.
    #[must_use = "it gives the changed list-watch back"]
    pub fn field_selector(mut self, selector: &FieldSelector) -> Self {
        self.selectors.add_fields(selector);
        self
    }

    /// Only the object of this name.
    #[must_use = "it gives the changed list-watch back"]
    pub fn named(self, name: &str) -> Self {
        self.field_selector(&FieldSelector::equals("metadata.name", name))
    }

    /// Asks the server for the metadata alone. Representations of kube's `PartialObjectMeta` do so by themselves;
    /// this is for a struct of one's own that reads nothing else.
    #[must_use = "it gives the changed list-watch back"]
    pub fn metadata_only(mut self) -> Self {
        self.metadata_only = true;
        if let Some(types) = &mut Arc::make_mut(&mut self.decode).types {
            types.metadata_only = true;
        }
        self
    }

    /// Leaves `metadata.managedFields` out. They are skipped in the parser, neither decoded nor kept: with them a
    /// typed pod takes twice the memory.
    #[must_use = "it gives the changed list-watch back"]
    pub fn drop_managed_fields(self) -> Self {
        self.drop_field(["metadata", "managedFields"])
    }

    /// Leaves a field out, as [`drop_managed_fields`](Self::drop_managed_fields) does: `["spec", "containers",
    /// "env"]` is that of every container. A field that the representation cannot be without is then an error of
    /// each object.
    ///
    /// In protobuf what an object holds is known of its metadata alone: a path of another kind than `["metadata",
    /// "annotations"]` makes each list and watch in such a codec fail with [`ErrorClass::Invalid`], without a request.
    /// There a struct that does not name a field is the way to leave it out.
    #[must_use = "it gives the changed list-watch back"]
    pub fn drop_field<'p>(mut self, path: impl AsRef<[&'p str]>) -> Self {
        Arc::make_mut(&mut self.decode).drop.add(path.as_ref());
        self
    }

    /// Other limits.
    #[must_use = "it gives the changed list-watch back"]
    pub fn limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Other timeouts.
    #[must_use = "it gives the changed list-watch back"]
    pub fn timeouts(self, timeouts: Timeouts) -> Self {
        Self { timeouts, ..self }
    }

    /// The resource that is listed.
    pub fn api_resource(&self) -> &ApiResource {
        &self.resource
    }

    /// The namespace that is listed; `None` for all, or for a resource of cluster scope.
    pub fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    fn path(&self) -> Result<String, RequestError> {
        path(&self.resource, self.namespace.as_deref())
    }

    /// What errors and logs say of a request: `list pods in ns1`.
    fn asked(&self, verb: &str) -> String {
        let resource = self.resource_text();
        match &self.namespace {
            Some(namespace) => format!("{verb} {resource} in {namespace}"),
            None => format!("{verb} {resource}"),
        }
    }

    fn resource_text(&self) -> String {
        match self.resource.group.as_str() {
            "" => self.resource.plural.clone(),
            _ => format!("{} {}", self.resource.api_version, self.resource.plural),
        }
    }

    fn request(&self, query: &str, accept: String) -> Result<Request<Body>, RequestError> {
        Request::get(format!("{}?{query}", self.path()?))
            .header(ACCEPT, accept)
            // Servers that compress a watch do it event by event, which not every decoder understands; and
            // unpacking costs more than the bytes do within a cluster. A client that unpacks by itself asks anyway.
            .header(ACCEPT_ENCODING, HeaderValue::from_static("identity"))
            .body(Body::empty())
            .map_err(|error| {
                RequestError::new(ErrorClass::Invalid, format!("the request cannot be made: {error}"))
                    .with_source(error)
            })
    }
}

impl<O: Object, C: Codec<O>> ListWatch<O, C> {
    /// Whether requests can be made at all, without making one.
    ///
    /// # Errors
    /// [`ErrorClass::Invalid`]: the namespace, or a part of the resource's name, cannot stand in a request path; or a
    /// field shall be left out that protobuf does not know by name.
    pub fn check(&self) -> Result<(), RequestError> {
        self.check_fields()?;
        self.path().map(drop)
    }

    fn check_fields(&self) -> Result<(), RequestError> {
        match self.decode.drop.beyond_metadata().filter(|_| C::protobuf().is_some()) {
            None => Ok(()),
            Some(path) => {
                let message = format!("{path} cannot be left out in protobuf: read a struct without it, or use `Json`");
                Err(RequestError::new(ErrorClass::Invalid, message))
            }
        }
    }

    async fn send(&self, query: &str, metadata: Wanted) -> Result<(Format, Body), RequestError> {
        self.check_fields()?;
        let wanted = if self.metadata_only { metadata } else { Wanted::Objects };
        let request = self.request(query, accept::<O, C>(wanted))?;
        let answer = send(&self.client, request, &self.timeouts, &self.limits).await;
        answer.map_err(|error| match (error.status(), C::json()) {
            (Some(status), None) if status.code == 406 => {
                error.advise("there is no protobuf of it: use `ProtobufOrJson`, or `Json`")
            }
            _ => error,
        })
    }

    async fn list_page(
        &self,
        options: &ListOptions,
        held: Option<&Held<O>>,
        each: RelistSink<'_, O>,
    ) -> Result<ListMeta, RequestError> {
        let (format, body) = self.send(&list_query(&self.selectors, options), Wanted::METADATA_LIST).await?;
        let read = reading::items(format.reader::<O, C>()?, held.cloned(), Arc::clone(&self.decode));
        let chunks = Chunks::new(body, Some(self.timeouts.list_idle), Some(self.timeouts.list));
        let (pipeline, types) = (Pipeline::new(read), self.decode.types.as_ref());
        let body = ListBody { chunks, len_max: self.limits.list, pipeline, types };
        match format {
            Format::Json => body.read(ListSplitter::new(self.limits.item), each).await,
            Format::Protobuf => {
                let wanted = self.decode.types.clone();
                body.read(protobuf::list_splitter::ListSplitter::new(self.limits.item, wanted), each).await
            }
        }
    }

    async fn open_watch(&self, options: &WatchOptions, held: Option<&Held<O>>) -> Result<WatchStream<O>, RequestError> {
        let (format, body) = self.send(&watch_query(&self.selectors, options), Wanted::METADATA).await?;
        let reader = format.reader::<O, C>()?;
        let initial = options
            .send_initial_events
            .then(|| Pipeline::new(reading::events(reader.clone(), held.cloned(), Arc::clone(&self.decode))));
        let read = reading::events(reader, None, Arc::clone(&self.decode));
        let asked_for = Duration::from_secs(timeout_seconds(options.timeout));
        let lifetime = asked_for.saturating_add(self.timeouts.watch_margin);
        let chunks = Chunks::new(body, self.timeouts.watch_idle, Some(lifetime));
        let (limit, asked) = (self.limits.line, self.asked("watch"));
        Ok(match format {
            Format::Json => WatchBody::new(chunks, LineSplitter::new(limit), read, initial, asked).into_stream(),
            Format::Protobuf => WatchBody::new(chunks, FrameSplitter::new(limit), read, initial, asked).into_stream(),
        })
    }
}

impl<O: Object, C: Codec<O>> ListerWatcher for ListWatch<O, C> {
    type Object = O;

    async fn list(&self, options: &ListOptions, each: ItemSink<'_, O>) -> Result<ListMeta, RequestError> {
        let mut each = |item: Result<Relisted<O>, _>| each(item.map(Relisted::into_object));
        self.list_page(options, None, &mut each).await.map_err(|error| error.context(self.asked("list")))
    }

    async fn relist(
        &self,
        options: &ListOptions,
        held: &Held<O>,
        each: RelistSink<'_, O>,
    ) -> Result<ListMeta, RequestError> {
        self.list_page(options, Some(held), each).await.map_err(|error| error.context(self.asked("list")))
    }

    async fn watch(&self, options: &WatchOptions) -> Result<WatchStream<O>, RequestError> {
        self.open_watch(options, None).await.map_err(|error| error.context(self.asked("watch")))
    }

    async fn streaming_relist(&self, options: &WatchOptions, held: &Held<O>) -> Result<WatchStream<O>, RequestError> {
        self.open_watch(options, Some(held)).await.map_err(|error| error.context(self.asked("watch")))
    }

    fn supports_watch_list(&self) -> bool {
        true
    }

    fn resource(&self) -> String {
        self.resource_text()
    }
}

impl<O, C> Clone for ListWatch<O, C> {
    fn clone(&self) -> Self {
        Self {
            client: self.client.clone(),
            resource: self.resource.clone(),
            namespace: self.namespace.clone(),
            selectors: self.selectors.clone(),
            metadata_only: self.metadata_only,
            limits: self.limits,
            timeouts: self.timeouts,
            decode: Arc::clone(&self.decode),
            representation: PhantomData,
        }
    }
}

impl<O, C> fmt::Debug for ListWatch<O, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ListWatch")
            .field("resource", &self.resource_text())
            .field("namespace", &self.namespace)
            .field("selectors", &self.selectors)
            .finish_non_exhaustive()
    }
}

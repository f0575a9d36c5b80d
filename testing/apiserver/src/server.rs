//! The server's handle.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use kubewire_indexer::ObjectKey;
use serde_json::Value;
use tokio_util::sync::DropGuard;

use crate::fault::{Cut, Fault};
use crate::fault_table::FaultId;
use crate::inner::Inner;
use crate::matching::Matching;
use crate::port::Port;
use crate::request_log::RecordedRequest;
use crate::service::InProcess;
use crate::store::CollectionId;
use crate::world::{Now, World};
use crate::write::{DeleteOptions, Target, Written};
use crate::{Builder, ResourceName, Status, kubeconfig};

/// A running server. Clones share it; it stops when the last clone and the last [`service`](Self::service) is gone,
/// or by [`shut_down`](Self::shut_down).
#[derive(Clone)]
pub struct ApiServer {
    inner: Arc<Inner>,
    /// Stops the tasks when the last handle is gone; the tasks hold `inner` only.
    _guard: Arc<DropGuard>,
}

impl fmt::Debug for ApiServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ApiServer").field(&self.inner).finish()
    }
}

impl ApiServer {
    /// Starts a server with the built-in kinds and the namespaces of every cluster, in process only.
    ///
    /// Must be called in a tokio runtime.
    pub async fn start() -> Self {
        Builder::default().start_in_process()
    }

    /// More choices: a port, custom resources, pods from the start.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(crate) fn run(inner: Inner) -> Self {
        let inner = Arc::new(inner);
        tokio::spawn(inner.clone().end_grace_periods());
        if let Some(port) = &inner.port {
            tokio::spawn(port.clone().serve(inner.clone()));
        }
        let guard = Arc::new(inner.stopped.clone().drop_guard());
        Self { inner, _guard: guard }
    }

    pub(crate) fn inner(&self) -> &Arc<Inner> {
        &self.inner
    }

    /// The server as a tower service, without a network: `Client::new(server.service(), "default")`.
    pub fn service(&self) -> InProcess {
        InProcess { server: self.clone() }
    }

    /// A client in process, with the namespace `default`.
    ///
    /// Must be called in a tokio runtime.
    #[cfg(feature = "client")]
    pub fn client(&self) -> kube_client::Client {
        kube_client::Client::new(self.service(), "default")
    }

    /// The address of the port, if one was asked for.
    pub fn address(&self) -> Option<SocketAddr> {
        self.inner.port.as_ref().map(Port::address)
    }

    /// The URL of the port, such as `http://127.0.0.1:18080`, if one was asked for.
    pub fn url(&self) -> Option<String> {
        self.address().map(|address| format!("http://{address}"))
    }

    /// A kubeconfig for the port, if one was asked for.
    pub fn kubeconfig(&self) -> Option<String> {
        self.url().map(|url| kubeconfig::text(&url))
    }

    /// Creates an object, as the server's own hand: access rules and faults do not count, and a status, a uid or a
    /// creation time that it comes with is kept. Returns it as it is stored.
    ///
    /// # Errors
    /// The status that a request would get.
    pub fn create(&self, resource: impl Into<ResourceName>, object: Value) -> Result<Value, Status> {
        let target = Target { namespace: namespace_of(&object), direct: true, ..Target::default() };
        self.direct(resource, |world, id, now| world.create(id, &target, object, now))
    }

    /// Replaces an object, status and all. Without a `resourceVersion` it is replaced whatever its state.
    ///
    /// # Errors
    /// The status that a request would get.
    pub fn update(&self, resource: impl Into<ResourceName>, object: Value) -> Result<Value, Status> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let target = Target { namespace: namespace_of(&object), name, direct: true, ..Target::default() };
        // As a patch that replaces all: no version is required.
        self.direct(resource, |world, id, _| world.patch(id, &target, |_| Ok(object)))
    }

    /// Changes an object by a function from its present state. A write between is a conflict, as for any client.
    ///
    /// # Errors
    /// The status that a request would get.
    pub fn modify(
        &self,
        resource: impl Into<ResourceName>,
        namespace: &str,
        name: &str,
        change: impl FnOnce(&mut Value),
    ) -> Result<Value, Status> {
        let resource = resource.into();
        // The function is the user's: it runs without the lock, on a copy.
        let mut object = self.get(&resource, namespace, name).ok_or_else(|| self.not_found(&resource, name))?;
        change(&mut object);
        self.update(resource, object)
    }

    /// Deletes an object, without a grace period; one with finalizers stays until they are gone. Returns its last
    /// state.
    ///
    /// # Errors
    /// The status that a request would get.
    pub fn delete(&self, resource: impl Into<ResourceName>, namespace: &str, name: &str) -> Result<Value, Status> {
        let target = Target { namespace: namespace.to_owned(), name: name.to_owned(), ..Target::default() };
        let options = DeleteOptions { grace_period_seconds: Some(0), ..DeleteOptions::default() };
        self.direct(resource, |world, id, now| world.delete(id, &target, &options, now))
    }

    fn direct(
        &self,
        resource: impl Into<ResourceName>,
        write: impl FnOnce(&mut World, CollectionId, Now) -> Result<Written, Status>,
    ) -> Result<Value, Status> {
        let name = resource.into();
        let written = self.inner.write(|world, now| {
            let id = world.id(&name).ok_or_else(Status::no_such_path)?;
            write(world, id, now)
        })?;
        Ok(written.to_value())
    }

    fn not_found(&self, resource: &ResourceName, name: &str) -> Status {
        self.inner
            .registry
            .get(resource)
            .map_or_else(Status::no_such_path, |resource| Status::not_found(resource, name))
    }

    /// The object as it is stored. An empty namespace stands for cluster scope.
    pub fn get(&self, resource: impl Into<ResourceName>, namespace: &str, name: &str) -> Option<Value> {
        let world = self.inner.world.lock();
        let stored = world.store.get(world.id(&resource.into())?, &ObjectKey::new(namespace, name)).cloned();
        drop(world);
        stored.map(|stored| stored.to_value())
    }

    /// Waits until the object is as `is_done` says, which gets its present state (`None`: it is not there) now and after
    /// changes; gives that state back. For tests of controllers. Cancel-safe; it waits without end, so give it a time-out.
    ///
    /// Cost: a copy of the object for each change of anything.
    ///
    /// ```
    /// # use kubewire_apiserver::ApiServer;
    /// # use serde_json::json;
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
    /// # let server = ApiServer::start().await;
    /// let ready = server.wait_until("pods", "default", "a", |pod| pod.is_some_and(|pod| pod["status"]["phase"] == "Running"));
    /// let create = async {
    ///     let pod = json!({"metadata": {"name": "a", "namespace": "default"}, "status": {"phase": "Running"}});
    ///     server.create("pods", pod)
    /// };
    /// let (pod, _) = tokio::join!(ready, create);
    /// assert_eq!(pod.unwrap()["metadata"]["name"], "a");
    /// # });
    /// ```
    pub async fn wait_until(
        &self,
        resource: impl Into<ResourceName>,
        namespace: &str,
        name: &str,
        mut is_done: impl FnMut(Option<&Value>) -> bool,
    ) -> Option<Value> {
        let resource = resource.into();
        loop {
            let seen = self.inner.changes.count();
            let object = self.get(&resource, namespace, name);
            if is_done(object.as_ref()) {
                return object;
            }
            self.inner.changes.after(seen).await;
        }
    }

    /// All objects of a resource, in the order of namespace and name.
    pub fn list(&self, resource: impl Into<ResourceName>) -> Vec<Value> {
        let world = self.inner.world.lock();
        let Some(id) = world.id(&resource.into()) else { return Vec::new() };
        let page = world.store.collection(id).page(world.store.version(), None, None, usize::MAX, |_| true);
        drop(world);
        page.map(|page| page.items.iter().map(|object| object.to_value()).collect()).unwrap_or_default()
    }

    /// How many objects of a resource there are.
    pub fn count(&self, resource: impl Into<ResourceName>) -> usize {
        let world = self.inner.world.lock();
        world.id(&resource.into()).map_or(0, |id| world.store.collection(id).len())
    }

    /// The version of the last change.
    pub fn resource_version(&self) -> u64 {
        self.inner.world.lock().store.version()
    }

    /// Counts the version up without a change, as writes to things that are not served would.
    pub fn skip_resource_versions(&self, count: u64) {
        self.inner.write(|world, _| world.store.skip_versions(count));
    }

    /// Makes something go wrong. Faults are asked in the order in which they were added.
    pub fn fault(&self, fault: Fault) -> FaultId {
        self.inner.faults.lock().add(fault)
    }

    /// Takes a fault back.
    pub fn clear_fault(&self, fault: FaultId) {
        self.inner.faults.lock().remove(fault);
    }

    /// Takes all faults back.
    pub fn clear_faults(&self) {
        self.inner.faults.lock().clear();
    }

    /// How many faults have not been used up.
    pub fn faults_left(&self) -> usize {
        self.inner.faults.lock().len()
    }

    /// How often each kind of fault has met a request or a stream. What waits, or had nothing to do, does not count; what
    /// a fault did to several watches counts for each.
    pub fn faults_hit(&self) -> BTreeMap<&'static str, u64> {
        self.inner.hits.snapshot()
    }

    /// Requests whose answer has not been read to its end or dropped: watches, above all.
    pub fn requests_open(&self) -> usize {
        self.inner.requests_open.get()
    }

    /// Connections to the port.
    pub fn connections_open(&self) -> usize {
        self.inner.port.as_ref().map_or(0, Port::connections_open)
    }

    /// Forgets the history: watches and lists that want to begin at an older version than the present one are
    /// answered 410. Open watches go on.
    pub fn compact(&self) {
        self.inner.write(|world, _| world.store.compact());
    }

    /// Puts back all objects as they were at `version`, each with the version that it had then, as when etcd is restored
    /// from a snapshot: the history is lost, and open watches break. The version of the store becomes `next`:
    /// `version + 1` for a plain restore, after which versions are given out a second time; more than ever was for
    /// one with `--bump-revision`. `false`, and nothing is done, where the history does not reach back to `version`.
    ///
    /// A watch from a version that is lost and has not come again is refused as too large. (A real server lets it wait
    /// and says nothing, which is why etcd has `--bump-revision`.)
    pub fn restore(&self, version: u64, next: u64) -> bool {
        let restored = self.inner.write(|world, _| world.store.restore(version, next));
        if restored {
            self.inner.close_watches(Cut::Reset, "reset: etcd was restored");
        }
        restored
    }

    /// Ends all open watches in order.
    pub fn close_watches(&self) {
        self.inner.close_watches(Cut::End, "all watches closed");
    }

    /// Breaks all open watches.
    pub fn reset_watches(&self) {
        self.inner.close_watches(Cut::Reset, "all watches reset");
    }

    /// Refuses connections and breaks those that are open, until [`come_back`](Self::come_back). The objects stay.
    ///
    /// Cancel-safe; returns when the port is closed.
    pub async fn go_down(&self) {
        self.inner.is_down.store(true, Ordering::Release);
        self.inner.close_watches(Cut::Reset, "reset: the server goes down");
        if let Some(port) = &self.inner.port {
            port.close().await;
        }
    }

    /// Takes connections again, on the same port. Cancel-safe; returns when the port is open.
    pub async fn come_back(&self) {
        if let Some(port) = &self.inner.port {
            port.open().await;
        }
        self.inner.is_down.store(false, Ordering::Release);
    }

    /// Lets in only requests with a known token from now on: this one stands for this user.
    pub fn require_token(&self, token: impl Into<String>, user: impl Into<String>) {
        self.inner.access.lock().require_token(token.into(), user.into());
    }

    /// Answers 401 to this token from now on, as after a rotation.
    pub fn revoke_token(&self, token: &str) {
        self.inner.access.lock().revoke_token(token);
    }

    /// Answers 403 to these requests from now on.
    pub fn forbid(&self, requests: Matching) {
        self.inner.access.lock().forbid(requests);
    }

    /// Takes all tokens and all rules back.
    pub fn allow_all(&self) {
        self.inner.access.lock().allow_all();
    }

    /// The requests that came, oldest first: the last 100,000.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.inner.log.lock().snapshot()
    }

    /// Forgets the requests that came.
    pub fn clear_requests(&self) {
        self.inner.log.lock().clear();
    }

    /// Stops the server: the port is closed, watches end, requests are refused.
    pub fn shut_down(&self) {
        self.inner.stopped.cancel();
    }
}

fn namespace_of(object: &Value) -> String {
    object["metadata"]["namespace"].as_str().unwrap_or_default().to_owned()
}

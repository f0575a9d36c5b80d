//! PURE. Update and patch.

use std::sync::Arc;

use serde_json::{Value, json};

use super::apply::track;
use super::create::place_in_namespace;
use super::{Target, Written, check_shape, defaults, finalizers, meta_text, metadata, validation};
use crate::status::Cause;
use crate::store::CollectionId;
use crate::stored::{Draft, Stored};
use crate::world::World;
use crate::{Resource, Status};

/// What no write changes: it is taken from the stored object.
const KEPT: [&str; 5] = ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"];

impl World {
    /// Replaces an object or its status, as a PUT does.
    pub(crate) fn update(&mut self, id: CollectionId, target: &Target, object: Value) -> Result<Written, Status> {
        let resource = self.resource(id);
        let stored = self.existing(id, target)?;
        self.replace(id, &resource, target, &stored, object, resource.custom || resource.plural == "leases")
    }

    /// Changes an object or its status by a function from its present state to the wanted one, as a PATCH does.
    pub(crate) fn patch(
        &mut self,
        id: CollectionId,
        target: &Target,
        patch: impl FnOnce(Value) -> Result<Value, Status>,
    ) -> Result<Written, Status> {
        let resource = self.resource(id);
        let stored = self.existing(id, target)?;
        let object = patch(stored.to_value())?;
        self.replace(id, &resource, target, &stored, object, false)
    }

    pub(super) fn existing(&self, id: CollectionId, target: &Target) -> Result<Arc<Stored>, Status> {
        let stored = self.store.get(id, &target.key()).cloned();
        stored.ok_or_else(|| Status::not_found(&self.store.collection(id).resource, &target.name))
    }

    fn replace(
        &mut self,
        id: CollectionId,
        resource: &Resource,
        target: &Target,
        stored: &Stored,
        mut object: Value,
        version_required: bool,
    ) -> Result<Written, Status> {
        check_shape(resource, &mut object)?;
        check_identity(resource, target, stored, &mut object, version_required)?;
        defaults::fill_spec(resource, &mut object);
        let old = stored.to_value();
        let mut new = if target.status { with_status(&old, &mut object) } else { object };
        keep(resource, target, &old, &mut new);
        check_finalizers(resource, &target.name, &old, &new)?;
        validation::check(resource, Some(&old), &new)?;
        track(resource, target, Some(&old), &mut new);
        metadata(&mut new).insert("resourceVersion".to_owned(), json!(stored.version.to_string()));
        if resource.generation && !target.status && wanted_differs(resource, &old, &new) {
            let generation = old["metadata"]["generation"].as_i64().unwrap_or(0) + 1;
            metadata(&mut new).insert("generation".to_owned(), json!(generation));
        }
        if target.dry_run {
            return Ok(Written::Dry(new));
        }
        if is_waiting_for_finalizers(&old) && finalizers(&new).is_empty() {
            self.store.remove(id, &stored.key);
            // As the real server: what was wanted, which was never written and so has no version of its own.
            return Ok(Written::Dry(new));
        }
        if new == old {
            // As the real server: what changes nothing is not written.
            return self.existing(id, target).map(Written::Stored);
        }
        Ok(Written::Stored(self.store.put(id, Draft::new(resource, &new))))
    }
}

/// Name, namespace, uid and version of the new state must be those of the object.
fn check_identity(
    resource: &Resource,
    target: &Target,
    stored: &Stored,
    object: &mut Value,
    version_required: bool,
) -> Result<(), Status> {
    let name = meta_text(object, "name");
    if name.is_empty() && target.direct {
        metadata(object).insert("name".to_owned(), json!(target.name));
    } else if name.is_empty() {
        let message =
            format!("the name of the object ({} based on URL) was undeterminable: name must be provided", target.name);
        return Err(Status::bad_request(message));
    } else if name != target.name {
        let message = format!("the name of the object ({name}) does not match the name on the URL ({})", target.name);
        return Err(Status::bad_request(message));
    }
    if resource.namespaced {
        place_in_namespace(object, &target.namespace)?;
    } else {
        metadata(object).remove("namespace");
    }
    let uid = meta_text(object, "uid");
    if !uid.is_empty() && uid != &*stored.uid {
        let why = format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {}", stored.uid);
        return Err(Status::conflict(resource, &target.name, &why));
    }
    match meta_text(object, "resourceVersion") {
        "" | "0" if version_required => {
            let cause = Cause::invalid("metadata.resourceVersion", "0x0", "must be specified for an update");
            Err(Status::invalid(resource, &target.name, vec![cause]))
        }
        "" | "0" => Ok(()),
        version if version == stored.version.to_string() => Ok(()),
        _ => Err(Status::modified(resource, &target.name)),
    }
}

/// The old object with the new one's status.
fn with_status(old: &Value, object: &mut Value) -> Value {
    let mut new = old.clone();
    if let Some(managers @ Value::Array(_)) = object["metadata"].get_mut("managedFields").map(Value::take) {
        metadata(&mut new).insert("managedFields".to_owned(), managers);
    }
    match object.get_mut("status").map(Value::take) {
        Some(status) => new["status"] = status,
        None => {
            new.as_object_mut().map(|members| members.remove("status"));
        }
    }
    new
}

/// Takes over from the old object what this write does not change.
fn keep(resource: &Resource, target: &Target, old: &Value, new: &mut Value) {
    let metadata = metadata(new);
    for name in KEPT {
        match old["metadata"].get(name) {
            Some(value) => metadata.insert(name.to_owned(), value.clone()),
            None => metadata.remove(name),
        };
    }
    metadata.remove("selfLink");
    if resource.status && !target.status && !target.direct {
        let Some(members) = new.as_object_mut() else { return };
        match old.get("status") {
            Some(status) => members.insert("status".to_owned(), status.clone()),
            None => members.remove("status"),
        };
    }
}

fn check_finalizers(resource: &Resource, name: &str, old: &Value, new: &Value) -> Result<(), Status> {
    if old["metadata"]["deletionTimestamp"].is_null() {
        return Ok(());
    }
    let before = finalizers(old);
    let added: Vec<&str> = finalizers(new).into_iter().filter(|finalizer| !before.contains(finalizer)).collect();
    if added.is_empty() {
        return Ok(());
    }
    let detail = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
        added.iter().map(|finalizer| format!("{finalizer:?}")).collect::<Vec<_>>().join(", ")
    );
    Err(Status::invalid(resource, name, vec![Cause::forbidden("metadata.finalizers", &detail)]))
}

/// Whether the object is being deleted, has no grace period left, and is there only for its finalizers.
pub(super) fn is_waiting_for_finalizers(object: &Value) -> bool {
    let metadata = &object["metadata"];
    !metadata["deletionTimestamp"].is_null() && metadata["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) == 0
}

/// Whether anything but metadata and status differs. As in the real server, annotations of deployments count too.
fn wanted_differs(resource: &Resource, old: &Value, new: &Value) -> bool {
    let annotations = |object: &Value| object["metadata"]["annotations"].clone();
    if resource.group == "apps" && resource.plural == "deployments" && annotations(old) != annotations(new) {
        return true;
    }
    let (Value::Object(old), Value::Object(new)) = (old, new) else { return false };
    let wanted = |name: &&String| !["metadata", "status", "kind", "apiVersion"].contains(&name.as_str());
    old.keys().filter(wanted).any(|name| old.get(name) != new.get(name))
        || new.keys().filter(wanted).any(|name| !old.contains_key(name))
}

//! PURE. Create.

use kubewire_indexer::ObjectKey;
use serde_json::{Value, json};

use super::apply::track;
use super::{Target, Written, check_shape, defaults, meta_text, metadata, names, validation};
use crate::status::Cause;
use crate::store::CollectionId;
use crate::stored::Draft;
use crate::world::{Now, World};
use crate::{Resource, Status};

/// How often a generated name that is taken already is generated anew, as in the real server.
const NAME_TRIES: usize = 8;

/// The longest `generateName` that leaves room for its suffix.
const GENERATE_NAME_LEN_MAX: usize = 58;

impl World {
    /// Creates an object, as a POST does.
    pub(crate) fn create(
        &mut self,
        id: CollectionId,
        target: &Target,
        mut object: Value,
        now: Now,
    ) -> Result<Written, Status> {
        let resource = self.resource(id);
        check_shape(&resource, &mut object)?;
        if resource.namespaced {
            place_in_namespace(&mut object, &target.namespace)?;
            self.check_namespace(&resource, &target.namespace, meta_text(&object, "name"), now)?;
        } else {
            metadata(&mut object).remove("namespace");
        }
        if !["", "0"].contains(&meta_text(&object, "resourceVersion")) {
            return Err(Status::bad_request("resourceVersion should not be set on objects to be created"));
        }
        let key = self.name(id, &resource, &target.namespace, &mut object)?;
        if self.store.get(id, &key).is_some() {
            return Err(Status::already_exists(&resource, key.name()));
        }
        let uid = self.rng.uid();
        let metadata = metadata(&mut object);
        for server_owned in
            ["resourceVersion", "selfLink", "generation", "deletionTimestamp", "deletionGracePeriodSeconds"]
        {
            metadata.remove(server_owned);
        }
        if !(target.direct && metadata.contains_key("creationTimestamp")) {
            metadata.insert("creationTimestamp".to_owned(), json!(now.text(0)));
        }
        if !(target.direct && metadata.contains_key("uid")) {
            metadata.insert("uid".to_owned(), json!(uid));
        }
        if resource.generation {
            metadata.insert("generation".to_owned(), json!(1));
        }
        if resource.status && !target.direct {
            object.as_object_mut().map(|members| members.remove("status"));
        }
        defaults::fill(&resource, &mut object, target.direct);
        validation::check(&resource, None, &object)?;
        track(&resource, target, None, &mut object);
        if target.dry_run {
            return Ok(Written::Dry(object));
        }
        Ok(Written::Stored(self.store.put(id, Draft::new(&resource, &object))))
    }

    /// The object's key, its name generated where that was asked for.
    fn name(
        &mut self,
        id: CollectionId,
        resource: &Resource,
        namespace: &str,
        object: &mut Value,
    ) -> Result<ObjectKey, Status> {
        let name = meta_text(object, "name").to_owned();
        if !name.is_empty() {
            names::check_name(resource, &name)?;
            return Ok(ObjectKey::new(namespace, &name));
        }
        let base = meta_text(object, "generateName");
        if base.is_empty() {
            let cause = Cause::required("metadata.name", "name or generateName is required");
            return Err(Status::invalid(resource, "", vec![cause]));
        }
        let cut = base.char_indices().map(|(at, c)| at + c.len_utf8()).take_while(|end| *end <= GENERATE_NAME_LEN_MAX);
        let base = base[..cut.last().unwrap_or_default()].to_owned();
        let mut name = String::new();
        for _ in 0..NAME_TRIES {
            name = base.clone() + &self.rng.suffix(5);
            if self.store.get(id, &ObjectKey::new(namespace, &name)).is_none() {
                break;
            }
        }
        names::check_name(resource, &name)?;
        metadata(object).insert("name".to_owned(), json!(name));
        Ok(ObjectKey::new(namespace, &name))
    }

    fn check_namespace(&mut self, resource: &Resource, namespace: &str, name: &str, now: Now) -> Result<(), Status> {
        if self.namespaces_on_demand {
            self.create_namespace(namespace, now);
        }
        let Some(found) = self.namespace(namespace) else {
            let namespaces = self.registry.get(&"namespaces".into());
            return Err(namespaces.map_or_else(Status::no_such_path, |resource| Status::not_found(resource, namespace)));
        };
        if found.fields.get("status.phase") == Some("Terminating") {
            let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
            return Err(Status::forbidden(resource, name, &why));
        }
        Ok(())
    }
}

/// Sets the object's namespace to the one of the path; an object that names another is refused.
pub(super) fn place_in_namespace(object: &mut Value, namespace: &str) -> Result<(), Status> {
    let own = meta_text(object, "namespace");
    if !own.is_empty() && own != namespace {
        let message = format!(
            "the namespace of the provided object does not match the namespace sent on the request ({own:?}, {namespace:?})"
        );
        return Err(Status::bad_request(message));
    }
    metadata(object).insert("namespace".to_owned(), json!(namespace));
    Ok(())
}

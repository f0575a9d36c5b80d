//! PURE. Server-side apply, and the note of who wrote what that every other write leaves.

use serde_json::{Value, json};

use super::{Target, Written, meta_text, metadata};
use crate::decoding::FieldValidation;
use crate::managed::{self, Managers, Schema, Writer};
use crate::store::CollectionId;
use crate::world::{Now, World};
use crate::{Cause, Resource, Status};

/// Who writes, as `managedFields` names it.
#[derive(Clone, Debug)]
pub(crate) struct FieldManager {
    pub(crate) name: String,
    /// Whether the request named it (`fieldManager`), rather than its user agent.
    pub(crate) is_named: bool,
    /// The present time, as the API writes it.
    pub(crate) time: String,
}

impl World {
    /// Applies a configuration as `manager`: the object, and whether it was made by that.
    pub(crate) fn apply(
        &mut self,
        id: CollectionId,
        target: &Target,
        mut config: Value,
        manager: &FieldManager,
        force: bool,
        now: Now,
    ) -> Result<(Written, bool), Status> {
        let resource = self.resource(id);
        check_config(&resource, target, &mut config)?;
        if resource.status && !target.status {
            config.as_object_mut().map(|members| members.shift_remove("status"));
        }
        if target.status {
            let status = config.get("status").cloned();
            let metadata = config["metadata"].take();
            config =
                json!({"apiVersion": config["apiVersion"], "kind": config["kind"], "metadata": identity(metadata)});
            config.as_object_mut().zip(status).map(|(members, status)| members.insert("status".to_owned(), status));
        }
        // What is written is noted here.
        let target = Target { manager: None, ..target.clone() };
        let api_version = resource.api_version();
        let writer = writer(&resource, &api_version, &target, manager);
        let schema = Schema::of(&resource);
        let Some(stored) = self.store.get(id, &target.key()).cloned() else {
            if target.status {
                return Err(Status::not_found(&resource, &target.name));
            }
            check_uid(&resource, &target, &config, "")?;
            let mut managers = Managers::default();
            let nothing = json!({});
            let mut new =
                managers.apply(&nothing, &config, schema, writer, force).map_err(|conflicts| conflict(&conflicts))?;
            read_merged(&resource, &target, &mut new)?;
            // A version of what is not there means nothing.
            metadata(&mut new).remove("resourceVersion");
            metadata(&mut new).insert("managedFields".to_owned(), managers.to_value());
            return self.create(id, &target, new, now).map(|written| (written, true));
        };
        check_uid(&resource, &target, &config, &stored.uid)?;
        let live = stored.to_value();
        let mut managers = Managers::parse(&live["metadata"]["managedFields"]).unwrap_or_default();
        let mut new =
            managers.apply(&live, &config, schema, writer, force).map_err(|conflicts| conflict(&conflicts))?;
        read_merged(&resource, &target, &mut new)?;
        // A version in the configuration is the one that it was made from.
        let version = meta_text(&config, "resourceVersion").to_owned();
        metadata(&mut new).insert("resourceVersion".to_owned(), json!(version));
        metadata(&mut new).insert("managedFields".to_owned(), managers.to_value());
        self.patch(id, &target, |_| Ok(new)).map(|written| (written, false))
    }
}

/// Notes in `new` that the target's manager has made it of `old`, where managers are noted at all.
pub(super) fn track(resource: &Resource, target: &Target, old: Option<&Value>, new: &mut Value) {
    let sent = new["metadata"]["managedFields"].clone();
    if sent == json!([{}]) {
        // As the real server: a client that sends this wants all of it forgotten.
        metadata(new).shift_remove("managedFields");
        return;
    }
    let before = old.map_or(&Value::Null, |old| &old["metadata"]["managedFields"]);
    let mut managers = match Managers::parse(&sent) {
        Some(managers) if !managers.is_empty() => managers,
        _ => Managers::parse(before).unwrap_or_default(),
    };
    if let Some(manager) = &target.manager
        && (!managers.is_empty() || (old.is_none() && manager.is_named))
    {
        let nothing = json!({});
        let api_version = resource.api_version();
        let writer = writer(resource, &api_version, target, manager);
        managers.update(old.unwrap_or(&nothing), new, Schema::of(resource), writer);
    } else if !sent.is_null() || before.is_null() {
        return;
    }
    match managers.is_empty() {
        true => metadata(new).shift_remove("managedFields"),
        false => metadata(new).insert("managedFields".to_owned(), managers.to_value()),
    };
}

fn writer<'a>(resource: &Resource, api_version: &'a str, target: &Target, manager: &'a FieldManager) -> Writer<'a> {
    Writer {
        manager: &manager.name,
        api_version,
        subresource: if target.status { "status" } else { "" },
        status_apart: resource.status,
        time: &manager.time,
    }
}

/// The members of the metadata that say which object is meant.
fn identity(metadata: Value) -> Value {
    let Value::Object(mut metadata) = metadata else { return json!({}) };
    metadata.retain(|name, _| ["name", "namespace", "uid", "resourceVersion"].contains(&name.as_str()));
    Value::Object(metadata)
}

/// Whether the configuration is one of this object.
fn check_config(resource: &Resource, target: &Target, config: &mut Value) -> Result<(), Status> {
    if config["kind"].as_str().unwrap_or_default().is_empty() {
        return Err(Status::bad_request(format!("Object 'Kind' is missing in '{config}'")));
    }
    let (version, wanted) = (config["apiVersion"].as_str().unwrap_or_default(), resource.api_version());
    if version != wanted {
        return Err(Status::bad_request(format!(
            "Incorrect version specified in apply patch. Specified patch version: {version}, expected: {wanted}"
        )));
    }
    if config["metadata"].get("managedFields").is_some_and(|value| !value.is_null()) {
        return Err(Status::bad_request("metadata.managedFields must be nil"));
    }
    super::check_shape(resource, config)?;
    let name = meta_text(config, "name");
    if !name.is_empty() && name != target.name {
        let message = format!("the name of the object ({name}) does not match the name on the URL ({})", target.name);
        return Err(Status::bad_request(message));
    }
    metadata(config).insert("name".to_owned(), json!(target.name));
    metadata(config).shift_remove("managedFields");
    managed::check(config, Schema::of(resource)).map_err(|why| not_typed(resource, target, &why))
}

/// 500, as the real server answers a configuration that its schema does not allow.
pub(crate) fn not_typed(resource: &Resource, target: &Target, why: &str) -> Status {
    let (namespace, name, version, kind) = (&target.namespace, &target.name, resource.api_version(), &resource.kind);
    let place = format!("{namespace}/{name}; {version}, Kind={kind}");
    Status::new(500, "", format!("failed to create typed patch object ({place}): {why}"))
}

/// 422 where the configuration is of an object with another uid.
fn check_uid(resource: &Resource, target: &Target, config: &Value, present: &str) -> Result<(), Status> {
    let uid = meta_text(config, "uid");
    if uid.is_empty() || uid == present {
        return Ok(());
    }
    let cause = Cause::invalid("metadata.uid", uid, "field is immutable");
    Err(Status::invalid(resource, &target.name, vec![cause]))
}

/// Reads what was merged as the real server does, after who owns what is settled: nulls and empty lists and maps go; 422 where
/// an item of a list has no key.
fn read_merged(resource: &Resource, target: &Target, new: &mut Value) -> Result<(), Status> {
    let keyless = managed::keyless(new, Schema::of(resource));
    if !keyless.is_empty() {
        let causes = keyless.iter().map(|path| Cause::required(path, "")).collect();
        return Err(Status::invalid(resource, &target.name, causes));
    }
    FieldValidation::Ignore.read(resource, new).map(drop)
}

fn conflict(conflicts: &[managed::Conflict]) -> Status {
    let causes = conflicts.iter().map(|conflict| Cause {
        reason: "FieldManagerConflict".to_owned(),
        message: format!("conflict with {}", conflict.manager),
        field: conflict.path.clone(),
    });
    let mut status = Status::new(409, "Conflict", managed::message(conflicts));
    status.causes = causes.collect();
    status
}

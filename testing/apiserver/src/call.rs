//! One request for objects, checked and answered.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Response, StatusCode, header};
use serde_json::{Value, json};

use crate::body::ResponseBody;
use crate::decoding::FieldValidation;
use crate::fault::StreamFault;
use crate::form::{Form, Renderer};
use crate::format::Format;
use crate::handler::{Answered, RequestParts};
use crate::inner::Inner;
use crate::list::ListOptions;
use crate::list_stream::{list_body, protobuf_list_body};
use crate::response::{json_body, response, warn};
use crate::route::ObjectRequest;
use crate::selection::Selection;
use crate::store::CollectionId;
use crate::watch::{Cursor, WatchOptions, error_line};
use crate::watch_stream::Watch;
use crate::world::World;
use crate::write::{Collection, DeleteOptions, FieldManager, Target, Written, not_typed};
use crate::{Cause, Status, Verb, openapi, patching, review};

/// The longest name of a manager of fields.
const FIELD_MANAGER_LEN_MAX: usize = 128;

/// One request for objects.
pub(crate) struct Call<'a> {
    pub(crate) inner: &'a Arc<Inner>,
    pub(crate) id: CollectionId,
    pub(crate) objects: &'a ObjectRequest,
    pub(crate) form: Form,
    pub(crate) request: &'a RequestParts<'a>,
    pub(crate) body: Bytes,
}

impl Call<'_> {
    /// Answers it.
    pub(crate) fn answer(&self) -> Answered {
        match self.objects.verb {
            Verb::Get => self.get(),
            Verb::List => self.list(),
            Verb::Watch => self.watch(),
            Verb::Create if !self.objects.resource.stored => self.review(),
            Verb::Create => self.create(),
            Verb::Update => self.update(),
            Verb::Patch => self.patch(),
            Verb::Delete => self.delete(),
            Verb::DeleteCollection => self.delete_collection(),
        }
    }

    fn get(&self) -> Answered {
        let key = self.target()?.key();
        let stored = self.inner.world.lock().store.get(self.id, &key).cloned();
        let stored = stored.ok_or_else(|| Status::not_found(&self.objects.resource, &self.objects.name))?;
        Ok(self.body(StatusCode::OK, self.renderer().object(stored.object())))
    }

    /// An answer of these bytes in the form that was asked for.
    fn body(&self, code: StatusCode, body: Bytes) -> Response<ResponseBody> {
        response(code, self.form.format.media_type(), ResponseBody::whole(body))
    }

    /// An answer of this object, list or status as it is; in JSON where there is no protobuf of it.
    fn value(&self, code: StatusCode, value: &Value) -> Response<ResponseBody> {
        let protobuf = (self.form.format == Format::Protobuf).then(|| openapi::to_protobuf(value)).flatten();
        match protobuf {
            Some(message) => self.body(code, Bytes::from(message)),
            None => json_body(code, value.to_string()),
        }
    }

    fn renderer(&self) -> Renderer {
        Renderer::new(self.form, self.objects.resource.clone())
    }

    fn selection(&self) -> Result<Selection, Status> {
        Selection::parse(&self.objects.resource, self.objects.namespace.as_deref(), self.request.query)
    }

    fn list(&self) -> Answered {
        let options = ListOptions::parse(self.request.query)?;
        let selection = self.selection()?;
        let listed = {
            let world = self.inner.world.lock();
            options.run(world.store.collection(self.id), &selection, world.store.version())
        };
        let mut listed = listed.inspect_err(|status| self.count_refusal(status))?;
        for fault in self.request.stream {
            if let StreamFault::Page(page) = &fault.what
                && listed.spoil(page, self.request.query.text("continue"))
            {
                self.inner.hits.count(fault.name);
            }
        }
        if let Some(table) = self.renderer().table(&listed) {
            return Ok(self.body(StatusCode::OK, table));
        }
        let resource = self.objects.resource.clone();
        let body = match self.form.format {
            Format::Json => ResponseBody::stream(list_body(resource, self.form, listed)),
            Format::Protobuf => ResponseBody::stream(protobuf_list_body(resource, self.form, listed)),
        };
        Ok(response(StatusCode::OK, self.form.format.media_type(), body))
    }

    /// A version that is not to be had any more, or not yet: a compaction or a restore has met this request.
    fn count_refusal(&self, status: &Status) {
        match status.code {
            410 => self.inner.hits.count("version compacted"),
            504 => self.inner.hits.count("version too large"),
            _ => {}
        }
    }

    fn watch(&self) -> Answered {
        let options = WatchOptions::parse(self.request.query)?;
        let selection = self.selection()?;
        let (begun, random) = {
            let mut world = self.inner.world.lock();
            let random = world.rng.below(1000) as u32;
            let (collection, version) = (world.store.collection(self.id), world.store.version());
            let begun = match options.version.filter(|asked| *asked > version && *asked <= world.store.lost()) {
                Some(lost) => Err(Status::version_too_large(lost, version)),
                None => Cursor::begin(collection, selection, self.form, options.clone(), version),
            };
            (begun, random)
        };
        let body = match begun {
            Ok(cursor) => {
                let min = self.inner.settings.min_request_timeout;
                let timeout = options.timeout_seconds.map_or(min + min * random / 1000, Duration::from_secs);
                let watch = Watch::new(self.inner.clone(), self.id, cursor, timeout, self.request.stream.to_vec());
                ResponseBody::stream(watch.into_stream())
            }
            // As the real server: the answer is 200, and the error its only event.
            Err(status) => {
                self.count_refusal(&status);
                ResponseBody::whole(error_line(&status, self.form.format).bytes)
            }
        };
        Ok(response(StatusCode::OK, &self.form.format.watch_media_type(), body))
    }

    fn target(&self) -> Result<Target, Status> {
        let dry_run = match self.request.query.text("dryRun") {
            None => false,
            Some("All") => true,
            Some(other) => {
                let cause = Cause::not_supported("dryRun", other, &["All"]);
                return Err(Status::invalid_options("Options", vec![cause]));
            }
        };
        self.target_of(dry_run)
    }

    fn target_of(&self, dry_run: bool) -> Result<Target, Status> {
        Ok(Target {
            namespace: self.objects.namespace.clone().unwrap_or_default(),
            name: self.objects.name.clone(),
            status: self.objects.subresource == "status",
            dry_run,
            direct: false,
            manager: Some(self.checked_manager()?),
        })
    }

    /// Who writes; refused where its name cannot be one.
    fn checked_manager(&self) -> Result<FieldManager, Status> {
        let named = self.request.query.text("fieldManager").unwrap_or_default();
        let too_long =
            (named.len() > FIELD_MANAGER_LEN_MAX).then(|| Cause::too_long("fieldManager", FIELD_MANAGER_LEN_MAX));
        let unprintable = named.chars().enumerate().find(|(_, c)| c.is_control()).map(|(at, c)| {
            let why = format!("invalid character U+{:04X} (at position {at})", u32::from(c));
            Cause::invalid("fieldManager", named, &why)
        });
        let causes: Vec<Cause> = too_long.into_iter().chain(unprintable).collect();
        let options = match self.objects.verb {
            Verb::Create => "CreateOptions",
            Verb::Update => "UpdateOptions",
            _ => "PatchOptions",
        };
        if causes.is_empty() { Ok(self.field_manager()) } else { Err(Status::invalid_options(options, causes)) }
    }

    /// Who writes, by the query or else by the user agent.
    fn field_manager(&self) -> FieldManager {
        let named = self.request.query.text("fieldManager");
        let agent = self.request.header(header::USER_AGENT).and_then(|agent| agent.split('/').next());
        let name = named.or(agent.filter(|agent| !agent.is_empty())).unwrap_or("unknown");
        FieldManager {
            name: name.chars().take(FIELD_MANAGER_LEN_MAX).collect(),
            is_named: named.is_some_and(|named| !named.is_empty()),
            time: Inner::now().text(0),
        }
    }

    /// The object in the body, and what to warn of.
    fn object(&self) -> Result<(Value, Vec<String>), Status> {
        let mut object = self.json()?;
        let warnings = FieldValidation::parse(self.request.query)?.read(&self.objects.resource, &mut object)?;
        Ok((object, warnings))
    }

    fn json(&self) -> Result<Value, Status> {
        let content_type = self.request.header(header::CONTENT_TYPE).unwrap_or("application/json");
        let media_type = content_type.split(';').next().unwrap_or_default().trim();
        if media_type == openapi::PROTOBUF && !self.objects.resource.custom {
            return openapi::to_json(&self.body).map_err(|error| Status::bad_request(error.to_string()));
        }
        if !["application/json", ""].contains(&media_type) {
            let message = format!(
                "the body of the request was in an unknown format ({media_type}) - accepted media types include: application/json"
            );
            return Err(Status::unsupported_media_type(message));
        }
        serde_json::from_slice(&self.body).map_err(|error| {
            let kind = &self.objects.resource.kind;
            Status::bad_request(format!(
                "{kind} in version {:?} cannot be decoded: {error}",
                self.objects.resource.version
            ))
        })
    }

    fn review(&self) -> Answered {
        let object = self.json()?;
        let reviewed = review::answer(self.inner, &self.objects.resource, object, self.request.info);
        Ok(self.value(StatusCode::CREATED, &reviewed))
    }

    fn create(&self) -> Answered {
        let (target, (object, warnings)) = (self.target()?, self.object()?);
        let written = self.inner.write(|world, now| world.create(self.id, &target, object, now))?;
        Ok(warn(self.written(StatusCode::CREATED, &written), &warnings))
    }

    fn update(&self) -> Answered {
        let (target, (object, warnings)) = (self.target()?, self.object()?);
        let written = self.inner.write(|world, _| world.update(self.id, &target, object))?;
        Ok(warn(self.written(StatusCode::OK, &written), &warnings))
    }

    fn patch(&self) -> Answered {
        let target = self.target()?;
        let content_type = self.request.header(header::CONTENT_TYPE).unwrap_or_default();
        if patching::is_apply(content_type) {
            return self.apply(&target);
        }
        if self.request.query.text("force").is_some() {
            let cause = Cause::forbidden("force", "may not be specified for non-apply patch");
            return Err(Status::invalid_options("PatchOptions", vec![cause]));
        }
        let validation = FieldValidation::parse(self.request.query)?;
        let resource = &self.objects.resource;
        let mut warnings = Vec::new();
        let patch = |object: Value| {
            let mut patched = patching::apply(content_type, &self.body, object, resource)?;
            warnings = validation.read(resource, &mut patched)?;
            Ok(patched)
        };
        let written = self.inner.write(|world, _| world.patch(self.id, &target, patch))?;
        Ok(warn(self.written(StatusCode::OK, &written), &warnings))
    }

    fn apply(&self, target: &Target) -> Answered {
        let resource = &self.objects.resource;
        let manager = self.field_manager();
        if !manager.is_named {
            let cause = Cause::required("fieldManager", "is required for apply patch");
            return Err(Status::invalid_options("PatchOptions", vec![cause]));
        }
        let is_strict = FieldValidation::parse(self.request.query)? == FieldValidation::Strict;
        let config = patching::configuration(&self.body, is_strict)?;
        // Only looked at: what is null, or empty, is owned all the same.
        let unknown = FieldValidation::Warn
            .read(resource, &mut config.clone())
            .map_err(|mistyped| not_typed(resource, target, &mistyped.message))?;
        if let Some(first) = unknown.first() {
            let path = first.trim_start_matches("unknown field ").trim_matches('"');
            return Err(not_typed(resource, target, &format!(".{path}: field not declared in schema")));
        }
        let force = self.request.query.flag("force") == Some(true);
        let write = |world: &mut World, now| world.apply(self.id, target, config, &manager, force, now);
        let (written, is_new) = self.inner.write(write)?;
        Ok(self.written(if is_new { StatusCode::CREATED } else { StatusCode::OK }, &written))
    }

    fn written(&self, code: StatusCode, written: &Written) -> Response<ResponseBody> {
        self.body(code, self.renderer().object(written.object()))
    }

    fn delete_options(&self) -> Result<DeleteOptions, Status> {
        let options = match self.body.is_empty() {
            true => {
                let query = self.request.query;
                DeleteOptions {
                    grace_period_seconds: query.number("gracePeriodSeconds")?,
                    orphan_dependents: query.flag("orphanDependents"),
                    propagation_policy: query.text("propagationPolicy").map(str::to_owned),
                    dry_run: query.text("dryRun").map(|stage| vec![stage.to_owned()]),
                    preconditions: None,
                }
            }
            // As the real server: then the query says nothing.
            false => serde_json::from_value(self.json()?)
                .map_err(|error| Status::bad_request(format!("DeleteOptions cannot be decoded: {error}")))?,
        };
        options.check()?;
        Ok(options)
    }

    fn delete(&self) -> Answered {
        let options = self.delete_options()?;
        let target = Target { dry_run: options.is_dry_run(), ..self.target_of(false)? };
        let written = self.inner.write(|world, now| world.delete(self.id, &target, &options, now))?;
        match &written {
            Written::Removed(object) if !returns_deleted(&self.objects.resource) => {
                let details = json!({
                    "name": object.key.name(), "group": self.objects.resource.group,
                    "kind": self.objects.resource.plural, "uid": &*object.uid,
                });
                let status = json!({
                    "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details,
                });
                Ok(self.value(StatusCode::OK, &status))
            }
            _ => Ok(self.written(StatusCode::OK, &written)),
        }
    }

    fn delete_collection(&self) -> Answered {
        let (options, selection) = (self.delete_options()?, self.selection()?);
        let dry_run = options.is_dry_run();
        let namespace = selection.namespace.clone();
        let of = Collection { namespace: namespace.as_deref(), wanted: &|object| selection.matches(object) };
        let (written, version) = self
            .inner
            .write(|world, now| (world.delete_collection(self.id, of, dry_run, &options, now), world.store.version()));
        let items: Vec<Value> = written.iter().map(Written::to_value).collect();
        let resource = &self.objects.resource;
        let list = json!({
            "kind": resource.list_kind(), "apiVersion": resource.api_version(),
            "metadata": {"resourceVersion": version.to_string()}, "items": items,
        });
        Ok(self.value(StatusCode::OK, &list))
    }
}

/// Whether a delete answers the object rather than a status.
fn returns_deleted(resource: &crate::Resource) -> bool {
    resource.group.is_empty()
        && ["pods", "services", "serviceaccounts", "persistentvolumes", "persistentvolumeclaims"]
            .contains(&&*resource.plural)
}

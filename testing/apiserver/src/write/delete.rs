//! PURE. Delete: at once, after a grace period, or when the last finalizer is gone.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kubewire_indexer::ObjectKey;
use serde::Deserialize;
use serde_json::{Value, json};

use super::update::is_waiting_for_finalizers;
use super::{Target, Written, finalizers, metadata};
use crate::store::CollectionId;
use crate::stored::{Draft, Stored};
use crate::world::{Deadline, Now, World};
use crate::{Cause, Resource, Status};

/// What a DELETE may carry as its body or in its query.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct DeleteOptions {
    pub(crate) grace_period_seconds: Option<i64>,
    pub(crate) preconditions: Option<Preconditions>,
    /// The old way to say `Orphan`, or `Background`.
    pub(crate) orphan_dependents: Option<bool>,
    pub(crate) propagation_policy: Option<String>,
    pub(crate) dry_run: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Preconditions {
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
}

const POLICIES: [&str; 3] = ["Foreground", "Background", "Orphan"];

/// For the garbage collector: the object waits for what it owns.
const FOREGROUND: &str = "foregroundDeletion";
/// For the garbage collector: what it owns is to stay.
const ORPHAN: &str = "orphan";

impl DeleteOptions {
    /// Refuses what no server understands.
    pub(crate) fn check(&self) -> Result<(), Status> {
        const FIELD: &str = "propagationPolicy";
        let mut causes = Vec::new();
        match (self.propagation_policy.as_deref(), self.orphan_dependents) {
            (Some(policy), Some(_)) => {
                let why = "orphanDependents and deletionPropagation cannot be both set";
                causes.push(Cause::invalid(FIELD, policy, why));
            }
            (Some(policy), None) if !POLICIES.contains(&policy) => {
                causes.push(Cause::not_supported(FIELD, policy, &["Foreground", "Background", "Orphan", "nil"]));
            }
            _ => {}
        }
        let stages = self.dry_run.as_deref().unwrap_or_default();
        if stages.iter().any(|stage| stage != "All") {
            let message = format!("Unsupported value: {}: supported values: \"All\"", json!(stages));
            causes.push(Cause { message, ..Cause::not_supported("dryRun", "", &["All"]) });
        }
        if causes.is_empty() { Ok(()) } else { Err(Status::invalid_options("DeleteOptions", causes)) }
    }

    pub(crate) fn is_dry_run(&self) -> bool {
        self.dry_run.as_ref().is_some_and(|stages| stages.iter().any(|stage| stage == "All"))
    }
}

/// The objects of a collection that a delete is about.
pub(crate) struct Collection<'a> {
    /// `None` for all namespaces.
    pub(crate) namespace: Option<&'a str>,
    pub(crate) wanted: &'a dyn Fn(&Stored) -> bool,
}

impl World {
    /// Deletes an object, as a DELETE does. There is no garbage collector: what the object owns stays.
    pub(crate) fn delete(
        &mut self,
        id: CollectionId,
        target: &Target,
        options: &DeleteOptions,
        now: Now,
    ) -> Result<Written, Status> {
        let resource = self.resource(id);
        let stored = self.existing(id, target)?;
        check_preconditions(&resource, &stored, options)?;
        let mut object = stored.to_value();
        let grace = if self.is_pods(id) { pod_grace(&object, options.grace_period_seconds) } else { 0 };
        let has_changed =
            !target.direct && !self.is_namespaces(id) && hand_to_collector(&resource, &mut object, options);
        let is_at_once = grace == 0 && finalizers(&object).is_empty();
        if target.dry_run {
            return Ok(if is_at_once { Written::Removed(stored) } else { Written::Dry(object) });
        }
        if self.is_namespaces(id) {
            self.empty_namespace(&target.name);
        }
        if is_at_once {
            return Ok(match self.store.remove(id, &stored.key) {
                Some(removed) => Written::Removed(removed),
                None => Written::Stored(stored),
            });
        }
        let present = object["metadata"]["deletionGracePeriodSeconds"].as_i64();
        let is_deleting = !object["metadata"]["deletionTimestamp"].is_null();
        // As the real server: a grace period is only ever shortened.
        let is_marked = is_deleting && present.is_some_and(|present| present <= grace);
        if is_marked && !has_changed {
            return Ok(Written::Stored(stored));
        }
        if !is_marked {
            mark_deleted(&resource, &mut object, grace, now);
        }
        if grace > 0 && !is_marked {
            let at = now.instant + Duration::from_secs(grace.unsigned_abs());
            let (key, uid) = (stored.key.clone(), stored.uid.clone());
            self.deadlines.insert(Deadline { at, collection: id, key, uid });
        }
        Ok(Written::Stored(self.store.put(id, Draft::new(&resource, &object))))
    }

    /// Deletes the objects of a collection, each as [`delete`](Self::delete) does; what it made of each.
    pub(crate) fn delete_collection(
        &mut self,
        id: CollectionId,
        of: Collection<'_>,
        dry_run: bool,
        options: &DeleteOptions,
        now: Now,
    ) -> Vec<Written> {
        let version = self.store.version();
        let page = self.store.collection(id).page(version, of.namespace, None, usize::MAX, of.wanted);
        // The present state is never too old.
        let items = page.map(|page| page.items).unwrap_or_default();
        let delete = |object: Arc<Stored>| {
            let (namespace, name) = (object.key.namespace().to_owned(), object.key.name().to_owned());
            let target = Target { namespace, name, dry_run, ..Target::default() };
            self.delete(id, &target, options, now).ok()
        };
        items.into_iter().filter_map(delete).collect()
    }

    /// What the namespace controller does: everything in the namespace goes, whatever it waits for.
    fn empty_namespace(&mut self, namespace: &str) {
        for id in self.store.ids() {
            let page =
                self.store.collection(id).page(self.store.version(), Some(namespace), None, usize::MAX, |_| true);
            for object in page.map(|page| page.items).unwrap_or_default() {
                self.store.remove(id, &object.key);
            }
        }
    }

    /// When the next grace period ends.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|deadline| deadline.at)
    }

    /// Removes the objects whose grace period is over; those with finalizers stay, without grace.
    pub(crate) fn end_grace_periods(&mut self, now: Instant) -> bool {
        let mut changed = false;
        while let Some(deadline) = self.deadlines.pop_first() {
            if deadline.at > now {
                self.deadlines.insert(deadline);
                break;
            }
            changed |= self.end_grace_period(deadline.collection, &deadline.key, &deadline.uid);
        }
        changed
    }

    fn end_grace_period(&mut self, id: CollectionId, key: &ObjectKey, uid: &str) -> bool {
        let Some(stored) = self.store.get(id, key).filter(|stored| &*stored.uid == uid).cloned() else { return false };
        let mut object = stored.to_value();
        if finalizers(&object).is_empty() {
            self.store.remove(id, key);
        } else if !is_waiting_for_finalizers(&object) {
            metadata(&mut object).insert("deletionGracePeriodSeconds".to_owned(), json!(0));
            let resource = self.resource(id);
            self.store.put(id, Draft::new(&resource, &object));
        }
        true
    }
}

/// Sets the finalizers by which the garbage collector knows what becomes of what the object owns; says whether they have
/// changed. As the real server: nobody collects here, so that they stay until somebody removes them.
fn hand_to_collector(resource: &Resource, object: &mut Value, options: &DeleteOptions) -> bool {
    let (group, plural) = (&*resource.group, &*resource.plural);
    if plural == "events" {
        return false;
    }
    let before: Vec<String> = finalizers(object).into_iter().map(str::to_owned).collect();
    let has = |name: &str| before.iter().any(|finalizer| finalizer == name);
    let policy = match (options.orphan_dependents, options.propagation_policy.as_deref()) {
        (Some(true), _) => "Orphan",
        (Some(false), _) => "Background",
        (None, Some(policy)) => policy,
        // What a deletion before has said stays.
        (None, None) if has(ORPHAN) => "Orphan",
        (None, None) if has(FOREGROUND) => "Foreground",
        // For clients of before there were policies.
        (None, None) if matches!((group, plural), ("batch", "jobs") | ("", "replicationcontrollers")) => "Orphan",
        (None, None) => "Background",
    };
    let mark = match policy {
        "Orphan" => Some(ORPHAN),
        "Foreground" => Some(FOREGROUND),
        _ => None,
    };
    let others = before.iter().map(String::as_str).filter(|finalizer| ![ORPHAN, FOREGROUND].contains(finalizer));
    let after: Vec<&str> = others.chain(mark).collect();
    let has_changed = before != after;
    if has_changed {
        match after.is_empty() {
            true => metadata(object).remove("finalizers"),
            false => metadata(object).insert("finalizers".to_owned(), json!(after)),
        };
    }
    has_changed
}

fn check_preconditions(resource: &Resource, stored: &Stored, options: &DeleteOptions) -> Result<(), Status> {
    let Some(preconditions) = &options.preconditions else { return Ok(()) };
    let version = stored.version.to_string();
    for (what, wanted, found) in [
        ("UID", &preconditions.uid, &*stored.uid),
        ("ResourceVersion", &preconditions.resource_version, version.as_str()),
    ] {
        if let Some(wanted) = wanted
            && wanted != found
        {
            let why = format!("Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}");
            return Err(Status::conflict(resource, stored.key.name(), &why));
        }
    }
    Ok(())
}

/// The seconds that a pod gets to end. One that no node runs, or that has ended, needs none.
fn pod_grace(pod: &Value, asked: Option<i64>) -> i64 {
    let phase = pod["status"]["phase"].as_str().unwrap_or_default();
    if pod["spec"]["nodeName"].as_str().is_none_or(str::is_empty) || ["Succeeded", "Failed"].contains(&phase) {
        return 0;
    }
    let own = pod["spec"]["terminationGracePeriodSeconds"].as_i64().unwrap_or(30);
    // As the real server: a negative one means one second.
    match asked.unwrap_or(own) {
        seconds if seconds < 0 => 1,
        // Ten years: an instant that far is still one.
        seconds => seconds.min(315_360_000),
    }
}

fn mark_deleted(resource: &Resource, object: &mut Value, grace: i64, now: Now) {
    let generation = object["metadata"]["generation"].as_i64();
    let metadata = metadata(object);
    metadata.insert("deletionTimestamp".to_owned(), json!(now.text(grace)));
    metadata.insert("deletionGracePeriodSeconds".to_owned(), json!(grace));
    if resource.generation {
        metadata.insert("generation".to_owned(), json!(generation.unwrap_or(0) + 1));
    }
}

//! PURE. What the metadata of every object has to be. The rules are the real server's.

use serde_json::Value;

use super::names::{is_qualified_name, is_subdomain};
use crate::Cause;

const NAME_RULE: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
    alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const VALUE_RULE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and \
    must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for \
    validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const FINALIZER_RULE: &str = "name is neither a standard finalizer name nor is it fully qualified";
const STANDARD_FINALIZERS: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];
const LABEL_LEN_MAX: usize = 63;

/// What is wrong with the metadata of an object.
pub(super) fn check(metadata: &Value) -> Vec<Cause> {
    let members = |name: &str| metadata[name].as_object().into_iter().flatten();
    let mut causes = Vec::new();
    for (name, value) in members("labels") {
        name_of("metadata.labels", name, name, &mut causes);
        let value = value.as_str().unwrap_or_default();
        if value.len() > LABEL_LEN_MAX {
            causes.push(Cause::invalid("metadata.labels", value, "must be no more than 63 bytes"));
        } else if !value.is_empty() && !is_word(value) {
            causes.push(Cause::invalid("metadata.labels", value, VALUE_RULE));
        }
    }
    for (name, _) in members("annotations") {
        name_of("metadata.annotations", name, &name.to_lowercase(), &mut causes);
    }
    owners(&metadata["ownerReferences"], &mut causes);
    for (at, finalizer) in metadata["finalizers"].as_array().into_iter().flatten().enumerate() {
        let (field, name) = (format!("metadata.finalizers[{at}]"), finalizer.as_str().unwrap_or_default());
        if !is_qualified_name(name) {
            name_of(&field, name, name, &mut causes);
        } else if !name.contains('/') && !STANDARD_FINALIZERS.contains(&name) {
            causes.push(Cause::invalid(&field, name, FINALIZER_RULE));
        }
    }
    causes
}

/// A name of labels or annotations, as it is written and as it is checked.
fn name_of(field: &str, written: &str, name: &str, causes: &mut Vec<Cause>) {
    if !is_qualified_name(name) {
        let (prefix, own) = name.split_once('/').unwrap_or(("a", name));
        let rule = match (own.len() > LABEL_LEN_MAX, is_subdomain(prefix)) {
            (true, _) => "name part must be no more than 63 bytes",
            (_, false) => "prefix part must be a lowercase RFC 1123 subdomain",
            _ => NAME_RULE,
        };
        causes.push(Cause::invalid(field, written, rule));
    }
}

fn owners(owners: &Value, causes: &mut Vec<Cause>) {
    let owners = owners.as_array().map(Vec::as_slice).unwrap_or_default();
    for (at, owner) in owners.iter().enumerate() {
        let (field, text) =
            (format!("metadata.ownerReferences[{at}]"), |name: &str| owner[name].as_str().unwrap_or_default());
        let required = ["apiVersion", "kind", "name", "uid"].into_iter().filter(|name| text(name).is_empty());
        causes.extend(required.map(|name| Cause::required(&format!("{field}.{name}"), "must not be empty")));
    }
    let controllers = owners.iter().filter(|owner| owner["controller"] == true);
    let names: Vec<&str> = controllers.map(|owner| owner["name"].as_str().unwrap_or_default()).collect();
    if let [first, second, ..] = &names[..] {
        let why = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {second}"
        );
        causes.push(Cause::invalid("metadata.ownerReferences", "", &why));
    }
}

fn is_word(text: &str) -> bool {
    !text.contains('/') && is_qualified_name(text)
}

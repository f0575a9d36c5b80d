//! PURE. Which names objects may have.

use crate::status::Cause;
use crate::{Resource, Status};

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
    and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
    start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";

/// Whether this may be the name of an object of this kind.
pub(super) fn check_name(resource: &Resource, name: &str) -> Result<(), Status> {
    let is_label = matches!((&*resource.group, &*resource.plural), ("", "namespaces" | "services"));
    let (max, right, rule) =
        if is_label { (63, is_dns_label(name), LABEL) } else { (253, is_subdomain(name), SUBDOMAIN) };
    let too_long = format!("must be no more than {max} characters");
    let problems = [(name.len() > max, too_long.as_str()), (!right, rule)];
    let causes: Vec<Cause> = problems
        .iter()
        .filter(|(is_wrong, _)| *is_wrong)
        .map(|(_, rule)| Cause::invalid("metadata.name", name, rule))
        .collect();
    if causes.is_empty() { Ok(()) } else { Err(Status::invalid(resource, name, causes)) }
}

pub(super) fn is_subdomain(name: &str) -> bool {
    name.split('.').all(is_dns_label)
}

fn is_dns_label(name: &str) -> bool {
    let inside = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    !name.is_empty() && name.bytes().all(inside) && !name.starts_with('-') && !name.ends_with('-')
}

/// `[prefix/]name`: a DNS subdomain, and up to 63 letters, digits, `-`, `_` and `.` between letters or digits.
pub(super) fn is_qualified_name(name: &str) -> bool {
    let (prefix, name) = name.split_once('/').unwrap_or(("a", name));
    let is_edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    is_subdomain(prefix)
        && prefix.len() <= 253
        && name.len() <= 63
        && is_edge(name.chars().next())
        && is_edge(name.chars().last())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

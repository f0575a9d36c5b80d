//! PURE. Whether what came is the list that was asked for.
//!
//! Items of a list in protobuf say nothing of their type, and bytes of another one would read as something: so the
//! list's own type is checked, before the first item.

use crate::client::protobuf::envelope::TypeMeta;
use crate::client::shaped::Types;

/// What an answer to a list is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListKind {
    List,
    /// An error with a good status line.
    Status,
}

/// The kind of an answer; what it says of itself where it is another one. One that says nothing is taken as a list.
pub(crate) fn list_kind(said: TypeMeta<'_>, wanted: Option<&Types>) -> Result<ListKind, String> {
    let TypeMeta { api_version, kind } = said;
    if kind == "Status" {
        return Ok(ListKind::Status);
    }
    let wanted_kind = wanted.map(|types| types.kind.as_str()).filter(|kind| !kind.is_empty());
    let metadata = wanted.is_some_and(|types| types.metadata_only) && kind == "PartialObjectMetadataList";
    let admitted = match (kind.strip_suffix("List"), wanted_kind) {
        _ if kind.is_empty() || metadata => true,
        (Some(kind), Some(wanted)) => kind == wanted,
        (Some(_), None) => true,
        (None, _) => return Err(format!("one {kind} came where a list was asked for")),
    };
    match wanted.filter(|types| !admitted || !api_version.is_empty() && !types.admits("apiVersion", api_version)) {
        None => Ok(ListKind::List),
        Some(types) => {
            Err(format!("{kind} of {api_version} came, wanted is a list of {} {}", types.api_version, types.kind))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_list_that_was_asked_for_is_taken() {
        let pods = Types { api_version: "v1".into(), kind: "Pod".into(), metadata_only: false };
        let metadata = Types { metadata_only: true, ..pods.clone() };
        let unnamed = Types { kind: String::new(), ..pods.clone() };
        let meta_list = ("meta.k8s.io/v1", "PartialObjectMetadataList");
        let table = [
            (("v1", "PodList"), Some(&pods), true),
            (("", ""), Some(&pods), true),
            (("v1", "NodeList"), Some(&pods), false),
            (("v2", "PodList"), Some(&pods), false),
            (("v1", "Pod"), Some(&pods), false),
            (("v1", "Pod"), None, false),
            (("v1", "NodeList"), None, true),
            (("v1", "NodeList"), Some(&unnamed), true),
            (meta_list, Some(&pods), false),
            (meta_list, Some(&metadata), true),
            (("v1", "PodList"), Some(&metadata), true),
        ];
        for ((api_version, kind), wanted, taken) in table {
            let read = list_kind(TypeMeta { api_version, kind }, wanted);
            assert_eq!(read.is_ok(), taken, "{api_version} {kind} for {wanted:?}: {read:?}");
        }
        let status = TypeMeta { api_version: "v1", kind: "Status" };
        assert_eq!(list_kind(status, Some(&pods)), Ok(ListKind::Status));
    }
}

//! PURE. What a list says of itself, once its items are taken out.

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::client::excerpt::excerpt;
use crate::client::shaped::Types;
use crate::client::status::{error_of_status, is_status};
use crate::{ErrorClass, ListMeta, RequestError};

/// Reads the head of a list. A `Status`, or an object that is no list, is an error: `{}` from whoever stands before
/// the server must not empty a cache.
///
/// A list without a version is none here: the meta says so by an empty one, and the reflector decides.
pub(crate) fn read_head(head: &[u8], types: Option<&Types>) -> Result<ListMeta, RequestError> {
    let decode_error = |error: serde_json::Error| {
        RequestError::new(ErrorClass::Decode, format!("the list cannot be read: {error}: {}", excerpt(head)))
    };
    // By way of a value, so that of two members of one name the last one counts.
    let value: Value = serde_json::from_slice(head).map_err(decode_error)?;
    if is_status(&value) {
        return Err(error_of_list_status(&value));
    }
    let kind = value["kind"].as_str().unwrap_or_default();
    if !kind.is_empty() && types.is_some_and(|types| types.kind == kind) {
        let message = format!("one {kind} came where a list was asked for");
        return Err(RequestError::new(ErrorClass::Decode, message));
    }
    let says_list = ["items", "metadata"].iter().any(|member| value.get(member).is_some()) || kind.ends_with("List");
    if !says_list {
        let message = format!("no list (neither `items` nor `metadata` is there): {}", excerpt(head));
        return Err(RequestError::new(ErrorClass::Decode, message));
    }
    let Head { metadata, items: _ } = Head::deserialize(&value).map_err(decode_error)?;
    let metadata = metadata.unwrap_or_default();
    let mut meta = ListMeta::new(metadata.resource_version.unwrap_or_default());
    meta.continue_token = metadata.continue_token.filter(|token| !token.is_empty());
    meta.remaining_item_count = metadata.remaining_item_count.and_then(|count| u64::try_from(count).ok());
    Ok(meta)
}

/// The error of a list that was none but a `Status`.
pub(crate) fn error_of_list_status(status: &Value) -> RequestError {
    match status["status"] == "Success" {
        true => RequestError::new(ErrorClass::Decode, "a Status of success came where a list was asked for"),
        false => error_of_status(status, 0),
    }
}

#[derive(Deserialize)]
struct Head {
    metadata: Option<Metadata>,
    /// Taken out already: `null`, empty or absent.
    #[expect(dead_code, reason = "read so that an `items` that is no array is refused")]
    items: Option<Vec<IgnoredAny>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    resource_version: Option<String>,
    #[serde(rename = "continue")]
    continue_token: Option<String>,
    remaining_item_count: Option<i64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(head: &str) -> Result<ListMeta, RequestError> {
        let types = Types { api_version: "v1".into(), kind: "Pod".into(), metadata_only: false };
        read_head(head.as_bytes(), Some(&types))
    }

    #[test]
    fn missing_and_null_parts_are_tolerated() {
        for head in [
            r#"{"kind":"PodList"}"#,
            r#"{"items":null}"#,
            r#"{"items":[],"metadata":null}"#,
            r#"{"kind":"PodList","metadata":{}}"#,
            r#"{"metadata":{"resourceVersion":null,"continue":null,"remainingItemCount":null}}"#,
        ] {
            assert_eq!(read(head).unwrap(), ListMeta::default(), "{head}");
        }
    }

    #[test]
    fn version_token_and_count_are_read_and_an_empty_token_is_none() {
        let meta = read(r#"{"metadata":{"resourceVersion":"7","continue":"t","remainingItemCount":3,"x":1}}"#).unwrap();
        assert_eq!((meta.resource_version.as_str(), meta.remaining_item_count), ("7", Some(3)));
        assert_eq!(meta.continue_token.as_deref(), Some("t"));
        assert_eq!(read(r#"{"metadata":{"continue":""}}"#).unwrap().continue_token, None);
    }

    #[test]
    fn of_two_metadata_the_last_one_counts() {
        let meta = read(r#"{"metadata":{"resourceVersion":"7"},"metadata":{"resourceVersion":"8"}}"#).unwrap();
        assert_eq!(meta.resource_version, "8");
    }

    #[test]
    fn what_is_no_list_is_an_error_with_a_class() {
        let table = [
            (r#"{"kind":"Status","status":"Failure","code":410,"reason":"Expired"}"#, ErrorClass::Expired),
            (r#"{"kind":"Status","status":"Success"}"#, ErrorClass::Decode),
            (r#"{"kind":"Pod","metadata":{"name":"a","resourceVersion":"7"}}"#, ErrorClass::Decode),
            (r#"{"items":{"a":1}}"#, ErrorClass::Decode),
            (r#"{"metadata":{"resourceVersion":7}}"#, ErrorClass::Decode),
            (r#"{"metadata":[]}"#, ErrorClass::Decode),
            (r#"{"a":01}"#, ErrorClass::Decode),
            ("{}", ErrorClass::Decode),
            (r#"{"message":"ok"}"#, ErrorClass::Decode),
            (r#"{"kind":"APIVersions"}"#, ErrorClass::Decode),
        ];
        for (head, class) in table {
            assert_eq!(read(head).unwrap_err().class(), class, "{head}");
        }
    }
}

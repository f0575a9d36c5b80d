use std::sync::Arc;

use kubewire_indexer::{Id, Meta, Object};
use proptest::prelude::*;
use serde::Deserialize;

use super::*;

#[derive(Debug, Deserialize)]
struct Thing {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    size: u32,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    namespace: String,
    name: String,
    resource_version: String,
}

impl Meta for Thing {
    fn id(&self) -> Id<'_> {
        let Metadata { namespace, name, resource_version } = &self.metadata;
        Id::new(namespace, name).resource_version(resource_version)
    }
}

fn options() -> DecodeOptions {
    let types = Types { api_version: "v1".into(), kind: "Thing".into(), metadata_only: false };
    DecodeOptions { types: Some(types), ..DecodeOptions::default() }
}

fn read(line: &str) -> Result<WatchEvent<Arc<Thing>>, RequestError> {
    read_line(line.as_bytes(), &options())
}

/// An event in a few words.
fn words(line: &str) -> String {
    match read(line) {
        Ok(WatchEvent::Added(thing)) => format!("added {} {}", thing.key(), thing.size),
        Ok(WatchEvent::Modified(thing)) => format!("modified {} {}", thing.key(), thing.size),
        Ok(WatchEvent::Deleted(thing)) => format!("deleted {} {}", thing.key(), thing.size),
        Ok(WatchEvent::Bookmark { resource_version, initial_events_end }) => {
            format!("bookmark {resource_version} {initial_events_end}")
        }
        Ok(WatchEvent::Undecodable { kind, error }) => format!(
            "undecodable {kind:?} {:?} {:?}: {}",
            error.key.as_ref().map(|key| key.as_str()),
            error.resource_version.as_deref(),
            error.message
        ),
        Ok(WatchEvent::Unknown { kind }) => format!("unknown {kind}"),
        Ok(other) => format!("{other:?}"),
        Err(error) => format!("{error}"),
    }
}

#[test]
fn events_are_read_in_any_order_of_type_and_object() {
    let object = r#"{"metadata":{"namespace":"n","name":"x"},"size":3}"#;
    for (kind, word) in [("ADDED", "added"), ("MODIFIED", "modified"), ("DELETED", "deleted")] {
        for line in [
            format!(r#"{{"type":"{kind}","object":{object}}}"#),
            format!(r#"{{"object":{object},"type":"{kind}"}}"#),
            format!(r#" {{ "type" : "{kind}" , "object" : {object} , "more" : [1] }} "#),
            format!(r#"{{"object":1,"type":"{kind}","object":{object}}}"#),
            format!(r#"{{"type":"{kind}","object":{{"metadata":{{}}}},"object":{object}}}"#),
        ] {
            assert_eq!(words(&line), format!("{word} n/x 3"), "{line}");
        }
    }
}

#[test]
fn an_error_event_and_a_bare_status_are_errors_and_never_objects() {
    let table = [
        (r#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}"#, ErrorClass::Expired),
        (r#"{"object":{"kind":"Status","code":500},"type":"ERROR"}"#, ErrorClass::Internal),
        (r#"{"type":"ERROR","object":{"kind":"Status","code":504,"reason":"Timeout"}}"#, ErrorClass::Unavailable),
        (r#"{"type":"ERROR","object":{"kind":"Status","code":403}}"#, ErrorClass::Forbidden),
        (r#"{"type":"ERROR","object":{"kind":"Status","code":429}}"#, ErrorClass::Throttled),
        (r#"{"type":"ERROR","object":{"code":500}}"#, ErrorClass::Internal),
        (r#"{"type":"ERROR","object":{"metadata":{"name":"x"}}}"#, ErrorClass::Other),
        (r#"{"type":"ERROR","object":null}"#, ErrorClass::Other),
        (r#"{"type":"ERROR","object":"text"}"#, ErrorClass::Other),
        (r#"{"type":"ERROR"}"#, ErrorClass::Other),
        (r#"{"kind":"Status","code":410}"#, ErrorClass::Expired),
        (r#"{"kind":"Status","apiVersion":"v1","status":"Failure","code":500}"#, ErrorClass::Internal),
    ];
    for (line, class) in table {
        assert_eq!(read(line).unwrap_err().class(), class, "{line}");
    }
}

#[test]
fn a_line_that_is_no_event_is_an_error_with_an_excerpt() {
    for line in [
        "text",
        "<html>",
        "{}",
        r#"{"kind":"Pod","metadata":{"name":"x"}}"#,
        r#"{"type":"ADDED"}"#,
        r#"{"type":"ADDED","object":null}"#,
        r#"{"type":"ADDED","object":"x"}"#,
        r#"{"type":7,"object":{}}"#,
        "\u{feff}{}",
        "\0",
        r#"{"type":"ADDED","object":{"metadata":{"name":"x"}}"#,
        r#"{"type":"ADDED","object":{"metadata":{"name":"x"}}}}"#,
    ] {
        let error = read(line).unwrap_err();
        assert_eq!(error.class(), ErrorClass::Decode, "{line}");
        assert!(error.to_string().contains("no event"), "{error}");
        assert!(error.to_string().len() < 400, "{error}");
    }
}

#[test]
fn an_unknown_type_is_reported_not_guessed() {
    let object = r#"{"metadata":{"name":"x"}}"#;
    assert_eq!(words(&format!(r#"{{"type":"PING","object":{object}}}"#)), "unknown PING");
    assert_eq!(words(&format!(r#"{{"type":"added","object":{object}}}"#)), "unknown added");
    assert_eq!(words(r#"{"type":"PING"}"#), "unknown PING");
    assert!(words(&format!(r#"{{"type":"{}"}}"#, "x".repeat(10_000))).len() < 200);
}

#[test]
fn a_bookmark_counts_if_it_is_of_the_right_kind_and_ends_the_list_if_it_says_true() {
    let bookmark = |types: &str, annotation: &str| {
        format!(
            r#"{{"type":"BOOKMARK","object":{{{types}"metadata":{{"resourceVersion":"9","annotations":{{{annotation}}}}}}}}}"#
        )
    };
    let end = r#""k8s.io/initial-events-end":"true""#;
    let own = r#""kind":"Thing","apiVersion":"v1","#;
    assert_eq!(words(&bookmark(own, end)), "bookmark 9 true");
    assert_eq!(words(&bookmark("", end)), "bookmark 9 true");
    assert_eq!(words(&bookmark(own, "")), "bookmark 9 false");
    assert_eq!(words(&bookmark(own, r#""k8s.io/initial-events-end":"false""#)), "bookmark 9 false");
    assert_eq!(words(&bookmark(own, r#""k8s.io/initial-events-end":true"#)), "bookmark 9 false");
    assert_eq!(words(&bookmark(r#""kind":"Other","apiVersion":"v1","#, end)), r#"unknown BOOKMARK of kind "Other""#);
    assert_eq!(words(&bookmark(r#""kind":"Thing","apiVersion":"v2","#, end)), r#"unknown BOOKMARK of apiVersion "v2""#);
    assert_eq!(words(r#"{"type":"BOOKMARK","object":null}"#), "unknown BOOKMARK without a resourceVersion");
    assert_eq!(words(r#"{"type":"BOOKMARK","object":{"metadata":{}}}"#), "unknown BOOKMARK without a resourceVersion");
}

#[test]
fn an_object_that_cannot_be_decoded_tells_its_key_its_version_and_the_path_of_the_fault() {
    let line = |object: &str| format!(r#"{{"type":"DELETED","object":{object}}}"#);
    let good = r#""metadata":{"namespace":"n","name":"x","resourceVersion":"7"}"#;
    assert_eq!(
        words(&line(&format!(r#"{{{good},"size":"big"}}"#))),
        r#"undecodable Deleted Some("n/x") Some("7"): size: invalid type: string "big", expected u32 at byte 75"#
    );
    assert_eq!(
        words(&line(&format!(r#"{{"kind":"Other",{good}}}"#))),
        r#"undecodable Deleted Some("n/x") Some("7"): kind is "Other", wanted is v1 Thing"#
    );
    let no_name = "the object has no name (metadata.name is missing or empty)";
    for object in [r#"{}"#, r#"{"metadata":{}}"#, r#"{"metadata":{"name":""}}"#] {
        assert_eq!(words(&line(object)), format!("undecodable Deleted None None: {no_name}"), "{object}");
    }
    assert!(words(&line(r#"{"metadata":null}"#)).starts_with("undecodable Deleted None None: metadata: invalid type"));
    assert!(
        words(&line(r#"{"metadata":{"name":7,"resourceVersion":"8"}}"#))
            .starts_with(r#"undecodable Deleted None Some("8")"#)
    );
}

#[test]
fn of_two_fields_of_one_name_the_last_one_counts() {
    let line =
        r#"{"type":"ADDED","object":{"size":1,"metadata":{"name":"x"},"size":2,"metadata":{"name":"y","name":"z"}}}"#;
    assert_eq!(words(line), "added z 2");
}

const LINE: &str = r#"{"type":"ADDED","object":{"kind":"Thing","metadata":{"namespace":"n","name":"x"},"size":3}}"#;

#[test]
fn a_part_of_a_line_is_no_event() {
    assert_eq!(words(LINE), "added n/x 3");
    for end in 0..LINE.len() {
        assert!(read(&LINE[..end]).is_err(), "{}", &LINE[..end]);
    }
}

proptest! {
    #[test]
    fn a_damaged_line_is_an_event_or_an_error_but_never_a_panic(
        damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut line = LINE.as_bytes().to_vec();
        for (place, byte) in damage {
            let place = place.index(line.len());
            line[place] = byte;
        }
        if let Ok(WatchEvent::Added(thing)) = read_line::<Arc<Thing>>(&line, &options()) {
            prop_assert!(!thing.id().name.is_empty());
        }
    }
}

//! Random texts of the right shape, which plain random bytes would never be.

use proptest::prelude::*;
use proptest::sample::select;

/// A text of some of these words.
fn words(words: &'static [&'static str], most: usize) -> impl Strategy<Value = String> {
    prop::collection::vec(select(words), 0..most).prop_map(|words| words.concat())
}

/// Where a text is cut.
pub(crate) fn cuts() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(prop_oneof![0..4_u8, any::<u8>()], 0..20)
}

const STRINGS: &[&str] = &[
    r#""items""#,
    r#""metadata""#,
    r#""kind""#,
    r#""List""#,
    r#""Status""#,
    r#""resourceVersion""#,
    r#""continue""#,
    r#""rows""#,
    r#""Table""#,
    r#""""#,
    r#""a\"b""#,
    r#""\\""#,
    r#""é\u00e9\ud83d\ude00""#,
    r#""\ud800""#,
    r#""]}""#,
    r#""type""#,
    r#""object""#,
    r#""ADDED""#,
    r#""BOOKMARK""#,
    r#""ERROR""#,
    r#""name""#,
    r#""10""#,
    r#""it\u0065ms""#,
];

/// JSON, sound but odd.
fn json() -> impl Strategy<Value = String> {
    let numbers: &[&str] =
        &["0", "-1", "1.5e300", "1e999", "18446744073709551616", "true", "null", " null ", "\t7\r\n"];
    let leaf = prop_oneof![select(STRINGS), select(numbers)].prop_map(str::to_owned);
    leaf.prop_recursive(6, 40, 6, |inner| {
        let member = (select(STRINGS), inner.clone()).prop_map(|(name, value)| format!("{name} :{value}"));
        let list = |open: &'static str, close: &'static str| {
            move |parts: Vec<String>| format!("{open}{}{close}", parts.join(","))
        };
        prop_oneof![
            prop::collection::vec(inner, 0..6).prop_map(list("[", "]")),
            prop::collection::vec(member, 0..6).prop_map(list("{ ", " }")),
        ]
    })
}

/// The body of a list: items of any kind, and what stands beside them.
pub(crate) fn list_body() -> impl Strategy<Value = Vec<u8>> {
    let items = prop::collection::vec(json(), 0..6).prop_map(|items| format!("\"items\":[{}]", items.join(", ")));
    let beside = (select(STRINGS), json()).prop_map(|(name, value)| format!("{name}:{value}"));
    let members = prop::collection::vec(prop_oneof![2 => beside, 1 => items], 0..5);
    let list = members.prop_map(|members| format!("{{{}}}", members.join(",")));
    spoilt(
        prop_oneof![6 => list, 1 => json(), 1 => words(&["{", "}", "[", "]", ",", ":", "\"items\"", "\"", "\\", "1"], 20)],
    )
}

/// An item of a list: an object that says its state, somehow.
pub(crate) fn item() -> impl Strategy<Value = Vec<u8>> {
    let keys: &[&str] =
        &["namespace", "name", "uid", "resourceVersion", "labels", "metadata", r"n\u0061me", r#"a\""#, "é", ""];
    let texts: &[&str] =
        &[r#""x""#, r#""""#, r#""7""#, r#""\u0078""#, r#""a\"b""#, r#""é""#, "null", "7", "\n \"y\" ", "\"\x01\""];
    let value = prop_oneof![4 => select(texts).prop_map(str::to_owned), 1 => json()];
    let member = (select(keys), value).prop_map(|(key, value)| format!("\"{key}\": {value}"));
    let whole = Just(r#""name":"x","uid":"u","resourceVersion":"7""#.to_owned());
    let members = prop::collection::vec(prop_oneof![3 => member, 1 => whole], 0..8);
    let metadata = members.prop_map(|members| format!("{{{}}}", members.join(" ,")));
    let names: &[&str] = &["metadata", "metadata", "metadata", "spec", r"met\u0061data", "kind"];
    let value = prop_oneof![3 => metadata, 1 => json()];
    let member = (select(names), value).prop_map(|(name, value)| format!("\"{name}\":{value}"));
    spoilt(prop::collection::vec(member, 0..4).prop_map(|members| format!("{{{}}}", members.join(","))))
}

/// The body of a watch: lines of events and of what is none.
pub(crate) fn watch_body() -> impl Strategy<Value = Vec<u8>> {
    let kinds: &[&str] = &["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR", "added", "\\u0041DDED", ""];
    let metas: &[&str] = &[
        r#"{"name":"x","namespace":"n","uid":"u","resourceVersion":"5"}"#,
        r#"{"resourceVersion":"5","annotations":{"k8s.io/initial-events-end":"true"}}"#,
        r#"{"name":null}"#,
        r#"{"name":7}"#,
        "null",
        "{}",
        r#"{"name":"a","name":"b"}"#,
        r#"[]"#,
    ];
    let object = prop_oneof![
        4 => (select(metas), prop_oneof![Just(String::new()), json().prop_map(|size| format!(",\"size\":{size}"))])
            .prop_map(|(meta, size)| format!("{{\"metadata\":{meta}{size}}}")),
        1 => json(),
    ];
    let event = (select(kinds), object, any::<bool>()).prop_map(|(kind, object, first)| match first {
        true => format!("{{\"type\":\"{kind}\",\"object\":{object}}}"),
        false => format!("{{\"object\": {object}, \"type\" : \"{kind}\" }}"),
    });
    let line = prop_oneof![6 => event, 1 => json(), 1 => Just(String::new()), 1 => Just("<html>".to_owned())];
    let end = select(&["\n", "\r\n", "\n\n", " \n", ""][..]);
    let lines = prop::collection::vec((line, end).prop_map(|(line, end)| line + end), 0..6);
    spoilt(lines.prop_map(|lines| lines.concat()))
}

/// The same, mostly; or with a few bytes changed, or cut off.
fn spoilt(text: impl Strategy<Value = String>) -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![select(&b"{}[],:\"\\ \n0"[..]), any::<u8>()];
    let change = (any::<prop::sample::Index>(), byte);
    let changes = prop_oneof![2 => Just(Vec::new()), 1 => prop::collection::vec(change, 1..4)];
    (text, changes, prop::option::weighted(0.2, any::<prop::sample::Index>())).prop_map(|(text, changes, end)| {
        let mut bytes = text.into_bytes();
        for (place, byte) in changes {
            if !bytes.is_empty() {
                let place = place.index(bytes.len());
                bytes[place] = byte;
            }
        }
        if let Some(end) = end.filter(|_| !bytes.is_empty()) {
            bytes.truncate(end.index(bytes.len()));
        }
        bytes
    })
}

/// Something like a selector.
pub(crate) fn selector() -> impl Strategy<Value = String> {
    const PARTS: &[&str] = &[
        "a",
        "b/c",
        "x.y/z-1",
        "status.phase",
        "=",
        "==",
        "!=",
        " in ",
        " notin ",
        "(",
        ")",
        ",",
        "!",
        " ",
        "\\",
        "\\,",
        "\\=",
        ">",
        "<",
        "5",
        "-",
        "é",
        "\u{0}",
    ];
    prop_oneof![4 => words(PARTS, 12), 1 => any::<String>()]
}

/// Something like a key, a name or a version.
pub(crate) fn name() -> impl Strategy<Value = String> {
    const PARTS: &[&str] = &[
        "a", "default", "/", "//", ".", "..", "%2F", "%", "é", "😀", "\u{0}", " ", "0", "7", "99", "+", "&", "=", "#",
        "?",
    ];
    prop_oneof![3 => words(PARTS, 6), 1 => any::<String>(), 1 => "[0-9]{0,40}"]
}

/// A body of failure.
pub(crate) fn failure_body() -> impl Strategy<Value = Vec<u8>> {
    let reasons: &[&str] = &["Expired", "Gone", "Timeout", "TooManyRequests", "InternalError", "x", ""];
    let codes: &[&str] = &["410", "0", "-1", "504", "65536", "\"500\"", "null", "429"];
    let causes: &[&str] =
        &[r#"[{"reason":"ResourceVersionTooLarge"}]"#, "[]", "null", "[1,null,{}]", r#"[{"message":"m"}]"#];
    let status = (select(reasons), select(codes), json(), select(causes), json()).prop_map(|(reason, code, message, causes, wait)| {
        format!(
            r#"{{"kind":"Status","reason":"{reason}","code":{code},"message":{message},"details":{{"causes":{causes},"retryAfterSeconds":{wait}}}}}"#
        )
    });
    spoilt(prop_oneof![4 => status, 1 => json(), 1 => Just("<html>503".to_owned())])
}

/// A value of `Retry-After` or `Date`.
pub(crate) fn time() -> impl Strategy<Value = String> {
    const TIMES: &[&str] = &[
        "0",
        "2",
        "86400",
        "99999999999999999999",
        "-1",
        "1.5",
        "",
        "soon",
        " 3 ",
        "Mon, 02 Mar 2026 10:00:30 GMT",
        "Mon, 02 Mar 2099 10:00:00 GMT",
        "Thu, 01 Jan 1970 00:00:00 GMT",
        "Fri, 31 Dec 9999 23:59:59 GMT",
    ];
    prop_oneof![3 => select(TIMES).prop_map(str::to_owned), 1 => any::<u32>().prop_map(|n| n.to_string()), 1 => any::<String>()]
}

/// A protobuf message of the fields that objects, lists and events have: right, or nearly so.
fn message() -> impl Strategy<Value = Vec<u8>> {
    let leaf = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..8),
        select(&["", "x", "7", "ADDED", "BOOKMARK", "ERROR", "v1", "Thing", "Status", "ThingList"][..])
            .prop_map(|text| text.as_bytes().to_vec()),
    ];
    leaf.prop_recursive(5, 40, 8, |inner| {
        let field = (1..18_u8, any::<u8>(), 0..8_u8, inner).prop_map(|(tag, number, kind, value)| match kind {
            0 => [&key(tag, 0)[..], &[number & 0x7f]].concat(),
            1 => [&key(tag, 2)[..], &[number], &value].concat(),
            2 => [&key(tag, 2)[..], &envelope(&value)].concat(),
            _ => [&key(tag, 2)[..], &length(&value), &value].concat(),
        });
        prop::collection::vec(field, 0..8).prop_map(|fields| fields.concat())
    })
}

/// What stands before a value.
fn key(tag: u8, wire_type: u8) -> Vec<u8> {
    let key = u16::from(tag) << 3 | u16::from(wire_type);
    if key < 128 { vec![key as u8] } else { vec![key as u8 | 0x80, (key >> 7) as u8] }
}

fn length(value: &[u8]) -> Vec<u8> {
    let len = value.len();
    if len < 128 {
        vec![len as u8]
    } else {
        vec![len as u8 | 0x80, ((len >> 7) & 0x7f) as u8 | 0x80, (len >> 14) as u8]
    }
}

/// A message as the value of a field, in an envelope.
fn envelope(message: &[u8]) -> Vec<u8> {
    let inside = [&b"k8s\0\x12"[..], &length(message), message].concat();
    [&length(&inside)[..], &inside].concat()
}

/// A list, a watch or an object in protobuf.
pub(crate) fn protobuf_body() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        message(),
        message().prop_map(|raw| [&b"k8s\0\x12"[..], &length(&raw), &raw].concat()),
        prop::collection::vec(message(), 0..4).prop_map(|frames| {
            frames.iter().flat_map(|frame| [&(frame.len() as u32).to_be_bytes()[..], frame].concat()).collect()
        }),
    ]
}

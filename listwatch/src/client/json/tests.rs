use std::collections::BTreeMap;

use proptest::prelude::*;
use serde::de::{Deserialize, DeserializeOwned, IgnoredAny};
use serde_json::Value;

use super::{Reader, Span};

fn read<'de, T: Deserialize<'de>>(mut reader: Reader<'de>) -> Option<T> {
    let value = T::deserialize(&mut reader).ok()?;
    reader.end().is_ok().then_some(value)
}

fn loose<T: DeserializeOwned>(text: &str) -> Option<T> {
    read(Reader::new(text))
}

#[derive(Debug, PartialEq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum Shape {
    Empty,
    Round(u8),
    Square { side: i8 },
}

#[derive(Debug, PartialEq, serde::Deserialize)]
struct Whole {
    shape: Shape,
    name: Option<String>,
    ratio: f64,
    pair: (u8, bool),
    unit: (),
}

#[test]
fn structs_enums_and_tuples_are_read_as_by_serde_json() {
    let whole =
        |shape: &str| format!(r#"{{"shape":{shape},"name":null,"ratio":1,"x":[{{}}],"pair":[1,true],"unit":null}}"#);
    for shape in
        ["\"empty\"", "{\"round\":7}", "{\"square\":{\"side\":-1}}", "{\"round\":7,\"empty\":null}", "{}", "\"x\""]
    {
        let text = whole(shape);
        assert_eq!(loose::<Whole>(&text), serde_json::from_str(&text).ok(), "{shape}");
    }
}

#[test]
fn an_array_says_how_long_it_is() {
    for (text, len) in [("[]", 0), ("[ ]", 0), ("[1]", 1), (r#"[ {"a":[1,2]} , "]," ,[[3]], null ]"#, 4)] {
        let list: Vec<Value> = loose(text).unwrap();
        assert_eq!((list.len(), list.capacity()), (len, len), "{text}");
    }
    let nested: Vec<Vec<Vec<u8>>> = loose("[[[1,2,3],[]],[[4]]]").unwrap();
    assert_eq!((nested.capacity(), nested[0].capacity(), nested[0][0].capacity()), (2, 2, 3));
}

#[test]
fn a_span_is_the_text_of_a_value() {
    let text = r#"{"a": {"b":"}"} ,"c":"x\"","d":-1.5 }"#;
    let spans: BTreeMap<String, Span<'_>> = read(Reader::strict(text)).unwrap();
    let spans: Vec<_> = spans.values().map(|Span(text)| *text).collect();
    assert_eq!(spans, [r#"{"b":"}"}"#, r#""x\"""#, "-1.5"]);
}

#[test]
fn what_is_skipped_is_checked_by_a_strict_reader_alone() {
    let text = r#"{"a":[1 2,{]}"#;
    assert!(read::<IgnoredAny>(Reader::new(text)).is_none(), "one bracket is missing");
    let text = r#"{"a":[1 2,{]]}"#;
    assert!(read::<IgnoredAny>(Reader::new(text)).is_some());
    assert!(read::<IgnoredAny>(Reader::strict(text)).is_none());
}

#[test]
fn escapes_stand_for_what_serde_json_takes_them_for() {
    let texts = [
        r#""\u00e9\ud83d\ude00\"\\\/\b\f\n\r\tx""#,
        r#""\ud83d""#,
        r#""\ud83dx""#,
        r#""\ud83d\u0041""#,
        r#""\ude00\ud83d""#,
    ];
    for text in texts {
        assert_eq!(loose::<String>(text), serde_json::from_str(text).ok(), "{text}");
        let map = format!(r#"{{{text}:{text}}}"#);
        assert_eq!(loose::<Value>(&map), serde_json::from_str(&map).ok(), "{map}");
    }
}

#[test]
fn containers_are_not_entered_without_end() {
    for (depth, is_read) in [(100, true), (127, true), (128, false), (100_000, false)] {
        let text = "[".repeat(depth) + &"]".repeat(depth);
        assert_eq!(read::<Value>(Reader::new(&text)).is_some(), is_read, "{depth}");
        assert_eq!(read::<IgnoredAny>(Reader::strict(&text)).is_some(), is_read, "{depth}");
        assert_eq!(serde_json::from_str::<Value>(&text).is_ok(), is_read, "{depth}");
    }
}

fn texts() -> impl Strategy<Value = String> {
    let token = prop_oneof![
        Just("{".to_owned()),
        Just("}".to_owned()),
        Just("[".to_owned()),
        Just("]".to_owned()),
        Just(",".to_owned()),
        Just(":".to_owned()),
        Just("\"a\":".to_owned()),
        Just("null".to_owned()),
        Just("true".to_owned()),
        "-?[01]{1,2}(\\.[0-9]?)?([eE][+-]?[0-9]?)?",
        "\"([a-é]|\\\\[\"\\\\/bnu0x]|\\\\u00e9){0,12}\"",
        "[ \\n]",
        "[\\x01\"\\\\a]",
        "[0-9]{18,20}",
        "-[0-9]{18,20}",
    ];
    proptest::collection::vec(token, 0..12).prop_map(|tokens| tokens.concat())
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1000..1000_i32).prop_map(|n| Value::from(f64::from(n) / 8.0)),
        "[a-d\"\\\\é/\\n\\x01]{0,30}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 4, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::btree_map("[ab\"é]{1,9}", inner, 0..4)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Whether both are the same, but for the last bits of fractions, which serde_json does not round as they should be.
fn alike(ours: &Value, theirs: &Value) -> bool {
    match (ours, theirs) {
        (Value::Number(ours), Value::Number(theirs)) if ours.is_f64() && theirs.is_f64() => {
            let (ours, theirs) = (ours.as_f64().unwrap(), theirs.as_f64().unwrap());
            (ours - theirs).abs() <= theirs.abs() * 1e-15
        }
        (Value::Array(ours), Value::Array(theirs)) => {
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(ours, theirs)| alike(ours, theirs))
        }
        (Value::Object(ours), Value::Object(theirs)) => {
            ours.len() == theirs.len()
                && ours.iter().zip(theirs).all(|(ours, theirs)| ours.0 == theirs.0 && alike(ours.1, theirs.1))
        }
        _ => ours == theirs,
    }
}

#[test]
fn a_fraction_is_the_nearest_one_there_is() {
    for text in ["506650510303900300000000000000000000", "0.1", "1.7976931348623157e308", "5e-324", "-0.3e-7"] {
        assert_eq!(loose::<f64>(text), Some(text.parse().unwrap()), "{text}");
    }
}

proptest! {
    #[test]
    fn any_value_is_read_as_by_serde_json(value in value(), pretty in any::<bool>()) {
        let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
        prop_assert_eq!(loose::<Value>(&text), Some(value));
        for reader in [Reader::new(&text), Reader::strict(&text)] {
            prop_assert!(read::<IgnoredAny>(reader).is_some());
        }
        prop_assert_eq!(read::<Span<'_>>(Reader::new(&text)).unwrap().0, text.as_str());
    }

    #[test]
    fn what_is_no_json_is_refused_as_by_serde_json(text in texts(), inside in any::<bool>()) {
        let text = if inside { format!("{{\"a\":[{text}]}}") } else { text };
        let (ours, theirs) = (loose::<Value>(&text), serde_json::from_str::<Value>(&text).ok());
        prop_assert!(ours.as_ref().zip(theirs.as_ref()).map_or(ours == theirs, |(ours, theirs)| alike(ours, theirs)), "{}", text);
        let checked = serde_json::from_str::<IgnoredAny>(&text).is_ok();
        prop_assert_eq!(read::<IgnoredAny>(Reader::strict(&text)).is_some(), checked, "{}", text);
        if checked {
            prop_assert!(read::<IgnoredAny>(Reader::new(&text)).is_some());
        }
    }
}

/// A key that is more than a text, and what it is.
type Odd = BTreeMap<Option<i8>, BTreeMap<bool, BTreeMap<char, (u128, i128)>>>;

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, serde::Deserialize)]
enum Way {
    #[serde(rename = "ü\n")]
    Up,
    Down,
}

#[derive(Debug, serde::Deserialize)]
struct Raw<'a> {
    #[serde(borrow)]
    lent: &'a serde_json::value::RawValue,
    owned: Option<Box<serde_json::value::RawValue>>,
}

#[test]
fn keys_wide_numbers_and_variants_are_what_serde_json_takes_them_for() {
    let max = format!(r#"{{"-7":{{"true":{{"x":[{},{}]}}}}}}"#, u128::MAX, i128::MIN);
    for text in [max.as_str(), r#"{"-7":{"true":{"x":[1,-1]}}}"#, r#"{"300":{}}"#, r#"{"x":{}}"#, r#"{"1":{"yes":{}}}"#]
    {
        assert_eq!(loose::<Odd>(text), serde_json::from_str(text).ok(), "{text}");
    }
    for text in [r#"{"Down":"\u00fc\n"}"#, r#"{"\u00fc\n":"Down"}"#, r#"{"Down":"Down "}"#, r#"{"up":"Down"}"#] {
        assert_eq!(loose::<BTreeMap<Way, Way>>(text), serde_json::from_str(text).ok(), "{text}");
    }
    for text in ["1e999", "-1e999", "123456789012345678901234567890", "-0", "0.1e-7", "1E3", "[1.5]"] {
        assert_eq!(loose::<Value>(text), serde_json::from_str(text).ok(), "{text}");
    }
}

#[test]
fn a_raw_value_is_the_text_as_it_stands() {
    let text = r#"{"lent": {"a" : [1, 2.50]} ,"owned":"\u00e9"}"#;
    let raw: Raw<'_> = read(Reader::new(text)).unwrap();
    assert_eq!((raw.lent.get(), raw.owned.unwrap().get()), (r#"{"a" : [1, 2.50]}"#, r#""\u00e9""#));
    assert!(read::<Raw<'_>>(Reader::new(r#"{"lent":[1 2]}"#)).is_none(), "it would not be JSON");
}

#[test]
fn an_error_tells_the_path_and_the_place() {
    #[derive(Debug, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "read alone")]
    struct Node {
        #[serde(default)]
        size: u8,
        #[serde(default, rename = "the nodes")]
        nodes: Vec<Vec<Self>>,
        #[serde(default)]
        by_name: BTreeMap<String, Self>,
    }

    let cases = [
        (r#"{"size":300}"#, "size: invalid value: integer `300`, expected u8 at byte 11"),
        (
            r#"{"the nodes":[[],[{},{"size":"x"}]]}"#,
            r#"the nodes[1][1].size: invalid type: string "x", expected u8 at byte 32"#,
        ),
        (r#"{"by_name":{"a\"b":{"size":[]}}}"#, r#"by_name.a\"b.size: invalid type: sequence, expected u8 at byte 28"#),
        (
            r#"{"by_name":{"a":{"siez":1}}}"#,
            "by_name.a: unknown field `siez`, expected one of `size`, `the nodes`, `by_name` at byte 23",
        ),
        (r#"{"siez":1}"#, "unknown field `siez`, expected one of `size`, `the nodes`, `by_name`"),
        (r#"{"size":1 2}"#, "expected a comma or an end at byte 10"),
        (r#"{"the nodes":[[{]]}"#, "the nodes[0][0]: expected a string at byte 16"),
        (r#"{"size":1"#, "EOF where a comma or an end was expected at byte 9"),
    ];
    for (text, error) in cases {
        assert_eq!(Node::deserialize(&mut Reader::new(text)).unwrap_err().to_string(), error, "{text}");
    }
}

//! Label and field selectors against the API's rules.

use std::collections::BTreeMap;

use kubewire_indexer::{FieldSelector, LabelSelector, Operator, Requirement, SelectorError};
use proptest::prelude::*;

fn label(text: &str) -> Result<LabelSelector, SelectorError> {
    text.parse()
}

#[test]
fn label_selectors_parse_and_print_in_canonical_form() {
    // text | as it prints
    let rows = [
        ("", ""),
        (" \t\n", ""),
        ("x", "x"),
        ("!x", "!x"),
        ("! x ", "!x"),
        ("x=a", "x=a"),
        ("x==a", "x==a"),
        ("x!=a", "x!=a"),
        ("x=", "x="),
        ("x!=,y", "x!=,y"),
        ("x = a , y != b", "x=a,y!=b"),
        ("z,y,x", "x,y,z"),
        ("x in (b,a,b)", "x in (a,b)"),
        ("x notin(a)", "x notin (a)"),
        ("x in (,)", "x in ()"),
        ("x in (a,)", "x in (,a)"),
        ("x in (,a)", "x in (,a)"),
        ("x in (a,,b)", "x in (,a,b)"),
        ("x in (,,a)", "x in (,a)"),
        ("in in (in)", "in in (in)"),
        ("in", "in"),
        ("notin=in", "notin=in"),
        ("x>5,y<7", "x>5,y<7"),
        ("example.com/name=a", "example.com/name=a"),
        ("x=a,x!=b,!y,a", "a,x=a,x!=b,!y"),
    ];
    for (text, prints) in rows {
        let selector = label(text).unwrap_or_else(|error| panic!("{text:?}: {error}"));
        assert_eq!(selector.to_string(), prints, "{text:?}");
        // `x in ()`, with the empty value, is the one that the API prints and does not read.
        if text != "x in (,)" {
            assert_eq!(label(prints).unwrap(), selector, "{prints:?}");
        }
    }
}

#[test]
fn names_values_and_prefixes_may_be_as_long_as_the_api_says_and_no_longer() {
    let text = |prefix: usize, name: usize, value: usize| {
        format!("{}/{}={}", "p".repeat(prefix), "n".repeat(name), "v".repeat(value))
    };
    assert!(label(&text(253, 63, 63)).is_ok());
    for (prefix, name, value) in [(254, 63, 63), (253, 64, 63), (253, 63, 64)] {
        assert!(label(&text(prefix, name, value)).is_err(), "{prefix} {name} {value}");
    }
}

#[test]
fn what_the_api_refuses_is_refused_with_a_reason() {
    // text | what the error says
    let rows = [
        (",", r#"found "," at byte 0, want a label name"#),
        ("x,", "found the end, want a label name"),
        ("x=a,,y", r#"found "," at byte 4, want a label name"#),
        ("=a", r#"found "=" at byte 0"#),
        ("!x=a", r#"found "=" at byte 2, want `,` or the end"#),
        ("x y", r#"found "y" at byte 2, want one of"#),
        ("x in a", r#"found "a" at byte 5, want `(`"#),
        ("x in (a", "found the end, want `,` or `)`"),
        ("x in (a b)", r#"found "b" at byte 8, want `,` or `)`"#),
        ("x in (a,,)", r#"found ")" at byte 9"#),
        ("x in (=)", r#"found "=" at byte 6"#),
        ("x in ()", "wants at least one value, got 0 values"),
        ("x=a b", r#"found "b" at byte 4, want `,` or the end"#),
        ("x===a", r#"found "=" at byte 3, want a value"#),
        ("x>=5", r#"found "=" at byte 2, want a value"#),
        ("x>", "must be a whole number"),
        ("x>a", "must be a whole number"),
        ("x>9223372036854775808", "must be a whole number"),
        ("x=-a", "must begin and end with a letter or digit"),
        ("-x=a", "must begin and end with a letter or digit"),
        ("a/b/c", "at most one slash"),
        ("/x", "the prefix"),
        ("x=ü", "only ASCII letters"),
        ("!", "found the end, want a label name"),
    ];
    for (text, says) in rows {
        let error = label(text).expect_err(text).to_string();
        assert!(error.contains(says), "{text:?}: {error}");
    }
}

#[test]
fn an_absent_label_meets_the_negative_operators_alone() {
    // selector | absent | "" | "5" | "x" | "12345678901234567890"
    let rows = [
        ("k", [false, true, true, true, true]),
        ("!k", [true, false, false, false, false]),
        ("k=5", [false, false, true, false, false]),
        ("k==5", [false, false, true, false, false]),
        ("k=", [false, true, false, false, false]),
        ("k!=5", [true, true, false, true, true]),
        ("k in (5,x)", [false, false, true, true, false]),
        ("k notin (5,x)", [true, true, false, false, true]),
        ("k>4", [false, false, true, false, false]),
        ("k>5", [false, false, false, false, false]),
        ("k<6", [false, false, true, false, false]),
        ("k<5", [false, false, false, false, false]),
        ("k,k!=5", [false, true, false, true, true]),
        ("", [true; 5]),
    ];
    for (text, expected) in rows {
        let selector = label(text).unwrap();
        let values = [None, Some(""), Some("5"), Some("x"), Some("12345678901234567890")];
        let matches = values.map(|value| selector.matches(|name| if name == "k" { value } else { None }));
        assert_eq!(matches, expected, "{text}");
    }
    assert!(!LabelSelector::nothing().matches(|_| Some("x")));
    assert!(LabelSelector::nothing().is_nothing() && !LabelSelector::nothing().is_everything());
}

#[test]
fn a_selector_is_made_of_match_labels_and_match_expressions() {
    type Expressions<'a> = Vec<(&'a str, &'a str, Vec<&'a str>)>;
    let make = |labels: &[(&'static str, &'static str)], expressions: Expressions<'_>| {
        LabelSelector::from_parts(labels.iter().copied(), expressions).map(|selector| selector.to_string())
    };
    assert_eq!(make(&[], vec![]).as_deref(), Ok(""));
    let expressions = vec![("c", "In", vec!["2", "1"]), ("a", "DoesNotExist", vec![]), ("d", "Exists", vec![])];
    assert_eq!(make(&[("b", "x")], expressions).as_deref(), Ok("!a,b=x,c in (1,2),d"));
    for (wrong, says) in [
        (("a", "in", vec!["1"]), "unknown operator \"in\""),
        (("a", "In", vec![]), "at least one value"),
        (("a", "Exists", vec!["1"]), "wants no value, got 1"),
        (("a b", "Exists", vec![]), "invalid label name"),
    ] {
        let error = make(&[], vec![wrong]).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
    assert!(make(&[("a", "b c")], vec![]).is_err());
    assert!(Requirement::new("a", Operator::Equals, ["1", "2"]).is_err());
}

#[test]
fn field_selectors_parse_match_and_print() {
    // text | as it prints
    let rows = [
        ("", ""),
        ("a.b=c", "a.b=c"),
        ("a==b", "a=b"),
        ("b!=c,a=d", "a=d,b!=c"),
        (",a=b,", "a=b"),
        ("a=", "a="),
        (r"a=x\,y\=z\\", r"a=x\,y\=z\\"),
        ("a!b=c", "a!b=c"),
    ];
    for (text, prints) in rows {
        let selector: FieldSelector = text.parse().unwrap();
        assert_eq!(selector.to_string(), prints, "{text}");
        assert_eq!(prints.parse::<FieldSelector>().unwrap(), selector);
    }
    for wrong in ["a", "a,b=c", "a=b=c", r"a=\x", r"a=\", "a=b==c", r"a\=b=c"] {
        assert!(wrong.parse::<FieldSelector>().is_err(), "{wrong}");
    }
    let selector: FieldSelector = r"status.phase!=Done,metadata.name=a\,b".parse().unwrap();
    assert_eq!(selector.required_value("metadata.name"), Some("a,b"));
    assert_eq!(selector.required_value("status.phase"), None);
    let matches = |name: &str, phase: Option<&str>| {
        selector.matches(|field| if field == "metadata.name" { Some(name) } else { phase })
    };
    assert!(matches("a,b", None) && matches("a,b", Some("Running")));
    assert!(!matches("a,b", Some("Done")) && !matches("a", None));
    let absent: FieldSelector = "a=,b!=".parse().unwrap();
    assert!(!absent.matches(|_| None::<String>));
    assert!("a=".parse::<FieldSelector>().unwrap().matches(|_| None::<&str>));
}

/// Meets a requirement, told by the words of the API's documentation.
fn naive(requirement: &Requirement, labels: &BTreeMap<String, String>) -> bool {
    let has = labels.contains_key(requirement.name());
    let value = labels.get(requirement.name()).cloned().unwrap_or_default();
    let among = has && requirement.values().any(|other| other == value);
    let number = value.parse::<i64>();
    let bound = requirement.values().next().unwrap_or_default().parse::<i64>();
    match requirement.operator() {
        Operator::Equals | Operator::DoubleEquals | Operator::In => among,
        Operator::NotEquals | Operator::NotIn => !among,
        Operator::Exists => has,
        Operator::DoesNotExist => !has,
        Operator::GreaterThan => has && matches!((number, bound), (Ok(number), Ok(bound)) if number > bound),
        Operator::LessThan => has && matches!((number, bound), (Ok(number), Ok(bound)) if number < bound),
        other => unreachable!("{other:?}"),
    }
}

fn requirement() -> impl Strategy<Value = Requirement> {
    let name = "[a-c]";
    let value = "[a-b]?|[0-9]{1,3}";
    prop_oneof![
        (name, any::<bool>()).prop_map(|(name, not)| {
            let operator = if not { Operator::DoesNotExist } else { Operator::Exists };
            Requirement::new(&name, operator, [""; 0]).unwrap()
        }),
        (name, 0..3usize, value).prop_map(|(name, operator, value)| {
            let operator = [Operator::Equals, Operator::DoubleEquals, Operator::NotEquals][operator];
            Requirement::new(&name, operator, [value]).unwrap()
        }),
        // The empty value alone does not survive printing.
        (name, any::<bool>(), prop::collection::btree_set(value, 1..4)).prop_map(|(name, not, mut values)| {
            values.insert("x".into());
            Requirement::new(&name, if not { Operator::NotIn } else { Operator::In }, values).unwrap()
        }),
        (name, any::<bool>(), 0..1000u32).prop_map(|(name, less, bound)| {
            let operator = if less { Operator::LessThan } else { Operator::GreaterThan };
            Requirement::new(&name, operator, [bound.to_string()]).unwrap()
        }),
    ]
}

proptest! {
    #[test]
    fn a_printed_label_selector_parses_to_itself_and_matches_as_the_words_say(
        requirements in prop::collection::vec(requirement(), 0..5),
        labels in prop::collection::btree_map("[a-c]", "[a-b]?|[0-9]{1,3}", 0..4),
    ) {
        let selector = LabelSelector::of(requirements);
        prop_assert_eq!(&selector.to_string().parse::<LabelSelector>().unwrap(), &selector);
        let matches = selector.matches(|name| labels.get(name).map(String::as_str));
        prop_assert_eq!(matches, selector.requirements().iter().all(|requirement| naive(requirement, &labels)));
    }

    #[test]
    fn hostile_label_selectors_never_panic(text in "[a-c=!<>(), inot\\t/\u{e4}\u{1f600}-]{0,40}|.{0,40}") {
        if let Ok(selector) = text.parse::<LabelSelector>() {
            selector.matches(|_| Some("a"));
            let _ = selector.to_string();
        }
    }

    #[test]
    fn hostile_field_selectors_never_panic_and_print_what_parses(text in "[a-b=!,.\\\\\u{e4}]{0,30}|.{0,40}") {
        if let Ok(selector) = text.parse::<FieldSelector>() {
            selector.matches(|_| Some("a"));
            prop_assert_eq!(selector.to_string().parse::<FieldSelector>(), Ok(selector));
        }
    }
}

/// `[kind, text]` of a selector that is refused, `[kind, text, as it prints, matches]` of one that is taken, with an
/// `x` for each of the sets below that it matches. Recorded from `labels.Parse` and `fields.ParseSelector` of
/// apimachinery v0.37.2, over random texts.
const RECORDED: &str = include_str!("../../testdata/selectors.jsonl");

const SETS: [&[(&str, &str)]; 6] = [
    &[],
    &[("a", "b")],
    &[("a", "5"), ("b", "")],
    &[("a", "6"), ("b", "c"), ("in", "a")],
    &[("a", ""), ("c", "07"), ("x.y/z", "1")],
    &[("b", "a"), ("notin", "in")],
];

#[test]
fn random_texts_are_taken_refused_printed_and_matched_as_the_api_does() {
    let value =
        |set: &[(&str, &'static str)], name: &str| set.iter().find(|(other, _)| *other == name).map(|pair| pair.1);
    let mut rows = 0;
    for line in RECORDED.lines() {
        let row: Vec<String> = serde_json::from_str(line).unwrap();
        let (kind, text) = (row[0].as_str(), row[1].as_str());
        let ours = match kind {
            "label" => text
                .parse::<LabelSelector>()
                .ok()
                .map(|selector| (selector.to_string(), SETS.map(|set| selector.matches(|name| value(set, name))))),
            "field" => text
                .parse::<FieldSelector>()
                .ok()
                .map(|selector| (selector.to_string(), SETS.map(|set| selector.matches(|name| value(set, name))))),
            other => panic!("unknown kind {other}"),
        };
        let matches = |matches: [bool; 6]| matches.map(|matches| if matches { 'x' } else { '-' }).iter().collect();
        let ours: Vec<String> = ours.map(|(prints, all)| vec![prints, matches(all)]).unwrap_or_default();
        assert_eq!(ours, row[2..], "{line}");
        rows += 1;
    }
    assert_eq!(rows, 520);
}

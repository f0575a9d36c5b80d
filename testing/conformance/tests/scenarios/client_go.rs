//! client-go's scenarios: `scenarios/*.txt`, `SCENARIOS.md`.

use crate::list::{List, Proof, Section};

fn list() -> List {
    let sections = [
        ("3.1 Work queue", 1..=20),
        ("3.2 Delaying queue", 21..=33),
        ("3.3 Rate limiting queue and limiters", 34..=54),
        ("3.4 flowcontrol, wait", 55..=68),
        ("3.5 Pager", 69..=78),
        ("3.6 DeltaFIFO", 79..=107),
        ("3.7 RealFIFO and batches", 108..=130),
        ("3.8 Reflector, list/watch mode", 131..=169),
        ("3.9 Reflector, streaming list", 170..=188),
        ("3.10 Processing and single-handler informer", 189..=201),
        ("3.11 Shared informer", 202..=240),
        ("3.12 Store, index, keys, caches", 241..=265),
        ("3.13 synctrack", 266..=270),
        ("3.14 tools/watch", 271..=285),
        ("3.15 Leader election", 286..=308),
        ("3.16 Events", 309..=323),
        ("3.17 Gates", 324..=324),
    ];
    List {
        folder: "scenarios",
        table: "SCENARIOS.md",
        heading: "client-go's scenarios and our tests",
        source: "The numbers are those of the list of scenarios that was drawn from client-go's own tests and behaviour.",
        sections: sections.into_iter().map(|(title, numbers)| Section::numbered(title, "", numbers)).collect(),
        label: |reason| match reason {
            "Go type system" => Some(GO_TYPES),
            "gate no longer exists" => Some(GATE),
            _ if reason.strip_prefix("later issue: ").is_some_and(|which| !which.is_empty()) => Some(LATER),
            _ => None,
        },
        labels: &[GO_TYPES, GATE, LATER],
    }
}

const GO_TYPES: &str = "do not arise: the Go type system";
const GATE: &str = "do not arise: a feature gate that no longer exists";
const LATER: &str = "belong to a later issue";

#[test]
fn sections_cover_all_numbers_in_order() {
    let keys: Vec<_> = list().sections.into_iter().flat_map(|section| section.keys).collect();
    assert_eq!(keys, (1..=324).map(|number| number.to_string()).collect::<Vec<_>>());
}

#[test]
fn every_scenario_has_a_test_that_exists_or_one_of_the_three_reasons() {
    let (mut problems, open) = (list().problems(), list().open());
    if !open.is_empty() {
        problems.push(format!("{} scenarios have no line: {open:?}", open.len()));
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn the_table_says_what_the_files_say() {
    list().check_table();
}

#[test]
fn lines_are_read_strictly() {
    let parse = |line: &str| list().parse(line);
    let test = Proof::Test("a/b.rs".to_owned(), "does_it".to_owned());
    assert_eq!(parse("7 | a/b.rs::tests::does_it").unwrap(), (vec!["7".to_owned()], test));
    let (keys, reason) = parse("286-308 | - | later issue: 4 of 4").unwrap();
    assert_eq!((keys.len(), reason), (23, Proof::Reason("later issue: 4 of 4".to_owned())));
    for wrong in ["7", "x | a.rs::b", "0 | a.rs::b", "325 | a.rs::b", "9-7 | a.rs::b", "7 | a.rs", "7 | - | no time"] {
        assert!(parse(wrong).is_err(), "{wrong}");
    }
}

//! `BUGS.md`: every entry has its place, and every test that it names exists.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The entries of the bug log.
const ENTRIES: [&str; 38] = [
    "B01", "B04", "B06", "B07", "B08", "B09", "B10", "B11", "B14", "B15", "B19", "B21", "B22", "B25", "B26", "B27",
    "B28", "B29", "B30", "B31", "B32", "B33", "B34", "B36", "B37", "B38", "B39", "B40", "B41", "B42", "B43", "B44",
    "B45", "B46", "B47", "B48", "B49", "B50",
];

fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The rows of the table by entry: entry | what | state | tests.
fn rows(text: &str) -> BTreeMap<&str, Vec<&str>> {
    let rows = text.lines().filter(|line| line.starts_with("| B"));
    rows.map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        (cells[0], cells)
    })
    .collect()
}

/// What stands between backticks and names a test: `file.rs::name`.
fn tests(cell: &str) -> impl Iterator<Item = (&str, &str)> {
    cell.split('`').skip(1).step_by(2).filter_map(|code| code.split_once("::"))
}

/// The text of a file of this binary, or of one from the project's root on.
fn source(file: &str) -> String {
    let here = package().join("tests/bugs").join(file);
    let path = if here.exists() { here } else { package().join("../..").join(file) };
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file}: {error}"))
}

fn is_a_test(text: &str, name: &str) -> bool {
    [format!("fn {name}("), format!("fn {name}<")].iter().any(|head| text.contains(head))
}

#[test]
fn every_entry_has_a_row_with_tests_that_exist_or_says_when_it_is_due() {
    let text = std::fs::read_to_string(package().join("BUGS.md")).expect("BUGS.md");
    let rows = rows(&text);
    let known: BTreeSet<&str> = ENTRIES.into_iter().collect();
    assert_eq!(rows.keys().copied().collect::<BTreeSet<_>>(), known);
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (entry, cells) in &rows {
        let [_, _, state, named] = cells[..] else { panic!("{entry}: four cells") };
        *counts.entry(state.split(':').next().unwrap_or_default()).or_default() += 1;
        let mut named_tests = 0;
        for (file, name) in tests(named) {
            assert!(is_a_test(&source(file), name), "{entry}: no test {name} in {file}");
            named_tests += 1;
        }
        match state.split(':').next().unwrap_or_default() {
            "tested" | "tested in part" => assert!(named_tests > 0, "{entry} names no test"),
            "due" => assert_eq!(named_tests, 0, "{entry} is due, and has tests"),
            other => panic!("{entry}: {other:?} is no state"),
        }
    }
    for (state, count) in counts {
        let line = format!("| {count} | {state}");
        assert!(text.contains(&line), "the counts at the top lack {line:?}");
    }
}

#[test]
fn every_fault_has_a_test_over_a_socket_and_all_that_it_names_exist() {
    let text = std::fs::read_to_string(package().join("BUGS.md")).expect("BUGS.md");
    let (_, faults) = text.split_once("# Faults").expect("the second section");
    let mut count = 0;
    for row in faults.lines().filter(|line| line.starts_with("| ") && line.contains('`')) {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [fault, over_socket, other] = cells[..] else { panic!("{row}: three cells") };
        assert!(tests(over_socket).count() > 0, "{fault} has no test over a socket");
        for (file, name) in tests(over_socket).chain(tests(other)) {
            assert!(is_a_test(&source(file), name), "{fault}: no test {name} in {file}");
        }
        for (file, name) in tests(over_socket) {
            let opens = ["Socket::listen", "TcpListener::bind", "pour("].iter().any(|call| source(file).contains(call));
            assert!(opens, "{fault}: {file} opens no socket for {name}");
        }
        count += 1;
    }
    assert!(count >= 25, "{count} faults");
}

#[test]
fn every_test_that_the_page_on_reliability_names_exists() {
    let text = std::fs::read_to_string(package().join("../../docs/reliability.md")).expect("docs/reliability.md");
    let promises = text.lines().filter(|line| line.starts_with("| ") && line.contains("::"));
    let mut count = 0;
    for (file, name) in promises.flat_map(tests) {
        let file = file.strip_prefix("wire/").unwrap_or(file);
        assert!(is_a_test(&source(file), name), "docs/reliability.md: no test {name} in {file}");
        count += 1;
    }
    assert!(count >= 40, "{count} tests");
}

#[test]
fn every_test_of_this_binary_stands_in_the_table() {
    let text = std::fs::read_to_string(package().join("BUGS.md")).expect("BUGS.md");
    for file in std::fs::read_dir(package().join("tests/bugs")).expect("this folder") {
        let path = file.expect("an entry").path();
        let file = path.file_name().expect("a name").to_string_lossy().into_owned();
        if !path.is_file() || ["main.rs", "table.rs"].contains(&file.as_str()) {
            continue;
        }
        let source = std::fs::read_to_string(&path).expect("text");
        let behind_attributes =
            source.split("test").filter(|rest| rest.starts_with(']') || rest.starts_with("(")).filter_map(|rest| {
                let rest = rest.split_once("fn ")?.1;
                rest.split_once('(').map(|(name, _)| name)
            });
        for name in behind_attributes {
            assert!(text.contains(&format!("`{file}::{name}`")), "BUGS.md does not name `{file}::{name}`");
        }
    }
}

//! The table of client-go's scenarios: which test shows each, or why none does.
//!
//! Each crate's authors keep a file under `scenarios/`, one line a scenario and test:
//!
//! ```text
//! NUMBER | crate/path.rs::test_name
//! NUMBER | - | reason
//! FIRST-LAST | - | reason
//! ```
//!
//! `SCENARIOS.md` is made from them: `UPDATE=1 cargo test -p kubewire-conformance --test scenarios`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// The sections of the list of scenarios, and their numbers.
const SECTIONS: &[(&str, RangeInclusive<u32>)] = &[
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

/// What stands for a scenario.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Entry {
    /// The file from the project's root on, and the test's name.
    Test(String, String),
    Reason(String),
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Clone, Copy)]
enum Kind {
    Tested,
    GoTypeSystem,
    GateGone,
    LaterIssue,
}

fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// All lines of all files, and what is wrong with the lines that cannot be read.
fn entries() -> (BTreeMap<u32, BTreeSet<Entry>>, Vec<String>) {
    let (mut entries, mut problems) = (BTreeMap::<u32, BTreeSet<Entry>>::new(), Vec::new());
    let folder = package().join("scenarios");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("the folder").map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "txt"));
    files.sort();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("text");
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match parse(line) {
                Ok((numbers, entry)) => {
                    for number in numbers {
                        entries.entry(number).or_default().insert(entry.clone());
                    }
                }
                Err(problem) => problems.push(format!("{}:{}: {problem}: {line}", file.display(), index + 1)),
            }
        }
    }
    (entries, problems)
}

fn parse(line: &str) -> Result<(RangeInclusive<u32>, Entry), String> {
    let mut fields = line.split('|').map(str::trim);
    let numbers = fields.next().unwrap_or_default();
    let number = |text: &str| text.trim().parse::<u32>().map_err(|_| format!("{text:?} is no number"));
    let numbers = match numbers.split_once('-') {
        Some((first, last)) => number(first)?..=number(last)?,
        None => number(numbers)?..=number(numbers)?,
    };
    if numbers.is_empty() || *numbers.start() < 1 || *numbers.end() > 324 {
        return Err("the scenarios are 1 to 324".to_owned());
    }
    match (fields.next(), fields.next(), fields.next()) {
        (Some("-"), Some(reason), None) if kind_of(reason).is_some() => Ok((numbers, Entry::Reason(reason.to_owned()))),
        (Some("-"), _, _) => {
            Err("a reason is `Go type system`, `gate no longer exists` or `later issue: WHICH`".to_owned())
        }
        (Some(test), None, None) => {
            let (file, name) = test.split_once("::").ok_or("no `FILE::TEST`")?;
            let name = name.rsplit("::").next().unwrap_or(name);
            Ok((numbers, Entry::Test(file.to_owned(), name.to_owned())))
        }
        _ => Err("neither `NUMBER | FILE::TEST` nor `NUMBER | - | REASON`".to_owned()),
    }
}

fn kind_of(reason: &str) -> Option<Kind> {
    match reason {
        "Go type system" => Some(Kind::GoTypeSystem),
        "gate no longer exists" => Some(Kind::GateGone),
        _ if reason.strip_prefix("later issue: ").is_some_and(|which| !which.is_empty()) => Some(Kind::LaterIssue),
        _ => None,
    }
}

/// A scenario with a test counts as tested, also where a part of it has a reason.
fn kind(entries: &BTreeSet<Entry>) -> Option<Kind> {
    entries
        .iter()
        .filter_map(|entry| match entry {
            Entry::Test(..) => Some(Kind::Tested),
            Entry::Reason(reason) => kind_of(reason),
        })
        .min()
}

fn table(entries: &BTreeMap<u32, BTreeSet<Entry>>) -> String {
    let none = BTreeSet::new();
    let of = |number: u32| entries.get(&number).unwrap_or(&none);
    let count = |wanted| (1..=324).filter(|&number| kind(of(number)) == wanted).count();
    let mut text = String::from("# client-go's scenarios and our tests\n\n");
    text.push_str(
        "Made from the files in `scenarios/`: `UPDATE=1 cargo test -p kubewire-conformance --test scenarios`.\n",
    );
    text.push_str(
        "The numbers are those of the list of scenarios that was drawn from client-go's own tests and behaviour.\n\n",
    );
    text.push_str("| of 324 | |\n|---|---|\n");
    for (label, kind) in [
        ("have a test", Some(Kind::Tested)),
        ("do not arise: the Go type system", Some(Kind::GoTypeSystem)),
        ("do not arise: a feature gate that no longer exists", Some(Kind::GateGone)),
        ("belong to a later issue", Some(Kind::LaterIssue)),
        ("are open", None),
    ] {
        if kind.is_some() || count(kind) > 0 {
            writeln!(text, "| {} | {label} |", count(kind)).expect("a string takes all");
        }
    }
    for (section, numbers) in SECTIONS {
        writeln!(text, "\n## {section} ({}-{})\n\n| | test, or reason |\n|---|---|", numbers.start(), numbers.end())
            .expect("a string takes all");
        for number in numbers.clone() {
            let cells: Vec<String> = of(number)
                .iter()
                .map(|entry| match entry {
                    Entry::Test(file, name) => format!("`{file}` `{name}`"),
                    Entry::Reason(reason) => reason.clone(),
                })
                .collect();
            let cell = if cells.is_empty() { "open".to_owned() } else { cells.join("<br>") };
            writeln!(text, "| {number} | {cell} |").expect("a string takes all");
        }
    }
    text
}

#[test]
fn sections_cover_all_numbers_in_order() {
    let numbers: Vec<u32> = SECTIONS.iter().flat_map(|(_, numbers)| numbers.clone()).collect();
    assert_eq!(numbers, (1..=324).collect::<Vec<_>>());
}

#[test]
fn every_scenario_has_a_test_that_exists_or_one_of_the_three_reasons() {
    let (entries, mut problems) = entries();
    let open: Vec<u32> = (1..=324).filter(|number| !entries.contains_key(number)).collect();
    if !open.is_empty() {
        problems.push(format!("{} scenarios have no line: {open:?}", open.len()));
    }
    let root = package().join("../..");
    let mut files: BTreeMap<&str, String> = BTreeMap::new();
    for (number, entry) in entries.iter().flat_map(|(number, entries)| entries.iter().map(move |entry| (number, entry)))
    {
        let Entry::Test(file, name) = entry else { continue };
        let text = files.entry(file).or_insert_with(|| std::fs::read_to_string(root.join(file)).unwrap_or_default());
        if !is_test(text, name) {
            problems.push(format!("scenario {number}: there is no test `fn {name}` in {file}"));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

/// Whether a file has a test of this name: a function with a test's attribute among those right before it.
fn is_test(text: &str, name: &str) -> bool {
    text.match_indices(&format!("fn {name}(")).any(|(at, _)| {
        let head = text[..at].rsplit("\n\n").next().unwrap_or_default();
        head.contains("#[test]") || head.contains("#[tokio::test")
    })
}

#[test]
fn the_table_says_what_the_files_say() {
    let file = package().join("SCENARIOS.md");
    let wanted = table(&entries().0);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&file, &wanted).expect("the table can be written");
    }
    let text = std::fs::read_to_string(&file).unwrap_or_default();
    assert!(
        text == wanted,
        "SCENARIOS.md is not what scenarios/*.txt say; run UPDATE=1 cargo test -p kubewire-conformance --test scenarios"
    );
}

#[test]
fn lines_are_read_strictly() {
    let test = |file: &str, name: &str| Entry::Test(file.to_owned(), name.to_owned());
    assert_eq!(parse("7 | a/b.rs::tests::does_it").unwrap(), (7..=7, test("a/b.rs", "does_it")));
    let reason = Entry::Reason("later issue: 4 of 4".to_owned());
    assert_eq!(parse("286-308 | - | later issue: 4 of 4").unwrap(), (286..=308, reason));
    for wrong in ["7", "x | a.rs::b", "0 | a.rs::b", "325 | a.rs::b", "9-7 | a.rs::b", "7 | a.rs", "7 | - | no time"] {
        assert!(parse(wrong).is_err(), "{wrong}");
    }
}

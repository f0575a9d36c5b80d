//! A list of entries in sections, the lines that tell of them, and the table that is made from these.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// A title, and the keys of its entries.
pub(crate) struct Section {
    pub(crate) title: String,
    pub(crate) keys: Vec<String>,
}

impl Section {
    /// Entries that are numbered, with a word before each number if it is not empty.
    pub(crate) fn numbered(title: &str, word: &str, numbers: RangeInclusive<u32>) -> Self {
        let title = format!("{title} ({}-{})", numbers.start(), numbers.end());
        Self { title, keys: numbers.map(|number| format!("{word}{number}")).collect() }
    }
}

/// One list.
pub(crate) struct List {
    /// The folder of the lines, and the file of the table.
    pub(crate) folder: &'static str,
    pub(crate) table: &'static str,
    pub(crate) heading: &'static str,
    pub(crate) source: &'static str,
    pub(crate) sections: Vec<Section>,
    /// What the table counts a reason as; nothing where it is not accepted.
    pub(crate) label: fn(&str) -> Option<&'static str>,
    /// What `label` gives, in the order of the table.
    pub(crate) labels: &'static [&'static str],
}

/// What stands for an entry.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Proof {
    /// The file from the project's root on, and the test's name.
    Test(String, String),
    Reason(String),
}

/// The proofs of each key.
pub(crate) type Proofs = BTreeMap<String, BTreeSet<Proof>>;

const TESTED: &str = "have a test";

fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

impl List {
    fn keys(&self) -> impl Iterator<Item = &String> {
        self.sections.iter().flat_map(|section| &section.keys)
    }

    /// All lines of all files, and what is wrong with the lines that cannot be read.
    pub(crate) fn proofs(&self) -> (Proofs, Vec<String>) {
        let (mut proofs, mut problems) = (Proofs::new(), Vec::new());
        let folder = package().join(self.folder);
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
                match self.parse(line) {
                    Ok((keys, proof)) => {
                        for key in keys {
                            proofs.entry(key).or_default().insert(proof.clone());
                        }
                    }
                    Err(problem) => problems.push(format!("{}:{}: {problem}: {line}", file.display(), index + 1)),
                }
            }
        }
        (proofs, problems)
    }

    pub(crate) fn parse(&self, line: &str) -> Result<(Vec<String>, Proof), String> {
        let mut fields = line.split('|').map(str::trim);
        let keys = range(fields.next().unwrap_or_default());
        if keys.is_empty() {
            return Err("the range is empty".to_owned());
        }
        if let Some(unknown) = keys.iter().find(|&key| self.keys().all(|known| known != key)) {
            return Err(format!("there is no entry {unknown:?}"));
        }
        match (fields.next(), fields.next(), fields.next()) {
            (Some("-"), Some(reason), None) if (self.label)(reason).is_some() => {
                Ok((keys, Proof::Reason(reason.to_owned())))
            }
            (Some("-"), _, _) => Err("this reason is not accepted".to_owned()),
            (Some(test), None, None) => {
                let (file, name) = test.split_once("::").ok_or("no `FILE::TEST`")?;
                let name = name.rsplit("::").next().unwrap_or(name);
                Ok((keys, Proof::Test(file.to_owned(), name.to_owned())))
            }
            _ => Err("neither `ENTRY | FILE::TEST` nor `ENTRY | - | REASON`".to_owned()),
        }
    }

    /// What is wrong with the lines: unreadable ones, and tests that do not exist.
    pub(crate) fn problems(&self) -> Vec<String> {
        let (proofs, mut problems) = self.proofs();
        let root = package().join("../..");
        let mut files: BTreeMap<&str, String> = BTreeMap::new();
        for (key, proof) in proofs.iter().flat_map(|(key, proofs)| proofs.iter().map(move |proof| (key, proof))) {
            let Proof::Test(file, name) = proof else { continue };
            let text =
                files.entry(file).or_insert_with(|| std::fs::read_to_string(root.join(file)).unwrap_or_default());
            if !is_test(text, name) {
                problems.push(format!("{key}: there is no test `fn {name}` in {file}"));
            }
        }
        problems
    }

    /// The entries that no line tells of.
    pub(crate) fn open(&self) -> Vec<String> {
        let (proofs, _) = self.proofs();
        self.keys().filter(|key| !proofs.contains_key(*key)).cloned().collect()
    }

    /// What an entry counts as; one with a test counts as tested, also where a part of it has a reason.
    fn label_of(&self, proofs: &BTreeSet<Proof>) -> &'static str {
        proofs
            .iter()
            .map(|proof| match proof {
                Proof::Test(..) => TESTED,
                Proof::Reason(reason) => (self.label)(reason).unwrap_or_default(),
            })
            .min_by_key(|label| self.labels.iter().position(|known| known == label).map_or(0, |place| place + 1))
            .unwrap_or("are open")
    }

    fn table(&self) -> String {
        let (proofs, _) = self.proofs();
        let none = BTreeSet::new();
        let of = |key: &String| proofs.get(key).unwrap_or(&none);
        let mut text = format!(
            "# {}\n\nMade from the files in `{}/`: `UPDATE=1 cargo test -p kubewire-conformance --test scenarios`.\n{}\n\n| of {} | |\n|---|---|\n",
            self.heading,
            self.folder,
            self.source,
            self.keys().count()
        );
        for label in [TESTED].iter().chain(self.labels).chain(&["are open"]) {
            let count = self.keys().filter(|key| self.label_of(of(key)) == *label).count();
            if count > 0 {
                writeln!(text, "| {count} | {label} |").expect("a string takes all");
            }
        }
        for section in &self.sections {
            writeln!(text, "\n## {}\n\n| | test, or reason |\n|---|---|", section.title).expect("a string takes all");
            for key in &section.keys {
                let cells: Vec<String> = of(key)
                    .iter()
                    .map(|proof| match proof {
                        Proof::Test(file, name) => format!("`{file}` `{name}`"),
                        Proof::Reason(reason) => reason.clone(),
                    })
                    .collect();
                let cell = if cells.is_empty() { "open".to_owned() } else { cells.join("<br>") };
                writeln!(text, "| {key} | {cell} |").expect("a string takes all");
            }
        }
        text
    }

    /// Fails where the table is not what the lines say; with `UPDATE` in the environment it is made anew.
    pub(crate) fn check_table(&self) {
        let file = package().join(self.table);
        let wanted = self.table();
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&file, &wanted).expect("the table can be written");
        }
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(
            text == wanted,
            "{} is not what {}/*.txt say; run UPDATE=1 cargo test -p kubewire-conformance --test scenarios",
            self.table,
            self.folder
        );
    }
}

/// The keys that a field names: `7`, `7-9`, `row 7`, `row 7-9` or a word.
fn range(field: &str) -> Vec<String> {
    let (word, numbers) = match field.rsplit_once(' ') {
        Some((word, numbers)) => (format!("{word} "), numbers),
        None => (String::new(), field),
    };
    let ends = numbers
        .split_once('-')
        .and_then(|(first, last)| Some(first.trim().parse::<u32>().ok()?..=last.trim().parse::<u32>().ok()?));
    match ends {
        Some(numbers) => numbers.map(|number| format!("{word}{number}")).collect(),
        None => vec![field.to_owned()],
    }
}

/// Whether a file has a test of this name: a function with a test's attribute among those right before it.
fn is_test(text: &str, name: &str) -> bool {
    text.match_indices(&format!("fn {name}(")).any(|(at, _)| {
        let head = text[..at].rsplit("\n\n").next().unwrap_or_default();
        head.contains("#[test]") || head.contains("#[tokio::test")
    })
}

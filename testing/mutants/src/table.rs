//! The table for people.

use std::fmt::Write;
use std::fs;
use std::io;
use std::path::Path;

use crate::Mutant;

const BEGIN: &str = "<!-- the table begins; written by `cargo run -p kubewire-mutants -- --table` -->\n";
const END: &str = "<!-- the table ends -->\n";

/// Each mutant, what it would do and the test that catches it, by file.
pub fn table(mutants: &[Mutant]) -> String {
    let mut files: Vec<&str> = mutants.iter().map(|mutant| mutant.file.as_str()).collect();
    files.sort_unstable();
    files.dedup();
    let mut text = format!("{} mutants in {} files.\n", mutants.len(), files.len());
    for file in files {
        _ = write!(text, "\n### {file}\n\n| Mutant | What it would do | Caught by |\n|---|---|---|\n");
        for mutant in mutants.iter().filter(|mutant| mutant.file == file) {
            let Mutant { name, harm, package, target, test, .. } = mutant;
            let package = package.strip_prefix("kubewire-").unwrap_or(package);
            _ = writeln!(text, "| {name} | {harm} | {package}, {target}: `{test}` |");
        }
    }
    text
}

/// README.md with the table of these mutants.
///
/// # Errors
/// It cannot be read, or has lost the marks around the table.
pub fn rewrite(root: &Path, mutants: &[Mutant]) -> io::Result<String> {
    let readme = fs::read_to_string(root.join("testing/mutants/README.md"))?;
    let parts = readme.split_once(BEGIN).and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    let (before, after) = parts.ok_or_else(|| io::Error::other("README.md has no marks for the table"))?;
    Ok(format!("{before}{BEGIN}\n{}\n{END}{after}", table(mutants)))
}

//! The list for people.

use std::fmt::Write;

use crate::Mutant;

/// The file that it stands in, from the root of the workspace.
pub const TABLE: &str = "testing/mutants/MUTANTS.md";

/// The text of [`TABLE`]: each mutant, what it would do and the test that catches it, by file.
pub fn table(mutants: &[Mutant]) -> String {
    let mut files: Vec<&str> = mutants.iter().map(|mutant| mutant.file.as_str()).collect();
    files.sort_unstable();
    files.dedup();
    let mut text = String::from(
        "# The mutants\n\nMade of [`mutants.toml`](mutants.toml) by `cargo run -p kubewire-mutants -- --table`; what they are for, and how they \
         are run, says the [README](README.md).\n",
    );
    _ = write!(text, "\n{} mutants in {} files.\n", mutants.len(), files.len());
    for file in files {
        _ = write!(text, "\n## {file}\n\n| Mutant | What it would do | Caught by |\n|---|---|---|\n");
        for mutant in mutants.iter().filter(|mutant| mutant.file == file) {
            let Mutant { name, harm, package, target, test, .. } = mutant;
            let package = package.strip_prefix("kubewire-").unwrap_or(package);
            _ = writeln!(text, "| {name} | {harm} | {package}, {target}: `{test}` |");
        }
    }
    text
}

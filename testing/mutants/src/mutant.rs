//! One bug of the list.

use std::fs;
use std::io;
use std::path::Path;

use serde::Deserialize;

/// A small bug, and the test that catches it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mutant {
    /// What it is called; unique.
    pub name: String,
    /// The file that it changes, from the root of the workspace.
    pub file: String,
    /// The text that it takes away; occurs once in the file.
    pub old: String,
    /// The text that it puts there.
    pub new: String,
    /// The package whose test catches it.
    pub package: String,
    /// Where that test is: `lib`, or the name of an integration test.
    pub target: String,
    /// The path of that test within its target.
    pub test: String,
    /// The `--cfg` with which the test is built: `loom` or `shuttle`, for a model. None for other tests.
    pub cfg: Option<String>,
    /// What the bug would do to a user.
    pub harm: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    mutant: Vec<Mutant>,
}

/// Reads the list.
///
/// # Errors
/// It cannot be read, or is no list of mutants.
pub fn load(root: &Path) -> io::Result<Vec<Mutant>> {
    let text = fs::read_to_string(root.join("testing/mutants/mutants.toml"))?;
    let list: List = toml::from_str(&text).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    Ok(list.mutant)
}

impl Mutant {
    /// The file with the bug in it, or why it does not apply.
    ///
    /// # Errors
    /// The file cannot be read, or its text holds `old` not at all or several times.
    pub fn apply(&self, root: &Path) -> Result<String, String> {
        let text = fs::read_to_string(root.join(&self.file)).map_err(|error| format!("{}: {error}", self.file))?;
        match text.matches(&self.old).count() {
            1 => Ok(text.replacen(&self.old, &self.new, 1)),
            count => Err(format!("the old text occurs {count} times in {}, and must occur once", self.file)),
        }
    }

    /// What is wrong with it, as far as can be seen without a build.
    pub fn problems(&self, root: &Path) -> Vec<String> {
        let mut problems = Vec::new();
        problems.extend(self.apply(root).err());
        if self.old == self.new {
            problems.push("it changes nothing".to_owned());
        }
        if self.harm.trim().is_empty() {
            problems.push("it does not say what it would do to a user".to_owned());
        }
        let function = format!("fn {}(", self.test.rsplit("::").next().unwrap_or_default());
        match self.test_files(root) {
            Ok(files) if files.iter().any(|file| file.contains(&function)) => {}
            Ok(_) => problems.push(format!("there is no test {} in {} ({})", self.test, self.package, self.target)),
            Err(error) => problems.push(format!("the folder of {} cannot be read: {error}", self.package)),
        }
        problems
    }

    /// The folder of the package that the test is in.
    pub(crate) fn package_folder(&self) -> String {
        let name = self.package.strip_prefix("kubewire-").unwrap_or(&self.package);
        match name {
            "apiserver" | "conformance" => format!("testing/{name}"),
            "leaderelection" | "events" | "controller" | "http-server" | "webhook" => format!("runtime/{name}"),
            _ => name.to_owned(),
        }
    }

    /// The targets of the package that have tests: `lib`, and the names of its integration tests.
    pub(crate) fn targets(&self, root: &Path) -> io::Result<Vec<String>> {
        let mut targets = vec!["lib".to_owned()];
        let folder = root.join(self.package_folder()).join("tests");
        if folder.exists() {
            for entry in fs::read_dir(folder)? {
                let path = entry?.path();
                targets.extend(path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned));
            }
        }
        Ok(targets)
    }

    /// The texts of the files in which the test may stand.
    fn test_files(&self, root: &Path) -> io::Result<Vec<String>> {
        let folder = root.join(self.package_folder());
        let mut files = Vec::new();
        if self.target == "lib" {
            read_all(&folder.join("src"), &mut files)?;
        } else {
            let single = folder.join(format!("tests/{}.rs", self.target));
            match single.exists() {
                true => files.push(fs::read_to_string(single)?),
                false => read_all(&folder.join("tests").join(&self.target), &mut files)?,
            }
        }
        Ok(files)
    }
}

fn read_all(folder: &Path, files: &mut Vec<String>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            read_all(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(fs::read_to_string(path)?);
        }
    }
    Ok(())
}

//! The copy of the workspace that mutants are tried in.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::iter;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::Mutant;
use crate::test_run::{Outcome, run};

/// What came of a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Tests failed with it.
    Caught(Catch),
    /// Tests did not end in time with it.
    Hangs(Catch),
    /// No test noticed it.
    Survived,
    /// The old text is not there, or not once; why.
    DoesNotApply(String),
    /// What the compiler said.
    DoesNotBuild(String),
    /// The test that it names is not there.
    NoSuchTest,
}

/// The tests that noticed a mutant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Catch {
    /// Where they are: `lib`, or the name of an integration test.
    pub target: String,
    /// Their paths; none where the program broke down before it could name one.
    pub tests: Vec<String>,
}

impl Verdict {
    /// Whether a test noticed it.
    pub fn is_caught(&self) -> bool {
        matches!(self, Self::Caught(_) | Self::Hangs(_))
    }
}

/// A copy of the workspace in the target folder.
///
/// It has a target folder of its own: cargo tells two copies of one package in one folder apart by the times of their
/// files alone, and would take a build with a bug in it for one without.
#[derive(Debug)]
pub struct Scratch {
    copy: PathBuf,
    target: PathBuf,
    limit: Duration,
}

impl Scratch {
    /// Brings the copy up to date with the workspace at `root`, which is not read any more then: it may be worked on. A
    /// test program may run for `limit` before it counts as hanging.
    ///
    /// # Errors
    /// A file cannot be read or written.
    pub fn new(root: &Path, limit: Duration) -> io::Result<Self> {
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
        let own = target.join("mutants");
        let (copy, target) = (own.join("workspace"), own.join("target"));
        mirror(root, &copy)?;
        Ok(Self { copy, target, limit })
    }

    /// Puts the mutant into the copy, builds its test, runs it and takes it out. `find`: all tests of its target, and if
    /// none notices it, those of the other targets of the package, up to the first that does.
    ///
    /// # Errors
    /// A file cannot be read or written, or a program not be run.
    pub fn trial(&self, mutant: &Mutant, find: bool) -> io::Result<Verdict> {
        let mutated = match mutant.apply(&self.copy) {
            Ok(text) => text,
            Err(why) => return Ok(Verdict::DoesNotApply(why)),
        };
        let file = self.copy.join(&mutant.file);
        let original = fs::read_to_string(&file)?;
        fs::write(&file, mutated)?;
        let verdict = if find { self.find(mutant) } else { self.judge(mutant, &mutant.target, Some(&mutant.test)) };
        fs::write(&file, original)?;
        verdict
    }

    fn find(&self, mutant: &Mutant) -> io::Result<Verdict> {
        let others = mutant.targets(&self.copy)?.into_iter().filter(|target| *target != mutant.target);
        for target in iter::once(mutant.target.clone()).chain(others) {
            match self.judge(mutant, &target, None)? {
                Verdict::Survived | Verdict::NoSuchTest => {}
                verdict => return Ok(verdict),
            }
        }
        Ok(Verdict::Survived)
    }

    fn judge(&self, mutant: &Mutant, target: &str, test: Option<&str>) -> io::Result<Verdict> {
        let binary = match self.build(mutant, target)? {
            Ok(binary) => binary,
            Err(said) => return Ok(Verdict::DoesNotBuild(said)),
        };
        let catch = |tests| Catch { target: target.to_owned(), tests };
        Ok(match run(&binary, &self.copy.join(mutant.package_folder()), test, self.limit)? {
            Outcome::Passed(0) => Verdict::NoSuchTest,
            Outcome::Passed(_) => Verdict::Survived,
            Outcome::Failed(tests) => Verdict::Caught(catch(tests)),
            Outcome::Hangs(tests) => Verdict::Hangs(catch(tests)),
        })
    }

    /// The test program, or what the compiler said.
    fn build(&self, mutant: &Mutant, target: &str) -> io::Result<Result<PathBuf, String>> {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.current_dir(&self.copy).env("CARGO_TARGET_DIR", &self.target).env("CARGO_TERM_COLOR", "never");
        // Only the crate with the bug is built again.
        cargo.env("CARGO_INCREMENTAL", "1");
        // Set for the runner by the cargo that started it, and wrong for the copy.
        cargo.env_remove("CARGO_MANIFEST_DIR").env_remove("CARGO_MANIFEST_PATH");
        cargo.args(["test", "--offline", "--no-run", "-p", &mutant.package]);
        match target {
            "lib" => cargo.arg("--lib"),
            target => cargo.args(["--test", target]),
        };
        if let Some(cfg) = &mutant.cfg {
            // Other flags are other dependencies: in a folder of their own, so that the rest is not built again.
            cargo.env("RUSTFLAGS", format!("--cfg {cfg}")).env("CARGO_TARGET_DIR", self.target.join(cfg));
            // loom tries all orders there are.
            cargo.args((cfg == "loom").then_some("--release"));
        }
        let output = cargo.output()?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if !output.status.success() {
            return Ok(Err(said));
        }
        // `  Executable unittests src/lib.rs (/…/deps/kubewire_informer-0123456789abcdef)`
        let binary = said.lines().rev().find_map(|line| {
            let line = line.trim().strip_prefix("Executable ")?.strip_suffix(')')?;
            Some(PathBuf::from(line.rsplit_once('(')?.1))
        });
        binary.map(|binary| Ok(self.copy.join(binary))).ok_or_else(|| io::Error::other("cargo names no test program"))
    }
}

/// Makes `to` hold what `from` holds. What is the same is not written, so that cargo builds nothing anew.
fn mirror(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    let mut names = BTreeSet::new();
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (name, kind) = (entry.file_name(), entry.file_type()?);
        if matches!(name.to_str(), Some("target" | ".git")) || kind.is_symlink() {
            continue;
        }
        let copy = to.join(&name);
        if kind.is_dir() {
            mirror(&entry.path(), &copy)?;
        } else {
            let content = fs::read(entry.path())?;
            if fs::read(&copy).ok().as_ref() != Some(&content) {
                fs::write(&copy, content)?;
            }
        }
        names.insert(name);
    }
    for entry in fs::read_dir(to)? {
        let entry = entry?;
        if !names.contains(&entry.file_name()) {
            match entry.file_type()?.is_dir() {
                true => fs::remove_dir_all(entry.path())?,
                false => fs::remove_file(entry.path())?,
            }
        }
    }
    Ok(())
}

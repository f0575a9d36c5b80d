//! Runs cases one by one, each on a thread of its own, and reports.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::Once;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use crate::{Case, Failure, Outcome, load};

/// What replays a case of one area: [`replay`](crate::replay) of its type.
pub type Replay = fn(&Case) -> Outcome;

/// What knows the areas, and replays all cases of a folder.
#[derive(Debug)]
pub struct Runner {
    areas: BTreeMap<&'static str, Replay>,
    /// The wall-clock time after which a case is given up. It never decides an answer: time inside a case is
    /// virtual.
    limit: Duration,
}

/// The counts of one area.
#[derive(Debug, Default)]
struct Counts {
    passed: usize,
    differ: usize,
    skipped: usize,
    failed: usize,
}

/// What the command line asks for, as far as test binaries share their arguments.
#[derive(Debug, Default)]
struct Args {
    filters: Vec<String>,
    skip: Vec<String>,
    exact: bool,
    list: bool,
    ignored: bool,
}

impl Runner {
    /// Of these areas, by the name that the cases have in `area`.
    pub fn new(areas: impl IntoIterator<Item = (&'static str, Replay)>) -> Self {
        Self { areas: areas.into_iter().collect(), limit: Duration::from_secs(120) }
    }

    /// With another limit of wall-clock time to a case.
    #[must_use]
    pub fn limit(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// Replays the cases under `folder` that the arguments of a test binary ask for, reports to `out`, and
    /// says whether none failed.
    pub fn run(&self, folder: &Path, args: impl IntoIterator<Item = String>, out: &mut impl Write) -> bool {
        self.try_run(folder, &Args::parse(args), out).unwrap_or_else(|problem| {
            // Nothing is left to be done if the report cannot be written either.
            let _ = writeln!(out, "{problem}\n\n0 passed, 1 failed");
            false
        })
    }

    fn try_run(&self, folder: &Path, args: &Args, out: &mut impl Write) -> Result<bool, String> {
        let report = |error: std::io::Error| format!("the report cannot be written: {error}");
        let cases = load(folder)?;
        if cases.is_empty() {
            return Err(format!("no trace in {}: set KUBEWIRE_TRACES to a folder that has some", folder.display()));
        }
        let mut areas: BTreeMap<String, Counts> = BTreeMap::new();
        for case in &cases {
            let name = case.as_ref().map_or_else(|unreadable| unreadable.file.as_str(), |case| case.file.as_str());
            if !args.want(name) {
                continue;
            }
            if args.list {
                writeln!(out, "{name}: test").map_err(report)?;
                continue;
            }
            let (area, outcome) = match case {
                Ok(case) => (case.area.as_str(), self.run_case(case)),
                Err(unreadable) => ("unreadable", Outcome::Failed(Failure::before(unreadable.problem.as_str()))),
            };
            let counts = areas.entry(area.to_owned()).or_default();
            counts.count(&outcome);
            tell(name, &outcome, out).map_err(report)?;
        }
        if args.list {
            return Ok(true);
        }
        for (area, counts) in &areas {
            write!(out, "{area}: {} passed, {} differ, {} skipped", counts.passed, counts.differ, counts.skipped)
                .map_err(report)?;
            if counts.failed > 0 {
                write!(out, ", {} failed", counts.failed).map_err(report)?;
            }
            writeln!(out).map_err(report)?;
        }
        let passed: usize = areas.values().map(|counts| counts.passed + counts.differ).sum();
        let failed: usize = areas.values().map(|counts| counts.failed).sum();
        writeln!(out, "\n{passed} passed, {failed} failed").map_err(report)?;
        out.flush().map_err(report)?;
        Ok(failed == 0)
    }

    /// Runs one case on a thread of its own, so that a panic or an endless loop is the case's alone. A thread
    /// that does not come back is left behind.
    fn run_case(&self, case: &Case) -> Outcome {
        let Some(&replay) = self.areas.get(case.area.as_str()) else {
            let known: Vec<&str> = self.areas.keys().copied().collect();
            let problem = format!("unknown area {:?}; there are {}", case.area, known.join(", "));
            return Outcome::Failed(Failure::before(problem));
        };
        catch_panics_of_cases();
        let (sender, receiver) = mpsc::channel();
        let thread = std::thread::Builder::new().name(case.file.clone()).spawn({
            let case = case.clone();
            move || {
                IN_CASE.set(true);
                let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| replay(&case)));
                let panicked = PANICS.take();
                // The receiver is gone if the case took too long: it has been given up.
                let _ = sender.send(match (outcome, panicked.is_empty()) {
                    (Ok(outcome), true) => outcome,
                    (Ok(Outcome::Failed(failure)), false) => Outcome::Failed(Failure {
                        problem: format!("{} (and panicked: {})", failure.problem, panicked.join("; ")),
                        ..failure
                    }),
                    _ => Outcome::Failed(Failure::before(format!("panicked: {}", panicked.join("; ")))),
                });
            }
        });
        if let Err(error) = thread {
            return Outcome::Failed(Failure::before(format!("no thread for the case: {error}")));
        }
        match receiver.recv_timeout(self.limit) {
            Ok(outcome) => outcome,
            Err(RecvTimeoutError::Timeout) => Outcome::Failed(Failure::before(format!(
                "still running after {:?}: it never comes to rest",
                self.limit
            ))),
            Err(RecvTimeoutError::Disconnected) => {
                Outcome::Failed(Failure::before("the case's thread ended without an answer"))
            }
        }
    }
}

thread_local! {
    /// Whether this thread runs a case.
    static IN_CASE: Cell<bool> = const { Cell::new(false) };
    /// The panics on this thread, also those that somebody caught.
    static PANICS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// From now on panics on the threads of cases are kept for the report in place of being printed. Tasks of a
/// case run on its thread, so a panic that a task's owner swallows is seen too.
fn catch_panics_of_cases() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if IN_CASE.get() {
                PANICS.with_borrow_mut(|panics| panics.push(info.to_string().replace('\n', " ")));
            } else {
                before(info);
            }
        }));
    });
}

impl Counts {
    fn count(&mut self, outcome: &Outcome) {
        *match outcome {
            Outcome::Passed => &mut self.passed,
            Outcome::Differs(_) => &mut self.differ,
            Outcome::Skipped(_) => &mut self.skipped,
            Outcome::Failed(_) => &mut self.failed,
        } += 1;
    }
}

fn tell(name: &str, outcome: &Outcome, out: &mut impl Write) -> std::io::Result<()> {
    match outcome {
        Outcome::Passed => Ok(()),
        Outcome::Skipped(reason) => writeln!(out, "SKIPPED {name}: {reason}"),
        Outcome::Failed(failure) => writeln!(out, "FAILED {name}: {failure}"),
        Outcome::Differs(differences) => differences.iter().try_for_each(|difference| {
            writeln!(out, "DIFFERS {name}, step {}: {}", difference.step, difference.reason)
        }),
    }
}

impl Args {
    /// Options that only other harnesses know are passed over, so that one set of arguments serves all.
    fn parse(args: impl IntoIterator<Item = String>) -> Self {
        let mut parsed = Self::default();
        let mut args = args.into_iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--list" => parsed.list = true,
                "--exact" => parsed.exact = true,
                "--ignored" => parsed.ignored = true,
                "--skip" => parsed.skip.extend(args.next()),
                "--test-threads" | "--format" | "--color" | "--logfile" | "-Z" => drop(args.next()),
                option if option.starts_with('-') => {}
                _ => parsed.filters.push(arg),
            }
        }
        parsed
    }

    fn want(&self, name: &str) -> bool {
        let fits = |filter: &String| if self.exact { name == filter } else { name.contains(filter.as_str()) };
        !self.ignored && (self.filters.is_empty() || self.filters.iter().any(fits)) && !self.skip.iter().any(fits)
    }
}

#[cfg(test)]
mod tests;

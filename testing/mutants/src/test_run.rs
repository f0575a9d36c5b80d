//! One run of a test program.

use std::fs::File;
use std::io;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How it ended.
pub(crate) enum Outcome {
    /// With so many tests passed, and none failed.
    Passed(usize),
    /// These failed; none where the program itself broke down.
    Failed(Vec<String>),
    /// None failed, but it did not end within the limit: for these, as far as they say so themselves. It was ended.
    Hangs(Vec<String>),
}

/// Runs a test program: one test, or all.
pub(crate) fn run(binary: &Path, folder: &Path, test: Option<&str>, limit: Duration) -> io::Result<Outcome> {
    // Into a file: a pipe that nobody reads would hold the program up.
    let output = binary.with_extension("output");
    let mut command = Command::new(binary);
    command.current_dir(folder).env("CARGO_MANIFEST_DIR", folder);
    command.stdin(Stdio::null()).stdout(File::create(&output)?).stderr(Stdio::null());
    // That a random test fails is enough to know.
    command.env("PROPTEST_MAX_SHRINK_ITERS", "0");
    if let Some(test) = test {
        command.args(["--exact", test]);
    }
    let status = wait(command, limit)?;
    let said = String::from_utf8_lossy(&std::fs::read(&output)?).into_owned();
    let with_end = |end: &str| -> Vec<String> {
        said.lines().filter_map(|line| Some(line.strip_prefix("test ")?.strip_suffix(end)?.to_owned())).collect()
    };
    let failed = with_end(" ... FAILED");
    Ok(match status {
        None if failed.is_empty() => Outcome::Hangs(with_end(" has been running for over 60 seconds")),
        Some(status) if status.success() => Outcome::Passed(with_end(" ... ok").len()),
        _ => Outcome::Failed(failed),
    })
}

fn wait(mut command: Command, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let mut child = command.spawn()?;
    let end = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if Instant::now() >= end {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

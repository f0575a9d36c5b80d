//! A program that runs beside the tests.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process_group};

use crate::tail::Tail;
use crate::watchdog::Watchdog;

/// A running program with its process group, which is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    group: Pid,
    /// The last it wrote. Nothing is called under its lock.
    tail: Arc<Mutex<Tail>>,
    watchdog: Arc<Watchdog>,
    /// Its end was seen: its number may be another's by now.
    ended: Option<ExitStatus>,
}

/// So many lines are shown of what a program wrote last.
const LINES_SHOWN: usize = 20;
/// How often is looked whether it has ended.
const LOOK: Duration = Duration::from_millis(20);
/// What a kill cannot end in this time waits for a broken disk.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);

impl Process {
    /// Starts it. `attached` shows what it writes on the standard error, too.
    pub(crate) fn start(
        program: &Path,
        arguments: &[String],
        attached: bool,
        watchdog: &Arc<Watchdog>,
    ) -> io::Result<Self> {
        let mut command = Command::new(program);
        command.args(arguments).process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn()?;
        let group = Pid::from_child(&child);
        let tail = Arc::new(Mutex::new(Tail::default()));
        let outputs: [Option<Box<dyn Read + Send>>; 2] = [
            child.stdout.take().map(|output| Box::new(output) as _),
            child.stderr.take().map(|output| Box::new(output) as _),
        ];
        let this = Self { child, group, tail, watchdog: Arc::clone(watchdog), ended: None };
        // From here on a failure drops what was started.
        this.watchdog.begin(this.id())?;
        for output in outputs.into_iter().flatten() {
            let tail = Arc::clone(&this.tail);
            thread::Builder::new().name("envtest output".to_owned()).spawn(move || read(output, &tail, attached))?;
        }
        Ok(this)
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// The last lines of its output.
    pub(crate) fn output(&self) -> String {
        self.tail.lock().lines(LINES_SHOWN)
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> Option<ExitStatus> {
        if self.ended.is_none()
            && let Ok(Some(status)) = self.child.try_wait()
        {
            self.ended = Some(status);
            self.watchdog.end(self.child.id());
        }
        self.ended
    }

    /// Sends a signal to its group, unless it has ended.
    pub(crate) fn signal(&mut self, signal: Signal) -> io::Result<()> {
        match self.ended() {
            Some(status) => Err(io::Error::other(format!("it has ended: {status}"))),
            None => Ok(kill_process_group(self.group, signal)?),
        }
    }

    /// Kills it, and waits until it is gone, which takes milliseconds.
    pub(crate) fn kill(&mut self) {
        // Also what it started itself; and where it has ended alone, there is nobody.
        let _ = self.signal(Signal::KILL);
        let begun = Instant::now();
        while self.ended().is_none() && begun.elapsed() < KILL_TIMEOUT {
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Asks it to end, and kills it when the time is over. True where it ended by itself.
    ///
    /// Cancel-safe: it goes on running, or ends.
    pub(crate) async fn terminate(&mut self, timeout: Duration) -> bool {
        let _ = self.signal(Signal::TERM);
        let begun = Instant::now();
        while begun.elapsed() < timeout {
            if self.ended().is_some() {
                return true;
            }
            tokio::time::sleep(LOOK).await;
        }
        self.kill();
        false
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Reads until the program, and whatever it started, is gone.
fn read(mut output: Box<dyn Read + Send>, tail: &Mutex<Tail>, attached: bool) {
    let mut buffer = [0; 8192];
    loop {
        match output.read(&mut buffer) {
            Ok(0) => return,
            Ok(count) => {
                tail.lock().push(&buffer[..count]);
                if attached {
                    eprint!("{}", String::from_utf8_lossy(&buffer[..count]));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, directory: &Path) -> Process {
        let watchdog = Arc::new(Watchdog::start(directory).unwrap());
        let arguments = ["-c".to_owned(), script.to_owned()];
        Process::start(Path::new("/bin/sh"), &arguments, false, &watchdog).unwrap()
    }

    /// Waits for what another process does; only its end is asserted.
    fn until(mut holds: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !holds() {
            assert!(begun.elapsed() < Duration::from_secs(30), "it never happens");
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn is_alive(pid: &str) -> bool {
        std::fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z "))
    }

    #[test]
    fn what_a_program_says_last_is_kept_with_how_it_ended() {
        let mut process = shell("echo one; echo two >&2; exit 3", Path::new("/nonexistent"));
        until(|| process.ended().is_some());
        assert_eq!(process.ended().unwrap().code(), Some(3));
        until(|| process.output().contains("one") && process.output().contains("two"));
        assert!(process.signal(Signal::TERM).unwrap_err().to_string().contains("exit status: 3"));
    }

    #[test]
    fn a_dropped_program_is_gone_with_what_it_started() {
        let process = shell("sleep 1000 & echo $!; wait", Path::new("/nonexistent"));
        until(|| process.output().lines().next().is_some_and(|line| !line.is_empty()));
        let (own, grandchild) = (process.id().to_string(), process.output().trim().to_owned());
        assert!(is_alive(&own) && is_alive(&grandchild));
        drop(process);
        assert!(!is_alive(&own));
        until(|| !is_alive(&grandchild));
    }

    #[tokio::test]
    async fn a_program_that_is_asked_to_end_may_do_so_and_one_that_will_not_is_killed() {
        let mut polite =
            shell("trap 'exit 0' TERM; echo ready; while :; do sleep 0.01; done", Path::new("/nonexistent"));
        until(|| polite.output() == "ready");
        assert!(polite.terminate(Duration::from_secs(30)).await);
        assert_eq!(polite.ended().unwrap().code(), Some(0));

        let mut deaf = shell("trap '' TERM; echo ready; while :; do sleep 0.01; done", Path::new("/nonexistent"));
        until(|| deaf.output() == "ready");
        assert!(!deaf.terminate(Duration::from_millis(50)).await);
        assert_eq!(deaf.ended().unwrap().code(), None);
    }

    #[test]
    fn when_the_test_process_is_killed_its_programs_and_its_directory_go_too() {
        // The watchdog's input is all that it knows of this process: closing it is what a kill does.
        let directory = tempfile::tempdir().unwrap().keep();
        std::fs::write(directory.join("file"), "x").unwrap();
        let mut process = shell("echo ready; sleep 1000", &directory);
        until(|| process.output() == "ready");
        let pid = process.id().to_string();
        let watchdog = Arc::clone(&process.watchdog);
        watchdog.close();
        until(|| process.ended().is_some());
        assert!(!is_alive(&pid));
        until(|| !directory.exists());
    }

    #[test]
    fn the_watchdog_leaves_alone_what_has_ended_and_does_nothing_when_all_went_well() {
        let directory = tempfile::tempdir().unwrap();
        let mut process = shell("exit 0", directory.path());
        until(|| process.ended().is_some());
        drop(process);
        assert!(directory.path().exists());
    }
}

//! What ends the programs when the test process is gone.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use parking_lot::Mutex;

/// A shell that waits for its input to end. That ends when this process does, in whatever way: by `process::exit` with the
/// [`TestEnv`](crate::TestEnv) in a static, by an abort, by SIGKILL. Then it kills the process groups it was told of, and
/// removes the directory. Where all goes well it is told to do nothing.
///
/// A death signal of the kernel's would need unsafe code, and comes already when the thread that started the program ends.
/// A program that is being started in the very moment when the process is killed is missed.
#[derive(Debug)]
pub(crate) struct Watchdog {
    child: Child,
    /// Lines of a few bytes are written under its lock, which a pipe takes at once.
    input: Mutex<Option<ChildStdin>>,
}

/// It is in a process group of its own, where a Ctrl-C at the terminal does not reach it, and holds no output, for which whoever
/// started the tests may wait.
const SCRIPT: &str = r#"
trap '' HUP INT TERM
groups=
while read -r word group; do
  case $word in
    begin) groups="$groups $group" ;;
    end)
      rest=
      for one in $groups; do [ "$one" = "$group" ] || rest="$rest $one"; done
      groups=$rest ;;
    bye) exit 0 ;;
  esac
done
for one in $groups; do kill -KILL "-$one"; done
for _ in 1 2 3 4 5; do
  rm -rf -- "$1" && break
  sleep 0.2
done
"#;

impl Watchdog {
    /// It starts at once. `directory` is what it removes.
    pub(crate) fn start(directory: &Path) -> io::Result<Self> {
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT, "watchdog"]).arg(directory).current_dir("/").process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let input = child.stdin.take().ok_or_else(|| io::Error::other("a shell without an input"))?;
        Ok(Self { child, input: Mutex::new(Some(input)) })
    }

    /// This process group is to be killed.
    pub(crate) fn begin(&self, group: u32) -> io::Result<()> {
        self.say(format_args!("begin {group}"))
    }

    /// This one has ended: its number may come back for another.
    pub(crate) fn end(&self, group: u32) {
        // Where the shell is gone, there is nobody to kill it.
        let _ = self.say(format_args!("end {group}"));
    }

    fn say(&self, line: std::fmt::Arguments<'_>) -> io::Result<()> {
        match &mut *self.input.lock() {
            Some(input) => writeln!(input, "{line}"),
            None => Ok(()),
        }
    }

    /// As the death of this process does.
    #[cfg(test)]
    pub(crate) fn close(&self) {
        let input = self.input.lock().take();
        drop(input);
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        let _ = self.say(format_args!("bye"));
        // It ends at once.
        let _ = self.child.wait();
    }
}

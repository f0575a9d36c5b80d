//! What is logged on this thread, as lines.

use std::io::{self, Write};
use std::sync::{Arc, Once};

use parking_lot::Mutex;
use tracing::Level;
use tracing::subscriber::DefaultGuard;
use tracing_subscriber::fmt::MakeWriter;

/// Gathers what this thread logs, at level info and above, until it is dropped.
pub(crate) struct LogLines {
    text: Text,
    _guard: DefaultGuard,
}

#[derive(Clone, Default)]
struct Text(Arc<Mutex<Vec<u8>>>);

impl LogLines {
    pub(crate) fn gather() -> Self {
        // A place in the code that another test reaches first while nobody listens counts as of no interest to anybody
        // until it is asked again. With one who always listens there is no such moment.
        static LISTENER: Once = Once::new();
        LISTENER.call_once(|| {
            let _ = tracing_subscriber::fmt().with_writer(io::sink).with_max_level(Level::INFO).try_init();
        });
        let text = Text::default();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(text.clone())
            .with_max_level(Level::INFO)
            .without_time()
            .with_ansi(false)
            .finish();
        Self { text, _guard: tracing::subscriber::set_default(subscriber) }
    }

    /// All lines so far that have this text.
    pub(crate) fn with(&self, part: &str) -> Vec<String> {
        let bytes = self.text.0.lock().clone();
        let text = String::from_utf8(bytes).unwrap();
        text.lines().filter(|line| line.contains(part)).map(str::to_owned).collect()
    }

    pub(crate) fn len(&self) -> usize {
        self.with("").len()
    }
}

impl Write for Text {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Text {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// The number behind `name=` in a line.
pub(crate) fn field(line: &str, name: &str) -> u64 {
    let (_, rest) = line.split_once(&format!("{name}=")).unwrap_or_else(|| panic!("no {name} in {line}"));
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
    digits.parse().unwrap_or_else(|_| panic!("{name} of {line}"))
}

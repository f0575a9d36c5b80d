//! Zips the objects of one list-watch, once it has learned how.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, OnceLock, Weak};
use std::thread::{self, JoinHandle};

use parking_lot::Mutex;

use super::first_objects::{Arrival, FirstObjects};
use super::frame::{Dictionary, FrameError};
use super::stored::Stored;

/// Longer objects are zipped at once, without a dictionary, which helps short ones; nor is one learned from them.
pub(crate) const DICTIONARY_HELPS_LEN: usize = 64 << 10;

/// One for all objects of a list-watch, and held by each of them: so it goes with the last.
#[derive(Debug)]
pub(crate) struct Zipper {
    /// Set once, when learning has ended; to `None` where that failed.
    dictionary: OnceLock<Option<Dictionary>>,
    /// Guards who waits for the dictionary. It is set under this lock, so that nobody begins to wait then.
    first: Mutex<FirstObjects<Weak<Stored>>>,
    /// The thread that learns, or did so.
    learning: Mutex<Option<JoinHandle<()>>>,
}

impl Zipper {
    pub(crate) fn new() -> Self {
        Self { dictionary: OnceLock::new(), first: Mutex::new(FirstObjects::new()), learning: Mutex::new(None) }
    }

    /// Whether objects of this length can be zipped by now.
    pub(crate) fn is_ready_for(&self, len: usize) -> bool {
        len > DICTIONARY_HELPS_LEN || self.dictionary.get().is_some()
    }

    /// What objects of this length are zipped with. Does not change once they can be.
    pub(crate) fn dictionary_for(&self, len: usize) -> Option<&Dictionary> {
        self.dictionary.get()?.as_ref().filter(|_| len <= DICTIONARY_HELPS_LEN)
    }

    /// Has an object of this length zipped as soon as there is a dictionary. Cost: a lock; for the one object that makes
    /// them enough, a thread.
    pub(crate) fn add(self: &Arc<Self>, stored: &Arc<Stored>, len: usize) {
        let arrival = self.first.lock().add(Arc::downgrade(stored), len, |stored| stored.strong_count() > 0);
        match arrival {
            Arrival::Waits => {}
            Arrival::TooLate => stored.zip(),
            Arrival::Learn(samples) => self.begin(samples),
        }
    }

    /// Begins to learn, on a thread of its own: it takes about a fifth of a second, which no task may wait for.
    fn begin(self: &Arc<Self>, samples: Vec<Weak<Stored>>) {
        let zipper = Arc::clone(self);
        match thread::Builder::new().name("kubewire-zip".to_owned()).spawn(move || zipper.learn(&samples)) {
            Ok(thread) => *self.learning.lock() = Some(thread),
            Err(error) => {
                tracing::warn!(%error, "no thread to learn a dictionary: objects are zipped without one");
                self.end(None);
            }
        }
    }

    fn learn(&self, samples: &[Weak<Stored>]) {
        /// Many list-watches that begin at once do not take all cores.
        static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
        let learned = {
            let _alone = ONE_AT_A_TIME.lock();
            catch_unwind(AssertUnwindSafe(|| dictionary_of(samples)))
        };
        let dictionary = match learned {
            Ok(Ok(dictionary)) => Some(dictionary),
            Ok(Err(error)) => {
                tracing::warn!(%error, "no dictionary could be learned: objects are zipped without one");
                None
            }
            Err(_) => {
                tracing::error!("learning a dictionary panicked: objects are zipped without one");
                None
            }
        };
        self.end(dictionary).iter().filter_map(Weak::upgrade).for_each(|stored| stored.zip());
    }

    /// Learning has ended. Gives those that wait.
    fn end(&self, dictionary: Option<Dictionary>) -> Vec<Weak<Stored>> {
        let mut first = self.first.lock();
        let _ = self.dictionary.set(dictionary);
        first.finish()
    }

    /// Waits until nothing is learned, and all that waited is zipped. Not to be called on a task.
    pub(crate) fn settle(&self) {
        let learning = self.learning.lock().take();
        // A thread that ended by a panic has ended.
        let _ = learning.map(JoinHandle::join);
    }
}

fn dictionary_of(samples: &[Weak<Stored>]) -> Result<Dictionary, FrameError> {
    let (mut bytes, mut lens) = (Vec::new(), Vec::with_capacity(samples.len()));
    for stored in samples.iter().filter_map(Weak::upgrade) {
        // None of them is zipped yet.
        let object = stored.unzip()?;
        bytes.extend_from_slice(object.bytes());
        lens.push(object.bytes().len());
    }
    Dictionary::train(&bytes, &lens)
}

//! Who acts when: attempts to reconcile, beside the terms of those who make them.
//!
//! An attempt begins in a term of its replica and never when another replica has one under way, and it has ended at the
//! very moment at which its term ends. Time is virtual, so a moment is exact.

use std::collections::BTreeMap;
use std::sync::Arc;

use kubewire_leaderelection::{Leadership, Term};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::digest::Digest;

/// Clones are the same one.
#[derive(Clone)]
pub(crate) struct Ledger {
    digest: Digest,
    book: Arc<Mutex<Book>>,
}

/// Guarded by `Ledger::book`.
#[derive(Default)]
struct Book {
    next: u64,
    /// The runs of which attempts are under way.
    under_way: BTreeMap<u64, Run>,
    /// The last term, and whose it was.
    last: Option<(i32, Run)>,
    handovers: u64,
    problems: Vec<String>,
}

/// One run of a manager, such as `1.3`: the third of replica 1.
pub(crate) type Run = Arc<str>;

impl Ledger {
    pub(crate) fn new(digest: &Digest) -> Self {
        Self { digest: digest.clone(), book: Arc::default() }
    }

    /// An attempt begins; it ends when this is dropped.
    pub(crate) fn begin(&self, run: &Run, leadership: &Leadership, key: &str) -> Attempt {
        let term = leadership.term();
        let transitions = term.as_ref().map(Term::transitions);
        self.digest.note(|| format!("{run} reconciles {key} in term {transitions:?}"));
        let number = self.book.lock().begin(run, transitions);
        Attempt { number, key: key.to_owned(), run: run.clone(), term, overdue: Instant::now(), ledger: self.clone() }
    }

    /// How many attempts there were.
    pub(crate) fn attempts(&self) -> u64 {
        self.book.lock().next
    }

    /// How often one replica's run acted after another one's.
    pub(crate) fn handovers(&self) -> u64 {
        self.book.lock().handovers
    }

    /// # Panics
    ///
    /// Where something was not as it should be.
    pub(crate) fn check(&self) {
        let book = self.book.lock();
        assert!(book.problems.is_empty(), "{:#?}", book.problems);
    }
}

impl Book {
    fn begin(&mut self, run: &Run, transitions: Option<i32>) -> u64 {
        self.next += 1;
        if let Some(other) = self.under_way.values().find(|other| *other != run) {
            self.problems.push(format!("{run} acts while {other} does"));
        }
        self.under_way.insert(self.next, run.clone());
        if let Some(transitions) = transitions {
            match self.last.replace((transitions, run.clone())) {
                Some((last, other)) if last > transitions || (last == transitions && other != *run) => {
                    self.problems.push(format!("{run} acts in term {transitions}, after {other} in {last}"));
                }
                Some((_, other)) => self.handovers += u64::from(other != *run),
                None => {}
            }
        }
        self.next
    }
}

/// An attempt that is under way.
pub(crate) struct Attempt {
    number: u64,
    key: String,
    run: Run,
    /// `None` where it has begun at the moment at which a term ended: then it must end at this moment too.
    term: Option<Term>,
    /// Beyond this moment it may be under way only if the term is valid. Moves as long as it is.
    overdue: Instant,
    ledger: Ledger,
}

impl Attempt {
    /// The number of the term in which it acts.
    pub(crate) fn term(&self) -> Option<i32> {
        self.term.as_ref().map(Term::transitions)
    }

    /// Looks whether it may be under way; runs beside it for as long as it is.
    pub(crate) async fn stay_within_term(&mut self) -> std::convert::Infallible {
        if let Some(term) = &self.term {
            term.ended().await;
        }
        self.overdue = Instant::now();
        self.term = None;
        std::future::pending().await
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let late = match &self.term {
            // Nobody has told it of the end of its term: then that is at this moment at the earliest.
            Some(_) => std::time::Duration::ZERO,
            None => self.overdue.elapsed(),
        };
        let mut book = self.ledger.book.lock();
        book.under_way.remove(&self.number);
        if !late.is_zero() {
            book.problems.push(format!("{} was at {} for {late:?} after its term", self.run, self.key));
        }
        drop(book);
        self.ledger.digest.note(|| format!("{} ends with {}", self.run, self.key));
    }
}

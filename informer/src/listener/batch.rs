//! PURE. Notifications that came together.

use std::sync::Arc;

use crate::notification::Told;

/// Notifications that came together and wait for one handler.
#[derive(Debug)]
pub(crate) enum Batch<O> {
    /// For this handler alone: all of them.
    Own(std::vec::IntoIter<Told<O>>),
    /// For several handlers, which share them.
    Shared {
        told: Arc<Vec<Told<O>>>,
        /// The next to give out.
        next: usize,
        /// Whether those of unchanged objects are for this handler too.
        due: bool,
    },
}

/// How many there are.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) all: usize,
    /// Additions of an initial list.
    pub(crate) initial: usize,
    /// Of unchanged objects.
    pub(crate) resyncs: usize,
}

impl<O> Batch<O> {
    pub(crate) fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        let mut count = |told: &Told<O>| {
            counts.all += 1;
            counts.initial += usize::from(told.notification.is_initial());
            counts.resyncs += usize::from(told.resync);
        };
        match self {
            Self::Own(told) => told.as_slice().iter().for_each(count),
            Self::Shared { told, next, due } => {
                told[*next..].iter().filter(|told| *due || !told.resync).for_each(&mut count);
            }
        }
        counts
    }

    /// Whether none is left.
    pub(crate) fn is_done(&self) -> bool {
        match self {
            Self::Own(told) => told.as_slice().is_empty(),
            Self::Shared { told, next, due } => told[*next..].iter().all(|told| !*due && told.resync),
        }
    }
}

impl<O: Clone> Iterator for Batch<O> {
    type Item = Told<O>;

    fn next(&mut self) -> Option<Told<O>> {
        match self {
            Self::Own(told) => told.next(),
            Self::Shared { told, next, due } => loop {
                let one = told.get(*next)?;
                *next += 1;
                if *due || !one.resync {
                    return Some(one.clone());
                }
            },
        }
    }
}

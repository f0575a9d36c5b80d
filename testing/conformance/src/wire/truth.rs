//! PURE: what is really there, and everything that has happened since the last list.

use std::collections::BTreeMap;

use super::object::{Thing, event_line};

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Happened {
    Added,
    Modified,
    Deleted,
}

impl Happened {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

/// The objects and the events. Something at or below the newest version is a repeat, and changes nothing: so lies
/// that a script tells stay lies.
#[derive(Debug, Default)]
pub(crate) struct Truth {
    objects: BTreeMap<(String, String), Thing>,
    events: Vec<(u64, Happened, Thing)>,
    newest: u64,
    /// Watches that begin before this version are too old.
    oldest: u64,
    /// The pages of a list that is not complete yet, and its version.
    pages: (Vec<Thing>, u64),
}

impl Truth {
    pub(crate) fn event(&mut self, happened: Happened, thing: &Thing) {
        let version = thing.number();
        if version <= self.newest {
            return;
        }
        self.newest = version;
        match happened {
            Happened::Deleted => _ = self.objects.remove(&thing.key()),
            Happened::Added | Happened::Modified => _ = self.objects.insert(thing.key(), thing.clone()),
        }
        self.events.push((version, happened, thing.clone()));
    }

    /// A bookmark says that nothing came up to this version.
    pub(crate) fn reached(&mut self, version: u64) {
        self.newest = self.newest.max(version);
    }

    /// A page of a list was sent. The whole list is the truth where it is newer; what was before is forgotten.
    pub(crate) fn page(&mut self, things: &[Thing], version: u64, continued: bool, last: bool) {
        if !continued {
            self.pages = (Vec::new(), version);
        }
        self.pages.0.extend_from_slice(things);
        if last {
            let (things, version) = std::mem::take(&mut self.pages);
            if version > self.newest {
                self.reset_to(things, version);
            }
        }
    }

    /// From now on this is the truth, whatever was before: a restore from a backup, perhaps.
    pub(crate) fn reset_to(&mut self, things: Vec<Thing>, version: u64) {
        self.objects.clear();
        for thing in things {
            self.objects.insert(thing.key(), thing);
        }
        self.events.clear();
        (self.newest, self.oldest) = (version, version);
    }

    /// Events up to the newest version are forgotten.
    pub(crate) fn compact(&mut self) {
        self.events.clear();
        self.oldest = self.newest;
    }

    pub(crate) fn is_too_old(&self, version: u64) -> bool {
        version < self.oldest
    }

    pub(crate) fn newest(&self) -> u64 {
        self.newest
    }

    /// The lines of a watch with everything after a version.
    pub(crate) fn lines_after(&self, version: u64) -> Vec<u8> {
        let after = self.events.iter().filter(|(event, ..)| *event > version);
        after.flat_map(|(_, happened, thing)| event_line(happened.as_str(), &thing.json())).collect()
    }

    pub(crate) fn things(&self) -> impl Iterator<Item = &Thing> {
        self.objects.values()
    }
}

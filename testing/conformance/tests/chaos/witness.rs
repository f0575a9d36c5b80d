//! Handlers that check what they are told, and remember what it comes to.

use std::collections::BTreeMap;
use std::sync::Arc;

use kubewire_indexer::{Deleted, Object, ObjectKey};
use kubewire_informer::{Buffering, Notification, ResourceEventHandler};
use parking_lot::Mutex;

use crate::dice::Dice;
use crate::digest::Digest;
use crate::faults::GHOST_STATE;
use crate::scope::{Contents, state};

/// What one handler was told. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Witness {
    name: Arc<str>,
    /// Whether deletes of what was never told are right.
    in_order: bool,
    /// Whether it is told of each state, and so knows the last one.
    all: bool,
    digest: Digest,
    testimony: Arc<Mutex<Testimony>>,
}

/// Guarded by `Witness::testimony`.
#[derive(Default)]
struct Testimony {
    present: Contents,
    told: u64,
    tombstones: u64,
    /// How often each state was told as something new.
    news: BTreeMap<String, usize>,
    problems: Vec<String>,
}

impl Witness {
    pub(crate) fn new(name: &str, in_order: bool, buffering: Buffering, digest: &Digest) -> Self {
        let all = buffering == Buffering::Unbounded;
        Self { name: name.into(), in_order, all, digest: digest.clone(), testimony: Arc::default() }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn told(&self) -> u64 {
        self.testimony.lock().told
    }

    pub(crate) fn tombstones(&self) -> u64 {
        self.testimony.lock().tombstones
    }

    /// Everything was told in order, and comes to this.
    pub(crate) fn check(&self, contents: &Contents, restores: usize) {
        self.check_order(restores);
        assert_eq!(self.testimony.lock().present, *contents, "{}", self.name);
    }

    /// As [`check`](Self::check), of a handler that was removed and so knows only its own time. A state may be news again
    /// after each restore of the server.
    pub(crate) fn check_order(&self, restores: usize) {
        let testimony = self.testimony.lock();
        assert!(testimony.problems.is_empty(), "{}: {:#?}", self.name, testimony.problems);
        // A list may say that the ghost is there, the next that it is not, and another one that it is: each time it is news.
        let is_real = |state: &str| state != GHOST_STATE;
        let again: Vec<_> =
            testimony.news.iter().filter(|(state, times)| is_real(state) && **times > 1 + restores).collect();
        assert!(again.is_empty(), "{} was told more than once: {again:?}", self.name);
    }

    /// Notes what is told, and whether it follows on what was told before.
    pub(crate) fn note<O: Object>(&self, notification: &Notification<O>) {
        let key = notification.key();
        let mut testimony = self.testimony.lock();
        testimony.told += 1;
        let before = testimony.present.get(&key).cloned();
        let (what, problem) = match notification {
            Notification::Added { object, .. } => testimony.added(&key, before, state(object)),
            Notification::Updated { old, new } => testimony.updated(&key, before, &state(old), state(new)),
            Notification::Deleted(deleted) => testimony.deleted(&key, before, deleted, self),
            _ => (String::new(), Some("a notification of a kind that nobody knows".to_owned())),
        };
        testimony.problems.extend(problem.map(|problem| format!("{key}: {what}: {problem}")));
        drop(testimony);
        self.digest.note(|| format!("{} {key} {what}", self.name));
    }
}

type Noted = (String, Option<String>);

impl Testimony {
    fn added(&mut self, key: &ObjectKey, before: Option<String>, new: String) -> Noted {
        *self.news.entry(new.clone()).or_default() += 1;
        self.present.insert(key.clone(), new.clone());
        (format!("added {new}"), before.map(|before| format!("it was there, as {before}")))
    }

    fn updated(&mut self, key: &ObjectKey, before: Option<String>, old: &str, new: String) -> Noted {
        // What has not changed is told again by resyncs and new lists.
        if old != new {
            *self.news.entry(new.clone()).or_default() += 1;
        }
        self.present.insert(key.clone(), new.clone());
        let problem = (before.as_deref() != Some(old)).then(|| format!("it was {before:?}"));
        (format!("updated {old} to {new}"), problem)
    }

    fn deleted<O: Object>(
        &mut self,
        key: &ObjectKey,
        before: Option<String>,
        deleted: &Deleted<O>,
        of: &Witness,
    ) -> Noted {
        self.present.remove(key);
        let uid = |state: &str| state.split('@').next().unwrap_or_default().to_owned();
        match (deleted, before) {
            (Deleted::Known(last), None) => {
                let problem = (!of.in_order).then(|| "it was not there".to_owned());
                (format!("deleted {}", state(last)), problem)
            }
            (Deleted::Known(last), Some(before)) => {
                let last = state(last);
                let problem = (uid(&before) != uid(&last)).then(|| format!("it was {before}, another object"));
                (format!("deleted {last}"), problem)
            }
            (Deleted::FinalStateUnknown { last, .. }, before) => {
                self.tombstones += 1;
                let last = last.as_ref().map(state);
                let problem = match (&last, before) {
                    (None, None) if of.in_order => None,
                    (last, before) if *last == before => None,
                    (Some(last), Some(before)) if !of.all && uid(last) == uid(&before) => None,
                    (_, before) => Some(format!("the last state that was told is {before:?}")),
                };
                (format!("gone, last seen {last:?}"), problem)
            }
        }
    }
}

/// A handler that is called.
impl<O: Object> ResourceEventHandler<O> for Witness {
    fn on_add(&mut self, object: O, is_in_initial_list: bool) {
        self.note(&Notification::Added { object, is_in_initial_list });
    }

    fn on_update(&mut self, old: O, new: O) {
        self.note(&Notification::Updated { old, new });
    }

    fn on_delete(&mut self, deleted: Deleted<O>) {
        self.note(&Notification::Deleted(deleted));
    }
}

/// A handler that panics now and then, after it has noted what it was told.
pub(crate) struct Fragile {
    pub(crate) witness: Witness,
    pub(crate) dice: Dice,
}

impl<O: Object> ResourceEventHandler<O> for Fragile {
    fn on_add(&mut self, object: O, is_in_initial_list: bool) {
        self.handle(Notification::Added { object, is_in_initial_list });
    }

    fn on_update(&mut self, old: O, new: O) {
        self.handle(Notification::Updated { old, new });
    }

    fn on_delete(&mut self, deleted: Deleted<O>) {
        self.handle(Notification::Deleted(deleted));
    }

    fn handle(&mut self, notification: Notification<O>) {
        self.witness.note(&notification);
        if self.dice.chance(0.1) {
            // A panic without the hook's message.
            std::panic::resume_unwind(Box::new("as the dice say"));
        }
    }
}

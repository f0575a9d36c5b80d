//! Handlers that check what they are told, and remember what it comes to.

use std::collections::BTreeMap;
use std::sync::Arc;

use kubewire_indexer::{Deleted, Object, ObjectKey};
use kubewire_informer::{Notification, ResourceEventHandler};
use parking_lot::Mutex;

use crate::Contents;
use crate::dice::Dice;

/// What one handler was told. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Witness {
    /// Whether deletes of what was never told are right.
    in_order: bool,
    state: Arc<Mutex<Testimony>>,
}

/// Guarded by `Witness::state`.
#[derive(Default)]
struct Testimony {
    present: Contents,
    told: u64,
    problems: Vec<String>,
}

impl Witness {
    pub(crate) fn new(in_order: bool) -> Self {
        Self { in_order, state: Arc::default() }
    }

    pub(crate) fn told(&self) -> u64 {
        self.state.lock().told
    }

    /// Everything was told in order, and comes to this.
    pub(crate) fn check(&self, name: &str, contents: &Contents) {
        let state = self.state.lock();
        assert!(state.problems.is_empty(), "{name}: {:#?}", state.problems);
        assert_eq!(state.present, *contents, "{name}");
    }

    /// As [`check`](Self::check), of a handler that was removed and so knows only its own time.
    pub(crate) fn check_order(&self, name: &str) {
        let state = self.state.lock();
        assert!(state.problems.is_empty(), "{name}: {:#?}", state.problems);
    }

    /// Notes what is told, and whether it follows on what was told before.
    pub(crate) fn note<O: Object>(&self, notification: &Notification<O>) {
        let mut state = self.state.lock();
        state.told += 1;
        let key = notification.key();
        let version = |object: &O| object.id().resource_version.to_owned();
        let before = state.present.get(&key).cloned();
        let problem = match notification {
            Notification::Added { object, .. } => {
                state.present.insert(key.clone(), version(object));
                before.map(|before| format!("{key}: added at {}, though it was there at {before}", version(object)))
            }
            Notification::Updated { old, new } => {
                state.present.insert(key.clone(), version(new));
                (before.as_deref() != Some(old.id().resource_version)).then(|| {
                    format!("{key}: updated from {} to {}, though it was {before:?}", version(old), version(new))
                })
            }
            Notification::Deleted(_) => {
                state.present.remove(&key);
                (before.is_none() && !self.in_order).then(|| format!("{key}: deleted, though it was not there"))
            }
            _ => Some(format!("{key}: a notification of a kind that nobody knows")),
        };
        state.problems.extend(problem);
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

/// What was processed last of each key: the version, or that there was none.
pub(crate) type Processed = Arc<Mutex<BTreeMap<ObjectKey, Option<String>>>>;

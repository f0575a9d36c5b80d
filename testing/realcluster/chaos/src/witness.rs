//! A handler that checks what it is told, and remembers what that comes to.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use kubewire_indexer::{Deleted, Object, ObjectKey};
use kubewire_informer::{Notification, ResourceEventHandler};
use parking_lot::Mutex;

/// What there is: the version of each key. etcd's versions are numbers that grow.
pub(crate) type Contents = BTreeMap<ObjectKey, u64>;

/// The version of an object; 0 for one that has none, which a server never sends.
pub(crate) fn version<O: Object>(object: &O) -> u64 {
    object.id().resource_version.parse().unwrap_or(0)
}

/// What one handler was told. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Witness {
    /// Whether the deletion of what was never told is right.
    in_order: bool,
    state: Arc<Mutex<Testimony>>,
}

/// Guarded by `Witness::state`.
#[derive(Default)]
struct Testimony {
    present: Contents,
    /// The last version of what is gone.
    gone: HashMap<ObjectKey, u64>,
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

    /// What was told out of order, twice, or not at all.
    pub(crate) fn problems(&self) -> Vec<String> {
        self.state.lock().problems.clone()
    }

    /// Forgets what is gone, when everything has been found right: who remembers all names ever grows.
    pub(crate) fn forget_gone(&self) {
        self.state.lock().gone = HashMap::new();
    }

    /// What it all comes to.
    pub(crate) fn present(&self) -> Contents {
        self.state.lock().present.clone()
    }
}

impl Testimony {
    /// Takes a notification in, and says what is wrong with it.
    fn note<O: Object>(&mut self, notification: &Notification<O>, in_order: bool) -> Option<String> {
        self.told += 1;
        let key = notification.key();
        match notification {
            Notification::Added { object, .. } => {
                let now = version(object);
                let before = self.present.insert(key.clone(), now);
                let gone = self.gone.remove(&key).filter(|gone| *gone >= now);
                match (before, gone) {
                    (Some(before), _) => Some(format!("{key}: added at {now}, though it was there at {before}")),
                    (_, Some(gone)) => Some(format!("{key}: added at {now}, though it had been deleted at {gone}")),
                    _ => None,
                }
            }
            Notification::Updated { old, new } => {
                let (old, now) = (version(old), version(new));
                let before = self.present.insert(key.clone(), now);
                (before != Some(old) || now < old)
                    .then(|| format!("{key}: updated from {old} to {now}, though it was at {before:?}"))
            }
            Notification::Deleted(deleted) => {
                let before = self.present.remove(&key);
                let last = deleted.last_known().map(version).max(before).unwrap_or(0);
                self.gone.insert(key.clone(), last);
                (before.is_none() && !in_order).then(|| format!("{key}: deleted, though it was not there"))
            }
            _ => Some(format!("{key}: a notification of a kind that nobody knows")),
        }
    }
}

impl<O: Object> ResourceEventHandler<O> for Witness {
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
        let mut state = self.state.lock();
        let problem = state.note(&notification, self.in_order);
        state.problems.extend(problem);
    }
}

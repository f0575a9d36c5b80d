//! A handler that writes down what it is told.

use std::collections::BTreeMap;
use std::sync::Arc;

use kubewire_indexer::{Deleted, Object, ObjectKey};
use kubewire_informer::{Notification, ResourceEventHandler};
use parking_lot::Mutex;

use super::source::{Form, Pod, PodRef};

#[derive(Clone, Default)]
pub(crate) struct Recorder {
    log: Arc<Mutex<Vec<Notification<PodRef>>>>,
}

impl Recorder {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn len(&self) -> usize {
        self.log.lock().len()
    }

    pub(crate) fn notifications(&self) -> Vec<Notification<PodRef>> {
        self.log.lock().clone()
    }

    /// What came since the last call: `+a@1!` of the initial list, `+a@1`, `~a@1>2`, `-a@2`, `-a@2?` by tombstone.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.log.lock()).iter().map(show).collect()
    }

    pub(crate) fn take_sorted(&self) -> Vec<String> {
        let mut log = self.take();
        log.sort();
        log
    }

    /// What the log says there is. Fails where the log contradicts itself.
    pub(crate) fn replay(&self) -> BTreeMap<ObjectKey, Pod> {
        self.present().into_iter().map(|(key, object)| (key, object.read())).collect()
    }

    /// The same, without a look into the objects.
    pub(crate) fn present(&self) -> BTreeMap<ObjectKey, PodRef> {
        let mut store: BTreeMap<ObjectKey, PodRef> = BTreeMap::new();
        for notification in &*self.log.lock() {
            match notification {
                Notification::Added { object, .. } => {
                    let before = store.insert(object.key(), object.clone());
                    assert!(before.is_none(), "{object:?} was added twice");
                }
                Notification::Updated { old, new } => {
                    let before = store.insert(new.key(), new.clone());
                    let before = before.as_ref().map(Object::id);
                    assert_eq!(before, Some(old.id()), "updated from a state that was not told");
                }
                Notification::Deleted(deleted) => {
                    assert!(store.remove(&deleted.key()).is_some(), "{deleted:?} was deleted and never added");
                }
                other => panic!("{other:?}"),
            }
        }
        store
    }
}

pub(crate) fn show(notification: &Notification<PodRef>) -> String {
    match notification {
        Notification::Added { object, is_in_initial_list } => {
            format!("+{}@{}{}", object.key(), object.id().resource_version, if *is_in_initial_list { "!" } else { "" })
        }
        Notification::Updated { old, new } => {
            format!("~{}@{}>{}", new.key(), old.id().resource_version, new.id().resource_version)
        }
        Notification::Deleted(Deleted::Known(object)) => format!("-{}@{}", object.key(), object.id().resource_version),
        Notification::Deleted(Deleted::FinalStateUnknown { key, last }) => {
            format!("-{key}@{}?", last.as_ref().map_or("", |last| last.id().resource_version))
        }
        other => format!("{other:?}"),
    }
}

impl ResourceEventHandler<PodRef> for Recorder {
    fn on_add(&mut self, object: PodRef, is_in_initial_list: bool) {
        self.log.lock().push(Notification::Added { object, is_in_initial_list });
    }

    fn on_update(&mut self, old: PodRef, new: PodRef) {
        self.log.lock().push(Notification::Updated { old, new });
    }

    fn on_delete(&mut self, deleted: Deleted<PodRef>) {
        self.log.lock().push(Notification::Deleted(deleted));
    }
}

//! A server in memory: it lists what it has, and its watches replay all that came after a version.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use kubewire_indexer::{IndexFunc, Indexers, Object, ObjectKey};
use kubewire_informer::reflector::ReflectorOptions;
use kubewire_informer::{Informer, InformerOptions};
use kubewire_listwatch::{
    ErrorClass, ItemSink, ListMeta, ListOptions, ListerWatcher, RequestError, WatchEvent, WatchOptions, WatchStream,
};
use parking_lot::Mutex;
use tokio::sync::Notify;

pub(crate) use super::PodRef;
pub(crate) use crate::record::{Form, Pod, edited};

/// `namespace/name`
pub(crate) fn key(text: &str) -> ObjectKey {
    text.parse().unwrap()
}

#[derive(Clone, Default)]
pub(crate) struct Source {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Default)]
struct State {
    objects: BTreeMap<ObjectKey, Pod>,
    version: u64,
    history: Vec<(u64, WatchEvent<PodRef>)>,
    /// Watches from before this version are refused as expired.
    compacted: u64,
    /// Watches of an older generation end.
    generation: u64,
    list_errors: Vec<RequestError>,
    always_fails: Option<RequestError>,
    /// Happens when the next list is made and not yet answered.
    after_list: Option<Box<dyn FnOnce() + Send>>,
    lists: usize,
    watches: usize,
}

impl Source {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Puts an object, new or not; gives the version it got.
    pub(crate) fn put(&self, name: &str, note: &str) -> String {
        self.change(name, |state, key, version| {
            let former = state.objects.get(key).map(|pod| pod.uid.clone());
            let pod = Pod {
                namespace: key.namespace().to_owned(),
                name: key.name().to_owned(),
                uid: former.clone().unwrap_or_else(|| format!("u{version}")),
                version: version.to_string(),
                note: note.to_owned(),
            };
            state.objects.insert(key.clone(), pod.clone());
            let object = PodRef::make(&pod);
            Some(if former.is_some() { WatchEvent::Modified(object) } else { WatchEvent::Added(object) })
        })
    }

    pub(crate) fn delete(&self, name: &str) -> String {
        self.change(name, |state, key, version| {
            let pod = Pod { version: version.to_string(), ..state.objects.remove(key)? };
            Some(WatchEvent::Deleted(PodRef::make(&pod)))
        })
    }

    fn change(
        &self,
        name: &str,
        change: impl FnOnce(&mut State, &ObjectKey, u64) -> Option<WatchEvent<PodRef>>,
    ) -> String {
        let mut state = self.shared.state.lock();
        let version = state.version + 1;
        let key = key(name);
        if let Some(event) = change(&mut state, &key, version) {
            state.version = version;
            state.history.push((version, event));
        }
        let version = state.version.to_string();
        drop(state);
        self.shared.changed.notify_waiters();
        version
    }

    pub(crate) fn bookmark(&self) -> String {
        let mut state = self.shared.state.lock();
        state.version += 1;
        let version = state.version;
        let event = WatchEvent::Bookmark { resource_version: version.to_string(), initial_events_end: false };
        state.history.push((version, event));
        drop(state);
        self.shared.changed.notify_waiters();
        version.to_string()
    }

    /// Ends all watches, and forgets what happened: the next thing is a list.
    pub(crate) fn expire(&self) {
        let mut state = self.shared.state.lock();
        state.version += 1;
        state.compacted = state.version;
        state.generation += 1;
        drop(state);
        self.shared.changed.notify_waiters();
    }

    pub(crate) fn fail_list(&self, class: ErrorClass) {
        self.shared.state.lock().list_errors.push(RequestError::new(class, "the test wants it so"));
    }

    pub(crate) fn fail_always(&self, class: ErrorClass, message: &str) {
        self.shared.state.lock().always_fails = Some(RequestError::new(class, message));
    }

    pub(crate) fn after_next_list(&self, action: impl FnOnce() + Send + 'static) {
        self.shared.state.lock().after_list = Some(Box::new(action));
    }

    pub(crate) fn stop_failing(&self) {
        self.shared.state.lock().always_fails = None;
    }

    pub(crate) fn requests(&self) -> (usize, usize) {
        let state = self.shared.state.lock();
        (state.lists, state.watches)
    }

    pub(crate) fn objects(&self) -> Vec<Pod> {
        self.shared.state.lock().objects.values().cloned().collect()
    }

    pub(crate) fn informer(&self) -> Informer<PodRef> {
        self.informer_with(options())
    }

    pub(crate) fn informer_with(&self, options: InformerOptions<PodRef>) -> Informer<PodRef> {
        Informer::with_options(self.clone(), options).unwrap()
    }
}

pub(crate) fn options() -> InformerOptions<PodRef> {
    InformerOptions::new()
        .indexers(
            Indexers::by_namespace().with("note", IndexFunc::one(|pod: &PodRef| pod.label("note").unwrap_or_default())),
        )
        .reflector(ReflectorOptions::new())
}

impl ListerWatcher for Source {
    type Object = PodRef;

    async fn list(&self, _: &ListOptions, each: ItemSink<'_, PodRef>) -> Result<ListMeta, RequestError> {
        let (objects, version) = {
            let mut state = self.shared.state.lock();
            state.lists += 1;
            if let Some(error) = state.list_errors.pop().or_else(|| state.always_fails.clone()) {
                return Err(error);
            }
            (state.objects.values().cloned().collect::<Vec<_>>(), state.version)
        };
        let after_list = self.shared.state.lock().after_list.take();
        if let Some(action) = after_list {
            action();
        }
        objects.iter().for_each(|pod| each(Ok(PodRef::make(pod))));
        Ok(ListMeta::new(version.to_string()))
    }

    async fn watch(&self, options: &WatchOptions) -> Result<WatchStream<PodRef>, RequestError> {
        let shared = Arc::clone(&self.shared);
        let from: u64 = options.resource_version.parse().unwrap_or(0);
        let generation = {
            let mut state = shared.state.lock();
            state.watches += 1;
            if from < state.compacted {
                return Err(RequestError::new(ErrorClass::Expired, "too old"));
            }
            state.generation
        };
        let seen = shared.state.lock().history.partition_point(|(version, _)| *version <= from);
        let stream = futures::stream::unfold((shared, seen), move |(shared, seen)| async move {
            loop {
                let changed = shared.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                {
                    let state = shared.state.lock();
                    if state.generation != generation {
                        return None;
                    }
                    if let Some((_, event)) = state.history.get(seen) {
                        let event = event.clone();
                        drop(state);
                        return Some((Ok(event), (shared.clone(), seen + 1)));
                    }
                }
                changed.await;
            }
        });
        Ok(stream.boxed())
    }

    fn resource(&self) -> String {
        "pods".to_owned()
    }
}

/// Lets everything happen that can happen by itself. Takes a millisecond of paused time.
pub(crate) async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

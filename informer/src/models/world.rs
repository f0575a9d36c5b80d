//! Objects that know where they are dropped, and a server with a script.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use futures::{StreamExt, stream};
use kubewire_indexer::{Id, Meta, ObjectKey};
use kubewire_listwatch::{
    ItemSink, ListMeta, ListOptions, ListerWatcher, RequestError, WatchEvent, WatchOptions, WatchStream,
};
use kubewire_ratelimit::ManualClock;

use crate::{Informer, InformerOptions, sync};

/// An object. Its version is its number of changes, so that a gap shows.
#[derive(Debug)]
pub(super) struct Pod {
    pub(super) name: &'static str,
    pub(super) version: u64,
    text: String,
    alive: Arc<AtomicUsize>,
}

pub(super) type PodRef = Arc<Pod>;

impl Meta for Pod {
    fn id(&self) -> Id<'_> {
        Id::new("", self.name).resource_version(&self.text)
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        sync::expect_no_lock("an object is dropped");
        self.alive.fetch_sub(1, Ordering::SeqCst);
    }
}

pub(super) fn key(name: &'static str) -> ObjectKey {
    name.parse().expect("a name is a key")
}

/// Makes objects, and counts the living.
#[derive(Clone, Default)]
pub(super) struct World {
    alive: Arc<AtomicUsize>,
}

impl World {
    pub(super) fn pod(&self, name: &'static str, version: u64) -> PodRef {
        self.alive.fetch_add(1, Ordering::SeqCst);
        Arc::new(Pod { name, version, text: version.to_string(), alive: Arc::clone(&self.alive) })
    }

    pub(super) fn alive(&self) -> usize {
        self.alive.load(Ordering::SeqCst)
    }

    /// An informer whose server lists `a` at version 1, and then sends these events.
    pub(super) fn informer(&self, events: impl IntoIterator<Item = WatchEvent<PodRef>>) -> Informer<PodRef> {
        let script = self.script(events);
        let options = InformerOptions::new().clock(ManualClock::new().clock());
        Informer::with_options(script, options).expect("no indices, so none twice")
    }

    pub(super) fn script(&self, events: impl IntoIterator<Item = WatchEvent<PodRef>>) -> Script {
        Script { listed: self.pod("a", 1), events: Mutex::new(events.into_iter().collect()) }
    }

    /// `a` changes twice, `b` comes and goes, and at last `c` comes.
    pub(super) fn changes(&self) -> [WatchEvent<PodRef>; 5] {
        [
            WatchEvent::Modified(self.pod("a", 2)),
            WatchEvent::Added(self.pod("b", 3)),
            WatchEvent::Deleted(self.pod("b", 4)),
            WatchEvent::Modified(self.pod("a", 5)),
            WatchEvent::Added(self.pod("c", LAST)),
        ]
    }
}

/// The version of the last of all changes.
pub(super) const LAST: u64 = 6;

/// A server that answers one list and one watch; others may go on before each answer.
pub(super) struct Script {
    listed: PodRef,
    events: Mutex<Vec<WatchEvent<PodRef>>>,
}

impl ListerWatcher for Script {
    type Object = PodRef;

    async fn list(&self, _: &ListOptions, each: ItemSink<'_, PodRef>) -> Result<ListMeta, RequestError> {
        shuttle::future::yield_now().await;
        each(Ok(Arc::clone(&self.listed)));
        Ok(ListMeta::new("1"))
    }

    async fn watch(&self, _: &WatchOptions) -> Result<WatchStream<PodRef>, RequestError> {
        let events = std::mem::take(&mut *self.events.lock().expect("nobody panics"));
        let events = stream::iter(events).then(|event| async {
            shuttle::future::yield_now().await;
            Ok(event)
        });
        Ok(events.chain(stream::pending()).boxed())
    }
}

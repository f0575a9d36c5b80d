//! The queue behind an informer, and workers that fail now and then.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kubewire_indexer::{Object, ObjectKey};
use kubewire_informer::{Informer, ResourceEventHandlerFuncs, Stopped};
use kubewire_workqueue::RateLimitingQueue;
use kubewire_workqueue::ratelimit::default_item_based_rate_limiter;
use parking_lot::Mutex;
use tokio::task::JoinSet;

use crate::dice::Dice;
use crate::witness::{Contents, version};

const WORKERS: usize = 3;

/// How often a worker fails.
const FAILURES: f64 = 0.1;

/// What was processed last of each key: its version, or that it was not there.
type Processed = Arc<Mutex<HashMap<ObjectKey, Option<u64>>>>;

pub(crate) struct Workers {
    queue: RateLimitingQueue<ObjectKey>,
    processed: Processed,
    failed: Arc<AtomicU64>,
    tasks: JoinSet<()>,
}

impl Workers {
    /// A handler that adds keys to a queue, and workers that take them from there.
    pub(crate) fn start<O: Object>(informer: &Informer<O>, dice: &mut Dice) -> Result<Self, Stopped> {
        let queue = RateLimitingQueue::new(default_item_based_rate_limiter());
        let (add, update, delete) = (queue.clone(), queue.clone(), queue.clone());
        let handler = ResourceEventHandlerFuncs::new()
            .on_add(move |object: O, _| add.add(object.key()))
            .on_update(move |_, new: O| update.add(new.key()))
            .on_delete(move |deleted| delete.add(deleted.key()));
        informer.add_handler(handler)?;
        let (processed, failed, mut tasks) = (Processed::default(), Arc::default(), JoinSet::new());
        for _ in 0..WORKERS {
            let (processed, failed) = (Processed::clone(&processed), Arc::clone(&failed));
            tasks.spawn(work(queue.clone(), informer.clone(), processed, failed, dice.fork()));
        }
        Ok(Self { queue, processed, failed, tasks })
    }

    /// Nothing waits, is processed or is delayed.
    pub(crate) fn is_idle(&self) -> bool {
        let snapshot = self.queue.snapshot();
        snapshot.waiting.is_empty() && snapshot.processing.is_empty() && snapshot.delayed.is_empty()
    }

    /// How often a worker has failed on purpose.
    pub(crate) fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// Of which keys the last change was not processed.
    pub(crate) fn problems(&self, contents: &Contents) -> Vec<String> {
        let processed = self.processed.lock();
        let unseen = contents.keys().filter(|key| !processed.contains_key(*key));
        let unseen = unseen.map(|key| format!("{key}: never processed"));
        let behind = processed.iter().filter(|(key, version)| version.as_ref() != contents.get(*key));
        let behind = behind.map(|(key, version)| {
            format!("{key}: processed last at {version:?}, though it is at {:?}", contents.get(key))
        });
        let limited = processed.keys().filter(|key| self.queue.num_requeues(key) > 0);
        let limited = limited.map(|key| format!("{key}: its failures were not forgotten"));
        unseen.chain(behind).chain(limited).collect()
    }

    /// Forgets what is gone, as the handlers do.
    pub(crate) fn forget_gone(&self) {
        let mut processed = self.processed.lock();
        processed.retain(|_, version| version.is_some());
        processed.shrink_to_fit();
    }

    pub(crate) async fn stop(&mut self) {
        self.queue.shut_down_with_full_drain().await;
        while self.tasks.join_next().await.is_some() {}
    }
}

async fn work<O: Object>(
    queue: RateLimitingQueue<ObjectKey>,
    informer: Informer<O>,
    processed: Processed,
    failed: Arc<AtomicU64>,
    mut dice: Dice,
) {
    let indexer = informer.indexer();
    while let Some(key) = queue.get().await {
        let seen = indexer.get_by_key(&*key).as_ref().map(version);
        // The object may change while it is worked on; then the queue hands the key out again.
        if dice.chance(0.1) {
            tokio::time::sleep(dice.up_to(Duration::from_millis(10))).await;
        }
        if dice.chance(FAILURES) {
            failed.fetch_add(1, Ordering::Relaxed);
            queue.add_rate_limited(key.clone());
            continue;
        }
        processed.lock().insert(key.clone(), seen);
        queue.forget(&key);
    }
}

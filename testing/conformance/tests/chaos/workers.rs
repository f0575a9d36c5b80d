//! The queue behind an informer, and workers that fail, panic or take long now and then.

use std::collections::BTreeMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use kubewire_indexer::{Object, ObjectKey};
use kubewire_informer::{Informer, ResourceEventHandlerFuncs};
use kubewire_workqueue::ratelimit::default_item_based_rate_limiter;
use kubewire_workqueue::{Guard, RateLimitingQueue};
use parking_lot::Mutex;
use tokio::task::JoinSet;

use crate::dice::Dice;
use crate::digest::Digest;
use crate::scope::{Contents, state};

const WORKERS: usize = 3;

/// What was processed last of each key: the state, or that there was none.
type Processed = Arc<Mutex<BTreeMap<ObjectKey, Option<String>>>>;

pub(crate) struct Workers {
    queue: RateLimitingQueue<ObjectKey>,
    processed: Processed,
    tasks: JoinSet<u64>,
}

impl Workers {
    /// A handler that adds keys to a queue, and workers that take them from there.
    pub(crate) fn start<O: Object>(
        name: &'static str,
        informer: &Informer<O>,
        dice: &mut Dice,
        digest: &Digest,
    ) -> Self {
        let queue = RateLimitingQueue::new(default_item_based_rate_limiter());
        let (add, update, delete) = (queue.clone(), queue.clone(), queue.clone());
        let handler = ResourceEventHandlerFuncs::new()
            .on_add(move |object: O, _| add.add(object.key()))
            .on_update(move |_, new: O| update.add(new.key()))
            .on_delete(move |deleted| delete.add(deleted.key()));
        drop(informer.add_handler(handler).expect("it is not stopped"));
        let (processed, mut tasks) = (Processed::default(), JoinSet::new());
        for _ in 0..WORKERS {
            let worker = Worker {
                name,
                queue: queue.clone(),
                informer: informer.clone(),
                processed: Processed::clone(&processed),
                dice: dice.fork(),
                digest: digest.clone(),
            };
            tasks.spawn(worker.work());
        }
        Self { queue, processed, tasks }
    }

    /// Nothing waits, is processed or is delayed.
    pub(crate) fn is_idle(&self) -> bool {
        let snapshot = self.queue.snapshot();
        snapshot.waiting.is_empty() && snapshot.processing.is_empty() && snapshot.delayed.is_empty()
    }

    pub(crate) fn explain(&self) -> String {
        format!("{:?}", self.queue.snapshot())
    }

    /// Of every key the last state was processed.
    pub(crate) fn check(&self, contents: &Contents) {
        let processed = self.processed.lock();
        for (key, state) in contents {
            assert_eq!(processed.get(key), Some(&Some(state.clone())), "{key} was not processed last in this state");
        }
        for (key, state) in processed.iter() {
            assert_eq!(state.as_ref(), contents.get(key), "{key} was processed last in another state than its last");
            assert_eq!(self.queue.num_requeues(key), 0, "{key}");
        }
    }

    /// Ends them; how many keys they processed.
    pub(crate) async fn stop(mut self) -> u64 {
        self.queue.shut_down_with_full_drain().await;
        let mut count = 0;
        while let Some(ended) = self.tasks.join_next().await {
            count += ended.expect("a worker has not panicked");
        }
        assert!(self.is_idle(), "something is left in the queue: {}", self.explain());
        count
    }
}

struct Worker<O: Object> {
    name: &'static str,
    queue: RateLimitingQueue<ObjectKey>,
    informer: Informer<O>,
    processed: Processed,
    dice: Dice,
    digest: Digest,
}

impl<O: Object> Worker<O> {
    /// Until the queue is shut down; how many keys were processed.
    async fn work(mut self) -> u64 {
        let queue = self.queue.clone();
        let mut count = 0;
        while let Some(guard) = queue.get().await {
            let key = guard.key().clone();
            // As a worker that is worth its name: what panics is tried again.
            let processed = AssertUnwindSafe(self.process(guard)).catch_unwind().await;
            if processed.is_err() {
                queue.add_rate_limited(key);
            }
            count += 1;
        }
        count
    }

    async fn process(&mut self, key: Guard<ObjectKey>) {
        let present = self.informer.indexer().get_by_key(&*key).as_ref().map(state);
        self.digest.note(|| format!("{} works on {} as {present:?}", self.name, *key));
        let slow = if self.dice.chance(0.01) { Duration::from_secs(20) } else { Duration::from_millis(50) };
        tokio::time::sleep(self.dice.up_to(slow)).await;
        if self.dice.chance(0.2) {
            self.queue.add_rate_limited(key.key().clone());
        } else if self.dice.chance(0.05) {
            // Without the hook's message. The key is let go while this unwinds.
            std::panic::resume_unwind(Box::new("as the dice say"));
        } else {
            self.processed.lock().insert(key.key().clone(), present);
            self.queue.forget(&key);
        }
    }
}

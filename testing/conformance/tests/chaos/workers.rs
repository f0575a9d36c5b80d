//! The queue behind the informer, and workers that fail now and then.

use std::time::Duration;

use kubewire_indexer::Object;
use kubewire_informer::{Informer, ResourceEventHandlerFuncs};
use kubewire_workqueue::RateLimitingQueue;
use kubewire_workqueue::ratelimit::default_item_based_rate_limiter;
use tokio::task::JoinSet;

use crate::Contents;
use crate::dice::Dice;
use crate::witness::Processed;

const WORKERS: usize = 3;

pub(crate) struct Workers {
    queue: RateLimitingQueue<kubewire_indexer::ObjectKey>,
    processed: Processed,
    tasks: JoinSet<()>,
}

impl Workers {
    /// A handler that adds keys to a queue, and workers that take them from there.
    pub(crate) fn start<O: Object>(informer: &Informer<O>, mut dice: Dice) -> Self {
        let queue = RateLimitingQueue::new(default_item_based_rate_limiter());
        let (add, update, delete) = (queue.clone(), queue.clone(), queue.clone());
        let handler = ResourceEventHandlerFuncs::new()
            .on_add(move |object: O, _| add.add(object.key()))
            .on_update(move |_, new: O| update.add(new.key()))
            .on_delete(move |deleted| delete.add(deleted.key()));
        drop(informer.add_handler(handler).expect("it is not stopped"));
        let (processed, mut tasks) = (Processed::default(), JoinSet::new());
        for _ in 0..WORKERS {
            tasks.spawn(work(queue.clone(), informer.clone(), Processed::clone(&processed), dice.fork()));
        }
        Self { queue, processed, tasks }
    }

    /// Nothing waits, is processed or is delayed.
    pub(crate) fn is_idle(&self) -> bool {
        let snapshot = self.queue.snapshot();
        snapshot.waiting.is_empty() && snapshot.processing.is_empty() && snapshot.delayed.is_empty()
    }

    /// Of every key the last state was processed.
    pub(crate) fn check(&self, contents: &Contents) {
        let processed = self.processed.lock();
        for (key, version) in contents {
            assert_eq!(processed.get(key), Some(&Some(version.clone())), "{key}");
        }
        for (key, version) in processed.iter() {
            assert_eq!(version.as_ref(), contents.get(key), "{key}");
            assert_eq!(self.queue.num_requeues(key), 0, "{key}");
        }
    }

    pub(crate) async fn stop(mut self) {
        self.queue.shut_down_with_full_drain().await;
        while let Some(ended) = self.tasks.join_next().await {
            ended.expect("a worker has not panicked");
        }
    }
}

async fn work<O: Object>(
    queue: RateLimitingQueue<kubewire_indexer::ObjectKey>,
    informer: Informer<O>,
    processed: Processed,
    mut dice: Dice,
) {
    let indexer = informer.indexer();
    while let Some(key) = queue.get().await {
        let version = indexer.get_by_key(&*key).map(|object| object.id().resource_version.to_owned());
        tokio::time::sleep(dice.up_to(Duration::from_millis(50))).await;
        if dice.chance(0.2) {
            queue.add_rate_limited(key.clone());
        } else {
            processed.lock().insert(key.clone(), version);
            queue.forget(&key);
        }
    }
}

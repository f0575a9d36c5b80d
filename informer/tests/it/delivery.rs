//! The order and the shape of what is told, by the informer's delivery.

use std::sync::Arc;
use std::time::Duration;

use kubewire_indexer::Object;
use kubewire_informer::{Delivery, ResourceEventHandlerFuncs};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::recorder::Recorder;
use super::source::{Form, Source, key, options, settle};

const ALL: [Delivery; 4] = [Delivery::PerKey, Delivery::Coalescing, Delivery::InOrder, Delivery::InOrderItems];

/// What a handler hears of what happened between two lists, and the store in the end.
async fn relist(delivery: Delivery, before: &[&str], meanwhile: impl FnOnce(&Source)) -> (Vec<String>, Vec<String>) {
    let source = Source::new();
    before.iter().for_each(|name| drop(source.put(name, "1")));
    let informer = source.informer_with(options().delivery(delivery));
    let log = Recorder::new();
    informer.add_handler(log.clone()).unwrap();
    let _running = informer.start(CancellationToken::new());
    informer.synced().await.unwrap();
    settle().await;
    log.take();
    source.expire();
    meanwhile(&source);
    source.expire();
    tokio::time::sleep(Duration::from_secs(61)).await;
    let mut keys: Vec<_> = informer.indexer().list_keys().iter().map(ToString::to_string).collect();
    keys.sort();
    (log.take(), keys)
}

#[tokio::test(start_paused = true)]
async fn a_relist_from_empty_adds_all() {
    for delivery in ALL {
        let (told, keys) = relist(delivery, &[], |source| {
            source.put("ns/a", "1");
            source.put("ns/b", "1");
        })
        .await;
        assert_eq!(told, ["+ns/a@2", "+ns/b@3"], "{delivery:?}: not initial");
        assert_eq!(keys, ["ns/a", "ns/b"]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_relist_to_empty_deletes_all_by_tombstone() {
    for delivery in ALL {
        let (mut told, keys) = relist(delivery, &["ns/a", "ns/b"], |source| {
            source.delete("ns/a");
            source.delete("ns/b");
        })
        .await;
        told.sort();
        assert_eq!(told, ["-ns/a@1?", "-ns/b@2?"], "{delivery:?}: the last cached state");
        assert!(keys.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn the_deletions_that_a_relist_reveals_come_last_per_key_and_first_in_order() {
    let meanwhile = |source: &Source| {
        source.delete("ns/a");
        source.put("ns/b", "2");
        source.put("ns/c", "1");
    };
    let upserts = ["~ns/b@2>5", "+ns/c@6"];
    for delivery in ALL {
        let (told, keys) = relist(delivery, &["ns/a", "ns/b"], meanwhile).await;
        let want = match delivery {
            Delivery::PerKey | Delivery::Coalescing => [upserts[0], upserts[1], "-ns/a@1?"],
            _ => ["-ns/a@1?", upserts[0], upserts[1]],
        };
        assert_eq!(told, want, "{delivery:?}");
        assert_eq!(keys, ["ns/b", "ns/c"]);
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_made_anew_between_two_lists_is_one_update_with_two_uids() {
    for delivery in ALL {
        let source = Source::new();
        source.put("ns/a", "red");
        let informer = source.informer_with(options().delivery(delivery));
        let log = Recorder::new();
        informer.add_handler(log.clone()).unwrap();
        let _running = informer.start(CancellationToken::new());
        informer.synced().await.unwrap();
        settle().await;
        log.take();
        source.expire();
        source.delete("ns/a");
        source.put("ns/a", "blue");
        source.expire();
        tokio::time::sleep(Duration::from_secs(61)).await;
        let told = log.notifications();
        let [kubewire_informer::Notification::Updated { old, new }] = &told[..] else { panic!("{told:?}") };
        assert_ne!(old.id().uid, new.id().uid);
        assert_eq!(informer.indexer().index_keys("note", "red").unwrap(), []);
        assert_eq!(informer.indexer().index_keys("note", "blue").unwrap(), [key("ns/a")]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_deletion_and_a_new_object_in_one_stream_are_told_as_such() {
    for delivery in ALL {
        let source = Source::new();
        source.put("ns/a", "1");
        let informer = source.informer_with(options().delivery(delivery));
        let log = Recorder::new();
        informer.add_handler(log.clone()).unwrap();
        let _running = informer.start(CancellationToken::new());
        informer.synced().await.unwrap();
        source.delete("ns/a");
        source.put("ns/a", "2");
        settle().await;
        assert_eq!(log.take(), ["+ns/a@1!", "-ns/a@2", "+ns/a@3"], "{delivery:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_lost_watch_has_hidden_comes_with_the_next_list() {
    for delivery in ALL {
        let (told, _) = relist(delivery, &["ns/pod1", "ns/pod2"], |source| {
            source.put("ns/pod3", "1");
            source.put("ns/pod2", "2");
        })
        .await;
        assert_eq!(told, ["~ns/pod1@1>1", "~ns/pod2@2>5", "+ns/pod3@4"], "{delivery:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn changes_close_behind_one_another_are_all_told() {
    for delivery in [Delivery::PerKey, Delivery::InOrder, Delivery::InOrderItems] {
        let source = Source::new();
        let informer = source.informer_with(options().delivery(delivery));
        let log = Recorder::new();
        informer.add_handler(log.clone()).unwrap();
        let _running = informer.start(CancellationToken::new());
        informer.synced().await.unwrap();
        for _ in 0..5 {
            source.put("ns/a", "1");
            source.put("ns/b", "1");
        }
        source.delete("ns/a");
        settle().await;
        assert_eq!(log.len(), 11, "{delivery:?}");
        log.replay();
    }
}

#[tokio::test(start_paused = true)]
async fn the_store_is_changed_before_handlers_are_told() {
    for delivery in ALL {
        let source = Source::new();
        source.put("ns/a", "1");
        source.put("ns/b", "1");
        let informer = source.informer_with(options().delivery(delivery));
        let wrong = Arc::new(Mutex::new(Vec::new()));
        let (added, changed, gone) = (Arc::clone(&wrong), Arc::clone(&wrong), Arc::clone(&wrong));
        let (store, store2, store3) = (informer.indexer(), informer.indexer(), informer.indexer());
        let registration = informer
            .add_handler(
                ResourceEventHandlerFuncs::new()
                    .on_add(move |pod, _| {
                        if store.get(&pod).map(|pod| pod.read()) != Some(pod.read()) {
                            added.lock().push(pod);
                        }
                    })
                    .on_update(move |_, new| {
                        if store2.get(&new).map(|pod| pod.read()) != Some(new.read()) {
                            changed.lock().push(new);
                        }
                    })
                    .on_delete(move |deleted| {
                        if store3.contains(&deleted.key()) {
                            gone.lock().extend(deleted.last_known().cloned());
                        }
                    }),
            )
            .unwrap();
        let _running = informer.start(CancellationToken::new());
        registration.synced().await.unwrap();
        source.put("ns/a", "2");
        settle().await;
        source.delete("ns/b");
        settle().await;
        source.expire();
        tokio::time::sleep(Duration::from_secs(61)).await;
        assert!(wrong.lock().is_empty(), "{delivery:?}: {:?}", wrong.lock());
        assert_eq!(registration.status().told, 5);
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Act {
    Nothing,
    Put,
    Delete,
}

impl Act {
    fn on(self, source: &Source) {
        match self {
            Self::Nothing => {}
            Self::Put => drop(source.put("ns/a", "x")),
            Self::Delete => drop(source.delete("ns/a")),
        }
    }

    /// What is told of it, where the object `is_there`; and whether it is there afterwards.
    fn told(self, is_there: &mut bool) -> Option<char> {
        let before = std::mem::replace(is_there, self == Self::Put || (self == Self::Nothing && *is_there));
        match (before, self) {
            (_, Self::Nothing) | (false, Self::Delete) => None,
            (false, Self::Put) => Some('+'),
            (true, Self::Put) => Some('~'),
            (true, Self::Delete) => Some('-'),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_change_before_during_or_after_the_first_list_is_told_exactly_once() {
    const ACTS: [Act; 3] = [Act::Nothing, Act::Put, Act::Delete];
    // Coalescing may tell two of them as one.
    for delivery in [Delivery::PerKey, Delivery::InOrder, Delivery::InOrderItems] {
        for n in 0..3 * 3 * 3 * 2 {
            let (before, during, after) = (ACTS[n % 3], ACTS[n / 3 % 3], ACTS[n / 9 % 3]);
            let source = Source::new();
            source.put("ns/other", "x");
            if n >= 27 {
                source.put("ns/a", "x");
            }
            before.on(&source);
            let there_at_first = source.objects().len() == 2;
            source.after_next_list({
                let source = source.clone();
                move || during.on(&source)
            });
            let informer = source.informer_with(options().delivery(delivery));
            let log = Recorder::new();
            informer.add_handler(log.clone()).unwrap();
            let _running = informer.start(CancellationToken::new());
            informer.synced().await.unwrap();
            settle().await;
            after.on(&source);
            settle().await;
            let mut is_there = there_at_first;
            let mut want = String::from(if there_at_first { "+" } else { "" });
            want.extend(during.told(&mut is_there));
            want.extend(after.told(&mut is_there));
            let told: String =
                log.take().iter().filter(|text| text.contains("ns/a")).filter_map(|text| text.chars().next()).collect();
            assert_eq!(told, want, "{delivery:?} case {n}");
            assert_eq!(informer.indexer().contains(&key("ns/a")), is_there);
        }
    }
}

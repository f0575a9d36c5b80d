//! Relists from a source that looks up what is held before it decodes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use kubewire_indexer::{Object, ObjectKey};
use kubewire_informer::{Delivery, Informer};
use kubewire_listwatch::{
    BoxError, Held, ItemSink, ListMeta, ListOptions, ListerWatcher, RelistSink, Relisted, RequestError, WatchOptions,
    WatchStream,
};
use tokio_util::sync::CancellationToken;

use super::recorder::Recorder;
use super::source::{Form, Pod, PodRef, Source, edited, key, options, settle};

/// Makes each pod anew, as decoding does, and counts them; those that are held are not made.
#[derive(Clone, Default)]
struct Sparing {
    source: Source,
    decoded: Arc<AtomicUsize>,
}

impl Sparing {
    fn decode(&self, pod: &PodRef) -> PodRef {
        self.decoded.fetch_add(1, Ordering::Relaxed);
        PodRef::make(&pod.read())
    }

    fn take_decoded(&self) -> usize {
        self.decoded.swap(0, Ordering::Relaxed)
    }
}

impl ListerWatcher for Sparing {
    type Object = PodRef;

    async fn list(&self, options: &ListOptions, each: ItemSink<'_, PodRef>) -> Result<ListMeta, RequestError> {
        self.source.list(options, &mut |item| each(item.map(|pod| self.decode(&pod)))).await
    }

    async fn relist(
        &self,
        options: &ListOptions,
        held: &Held<PodRef>,
        each: RelistSink<'_, PodRef>,
    ) -> Result<ListMeta, RequestError> {
        let look = |pod: PodRef| match held(pod.id()) {
            Some(same) => Relisted::Unchanged(same),
            None => Relisted::New(self.decode(&pod)),
        };
        self.source.list(options, &mut |item| each(item.map(look))).await
    }

    async fn watch(&self, options: &WatchOptions) -> Result<WatchStream<PodRef>, RequestError> {
        self.source.watch(options).await
    }
}

async fn relisted(source: &Source) {
    source.expire();
    tokio::time::sleep(Duration::from_secs(61)).await;
}

fn handle(informer: &Informer<PodRef>, name: &str) -> PodRef {
    informer.indexer().get_by_key(&key(name)).expect("it is cached")
}

#[tokio::test(start_paused = true)]
async fn what_is_cached_in_the_same_state_is_neither_decoded_nor_transformed_and_stays_the_same_handle() {
    for delivery in [Delivery::PerKey, Delivery::Coalescing, Delivery::InOrder] {
        let sparing = Sparing::default();
        (0..9).for_each(|n| drop(sparing.source.put(&format!("ns/{n}"), "")));
        let runs = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&runs);
        let mark = move |pod: PodRef| -> Result<PodRef, BoxError> {
            counter.fetch_add(1, Ordering::Relaxed);
            Ok(edited(&pod, |pod| pod.note.push_str("seen")))
        };
        let informer = Informer::with_options(sparing.clone(), options().delivery(delivery).transform(mark)).unwrap();
        let log = Recorder::new();
        informer.add_handler(log.clone()).unwrap();
        let _running = informer.start(CancellationToken::new());
        informer.synced().await.unwrap();
        assert_eq!((sparing.take_decoded(), runs.swap(0, Ordering::Relaxed)), (9, 9));
        let before: Vec<PodRef> = (0..9).map(|n| handle(&informer, &format!("ns/{n}"))).collect();
        settle().await;
        log.take();

        relisted(&sparing.source).await;
        assert_eq!((sparing.take_decoded(), runs.swap(0, Ordering::Relaxed)), (0, 0), "{delivery:?}");
        for (n, before) in before.iter().enumerate() {
            assert!(before.is_handle_of(&handle(&informer, &format!("ns/{n}"))), "{delivery:?}");
        }
        assert_eq!(log.take().len(), 9, "each is told once, as an update to the same version");
        assert_eq!(informer.indexer().by_index("note", "seen").unwrap().len(), 9);
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_relist_finds_changed_gone_new_or_made_anew_is_decoded_and_told() {
    for delivery in [Delivery::PerKey, Delivery::Coalescing, Delivery::InOrder] {
        let sparing = Sparing::default();
        for name in ["ns/changed", "ns/gone", "ns/same", "ns/anew"] {
            sparing.source.put(name, "old");
        }
        let informer = Informer::with_options(sparing.clone(), options().delivery(delivery)).unwrap();
        let log = Recorder::new();
        informer.add_handler(log.clone()).unwrap();
        let _running = informer.start(CancellationToken::new());
        informer.synced().await.unwrap();
        settle().await;
        let same = handle(&informer, "ns/same");
        log.take();
        sparing.take_decoded();

        // Nothing of this is seen by a watch.
        sparing.source.expire();
        sparing.source.put("ns/changed", "new");
        sparing.source.delete("ns/gone");
        sparing.source.delete("ns/anew");
        sparing.source.put("ns/anew", "new");
        sparing.source.put("ns/new", "new");
        relisted(&sparing.source).await;
        assert_eq!(sparing.take_decoded(), 3, "{delivery:?}");
        assert!(same.is_handle_of(&handle(&informer, "ns/same")));
        let keys = |note: &str| -> Vec<ObjectKey> { informer.indexer().index_keys("note", note).unwrap() };
        assert_eq!(keys("old"), [key("ns/same")]);
        assert_eq!(keys("new"), [key("ns/anew"), key("ns/changed"), key("ns/new")]);
        let mut cached: Vec<Pod> = informer.indexer().list().iter().map(Form::read).collect();
        cached.sort_by(|a, b| a.name.cmp(&b.name));
        assert_eq!(cached, sparing.source.objects(), "{delivery:?}");
        let told = log.take();
        assert_eq!(told.len(), 5, "{told:?}");
        assert!(told.iter().any(|text| text == "~ns/same@3>3") && told.iter().any(|text| text.starts_with("-ns/gone")));
    }
}

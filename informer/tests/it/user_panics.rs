//! Code of the user that panics where it is seldom run: it harms nobody else, and nothing waits for ever.

use std::time::Duration;

use futures::FutureExt;
use kubewire_indexer::Deleted;
use kubewire_informer::{FactoryOptions, Informer, ResourceEventHandler, SharedInformerFactory, wait_for_cache_sync};
use kubewire_listwatch::{ItemSink, ListMeta, ListOptions, ListerWatcher, RequestError, WatchOptions, WatchStream};
use tokio_util::sync::CancellationToken;

use super::recorder::Recorder;
use super::source::{PodRef, Source};

/// Long enough for whatever ends at all, on paused time.
const LONG: Duration = Duration::from_secs(3600);

/// A lister-watcher of which one method panics once it is given to a reflector.
struct Odd {
    source: Source,
    supports_panics: bool,
    resource_panics_at: usize,
    asked: std::sync::atomic::AtomicUsize,
}

impl ListerWatcher for Odd {
    type Object = PodRef;

    async fn list(&self, options: &ListOptions, each: ItemSink<'_, PodRef>) -> Result<ListMeta, RequestError> {
        self.source.list(options, each).await
    }

    async fn watch(&self, options: &WatchOptions) -> Result<WatchStream<PodRef>, RequestError> {
        self.source.watch(options).await
    }

    fn supports_watch_list(&self) -> bool {
        assert!(!self.supports_panics, "nobody has told me");
        false
    }

    fn resource(&self) -> String {
        let asked = self.asked.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        assert!(asked != self.resource_panics_at, "nobody has told me");
        "pods".to_owned()
    }
}

#[tokio::test(start_paused = true)]
async fn a_lister_watcher_that_panics_before_its_first_request_stops_the_informer_and_says_so() {
    for (supports_panics, resource_panics_at) in [(true, usize::MAX), (false, 1)] {
        let odd = Odd { source: Source::new(), supports_panics, resource_panics_at, asked: Default::default() };
        let informer = Informer::new(odd);
        let registration = informer.add_handler(Recorder::new()).unwrap();
        let stop = CancellationToken::new();
        let running = informer.start(stop.clone());
        let error = wait_for_cache_sync(&stop, LONG, [&informer]).await.unwrap_err().to_string();
        assert!(error.contains("nobody has told me"), "{error}");
        tokio::time::timeout(LONG, running.join()).await.expect("it ends");
        assert!(informer.is_stopped() && registration.is_removed());
        assert!(informer.status().panic.unwrap().contains("nobody has told me"));
    }
}

/// A handler that panics when it is dropped.
struct Clingy;

impl ResourceEventHandler<PodRef> for Clingy {
    fn on_add(&mut self, _: PodRef, _: bool) {}
    fn on_update(&mut self, _: PodRef, _: PodRef) {}
    fn on_delete(&mut self, _: Deleted<PodRef>) {}
}

impl Drop for Clingy {
    fn drop(&mut self) {
        panic!("do not let me go");
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_panics_when_it_is_dropped_harms_nobody() {
    for started in [false, true] {
        let informer = Source::new().informer();
        let removed = informer.add_handler(Clingy).unwrap();
        let clingy = informer.add_handler(Clingy).unwrap();
        let other = informer.add_handler(Recorder::new()).unwrap();
        let running = started.then(|| informer.start(CancellationToken::new()));
        tokio::time::timeout(LONG, removed.shut_down()).await.expect("a removal ends");
        informer.stop();
        for registration in [&clingy, &other] {
            tokio::time::timeout(LONG, registration.shut_down()).await.expect("the others are let go");
            assert!(registration.is_removed());
        }
        if let Some(running) = running {
            tokio::time::timeout(LONG, running.join()).await.expect("it ends");
        }
        assert!(informer.is_stopped());
    }
}

#[test]
fn a_factory_that_was_started_outside_of_a_runtime_starts_within_one_nevertheless() {
    let source = Source::new();
    source.put("ns/a", "1");
    let factory = SharedInformerFactory::new(FactoryOptions::new());
    let informer = factory.informer(|_| source.clone());
    let stop = CancellationToken::new();
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| factory.start(&stop))).unwrap_err();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        factory.start(&stop);
        tokio::time::timeout(LONG, informer.synced()).await.expect("it was started").unwrap();
        factory.shut_down().boxed().await;
    });
}

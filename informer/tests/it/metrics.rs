//! What the metrics of an informer are told.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use kubewire_informer::metrics::names;
use kubewire_informer::reflector::RestartCause;
use kubewire_informer::{
    Buffering, HandlerOptions, InformerLabels, InformerMetrics, InformerName, InformerNameError, MetricsProvider,
    ResourceEventHandlerFuncs, set_metrics_provider,
};
use kubewire_listwatch::ErrorClass;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::recorder::Recorder;
use super::source::{PodRef, Source, options, settle};

/// What was told, by the names of the metrics (and of the handler or the cause behind it): sums of counters, last values
/// of gauges, all values of histograms.
#[derive(Clone, Default)]
struct Told(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    made: Vec<InformerLabels>,
    dropped: usize,
    values: BTreeMap<String, Vec<f64>>,
    /// Each method panics.
    panics: bool,
}

impl Told {
    fn add(&self, name: &str, count: u64) {
        let mut state = self.0.lock();
        assert!(!state.panics, "these metrics panic");
        let sum = state.values.entry(name.to_owned()).or_insert_with(|| vec![0.0]);
        sum[0] += count as f64;
    }

    fn set(&self, name: &str, value: f64) {
        let mut state = self.0.lock();
        assert!(!state.panics, "these metrics panic");
        state.values.insert(name.to_owned(), vec![value]);
    }

    fn observe(&self, name: &str, value: f64) {
        let mut state = self.0.lock();
        assert!(!state.panics, "these metrics panic");
        state.values.entry(name.to_owned()).or_default().push(value);
    }

    fn of(&self, name: &str) -> Vec<f64> {
        self.0.lock().values.get(name).cloned().unwrap_or_default()
    }

    fn made(&self) -> usize {
        self.0.lock().made.len()
    }

    fn dropped(&self) -> usize {
        self.0.lock().dropped
    }
}

impl MetricsProvider for Told {
    fn informer_metrics(&self, informer: &InformerLabels) -> Box<dyn InformerMetrics> {
        self.0.lock().made.push(informer.clone());
        Box::new(Series(self.clone()))
    }
}

struct Series(Told);

impl Drop for Series {
    fn drop(&mut self) {
        self.0.0.lock().dropped += 1;
    }
}

fn with(name: &str, label: &str) -> String {
    format!("{name} {label}")
}

impl InformerMetrics for Series {
    fn lists(&self, count: u64) {
        self.0.add(names::LISTS, count);
    }
    fn list_duration(&self, took: Duration) {
        self.0.observe(names::LIST_DURATION, took.as_secs_f64());
    }
    fn items_per_list(&self, items: u64) {
        self.0.observe(names::ITEMS_PER_LIST, items as f64);
    }
    fn watches(&self, count: u64) {
        self.0.add(names::WATCHES, count);
    }
    fn short_watches(&self, count: u64) {
        self.0.add(names::SHORT_WATCHES, count);
    }
    fn watch_duration(&self, lasted: Duration) {
        self.0.observe(names::WATCH_DURATION, lasted.as_secs_f64());
    }
    fn items_per_watch(&self, items: u64) {
        self.0.observe(names::ITEMS_PER_WATCH, items as f64);
    }
    fn last_resource_version(&self, version: u64) {
        self.0.set(names::LAST_RESOURCE_VERSION, version as f64);
    }
    fn restarts(&self, cause: RestartCause) {
        self.0.add(&with(names::RESTARTS, &cause.to_string()), 1);
    }
    fn undecodable(&self, count: u64) {
        self.0.add(names::UNDECODABLE, count);
    }
    fn failures_in_a_row(&self, failures: u64) {
        self.0.set(names::FAILURES_IN_A_ROW, failures as f64);
    }
    fn queued_items(&self, items: u64) {
        self.0.set(names::QUEUED_ITEMS, items as f64);
    }
    fn processing_latency(&self, took: Duration) {
        self.0.observe(names::PROCESSING_LATENCY, took.as_secs_f64());
    }
    fn store_resource_version(&self, version: u64) {
        self.0.set(names::STORE_RESOURCE_VERSION, version as f64);
    }
    fn objects(&self, objects: u64) {
        self.0.set(names::OBJECTS, objects as f64);
    }
    fn staleness(&self, staleness: Duration) {
        self.0.set(names::STALENESS, staleness.as_secs_f64());
    }
    fn pending_notifications(&self, handler: &str, waiting: u64) {
        self.0.set(&with(names::PENDING_NOTIFICATIONS, handler), waiting as f64);
    }
    fn handler_busy(&self, handler: &str, busy: Duration) {
        self.0.set(&with(names::HANDLER_BUSY, handler), busy.as_secs_f64());
    }
    fn handler_notifications(&self, handler: &str, count: u64) {
        self.0.add(&with(names::HANDLER_NOTIFICATIONS, handler), count);
    }
    fn handler_coalesced(&self, handler: &str, count: u64) {
        self.0.add(&with(names::HANDLER_COALESCED, handler), count);
    }
    fn handler_panics(&self, handler: &str, count: u64) {
        self.0.add(&with(names::HANDLER_PANICS, handler), count);
    }
    fn handler_removed(&self, handler: &str) {
        self.0.add(&with("removed", handler), 1);
    }
}

fn name(text: &str) -> InformerName {
    InformerName::new(text).unwrap()
}

/// Longer than the time between two refreshes.
async fn refreshed() {
    tokio::time::sleep(Duration::from_millis(501)).await;
}

#[tokio::test(start_paused = true)]
async fn an_informer_tells_of_its_lists_watches_and_failures() {
    let (told, source) = (Told::default(), Source::new());
    source.put("ns/a", "1");
    source.put("ns/b", "1");
    source.fail_list(ErrorClass::Unavailable);
    let informer =
        source.informer_with(options().informer_name(name("metrics, lists")).metrics(Arc::new(told.clone())));
    let running = informer.start(CancellationToken::new());
    refreshed().await;
    assert_eq!((told.of(names::LISTS), told.of(names::FAILURES_IN_A_ROW)), (vec![1.0], vec![1.0]));
    assert!(told.of(names::STALENESS).is_empty(), "nothing was heard of yet");
    informer.synced().await.unwrap();
    source.put("ns/a", "2");
    source.bookmark();
    source.delete("ns/b");
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!((told.of(names::LISTS), told.of(names::ITEMS_PER_LIST)), (vec![2.0], vec![2.0]));
    assert_eq!(told.of(names::LIST_DURATION), [0.0], "no time passes in a list of the test's server");
    assert_eq!((told.of(names::WATCHES), told.of(names::WATCH_DURATION)), (vec![1.0], vec![]), "it is open");
    assert_eq!(told.of(&with(names::RESTARTS, "unavailable")), [1.0]);
    assert_eq!(told.of(names::LAST_RESOURCE_VERSION), [5.0]);
    assert_eq!((told.of(names::STORE_RESOURCE_VERSION), told.of(names::OBJECTS)), (vec![5.0], vec![1.0]));
    assert_eq!((told.of(names::FAILURES_IN_A_ROW), told.of(names::QUEUED_ITEMS)), (vec![0.0], vec![0.0]));
    assert!((9.0..=10.0).contains(&told.of(names::STALENESS)[0]), "{:?}", told.of(names::STALENESS));
    assert!(!told.of(names::PROCESSING_LATENCY).is_empty());

    source.expire();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!((told.of(names::LISTS), told.of(names::ITEMS_PER_LIST)), (vec![3.0], vec![2.0, 1.0]));
    assert_eq!(told.of(names::WATCHES), [3.0], "the one that was refused, too");
    assert_eq!(told.of(names::ITEMS_PER_WATCH), [3.0], "the bookmark, too; the one that was refused has none");
    assert!((10.0..11.0).contains(&told.of(names::WATCH_DURATION)[0]), "{:?}", told.of(names::WATCH_DURATION));
    assert_eq!(told.of(&with(names::RESTARTS, "closed")), [1.0]);
    assert_eq!(told.of(&with(names::RESTARTS, "expired")), [1.0]);
    running.stop();
    running.join().await;
    assert_eq!(told.of(names::ITEMS_PER_WATCH).len(), 2, "the stop ends a watch");
    assert_eq!((told.made(), told.dropped()), (1, 1), "no series outlives its informer");
}

#[tokio::test(start_paused = true)]
async fn watches_that_are_over_at_once_are_short_ones() {
    let (told, source) = (Told::default(), Source::new());
    let informer =
        source.informer_with(options().informer_name(name("metrics, short")).metrics(Arc::new(told.clone())));
    let _running = informer.start(CancellationToken::new());
    informer.synced().await.unwrap();
    settle().await;
    // The server closes all watches.
    source.expire();
    settle().await;
    assert_eq!(told.of(names::SHORT_WATCHES), [1.0]);
    assert_eq!(told.of(&with(names::RESTARTS, "very_short")), [1.0]);
}

#[tokio::test(start_paused = true)]
async fn the_backlog_calls_panics_and_merges_of_a_handler_are_told_until_it_is_removed() {
    let (told, source) = (Told::default(), Source::new());
    let informer =
        source.informer_with(options().informer_name(name("metrics, handlers")).metrics(Arc::new(told.clone())));
    let handler = ResourceEventHandlerFuncs::new().on_add(|pod: PodRef, _| assert_ne!(pod.name, "bad", "a bad one"));
    informer.add_handler_with(handler, HandlerOptions::new().name("web")).unwrap();
    let lazy = HandlerOptions::new().name("lazy").buffering(Buffering::Coalescing);
    let mut lazy = informer.subscribe_with(lazy).unwrap();
    let _running = informer.start(CancellationToken::new());
    informer.synced().await.unwrap();
    source.put("ns/good", "1");
    source.put("ns/bad", "1");
    source.put("ns/good", "2");
    settle().await;
    tokio::time::sleep(Duration::from_secs(20)).await;
    assert_eq!(told.of(&with(names::HANDLER_NOTIFICATIONS, "web")), [3.0]);
    assert_eq!(told.of(&with(names::HANDLER_PANICS, "web")), [1.0]);
    assert_eq!(told.of(&with(names::HANDLER_BUSY, "web")), [0.0]);
    assert_eq!(told.of(&with(names::PENDING_NOTIFICATIONS, "web")), [0.0]);
    assert_eq!(told.of(&with(names::PENDING_NOTIFICATIONS, "lazy")), [2.0]);
    assert_eq!(told.of(&with(names::HANDLER_COALESCED, "lazy")), [1.0]);
    let busy = told.of(&with(names::HANDLER_BUSY, "lazy"))[0];
    assert!((19.0..=21.0).contains(&busy), "{busy}");

    lazy.next().await.unwrap();
    lazy.next().await.unwrap();
    source.put("ns/good", "3");
    lazy.next().await.unwrap();
    informer.refresh_metrics();
    assert_eq!(told.of(&with(names::PENDING_NOTIFICATIONS, "lazy")), [0.0], "at once, where it is asked for");
    drop(lazy);
    refreshed().await;
    assert_eq!(told.of("removed lazy"), [1.0]);
    assert_eq!(told.of(&with(names::HANDLER_NOTIFICATIONS, "lazy")), [2.0], "the last was not asked after");
    assert!(told.of("removed web").is_empty());
}

#[tokio::test(start_paused = true)]
async fn handlers_that_come_and_go_leave_no_series_and_no_name_is_given_twice() {
    let (told, source) = (Told::default(), Source::new());
    source.put("ns/a", "1");
    let informer =
        source.informer_with(options().informer_name(name("metrics, come and go")).metrics(Arc::new(told.clone())));
    let _running = informer.start(CancellationToken::new());
    informer.synced().await.unwrap();
    let named = || informer.add_handler_with(Recorder::new(), HandlerOptions::new().name("web")).unwrap();
    let three = [named(), named(), named()];
    let given: BTreeSet<String> = three.iter().map(|handler| handler.status().name).collect();
    assert!(given.len() == 3 && given.contains("web"), "{given:?}");
    refreshed().await;
    three.iter().for_each(|handler| handler.remove());
    refreshed().await;
    for name in given {
        assert_eq!(told.of(&with("removed", &name)), [1.0], "{name}");
    }
    let again = named();
    assert_eq!(again.status().name, "web", "it is free again");
}

/// Scenario 240.
#[tokio::test(start_paused = true)]
async fn metrics_belong_to_one_informer_of_a_name_and_resource_at_a_time_and_none_without_a_name() {
    assert_eq!(InformerName::new("").unwrap_err(), InformerNameError::Empty);
    let shared = name("metrics, shared");
    assert!(matches!(InformerName::new("metrics, shared"), Err(InformerNameError::Taken(_))));
    let (told, source) = (Told::default(), Source::new());
    let options = || options().metrics(Arc::new(told.clone()));

    let unnamed = source.informer_with(options());
    let _unnamed = unnamed.start(CancellationToken::new());
    unnamed.synced().await.unwrap();
    assert_eq!(told.made(), 0, "without a name there are none");

    let first = source.informer_with(options().informer_name(shared.clone()));
    let second = source.informer_with(options().informer_name(shared.clone()));
    let running = first.start(CancellationToken::new());
    let _second = second.start(CancellationToken::new());
    second.synced().await.unwrap();
    assert_eq!(told.made(), 1, "the second one has none, and runs");
    {
        let labels = told.0.lock().made[0].clone();
        assert_eq!(labels, InformerLabels::new("metrics, shared", "pods"));
        let InformerLabels { name, group, version, resource, .. } = labels;
        assert_eq!([&*name, &*group, &*version, &*resource], ["metrics, shared", "", "v1", "pods"]);
    }
    running.stop();
    running.join().await;
    assert_eq!(told.dropped(), 1, "though the informer itself is still there to be read");
    let third = source.informer_with(options().informer_name(shared));
    let _third = third.start(CancellationToken::new());
    assert_eq!(told.made(), 2, "what was let go can be had again");
    assert!(InformerName::new("metrics, shared").is_err(), "the informers hold the name");
}

#[tokio::test(start_paused = true)]
async fn metrics_that_panic_harm_nobody() {
    let (told, source) = (Told::default(), Source::new());
    told.0.lock().panics = true;
    let log = Recorder::new();
    let informer =
        source.informer_with(options().informer_name(name("metrics, panic")).metrics(Arc::new(told.clone())));
    informer.add_handler(log.clone()).unwrap();
    let running = informer.start(CancellationToken::new());
    informer.synced().await.unwrap();
    source.put("ns/a", "1");
    refreshed().await;
    informer.refresh_metrics();
    assert_eq!(log.take(), ["+ns/a@1"]);
    running.stop();
    running.join().await;
    assert_eq!(told.dropped(), 1);
}

#[tokio::test(start_paused = true)]
async fn the_provider_of_all_makes_metrics_of_those_that_have_a_name_and_no_provider() {
    let (told, source) = (Told::default(), Source::new());
    assert!(set_metrics_provider(Arc::new(told.clone())));
    assert!(!set_metrics_provider(Arc::new(Told::default())), "only the first counts");
    let informer = source.informer_with(options().informer_name(name("metrics, of all")));
    let _running = informer.start(CancellationToken::new());
    informer.synced().await.unwrap();
    let mine = |labels: &&InformerLabels| labels.name == "metrics, of all";
    assert_eq!(told.0.lock().made.iter().filter(mine).count(), 1);
}

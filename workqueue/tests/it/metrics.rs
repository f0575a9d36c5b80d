//! What the metrics are told.

use std::sync::Arc;
use std::time::Duration;

use kubewire_workqueue::ratelimit::{ManualClock, default_item_based_rate_limiter};
use kubewire_workqueue::{MetricsProvider, Queue, QueueMetrics, set_metrics_provider};
use parking_lot::Mutex;

use crate::support::{MS, SECOND, get};

const MICRO: Duration = Duration::from_micros(1);

/// What was told, of all queues of a provider.
#[derive(Clone, Debug, Default, PartialEq)]
struct Told {
    queues: Vec<String>,
    depth: i64,
    adds: u64,
    retries: u64,
    waited: Vec<Duration>,
    worked: Vec<Duration>,
    unfinished: Duration,
    longest: Duration,
}

#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Told>>);

impl MetricsProvider for Recorder {
    fn queue_metrics(&self, queue: &str) -> Box<dyn QueueMetrics> {
        self.0.lock().queues.push(queue.to_owned());
        Box::new(self.clone())
    }
}

impl QueueMetrics for Recorder {
    fn depth(&self, change: i64) {
        self.0.lock().depth += change;
    }
    fn adds(&self, count: u64) {
        self.0.lock().adds += count;
    }
    fn queue_duration(&self, waited: Duration) {
        self.0.lock().waited.push(waited);
    }
    fn work_duration(&self, worked: Duration) {
        self.0.lock().worked.push(worked);
    }
    fn unfinished_work(&self, total: Duration) {
        self.0.lock().unfinished = total;
    }
    fn longest_running_processor(&self, longest: Duration) {
        self.0.lock().longest = longest;
    }
    fn retries(&self, count: u64) {
        self.0.lock().retries += count;
    }
}

impl Recorder {
    fn told(&self) -> Told {
        self.0.lock().clone()
    }
}

fn recorded() -> (ManualClock, Recorder, Queue<&'static str>) {
    let (time, recorder) = (ManualClock::new(), Recorder::default());
    let queue = Queue::builder().name("test").metrics(Arc::new(recorder.clone())).clock(time.clock()).build();
    (time, recorder, queue)
}

/// Scenarios 48 to 51, one after the other as in client-go's own test.
#[test]
fn metrics_of_a_key_that_is_added_again_while_it_is_processed() {
    let (time, recorder, queue) = recorded();
    queue.add("foo");
    assert_eq!((recorder.told().adds, recorder.told().depth), (1, 1));
    time.advance(50 * MICRO);
    assert_eq!(get(&queue), Some("foo"));
    assert_eq!((recorder.told().waited, recorder.told().depth), (vec![50 * MICRO], 0));

    for _ in 0..5 {
        queue.add("foo");
    }
    assert_eq!((recorder.told().adds, recorder.told().depth), (2, 1));
    time.advance(25 * MICRO);
    queue.done(&"foo");
    assert_eq!((recorder.told().worked, recorder.told().depth), (vec![25 * MICRO], 1));
    assert_eq!(get(&queue), Some("foo"));
    assert_eq!(recorder.told().waited, [50 * MICRO, 25 * MICRO], "from the add while it was processed");
    assert_eq!(recorder.told().depth, 0);

    time.advance(MS);
    queue.refresh_metrics();
    assert_eq!((recorder.told().unfinished, recorder.told().longest), (MS, MS));
    queue.done(&"foo");
    assert_eq!(recorder.told().worked, [25 * MICRO, MS]);
    queue.refresh_metrics();
    assert_eq!((recorder.told().unfinished, recorder.told().longest), (Duration::ZERO, Duration::ZERO));
}

#[test]
fn unfinished_work_is_the_sum_and_the_longest_its_greatest_part_while_draining_too() {
    let (time, recorder, queue) = recorded();
    queue.add("a");
    queue.add("b");
    let _a = queue.try_get().unwrap();
    time.advance(SECOND);
    let b = queue.try_get().unwrap();
    drop(queue.shut_down_with_drain());
    time.advance(SECOND);
    queue.refresh_metrics();
    assert_eq!((recorder.told().unfinished, recorder.told().longest), (3 * SECOND, 2 * SECOND));
    drop(b);
    assert_eq!(recorder.told().worked, [SECOND], "a guard tells as well");
}

#[test]
fn every_delayed_add_is_a_retry_unless_refused() {
    let (time, recorder, queue) = recorded();
    queue.add_after("a", Duration::ZERO);
    queue.add_after("b", SECOND);
    queue.add_after("b", 2 * SECOND);
    assert_eq!((recorder.told().retries, recorder.told().adds), (3, 1));
    time.advance(3 * SECOND);
    assert_eq!(queue.len(), 2);
    assert_eq!((recorder.told().adds, recorder.told().depth), (2, 2), "a delayed add counts once it is made");
    assert_eq!([get(&queue), get(&queue)], [Some("a"), Some("b")]);
    assert_eq!(recorder.told().waited, [3 * SECOND, 2 * SECOND], "b counts from the moment for which it was meant");
    queue.shut_down();
    queue.add_after("c", Duration::ZERO);
    queue.add("d");
    assert_eq!((recorder.told().retries, recorder.told().adds), (3, 2));
}

#[test]
fn a_queue_without_a_name_has_no_metrics() {
    let recorder = Recorder::default();
    let queue = Queue::builder().metrics(Arc::new(recorder.clone())).build();
    queue.add("a");
    drop(queue.try_get());
    queue.refresh_metrics();
    assert_eq!(recorder.told(), Told::default());
}

#[test]
fn the_global_provider_is_set_once_and_seen_by_named_queues_built_later() {
    let earlier: Queue<&str> = Queue::builder().name("earlier").build();
    let recorder = Recorder::default();
    assert!(set_metrics_provider(Arc::new(recorder.clone())));
    assert!(!set_metrics_provider(Arc::new(Recorder::default())), "only the first call counts");
    earlier.add("a");
    let later = Queue::builder().name("later").build_rate_limiting(default_item_based_rate_limiter());
    later.add("a");
    let own = Recorder::default();
    let _own: Queue<&str> = Queue::builder().name("own").metrics(Arc::new(own.clone())).build();
    assert_eq!((recorder.told().queues, recorder.told().adds), (vec!["later".to_owned()], 1));
    assert_eq!(own.told().queues, ["own"]);
}

#[test]
fn a_get_whose_copy_panics_is_none_for_the_metrics() {
    #[derive(PartialEq, Eq, Hash)]
    struct Uncopied;

    impl Clone for Uncopied {
        fn clone(&self) -> Self {
            panic!("clone");
        }
    }

    let recorder = Recorder::default();
    let queue = Queue::builder().name("q").metrics(Arc::new(recorder.clone())).build();
    queue.add(Uncopied);
    let get = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(queue.try_get())));
    assert!(get.is_err());
    assert_eq!(queue.len(), 1);
    let told = recorder.0.lock().clone();
    assert_eq!((told.adds, told.depth, told.waited), (1, 1, Vec::new()));
}

#[test]
fn metrics_that_panic_harm_nobody() {
    struct Panics;
    impl MetricsProvider for Panics {
        fn queue_metrics(&self, _: &str) -> Box<dyn QueueMetrics> {
            Box::new(Self)
        }
    }
    impl QueueMetrics for Panics {
        fn depth(&self, _: i64) {
            panic!("metrics");
        }
        fn work_duration(&self, _: Duration) {
            panic!("metrics");
        }
    }
    let queue = Queue::builder().name("test").metrics(Arc::new(Panics)).build();
    queue.add("a");
    assert_eq!(get(&queue), Some("a"));
    assert!(queue.done(&"a"));
}

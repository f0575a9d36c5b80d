//! The names of the metrics, as controller-runtime has them.

/// Attempts, by controller and result: `error`, `requeue_after`, `requeue`, `success`.
pub const RECONCILE_TOTAL: &str = "controller_runtime_reconcile_total";
/// Attempts that failed, with terminal errors too.
pub const RECONCILE_ERRORS: &str = "controller_runtime_reconcile_errors_total";
/// Attempts that failed with a terminal error.
pub const TERMINAL_RECONCILE_ERRORS: &str = "controller_runtime_terminal_reconcile_errors_total";
/// Attempts that panicked, recovered or not.
pub const RECONCILE_PANICS: &str = "controller_runtime_reconcile_panics_total";
/// Attempts that were not done within the controller's time-out.
pub const RECONCILE_TIMEOUTS: &str = "controller_runtime_reconcile_timeouts_total";
/// How long attempts took, whatever became of them.
pub const RECONCILE_TIME: &str = "controller_runtime_reconcile_time_seconds";
/// How many attempts can be made at a time.
pub const MAX_CONCURRENT_RECONCILES: &str = "controller_runtime_max_concurrent_reconciles";
/// How many are being made.
pub const ACTIVE_WORKERS: &str = "controller_runtime_active_workers";
/// The upper bounds of the buckets of [`RECONCILE_TIME`], in seconds.
pub const RECONCILE_TIME_BUCKETS_SECONDS: [f64; 40] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5,
    1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0,
];
/// The upper bounds of the buckets of the queue's two histograms, in seconds: ten times ten nanoseconds, and so on.
pub const QUEUE_BUCKETS_SECONDS: [f64; 12] = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1000.0];

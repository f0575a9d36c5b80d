//! What is shown.

use prometheus_client::encoding::text::encode;

use super::*;

fn text(metrics: &ControllerMetrics) -> String {
    let mut registry = Registry::default();
    metrics.register(&mut registry);
    let mut text = String::new();
    encode(&mut text, &registry).unwrap();
    text
}

#[test]
fn every_series_of_a_controller_is_there_at_zero_before_anything_happens() {
    let metrics = ControllerMetrics::new();
    let _series = metrics.of_controller("pods", 3);
    let _queue = metrics.of_queue("pods", true).queue_metrics("pods");
    let text = text(&metrics);
    for line in [
        r#"controller_runtime_reconcile_total{controller="pods",result="error"} 0"#,
        r#"controller_runtime_reconcile_total{controller="pods",result="requeue_after"} 0"#,
        r#"controller_runtime_reconcile_total{controller="pods",result="requeue"} 0"#,
        r#"controller_runtime_reconcile_total{controller="pods",result="success"} 0"#,
        r#"controller_runtime_reconcile_errors_total{controller="pods"} 0"#,
        r#"controller_runtime_terminal_reconcile_errors_total{controller="pods"} 0"#,
        r#"controller_runtime_reconcile_panics_total{controller="pods"} 0"#,
        r#"controller_runtime_reconcile_timeouts_total{controller="pods"} 0"#,
        r#"controller_runtime_reconcile_time_seconds_count{controller="pods"} 0"#,
        r#"controller_runtime_reconcile_time_seconds_bucket{le="0.005",controller="pods"} 0"#,
        r#"controller_runtime_reconcile_time_seconds_bucket{le="60.0",controller="pods"} 0"#,
        r#"controller_runtime_max_concurrent_reconciles{controller="pods"} 3"#,
        r#"controller_runtime_active_workers{controller="pods"} 0"#,
        r#"workqueue_depth{name="pods",controller="pods",priority="0"} 0"#,
        r#"workqueue_adds_total{name="pods",controller="pods"} 0"#,
        r#"workqueue_retries_total{name="pods",controller="pods"} 0"#,
        r#"workqueue_queue_duration_seconds_count{name="pods",controller="pods"} 0"#,
        r#"workqueue_work_duration_seconds_count{name="pods",controller="pods"} 0"#,
        r#"workqueue_unfinished_work_seconds{name="pods",controller="pods"} 0.0"#,
        r#"workqueue_longest_running_processor_seconds{name="pods",controller="pods"} 0.0"#,
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
    }
    let buckets = |name: &str| text.lines().filter(|line| line.starts_with(&format!("{name}_bucket{{"))).count();
    assert_eq!(buckets("controller_runtime_reconcile_time_seconds"), 40 + 1);
    assert_eq!(buckets("workqueue_queue_duration_seconds"), 12 + 1);
    assert_eq!(buckets("workqueue_work_duration_seconds"), 12 + 1);
}

#[test]
fn the_depth_of_a_queue_without_priorities_has_an_empty_label() {
    let metrics = ControllerMetrics::new();
    let queue = metrics.of_queue("pods", false).queue_metrics("pods");
    queue.depth(2);
    let text = text(&metrics);
    assert!(text.contains(r#"workqueue_depth{name="pods",controller="pods",priority=""} 2"#), "{text}");
}

#[test]
fn beyond_25_priorities_all_share_a_series_which_stays_balanced() {
    let metrics = ControllerMetrics::new();
    let queue = metrics.of_queue("pods", true).queue_metrics("pods");
    for priority in 0..40 {
        queue.depth_of(priority, 1);
    }
    let shown = text(&metrics);
    assert!(shown.contains(r#"priority="24"} 1"#) && !shown.contains(r#"priority="25""#), "{shown}");
    assert!(shown.contains(r#"priority="exceeded_cardinality_limit"} 15"#), "{shown}");
    for priority in 0..40 {
        queue.depth_of(priority, -1);
    }
    let shown = text(&metrics);
    let depths: Vec<_> = shown.lines().filter(|line| line.starts_with("workqueue_depth{")).collect();
    assert_eq!(depths.len(), 26);
    assert!(depths.iter().all(|line| line.ends_with(" 0")), "{depths:?}");
}

//! Attempts that block their threads, on a runtime of several.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use kubewire_controller::{Attempt, ControllerOptions, Outcome, Request};
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::support::Running;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn an_attempt_that_blocks_its_thread_costs_one_worker_and_no_request() {
    for round in 0..20 {
        let (gate, waits) = channel::<()>();
        let (waits, done) = (Mutex::new(Some(waits)), Arc::new(Semaphore::new(0)));
        let count = Arc::clone(&done);
        let reconcile = move |request: Request, _: Attempt| {
            let gate = if request.name() == "blocks" { waits.lock().take() } else { None };
            let count = Arc::clone(&count);
            async move {
                match gate {
                    Some(gate) => drop(gate.recv()),
                    None => count.add_permits(1),
                }
                Ok::<_, std::io::Error>(Outcome::Done)
            }
        };
        let running = Running::start(ControllerOptions::new().max_concurrent_reconciles(2), reconcile);
        running.add("blocks");
        (0..10).for_each(|n| running.add(&format!("web-{n}")));
        let all = timeout(Duration::from_secs(60), done.acquire_many(10)).await;
        assert!(all.is_ok(), "in round {round}: {} of 10", done.available_permits());
        drop(gate);
        running.stop().await;
    }
}

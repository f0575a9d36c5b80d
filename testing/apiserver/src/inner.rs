//! What a server's handles and tasks share.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::Registry;
use crate::access::Access;
use crate::fault::Cut;
use crate::fault_table::FaultTable;
use crate::hits::Hits;
use crate::open_count::OpenCount;
use crate::port::Port;
use crate::request_log::RequestLog;
use crate::signal::Signal;
use crate::watch_stream::Closing;
use crate::world::{Now, World};

/// What the handle, the services, the port and the watches share.
pub(crate) struct Inner {
    /// Never held across an await; user code is not called under it.
    pub(crate) world: Mutex<World>,
    pub(crate) faults: Mutex<FaultTable>,
    pub(crate) access: Mutex<Access>,
    pub(crate) log: Mutex<RequestLog>,
    pub(crate) registry: Arc<Registry>,
    pub(crate) settings: Settings,
    /// Something has changed: wakes the watches.
    pub(crate) changes: Signal,
    /// The watches that are open shall end.
    pub(crate) closings: Signal,
    /// How they shall end.
    closing: Mutex<Closing>,
    pub(crate) hits: Arc<Hits>,
    /// Requests that are not answered yet, or whose body is not read to its end.
    pub(crate) requests_open: OpenCount,
    pub(crate) is_down: AtomicBool,
    /// A grace period was added.
    timer: Notify,
    pub(crate) stopped: CancellationToken,
    pub(crate) port: Option<Port>,
}

impl fmt::Debug for Inner {
    /// Without what it holds: that may be gigabytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Inner").field("port", &self.port).finish_non_exhaustive()
    }
}

/// What a server is started with and does not change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) bookmark_interval: Duration,
    pub(crate) min_request_timeout: Duration,
    pub(crate) watch_backlog_max: usize,
}

impl Inner {
    pub(crate) fn new(world: World, settings: Settings, port: Option<Port>) -> Self {
        Self {
            registry: world.registry.clone(),
            changes: Signal::default(),
            world: Mutex::new(world),
            faults: Mutex::default(),
            access: Mutex::default(),
            log: Mutex::default(),
            settings,
            closings: Signal::default(),
            closing: Mutex::default(),
            hits: Arc::default(),
            requests_open: OpenCount::default(),
            is_down: AtomicBool::new(false),
            timer: Notify::new(),
            stopped: CancellationToken::new(),
            port,
        }
    }

    pub(crate) fn now() -> Now {
        Now { instant: Instant::now().into_std(), wall: Timestamp::now() }
    }

    /// Changes the world and tells those who wait for changes.
    pub(crate) fn write<T>(&self, write: impl FnOnce(&mut World, Now) -> T) -> T {
        let now = Self::now();
        let (written, has_new_deadline) = {
            let mut world = self.world.lock();
            let before = world.next_deadline();
            let written = write(&mut world, now);
            (written, world.next_deadline() != before)
        };
        self.changes.raise();
        if has_new_deadline {
            self.timer.notify_one();
        }
        written
    }

    /// How the watches that were open when [`closings`](Self::closings) was raised are to end.
    pub(crate) fn closing(&self) -> Closing {
        *self.closing.lock()
    }

    pub(crate) fn is_down(&self) -> bool {
        self.is_down.load(Ordering::Acquire) || self.stopped.is_cancelled()
    }

    pub(crate) fn close_watches(&self, how: Cut, name: &'static str) {
        *self.closing.lock() = Closing { how, name };
        self.closings.raise();
    }

    /// Removes pods whose grace period is over, until the server stops.
    pub(crate) async fn end_grace_periods(self: Arc<Self>) {
        loop {
            let next = self.world.lock().next_deadline().map(Instant::from_std);
            let due = async {
                match next {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.stopped.cancelled() => return,
                () = self.timer.notified() => {}
                () = due => {
                    self.write(|world, now| world.end_grace_periods(now.instant));
                }
            }
        }
    }
}

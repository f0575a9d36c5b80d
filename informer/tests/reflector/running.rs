//! A running reflector with everything around it.

use std::sync::Arc;
use std::time::Duration;

use kubewire_informer::reflector::{Reflector, ReflectorMonitor, ReflectorOptions, ReflectorPhase, RunError};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::fake_server::{FakeListerWatcher, FakeServer, fake};
use super::fake_store::FakeStore;

pub(crate) struct Running {
    pub(crate) server: FakeServer,
    pub(crate) store: Arc<FakeStore>,
    pub(crate) stop: CancellationToken,
    pub(crate) monitor: ReflectorMonitor,
    pub(crate) task: JoinHandle<Result<(), RunError>>,
}

impl Running {
    pub(crate) fn start(watch_list: bool, options: ReflectorOptions) -> Self {
        Self::with_store(watch_list, options, FakeStore::default())
    }

    pub(crate) fn with_store(watch_list: bool, options: ReflectorOptions, store: FakeStore) -> Self {
        let (lister_watcher, server) = fake(watch_list);
        Self::with(lister_watcher, server, options, store)
    }

    pub(crate) fn with(
        lister_watcher: FakeListerWatcher,
        server: FakeServer,
        options: ReflectorOptions,
        store: FakeStore,
    ) -> Self {
        let store = Arc::new(store);
        let reflector = Reflector::with_options(lister_watcher, Arc::clone(&store), options);
        let (monitor, stop) = (reflector.monitor(), CancellationToken::new());
        let task = tokio::spawn(reflector.run(stop.clone()));
        Self { server, store, stop, monitor, task }
    }

    /// Stops, and waits for the end; no time may pass until then.
    pub(crate) async fn stop(self) {
        let before = tokio::time::Instant::now();
        self.stop.cancel();
        assert_eq!(self.task.await.expect("no panic"), Ok(()));
        assert_eq!(before.elapsed(), Duration::ZERO, "the stop takes no time");
        assert_eq!(self.monitor.phase(), ReflectorPhase::Stopped);
    }
}

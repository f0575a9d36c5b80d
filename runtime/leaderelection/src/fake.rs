//! A lock for tests: in memory, and it fails, stands still and is changed on demand.

use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::{Lock, LockError, LockReference, Record, Versioned};

/// A lock in memory. Clones share it: give one to each candidate.
///
/// ```
/// use kubewire_leaderelection::{Elector, fake::FakeLock};
/// use tokio_util::sync::CancellationToken;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?.block_on(async {
/// let lock = FakeLock::new();
/// let elector = Elector::builder(lock.clone(), "a").build()?;
/// let (stop, leadership) = (CancellationToken::new(), elector.leadership());
/// let running = tokio::spawn({ let stop = stop.clone(); async move { elector.run(stop).await } });
/// let term = leadership.wait_for_leadership().await.expect("the elector is there");
/// assert!(term.is_valid());
///
/// lock.fail(true); // From now on nothing works.
/// term.ended().await;
/// assert!(!leadership.is_leader());
/// assert!(running.await?.is_err());
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct FakeLock {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    is_blocked: watch::Sender<bool>,
}

/// Guarded by `Shared::state`.
#[derive(Debug, Default)]
struct State {
    object: Option<Versioned>,
    version: u64,
    fails: bool,
    calls: Vec<FakeCall>,
}

/// What was asked of a fake lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FakeCall {
    /// It was read.
    Get,
    /// It was to be made.
    Create(Record),
    /// It was to be replaced.
    Update(Record),
}

impl FakeLock {
    /// A lock whose object is not there yet.
    pub fn new() -> Self {
        Self { shared: Arc::new(Shared { state: Mutex::default(), is_blocked: watch::Sender::new(false) }) }
    }

    /// Whether calls are to fail, those under way too.
    pub fn fail(&self, fails: bool) {
        self.shared.state.lock().fails = fails;
    }

    /// Whether calls are to stand still until they are let go on.
    pub fn block(&self, blocked: bool) {
        self.shared.is_blocked.send_replace(blocked);
    }

    /// What it says.
    pub fn record(&self) -> Option<Record> {
        self.shared.state.lock().object.as_ref().map(|object| object.record.clone())
    }

    /// Writes it by force, as a person with all rights.
    pub fn set(&self, record: Option<Record>) {
        let mut state = self.shared.state.lock();
        state.version += 1;
        let version = state.version.to_string();
        state.object = record.map(|record| Versioned { record, version });
    }

    /// What was asked since the last time.
    pub fn take_calls(&self) -> Vec<FakeCall> {
        std::mem::take(&mut self.shared.state.lock().calls)
    }

    async fn call<T>(
        &self,
        call: FakeCall,
        answer: impl FnOnce(&mut State) -> Result<T, LockError> + Send,
    ) -> Result<T, LockError> {
        self.shared.state.lock().calls.push(call);
        // It never fails: the sender is ours.
        let _ = self.shared.is_blocked.subscribe().wait_for(|blocked| !blocked).await;
        let mut state = self.shared.state.lock();
        if state.fails {
            return Err(LockError::Request("the fake lock fails".into()));
        }
        answer(&mut state)
    }
}

impl Default for FakeLock {
    fn default() -> Self {
        Self::new()
    }
}

impl State {
    fn put(&mut self, record: Record) -> Versioned {
        self.version += 1;
        let object = Versioned { record, version: self.version.to_string() };
        self.object = Some(object.clone());
        object
    }
}

impl Lock for FakeLock {
    fn get(&self) -> BoxFuture<'_, Result<Option<Versioned>, LockError>> {
        self.call(FakeCall::Get, |state| Ok(state.object.clone())).boxed()
    }

    fn create(&self, record: Record) -> BoxFuture<'_, Result<Versioned, LockError>> {
        self.call(FakeCall::Create(record.clone()), |state| match state.object {
            Some(_) => Err(LockError::Conflict),
            None => Ok(state.put(record)),
        })
        .boxed()
    }

    fn update(&self, replaced: Versioned) -> BoxFuture<'_, Result<Versioned, LockError>> {
        self.call(FakeCall::Update(replaced.record.clone()), move |state| match &state.object {
            None => Err(LockError::NotFound),
            Some(object) if object.version != replaced.version => Err(LockError::Conflict),
            Some(_) => Ok(state.put(replaced.record)),
        })
        .boxed()
    }

    fn reference(&self) -> LockReference {
        LockReference {
            api_version: "fake/v1".to_owned(),
            kind: "Fake".to_owned(),
            namespace: String::new(),
            name: "fake".to_owned(),
        }
    }
}

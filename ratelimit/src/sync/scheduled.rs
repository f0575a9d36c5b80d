//! What the models run instead: shuttle decides at each lock, flag, wake-up and wait who goes on.

use std::any::Any;
use std::cell::RefCell;
use std::convert::Infallible;
use std::future::Future;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;

use hashbrown::HashMap;
pub use shuttle::sync::atomic::{AtomicBool, AtomicI64, AtomicU64};
pub use shuttle::thread;

/// A task of shuttle, within one run.
type TaskId = usize;

thread_local! {
    /// How many locks each task of the present run holds. All tasks of a run are on one thread.
    static HELD: RefCell<HashMap<TaskId, usize>> = RefCell::default();
    static COMPLAINTS: RefCell<Vec<String>> = RefCell::default();
}

fn me() -> TaskId {
    shuttle::current::try_get_current_task().map_or(usize::MAX, usize::from)
}

fn note_held(task: TaskId, change: impl FnOnce(&mut usize)) {
    HELD.with_borrow_mut(|held| change(held.entry(task).or_default()));
}

/// To be called where user code runs, an object is dropped or a waker is touched: complains if a lock is held.
pub fn expect_no_lock(what: &str) {
    let held = HELD.with_borrow(|held| held.get(&me()).copied().unwrap_or_default());
    if held > 0 {
        complain(format!("{what} under {held} lock(s)"));
    }
}

/// Something is wrong. A panic would not do: those of handlers and of objects are caught.
pub fn complain(what: String) {
    COMPLAINTS.with_borrow_mut(|complaints| complaints.push(what));
}

/// What was complained of in this run.
pub fn complaints() -> Vec<String> {
    COMPLAINTS.take()
}

/// A new run begins.
pub fn begin() {
    HELD.take();
    COMPLAINTS.take();
}

/// Before a step of something that is none of shuttle's: others may go on.
fn point(what: &str) {
    expect_no_lock(what);
    AtomicBool::default().load(Ordering::SeqCst);
}

/// Shuttle's mutex in the shape of parking_lot's, which counts what is held.
#[derive(Debug, Default)]
pub struct Mutex<T>(shuttle::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub fn new(value: T) -> Self {
        Self(shuttle::sync::Mutex::new(value))
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        let guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let task = me();
        note_held(task, |held| *held += 1);
        MutexGuard { guard: Some(guard), task }
    }
}

pub struct MutexGuard<'a, T> {
    /// `None` only while it is dropped.
    guard: Option<shuttle::sync::MutexGuard<'a, T>>,
    task: TaskId,
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.guard.as_ref().expect("held until it is dropped")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.guard.as_mut().expect("held until it is dropped")
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        note_held(self.task, |held| *held = held.saturating_sub(1));
        self.guard = None;
        // What comes next may be a step that shuttle does not see.
        if !std::thread::panicking() {
            AtomicBool::default().load(Ordering::SeqCst);
        }
    }
}

/// tokio's own, with a point before each step at which others may go on. Within a step nobody does.
#[derive(Debug, Default)]
pub struct Notify {
    inner: tokio::sync::Notify,
}

impl Notify {
    pub fn new() -> Self {
        Self::default()
    }

    pub fn notify_one(&self) {
        point("a waker is woken or taken in");
        self.inner.notify_one();
    }

    pub fn notify_waiters(&self) {
        point("a waker is woken or taken in");
        self.inner.notify_waiters();
    }

    pub fn notified(&self) -> Notified<'_> {
        point("a waker is woken or taken in");
        Notified { inner: self.inner.notified() }
    }
}

#[pin_project::pin_project]
pub struct Notified<'a> {
    #[pin]
    inner: tokio::sync::futures::Notified<'a>,
}

impl Notified<'_> {
    pub fn enable(self: Pin<&mut Self>) -> bool {
        point("a waker is woken or taken in");
        self.project().inner.enable()
    }
}

impl Future for Notified<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        point("a waker is woken or taken in");
        self.project().inner.poll(cx)
    }
}

/// Spawns tasks and threads of shuttle's.
#[derive(Clone, Debug)]
pub struct Handle;

impl Handle {
    pub fn current() -> Self {
        Self
    }

    pub fn spawn<T: Send + 'static>(&self, task: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
        point("a task is spawned");
        JoinHandle(shuttle::future::spawn(task))
    }

    pub fn spawn_blocking(&self, task: impl FnOnce() + Send + 'static) {
        point("a thread is spawned");
        drop(thread::spawn(task));
    }

    pub fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        shuttle::future::block_on(future)
    }
}

#[derive(Debug)]
pub struct JoinHandle<T>(shuttle::future::JoinHandle<T>);

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx).map_err(|_| JoinError)
    }
}

/// The task was dropped. One that panics ends the model.
#[derive(Debug)]
pub struct JoinError;

impl JoinError {
    pub fn try_into_panic(self) -> Result<Box<dyn Any + Send>, Self> {
        Err(self)
    }
}

/// tokio-util's, of a task of shuttle's.
#[derive(Debug)]
pub struct AbortOnDropHandle<T>(JoinHandle<T>);

impl<T> AbortOnDropHandle<T> {
    pub fn new(task: JoinHandle<T>) -> Self {
        Self(task)
    }

    pub fn abort(&self) {
        self.0.0.abort();
    }
}

impl<T> Future for AbortOnDropHandle<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx)
    }
}

impl<T> Drop for AbortOnDropHandle<T> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.abort();
        }
    }
}

/// In a model no time passes but that of a manual clock.
pub async fn sleep(_: Duration) {
    match std::future::pending::<Infallible>().await {}
}

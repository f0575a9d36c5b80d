//! All handlers of one informer: client-go's `sharedProcessor`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kubewire_indexer::{Indexer, Object, ObjectKey};
use kubewire_ratelimit::Clock;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;
use tracing::Instrument;

use crate::health::Health;
use crate::listener::{AnyListener, Listener, let_go};
use crate::metrics::Metrics;
use crate::notification::Told;
use crate::resync::{self, ResyncTimer};
use crate::slow_calls::SlowCalls;
use crate::sync::{Handle, Mutex, Notify};
use crate::{HandlerOptions, HandlerStatus, Notification, ResourceEventHandler, Stopped};

/// Who is told. All changes come from one task, so that a newcomer can be told of the store between two of them:
/// nothing is lost and nothing is told twice, without a lock around the store.
pub(crate) struct Listeners<O: Object> {
    /// Guards the set of listeners and their resync timers. Nothing is called, woken or dropped under it.
    state: Mutex<State<O>>,
    /// Told when a newcomer waits for the store.
    joining: Notify,
    /// The informer's period; what a handler asks for that says nothing.
    resync_period: Duration,
    health: Arc<Health>,
    clock: Clock,
    /// The tasks of the handlers.
    tasks: TaskTracker,
}

struct State<O: Object> {
    phase: Phase,
    entries: Vec<Entry<O>>,
    /// How many were ever added, for their names.
    added: u64,
    /// Who has left and whose metrics do not know it yet. Empty without metrics, and half a second later.
    left: Vec<Arc<Listener<O>>>,
    /// Those of `entries` that are told of changes, as a list that can be walked without the lock.
    joined: Arc<[Arc<Listener<O>>]>,
    /// How often resync checks are made; set at the start.
    check_period: Duration,
}

enum Phase {
    New,
    Running(Handle),
    Stopped,
}

struct Entry<O: Object> {
    listener: Arc<Listener<O>>,
    timer: ResyncTimer,
    /// Until the start. A subscription has none.
    handler: Option<Handler<O>>,
    /// Whether a task calls the handler, and so will say when the last call has ended.
    has_task: bool,
    /// Whether it has yet to be told of what is in the store.
    is_new: bool,
}

/// A handler that nobody calls yet.
struct Handler<O> {
    handler: Box<dyn ResourceEventHandler<O>>,
    own_thread: bool,
}

impl<O: Object> Listeners<O> {
    pub(crate) fn new(resync_period: Duration, health: Arc<Health>, clock: Clock) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::new(State {
                phase: Phase::New,
                entries: Vec::new(),
                added: 0,
                left: Vec::new(),
                joined: Arc::from([]),
                check_period: Duration::ZERO,
            }),
            joining: Notify::new(),
            resync_period,
            health,
            clock,
            tasks: TaskTracker::new(),
        })
    }

    /// Adds a listener, with a handler or (for a subscription) without one.
    pub(crate) fn add(
        self: &Arc<Self>,
        name: String,
        options: &HandlerOptions,
        handler: Option<Box<dyn ResourceEventHandler<O>>>,
    ) -> Result<Arc<Listener<O>>, Stopped> {
        let timer = ResyncTimer::new(options.resync_period.unwrap_or(self.resync_period), self.clock.now());
        let handler = handler.map(|handler| Handler { handler, own_thread: options.own_thread });
        let mut state = self.state.lock();
        let runtime = match &state.phase {
            Phase::Stopped => {
                drop(state);
                return Err(Stopped);
            }
            Phase::New => None,
            Phase::Running(runtime) => Some(runtime.clone()),
        };
        let (name, health, clock) = (state.free_name(name), Arc::clone(&self.health), self.clock.clone());
        let listener = Listener::new(name, options.buffering, health, clock, Arc::downgrade(self));
        let mut entry = Entry { listener: Arc::clone(&listener), timer, handler, has_task: false, is_new: false };
        // With a token from under the lock, so that a stop waits for what is spawned after it.
        let handler = runtime.as_ref().and_then(|_| Some((entry.handler.take()?, self.tasks.token())));
        entry.has_task = handler.is_some();
        entry.is_new = runtime.is_some();
        state.entries.push(entry);
        let former = state.publish();
        drop(state);
        drop(former);
        match runtime {
            Some(runtime) => {
                if let Some((handler, token)) = handler {
                    self.spawn(Arc::clone(&listener), handler, token, &runtime);
                }
                self.joining.notify_one();
            }
            None => listener.join(),
        }
        Ok(listener)
    }

    /// Lets a listener go. It is closed already.
    pub(crate) fn remove(&self, listener: &Listener<O>) {
        let has_metrics = self.health.metrics().is_some();
        let mut state = self.state.lock();
        let place = state.entries.iter().position(|entry| std::ptr::eq(&*entry.listener, listener));
        let mut entry = place.map(|place| state.entries.swap_remove(place));
        let former = state.publish();
        if let Some(entry) = &entry
            && has_metrics
        {
            state.left.push(Arc::clone(&entry.listener));
        }
        drop(state);
        drop(former);
        if entry.as_ref().is_some_and(|entry| !entry.has_task) {
            listener.end();
        }
        if let Some(Handler { handler, .. }) = entry.as_mut().and_then(|entry| entry.handler.take()) {
            let_go(handler, listener.name(), &self.health.resource);
        }
    }

    /// Begins to call the handlers. Says how often resync checks are to be made.
    pub(crate) fn start(&self, runtime: Handle) -> Duration {
        let mut state = self.state.lock();
        let asked = state.entries.iter().map(|entry| entry.timer.asked());
        let check_period = resync::check_period(self.resync_period, asked);
        state.check_period = check_period;
        let handlers: Vec<_> = state
            .entries
            .iter_mut()
            .filter_map(|entry| {
                entry.has_task = entry.handler.is_some();
                Some((Arc::clone(&entry.listener), entry.handler.take()?, self.tasks.token()))
            })
            .collect();
        state.phase = Phase::Running(runtime.clone());
        drop(state);
        for (listener, handler, token) in handlers {
            self.spawn(listener, handler, token, &runtime);
        }
        check_period
    }

    /// Begins to call a handler. Its task counts among those that are waited for since there is the token.
    fn spawn(&self, listener: Arc<Listener<O>>, handler: Handler<O>, token: TaskTrackerToken, runtime: &Handle) {
        let Handler { handler, own_thread } = handler;
        let span = tracing::info_span!("handler", resource = self.health.resource, handler = listener.name());
        let calls = self.tasks.track_future(listener.run(handler).instrument(span));
        if own_thread {
            let inside = runtime.clone();
            runtime.spawn_blocking(move || inside.block_on(calls));
        } else {
            runtime.spawn(calls);
        }
        drop(token);
    }

    /// Takes nobody in any more, and lets everybody go after the call that is running.
    pub(crate) fn stop(&self) {
        let mut state = self.state.lock();
        state.phase = Phase::Stopped;
        let entries = std::mem::take(&mut state.entries);
        let left = std::mem::take(&mut state.left);
        let former = state.publish();
        drop(state);
        drop((left, former));
        // Everybody is let go before anything of the user's is dropped.
        let garbage: Vec<_> = entries.iter().map(|entry| entry.listener.close()).collect();
        entries.iter().filter(|entry| !entry.has_task).for_each(|entry| entry.listener.end());
        self.tasks.close();
        for Entry { listener, handler, .. } in entries {
            if let Some(Handler { handler, .. }) = handler {
                let_go(handler, listener.name(), &self.health.resource);
            }
        }
        drop(garbage);
    }

    /// Waits until all handlers' tasks have ended. Cancel-safe.
    pub(crate) async fn ended(&self) {
        self.tasks.wait().await;
    }

    /// Waits until there is a newcomer to [`welcome`](Self::welcome). Cancel-safe.
    pub(crate) async fn joining(&self) {
        self.joining.notified().await;
    }

    /// Tells newcomers of all that is in the store, and from now on of its changes. Only the task that changes
    /// the store may call it.
    pub(crate) fn welcome(&self, indexer: &Indexer<O>) {
        let newcomers: Vec<_> = {
            let state = self.state.lock();
            state.entries.iter().filter(|entry| entry.is_new).map(|entry| Arc::clone(&entry.listener)).collect()
        };
        if newcomers.is_empty() {
            return;
        }
        let now = self.clock.now();
        let told = |(key, object): (&ObjectKey, &O)| {
            let notification = Notification::Added { object: object.clone(), is_in_initial_list: true };
            Told { key: key.clone(), notification, resync: false }
        };
        let list = indexer.list();
        let mut entries = list.entries().map(told).peekable();
        while entries.peek().is_some() {
            tell(&newcomers, entries.by_ref().take(WELCOME_LEN).collect(), now);
        }
        let mut state = self.state.lock();
        for entry in &mut state.entries {
            entry.is_new &= !newcomers.iter().any(|listener| Arc::ptr_eq(listener, &entry.listener));
        }
        let former = state.publish();
        drop(state);
        drop(former);
        newcomers.iter().for_each(|listener| listener.join());
    }

    /// Puts notifications into the buffers of all for whom they are, into each in one go. Says whether there is anybody.
    pub(crate) fn tell(&self, told: Vec<Told<O>>) -> bool {
        let joined = Arc::clone(&self.state.lock().joined);
        if joined.is_empty() {
            return false;
        }
        tell(&joined, told, self.clock.now());
        true
    }

    /// A resync check: says whether any listener is due.
    pub(crate) fn check_resync(&self, now: Instant) -> bool {
        let mut state = self.state.lock();
        let check_period = state.check_period;
        let mut any = false;
        for entry in &mut state.entries {
            let due = entry.timer.check(check_period, entry.listener.is_behind_with_resync(), now);
            entry.listener.set_due(due);
            any |= due;
        }
        any
    }

    /// The first list is in the store, and everybody has been told of it.
    pub(crate) fn store_is_synced(&self) {
        self.health.store_synced.set();
        let joined = Arc::clone(&self.state.lock().joined);
        joined.iter().for_each(|listener| listener.check_synced());
    }

    pub(crate) fn status(&self) -> Vec<HandlerStatus> {
        self.present().iter().map(|listener| listener.status()).collect()
    }

    /// Looks whether any has been at one notification for too long.
    pub(crate) fn look(&self, slow_calls: &mut SlowCalls) {
        let now = self.clock.now();
        if slow_calls.rang(now) {
            self.present().iter().for_each(|listener| listener.look(slow_calls, now));
        }
    }

    /// Tells the metrics how each is doing, and who has left. One at a time.
    pub(crate) fn tell_metrics(&self, metrics: &Metrics) {
        let left = std::mem::take(&mut self.state.lock().left);
        for listener in &left {
            listener.tell(metrics);
            metrics.tell(|metrics| metrics.handler_removed(listener.name()));
        }
        // Behind them: one of these may have taken the name of one of those.
        self.present().iter().for_each(|listener| listener.tell(metrics));
    }

    fn present(&self) -> Vec<Arc<Listener<O>>> {
        self.state.lock().entries.iter().map(|entry| Arc::clone(&entry.listener)).collect()
    }

    /// How many handlers' tasks have not ended.
    pub(crate) fn running(&self) -> usize {
        self.tasks.len()
    }
}

/// What a newcomer is told of the store at a time: it is freed piece by piece.
const WELCOME_LEN: usize = 256;

/// Puts notifications into the buffers of all these: by themselves into the buffer of one, and of several they are shared.
fn tell<O: Object>(listeners: &[Arc<Listener<O>>], told: Vec<Told<O>>, now: Instant) {
    if let [only] = listeners {
        only.push(told, now);
        return;
    }
    let told = Arc::new(told);
    listeners.iter().for_each(|listener| listener.push_shared(Arc::clone(&told), now));
}

impl<O: Object> State<O> {
    /// This name, or where somebody has it already, with a number that nobody else has.
    fn free_name(&mut self, name: String) -> String {
        self.added += 1;
        let is_taken = |name: &str| self.entries.iter().any(|entry| entry.listener.name() == name);
        if !is_taken(&name) {
            return name;
        }
        (self.added..).map(|number| format!("{name}-{number}")).find(|name| !is_taken(name)).unwrap_or(name)
    }

    /// Makes the list of those who are told. Gives back the former one.
    fn publish(&mut self) -> Arc<[Arc<Listener<O>>]> {
        let joined = self.entries.iter().filter(|entry| !entry.is_new).map(|entry| Arc::clone(&entry.listener));
        std::mem::replace(&mut self.joined, joined.collect())
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use super::*;
    use crate::listener::AnyListener;

    struct Pod(&'static str);

    impl kubewire_indexer::Meta for Pod {
        fn id(&self) -> kubewire_indexer::Id<'_> {
            kubewire_indexer::Id::new("ns", self.0).uid(self.0).resource_version("1")
        }
    }

    fn initial(name: &'static str) -> Vec<Told<Arc<Pod>>> {
        let object = Arc::new(Pod(name));
        let notification = Notification::Added { object: Arc::clone(&object), is_in_initial_list: true };
        vec![Told { key: object.key(), notification, resync: false }]
    }

    /// The list comes in two batches; the handler is at the first when it is removed.
    #[test]
    fn a_handler_that_is_removed_before_it_was_told_of_all_of_the_first_list_never_was_synced() {
        let listeners = Listeners::new(Duration::ZERO, Arc::new(Health::default()), Clock::system());
        let add = |name: &str| listeners.add(name.to_owned(), &HandlerOptions::new(), None).unwrap();
        let (removed, stays) = (add("removed"), add("stays"));
        let mut cx = Context::from_waker(Waker::noop());
        listeners.tell(initial("a"));
        assert!(removed.poll_next(&mut cx).is_ready() && stays.poll_next(&mut cx).is_ready());
        AnyListener::remove(&*removed);
        listeners.tell(initial("b"));
        listeners.store_is_synced();
        assert!(matches!(removed.poll_next(&mut cx), Poll::Ready(None)));
        assert!(!removed.synced().is_set(), "it was not told of b");
        assert!(stays.poll_next(&mut cx).is_ready() && stays.poll_next(&mut cx).is_pending());
        assert!(stays.synced().is_set());
    }
}

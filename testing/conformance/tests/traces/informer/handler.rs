//! Handlers that write down what they are told.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use futures::StreamExt;
use kubewire_conformance::{Stage, Told};
use kubewire_indexer::Deleted;
use kubewire_informer::{HandlerOptions, Informer, Notification, Registration, ResourceEventHandler, Stopped};
use kubewire_ratelimit::ManualClock;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::sync::watch;

use super::object::Thing;
use crate::record::Form;

/// A notification as the traces write it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Note {
    r#type: String,
    object: Thing,
    #[serde(skip_serializing_if = "Option::is_none")]
    old: Option<Thing>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    initial: bool,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    tombstone: bool,
}

/// A handler of the script.
pub(crate) struct Handler {
    pub(crate) registration: Registration,
    /// True while it is not to return; `None` where it cannot be paused.
    paused: Option<watch::Sender<bool>>,
}

impl Handler {
    /// A handler that is called.
    pub(crate) fn called<O: Form>(
        informer: &Informer<O>,
        options: HandlerOptions,
        log: NamedLog,
    ) -> Result<Self, Stopped> {
        Ok(Self { registration: informer.add_handler_with(log, options)?, paused: None })
    }

    /// A handler that reads a stream, so that it can take its time.
    pub(crate) fn subscribed<O: Form>(
        informer: &Informer<O>,
        options: HandlerOptions,
        log: NamedLog,
        stage: &Stage,
    ) -> Result<Self, Stopped> {
        let mut subscription = informer.subscribe_with(options)?;
        let registration = subscription.registration();
        let (paused, mut pause) = watch::channel(false);
        stage.spawn(async move {
            while let Some(notification) = subscription.next().await {
                // The script is over if the sender is gone.
                if pause.wait_for(|paused| !paused).await.is_err() {
                    return;
                }
                log.write(notification);
            }
        });
        Ok(Self { registration, paused: Some(paused) })
    }

    pub(crate) fn pause(&self, pause: bool) -> Result<(), String> {
        let paused = self.paused.as_ref().ok_or("a case that pauses handlers must say that it needs `pause`")?;
        paused.send_replace(pause);
        Ok(())
    }
}

/// What the handlers of a case were told since the last look.
#[derive(Clone)]
pub(crate) struct Log {
    time: ManualClock,
    start: Instant,
    state: Arc<Mutex<LogState>>,
}

/// Guarded by `Log::state`.
#[derive(Default)]
struct LogState {
    told: BTreeMap<String, Vec<Told<Note>>>,
    /// Whether the instant is to be written beside what is told.
    show_time: bool,
}

impl Log {
    pub(crate) fn new(time: ManualClock) -> Self {
        Self { start: time.now(), time, state: Arc::default() }
    }

    pub(crate) fn of(&self, name: &str) -> NamedLog {
        NamedLog { name: name.to_owned(), log: self.clone() }
    }

    pub(crate) fn show_time(&self, show: bool) {
        self.state.lock().show_time = show;
    }

    pub(crate) fn take(&self) -> BTreeMap<String, Vec<Told<Note>>> {
        std::mem::take(&mut self.state.lock().told)
    }
}

/// One handler's part of the log.
pub(crate) struct NamedLog {
    name: String,
    log: Log,
}

impl NamedLog {
    fn write<O: Form>(&self, notification: Notification<O>) {
        let one = match notification {
            Notification::Added { object, is_in_initial_list } => {
                Note { initial: is_in_initial_list, ..Note::of("add", &object) }
            }
            Notification::Updated { old, new } => Note { old: Some(Thing::of(&old)), ..Note::of("update", &new) },
            Notification::Deleted(deleted) => Note {
                tombstone: deleted.is_final_state_unknown(),
                ..deleted.last_known().map(|object| Note::of("delete", object)).unwrap_or_default()
            },
            other => Note { r#type: format!("{other:?}"), ..Note::default() },
        };
        let mut state = self.log.state.lock();
        let since_start = (self.log.time.now() - self.log.start).as_nanos();
        let at_ns = state.show_time.then(|| u64::try_from(since_start).unwrap_or(u64::MAX));
        state.told.entry(self.name.clone()).or_default().push(Told::One { one, at_ns });
    }
}

impl<O: Form> ResourceEventHandler<O> for NamedLog {
    fn on_add(&mut self, object: O, is_in_initial_list: bool) {
        self.write(Notification::Added { object, is_in_initial_list });
    }

    fn on_update(&mut self, old: O, new: O) {
        self.write(Notification::Updated { old, new });
    }

    fn on_delete(&mut self, deleted: Deleted<O>) {
        self.write(Notification::Deleted(deleted));
    }
}

impl Note {
    fn of<O: Form>(kind: &str, object: &O) -> Self {
        Self { r#type: kind.to_owned(), object: Thing::of(object), ..Self::default() }
    }
}

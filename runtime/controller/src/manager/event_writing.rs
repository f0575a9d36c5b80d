//! The task behind an event recorder, as a runnable.

use std::fmt;

use futures::future::BoxFuture;
use kubewire_events::EventWriter;
use parking_lot::Mutex;

use crate::{BoxError, Group, RunContext, Runnable};

/// Writes the events of a recorder. It begins with the servers and ends with them, after all that may record something; what is
/// left then is written, for the recorder's flush time-out at most, or until the cancellation.
pub(super) struct EventWriting {
    name: String,
    /// Taken by the run.
    writer: Mutex<Option<EventWriter>>,
}

impl EventWriting {
    pub(super) fn new(controller: &str, writer: EventWriter) -> Self {
        Self { name: format!("events of {controller}"), writer: Mutex::new(Some(writer)) }
    }
}

impl Runnable for EventWriting {
    fn name(&self) -> &str {
        &self.name
    }

    fn run(&self, cx: RunContext) -> BoxFuture<'_, Result<(), BoxError>> {
        Box::pin(async move {
            let writer = self.writer.lock().take();
            let Some(writer) = writer else { return Ok(()) };
            if let Some(flushed) = cx.cancel.run_until_cancelled(writer.run(cx.stop)).await
                && flushed.left > 0
            {
                tracing::warn!(left = flushed.left, "events could not be written in time");
            }
            Ok(())
        })
    }

    fn group(&self) -> Group {
        Group::Http
    }
}

impl fmt::Debug for EventWriting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EventWriting").field(&self.name).finish()
    }
}

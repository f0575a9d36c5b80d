//! One index of a store: its name, its function, and how that function has failed.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::prepared::Prepared;
use crate::sync::Mutex;
use crate::{BoxError, IndexFailure, IndexFunc};

pub(crate) struct Definition<K, V> {
    pub(crate) name: Arc<str>,
    function: IndexFunc<V>,
    /// The lock covers the record alone, and nothing is called under it.
    failure: Mutex<Option<IndexFailure<K>>>,
}

impl<K: Clone, V> Definition<K, V> {
    pub(crate) fn new(name: Arc<str>, function: IndexFunc<V>) -> Self {
        Self { name, function, failure: Mutex::new(None) }
    }

    /// Computes the values of an entry. Where the function fails or panics there are none, and the failure is
    /// recorded. To be called without the store's lock. Does not panic.
    pub(crate) fn prepare(&self, key: &K, value: &V, prepared: &mut Prepared) {
        match self.call(value, prepared) {
            Ok(()) => prepared.accept(),
            Err(error) => {
                prepared.refuse();
                // Printing a user's error is user code as well, and so is dropping it.
                let message = catch_unwind(AssertUnwindSafe(move || error.to_string()));
                self.record(key, message.unwrap_or_else(|_| "its error cannot be printed".to_owned()));
            }
        }
    }

    /// Calls the function and nothing else; a panic becomes an error.
    pub(crate) fn call(&self, value: &V, prepared: &mut Prepared) -> Result<(), BoxError> {
        catch_unwind(AssertUnwindSafe(|| self.function.call(value, &mut prepared.values())))
            .unwrap_or_else(|payload| Err(panic_message(&*payload).into()))
    }

    pub(crate) fn failure(&self) -> Option<IndexFailure<K>> {
        self.failure.lock().clone()
    }

    fn record(&self, key: &K, message: String) {
        // A key that cannot be cloned leaves its predecessor's in the record.
        let key = catch_unwind(AssertUnwindSafe(|| key.clone())).ok();
        let (count, old) = {
            let mut last = self.failure.lock();
            let count = 1 + last.as_ref().map_or(0, |last| last.count);
            match (key, last.as_mut()) {
                (Some(key), _) => {
                    let failure = IndexFailure { index: self.name.clone(), count, key, message: message.clone() };
                    (count, last.replace(failure))
                }
                (None, last) => {
                    last.into_iter().for_each(|last| last.count = count);
                    (count, None)
                }
            }
        };
        let _ = catch_unwind(AssertUnwindSafe(|| drop(old)));
        // A function that fails for each of 100,000 objects writes 17 lines, not 100,000.
        if count.is_power_of_two() {
            tracing::error!(
                index = &*self.name,
                failures = count,
                error = message,
                "an index function fails: the object is kept and has no values in this index"
            );
        }
    }
}

pub(crate) fn panic_message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    format!("panicked: {}", text.unwrap_or("without a message"))
}

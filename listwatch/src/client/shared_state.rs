//! What a representation keeps beside its objects, once for all that are read with the same options.

use std::any::Any;
use std::sync::{Arc, OnceLock};

/// Room for one value, of whatever type the representation likes. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedState(Arc<OnceLock<Arc<dyn Any + Send + Sync>>>);

impl SharedState {
    /// The value, made by who is first to ask. Cost: no lock once it is there.
    ///
    /// A list-watch has one representation, and so asks for one type. Who asks for another nevertheless gets a value
    /// of its own.
    pub(crate) fn get<T: Any + Send + Sync>(&self, make: impl Fn() -> T) -> Arc<T> {
        let state = self.0.get_or_init(|| Arc::new(make()));
        Arc::clone(state).downcast().unwrap_or_else(|_| Arc::new(make()))
    }
}

//! Names of informers, each held by one at a time.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::metrics::InformerLabels;

/// The names that are held. Guards nothing else, and nothing is called under it.
static HELD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// The name under which the [metrics](crate::metrics) of informers run; as client-go's `InformerName`. One without a
/// name has none.
///
/// Several informers of different resources may share a name, so that one is enough for a controller. Held by this and
/// its clones, those of informers that are not yet stopped and gone among them; then it can be had again.
///
/// ```
/// use kubewire_informer::InformerName;
///
/// let name = InformerName::new("pod-controller")?;
/// assert!(InformerName::new("pod-controller").is_err());
/// drop(name);
/// InformerName::new("pod-controller")?;
/// # Ok::<_, kubewire_informer::InformerNameError>(())
/// ```
#[derive(Clone)]
pub struct InformerName {
    held: Arc<Held>,
}

/// Why a name was not given.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InformerNameError {
    /// It is empty.
    #[error("the name of an informer is empty; say which part of the program it belongs to")]
    Empty,
    /// It is held by somebody else in this process.
    #[error("the name {0:?} is held already; clone the one that there is, or choose another")]
    Taken(String),
}

impl InformerName {
    /// Takes a name that nobody holds.
    pub fn new(name: impl Into<String>) -> Result<Self, InformerNameError> {
        let name = name.into();
        if name.is_empty() {
            return Err(InformerNameError::Empty);
        }
        if !HELD.lock().insert(name.clone()) {
            return Err(InformerNameError::Taken(name));
        }
        Ok(Self { held: Arc::new(Held { name, reserved: Mutex::default() }) })
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.held.name
    }

    /// Reserves the metrics of one resource; `None` where they are somebody else's.
    pub(crate) fn reserve(&self, resource: &str) -> Option<Reservation> {
        let labels = InformerLabels::new(self.as_str(), resource);
        let is_new = self.held.reserved.lock().insert(labels.clone());
        is_new.then(|| Reservation { name: self.clone(), labels })
    }
}

impl fmt::Debug for InformerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("InformerName").field(&self.as_str()).finish()
    }
}

struct Held {
    name: String,
    /// What has metrics under this name. Nothing is called under it.
    reserved: Mutex<BTreeSet<InformerLabels>>,
}

impl Drop for Held {
    fn drop(&mut self) {
        HELD.lock().remove(&self.name);
    }
}

/// The metrics of one resource under one name, until it is dropped.
pub(crate) struct Reservation {
    name: InformerName,
    labels: InformerLabels,
}

impl Reservation {
    pub(crate) fn labels(&self) -> &InformerLabels {
        &self.labels
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.name.held.reserved.lock().remove(&self.labels);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_not_empty_and_has_one_holder_at_a_time() {
        assert_eq!(InformerName::new("").unwrap_err(), InformerNameError::Empty);
        let first = InformerName::new("names, first").unwrap();
        let clone = first.clone();
        drop(first);
        let taken = InformerNameError::Taken("names, first".to_owned());
        assert_eq!(InformerName::new("names, first").unwrap_err(), taken);
        drop(clone);
        assert_eq!(InformerName::new("names, first").unwrap().as_str(), "names, first");
    }

    #[test]
    fn a_resource_is_reserved_once_under_a_name_until_it_is_let_go() {
        let name = InformerName::new("names, reserved").unwrap();
        let pods = name.reserve("pods").unwrap();
        assert!(name.reserve("pods").is_none());
        assert!(name.reserve("apps/v1 deployments").is_some());
        drop(pods);
        assert!(name.reserve("pods").is_some());
    }
}

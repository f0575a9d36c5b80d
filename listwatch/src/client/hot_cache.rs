//! Decoded objects that are asked for again.

mod clock;

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use self::clock::Clock;
use crate::{Encoded, ItemError};

/// The last decoded states of the objects that are asked for most, up to a number of them: for [`Packed`](crate::Packed)
/// and `Zipped` objects, whose `decode` keeps nothing.
///
/// It pays where the same state of the same object is decoded several times within a short time: by several handlers
/// or workers of one informer, or for a few objects that many others refer to. A hit costs a lock and a hash, less
/// than a hundredth of decoding a pod; a miss costs this beside decoding. It does not pay for a worker that decodes each state of an
/// object once, nor with many more objects in use than it has room for: [`counts`](Self::counts) tells.
///
/// Each entry takes what the decoded object does, some 30 kB for a pod, until others take its place: the second chance
/// (clock) algorithm, an approximation of "least recently used". An old state is not asked for again, and goes that way too.
///
/// ```
/// use k8s_openapi::api::core::v1::Pod;
/// use kubewire_listwatch::{HotCache, Packed};
///
/// let json = br#"{"metadata":{"name":"a","uid":"u","resourceVersion":"7"},"spec":{"containers":[]}}"#;
/// let pod: Packed<Pod> = Packed::from_json(json)?;
///
/// let hot = HotCache::<Packed<Pod>>::new(1_000);
/// let decoded = hot.decode(&pod)?; // an `Arc<Pod>`
/// assert!(decoded.spec.is_some());
/// hot.decode(&pod)?;
/// assert_eq!((hot.counts().hits, hot.counts().misses), (1, 1));
/// # Ok::<(), kubewire_listwatch::ItemError>(())
/// ```
pub struct HotCache<O: Encoded> {
    /// Guards the entries and the counts. Objects are decoded and dropped outside of it.
    clock: Mutex<Clock<Arc<O::Decoded>>>,
}

/// How often a [`HotCache`] was asked, from its beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HotCounts {
    /// The object was there.
    pub hits: u64,
    /// It was decoded; so is one without uid or version each time.
    pub misses: u64,
}

impl<O: Encoded> HotCache<O> {
    /// Room for so many objects; for none, where it is 0. Nothing is allocated before they come.
    pub fn new(capacity: usize) -> Self {
        Self { clock: Mutex::new(Clock::new(capacity)) }
    }

    /// The object decoded. An object is known by uid and version; one without them is not kept.
    ///
    /// Who asks for one object at the same time as others may decode it beside them; all get the same one.
    ///
    /// # Errors
    /// As [`Encoded::decode`]. Failures are not kept.
    pub fn decode(&self, object: &O) -> Result<Arc<O::Decoded>, ItemError> {
        let id = object.id();
        let (uid, version) = (id.uid, id.resource_version);
        if let Some(hot) = self.clock.lock().get(uid, version) {
            return Ok(Arc::clone(hot));
        }
        let decoded = Arc::new(object.decode()?);
        if uid.is_empty() || version.is_empty() {
            return Ok(decoded);
        }
        let mut clock = self.clock.lock();
        if let Some(first) = clock.find(uid, version) {
            let first = Arc::clone(first);
            drop(clock);
            return Ok(first);
        }
        let gone = clock.insert(uid, version, Arc::clone(&decoded));
        drop(clock);
        drop(gone);
        Ok(decoded)
    }

    /// How often it was asked.
    pub fn counts(&self) -> HotCounts {
        self.clock.lock().counts()
    }

    /// How many objects it has.
    pub fn len(&self) -> usize {
        self.clock.lock().len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Gives up all objects; the counts go on.
    pub fn clear(&self) {
        let gone = self.clock.lock().clear();
        drop(gone);
    }
}

impl<O: Encoded> fmt::Debug for HotCache<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (len, counts) = (self.len(), self.counts());
        f.debug_struct("HotCache").field("len", &len).field("counts", &counts).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;

//! What the handles of one zipped object share.

use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use super::frame::{self, FrameError};
use super::zipper::Zipper;
use crate::client::packed::table::Table;

/// Longer objects stay packed: to unzip one would take as much memory at once.
pub(crate) const UNZIPPED_LEN_MAX: usize = 32 << 20;

/// One object: what is noted of it, which never moves, and its bytes, packed at first and zipped as soon as that can be.
///
/// Invariant: `packed` holds the object until `zip` does. Nothing but a move happens under the lock.
#[derive(Debug)]
pub(crate) struct Stored {
    /// The table of the packed object, behind no object.
    head: Box<[u8]>,
    zip: OnceLock<Box<[u8]>>,
    packed: Mutex<Option<Arc<[u8]>>>,
    zipper: Arc<Zipper>,
}

impl Stored {
    /// A packed object, zipped at once if that can be.
    pub(crate) fn new(packed: Arc<[u8]>, zipper: Arc<Zipper>) -> Arc<Self> {
        let table = Table::of(&packed);
        let (head, len) = (table.behind(Vec::new()).into_boxed_slice(), table.object().len());
        let packed = Mutex::new(Some(packed));
        let stored = Arc::new(Self { head, zip: OnceLock::new(), packed, zipper });
        if stored.zipper.is_ready_for(len) {
            stored.zip();
        } else if len <= UNZIPPED_LEN_MAX {
            stored.zipper.add(&stored, len);
        }
        stored
    }

    /// Zips it, unless it is too long, or zstd has no memory: then it stays packed.
    pub(crate) fn zip(&self) {
        let Some(packed) = self.packed.lock().clone() else { return };
        let object = Table::of(&packed).object();
        if object.len() > UNZIPPED_LEN_MAX {
            return;
        }
        match frame::zip(object, self.zipper.dictionary_for(object.len())) {
            Ok(zip) => {
                let _ = self.zip.set(zip);
                let zipped = self.packed.lock().take();
                drop(zipped);
            }
            Err(error) => tracing::warn!(%error, "an object stays packed"),
        }
    }

    /// What is noted of it.
    pub(crate) fn head(&self) -> Table<'_> {
        Table::of(&self.head)
    }

    pub(crate) fn zipper(&self) -> &Zipper {
        &self.zipper
    }

    pub(crate) fn is_zipped(&self) -> bool {
        self.zip.get().is_some()
    }

    /// The object, as it was packed.
    pub(crate) fn unzip(&self) -> Result<Unzipped, FrameError> {
        if self.zip.get().is_none()
            && let Some(packed) = self.packed.lock().clone()
        {
            return Ok(Unzipped::Packed(packed));
        }
        // It was taken after the zip was put.
        let zip = self.zip.get().ok_or(FrameError::NoLength)?;
        let len = frame::unzipped_len(zip, UNZIPPED_LEN_MAX)?;
        frame::unzip(zip, self.zipper.dictionary_for(len), UNZIPPED_LEN_MAX).map(Unzipped::Object)
    }

    /// The bytes that it takes, without what the allocator adds, nor its part of the dictionary.
    pub(crate) fn size(&self) -> usize {
        let bytes = match self.zip.get() {
            Some(zip) => zip.len(),
            None => self.packed.lock().as_ref().map_or(0, |packed| packed.len()),
        };
        bytes + self.head.len() + size_of::<Self>() + 2 * size_of::<usize>()
    }
}

/// An object that is zipped no more.
pub(crate) enum Unzipped {
    /// With its table behind it.
    Packed(Arc<[u8]>),
    /// By itself.
    Object(Vec<u8>),
}

impl Unzipped {
    /// The bytes of the object alone.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::Packed(packed) => Table::of(packed).object(),
            Self::Object(object) => object,
        }
    }
}

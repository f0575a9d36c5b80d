//! PURE. What is known of an object that is being packed.

use std::borrow::Cow;

use smallvec::SmallVec;

use crate::client::protobuf::edits::Edits;

/// A text, as its bytes: it was checked to be one. Borrowed where it stands in the object as it is.
pub(super) type Part<'a> = Cow<'a, [u8]>;

/// No text.
const EMPTY: Part<'static> = Cow::Borrowed(&[]);

/// What is known of an object, borrowed from its bytes where it stands there as it is.
#[derive(Debug)]
pub(super) struct Parts<'a> {
    /// The whole object, in either format.
    pub(super) wire: &'a [u8],
    /// What is left out of it.
    pub(super) edits: Edits,
    pub(super) namespace: Part<'a>,
    pub(super) name: Part<'a>,
    pub(super) uid: Part<'a>,
    pub(super) resource_version: Part<'a>,
    pub(super) generation: Option<i64>,
    pub(super) being_deleted: bool,
    pub(super) labels: SmallVec<[(Part<'a>, Part<'a>); 12]>,
    pub(super) owners: SmallVec<[Owner<'a>; 1]>,
}

#[derive(Debug, Default)]
pub(super) struct Owner<'a> {
    pub(super) api_version: Part<'a>,
    pub(super) kind: Part<'a>,
    pub(super) name: Part<'a>,
    pub(super) uid: Part<'a>,
    pub(super) controller: bool,
}

impl<'a> Parts<'a> {
    /// Nothing is known yet.
    pub(super) fn of(wire: &'a [u8]) -> Self {
        Self {
            wire,
            edits: Edits::default(),
            namespace: EMPTY,
            name: EMPTY,
            uid: EMPTY,
            resource_version: EMPTY,
            generation: None,
            being_deleted: false,
            labels: SmallVec::new(),
            owners: SmallVec::new(),
        }
    }

    /// Where a part begins that is borrowed from the object.
    pub(super) fn offset(&self, part: &[u8]) -> usize {
        part.as_ptr() as usize - self.wire.as_ptr() as usize
    }

    /// Sorts the labels by name; of one name the last one stays.
    pub(super) fn sort_labels(&mut self) {
        if self.labels.is_sorted_by(|(a, _), (b, _)| a < b) {
            return;
        }
        self.labels.reverse();
        self.labels.sort_by(|(a, _), (b, _)| a.cmp(b));
        self.labels.dedup_by(|(next, _), (kept, _)| next == kept);
    }
}

//! PURE. What is left out of an object's bytes, and what stands there instead.

use std::ops::Range;

use smallvec::SmallVec;

#[cfg(feature = "prost")]
use crate::client::protobuf::metadata::METADATA;
use crate::client::protobuf::wire::{Field, Fields, Malformed, varint_bytes};

/// Replacements in some bytes: in order, apart from each other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Edits {
    edits: SmallVec<[Edit; 4]>,
}

#[derive(Clone, Debug)]
struct Edit {
    range: Range<usize>,
    /// What stands there instead, and how much of it.
    instead: [u8; 10],
    instead_len: usize,
}

impl Edits {
    /// Whether everything stays.
    #[cfg(feature = "prost")]
    pub(crate) fn is_empty(&self) -> bool {
        self.edits.is_empty()
    }

    /// Leaves bytes out, behind all that was left out before.
    pub(crate) fn cut(&mut self, range: Range<usize>) {
        debug_assert!(self.edits.last().is_none_or(|last| last.range.end <= range.start), "in order");
        self.edits.push(Edit { range, instead: [0; 10], instead_len: 0 });
    }

    /// The last cut, taken back, if it ends here.
    pub(crate) fn take_cut_that_ends(&mut self, end: usize) -> Option<Range<usize>> {
        match self.edits.last() {
            Some(last) if last.range.end == end => self.edits.pop().map(|edit| edit.range),
            _ => None,
        }
    }

    /// Cuts fields out of a message within the bytes, mends the length that stands before it, and tells of each field that
    /// stays.
    pub(crate) fn cut_fields<'a>(
        &mut self,
        length: Range<usize>,
        message: &'a [u8],
        tags: u32,
        mut kept: impl FnMut(Field<'a>) -> Result<(), Malformed>,
    ) -> Result<(), Malformed> {
        let first = self.edits.len();
        let start = length.end;
        let mut left = message.len();
        for field in Fields::new(message) {
            let field = field?;
            if !is_in(field.tag, tags) {
                kept(field)?;
                continue;
            }
            if left == message.len() {
                self.cut(length.clone());
            }
            left -= field.end - field.start;
            self.cut(start + field.start..start + field.end);
        }
        if let Some(edit) = self.edits.get_mut(first) {
            (edit.instead, edit.instead_len) = varint_bytes(left as u64);
        }
        Ok(())
    }

    /// How long bytes of this length become.
    pub(crate) fn len_of(&self, len: usize) -> usize {
        self.edits.iter().fold(len, |len, edit| len + edit.instead_len - edit.range.len())
    }

    /// Where a place that stays is found afterwards.
    pub(crate) fn moved(&self, place: usize) -> usize {
        let before = self.edits.iter().take_while(|edit| edit.range.end <= place);
        before.fold(place, |place, edit| place + edit.instead_len - edit.range.len())
    }

    /// The bytes that become of these, piece by piece.
    pub(crate) fn pieces<'a>(&'a self, bytes: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        let starts = std::iter::once(0).chain(self.edits.iter().map(|edit| edit.range.end));
        let ends = self.edits.iter().map(|edit| edit.range.start).chain([bytes.len()]);
        let instead = self.edits.iter().map(|edit| &edit.instead[..edit.instead_len]).chain([&[][..]]);
        starts.zip(ends).zip(instead).flat_map(move |((start, end), instead)| [&bytes[start..end], instead])
    }
}

/// Whether a field is among those of a set, one bit each.
fn is_in(tag: u32, tags: u32) -> bool {
    tag < u32::BITS && tags & 1 << tag != 0
}

/// What leaves fields of the metadata out of an object.
#[cfg(feature = "prost")]
pub(crate) fn cut_metadata(object: &[u8], tags: u32) -> Result<Edits, Malformed> {
    let mut edits = Edits::default();
    for field in Fields::new(object) {
        let field = field?;
        if let Some(metadata) = field.bytes(METADATA) {
            edits.cut_fields(field.value_start..field.end - metadata.len(), metadata, tags, |_| Ok(()))?;
        }
    }
    Ok(edits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::protobuf::metadata::MANAGED_FIELDS;

    fn without(object: &[u8], tags: u32) -> Vec<u8> {
        let edits = cut_metadata(object, tags).unwrap();
        let cut = edits.pieces(object).collect::<Vec<_>>().concat();
        assert_eq!(cut.len(), edits.len_of(object.len()));
        cut
    }

    #[test]
    fn fields_are_cut_wherever_they_stand_and_the_length_is_mended() {
        let tags = 1 << MANAGED_FIELDS;
        let table: [(&[u8], &[u8]); 6] = [
            (b"\x0a\x03\x0a\x01x\x12\x00", b"\x0a\x03\x0a\x01x\x12\x00"),
            (b"\x0a\x08\x0a\x01x\x8a\x01\x02ab\x12\x00", b"\x0a\x03\x0a\x01x\x12\x00"),
            (b"\x0a\x0d\x8a\x01\x02ab\x0a\x01x\x8a\x01\x02cd\x12\x00", b"\x0a\x03\x0a\x01x\x12\x00"),
            (b"\x12\x05\x8a\x01\x02ab\x0a\x05\x8a\x01\x02ab", b"\x12\x05\x8a\x01\x02ab\x0a\x00"),
            (b"\x0a\x05\x8a\x01\x02ab\x0a\x03\x0a\x01x", b"\x0a\x00\x0a\x03\x0a\x01x"),
            (b"\x12\x01y", b"\x12\x01y"),
        ];
        for (object, cut) in table {
            assert_eq!(without(object, tags), cut, "{object:?}");
        }
        // A length of two bytes becomes one of one.
        let mut long = b"\x0a\xcf\x01\x0a\x01x\x8a\x01\xc8\x01".to_vec();
        long.extend([0; 200]);
        long.extend(b"\x12\x01y");
        assert_eq!(without(&long, tags), b"\x0a\x03\x0a\x01x\x12\x01y");
    }

    #[test]
    fn places_are_found_again() {
        let object = b"\x0a\x0b\x8a\x01\x02ab\x0a\x01x\x12\x01z\x1a\x01y";
        let edits = cut_metadata(object, 1 << MANAGED_FIELDS).unwrap();
        let cut = without(object, 1 << MANAGED_FIELDS);
        for (place, byte) in [(9, b'x'), (12, b'z'), (15, b'y')] {
            assert_eq!((object[place], cut[edits.moved(place)]), (byte, byte));
        }
    }

    #[test]
    fn an_object_that_cannot_be_read_is_not_cut() {
        for object in [&b"\x0a\x05\x0a\x01x"[..], b"\x0a\x02\x0a\x01", b"\x0a\x00\x0b"] {
            assert!(cut_metadata(object, u32::MAX).is_err());
        }
    }
}

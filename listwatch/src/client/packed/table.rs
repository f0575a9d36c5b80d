//! PURE. The table behind the bytes of a packed object: where in them its id, labels and owners stand.
//!
//! It lies in the same allocation.
//!
//! ```text
//! object | strings that the object holds with escapes, without them | numbers | where the numbers begin
//! ```
//! The numbers, of two bytes each, or of four where the whole is longer than two can say: length of the object; start and
//! length of namespace, name, uid and version; generation (four quarters); flags; count of labels; count of owners; for each label start and length of name and
//! value, sorted by name; for each owner the same of API version, kind, name and uid, and whether it controls.

use std::borrow::Cow;
use std::sync::Arc;

use kubewire_indexer::{Id, OwnerReference};
#[cfg(feature = "zstd")]
use smallvec::SmallVec;

use super::parts::{Part, Parts};
use crate::client::codec::Format;

/// Bytes of the last number, which holds twice where the numbers begin, and one more where they are wide.
const LAST_LEN: usize = size_of::<u32>();
/// The greatest number, and so the greatest length of it all.
pub(super) const NUMBER_MAX: usize = i32::MAX as usize;

const OBJECT_LEN: usize = 0;
const NAMESPACE: usize = 1;
const NAME: usize = 3;
const UID: usize = 5;
const VERSION: usize = 7;
const GENERATION: usize = 9;
const FLAGS: usize = 13;
const LABEL_COUNT: usize = 14;
const OWNER_COUNT: usize = 15;
const LABELS: usize = 16;

const NUMBERS_A_LABEL: usize = 4;
const NUMBERS_AN_OWNER: usize = 9;

const HAS_GENERATION: u32 = 1;
const BEING_DELETED: u32 = 2;
const IS_PROTOBUF: u32 = 4;

/// The table of one object.
#[derive(Clone, Copy)]
pub(crate) struct Table<'a> {
    bytes: &'a [u8],
    /// Where the numbers begin.
    start: usize,
    width: Width,
}

/// How long the numbers of a table are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Width {
    Narrow,
    Wide,
}

impl Width {
    /// That of an object with its strings of this length; what it needs of them is less.
    fn of(len: usize) -> Self {
        if u16::try_from(len).is_ok() { Self::Narrow } else { Self::Wide }
    }

    fn len(self) -> usize {
        match self {
            Self::Narrow => size_of::<u16>(),
            Self::Wide => size_of::<u32>(),
        }
    }
}

impl<'a> Table<'a> {
    pub(crate) fn of(bytes: &'a [u8]) -> Self {
        let last = u32::from_le_bytes(array(bytes, bytes.len() - LAST_LEN));
        let width = if last & 1 == 0 { Width::Narrow } else { Width::Wide };
        Self { bytes, start: (last >> 1) as usize, width }
    }

    pub(crate) fn object(self) -> &'a [u8] {
        &self.bytes[..self.number(OBJECT_LEN) as usize]
    }

    pub(crate) fn format(self) -> Format {
        if self.number(FLAGS) & IS_PROTOBUF == 0 { Format::Json } else { Format::Protobuf }
    }

    pub(crate) fn id(self) -> Id<'a> {
        Id::new(self.text(NAMESPACE), self.text(NAME)).uid(self.text(UID)).resource_version(self.text(VERSION))
    }

    pub(crate) fn generation(self) -> Option<i64> {
        let bits = (0..4).fold(0_u64, |bits, quarter| bits << 16 | u64::from(self.number(GENERATION + quarter)));
        (self.number(FLAGS) & HAS_GENERATION != 0).then_some(bits.cast_signed())
    }

    pub(crate) fn is_being_deleted(self) -> bool {
        self.number(FLAGS) & BEING_DELETED != 0
    }

    fn label_count(self) -> usize {
        self.number(LABEL_COUNT) as usize
    }

    /// Name and value of each label, sorted by name.
    pub(crate) fn labels(self) -> impl ExactSizeIterator<Item = (&'a str, &'a str)> {
        (0..self.label_count()).map(move |index| {
            let at = LABELS + index * NUMBERS_A_LABEL;
            (self.text(at), self.text(at + 2))
        })
    }

    pub(crate) fn find_label(self, name: &str) -> Option<&'a str> {
        let (mut low, mut high) = (0, self.label_count());
        while low < high {
            let middle = low.midpoint(high);
            let at = LABELS + middle * NUMBERS_A_LABEL;
            match self.part(at).cmp(name.as_bytes()) {
                std::cmp::Ordering::Equal => return Some(self.text(at + 2)),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    fn owner_count(self) -> usize {
        self.number(OWNER_COUNT) as usize
    }

    /// The owners, in the order in which they stand.
    pub(crate) fn owners(self) -> impl ExactSizeIterator<Item = OwnerReference<'a>> {
        let first = LABELS + self.label_count() * NUMBERS_A_LABEL;
        (0..self.owner_count()).map(move |index| {
            let at = first + index * NUMBERS_AN_OWNER;
            OwnerReference::new(self.text(at), self.text(at + 2), self.text(at + 4))
                .uid(self.text(at + 6))
                .controller(self.number(at + 8) != 0)
        })
    }

    /// The same table behind another object, or behind none, with all that it tells of in between: one allocation.
    #[cfg(feature = "zstd")]
    pub(crate) fn behind(self, object: Vec<u8>) -> Vec<u8> {
        let count = LABELS + self.label_count() * NUMBERS_A_LABEL + self.owner_count() * NUMBERS_AN_OWNER;
        let mut numbers: SmallVec<[u32; 128]> = (0..count).map(|index| self.number(index)).collect();
        let texts_len: usize = self.parts().map(|index| self.part(index).len()).sum();
        let start = object.len() + texts_len;
        let width = Width::of(start);

        numbers[OBJECT_LEN] = object.len() as u32;
        let mut bytes = object;
        bytes.reserve_exact(texts_len + count * width.len() + LAST_LEN);
        for index in self.parts() {
            numbers[index] = bytes.len() as u32;
            bytes.extend_from_slice(self.part(index));
        }
        for number in numbers {
            bytes.extend_from_slice(&number.to_le_bytes()[..width.len()]);
        }
        bytes.extend_from_slice(&last_number(start, width));
        bytes
    }

    /// The number of each part's start; that of its length follows.
    #[cfg(feature = "zstd")]
    fn parts(self) -> impl Iterator<Item = usize> {
        let labels = self.label_count() * NUMBERS_A_LABEL;
        let owner = move |index| LABELS + labels + index * NUMBERS_AN_OWNER;
        let of_owners = (0..self.owner_count()).flat_map(move |index| (0..4).map(move |part| owner(index) + 2 * part));
        [NAMESPACE, NAME, UID, VERSION].into_iter().chain((0..labels).step_by(2).map(|at| LABELS + at)).chain(of_owners)
    }

    /// A part as text. It was one when it was packed.
    fn text(self, index: usize) -> &'a str {
        str::from_utf8(self.part(index)).unwrap_or_default()
    }

    fn part(self, index: usize) -> &'a [u8] {
        let start = self.number(index) as usize;
        &self.bytes[start..start + self.number(index + 1) as usize]
    }

    fn number(self, index: usize) -> u32 {
        let at = self.start + index * self.width.len();
        match self.width {
            Width::Narrow => u16::from_le_bytes(array(self.bytes, at)).into(),
            Width::Wide => u32::from_le_bytes(array(self.bytes, at)),
        }
    }
}

fn last_number(start: usize, width: Width) -> [u8; LAST_LEN] {
    ((start as u32) << 1 | u32::from(width == Width::Wide)).to_le_bytes()
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[at..at + N]);
    array
}

impl Parts<'_> {
    /// The object without what is left out of it, and the table behind it: one allocation, of just that length.
    pub(super) fn pack(mut self, format: Format) -> Arc<[u8]> {
        self.sort_labels();
        let object_len = self.edits.len_of(self.wire.len());
        let escaped: usize = self.texts().map(|text| if let Cow::Owned(text) = text { text.len() } else { 0 }).sum();
        let numbers = LABELS + self.labels.len() * NUMBERS_A_LABEL + self.owners.len() * NUMBERS_AN_OWNER;
        let start = object_len + escaped;
        // There are fewer labels and owners than bytes.
        let width = Width::of(start);

        let len = start + numbers * width.len() + LAST_LEN;
        let mut packed: Arc<[u8]> = std::iter::repeat_n(0, len).collect();
        let bytes = Arc::get_mut(&mut packed).unwrap_or_else(|| unreachable!("nobody else has it yet"));
        let (bytes, last) = bytes.split_at_mut(len - LAST_LEN);
        last.copy_from_slice(&last_number(start, width));
        let (object, table) = bytes.split_at_mut(start);
        let mut writer = Writer { object, object_at: 0, table, table_at: 0, width };
        self.edits.pieces(self.wire).for_each(|piece| writer.push_bytes(piece));
        self.write_table(format, object_len, &mut writer);
        packed
    }

    fn write_table(&self, format: Format, object_len: usize, writer: &mut Writer<'_>) {
        let generation = self.generation.unwrap_or_default().cast_unsigned();
        let flags = if self.generation.is_some() { HAS_GENERATION } else { 0 }
            | if self.being_deleted { BEING_DELETED } else { 0 }
            | if format == Format::Protobuf { IS_PROTOBUF } else { 0 };
        writer.push_number(object_len);
        for part in [&self.namespace, &self.name, &self.uid, &self.resource_version] {
            self.write_part(part, writer);
        }
        for quarter in [48, 32, 16, 0] {
            writer.push_number((generation >> quarter) as usize & 0xffff);
        }
        writer.push_number(flags as usize);
        writer.push_number(self.labels.len());
        writer.push_number(self.owners.len());
        for (name, value) in &self.labels {
            self.write_part(name, writer);
            self.write_part(value, writer);
        }
        for owner in &self.owners {
            for part in [&owner.api_version, &owner.kind, &owner.name, &owner.uid] {
                self.write_part(part, writer);
            }
            writer.push_number(owner.controller.into());
        }
    }

    /// Start and length of a part: where it stands in the object, or else in a copy that is put behind that.
    fn write_part(&self, part: &Part<'_>, writer: &mut Writer<'_>) {
        let start = match part {
            Cow::Borrowed([]) => 0,
            Cow::Borrowed(part) => self.edits.moved(self.offset(part)),
            Cow::Owned(part) => {
                let start = writer.object_at;
                writer.push_bytes(part);
                start
            }
        };
        writer.push_number(start);
        writer.push_number(part.len());
    }

    /// All that the table tells of.
    fn texts(&self) -> impl Iterator<Item = &Part<'_>> {
        let id = [&self.namespace, &self.name, &self.uid, &self.resource_version];
        let labels = self.labels.iter().flat_map(|(name, value)| [name, value]);
        let owners = self.owners.iter().flat_map(|owner| [&owner.api_version, &owner.kind, &owner.name, &owner.uid]);
        id.into_iter().chain(labels).chain(owners)
    }
}

/// Fills the two halves of a packed object.
struct Writer<'a> {
    object: &'a mut [u8],
    object_at: usize,
    table: &'a mut [u8],
    table_at: usize,
    width: Width,
}

impl Writer<'_> {
    fn push_bytes(&mut self, bytes: &[u8]) {
        self.object[self.object_at..self.object_at + bytes.len()].copy_from_slice(bytes);
        self.object_at += bytes.len();
    }

    fn push_number(&mut self, number: usize) {
        let len = self.width.len();
        debug_assert!((number as u64) >> (8 * len) == 0, "no number is greater than the length of the object");
        self.table[self.table_at..self.table_at + len].copy_from_slice(&(number as u32).to_le_bytes()[..len]);
        self.table_at += len;
    }
}

//! PURE. Takes the items out of a list in protobuf as its bytes arrive; what remains is its metadata.

use bytes::Bytes;

use crate::client::carry::{Carry, Ready};
use crate::client::protobuf::envelope::{
    CONTENT_ENCODING, CONTENT_TYPE, MAGIC, RAW, TYPE_META, TypeMeta, refuse_encoding, refuse_other_type,
};
use crate::client::protobuf::list_kind::{ListKind, list_kind};
use crate::client::protobuf::wire::{Malformed, Varint, WireType, key};
use crate::client::shaped::Types;

/// The bound of what a list may hold beside its items.
const HEAD_LEN_MAX: usize = 256 << 10;

/// The metadata and the items of every list message.
const METADATA: u32 = 1;
const ITEMS: u32 = 2;

/// Cuts the body of a list (`runtime.Unknown` around a list message) into its items, in any order of the fields,
/// whatever the chunks.
///
/// Used as the splitter for JSON is: [`push`](Self::push) a chunk, [`next_item`](Self::next_item) until there is
/// none, the next chunk; at last [`finish`](Self::finish).
///
/// Invariants:
/// 1. Of items and of what is skipped no byte is looked at: lengths say where they end.
/// 2. At most one chunk, one item and twice [`HEAD_LEN_MAX`] bytes are held, whatever lengths the body claims.
/// 3. What comes out does not depend on where the chunks were cut.
#[derive(Debug)]
pub(crate) struct ListSplitter {
    item_len_max: usize,
    wanted: Option<Types>,
    chunk: Bytes,
    /// The first byte of `chunk` that was not taken.
    at: usize,
    /// Bytes in all chunks before this one.
    chunk_offset: u64,
    carry: Carry,
    /// The fields of the list's metadata; or a whole `Status`.
    head: Vec<u8>,
    /// A part of the envelope, while it comes.
    part: Vec<u8>,
    kind: ListKind,
    /// The list message was there.
    raw_seen: bool,
    /// Bytes that are left of the list message; `None` outside it.
    raw_left: Option<u64>,
    place: Place,
    varint: Varint,
}

/// What comes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// So many bytes of the magic were there.
    Magic(usize),
    Key,
    Length(u32),
    Number,
    /// So many bytes of no interest.
    Skip(u64),
    /// So many bytes of a part that is held.
    Part(Part, usize),
    /// So many bytes of an item.
    Item(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    TypeMeta,
    Encoding,
    ContentType,
    /// The list's metadata, or a `Status`.
    Head,
}

/// Why a body is no list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ListError {
    #[error("not a list: {what} at byte {at}")]
    Syntax { what: &'static str, at: u64 },
    #[error("not a list: {0}")]
    Part(Malformed),
    #[error("{0}")]
    Kind(String),
    #[error("two lists in one answer")]
    Twice,
    #[error("an item is longer than the limit of {limit} bytes; raise `Limits::item`")]
    ItemTooLong { limit: usize },
    #[error("the list holds more than {HEAD_LEN_MAX} bytes beside its items")]
    HeadTooLong,
    #[error("the list ended before it was complete")]
    Truncated,
}

/// What a list held beside its items.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Head {
    /// The list's `ListMeta`.
    ListMeta(Vec<u8>),
    /// It was no list but a `Status`.
    Status(Vec<u8>),
}

impl ListSplitter {
    /// A splitter that takes items up to this length, of lists of these objects.
    pub(crate) fn new(item_len_max: usize, wanted: Option<Types>) -> Self {
        Self {
            item_len_max,
            wanted,
            chunk: Bytes::new(),
            at: 0,
            chunk_offset: 0,
            carry: Carry::default(),
            head: Vec::new(),
            part: Vec::new(),
            kind: ListKind::List,
            raw_seen: false,
            raw_left: None,
            place: Place::Magic(0),
            varint: Varint::default(),
        }
    }

    /// Feeds a chunk; the one before must be used up.
    pub(crate) fn push(&mut self, chunk: Bytes) {
        debug_assert_eq!(self.at, self.chunk.len(), "take all items of a chunk before the next one");
        self.chunk_offset += self.chunk.len() as u64;
        self.chunk = chunk;
        self.at = 0;
    }

    /// The next item, as its bytes came; `None` where the chunk holds no further end of one.
    pub(crate) fn next_item(&mut self) -> Result<Option<&[u8]>, ListError> {
        self.carry.reclaim();
        let ready = loop {
            match self.place {
                Place::Item(left) => match self.take_item(left) {
                    Some(ready) => break ready,
                    None => return Ok(None),
                },
                Place::Part(part, left) if left <= self.rest() => self.take_part(part, left)?,
                // A part that is over is taken above, also where it is empty and the chunk is used up.
                _ if self.rest() == 0 => return Ok(None),
                Place::Part(part, left) => {
                    let taken = self.rest();
                    self.hold(part, taken);
                    self.place = Place::Part(part, left - taken);
                }
                Place::Skip(left) => {
                    let taken = left.min(self.rest() as u64);
                    self.advance(taken as usize);
                    self.place = if taken == left { Place::Key } else { Place::Skip(left - taken) };
                }
                Place::Magic(_) | Place::Key | Place::Length(_) | Place::Number => self.step()?,
            }
        };
        Ok(Some(self.carry.lend(&self.chunk, ready)))
    }

    /// What the list held beside its items, after the last chunk.
    pub(crate) fn finish(self) -> Result<Head, ListError> {
        let whole = self.place == Place::Key && self.varint.is_empty() && self.raw_left.is_none_or(|left| left == 0);
        match (whole && self.raw_seen, self.kind) {
            (false, _) => Err(ListError::Truncated),
            (true, ListKind::Status) => Ok(Head::Status(self.head)),
            (true, ListKind::List) => Ok(Head::ListMeta(self.head)),
        }
    }

    /// Bytes held beside the chunk.
    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        self.carry.held() + self.head.capacity() + self.part.capacity()
    }

    fn rest(&self) -> usize {
        self.chunk.len() - self.at
    }

    /// Takes bytes of the chunk.
    fn advance(&mut self, len: usize) {
        self.at += len;
        if let Some(left) = &mut self.raw_left {
            // What is taken at once was checked against this before.
            *left = left.saturating_sub(len as u64);
        }
    }

    /// Takes an item to its end or to that of the chunk.
    fn take_item(&mut self, left: usize) -> Option<Ready> {
        let taken = left.min(self.rest());
        let range = self.at..self.at + taken;
        self.advance(taken);
        let whole = taken == left;
        self.place = if whole { Place::Key } else { Place::Item(left - taken) };
        self.carry.take(&self.chunk, range, whole)
    }

    fn hold(&mut self, part: Part, len: usize) {
        let buffer = if part == Part::Head { &mut self.head } else { &mut self.part };
        buffer.extend_from_slice(&self.chunk[self.at..self.at + len]);
        self.advance(len);
    }

    /// Takes the last bytes of a part.
    fn take_part(&mut self, part: Part, left: usize) -> Result<(), ListError> {
        self.hold(part, left);
        self.place = Place::Key;
        let read = match part {
            Part::Head => return Ok(()),
            Part::TypeMeta => TypeMeta::read(&self.part)
                .map(|type_meta| list_kind(type_meta, self.wanted.as_ref()).map(|kind| self.kind = kind)),
            Part::Encoding => refuse_encoding(&self.part, 0).map(Ok),
            Part::ContentType => refuse_other_type(&self.part, 0).map(Ok),
        };
        self.part.clear();
        read.map_err(ListError::Part)?.map_err(ListError::Kind)
    }

    /// One byte of the structure around the parts.
    fn step(&mut self) -> Result<(), ListError> {
        if self.raw_left == Some(0) {
            match (self.place, self.varint.is_empty()) {
                (Place::Key, true) => self.raw_left = None,
                _ => return Err(self.syntax("an end within a field")),
            }
        }
        let byte = self.chunk[self.at];
        self.advance(1);
        if let Place::Magic(seen) = self.place {
            if byte != MAGIC[seen] {
                return Err(self.syntax("no `k8s\\0` before it"));
            }
            self.place = if seen + 1 == MAGIC.len() { Place::Key } else { Place::Magic(seen + 1) };
            return Ok(());
        }
        let Some(number) = self.varint.push(byte).map_err(|what| self.syntax(what))? else { return Ok(()) };
        self.place = match self.place {
            Place::Length(tag) => self.begin(tag, number)?,
            Place::Number => Place::Key,
            _ => match key(number).map_err(|what| self.syntax(what))? {
                (tag, WireType::Bytes) => Place::Length(tag),
                (tag, _) if self.is_known(tag) => return Err(self.syntax("a value of another type than its field has")),
                (_, WireType::Varint) => Place::Number,
                (_, WireType::Fixed(len)) => self.skip(len.into())?,
            },
        };
        Ok(())
    }

    /// Whether the field of this number is of interest here.
    fn is_known(&self, tag: u32) -> bool {
        match self.raw_left {
            None => matches!(tag, TYPE_META | RAW | CONTENT_ENCODING | CONTENT_TYPE),
            Some(_) => matches!(tag, METADATA | ITEMS),
        }
    }

    /// Begins the value of a field, whose length is known now.
    fn begin(&mut self, tag: u32, len: u64) -> Result<Place, ListError> {
        if self.raw_left.is_some_and(|left| left < len) {
            return Err(self.syntax("a value beyond the end of the list"));
        }
        match (self.raw_left, tag) {
            (None, TYPE_META) => self.begin_part(Part::TypeMeta, len),
            (None, CONTENT_ENCODING) => self.begin_part(Part::Encoding, len),
            (None, CONTENT_TYPE) => self.begin_part(Part::ContentType, len),
            (None, RAW) => {
                if std::mem::replace(&mut self.raw_seen, true) {
                    return Err(ListError::Twice);
                }
                if self.kind == ListKind::Status {
                    return self.begin_part(Part::Head, len);
                }
                self.raw_left = Some(len);
                Ok(Place::Key)
            }
            (Some(_), METADATA) => self.begin_part(Part::Head, len),
            (Some(_), ITEMS) => match usize::try_from(len).ok().filter(|len| *len <= self.item_len_max) {
                Some(len) => Ok(Place::Item(len)),
                None => Err(ListError::ItemTooLong { limit: self.item_len_max }),
            },
            _ => self.skip(len),
        }
    }

    fn begin_part(&self, part: Part, len: u64) -> Result<Place, ListError> {
        let held = self.head.len();
        match usize::try_from(len).ok().filter(|len| *len <= HEAD_LEN_MAX - held) {
            Some(len) => Ok(Place::Part(part, len)),
            None => Err(ListError::HeadTooLong),
        }
    }

    fn skip(&self, len: u64) -> Result<Place, ListError> {
        if self.raw_left.is_some_and(|left| left < len) {
            return Err(self.syntax("a value beyond the end of the list"));
        }
        Ok(if len == 0 { Place::Key } else { Place::Skip(len) })
    }

    /// The byte that was just taken has no place here.
    fn syntax(&self, what: &'static str) -> ListError {
        ListError::Syntax { what, at: self.chunk_offset + (self.at as u64).saturating_sub(1) }
    }
}

#[cfg(test)]
mod tests;

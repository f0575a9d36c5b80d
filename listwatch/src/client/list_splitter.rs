//! PURE. Takes the items out of a list as its bytes arrive; what remains is a small JSON text, the head.

use bytes::Bytes;

use crate::client::carry::{Carry, Ready};
use crate::client::value_scan::ValueScan;

/// The bound of what a list may hold beside its items.
const HEAD_LEN_MAX: usize = 256 << 10;

/// Cuts the body of a list into its items, in any order of the members, whatever the chunks.
///
/// Feed one chunk with [`push`](Self::push), take items with [`next_item`](Self::next_item) until there is none,
/// feed the next; after the last call [`finish`](Self::finish).
///
/// Invariants:
/// 1. Each byte is looked at once.
/// 2. At most one chunk, one item and [`HEAD_LEN_MAX`] bytes are held.
/// 3. What comes out does not depend on where the chunks were cut.
#[derive(Debug)]
pub(crate) struct ListSplitter {
    item_len_max: usize,
    chunk: Bytes,
    /// The first byte of `chunk` that was not looked at.
    at: usize,
    /// Bytes in all chunks before this one.
    chunk_offset: u64,
    carry: Carry,
    /// All bytes that belong to no item: the list with `items` empty.
    head: Vec<u8>,
    /// Where in `head` the present key or value begins.
    part_start: usize,
    member: Member,
    items_seen: bool,
    place: Place,
    scan: ValueScan,
}

/// Which member of the list its present value belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Member {
    Items,
    Kind,
    Other,
}

/// What may come next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Open,
    /// A key or the end of an empty list.
    FirstKey,
    NextKey,
    InKey,
    Colon,
    Value,
    InValue,
    /// A comma or the end of the list.
    AfterValue,
    /// An item or the end of `items`.
    FirstItem,
    NextItem,
    InItem,
    /// A comma or the end of `items`.
    AfterItem,
    Done,
}

/// Why a body is no list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ListError {
    #[error("not a list: byte {at} is {:?}, where {expected} was expected", char::from(*.found))]
    Syntax { at: u64, found: u8, expected: &'static str },
    #[error("`items` comes twice")]
    ItemsTwice,
    #[error("a Table came where a list was asked for: the Accept header was not honoured")]
    Table,
    #[error("an item is longer than the limit of {limit} bytes; raise `Limits::item`")]
    ItemTooLong { limit: usize },
    #[error("the list holds more than {HEAD_LEN_MAX} bytes beside its items")]
    HeadTooLong,
    #[error("the list ended before it was complete")]
    Truncated,
}

impl ListSplitter {
    /// A splitter that takes items up to this length.
    pub(crate) fn new(item_len_max: usize) -> Self {
        Self {
            item_len_max,
            chunk: Bytes::new(),
            at: 0,
            chunk_offset: 0,
            carry: Carry::default(),
            head: Vec::new(),
            part_start: 0,
            member: Member::Other,
            items_seen: false,
            place: Place::Open,
            scan: ValueScan::NONE,
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
            if self.at == self.chunk.len() {
                return Ok(None);
            }
            match self.place {
                Place::InItem => {
                    if let Some(ready) = self.scan_item()? {
                        break ready;
                    }
                }
                Place::InKey | Place::InValue => self.scan_part()?,
                _ => self.step()?,
            }
        };
        Ok(Some(self.carry.lend(&self.chunk, ready)))
    }

    /// What the list held beside its items, after the last chunk.
    pub(crate) fn finish(self) -> Result<Vec<u8>, ListError> {
        if self.place == Place::Done { Ok(self.head) } else { Err(ListError::Truncated) }
    }

    /// The bytes around the place where the last error was, for people.
    pub(crate) fn unread(&self) -> &[u8] {
        &self.chunk[self.at.saturating_sub(1)..]
    }

    /// Bytes held beside the chunk.
    #[cfg(test)]
    pub(crate) fn held(&self) -> usize {
        self.carry.held() + self.head.capacity()
    }

    /// Scans an item to its end or to that of the chunk.
    fn scan_item(&mut self) -> Result<Option<Ready>, ListError> {
        let rest = &self.chunk[self.at..];
        let end = self.scan.scan(rest);
        let taken = end.unwrap_or(rest.len());
        if self.carry.len() + taken > self.item_len_max {
            return Err(ListError::ItemTooLong { limit: self.item_len_max });
        }
        let range = self.at..self.at + taken;
        self.at = range.end;
        if end.is_some() {
            self.place = Place::AfterItem;
        }
        Ok(self.carry.take(&self.chunk, range, end.is_some()))
    }

    /// Scans a key or a value outside `items` to its end or to that of the chunk.
    fn scan_part(&mut self) -> Result<(), ListError> {
        let rest = &self.chunk[self.at..];
        let end = self.scan.scan(rest);
        let taken = end.unwrap_or(rest.len());
        if self.head.len() + taken > HEAD_LEN_MAX {
            return Err(ListError::HeadTooLong);
        }
        self.head.extend_from_slice(&self.chunk[self.at..self.at + taken]);
        self.at += taken;
        if end.is_none() {
            return Ok(());
        }
        let part = &self.head[self.part_start..];
        if self.place == Place::InKey {
            self.place = Place::Colon;
            self.member = match text(part).as_deref() {
                Some("items") => Member::Items,
                Some("kind") => Member::Kind,
                _ => Member::Other,
            };
        } else {
            self.place = Place::AfterValue;
            if self.member == Member::Kind && text(part).as_deref() == Some("Table") {
                return Err(ListError::Table);
            }
        }
        Ok(())
    }

    /// One byte of the structure around keys and values.
    fn step(&mut self) -> Result<(), ListError> {
        let byte = self.chunk[self.at];
        self.at += 1;
        if matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
            return Ok(());
        }
        self.place = match (self.place, byte) {
            (Place::Open, b'{') => Place::FirstKey,
            (Place::FirstKey | Place::AfterValue, b'}') => Place::Done,
            (Place::FirstKey | Place::NextKey, b'"') => return self.begin_part(byte, Place::InKey),
            (Place::Colon, b':') => Place::Value,
            (Place::AfterValue, b',') => Place::NextKey,
            (Place::Value, b'[') if self.member == Member::Items => {
                if self.items_seen {
                    return Err(ListError::ItemsTwice);
                }
                self.items_seen = true;
                Place::FirstItem
            }
            // Anything else than null is refused when the head is parsed.
            (Place::Value, _) => return self.begin_part(byte, Place::InValue),
            (Place::FirstItem | Place::AfterItem, b']') => Place::AfterValue,
            (Place::AfterItem, b',') => {
                self.place = Place::NextItem;
                return Ok(());
            }
            (Place::FirstItem | Place::NextItem, _) => {
                self.scan = ValueScan::begin(byte).ok_or_else(|| self.unexpected(byte))?;
                self.at -= 1;
                self.place = Place::InItem;
                return Ok(());
            }
            _ => return Err(self.unexpected(byte)),
        };
        self.head.push(byte);
        Ok(())
    }

    /// Begins a key or value at the byte that was just taken, and puts that back.
    fn begin_part(&mut self, byte: u8, place: Place) -> Result<(), ListError> {
        self.scan = ValueScan::begin(byte).ok_or_else(|| self.unexpected(byte))?;
        self.at -= 1;
        self.part_start = self.head.len();
        self.place = place;
        Ok(())
    }

    /// The byte that was just taken has no place here.
    fn unexpected(&self, found: u8) -> ListError {
        let expected = match self.place {
            Place::Open => "the `{` of a list",
            Place::FirstKey | Place::NextKey | Place::InKey => "a key",
            Place::Colon => "a colon",
            Place::Value | Place::InValue => "a value",
            Place::AfterValue => "a comma or the end of the list",
            Place::FirstItem | Place::NextItem | Place::InItem => "an item",
            Place::AfterItem => "a comma or the end of the items",
            Place::Done => "nothing more",
        };
        ListError::Syntax { at: self.chunk_offset + self.at as u64 - 1, found, expected }
    }
}

/// The text that a JSON string stands for.
fn text(json: &[u8]) -> Option<String> {
    serde_json::from_slice(json).ok()
}

#[cfg(test)]
mod tests;

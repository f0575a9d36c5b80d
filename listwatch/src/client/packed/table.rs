//! PURE. The table behind the JSON text of a packed object: where in the text its id, labels and owners stand.
//!
//! It lies in the same allocation, and is text itself (numbers in base 128, in ASCII), so that the whole is an
//! `Arc<str>` and its parts are found without checking them again.
//!
//! ```text
//! JSON | strings that the JSON holds with escapes, without them | numbers | where the numbers begin
//! ```
//! The numbers: length of the JSON; start and length of namespace, name, uid and version; generation (two halves);
//! flags; count of labels; count of owners; for each label start and length of name and value, sorted by name; for
//! each owner the same of API version, kind, name and uid, and whether it controls.

use std::borrow::Cow;

use kubewire_indexer::Id;

use super::OwnerReference;
use super::parts::Parts;
use crate::client::text::Text;

/// Bytes of a number: seven bits each.
const NUMBER_LEN: usize = 5;
/// Numbers, and so the lengths of texts, are below this.
pub(super) const NUMBER_LIMIT: u64 = 1 << (7 * NUMBER_LEN);

const JSON_LEN: usize = 0;
const NAMESPACE: usize = 1;
const NAME: usize = 3;
const UID: usize = 5;
const VERSION: usize = 7;
const GENERATION: usize = 9;
const FLAGS: usize = 11;
const LABEL_COUNT: usize = 12;
const OWNER_COUNT: usize = 13;
const LABELS: usize = 14;

const NUMBERS_A_LABEL: usize = 4;
const NUMBERS_AN_OWNER: usize = 9;

const HAS_GENERATION: u64 = 1;
const BEING_DELETED: u64 = 2;

/// The table of one text.
#[derive(Clone, Copy)]
pub(super) struct Table<'a> {
    text: &'a str,
    /// Where the numbers begin.
    start: usize,
}

impl<'a> Table<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let start = number(text, text.len() - NUMBER_LEN) as usize;
        Self { text, start }
    }

    pub(super) fn json(self) -> &'a str {
        &self.text[..self.number(JSON_LEN) as usize]
    }

    pub(super) fn id(self) -> Id<'a> {
        Id::new(self.part(NAMESPACE), self.part(NAME)).uid(self.part(UID)).resource_version(self.part(VERSION))
    }

    pub(super) fn generation(self) -> Option<i64> {
        let bits = self.number(GENERATION) << 32 | self.number(GENERATION + 1);
        (self.number(FLAGS) & HAS_GENERATION != 0).then_some(bits as i64)
    }

    pub(super) fn is_being_deleted(self) -> bool {
        self.number(FLAGS) & BEING_DELETED != 0
    }

    pub(super) fn label_count(self) -> usize {
        self.number(LABEL_COUNT) as usize
    }

    /// Name and value of a label.
    pub(super) fn label(self, index: usize) -> (&'a str, &'a str) {
        let at = LABELS + index * NUMBERS_A_LABEL;
        (self.part(at), self.part(at + 2))
    }

    pub(super) fn find_label(self, name: &str) -> Option<&'a str> {
        let (mut low, mut high) = (0, self.label_count());
        while low < high {
            let middle = low.midpoint(high);
            let (other, value) = self.label(middle);
            match other.cmp(name) {
                std::cmp::Ordering::Equal => return Some(value),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    pub(super) fn owner_count(self) -> usize {
        self.number(OWNER_COUNT) as usize
    }

    pub(super) fn owner(self, index: usize) -> OwnerReference<'a> {
        let at = LABELS + self.label_count() * NUMBERS_A_LABEL + index * NUMBERS_AN_OWNER;
        OwnerReference {
            api_version: self.part(at),
            kind: self.part(at + 2),
            name: self.part(at + 4),
            uid: self.part(at + 6),
            controller: self.number(at + 8) != 0,
        }
    }

    fn part(self, index: usize) -> &'a str {
        let start = self.number(index) as usize;
        &self.text[start..start + self.number(index + 1) as usize]
    }

    fn number(self, index: usize) -> u64 {
        number(self.text, self.start + index * NUMBER_LEN)
    }
}

fn number(text: &str, at: usize) -> u64 {
    let digits = &text.as_bytes()[at..at + NUMBER_LEN];
    digits.iter().rev().fold(0, |number, digit| number << 7 | u64::from(*digit))
}

fn push_number(text: &mut String, number: u64) {
    debug_assert!(number < NUMBER_LIMIT, "texts are checked to be shorter");
    text.extend((0..NUMBER_LEN).map(|digit| char::from((number >> (7 * digit) & 0x7f) as u8)));
}

impl Parts<'_> {
    /// The JSON text without what is to be cut out, and the table behind it.
    pub(super) fn into_text(mut self) -> String {
        self.sort_labels();
        let numbers = LABELS + self.labels.len() * NUMBERS_A_LABEL + self.owners.len() * NUMBERS_AN_OWNER + 1;
        let mut text = String::with_capacity(self.json.len() + numbers * NUMBER_LEN);
        let mut from = 0;
        for cut in &self.cuts {
            text.push_str(&self.json[from..cut.start]);
            from = cut.end;
        }
        text.push_str(&self.json[from..]);

        let mut table = Vec::with_capacity(numbers);
        table.push(text.len() as u64);
        for part in [&self.namespace, &self.name, &self.uid, &self.resource_version] {
            self.push_part(&mut text, &mut table, part);
        }
        let generation = self.generation.unwrap_or_default() as u64;
        let flags = if self.generation.is_some() { HAS_GENERATION } else { 0 }
            | if self.being_deleted { BEING_DELETED } else { 0 };
        table.extend([generation >> 32, generation & 0xffff_ffff, flags]);
        table.extend([self.labels.len() as u64, self.owners.len() as u64]);
        for (name, value) in &self.labels {
            self.push_part(&mut text, &mut table, name);
            self.push_part(&mut text, &mut table, value);
        }
        for owner in &self.owners {
            for part in [&owner.api_version, &owner.kind, &owner.name, &owner.uid] {
                self.push_part(&mut text, &mut table, part);
            }
            table.push(owner.controller.into());
        }

        let start = text.len() as u64;
        for number in table {
            push_number(&mut text, number);
        }
        push_number(&mut text, start);
        text
    }

    /// Start and length of a part: where it stands in the JSON, or else in a copy that is put behind that.
    fn push_part(&self, text: &mut String, table: &mut Vec<u64>, part: &Text<'_>) {
        let start = match &part.0 {
            Cow::Borrowed("") => 0,
            Cow::Borrowed(part) => self.moved(self.offset(part)),
            Cow::Owned(part) => {
                text.push_str(part);
                text.len() - part.len()
            }
        };
        table.extend([start as u64, part.0.len() as u64]);
    }

    /// Where a place in the JSON is found once everything is cut out.
    fn moved(&self, offset: usize) -> usize {
        offset - self.cuts.iter().take_while(|cut| cut.end <= offset).map(ExactSizeIterator::len).sum::<usize>()
    }
}

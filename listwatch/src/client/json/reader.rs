//! PURE. A place in a JSON text that goes forward value by value.

use super::JsonError;
use super::token::{self, Word};
use crate::client::value_scan::ValueScan;

/// Containers in one another, as serde_json has it.
const DEPTH_MAX: u8 = 128;
/// Of arrays in more arrays than this the length is not counted beforehand, so that no byte is counted more often.
const COUNTED_ARRAYS: u8 = 4;

/// A deserializer (by `&mut`) of one JSON text, from which strings without escapes are borrowed.
///
/// Of a value that is skipped nothing but brackets and quotes is looked at, unless the reader is
/// [`strict`](Self::strict): then it is JSON too.
#[derive(Debug)]
pub(crate) struct Reader<'de> {
    text: &'de str,
    /// The first byte that was not read. It stands before a whole character, wherever a string is taken from.
    at: usize,
    depth_left: u8,
    arrays: u8,
    strict: bool,
    /// What the last string with escapes stands for.
    unescaped: String,
}

/// A string in the text.
pub(super) enum Found<'de> {
    Plain(&'de str),
    /// It holds escapes, without which [`Reader::unescaped`] has it; as it stands.
    Escaped(&'de str),
}

impl<'de> Reader<'de> {
    /// A reader that does not look into what is skipped.
    pub(crate) fn new(text: &'de str) -> Self {
        Self { text, at: 0, depth_left: DEPTH_MAX, arrays: 0, strict: false, unescaped: String::new() }
    }

    /// A reader of bytes that must be a text.
    pub(crate) fn of_bytes(bytes: &'de [u8]) -> Result<Self, JsonError> {
        match str::from_utf8(bytes) {
            Ok(text) => Ok(Self::new(text)),
            Err(error) => Err(JsonError::new("what is no UTF-8".to_owned(), error.valid_up_to())),
        }
    }

    /// A reader that checks what it skips, but for [`Span`](super::Span)s.
    pub(crate) fn strict(text: &'de str) -> Self {
        Self { strict: true, ..Self::new(text) }
    }

    /// Refuses a text that goes on.
    pub(crate) fn end(&mut self) -> Result<(), JsonError> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.error("trailing characters")),
        }
    }

    pub(super) fn error(&self, what: &str) -> JsonError {
        JsonError::new(what.to_owned(), self.at)
    }

    pub(super) fn expected(&mut self, what: &str) -> JsonError {
        match self.peek() {
            Some(_) => self.error(&format!("expected {what}")),
            None => self.error(&format!("EOF where {what} was expected")),
        }
    }

    /// How many bytes were read.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    fn rest(&self) -> &'de [u8] {
        &self.text.as_bytes()[self.at..]
    }

    /// The next byte that is no blank; it is not taken.
    #[inline]
    pub(super) fn peek(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(self.at) {
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    /// Takes this byte, and blanks before it.
    #[inline]
    pub(super) fn take(&mut self, byte: u8, what: &str) -> Result<(), JsonError> {
        if self.peek() != Some(byte) {
            return Err(self.expected(what));
        }
        self.at += 1;
        Ok(())
    }

    /// Goes on to the next member or element: takes the comma, or the end.
    #[inline]
    pub(super) fn goes_on(&mut self, first: bool, end: u8) -> Result<bool, JsonError> {
        match self.peek() {
            Some(byte) if byte == end => {
                self.at += 1;
                return Ok(false);
            }
            Some(b',') if !first => self.at += 1,
            Some(_) if first => {}
            _ => return Err(self.expected("a comma or an end")),
        }
        Ok(true)
    }

    /// Takes the string that begins here.
    #[inline]
    pub(super) fn string(&mut self) -> Result<Found<'de>, JsonError> {
        let (start, is_plain) = self.skip_string()?;
        Ok(match is_plain {
            true => Found::Plain(self.slice(start, self.at - 1)),
            false => {
                self.unescaped.clear();
                let unescaped = token::unescape(self.slice(start, self.at), &mut self.unescaped);
                unescaped.ok_or_else(|| self.error("half a pair of surrogates"))?;
                Found::Escaped(self.slice(start, self.at - 1))
            }
        })
    }

    /// The last string that held escapes, without them.
    pub(super) fn unescaped(&self) -> &str {
        &self.unescaped
    }

    /// Passes over the string that begins here. Where it stands behind its first quote, and whether it has no escapes.
    #[inline]
    fn skip_string(&mut self) -> Result<(usize, bool), JsonError> {
        self.take(b'"', "a string")?;
        let start = self.at;
        self.at += token::plain_len(self.rest());
        let bytes = self.rest();
        match bytes.first() {
            Some(b'"') => {
                self.at += 1;
                Ok((start, true))
            }
            Some(b'\\') => {
                self.at += token::escaped_len(bytes).ok_or_else(|| self.error("a string that is none"))?;
                Ok((start, false))
            }
            _ => Err(self.error("a control character or an end within a string")),
        }
    }

    /// A part of the text, which begins and ends beside ASCII characters.
    fn slice(&self, start: usize, end: usize) -> &'de str {
        self.text.get(start..end).unwrap_or_default()
    }

    /// Takes so many bytes, behind which an ASCII character stands.
    fn advance(&mut self, len: usize) -> &'de str {
        let start = self.at;
        self.at += len;
        self.slice(start, self.at)
    }

    /// Takes the number that begins here: its text, and whether it is a whole one.
    pub(super) fn number(&mut self) -> Result<(&'de str, bool), JsonError> {
        let (len, is_whole) = token::number(self.rest()).ok_or_else(|| self.error("invalid number"))?;
        Ok((self.advance(len), is_whole))
    }

    /// Takes the number that comes, if it is a whole one.
    pub(super) fn wide_number(&mut self) -> Option<&'de str> {
        self.peek();
        let (len, is_whole) = token::number(self.rest())?;
        is_whole.then(|| self.advance(len))
    }

    /// Takes `null`, `true` or `false`.
    pub(super) fn word(&mut self) -> Result<Word, JsonError> {
        let word = token::word(self.rest()).ok_or_else(|| self.expected("a value"))?;
        self.at += word.text().len();
        Ok(word)
    }

    /// Enters a container: takes its first bracket.
    pub(super) fn enter(&mut self) -> Result<(), JsonError> {
        self.depth_left = match self.depth_left.checked_sub(1) {
            Some(left) if left > 0 => left,
            _ => return Err(self.error("recursion limit exceeded")),
        };
        self.at += 1;
        Ok(())
    }

    /// Enters an array, and counts its elements.
    pub(super) fn enter_array(&mut self) -> Result<Option<usize>, JsonError> {
        self.enter()?;
        self.arrays += 1;
        Ok((self.arrays <= COUNTED_ARRAYS).then(|| count(self.rest())))
    }

    pub(super) fn leave_array(&mut self) {
        self.arrays -= 1;
        self.leave();
    }

    pub(super) fn leave(&mut self) {
        self.depth_left += 1;
    }

    /// Passes over the next value.
    pub(super) fn skip(&mut self) -> Result<(), JsonError> {
        if self.strict { self.check() } else { self.span().map(drop) }
    }

    /// Takes the next value without looking into it.
    pub(super) fn span(&mut self) -> Result<&'de str, JsonError> {
        match self.peek() {
            Some(first @ (b'{' | b'[')) => {
                let start = self.at;
                let end = ValueScan::begin(first).and_then(|mut scan| scan.scan(self.rest()));
                self.at += end.ok_or_else(|| self.error("EOF in a value that began"))?;
                Ok(self.slice(start, self.at))
            }
            _ => {
                let start = self.at;
                self.check()?;
                Ok(self.slice(start, self.at))
            }
        }
    }

    /// Passes over the next value, which is to be JSON.
    fn check(&mut self) -> Result<(), JsonError> {
        match self.peek() {
            Some(b'"') => self.skip_string().map(drop),
            Some(b'-' | b'0'..=b'9') => self.number().map(drop),
            Some(b'{') => {
                self.enter()?;
                let mut first = true;
                while self.goes_on(first, b'}')? {
                    first = false;
                    self.skip_string()?;
                    self.take(b':', "a colon")?;
                    self.check()?;
                }
                self.leave();
                Ok(())
            }
            Some(b'[') => {
                self.enter()?;
                let mut first = true;
                while self.goes_on(first, b']')? {
                    first = false;
                    self.check()?;
                }
                self.leave();
                Ok(())
            }
            _ => self.word().map(drop),
        }
    }
}

/// How many elements an array has whose first bracket is taken. Where it is none, some number.
fn count(bytes: &[u8]) -> usize {
    let blanks = |bytes: &[u8]| bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let (mut at, mut count) = (0, 0);
    loop {
        at += blanks(&bytes[at..]);
        let scanned = bytes.get(at).and_then(|first| ValueScan::begin(*first)?.scan(&bytes[at..]));
        let Some(len) = scanned else { return count };
        count += 1;
        at += len;
        at += blanks(&bytes[at..]);
        if bytes.get(at) != Some(&b',') {
            return count;
        }
        at += 1;
    }
}

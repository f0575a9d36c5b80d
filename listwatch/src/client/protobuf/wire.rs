//! PURE. The fields of a protobuf message, one after the other, borrowed from its bytes.
//!
//! Messages within it are not entered. Groups, which Kubernetes has never used, are refused.

/// Bytes that are no protobuf message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no protobuf message: {what} at byte {at}")]
pub(crate) struct Malformed {
    what: &'static str,
    at: usize,
}

impl Malformed {
    pub(crate) fn new(what: &'static str, at: usize) -> Self {
        Self { what, at }
    }
}

/// How a field's value is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WireType {
    Varint,
    /// So many bytes.
    Fixed(u8),
    /// A length, then so many bytes.
    Bytes,
}

/// What stands before a value: the field's number and how the value is written.
pub(crate) fn key(varint: u64) -> Result<(u32, WireType), &'static str> {
    let tag =
        u32::try_from(varint >> 3).ok().filter(|tag| (1..1 << 29).contains(tag)).ok_or("a field without a number")?;
    let wire_type = match varint & 7 {
        0 => WireType::Varint,
        1 => WireType::Fixed(8),
        2 => WireType::Bytes,
        5 => WireType::Fixed(4),
        _ => return Err("a group, or a value of no known type,"),
    };
    Ok((tag, wire_type))
}

/// A number of variable length, as its bytes come: seven bits each, the lowest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Varint {
    value: u64,
    bits: u32,
}

impl Varint {
    /// Takes the next byte; gives the number when it was the last one, and begins anew.
    pub(crate) fn push(&mut self, byte: u8) -> Result<Option<u64>, &'static str> {
        let part = u64::from(byte & 0x7f);
        if self.bits == 63 && byte > 1 {
            return Err("a number of more than 64 bits");
        }
        self.value |= part << self.bits;
        if byte & 0x80 == 0 {
            return Ok(Some(std::mem::take(self).value));
        }
        self.bits += 7;
        Ok(None)
    }

    /// Whether no byte of a number was taken.
    pub(crate) fn is_empty(self) -> bool {
        self.bits == 0
    }
}

/// A number as its bytes.
pub(crate) fn varint_bytes(mut number: u64) -> ([u8; 10], usize) {
    let (mut bytes, mut len) = ([0; 10], 0);
    loop {
        bytes[len] = (number & 0x7f) as u8;
        number >>= 7;
        len += 1;
        if number == 0 {
            return (bytes, len);
        }
        bytes[len - 1] |= 0x80;
    }
}

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Varint(u64),
    Fixed(&'a [u8]),
    /// A text, bytes, or a message.
    Bytes(&'a [u8]),
}

/// One field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field<'a> {
    pub(crate) tag: u32,
    pub(crate) value: Value<'a>,
    /// Where the field begins in its message.
    pub(crate) start: usize,
    /// Where its value, or the length before that, begins.
    pub(crate) value_start: usize,
    /// Where it ends.
    pub(crate) end: usize,
}

impl<'a> Field<'a> {
    /// The bytes of the field of this number.
    pub(crate) fn bytes(&self, tag: u32) -> Option<&'a [u8]> {
        match self.value {
            Value::Bytes(bytes) if self.tag == tag => Some(bytes),
            _ => None,
        }
    }

    /// The value as text.
    pub(crate) fn text(&self) -> Result<&'a str, Malformed> {
        match self.value {
            Value::Bytes(bytes) => {
                str::from_utf8(bytes).map_err(|_| Malformed::new("a text that is no UTF-8", self.start))
            }
            _ => Err(self.of_another_type()),
        }
    }

    /// The value as a message.
    pub(crate) fn message(&self) -> Result<&'a [u8], Malformed> {
        match self.value {
            Value::Bytes(bytes) => Ok(bytes),
            _ => Err(self.of_another_type()),
        }
    }

    /// The value as a number.
    pub(crate) fn number(&self) -> Result<u64, Malformed> {
        match self.value {
            Value::Varint(number) => Ok(number),
            _ => Err(self.of_another_type()),
        }
    }

    fn of_another_type(&self) -> Malformed {
        Malformed::new("a value of another type than its field has", self.start)
    }
}

/// The fields of a message; an error is the last of them.
#[derive(Clone, Debug)]
pub(crate) struct Fields<'a> {
    message: &'a [u8],
    at: usize,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(message: &'a [u8]) -> Self {
        Self { message, at: 0 }
    }

    #[inline]
    fn varint(&mut self) -> Result<u64, &'static str> {
        // Most are a byte long.
        match self.message.get(self.at) {
            Some(&byte) if byte < 0x80 => {
                self.at += 1;
                Ok(byte.into())
            }
            _ => self.long_varint(),
        }
    }

    fn long_varint(&mut self) -> Result<u64, &'static str> {
        let mut varint = Varint::default();
        while let Some(&byte) = self.message.get(self.at) {
            self.at += 1;
            if let Some(number) = varint.push(byte)? {
                return Ok(number);
            }
        }
        Err("an end within a number")
    }

    #[inline]
    fn take(&mut self, len: u64) -> Result<&'a [u8], &'static str> {
        let rest = &self.message[self.at..];
        let len = usize::try_from(len).ok().filter(|len| *len <= rest.len()).ok_or("a value beyond the end")?;
        self.at += len;
        Ok(&rest[..len])
    }

    #[inline]
    fn field(&mut self) -> Result<Field<'a>, &'static str> {
        let start = self.at;
        let (tag, wire_type) = key(self.varint()?)?;
        let value_start = self.at;
        let value = match wire_type {
            WireType::Varint => Value::Varint(self.varint()?),
            WireType::Fixed(len) => Value::Fixed(self.take(len.into())?),
            WireType::Bytes => {
                let len = self.varint()?;
                Value::Bytes(self.take(len)?)
            }
        };
        Ok(Field { tag, value, start, value_start, end: self.at })
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, Malformed>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.at == self.message.len() {
            return None;
        }
        let start = self.at;
        let field = self.field();
        if field.is_err() {
            self.at = self.message.len();
        }
        Some(field.map_err(|what| Malformed::new(what, start)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn each_type_of_value_is_read_with_its_place() {
        let message = b"\x08\x96\x01\x12\x02ab\x1d\x01\x02\x03\x04\x21abcdefgh";
        let fields: Vec<_> = Fields::new(message).map(Result::unwrap).collect();
        let places: Vec<_> =
            fields.iter().map(|field| (field.tag, field.start, field.value_start, field.end)).collect();
        assert_eq!(places, [(1, 0, 1, 3), (2, 3, 4, 7), (3, 7, 8, 12), (4, 12, 13, 21)]);
        assert_eq!(fields[0].number(), Ok(150));
        assert_eq!((fields[1].text(), fields[1].bytes(2), fields[1].bytes(1)), (Ok("ab"), Some(&b"ab"[..]), None));
        assert_eq!(fields[3].value, Value::Fixed(b"abcdefgh"));
        assert!(fields[0].text().is_err() && fields[0].message().is_err() && fields[1].number().is_err());
    }

    #[test]
    fn what_is_no_message_is_refused_and_ends_it() {
        for (message, what) in [
            (&b"\x08"[..], "an end within a number"),
            (b"\x0a\x05abcd", "a value beyond the end"),
            (b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01a", "a value beyond the end"),
            (b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", "a number of more than 64 bits"),
            (b"\x08\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", "a number of more than 64 bits"),
            (b"\x00\x01", "a field without a number"),
            (b"\x0b\x0c", "a group"),
            (b"\x0d\x01\x02", "a value beyond the end"),
        ] {
            let mut fields = Fields::new(message);
            let error = fields.next().unwrap().unwrap_err();
            assert!(error.to_string().contains(what), "{error}");
            assert_eq!(fields.next(), None);
        }
        assert!(Fields::new(b"\x0a\x01\xff").next().unwrap().unwrap().text().is_err());
    }

    proptest! {
        #[test]
        fn a_number_is_what_its_bytes_say(number: u64) {
            let (bytes, len) = varint_bytes(number);
            let mut varint = Varint::default();
            for byte in &bytes[..len - 1] {
                prop_assert_eq!(varint.push(*byte), Ok(None));
                prop_assert!(!varint.is_empty());
            }
            prop_assert_eq!(varint.push(bytes[len - 1]), Ok(Some(number)));
            prop_assert!(varint.is_empty());
        }

        #[test]
        fn fields_lie_one_behind_the_other_whatever_the_bytes(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let mut at = 0;
            for field in Fields::new(&bytes).map_while(Result::ok) {
                prop_assert_eq!(field.start, at);
                prop_assert!(field.start < field.value_start && field.value_start <= field.end);
                at = field.end;
            }
            prop_assert!(at <= bytes.len());
        }
    }
}

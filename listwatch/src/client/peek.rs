//! PURE. Which state of which object an item is, from its bytes, without decoding it.

use kubewire_indexer::Id;

use crate::client::json::plain_len;
use crate::client::value_scan::ValueScan;

/// Key, uid and version of an object in JSON. `None` where they are not there, or not written plainly (with escapes, or
/// as null): then it is to be decoded.
///
/// Nothing is read beyond what is asked for, nor allocated. As API servers write built-in objects, these are the first few
/// hundred bytes; what follows is not even checked to be JSON, and a second `metadata` in it is not seen.
pub(crate) fn peek_json(object: &[u8]) -> Option<Id<'_>> {
    let mut members = Members::of(object)?;
    while members.goes_on()? {
        match members.key()? {
            "metadata" => return peek_metadata(members.rest),
            _ => members.skip_value()?,
        }
    }
    None
}

fn peek_metadata(metadata: &[u8]) -> Option<Id<'_>> {
    let mut members = Members::of(metadata)?;
    let mut found = Found::default();
    while !found.is_complete() && members.goes_on()? {
        let part = match members.key()? {
            "namespace" => &mut found.namespace,
            "name" => &mut found.name,
            "uid" => &mut found.uid,
            "resourceVersion" => &mut found.resource_version,
            _ => {
                members.skip_value()?;
                continue;
            }
        };
        *part = members.text()?;
    }
    found.id()
}

/// What was found of a state, in whatever order.
#[derive(Default)]
pub(crate) struct Found<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) uid: &'a str,
    pub(crate) resource_version: &'a str,
}

impl<'a> Found<'a> {
    /// Whether nothing is left to look for.
    pub(crate) fn is_complete(&self) -> bool {
        ![self.namespace, self.name, self.uid, self.resource_version].contains(&"")
    }

    /// The state, where enough was found; the namespace may be missing, for cluster scope.
    pub(crate) fn id(self) -> Option<Id<'a>> {
        let named = ![self.name, self.uid, self.resource_version].contains(&"");
        named.then(|| Id::new(self.namespace, self.name).uid(self.uid).resource_version(self.resource_version))
    }
}

/// The members of a JSON object, one after the other. `None` of all that follows is that it cannot be read on.
///
/// Of a value that is passed over only brackets and quotes are looked at.
struct Members<'a> {
    rest: &'a [u8],
    first: bool,
}

impl<'a> Members<'a> {
    fn of(object: &'a [u8]) -> Option<Self> {
        let mut members = Self { rest: object, first: true };
        members.take(b'{')?;
        Some(members)
    }

    /// Whether there is one more.
    fn goes_on(&mut self) -> Option<bool> {
        if self.take(b'}').is_some() {
            return Some(false);
        }
        if !std::mem::take(&mut self.first) {
            self.take(b',')?;
        }
        Some(true)
    }

    /// The key of the next one.
    fn key(&mut self) -> Option<&'a str> {
        let key = self.text()?;
        self.take(b':')?;
        Some(key)
    }

    /// Takes a text without escapes.
    fn text(&mut self) -> Option<&'a str> {
        self.take(b'"')?;
        let (text, rest) = self.rest.split_at(plain_len(self.rest));
        self.rest = rest.strip_prefix(b"\"")?;
        str::from_utf8(text).ok()
    }

    /// Passes over a value.
    fn skip_value(&mut self) -> Option<()> {
        self.rest = self.rest.trim_ascii_start();
        let len = ValueScan::begin(*self.rest.first()?)?.scan(self.rest)?;
        self.rest = &self.rest[len..];
        Some(())
    }

    /// Takes this byte, and blanks before it.
    fn take(&mut self, byte: u8) -> Option<()> {
        self.rest = self.rest.trim_ascii_start().strip_prefix(&[byte])?;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_uid_and_version_are_found_in_any_order_whatever_stands_around_them() {
        let id = Id::new("n", "x").uid("u").resource_version("7");
        for object in [
            r#"{"metadata":{"name":"x","namespace":"n","uid":"u","resourceVersion":"7"},"spec":{}}"#,
            r#"{"metadata":{"name":"x","namespace":"n","uid":"u","resourceVersion":"7" this is no JSON"#,
            r#"{"apiVersion":"v1","spec":{"a":[1,"\""]},"metadata":{"labels":{"uid":"no"},"uid":"u","resourceVersion":"7",
                "managedFields":[{"name":"no"}],"namespace":"n","name":"x"},"status":null}"#,
        ] {
            assert_eq!(peek_json(object.as_bytes()), Some(id), "{object}");
        }
        let of_cluster = r#"{"metadata":{"name":"x","uid":"u","resourceVersion":"7","labels":{"a":"b"}}}"#;
        let id = Id::new("", "x").uid("u").resource_version("7");
        assert_eq!(peek_json(of_cluster.as_bytes()), Some(id));
    }

    #[test]
    fn what_does_not_say_its_state_plainly_is_left_to_the_decoder() {
        for object in [
            "",
            "{}",
            "[]",
            "null",
            r#"{"metadata":null}"#,
            r#"{"metadata":{"name":"x","namespace":"n","uid":"u"}}"#,
            r#"{"metadata":{"name":"x","namespace":"n","resourceVersion":"7"}}"#,
            r#"{"metadata":{"namespace":"n","uid":"u","resourceVersion":"7"}}"#,
            r#"{"metadata":{"name":"\u0078","namespace":"n","uid":"u","resourceVersion":"7"}}"#,
            r#"{"metadata":{"name":"x","namespace":"n","uid":7,"resourceVersion":"7"}}"#,
            r#"{"metadata":{"name":"x","namespace":null,"uid":"u","resourceVersion":"7"}}"#,
            r#"{"metadata":{"name":"x","n\u0061mespace":"n","uid":"u","resourceVersion":"7"}}"#,
            r#"{"met\u0061data":{},"metadata":{"name":"x","namespace":"n","uid":"u","resourceVersion":"7"}}"#,
            r#"{"metadata":{"name":"x","uid":"u","resourceVersion":"7""#,
            r#"{"metadata":{"name":"x","uid":"u","resourceVersion":"7","labels":}}"#,
            r#"{"metadata":{"name":"x","uid":"u","resourceVersion":"7",}}"#,
            r#"{"metadata":{"name":"x" "uid":"u","resourceVersion":"7"}}"#,
            r#"{"metadata":{,"name":"x","uid":"u","resourceVersion":"7"}}"#,
            r#"{"spec":{"metadata":{"name":"x","namespace":"n","uid":"u","resourceVersion":"7"}}}"#,
        ] {
            assert_eq!(peek_json(object.as_bytes()), None, "{object}");
        }
        for part in [&b"\xff"[..], b"x\x01", b"x\n"] {
            let object =
                [b"{\"metadata\":{\"name\":\"", part, b"\",\"uid\":\"u\",\"resourceVersion\":\"7\"}}"].concat();
            assert_eq!(peek_json(&object), None, "{part:?}");
        }
    }
}

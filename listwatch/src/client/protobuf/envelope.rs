//! PURE. What Kubernetes puts around an object in protobuf: four bytes, then `runtime.Unknown`.

use crate::client::protobuf::wire::{Fields, Malformed};

/// What stands before an envelope.
pub(crate) const MAGIC: [u8; 4] = *b"k8s\0";
/// The media type.
pub(crate) const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// The fields of `runtime.Unknown`.
pub(crate) const TYPE_META: u32 = 1;
pub(crate) const RAW: u32 = 2;
pub(crate) const CONTENT_ENCODING: u32 = 3;
pub(crate) const CONTENT_TYPE: u32 = 4;

/// An object with what is said of its type. Absent parts are empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Envelope<'a> {
    pub(crate) type_meta: TypeMeta<'a>,
    /// The object.
    pub(crate) raw: &'a [u8],
}

/// `runtime.TypeMeta`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TypeMeta<'a> {
    pub(crate) api_version: &'a str,
    pub(crate) kind: &'a str,
}

impl<'a> Envelope<'a> {
    pub(crate) fn read(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let unknown = bytes.strip_prefix(&MAGIC).ok_or(Malformed::new("no `k8s\\0`", 0))?;
        let mut envelope = Self::default();
        for field in Fields::new(unknown) {
            let field = field?;
            match field.tag {
                TYPE_META => envelope.type_meta = TypeMeta::read(field.message()?)?,
                RAW => envelope.raw = field.message()?,
                CONTENT_ENCODING => refuse_encoding(field.message()?, field.start)?,
                CONTENT_TYPE => refuse_other_type(field.message()?, field.start)?,
                _ => {}
            }
        }
        Ok(envelope)
    }
}

/// Nobody packs the inside of an envelope (the field is there for it).
pub(crate) fn refuse_encoding(encoding: &[u8], at: usize) -> Result<(), Malformed> {
    if encoding.is_empty() { Ok(()) } else { Err(Malformed::new("an object that is encoded once more", at)) }
}

/// An object of another format has no place in an answer of this one. Servers leave the type empty.
pub(crate) fn refuse_other_type(media_type: &[u8], at: usize) -> Result<(), Malformed> {
    match media_type.is_empty() || media_type == MEDIA_TYPE.as_bytes() {
        true => Ok(()),
        false => Err(Malformed::new("an object in another format", at)),
    }
}

impl<'a> TypeMeta<'a> {
    pub(crate) fn read(message: &'a [u8]) -> Result<Self, Malformed> {
        let mut type_meta = Self::default();
        for field in Fields::new(message) {
            let field = field?;
            match field.tag {
                1 => type_meta.api_version = field.text()?,
                2 => type_meta.kind = field.text()?,
                _ => {}
            }
        }
        Ok(type_meta)
    }

    /// What it says, by the names in JSON; only what it does say.
    pub(crate) fn said(self) -> impl Iterator<Item = (&'static str, &'a str)> {
        [("apiVersion", self.api_version), ("kind", self.kind)].into_iter().filter(|(_, value)| !value.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_and_object_are_read_in_any_order() {
        let type_meta = TypeMeta { api_version: "v1", kind: "Pod" };
        let whole = Envelope { type_meta, raw: b"xyz" };
        for bytes in [
            &b"k8s\0\x0a\x09\x0a\x02v1\x12\x03Pod\x12\x03xyz\x1a\x00\x22\x00"[..],
            b"k8s\0\x12\x03xyz\x0a\x09\x0a\x02v1\x12\x03Pod",
            b"k8s\0\x12\x03xyz\x0a\x09\x12\x03Pod\x0a\x02v1\x28\x01",
        ] {
            assert_eq!(Envelope::read(bytes), Ok(whole));
        }
        assert_eq!(Envelope::read(b"k8s\0"), Ok(Envelope::default()));
        assert_eq!(type_meta.said().collect::<Vec<_>>(), [("apiVersion", "v1"), ("kind", "Pod")]);
    }

    #[test]
    fn what_is_no_envelope_is_refused() {
        for bytes in [
            &b""[..],
            b"k8s",
            b"{\"kind\":\"Pod\"}",
            b"k8s\0\x12\x04xyz",
            b"k8s\0\x1a\x04gzip",
            b"k8s\0\x22\x10application/json",
            b"k8s\0\x0a\x03\x12\x01\xff",
            b"k8s\0\x08\x01",
        ] {
            assert!(Envelope::read(bytes).is_err(), "{bytes:?}");
        }
    }
}

//! What objects travel in: the codec of a list-watch.

use http::HeaderValue;

use self::sealed::{Reader, Readers};
use crate::client::protobuf::envelope::MEDIA_TYPE;
use crate::client::{decode, peek, protobuf, watch_line};
use crate::{Decode, ErrorClass, RequestError};

/// JSON, which every server speaks for every resource.
#[derive(Clone, Copy, Debug, Default)]
pub struct Json;

/// Kubernetes' protobuf alone. Servers speak it for the built-in resources, and for the metadata of any; of others
/// they answer 406, which is [`ErrorClass::Invalid`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Protobuf;

/// Protobuf where the server has it, JSON where not, as for custom resources: for representations that are read
/// from both, such as [`Packed`](crate::Packed). The type of the answer's content decides, answer by answer.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProtobufOrJson;

/// A codec that a [`ListWatch`](crate::ListWatch) can ask for where its objects come out as `O`: what `O` can be read
/// from is a matter of types, not of luck.
///
/// | codec | is one for | asks for |
/// |---|---|---|
/// | [`Json`] | `O: Decode<Json>` | JSON |
/// | [`Protobuf`] | `O: Decode<Protobuf>` | protobuf |
/// | [`ProtobufOrJson`] | `O: Decode<Protobuf> + Decode<Json>` | protobuf, JSON as the second choice |
///
/// Sealed: there are no others.
#[diagnostic::on_unimplemented(
    message = "`{O}` cannot be read from all that `{Self}` may bring",
    note = "`Json` takes `Decode<Json>`, `Protobuf` takes `Decode<Protobuf>`, `ProtobufOrJson` takes both"
)]
pub trait Codec<O>: Readers<O> + Send + Sync + 'static {}

impl<O: Decode<Json>> Codec<O> for Json {}
impl<O: Decode<Protobuf>> Codec<O> for Protobuf {}
impl<O: Decode<Protobuf> + Decode<Json>> Codec<O> for ProtobufOrJson {}

impl<O: Decode<Json>> Readers<O> for Json {
    fn json() -> Option<Reader<O>> {
        Some(Reader {
            item: decode::read_item,
            item_state: peek::peek_json,
            event: watch_line::read_line,
            added_state: watch_line::added_state,
        })
    }

    fn protobuf() -> Option<Reader<O>> {
        None
    }
}

impl<O: Decode<Protobuf>> Readers<O> for Protobuf {
    fn json() -> Option<Reader<O>> {
        None
    }

    fn protobuf() -> Option<Reader<O>> {
        Some(Reader {
            item: protobuf::item::read_item,
            item_state: protobuf::item::peek,
            event: protobuf::watch_frame::read_frame,
            added_state: protobuf::watch_frame::added_state,
        })
    }
}

impl<O: Decode<Protobuf> + Decode<Json>> Readers<O> for ProtobufOrJson {
    fn json() -> Option<Reader<O>> {
        Json::json()
    }

    fn protobuf() -> Option<Reader<O>> {
        Protobuf::protobuf()
    }
}

pub(crate) mod sealed {
    use kubewire_indexer::Id;

    use crate::{DecodeOptions, ItemError, RequestError, WatchEvent};

    /// Reads one item of a list.
    pub(crate) type ReadItem<O> = fn(&[u8], &DecodeOptions) -> Result<O, ItemError>;
    /// Reads one event of a watch; the error ends the stream.
    pub(crate) type ReadEvent<O> = fn(&[u8], &DecodeOptions) -> Result<WatchEvent<O>, RequestError>;
    /// Finds which state of which object an item is, or the object of an `ADDED` event, without decoding it; `None`
    /// where it does not say so plainly.
    pub(crate) type Peek = fn(&[u8]) -> Option<Id<'_>>;

    /// How objects are read from one format.
    #[derive(Clone)]
    pub struct Reader<O> {
        pub(crate) item: ReadItem<O>,
        pub(crate) item_state: Peek,
        pub(crate) event: ReadEvent<O>,
        pub(crate) added_state: Peek,
    }

    /// How objects are read from each format that the codec may bring.
    pub trait Readers<O> {
        fn json() -> Option<Reader<O>>;
        fn protobuf() -> Option<Reader<O>>;
    }
}

/// What one answer is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Json,
    Protobuf,
}

impl Format {
    /// The format of an answer with this content type. What is neither is taken as JSON, and refused as such with an
    /// excerpt.
    pub(crate) fn of(content_type: Option<&HeaderValue>) -> Self {
        match content_type.and_then(|value| value.as_bytes().get(..MEDIA_TYPE.len())) {
            Some(media_type) if media_type.eq_ignore_ascii_case(MEDIA_TYPE.as_bytes()) => Self::Protobuf,
            _ => Self::Json,
        }
    }

    /// How a codec reads it.
    pub(crate) fn reader<O, C: Codec<O>>(self) -> Result<Reader<O>, RequestError> {
        let (reader, name) = match self {
            Self::Json => (C::json(), "JSON"),
            Self::Protobuf => (C::protobuf(), "protobuf"),
        };
        reader.ok_or_else(|| {
            let message = format!("the answer is {name}, which was not asked for: `ProtobufOrJson` would take it");
            RequestError::new(ErrorClass::Decode, message)
        })
    }
}

/// What an `Accept` header asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Objects,
    /// The metadata alone: in a list, or one by one in a watch.
    Metadata(&'static str),
}

impl Wanted {
    pub(crate) const METADATA_LIST: Self = Self::Metadata("PartialObjectMetadataList");
    pub(crate) const METADATA: Self = Self::Metadata("PartialObjectMetadata");
}

/// The `Accept` header of a codec. As client-go's metadata client it takes the whole object where the server knows
/// no metadata of it.
pub(crate) fn accept<O, C: Codec<O>>(wanted: Wanted) -> String {
    let media_types = [(C::protobuf().is_some(), MEDIA_TYPE), (C::json().is_some(), "application/json")];
    let media_types = media_types.into_iter().filter(|(spoken, _)| *spoken).map(|(_, media_type)| media_type);
    match wanted {
        Wanted::Objects => media_types.collect::<Vec<_>>().join(","),
        Wanted::Metadata(kind) => {
            let whole = media_types.clone().next_back().unwrap_or_default();
            let metadata = media_types.map(|media_type| format!("{media_type};as={kind};g=meta.k8s.io;v=v1,"));
            metadata.chain([whole.to_owned()]).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::*;
    use crate::Packed;

    #[test]
    fn each_codec_asks_for_what_it_takes_protobuf_first() {
        type P = Packed<Pod>;
        let table = [
            (accept::<P, Json>(Wanted::Objects), "application/json"),
            (accept::<P, Protobuf>(Wanted::Objects), "application/vnd.kubernetes.protobuf"),
            (accept::<P, ProtobufOrJson>(Wanted::Objects), "application/vnd.kubernetes.protobuf,application/json"),
            (
                accept::<P, Json>(Wanted::METADATA),
                "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
            ),
            (
                accept::<P, ProtobufOrJson>(Wanted::METADATA_LIST),
                "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,\
                 application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json",
            ),
            (
                accept::<P, Protobuf>(Wanted::METADATA_LIST),
                "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,\
                 application/vnd.kubernetes.protobuf",
            ),
        ];
        for (accept, expected) in table {
            assert_eq!(accept, expected);
        }
    }

    #[test]
    fn the_content_type_decides_what_an_answer_is() {
        let format = |text: &'static str| Format::of(Some(&HeaderValue::from_static(text)));
        assert_eq!(format("application/vnd.kubernetes.protobuf;stream=watch"), Format::Protobuf);
        assert_eq!(format("Application/vnd.kubernetes.protobuf"), Format::Protobuf);
        assert_eq!(format("application/json"), Format::Json);
        assert_eq!(format("text/html"), Format::Json);
        assert_eq!(Format::of(None), Format::Json);
        let error = Format::Json.reader::<Packed<Pod>, Protobuf>().err().unwrap();
        assert_eq!(error.class(), ErrorClass::Decode);
        assert!(error.to_string().contains("`ProtobufOrJson` would take it"), "{error}");
    }
}

//! Everything that objects may come as: a line of `with_forms!` each, and each tests and traces run over all of them.
//!
//! Each is made from the bytes that a server sends, by the decoder that a list-watch uses.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use k8s_openapi::api::core::v1::Pod as KubePod;
use k8s_pb::api::core::v1 as pb;
use kube_client::Client;
use kube_core::{ApiResource, DynamicObject, PartialObjectMeta};
use kubewire_indexer::{Id, Meta, Metadata, Object};
use kubewire_listwatch::{
    Codec, Decode, DecodeOptions, Json, ListWatch, Packed, Pb, Protobuf, ProtobufOrJson, Zipped, messages,
};
use prost::Message;
use serde::Deserialize;
use serde_json::json;

use crate::record::{Form, Pod};

/// Calls a macro with a name and a type for each representation: choosing one is choosing a type. `json:` before the
/// macro: only those that can be read from JSON.
macro_rules! with_forms {
    (@list [$($more:tt)*] $then:ident $($arguments:tt)*) => {
        $then! {
            [$($arguments)*]
            typed: crate::forms::Typed;
            dynamic: crate::forms::Dynamic;
            metadata_only: crate::forms::MetadataOnly;
            own_struct: crate::forms::OwnStruct;
            packed_json: crate::forms::PackedJson;
            packed_protobuf: crate::forms::PackedProtobuf;
            zipped: crate::forms::ZippedJson;
            $($more)*
        }
    };
    (json: $($then:tt)+) => {
        with_forms! { @list [] $($then)+ }
    };
    ($($then:tt)+) => {
        with_forms! {
            @list [
                k8s_pb: crate::forms::TypedPb;
                own_message: crate::forms::OwnMessage;
                metadata_message: crate::forms::MetadataMessage;
            ]
            $($then)+
        }
    };
}

pub(crate) type Typed = Arc<KubePod>;
pub(crate) type Dynamic = Arc<DynamicObject>;
pub(crate) type MetadataOnly = Arc<PartialObjectMeta<KubePod>>;
pub(crate) type OwnStruct = Arc<PodBrief>;
pub(crate) type PackedJson = Packed<KubePod>;
pub(crate) type PackedProtobuf = Packed<Pb<pb::Pod>>;
pub(crate) type ZippedJson = Zipped<KubePod>;
pub(crate) type TypedPb = Arc<Pb<pb::Pod>>;
pub(crate) type OwnMessage = Arc<PodTags>;
pub(crate) type MetadataMessage = Arc<PodMetadata>;

/// A struct of one's own, read from JSON.
#[derive(Clone, Debug, Deserialize, Meta)]
#[kubewire(resource = KubePod)]
pub(crate) struct PodBrief {
    metadata: BriefMetadata,
    spec: Option<BriefSpec>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct BriefMetadata {
    name: String,
    namespace: String,
    uid: String,
    resource_version: String,
    labels: Option<BTreeMap<String, String>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct BriefSpec {
    node_name: Option<String>,
}

impl Metadata for BriefMetadata {
    fn id(&self) -> Id<'_> {
        Id::new(&self.namespace, &self.name).uid(&self.uid).resource_version(&self.resource_version)
    }

    fn label(&self, name: &str) -> Option<&str> {
        self.labels.as_ref()?.get(name).map(String::as_str)
    }
}

/// What is read of a packed object.
#[derive(Deserialize)]
struct SpecOnly {
    spec: Option<BriefSpec>,
}

/// A struct of one's own, read from protobuf by its tags.
#[derive(Clone, PartialEq, Message, Meta)]
#[kubewire(resource = KubePod)]
pub(crate) struct PodTags {
    #[prost(message, required, tag = "1")]
    metadata: messages::LabeledId,
    #[prost(message, optional, tag = "2")]
    spec: Option<TagsSpec>,
}

#[derive(Clone, PartialEq, Message)]
struct TagsSpec {
    #[prost(string, tag = "10")]
    node_name: String,
}

/// The metadata of a pod, read from protobuf.
#[derive(Clone, PartialEq, Message, Meta)]
#[kubewire(resource = KubePod)]
pub(crate) struct PodMetadata {
    #[prost(message, required, tag = "1")]
    metadata: messages::ObjectMeta,
}

/// The same for all, so that zipped objects have one dictionary.
static OPTIONS: LazyLock<DecodeOptions> = LazyLock::new(DecodeOptions::default);

fn from_json<O: Decode<Json>>(pod: &Pod) -> O {
    let object = json!({
        "metadata": {
            "namespace": pod.namespace, "name": pod.name, "uid": pod.uid, "resourceVersion": pod.version,
            "labels": {"note": pod.note, "app": "web"}, "managedFields": [{"manager": "m"}],
        },
        "spec": {"nodeName": pod.note, "containers": [{"name": "c", "image": "i"}]},
    });
    O::decode(object.to_string().as_bytes(), &OPTIONS).expect("a pod can be read")
}

fn from_protobuf<O: Decode<Protobuf>>(pod: &Pod) -> O {
    let mut message = pb::Pod::default();
    let metadata = message.metadata.get_or_insert_default();
    metadata.namespace = Some(pod.namespace.clone());
    metadata.name = Some(pod.name.clone());
    metadata.uid = Some(pod.uid.clone());
    metadata.resource_version = Some(pod.version.clone());
    metadata.labels = [("note".to_owned(), pod.note.clone()), ("app".to_owned(), "web".to_owned())].into();
    metadata.managed_fields.push(Default::default());
    let spec = message.spec.get_or_insert_default();
    spec.node_name = Some(pod.note.clone());
    spec.containers.push(pb::Container { name: Some("c".to_owned()), ..Default::default() });
    O::decode(&message.encode_to_vec(), &OPTIONS).expect("a pod can be read")
}

/// What an object says by its metadata; `field`: what another field of it says, if it has that.
fn read<O: Object>(object: &O, field: Option<&str>) -> Pod {
    let (id, note) = (object.id(), object.label("note").unwrap_or_default());
    if let Some(field) = field {
        assert_eq!(field, note, "the fields are of different states");
    }
    Pod {
        namespace: id.namespace.to_owned(),
        name: id.name.to_owned(),
        uid: id.uid.to_owned(),
        version: id.resource_version.to_owned(),
        note: note.to_owned(),
    }
}

/// A representation that servers are asked for.
pub(crate) trait Served: Form {
    type Codec: Codec<Self> + Clone;

    /// All pods.
    fn pods(client: Client) -> ListWatch<Self, Self::Codec>;
}

/// `$object`: made by `$make`; what a field beside its metadata says; its codec, and what else it asks for.
macro_rules! form {
    ($object:ty, $make:ident, |$of:ident| $field:expr, $codec:ident $(, $only:ident)?) => {
        impl Form for $object {
            fn make(pod: &Pod) -> Self {
                $make(pod)
            }

            fn read(&self) -> Pod {
                let $of = self;
                read(self, $field)
            }

            /// What is borrowed of both is borrowed of one.
            fn is_handle_of(&self, other: &Self) -> bool {
                std::ptr::eq(self.id().name, other.id().name)
            }
        }

        impl Served for $object {
            type Codec = $codec;

            fn pods(client: Client) -> ListWatch<Self, $codec> {
                ListWatch::for_resource(client, &ApiResource::erase::<KubePod>(&())).codec($codec)$(.$only())?
            }
        }
    };
}

form!(Typed, from_json, |pod| pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()), Json);
form!(Dynamic, from_json, |pod| pod.data["spec"]["nodeName"].as_str(), Json);
form!(MetadataOnly, from_json, |_pod| None, Json, metadata_only);
form!(OwnStruct, from_json, |pod| pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()), Json);
form!(
    PackedJson,
    from_json,
    |pod| pod.peek::<SpecOnly>().expect("it can be read").spec.and_then(|spec| spec.node_name).as_deref(),
    Json
);
form!(
    PackedProtobuf,
    from_protobuf,
    |pod| pod.message::<PodTags>().expect("it can be read").spec.map(|spec| spec.node_name).as_deref(),
    ProtobufOrJson
);
form!(
    ZippedJson,
    from_json,
    |pod| pod.peek::<SpecOnly>().expect("it can be read").spec.and_then(|spec| spec.node_name).as_deref(),
    Json
);
form!(TypedPb, from_protobuf, |pod| pod.spec.as_ref().map(pb::PodSpec::node_name), Protobuf);
form!(OwnMessage, from_protobuf, |pod| pod.spec.as_ref().map(|spec| spec.node_name.as_str()), Protobuf);
form!(MetadataMessage, from_protobuf, |_pod| None, Protobuf, metadata_only);

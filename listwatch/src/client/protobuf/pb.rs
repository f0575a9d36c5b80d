//! Messages of k8s-pb as objects (feature `k8s-pb`).

use std::borrow::Cow;
use std::convert::Infallible;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use k8s_pb::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kubewire_indexer::{Id, LabelMap, Meta, OwnerReference, Represents};
use prost::bytes::{Buf, BufMut};
use prost::encoding::{DecodeContext, WireType};
use prost::{DecodeError, Message};

use self::sealed::OfKube;
use crate::client::protobuf::item::item_error;
use crate::{ItemError, Unpack};

/// A message of k8s-pb, such as `Pb<Pod>`, as an object: neither that crate's types nor the traits are ours to join
/// otherwise. It is the message itself, one dereference away.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use k8s_pb::api::core::v1::Pod;
/// use kubewire_listwatch::{ListWatch, Packed, Pb, Protobuf};
///
/// # fn pods(client: kube_client::Client) {
/// // Each pod as the whole message ...
/// let pods = ListWatch::<Arc<Pb<Pod>>>::all(client.clone()).codec(Protobuf).drop_managed_fields();
/// // ... or as its bytes, which `decode` makes the message of.
/// let packed = ListWatch::<Packed<Pb<Pod>>>::all(client).codec(Protobuf);
/// # }
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pb<M>(pub M);

impl<M> Deref for Pb<M> {
    type Target = M;

    fn deref(&self) -> &M {
        &self.0
    }
}

impl<M> DerefMut for Pb<M> {
    fn deref_mut(&mut self) -> &mut M {
        &mut self.0
    }
}

impl<M: Message> Message for Pb<M> {
    fn encode_raw(&self, buf: &mut impl BufMut) {
        self.0.encode_raw(buf);
    }

    fn merge_field(
        &mut self,
        tag: u32,
        wire_type: WireType,
        buf: &mut impl Buf,
        context: DecodeContext,
    ) -> Result<(), DecodeError> {
        self.0.merge_field(tag, wire_type, buf, context)
    }

    fn encoded_len(&self) -> usize {
        self.0.encoded_len()
    }

    fn clear(&mut self) {
        self.0.clear();
    }
}

impl<M: k8s_pb::Metadata<Ty = ObjectMeta>> Meta for Pb<M> {
    fn id(&self) -> Id<'_> {
        let Some(metadata) = self.0.metadata() else { return Id::default() };
        Id::new(metadata.namespace(), metadata.name()).uid(metadata.uid()).resource_version(metadata.resource_version())
    }

    fn label(&self, name: &str) -> Option<&str> {
        self.0.metadata()?.labels.label(name)
    }

    fn generation(&self) -> Option<i64> {
        // Where JSON has none, there is a zero.
        self.0.metadata()?.generation.filter(|generation| *generation != 0)
    }

    fn is_being_deleted(&self) -> bool {
        self.0.metadata().is_some_and(|metadata| metadata.deletion_timestamp.is_some())
    }

    fn owners(&self) -> Vec<OwnerReference<'_>> {
        let owners = self.0.metadata().into_iter().flat_map(|metadata| &metadata.owner_references);
        owners
            .map(|owner| {
                OwnerReference::new(owner.api_version(), owner.kind(), owner.name())
                    .uid(owner.uid())
                    .controller(owner.controller())
            })
            .collect()
    }

    fn all_labels(&self) -> Vec<(&str, &str)> {
        self.0.metadata().map(|metadata| metadata.labels.all()).unwrap_or_default()
    }

    fn all_annotations(&self) -> Vec<(Cow<'_, str>, Cow<'_, str>)> {
        let annotations = self.0.metadata().into_iter().flat_map(|metadata| &metadata.annotations);
        annotations.map(|(name, value)| (name.into(), value.into())).collect()
    }
}

impl<M: k8s_pb::Resource> Represents for Pb<M> {
    type Resource = PbResource<M>;
}

/// A packed object that came as protobuf.
impl<M: Message + Default> Unpack for Pb<M> {
    fn from_json(json: &str) -> Result<Self, ItemError> {
        let message =
            "it came as JSON: `peek` into it, decode a `Packed` of a type of k8s-openapi, or list in `Protobuf`";
        Err(crate::client::decode::item_error(json.as_bytes(), message.to_owned()))
    }

    fn from_protobuf(message: &[u8]) -> Result<Self, ItemError> {
        M::decode(message).map(Self).map_err(|error| item_error(message, error.to_string()))
    }
}

/// The resource that a message of k8s-pb stands for, as kube knows resources. There are no values of it.
pub struct PbResource<M> {
    never: Infallible,
    message: PhantomData<fn() -> M>,
}

impl<M: k8s_pb::Resource<Scope: OfKube>> kube_core::Resource for PbResource<M> {
    type DynamicType = ();
    type Scope = <M::Scope as OfKube>::Scope;

    fn kind((): &()) -> Cow<'_, str> {
        M::KIND.into()
    }

    fn group((): &()) -> Cow<'_, str> {
        M::GROUP.into()
    }

    fn version((): &()) -> Cow<'_, str> {
        M::VERSION.into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        M::URL_PATH_SEGMENT.into()
    }

    fn meta(&self) -> &kube_core::ObjectMeta {
        match self.never {}
    }

    fn meta_mut(&mut self) -> &mut kube_core::ObjectMeta {
        match self.never {}
    }
}

mod sealed {
    /// What kube calls a scope of k8s-pb.
    pub trait OfKube {
        type Scope;
    }
}

impl OfKube for k8s_pb::NamespaceResourceScope {
    type Scope = kube_core::NamespaceResourceScope;
}

impl OfKube for k8s_pb::ClusterResourceScope {
    type Scope = kube_core::ClusterResourceScope;
}

#[cfg(test)]
mod tests {
    use k8s_pb::api::core::v1::{Node, Pod};
    use kube_core::{ApiResource, NamespaceScope, Resource};
    use kubewire_indexer::Object;
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_message_is_an_object_of_its_resource() {
        fn namespaced<M: Represents<Resource: Resource<Scope: NamespaceScope>>>() {}
        namespaced::<Pb<Pod>>();
        let pods = ApiResource::erase::<<Pb<Pod> as Represents>::Resource>(&());
        assert_eq!((pods.api_version.as_str(), pods.kind.as_str(), pods.plural.as_str()), ("v1", "Pod", "pods"));
        let leases = ApiResource::erase::<PbResource<k8s_pb::api::coordination::v1::Lease>>(&());
        assert_eq!((leases.api_version.as_str(), leases.plural.as_str()), ("coordination.k8s.io/v1", "leases"));

        let mut pod = Pb(Pod::default());
        assert_eq!((pod.id(), pod.label("a")), (Id::default(), None));
        let labels = [("a".to_owned(), "1".to_owned())].into();
        pod.metadata =
            Some(ObjectMeta { name: Some("x".to_owned()), uid: Some("u".to_owned()), labels, ..Default::default() });
        assert_eq!((pod.id(), pod.label("a")), (Id::new("", "x").uid("u"), Some("1")));
        assert_eq!(Arc::new(pod).key().as_str(), "x");
        assert_eq!(Arc::new(Pb(Node::default())).key().as_str(), "");
    }

    #[test]
    fn it_is_written_and_read_as_the_message_itself() {
        let mut pod = Pb(Pod::default());
        pod.metadata = Some(ObjectMeta { name: Some("x".to_owned()), ..Default::default() });
        let bytes = pod.encode_to_vec();
        assert_eq!(bytes, pod.0.encode_to_vec());
        assert_eq!(Pb::<Pod>::decode(&bytes[..]), Ok(pod.clone()));
        assert_eq!(Pb::<Pod>::from_protobuf(&bytes).unwrap(), pod);
        let error = Pb::<Pod>::from_json(r#"{"metadata":{"name":"x"}}"#).unwrap_err();
        assert!(error.to_string().starts_with("x: it came as JSON"), "{error}");
        pod.clear();
        assert_eq!((pod.encoded_len(), pod), (0, Pb(Pod::default())));
    }
}

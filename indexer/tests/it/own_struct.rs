//! `#[derive(Meta)]` on a user's own structs.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kubewire_indexer::{LabeledId, Labels, Meta, Object, ObjectId, Represents};
use serde::Deserialize;

#[derive(Deserialize, Meta)]
#[kubewire(resource = Pod)]
struct PodBrief {
    metadata: LabeledId,
    spec: Spec,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    node_name: Option<String>,
}

#[test]
fn a_struct_of_few_fields_is_an_object() {
    let json = r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web","namespace":"ns","uid":"u",
        "resourceVersion":"7","labels":{"app":"web"},"managedFields":[]},"spec":{"nodeName":"n1","containers":[]}}"#;
    let pod: Arc<PodBrief> = Arc::new(serde_json::from_str(json).unwrap());
    assert_eq!(pod.spec.node_name.as_deref(), Some("n1"));
    assert_eq!(Object::key(&pod).to_string(), "ns/web");
    assert_eq!(Object::id(&pod).resource_version, "7");
    assert_eq!(Object::label(&pod, "app"), Some("web"));
    fn resource<T: Represents<Resource: 'static>>() -> TypeId {
        TypeId::of::<T::Resource>()
    }
    assert_eq!(resource::<PodBrief>(), TypeId::of::<Pod>());
}

#[test]
fn id_and_labels_may_stand_in_other_fields() {
    #[derive(Meta)]
    struct Tuple<T>(T, #[kubewire(metadata)] ObjectId, #[kubewire(labels)] Option<BTreeMap<String, String>>);

    #[derive(Meta)]
    #[kubewire(crate = ::kubewire_indexer)]
    struct Full {
        metadata: kube_core::ObjectMeta,
        #[kubewire(labels)]
        chosen: Labels,
    }

    let id = ObjectId::new(kubewire_indexer::Id::new("", "node"));
    let labels = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
    assert_eq!(Tuple(1, id.clone(), Some(labels)).label("a"), Some("b"));
    assert_eq!(Tuple(1, id.clone(), None).label("a"), None);
    assert_eq!(Meta::key(&Tuple("x", id, None)).to_string(), "node");

    let metadata = kube_core::ObjectMeta { name: Some("x".into()), ..Default::default() };
    let full = Full { metadata, chosen: [("a", "c")].into_iter().collect() };
    assert_eq!((full.id().name, full.label("a")), ("x", Some("c")));
}

//! Objects of k8s-openapi and kube.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Node, Pod};
use kube_core::{DynamicObject, PartialObjectMeta};
use kubewire_indexer::{Indexer, Indexers, NAMESPACE_INDEX, Object};
use serde_json::json;

#[test]
fn typed_dynamic_and_metadata_only_objects_have_ids_and_labels() {
    let json = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"namespace": "ns", "name": "web", "uid": "u", "resourceVersion": "7", "labels": {"app": "web"}},
    });
    fn check<O: Object>(object: O) {
        let id = object.id();
        assert_eq!((id.namespace, id.name, id.uid, id.resource_version), ("ns", "web", "u", "7"));
        assert_eq!(object.label("app"), Some("web"));
        assert_eq!(object.label("nope"), None);
        assert_eq!(object.key().to_string(), "ns/web");
        let indexer = Indexer::with_indexers(Indexers::by_namespace()).unwrap();
        indexer.add(object).unwrap();
        assert_eq!(indexer.last_version(), "7");
        assert_eq!(indexer.by_index(NAMESPACE_INDEX, "ns").unwrap().len(), 1);
    }
    check(Arc::new(serde_json::from_value::<Pod>(json.clone()).unwrap()));
    check(Arc::new(serde_json::from_value::<DynamicObject>(json.clone()).unwrap()));
    check(Arc::new(serde_json::from_value::<PartialObjectMeta<Pod>>(json).unwrap()));
}

#[test]
fn an_object_without_metadata_has_no_key() {
    let node = Arc::new(Node::default());
    assert!(node.try_key().is_err());
    assert_eq!(
        Indexer::new().add(node).unwrap_err().to_string(),
        "the object has no name (metadata.name is missing or empty)"
    );
}

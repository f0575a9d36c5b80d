use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

use super::*;
use kubewire_indexer::Object;

use crate::{Packed, Zipped};

fn json(uid: &str, version: &str) -> Vec<u8> {
    json!({"metadata": {"name": "x", "uid": uid, "resourceVersion": version}}).to_string().into_bytes()
}

fn pod(uid: &str, version: &str) -> Packed<Pod> {
    Packed::from_json(&json(uid, version)).unwrap()
}

#[test]
fn one_state_of_an_object_is_decoded_once_and_another_for_itself() {
    let hot = HotCache::new(10);
    let first = hot.decode(&pod("u", "1")).unwrap();
    assert!(Arc::ptr_eq(&first, &hot.decode(&pod("u", "1")).unwrap()));
    let second = hot.decode(&pod("u", "2")).unwrap();
    assert_eq!(second.metadata.resource_version.as_deref(), Some("2"));
    assert_eq!((hot.counts(), hot.len()), (HotCounts { hits: 1, misses: 2 }, 2));
    hot.clear();
    assert!(hot.is_empty());
    assert!(!Arc::ptr_eq(&first, &hot.decode(&pod("u", "1")).unwrap()));
    assert!(format!("{hot:?}").contains("misses: 3"));
}

#[test]
fn what_cannot_be_known_again_or_not_be_decoded_is_not_kept() {
    let hot = HotCache::new(10);
    for _ in 0..2 {
        hot.decode(&pod("", "1")).unwrap();
        hot.decode(&pod("u", "")).unwrap();
        let broken = br#"{"metadata":{"name":"x","uid":"b","resourceVersion":"1"},"spec":7}"#;
        assert!(hot.decode(&Packed::from_json(broken).unwrap()).is_err());
    }
    assert_eq!((hot.counts(), hot.len()), (HotCounts { hits: 0, misses: 6 }, 0));
}

#[test]
fn there_are_never_more_than_it_has_room_for() {
    let hot = HotCache::<Zipped<Pod>>::new(3);
    let zipped = |n: usize| Zipped::from_json(&json(&n.to_string(), "1")).unwrap();
    for n in 0..20 {
        assert_eq!(hot.decode(&zipped(n)).unwrap().metadata.uid, Some(n.to_string()));
        hot.decode(&zipped(0)).unwrap();
    }
    assert_eq!(hot.len(), 3);
    assert_eq!(hot.counts(), HotCounts { hits: 20, misses: 20 }, "the hot one stays");
}

/// An object of which another task decodes the same state while it is being decoded.
#[derive(Clone)]
struct Overtaken {
    pod: Packed<Pod>,
    hot: Arc<HotCache<Self>>,
    by: Option<Box<Self>>,
}

impl Object for Overtaken {
    fn id(&self) -> kubewire_indexer::Id<'_> {
        self.pod.id()
    }

    fn label(&self, name: &str) -> Option<&str> {
        self.pod.label(name)
    }
}

impl Encoded for Overtaken {
    type Decoded = Pod;

    fn decode(&self) -> Result<Pod, ItemError> {
        if let Some(other) = &self.by {
            self.hot.decode(other)?;
        }
        self.pod.decode()
    }

    fn peek<T: serde::de::DeserializeOwned>(&self) -> Result<T, ItemError> {
        self.pod.peek()
    }
}

#[test]
fn who_decodes_beside_others_gets_what_they_got() {
    let hot = Arc::new(HotCache::new(10));
    let other = Overtaken { pod: pod("u", "1"), hot: Arc::clone(&hot), by: None };
    let first = Overtaken { by: Some(Box::new(other.clone())), ..other.clone() };
    // No lock is held meanwhile.
    let decoded = hot.decode(&first).unwrap();
    assert!(Arc::ptr_eq(&decoded, &hot.decode(&other).unwrap()));
    assert_eq!(hot.counts(), HotCounts { hits: 1, misses: 2 });
}

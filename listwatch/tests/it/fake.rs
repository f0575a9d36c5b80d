//! The trait is small enough to fake in ten lines.

use std::sync::Arc;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kubewire_listwatch::{
    ItemSink, ListMeta, ListOptions, ListerWatcher, RequestError, WatchEvent, WatchOptions, WatchStream,
};

use crate::mock::{list, watch_from};

struct OnePod;

impl ListerWatcher for OnePod {
    type Object = Arc<Pod>;
    async fn list(&self, _: &ListOptions, each: ItemSink<'_, Arc<Pod>>) -> Result<ListMeta, RequestError> {
        each(Ok(Arc::new(Pod::default())));
        Ok(ListMeta::new("1"))
    }
    async fn watch(&self, _: &WatchOptions) -> Result<WatchStream<Arc<Pod>>, RequestError> {
        Ok(futures::stream::iter([Ok(WatchEvent::Added(Arc::default()))]).boxed())
    }
}

#[tokio::test]
async fn a_fake_is_a_lister_watcher() {
    assert_eq!(list(&OnePod).await.0.len(), 1);
    assert_eq!(OnePod.watch(&watch_from("1")).await.unwrap().count().await, 1);
}

#[test]
fn a_fake_is_not_asked_for_initial_events_unless_it_says_so() {
    assert!(!OnePod.supports_watch_list());
    assert!(OnePod.resource().contains("Pod"));
}

//! The representations that decoding is tried in.

use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kube_client::Client;
use kube_core::{ApiResource, DynamicObject};
use kubewire_indexer::Object;
use kubewire_listwatch::{Decode, Json, ListWatch, Packed};

pub(crate) type Dynamic = Arc<DynamicObject>;

/// A representation of pods.
pub(crate) trait Form: Object + Decode<Json> {
    fn pods(client: Client) -> ListWatch<Self>;
    /// The value of an annotation.
    fn annotation(&self, name: &str) -> Option<String>;
}

impl Form for Arc<Pod> {
    fn pods(client: Client) -> ListWatch<Self> {
        ListWatch::all(client)
    }

    fn annotation(&self, name: &str) -> Option<String> {
        self.metadata.annotations.as_ref()?.get(name).cloned()
    }
}

impl Form for Dynamic {
    fn pods(client: Client) -> ListWatch<Self> {
        ListWatch::dynamic(client, &ApiResource::erase::<Pod>(&()))
    }

    fn annotation(&self, name: &str) -> Option<String> {
        self.metadata.annotations.as_ref()?.get(name).cloned()
    }
}

impl Form for Packed<Pod> {
    fn pods(client: Client) -> ListWatch<Self> {
        ListWatch::all(client)
    }

    fn annotation(&self, name: &str) -> Option<String> {
        self.decode().ok()?.metadata.annotations?.get(name).cloned()
    }
}

/// Runs a test, generic over the representation, in each of them.
macro_rules! in_all_forms {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[tokio::test(start_paused = true)]
        async fn $name() {
            check::$name::<std::sync::Arc<k8s_openapi::api::core::v1::Pod>>().await;
            check::$name::<$crate::support::Dynamic>().await;
            check::$name::<kubewire_listwatch::Packed<k8s_openapi::api::core::v1::Pod>>().await;
        }
    };
}
pub(crate) use in_all_forms;

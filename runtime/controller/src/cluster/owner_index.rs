//! Objects by who owns them.

use kubewire_indexer::{IndexFunc, Object};

/// The name of the index of [`controlling_owner`]s.
pub const OWNER_INDEX: &str = "owner";

/// The uid of the owner that controls an object: an index function, for [`OWNER_INDEX`]. It asks `Object::owners`, so it
/// serves any representation that keeps them.
///
/// Cost: a look at all owners of an object for each write of it, and an entry for each object that is controlled.
pub fn controlling_owner<O: Object>() -> IndexFunc<O> {
    IndexFunc::emit(|object: &O, values| {
        let owners = object.owners();
        let controller = owners.iter().find(|owner| owner.controller && !owner.uid.is_empty());
        controller.into_iter().for_each(|owner| values.push(owner.uid));
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use k8s_openapi::api::core::v1::{ConfigMap, Pod};
    use kubewire_apiserver::ApiServer;
    use kubewire_listwatch::Packed;
    use serde_json::{Value, json};
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::{Cache, CacheOptions, ListQuery};

    fn config(namespace: &str, name: &str, owners: &Value) -> Value {
        json!({"metadata": {"namespace": namespace, "name": name, "ownerReferences": owners}})
    }

    fn owner(uid: &str, controller: bool) -> Value {
        json!({"apiVersion": "v1", "kind": "Pod", "name": "web", "uid": uid, "controller": controller})
    }

    #[tokio::test(start_paused = true)]
    async fn what_an_object_controls_is_found_in_its_namespace_in_any_representation() {
        let server = ApiServer::start().await;
        server.create("namespaces", json!({"metadata": {"name": "other"}})).unwrap();
        for (namespace, name, owners) in [
            ("default", "a", json!([owner("u1", true)])),
            ("default", "b", json!([owner("u1", false), owner("u2", true)])),
            ("default", "c", json!([])),
            ("other", "d", json!([owner("u1", true)])),
        ] {
            server.create("configmaps", config(namespace, name, &owners)).unwrap();
        }
        let cache = Cache::new(server.client(), CacheOptions::new().namespaces(["default", "other"]));
        let packed = cache.watch::<Packed<ConfigMap>>().unwrap().indexed_by_owner().unwrap();
        let typed = cache.watch::<Arc<ConfigMap>>().unwrap();
        let stop = CancellationToken::new();
        cache.start(&stop);
        cache.wait_for_sync(&stop, Duration::from_secs(60)).await.unwrap();
        // Also where it runs already, and for a second one who wants it.
        let typed = typed.indexed_by_owner().unwrap().indexed_by_owner().unwrap();
        let names = |uid: &str, namespace: Option<&str>| {
            let metadata = json!({"metadata": {"namespace": namespace, "name": "web", "uid": uid}});
            let owner: Pod = serde_json::from_value(metadata).unwrap();
            let query = ListQuery::all().owned_by(&owner);
            let names = |found: Vec<String>| {
                let mut found = found;
                found.sort();
                found.join(" ")
            };
            let of_typed = names(typed.list(&query).unwrap().iter().map(|config| config.key().to_string()).collect());
            let of_packed = names(packed.list(&query).unwrap().iter().map(|config| config.key().to_string()).collect());
            assert_eq!(of_typed, of_packed);
            of_typed
        };
        assert_eq!(names("u1", Some("default")), "default/a");
        assert_eq!(names("u2", Some("default")), "default/b");
        assert_eq!(names("u1", None), "default/a other/d", "an owner of cluster scope");
        assert_eq!(names("", Some("default")), "", "one that was not read from a server");
        cache.shut_down().await;
    }
}

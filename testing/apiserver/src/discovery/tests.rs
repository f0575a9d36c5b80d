//! Each form tells the same resources.

use super::*;

const V2: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
const V2_BETA_1: &str = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";

fn registry() -> Registry {
    let mut registry = Registry::default();
    registry.add(Resource::custom("example.com", "v1beta1", "Foo", "foos").cluster_scoped());
    registry.add(Resource::custom("example.com", "v1", "Foo", "foos").with_status().with_short_names(["fo"]));
    registry
}

fn body(path: &str) -> Value {
    document(&registry(), path, JSON).unwrap_or_else(|| panic!("{path}")).body
}

fn find<'v>(list: &'v Value, member: &str, name: &str) -> &'v Value {
    list.as_array().and_then(|list| list.iter().find(|item| item[member] == name)).unwrap_or(&Value::Null)
}

#[test]
fn the_accept_header_chooses_the_form() {
    let rows = [
        ("", JSON),
        ("*/*", JSON),
        ("application/json", JSON),
        ("application/json, */*", JSON),
        (V2, V2),
        (V2_BETA_1, V2_BETA_1),
        (&format!("{V2},application/json"), V2),
        (&format!("{V2};profile=nopeer,{V2},application/json"), V2),
        (&format!("application/json,{V2}"), JSON),
        ("application/json; v=v2; as=APIGroupDiscoveryList; g=apidiscovery.k8s.io", V2),
        ("application/json;g=apidiscovery.k8s.io;v=v3;as=APIGroupDiscoveryList,application/json", JSON),
        (&format!("application/json;g=apidiscovery.k8s.io;v=v3;as=APIGroupDiscoveryList,{V2_BETA_1}"), V2_BETA_1),
        ("application/vnd.kubernetes.protobuf", JSON),
    ];
    for (accept, content_type) in rows {
        for path in ["/api", "/apis"] {
            assert_eq!(document(&registry(), path, accept).map(|d| d.content_type), Some(content_type), "{accept}");
        }
        assert_eq!(document(&registry(), "/api/v1", accept).map(|d| d.content_type), Some(JSON), "{accept}");
    }
}

#[test]
fn the_plain_documents_name_groups_versions_and_resources() {
    assert_eq!(body("/api"), json!({"kind": "APIVersions", "versions": ["v1"]}));
    let groups = body("/apis");
    assert_eq!(groups["kind"], "APIGroupList");
    assert_eq!(find(&groups["groups"], "name", ""), &Value::Null, "the core group stands under /api");
    let versions = json!([{"groupVersion": "example.com/v1", "version": "v1"},
                          {"groupVersion": "example.com/v1beta1", "version": "v1beta1"}]);
    let group = json!({"name": "example.com", "versions": versions, "preferredVersion": versions[0]});
    assert_eq!(find(&groups["groups"], "name", "example.com"), &group);
    assert_eq!(body("/apis/example.com")["versions"], versions);
    assert_eq!(body("/apis/example.com")["kind"], "APIGroup");

    assert_eq!(body("/apis/example.com/v1")["groupVersion"], "example.com/v1");
    assert_eq!(
        body("/apis/example.com/v1/")["resources"],
        json!([
            {"name": "foos", "singularName": "foo", "namespaced": true, "kind": "Foo", "shortNames": ["fo"],
             "verbs": ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]},
            {"name": "foos/status", "singularName": "", "namespaced": true, "kind": "Foo",
             "verbs": ["get", "patch", "update"]},
        ])
    );
    let pods = find(&body("/api/v1")["resources"], "name", "pods").clone();
    assert_eq!(
        (&pods["kind"], &pods["shortNames"], &pods["categories"]),
        (&json!("Pod"), &json!(["po"]), &json!(["all"]))
    );
    assert_eq!(find(&body("/api/v1")["resources"], "name", "nodes")["namespaced"], false);
}

#[test]
fn what_does_not_exist_has_no_document() {
    for path in ["/", "/api/v2", "/apis/nope", "/apis/apps/v2", "/apis//v1", "/apis/apps/v1/deployments", "/x"] {
        assert_eq!(document(&registry(), path, JSON), None, "{path}");
    }
}

#[test]
fn the_aggregated_documents_tell_the_same_as_the_plain_ones() {
    let registry = registry();
    let mut resources = 0;
    for (path, is_core) in [("/api", true), ("/apis", false)] {
        let aggregated = document(&registry, path, V2).unwrap().body;
        for group in aggregated["items"].as_array().unwrap() {
            let name = group["metadata"].get("name").and_then(Value::as_str).unwrap_or_default();
            assert_eq!(name.is_empty(), is_core);
            for version in group["versions"].as_array().unwrap() {
                let version_name = version["version"].as_str().unwrap();
                let list = resource_list(&registry, name, version_name).unwrap();
                for resource in version["resources"].as_array().unwrap() {
                    resources += 1;
                    let plural = resource["resource"].as_str().unwrap();
                    let plain = find(&list["resources"], "name", plural);
                    assert_eq!(resource["verbs"], plain["verbs"]);
                    assert_eq!(
                        resource["responseKind"],
                        json!({"group": name, "version": version_name, "kind": plain["kind"]})
                    );
                    assert_eq!(resource["scope"] == "Namespaced", plain["namespaced"] == true);
                    assert_eq!(resource["singularResource"], plain["singularName"]);
                    assert_eq!(resource.get("shortNames"), plain.get("shortNames"));
                    assert_eq!(resource.get("categories"), plain.get("categories"));
                    let status = find(&list["resources"], "name", &format!("{plural}/status"));
                    assert_eq!(&find(&resource["subresources"], "subresource", "status")["verbs"], &status["verbs"]);
                }
            }
        }
    }
    assert_eq!(resources, registry.iter().count());
}

#[test]
fn the_most_stable_and_newest_version_is_preferred() {
    let mut versions = vec!["v1alpha1", "v1", "odd", "v2beta1", "v10", "v1beta2", "v2", "v2alpha1"];
    versions.sort_by_key(|version| std::cmp::Reverse(priority(version)));
    assert_eq!(versions, ["v10", "v2", "v1", "v2beta1", "v1beta2", "v2alpha1", "v1alpha1", "odd"]);
}

//! The custom resource: so many pods of one image.

use std::borrow::Cow;
use std::time::Duration;

use anyhow::Context;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_client::api::PostParams;
use kube_client::core::{NamespaceResourceScope, ObjectMeta};
use kube_client::{Api, Client, Resource};
use serde::{Deserialize, Serialize};
use serde_json::json;

pub(crate) const GROUP: &str = "example.com";
const VERSION: &str = "v1";
const KIND: &str = "WebSet";
pub(crate) const PLURAL: &str = "websets";

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WebSet {
    api_version: String,
    kind: String,
    pub(crate) metadata: ObjectMeta,
    pub(crate) spec: WebSetSpec,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<WebSetStatus>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct WebSetSpec {
    pub(crate) replicas: u32,
    pub(crate) image: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WebSetStatus {
    /// The generation of the spec that the rest is about.
    pub(crate) observed_generation: Option<i64>,
    pub(crate) replicas: u32,
    pub(crate) ready_replicas: u32,
}

impl WebSet {
    pub(crate) fn new(name: &str, replicas: u32) -> Self {
        Self {
            api_version: format!("{GROUP}/{VERSION}"),
            kind: KIND.to_owned(),
            metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
            spec: WebSetSpec { replicas, image: "registry.k8s.io/pause:3.10".to_owned() },
            status: None,
        }
    }
}

/// What kube's `#[derive(CustomResource)]` would write.
impl Resource for WebSet {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        KIND.into()
    }
    fn group((): &()) -> Cow<'_, str> {
        GROUP.into()
    }
    fn version((): &()) -> Cow<'_, str> {
        VERSION.into()
    }
    fn plural((): &()) -> Cow<'_, str> {
        PLURAL.into()
    }
    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }
    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}

/// For the embedded server, which takes custom resources at its start.
pub(crate) fn served() -> kubewire_apiserver::Resource {
    kubewire_apiserver::Resource::custom(GROUP, VERSION, KIND, PLURAL).with_status()
}

/// For a real one: creates the definition where it is not there, and waits until it is served.
pub(crate) async fn install(client: Client) -> anyhow::Result<()> {
    let definitions: Api<CustomResourceDefinition> = Api::all(client);
    let name = format!("{PLURAL}.{GROUP}");
    let integer = json!({"type": "integer", "format": "int64"});
    let definition = serde_json::from_value(json!({
        "metadata": {"name": name},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": PLURAL, "singular": KIND.to_lowercase(), "kind": KIND, "listKind": format!("{KIND}List")},
            "versions": [{
                "name": VERSION, "served": true, "storage": true,
                "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "required": ["spec"], "properties": {
                    "spec": {
                        "type": "object", "required": ["replicas", "image"],
                        "properties": {"replicas": {"type": "integer", "minimum": 0}, "image": {"type": "string"}},
                    },
                    "status": {"type": "object", "properties": {
                        "observedGeneration": integer, "replicas": integer, "readyReplicas": integer,
                    }},
                }}},
            }],
        },
    }))?;
    if definitions.get_opt(&name).await.context("cannot ask for the definition")?.is_none() {
        definitions.create(&PostParams::default(), &definition).await.context("cannot create the definition")?;
    }
    for _ in 0..100 {
        let status = definitions.get(&name).await?.status;
        let conditions = status.and_then(|status| status.conditions).unwrap_or_default();
        if conditions.iter().any(|condition| condition.type_ == "Established" && condition.status == "True") {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    anyhow::bail!("the definition {name} is not established after 10 s")
}

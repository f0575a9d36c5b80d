//! Objects are brought to the API server, and waited for.

use std::time::{Duration, Instant};

use http::{Method, Request};
use kube_client::Client;
use serde_json::Value;

use crate::Manifests;

/// Why manifests are not installed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InstallError {
    /// There is none among them that can be installed.
    #[error(
        "there is no CustomResourceDefinition or webhook configuration among the manifests: are these the right files?"
    )]
    Nothing,
    /// One has no name.
    #[error("a {kind} has no metadata.name")]
    Unnamed {
        /// Its kind.
        kind: String,
    },
    /// The API server refused it.
    #[error("{kind} {name}: {source}")]
    Api {
        /// Its kind.
        kind: String,
        /// Its name.
        name: String,
        /// Why.
        source: kube_client::Error,
    },
    /// The API server took it, but does not serve the resource.
    #[error("{name} was installed, but {group_version} was not served after {} s: {last}", SERVED_TIMEOUT.as_secs())]
    NotServed {
        /// The name of the definition.
        name: String,
        /// What was looked for.
        group_version: String,
        /// What was answered last.
        last: String,
    },
    /// No client can be made.
    #[error(transparent)]
    Client(#[from] crate::EnvError),
}

/// As envtest.
const SERVED_POLL: Duration = Duration::from_millis(100);
const SERVED_TIMEOUT: Duration = Duration::from_secs(10);
/// Somebody else may write to the same object.
const ATTEMPTS: usize = 5;

/// The kinds that are installed: kind, where, and under what name.
const KINDS: &[(&str, &str)] = &[
    ("CustomResourceDefinition", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"),
    ("ValidatingWebhookConfiguration", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"),
    ("MutatingWebhookConfiguration", "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"),
];

/// One object, its kind, its name and the path of its collection.
struct Item<'a> {
    object: &'a Value,
    kind: &'static str,
    name: &'a str,
    collection: &'static str,
}

impl Item<'_> {
    fn error(&self, source: kube_client::Error) -> InstallError {
        InstallError::Api { kind: self.kind.to_owned(), name: self.name.to_owned(), source }
    }

    fn path(&self) -> String {
        format!("{}/{}", self.collection, self.name)
    }
}

fn items(manifests: &Manifests) -> Result<Vec<Item<'_>>, InstallError> {
    let mut items = Vec::new();
    for object in manifests.objects() {
        let Some((kind, collection)) = KINDS.iter().copied().find(|(kind, _)| object["kind"] == *kind) else {
            continue;
        };
        let name = object["metadata"]["name"].as_str().filter(|name| !name.is_empty());
        let name = name.ok_or_else(|| InstallError::Unnamed { kind: kind.to_owned() })?;
        items.push(Item { object, kind, name, collection });
    }
    if items.is_empty() { Err(InstallError::Nothing) } else { Ok(items) }
}

/// Creates or updates all, then waits until each definition's versions are served.
pub(crate) async fn install(client: &Client, manifests: &Manifests) -> Result<(), InstallError> {
    let items = items(manifests)?;
    for item in &items {
        write(client, item).await?;
    }
    for item in items.iter().filter(|item| item.kind == "CustomResourceDefinition") {
        served(client, item).await?;
    }
    Ok(())
}

/// Deletes all; what is not there is passed over.
pub(crate) async fn uninstall(client: &Client, manifests: &Manifests) -> Result<(), InstallError> {
    for item in items(manifests)? {
        match send(client, Method::DELETE, &item.path(), None).await {
            Err(error) if code(&error) != Some(404) => return Err(item.error(error)),
            _ => {}
        }
    }
    Ok(())
}

async fn write(client: &Client, item: &Item<'_>) -> Result<(), InstallError> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        let written = match send(client, Method::GET, &item.path(), None).await {
            Ok(have) => {
                let mut object = item.object.clone();
                object["metadata"]["resourceVersion"] = have["metadata"]["resourceVersion"].clone();
                send(client, Method::PUT, &item.path(), Some(&object)).await
            }
            Err(error) if code(&error) == Some(404) => {
                send(client, Method::POST, item.collection, Some(item.object)).await
            }
            Err(error) => Err(error),
        };
        match written {
            Ok(_) => return Ok(()),
            Err(error) if code(&error) == Some(409) && attempts < ATTEMPTS => {}
            Err(error) => return Err(item.error(error)),
        }
    }
}

async fn served(client: &Client, item: &Item<'_>) -> Result<(), InstallError> {
    let spec = &item.object["spec"];
    let (group, plural) = (spec["group"].as_str().unwrap_or_default(), &spec["names"]["plural"]);
    let versions = spec["versions"].as_array().map(Vec::as_slice).unwrap_or_default();
    for version in versions.iter().filter(|version| version["served"] == true) {
        let group_version = format!("{group}/{}", version["name"].as_str().unwrap_or_default());
        let begun = Instant::now();
        loop {
            let last = match send(client, Method::GET, &format!("/apis/{group_version}"), None).await {
                Ok(list) => {
                    let resources = list["resources"].as_array().map(Vec::as_slice).unwrap_or_default();
                    if resources.iter().any(|resource| resource["name"] == *plural) {
                        break;
                    }
                    format!("there is no {plural} in it")
                }
                Err(error) => error.to_string(),
            };
            if begun.elapsed() >= SERVED_TIMEOUT {
                return Err(InstallError::NotServed { name: item.name.to_owned(), group_version, last });
            }
            tokio::time::sleep(SERVED_POLL).await;
        }
    }
    Ok(())
}

fn code(error: &kube_client::Error) -> Option<u16> {
    match error {
        kube_client::Error::Api(status) => Some(status.code),
        _ => None,
    }
}

async fn send(client: &Client, method: Method, path: &str, body: Option<&Value>) -> Result<Value, kube_client::Error> {
    let body = body.map(serde_json::to_vec).transpose().map_err(kube_client::Error::SerdeError)?;
    let request = Request::builder().method(method).uri(path).header(http::header::CONTENT_TYPE, "application/json");
    let request = request.body(body.unwrap_or_default()).map_err(kube_client::Error::HttpError)?;
    client.request(request).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_kinds_are_passed_over_and_nothing_at_all_is_an_error() {
        let text =
            "{ kind: Pod, metadata: { name: a } }\n---\n{ kind: CustomResourceDefinition, metadata: { name: b } }";
        let manifests = Manifests::from_text(text).unwrap();
        let items = items(&manifests).unwrap();
        assert_eq!(items.len(), 1);
        assert_eq!(items[0].path(), "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/b");
        let pod = Manifests::from_text("{ kind: Pod, metadata: { name: a } }").unwrap();
        assert!(matches!(super::items(&pod), Err(InstallError::Nothing)));
        let unnamed = Manifests::from_text("kind: MutatingWebhookConfiguration").unwrap();
        assert!(matches!(super::items(&unnamed), Err(InstallError::Unnamed { .. })));
    }
}

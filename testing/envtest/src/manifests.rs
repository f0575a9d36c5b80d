//! Objects to be installed. PURE but for the reading of files.

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// Objects from YAML or JSON: custom resource definitions and webhook configurations, among others that are passed over.
///
/// Of two objects of one kind and name the later counts, in the place of the earlier.
///
/// ```
/// use kubewire_envtest::Manifests;
///
/// let manifests = Manifests::from_text(
///     "
/// apiVersion: apiextensions.k8s.io/v1
/// kind: CustomResourceDefinition
/// metadata: { name: widgets.example.com }
/// ---
/// apiVersion: admissionregistration.k8s.io/v1
/// kind: ValidatingWebhookConfiguration
/// metadata: { name: widgets }
/// ",
/// )?;
/// assert_eq!(manifests.objects().len(), 2);
/// # Ok::<(), kubewire_envtest::ManifestError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Manifests {
    objects: Vec<Value>,
}

/// Why manifests cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// A file or a directory cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// Which one.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A text is neither YAML nor JSON.
    #[error("{place} is not YAML: {message}")]
    Parse {
        /// The file, or `the text`.
        place: String,
        /// What is wrong with it.
        message: String,
    },
    /// An object cannot be written as JSON.
    #[error("an object cannot be written as JSON: {0}")]
    Serialize(#[from] serde_json::Error),
}

impl Manifests {
    /// Of a file, or of all files `*.yaml`, `*.yml` and `*.json` of a directory in the order of their names, not of those
    /// below it. A file may hold several documents.
    ///
    /// # Errors
    /// A file cannot be read, or is no YAML.
    pub fn from_path(path: impl AsRef<Path>) -> Result<Self, ManifestError> {
        let path = path.as_ref();
        let read_error = |source| ManifestError::Read { path: path.to_owned(), source };
        let mut files = Vec::new();
        if path.is_dir() {
            for entry in std::fs::read_dir(path).map_err(read_error)? {
                let file = entry.map_err(read_error)?.path();
                let extension = file.extension().and_then(|extension| extension.to_str());
                if extension.is_some_and(|extension| ["yaml", "yml", "json"].contains(&extension)) {
                    files.push(file);
                }
            }
            files.sort();
        } else {
            files.push(path.to_owned());
        }
        let mut this = Self::default();
        for file in files {
            let text =
                std::fs::read_to_string(&file).map_err(|source| ManifestError::Read { path: file.clone(), source })?;
            this.extend(parse(&text, &file.display().to_string())?);
        }
        Ok(this)
    }

    /// Of a text of one or more documents.
    ///
    /// # Errors
    /// It is no YAML.
    pub fn from_text(text: &str) -> Result<Self, ManifestError> {
        let mut this = Self::default();
        this.extend(parse(text, "the text")?);
        Ok(this)
    }

    /// Of values, such as a `CustomResourceDefinition` of k8s-openapi or what `kube`'s derive makes.
    ///
    /// # Errors
    /// One cannot be written as JSON.
    pub fn from_objects<T: serde::Serialize>(objects: impl IntoIterator<Item = T>) -> Result<Self, ManifestError> {
        let mut this = Self::default();
        for object in objects {
            this.extend([serde_json::to_value(object)?]);
        }
        Ok(this)
    }

    /// These and, after them, others.
    #[must_use = "it changes nothing by itself"]
    pub fn and(mut self, other: Self) -> Self {
        self.extend(other.objects);
        self
    }

    /// The objects, in order.
    pub fn objects(&self) -> &[Value] {
        &self.objects
    }

    /// The same, with all webhooks at this base address: those of webhook configurations, and those of definitions that are
    /// converted by one. The path of a service stays; the authority is the one that is given.
    #[must_use = "it changes nothing by itself"]
    pub fn with_webhooks_at(mut self, url: &str, ca_pem: &str) -> Self {
        for object in &mut self.objects {
            if let Some(webhooks) = object.get_mut("webhooks").and_then(Value::as_array_mut) {
                webhooks.iter_mut().filter_map(|webhook| webhook.get_mut("clientConfig")).for_each(|config| {
                    redirect(config, url, ca_pem);
                });
            }
            if let Some(config) = object.pointer_mut("/spec/conversion/webhook/clientConfig") {
                redirect(config, url, ca_pem);
            }
        }
        self
    }

    fn extend(&mut self, objects: impl IntoIterator<Item = Value>) {
        for object in objects {
            let same = self.objects.iter_mut().find(|have| {
                ["/kind", "/metadata/name", "/metadata/namespace"]
                    .iter()
                    .all(|path| have.pointer(path) == object.pointer(path))
            });
            match same {
                Some(have) => *have = object,
                None => self.objects.push(object),
            }
        }
    }
}

fn parse(text: &str, place: &str) -> Result<Vec<Value>, ManifestError> {
    let error = |message: String| ManifestError::Parse { place: place.to_owned(), message };
    // Definitions of some operators are larger than what the parser takes by default, and they are no strangers' texts.
    let options = serde_saphyr::options! { budget: None };
    let documents: Vec<Value> =
        serde_saphyr::from_multiple_with_options(text, options).map_err(|e| error(e.to_string()))?;
    // A list, as kubectl writes it, stands for its items.
    let mut objects = Vec::new();
    for document in documents {
        match document {
            Value::Null => {}
            Value::Object(mut object) if object.get("kind").is_some_and(|kind| kind == "List") => {
                match object.remove("items") {
                    Some(Value::Array(items)) => objects.extend(items),
                    _ => return Err(error("a list without items".to_owned())),
                }
            }
            Value::Object(_) => objects.push(document),
            _ => return Err(error("a document that is no object".to_owned())),
        }
    }
    Ok(objects)
}

/// Where a webhook is called.
fn redirect(config: &mut Value, url: &str, ca_pem: &str) {
    let path = match (config.pointer("/service/path"), config.get("url")) {
        (Some(Value::String(path)), _) => path.clone(),
        (None, Some(Value::String(url))) => {
            url.parse::<http::Uri>().map_or_else(|_| "/".to_owned(), |url| url.path().to_owned())
        }
        _ => "/".to_owned(),
    };
    let url = format!("{}{path}", url.trim_end_matches('/'));
    *config = json!({ "url": url, "caBundle": STANDARD.encode(ca_pem) });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(manifests: &Manifests) -> Vec<&str> {
        manifests.objects().iter().map(|object| object["metadata"]["name"].as_str().unwrap()).collect()
    }

    #[test]
    fn a_text_may_have_many_documents_and_lists_and_a_later_object_takes_the_earliers_place() {
        let text = "
# a comment first
---
kind: A
metadata: { name: one }
---
---
kind: List
items:
- { kind: A, metadata: { name: two }, on: 'yes' }
- { kind: A, metadata: { name: one }, version: 1.10 }
---
{\"kind\": \"B\", \"metadata\": {\"name\": \"one\"}}
";
        let manifests = Manifests::from_text(text).unwrap();
        assert_eq!(names(&manifests), ["one", "two", "one"]);
        assert!(manifests.objects()[0].get("version").is_some());
        assert_eq!(manifests.objects()[1]["on"], "yes");
        assert_eq!(manifests.objects()[2]["kind"], "B");
        assert_eq!(Manifests::from_text("").unwrap(), Manifests::default());
    }

    #[test]
    fn what_is_no_object_is_an_error_that_names_its_place() {
        for wrong in ["just text", "[1, 2]", "kind: List", "a: [", "a: 1\na: 2"] {
            let error = Manifests::from_text(wrong).unwrap_err().to_string();
            assert!(error.starts_with("the text is not YAML: "), "{wrong}: {error}");
        }
        let error = Manifests::from_path("/nonexistent/crd.yaml").unwrap_err().to_string();
        assert!(error.contains("/nonexistent/crd.yaml"), "{error}");
    }

    #[test]
    fn a_directory_gives_its_files_in_order_of_their_names() {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("b.yml", "kind: A\nmetadata: { name: b }"),
            ("a.yaml", "kind: A\nmetadata: { name: a }\n---\nkind: A\nmetadata: { name: c }"),
            ("c.json", "{\"kind\": \"A\", \"metadata\": {\"name\": \"a\"}, \"last\": true}"),
            ("README.md", "kind: A: no"),
        ] {
            std::fs::write(directory.path().join(name), text).unwrap();
        }
        let manifests = Manifests::from_path(directory.path()).unwrap();
        assert_eq!(names(&manifests), ["a", "c", "b"]);
        assert_eq!(manifests.objects()[0]["last"], true);
        let one = Manifests::from_path(directory.path().join("b.yml")).unwrap();
        assert_eq!(names(&one.and(manifests)), ["b", "a", "c"]);
    }

    #[test]
    fn webhooks_are_redirected_and_keep_their_paths() {
        let objects = [
            json!({"kind": "ValidatingWebhookConfiguration", "metadata": {"name": "v"}, "webhooks": [
                {"name": "a", "clientConfig": {"service": {"name": "s", "namespace": "n", "path": "/validate"}}},
                {"name": "b", "clientConfig": {"url": "https://far.example:8443/other?x=1"}},
                {"name": "c", "clientConfig": {"service": {"name": "s", "namespace": "n"}}},
            ]}),
            json!({"kind": "CustomResourceDefinition", "metadata": {"name": "c"}, "spec": {"conversion": {
                "strategy": "Webhook",
                "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": {"service": {"path": "/convert"}}},
            }}}),
            json!({"kind": "CustomResourceDefinition", "metadata": {"name": "plain"}, "spec": {}}),
        ];
        let before = Manifests::from_objects(&objects).unwrap();
        let after = before.with_webhooks_at("https://127.0.0.1:9443/", "CA");
        let url = |path: &str| {
            let config = after.objects()[if path.starts_with("/spec") { 1 } else { 0 }].pointer(path).unwrap();
            assert_eq!(config["caBundle"], "Q0E=");
            assert!(config.get("service").is_none());
            config["url"].as_str().unwrap().to_owned()
        };
        assert_eq!(url("/webhooks/0/clientConfig"), "https://127.0.0.1:9443/validate");
        assert_eq!(url("/webhooks/1/clientConfig"), "https://127.0.0.1:9443/other");
        assert_eq!(url("/webhooks/2/clientConfig"), "https://127.0.0.1:9443/");
        assert_eq!(url("/spec/conversion/webhook/clientConfig"), "https://127.0.0.1:9443/convert");
        assert_eq!(after.objects()[2], objects[2]);
    }
}

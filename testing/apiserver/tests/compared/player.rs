//! Plays requests to a server.

use std::collections::BTreeMap;

use http_body_util::BodyExt;
use kube_client::Client;
use kube_client::client::Body;
use serde_json::Value;

use crate::answer::Answer;
use crate::request::Request;

/// Plays requests, and remembers what later ones refer to.
pub(crate) struct Player {
    client: Client,
    /// By place, such as `configmaps/m`.
    seen: BTreeMap<String, Seen>,
}

/// What is remembered of an object.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) uid: String,
    pub(crate) first: String,
    pub(crate) version: String,
}

impl Player {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, seen: BTreeMap::new() }
    }

    /// Defines the custom resource, and waits until it is served.
    pub(crate) async fn define(&self, definition: String) {
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        let (code, answer) = self.send("POST", path, "application/json", definition).await;
        assert_eq!(code, 201, "a fresh server is needed: {answer}");
        for _ in 0..200 {
            // Its schema counts from a moment later on; an apply shows that it does.
            let probe =
                r#"{"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"probe"},"spec":{"set":["a"]}}"#;
            let path = "/apis/example.com/v1/namespaces/default/things/probe?fieldManager=probe&dryRun=All";
            let (_, answer) = self.send("PATCH", path, "application/apply-patch+yaml", probe.to_owned()).await;
            if answer["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]["f:set"]["v:\"a\""].is_object() {
                return;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        panic!("the definition is not served within 10 s");
    }

    pub(crate) async fn play(&mut self, request: &Request) -> Answer {
        let body = self.with_variables(&request.body);
        let (code, answer) = self.send(request.method, &request.path(), &request.content_type, body).await;
        let mut place: Vec<&str> = request.place.split('/').take(2).collect();
        let name = answer["metadata"]["name"].as_str().unwrap_or_default();
        if place.len() == 1 {
            place.push(name);
        }
        let place = place.join("/");
        let answer = Answer::new(&request.name, code, &answer, self.seen.get(&place));
        if let Some(seen) = &answer.seen {
            let is_dry = request.query.contains("dryRun");
            let before = self.seen.get(&place).filter(|before| before.uid == seen.uid);
            let first = before.map_or_else(|| seen.version.clone(), |before| before.first.clone());
            if !is_dry {
                self.seen.insert(place, Seen { first, ..seen.clone() });
            }
        }
        answer
    }

    async fn send(&self, method: &str, path: &str, content_type: &str, body: String) -> (u16, Value) {
        let mut request = http::Request::builder().method(method).uri(path).header("user-agent", "compared/1 (test)");
        if !content_type.is_empty() {
            request = request.header("content-type", content_type);
        }
        let request = request.body(Body::from(body.into_bytes())).expect("a request");
        let answer = self.client.send(request).await.unwrap_or_else(|error| panic!("{method} {path}: {error}"));
        let code = answer.status().as_u16();
        let bytes = answer.into_body().collect().await.expect("a whole body").to_bytes();
        (code, serde_json::from_slice(&bytes).unwrap_or_else(|_| String::from_utf8_lossy(&bytes).into()))
    }

    fn with_variables(&self, body: &str) -> String {
        let mut body = body.to_owned();
        for (place, seen) in &self.seen {
            for (name, value) in [("UID", &seen.uid), ("VERSION", &seen.version), ("FIRST", &seen.first)] {
                body = body.replace(&format!("${name}({place})"), value);
            }
        }
        body
    }
}

//! The real API server calls. Run by `testing/envtest/check.sh`.

use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request};
use kube_client::Client;
use kubewire_envtest::{Manifests, TestEnv};
use kubewire_webhook::WebhookServer;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::widget::webhooks;

const MANIFESTS: &str = r#"
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: widgets.example.com }
spec:
  group: example.com
  scope: Namespaced
  names: { plural: widgets, singular: widget, kind: Widget, listKind: WidgetList }
  conversion:
    strategy: Webhook
    webhook:
      conversionReviewVersions: [v1]
      clientConfig: { service: { name: w, namespace: default, path: /convert } }
  versions:
  - { name: v1, served: true, storage: false, schema: { openAPIV3Schema: { type: object, x-kubernetes-preserve-unknown-fields: true } } }
  - { name: v2, served: true, storage: true, schema: { openAPIV3Schema: { type: object, x-kubernetes-preserve-unknown-fields: true } } }
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingWebhookConfiguration
metadata: { name: widgets }
webhooks:
- name: default.widgets.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  rules: [{ apiGroups: [example.com], apiVersions: [v2], resources: [widgets], operations: [CREATE, UPDATE] }]
  clientConfig: { service: { name: w, namespace: default, path: /mutate-example-com-v2-widget } }
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: { name: widgets }
webhooks:
- name: validate.widgets.example.com
  admissionReviewVersions: [v1]
  sideEffects: None
  rules: [{ apiGroups: [example.com], apiVersions: [v2], resources: [widgets], operations: [CREATE, UPDATE, DELETE] }]
  clientConfig: { service: { name: w, namespace: default, path: /validate-example-com-v2-widget } }
"#;

const WIDGETS: &str = "/apis/example.com/v2/namespaces/default/widgets";

/// What is answered, or the code and message of the refusal.
async fn send(client: &Client, method: Method, path: &str, body: Option<Value>) -> Result<Value, (u16, String)> {
    let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    match client.request(request.body(body).unwrap()).await {
        Ok(value) => Ok(value),
        Err(kube_client::Error::Api(status)) => Err((status.code, status.message)),
        Err(error) => panic!("{error}"),
    }
}

fn widget(name: &str, spec: Value) -> Option<Value> {
    Some(json!({"apiVersion": "example.com/v2", "kind": "Widget", "metadata": {"name": name}, "spec": spec}))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs kube-apiserver and etcd: run testing/envtest/check.sh"]
async fn the_api_server_calls_defaulter_validator_and_converter_also_after_the_certificate_was_replaced() {
    let env = TestEnv::start().await.unwrap();
    let client = env.client().unwrap();
    let mut place = env.local_webhooks().unwrap();
    let server = WebhookServer::new(webhooks().service().unwrap(), place.certificate_dir()).unwrap();
    let server = Arc::new(server.address(place.address()));
    let (stop, cancel) = (CancellationToken::new(), CancellationToken::new());
    let running = tokio::spawn({
        let (server, stop, cancel) = (Arc::clone(&server), stop.clone(), cancel.clone());
        async move { server.run(stop, cancel).await }
    });
    server.started().await;
    let manifests = Manifests::from_text(MANIFESTS).unwrap();
    env.install(&place.redirect(manifests.clone())).await.unwrap();

    // The configuration is there at once, and minded some moments later.
    let name = |n: usize| format!("first-{n}");
    let mut attempt = 0;
    let first = loop {
        attempt += 1;
        let spec = json!({"size": 3, "other": {"kept": true}});
        match send(&client, Method::POST, WIDGETS, widget(&name(attempt), spec)).await {
            Ok(created) if created["spec"]["color"] == "red" => break created,
            _ if attempt < 200 => tokio::time::sleep(Duration::from_millis(50)).await,
            other => panic!("the defaulter is not called: {other:?}"),
        }
    };
    assert_eq!(first["spec"], json!({"size": 3, "color": "red", "other": {"kept": true}}));

    let (code, message) = loop {
        match send(&client, Method::POST, WIDGETS, widget("large", json!({"size": 101}))).await {
            Err(refused) => break refused,
            Ok(_) => drop(send(&client, Method::DELETE, &format!("{WIDGETS}/large"), None).await),
        }
    };
    assert_eq!(code, 422);
    assert!(message.contains("validate.widgets.example.com") && message.contains("100 at most"), "{message}");
    let mut smaller = first.clone();
    smaller["spec"]["size"] = 2.into();
    let path = format!("{WIDGETS}/{}", name(attempt));
    assert_eq!(send(&client, Method::PUT, &path, Some(smaller)).await.unwrap_err().0, 403);
    send(&client, Method::POST, WIDGETS, widget("gold", json!({"size": 1, "color": "gold"}))).await.unwrap();
    let gold = format!("{WIDGETS}/gold");
    let (code, message) = send(&client, Method::DELETE, &gold, None).await.unwrap_err();
    assert!(code == 403 && message.contains("gold is kept"), "{code} {message}");

    // Conversion, there and back, and one that fails.
    let old = path.replace("/v2/", "/v1/");
    assert_eq!(send(&client, Method::GET, &old, None).await.unwrap()["spec"], json!({"size": "small"}));
    let mut object = widget("old", json!({"size": "large"})).unwrap();
    object["apiVersion"] = "example.com/v1".into();
    send(&client, Method::POST, &WIDGETS.replace("/v2/", "/v1/"), Some(object.clone())).await.unwrap();
    assert_eq!(send(&client, Method::GET, &format!("{WIDGETS}/old"), None).await.unwrap()["spec"]["size"], 10);
    object["metadata"]["name"] = "odd".into();
    object["spec"]["size"] = "huge".into();
    let (_, message) = send(&client, Method::POST, &WIDGETS.replace("/v2/", "/v1/"), Some(object)).await.unwrap_err();
    assert!(message.contains("no such size: huge"), "{message}");

    // Another certificate of another authority: a new bundle makes the API server connect anew.
    place.rotate().unwrap();
    assert!(server.certificate().look());
    env.install(&place.redirect(manifests)).await.unwrap();
    let mut attempt = 0;
    loop {
        attempt += 1;
        match send(&client, Method::POST, WIDGETS, widget(&format!("second-{attempt}"), json!({"size": 1}))).await {
            Ok(created) => {
                assert_eq!(created["spec"]["color"], "red");
                break;
            }
            // It still has the old bundle.
            Err((500, message)) if attempt < 200 => {
                assert!(message.contains("certificate"), "{message}");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Err(other) => panic!("{other:?}"),
        }
    }
    assert_eq!(send(&client, Method::DELETE, &gold, None).await.unwrap_err().0, 403);

    stop.cancel();
    running.await.unwrap().unwrap();
    assert_eq!(server.service().metrics().panics(), 0);
    let (code, message) = send(&client, Method::DELETE, &gold, None).await.unwrap_err();
    assert!(code == 500 && message.contains("failed calling webhook"), "{code} {message}");
}

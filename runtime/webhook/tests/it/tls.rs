//! Over TLS sockets, without an API server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use kubewire_envtest::Authority;
use kubewire_webhook::{AdmissionRequest, AdmissionResponse, WebhookServer, Webhooks};
use prometheus_client::registry::Registry;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use crate::support::{JSON, MUTATE, VALIDATE, post, review, widget, write};
use crate::widget::webhooks;

/// A server that runs, and whoever signed its certificate.
struct Running {
    server: Arc<WebhookServer>,
    address: SocketAddr,
    authority: Authority,
    directory: TempDir,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<std::io::Result<()>>,
}

async fn running(webhooks: Webhooks) -> Running {
    let (authority, directory) = (Authority::new("test").unwrap(), tempfile::tempdir().unwrap());
    write(&directory, &authority);
    let server = WebhookServer::new(webhooks.service().unwrap(), directory.path()).unwrap();
    let server = Arc::new(server.address(([127, 0, 0, 1], 0).into()));
    assert!(server.check()().is_err());
    let stop = CancellationToken::new();
    let task = tokio::spawn({
        let (server, stop) = (Arc::clone(&server), stop.clone());
        async move { server.run(stop, CancellationToken::new()).await }
    });
    server.started().await;
    assert!(server.check()().is_ok());
    let address = server.local_address().unwrap();
    Running { server, address, authority, directory, stop, task }
}

impl Running {
    async fn post(&self, path: &str, body: &[u8]) -> (u16, Value) {
        post(self.address, &self.authority, path, JSON, body).await.unwrap()
    }
}

#[tokio::test]
async fn reviews_are_answered_by_reviews_of_the_same_version_and_name() {
    let it = running(webhooks()).await;
    let (status, answer) = it.post(VALIDATE, &review("CREATE", widget(1), Value::Null)).await;
    let allowed = json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "response": {"uid": "u-1", "allowed": true}});
    assert_eq!((status, answer), (200, allowed));
    let (_, answer) = it.post(VALIDATE, &review("CREATE", widget(0), Value::Null)).await;
    assert_eq!(answer["response"]["warnings"], json!(["a size of 0 is of no use"]));
    let (status, answer) = it.post(VALIDATE, &review("CREATE", widget(101), Value::Null)).await;
    assert_eq!((status, &answer["response"]["allowed"]), (200, &json!(false)));
    assert_eq!(answer["response"]["status"]["code"], 422);
    assert_eq!(answer["response"]["status"]["message"], "100 at most");
    // A deletion is judged by the old object, and not completed.
    let gold = json!({"metadata": {"name": "a"}, "spec": {"size": 1, "color": "gold"}});
    let (_, answer) = it.post(VALIDATE, &review("DELETE", Value::Null, gold.clone())).await;
    assert_eq!(answer["response"]["status"]["code"], 403);
    let (_, answer) = it.post(MUTATE, &review("DELETE", Value::Null, gold)).await;
    assert_eq!(answer["response"], json!({"uid": "u-1", "allowed": true}));
    // The patch says only what the defaulter did.
    let (_, answer) = it.post(MUTATE, &review("CREATE", widget(1), Value::Null)).await;
    assert_eq!(answer["response"]["patchType"], "JSONPatch");
    let patch = answer["response"]["patch"].as_str().unwrap();
    assert_eq!(patch, "W3sib3AiOiJhZGQiLCJwYXRoIjoiL3NwZWMvY29sb3IiLCJ2YWx1ZSI6InJlZCJ9XQ==");
    // An object that is not of the type is the sender's fault, and is told by name.
    let (status, answer) = it.post(VALIDATE, &review("CREATE", json!({"spec": 7}), Value::Null)).await;
    assert_eq!((status, &answer["response"]["uid"]), (200, &json!("u-1")));
    assert_eq!(answer["response"]["status"]["code"], 400);
    let (_, answer) = it.post(VALIDATE, &review("JUMP", widget(1), Value::Null)).await;
    assert_eq!((&answer["response"]["uid"], &answer["response"]["status"]["code"]), (&json!("u-1"), &json!(400)));
}

#[tokio::test]
async fn what_is_no_review_is_an_error_of_http_and_a_body_has_its_limit() {
    let it = running(webhooks()).await;
    let good = review("CREATE", widget(1), Value::Null);
    // path | content type | body | status
    let wrong_kind = String::from_utf8(good.clone()).unwrap().replace("AdmissionReview", "Pod").into_bytes();
    let limit = 7 << 20;
    let mut longest = good.clone();
    longest.resize(limit, b' ');
    let mut too_long = longest.clone();
    too_long.push(b' ');
    let table: &[(&str, &str, &[u8], u16)] = &[
        (VALIDATE, JSON, &good, 200),
        (VALIDATE, "application/json; charset=utf-8", &good, 200),
        (VALIDATE, JSON, &longest, 200),
        (VALIDATE, JSON, &too_long, 413),
        (VALIDATE, "text/plain", &good, 400),
        (VALIDATE, JSON, b"", 400),
        (VALIDATE, JSON, b"{", 400),
        (VALIDATE, JSON, b"{}", 400),
        (VALIDATE, JSON, &wrong_kind, 400),
        ("/convert", JSON, &good, 400),
        ("/elsewhere", JSON, &good, 404),
    ];
    for (path, kind, body, expected) in table {
        let (status, _) = post(it.address, &it.authority, path, kind, body).await.unwrap();
        assert_eq!(status, *expected, "{path} {kind} {} bytes", body.len());
    }
}

#[tokio::test]
async fn a_panic_is_answered_by_500_with_the_name_counted_and_harms_nobody_else() {
    let webhooks = webhooks()
        .admission("/panics", async |request: AdmissionRequest| -> AdmissionResponse { panic!("oh {}", request.name) })
        .conversion("/breaks", |_: Value, _: &str| panic!("no"));
    let it = running(webhooks).await;
    let body = review("CREATE", widget(1), Value::Null);
    let (status, answer) = it.post("/panics", &body).await;
    assert_eq!((status, &answer["response"]["uid"]), (200, &json!("u-1")));
    assert_eq!(answer["response"]["status"]["code"], 500);
    assert_eq!(answer["response"]["status"]["message"], "panic: oh a [recovered]");
    let conversion = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "request": {"uid": "c", "desiredAPIVersion": "v2", "objects": [{"apiVersion": "v1"}]}});
    let (_, answer) = it.post("/breaks", conversion.to_string().as_bytes()).await;
    assert_eq!((&answer["response"]["uid"], &answer["response"]["result"]["code"]), (&json!("c"), &json!(500)));
    assert_eq!(it.post(VALIDATE, &body).await.1["response"]["allowed"], true);

    let metrics = it.server.service().metrics();
    assert_eq!(metrics.panics(), 2);
    let mut registry = Registry::default();
    metrics.register(&mut registry);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
    for line in [
        "controller_runtime_webhook_panics_total 2",
        "controller_runtime_webhook_requests_total{webhook=\"/panics\",code=\"200\"} 1",
        "controller_runtime_webhook_requests_total{webhook=\"/convert\",code=\"500\"} 0",
        "controller_runtime_webhook_requests_in_flight{webhook=\"/panics\"} 0",
        "controller_runtime_webhook_latency_seconds_count{webhook=\"/panics\"} 1",
    ] {
        assert!(text.lines().any(|have| have == line), "{line} is not in\n{text}");
    }
}

#[tokio::test]
async fn conversions_go_by_the_hub_in_order_and_fail_as_a_whole() {
    let it = running(webhooks()).await;
    let ask = |to: &str, objects: Value| {
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
            "request": {"uid": "c-1", "desiredAPIVersion": to, "objects": objects}})
        .to_string()
        .into_bytes()
    };
    let v1 = |size: &str| json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": size}, "spec": {"size": size}});
    let v2 = json!({"apiVersion": "example.com/v2", "kind": "Widget", "metadata": {"name": "b"}, "spec": {"size": 5, "x": 1}});
    let (status, answer) = it.post("/convert", &ask("example.com/v2", json!([v1("large"), v2, v1("small")]))).await;
    assert_eq!(status, 200);
    assert_eq!(answer["apiVersion"], "apiextensions.k8s.io/v1");
    assert_eq!(
        (&answer["response"]["uid"], &answer["response"]["result"]["status"]),
        (&json!("c-1"), &json!("Success"))
    );
    let objects = answer["response"]["convertedObjects"].as_array().unwrap();
    assert_eq!(objects.iter().map(|object| object["spec"]["size"].as_i64().unwrap()).collect::<Vec<_>>(), [10, 5, 1]);
    assert_eq!(objects[1]["spec"]["x"], 1, "what has the version already is not touched");
    assert_eq!(objects[0]["apiVersion"], "example.com/v2");
    for (to, objects, message) in [
        ("example.com/v2", json!([v1("small"), v1("huge")]), "no such size: huge"),
        ("example.com/v3", json!([v1("small")]), "example.com/v1, example.com/v2"),
    ] {
        let (_, answer) = it.post("/convert", &ask(to, objects)).await;
        let response = &answer["response"];
        assert_eq!((&response["result"]["status"], &response["convertedObjects"]), (&json!("Failure"), &json!([])));
        assert!(response["result"]["message"].as_str().unwrap().contains(message), "{response}");
    }
}

#[tokio::test]
async fn a_handler_that_takes_too_long_is_answered_by_504_and_dropped() {
    let dropped = CancellationToken::new();
    let guard = dropped.clone();
    let webhooks = Webhooks::new().timeout(Duration::from_millis(20)).admission("/slow", move |_| {
        let guard = guard.clone().drop_guard();
        async move {
            let _guard = guard;
            std::future::pending::<AdmissionResponse>().await
        }
    });
    let it = running(webhooks).await;
    let (status, answer) = it.post("/slow?timeout=10s", &review("CREATE", widget(1), Value::Null)).await;
    assert_eq!((status, &answer["response"]["status"]["code"]), (200, &json!(504)));
    dropped.cancelled().await;
}

#[tokio::test]
async fn a_timeout_without_end_is_taken() {
    let webhooks =
        Webhooks::new().timeout(Duration::MAX).admission("/quick", |_| async { AdmissionResponse::denied("no") });
    let it = running(webhooks).await;
    for path in ["/quick", "/quick?timeout=18446744073709551615s", "/quick?timeout=10s"] {
        let (status, answer) = it.post(path, &review("CREATE", widget(1), Value::Null)).await;
        assert_eq!((status, &answer["response"]["status"]["message"]), (200, &json!("no")), "{path}");
    }
}

#[tokio::test]
async fn a_replaced_certificate_is_shown_to_new_connections_and_a_broken_one_is_not() {
    let it = running(webhooks()).await;
    let body = review("CREATE", widget(1), Value::Null);
    let next = Authority::new("next").unwrap();
    std::fs::write(it.directory.path().join("tls.crt"), "broken").unwrap();
    assert!(!it.server.certificate().look());
    assert_eq!(it.post(VALIDATE, &body).await.0, 200);
    write(&it.directory, &next);
    assert!(it.server.certificate().look());
    assert_eq!(post(it.address, &next, VALIDATE, JSON, &body).await.unwrap().0, 200);
    assert!(post(it.address, &it.authority, VALIDATE, JSON, &body).await.is_err(), "the old one is shown no more");
}

#[tokio::test]
async fn a_stop_closes_the_port_and_answers_what_is_open() {
    let (entered, go) = (CancellationToken::new(), CancellationToken::new());
    let (inside, gate) = (entered.clone(), go.clone());
    let webhooks = Webhooks::new().admission("/waits", move |_| {
        let (inside, gate) = (inside.clone(), gate.clone());
        async move {
            inside.cancel();
            gate.cancelled().await;
            AdmissionResponse::denied("late").audit("why", "it waited")
        }
    });
    let it = Arc::new(running(webhooks).await);
    let open = tokio::spawn({
        let it = Arc::clone(&it);
        async move { it.post("/waits", &review("CREATE", widget(1), Value::Null)).await }
    });
    entered.cancelled().await;
    it.stop.cancel();
    while TcpStream::connect(it.address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    assert!(it.server.check()().is_err());
    assert!(!it.task.is_finished());
    go.cancel();
    let (_, answer) = open.await.unwrap();
    assert_eq!(answer["response"]["status"]["message"], "late");
    assert_eq!(answer["response"]["auditAnnotations"], json!({"why": "it waited"}));
    let it = Arc::into_inner(it).unwrap();
    it.task.await.unwrap().unwrap();
}

#[tokio::test]
async fn a_port_in_use_is_an_error_that_names_it_and_paths_are_checked() {
    use kubewire_webhook::RouteError;
    let it = running(webhooks()).await;
    let second = WebhookServer::new(webhooks().service().unwrap(), it.directory.path()).unwrap().address(it.address);
    let error = second.run(CancellationToken::new(), CancellationToken::new()).await.unwrap_err();
    assert!(error.to_string().contains(&it.address.to_string()), "{error}");
    assert!(second.check()().is_err());
    let twice = webhooks().conversion("/convert", |object: Value, _: &str| Ok(object)).service().unwrap_err();
    assert_eq!(twice, RouteError::Twice { path: "/convert".to_owned() });
    let none = Webhooks::new().conversion("convert", |object: Value, _: &str| Ok(object)).service().unwrap_err();
    assert_eq!(none, RouteError::NoPath { path: "convert".to_owned() });
    assert!(WebhookServer::new(webhooks().service().unwrap(), "/nonexistent").is_err());
}

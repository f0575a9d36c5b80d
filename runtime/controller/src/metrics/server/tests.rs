//! Over a real port, with and without tokens and TLS.

use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering};

use http_body_util::BodyExt;
use kube_client::Client;
use kube_client::client::Body;
use prometheus_client::metrics::counter::Counter;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::*;
use crate::test_http::get::{get, get_over, get_with};
use crate::{RunError, RunnableGroups};

type Running = (SocketAddr, CancellationToken, tokio::task::JoinHandle<Result<(), RunError>>);

async fn run(server: &MetricsServer) -> Running {
    let groups = RunnableGroups::new();
    groups.add(server.clone()).unwrap();
    let stop = CancellationToken::new();
    let running = tokio::spawn({
        let (groups, stop) = (groups.clone(), stop.clone());
        async move { groups.run(stop).await }
    });
    groups.started().await.unwrap();
    (server.bound().unwrap(), stop, running)
}

fn local() -> SocketAddr {
    ([127, 0, 0, 1], 0).into()
}

fn version(_: Parts) -> Response<Bytes> {
    Response::new(Bytes::from_static(b"1.2.3"))
}

#[tokio::test]
async fn metrics_are_told_as_text_and_further_paths_by_their_handlers() {
    let registry = MetricsRegistry::new();
    let counter: Counter = Counter::default();
    registry.register(|registry| registry.register("backups", "Backups made", counter.clone()));
    counter.inc_by(3);
    let server = MetricsServer::new(local(), registry);
    server.add_handler("/version", version).unwrap();
    assert_eq!(server.add_handler("/version", version), Err(AddHandlerError::Duplicate("/version".to_owned())));
    assert_eq!(server.add_handler("/metrics", version), Err(AddHandlerError::Metrics));
    server.add_handler("/panics", |_| panic!("no")).unwrap();
    let (address, stop, running) = run(&server).await;

    let stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let (status, head, text) = get_over(stream, "/metrics", "").await;
    assert_eq!(status, 200);
    assert!(head.to_lowercase().contains("content-type: application/openmetrics-text; version=1.0.0"), "{head}");
    assert!(text.contains("backups_total 3\n") && text.ends_with("# EOF\n"), "{text}");
    assert!(text.contains("certwatcher_read_certificate_total 0\n"), "there before the first: {text}");
    assert_eq!(get(address, "/version").await, (200, "1.2.3".to_owned()));
    assert_eq!(get(address, "/panics").await.0, 500);
    assert_eq!(get(address, "/other").await.0, 404);
    assert_eq!(server.add_handler("/late", version), Err(AddHandlerError::Started));
    stop.cancel();
    running.await.unwrap().unwrap();
    assert!(tokio::net::TcpStream::connect(address).await.is_err(), "the port is closed");
}

#[tokio::test]
async fn a_port_that_is_in_use_is_the_error_of_the_run() {
    let taken = tokio::net::TcpListener::bind(local()).await.unwrap();
    let groups = RunnableGroups::new();
    groups.add(MetricsServer::new(taken.local_addr().unwrap(), MetricsRegistry::new())).unwrap();
    let error = groups.run(CancellationToken::new()).await.unwrap_err();
    assert_eq!(error.find::<std::io::Error>().unwrap().kind(), std::io::ErrorKind::AddrInUse);
}

/// An API server that knows the tokens `reader` and `other`; `reader` may get anything but `/secret`.
fn reviewer(reviews: Arc<AtomicUsize>) -> Client {
    let service = tower::service_fn(move |request: Request<Body>| {
        reviews.fetch_add(1, Ordering::SeqCst);
        async move {
            let is_token = request.uri().path().ends_with("tokenreviews");
            let body = request.into_body().collect().await.unwrap().to_bytes();
            let mut review: Value = serde_json::from_slice(&body).unwrap();
            if is_token {
                let token = review["spec"]["token"].as_str().unwrap().to_owned();
                let known = ["reader", "other"].contains(&token.as_str());
                review["status"] = json!({"authenticated": known, "user": {"username": token, "groups": ["g"]}});
            } else {
                let spec = &review["spec"];
                assert_eq!(spec["nonResourceAttributes"]["verb"], "get");
                assert_eq!(spec["groups"], json!(["g"]));
                let may = spec["user"] == "reader" && spec["nonResourceAttributes"]["path"] != "/secret";
                review["status"] = json!({"allowed": may});
            }
            Ok::<_, Infallible>(Response::new(Body::from(review.to_string().into_bytes())))
        }
    });
    Client::new(service, "default")
}

#[tokio::test]
async fn with_access_each_path_needs_a_known_token_and_the_right_to_it() {
    let reviews = Arc::new(AtomicUsize::new(0));
    let access = TokenAccess::new(reviewer(Arc::clone(&reviews)));
    let server = MetricsServer::new(local(), MetricsRegistry::new()).access(access);
    server.add_handler("/version", version).unwrap();
    server.add_handler("/secret", version).unwrap();
    let (address, _stop, _running) = run(&server).await;
    let with = |token: &str| format!("authorization: Bearer {token}\r\n");
    // path, header, status
    for (path, header, status) in [
        ("/metrics", String::new(), 401),
        ("/metrics", with("nobody"), 401),
        ("/metrics", with("other"), 403),
        ("/metrics", with("reader"), 200),
        ("/version", with("reader"), 200),
        ("/version", with("other"), 403),
        ("/version", String::new(), 401),
        ("/secret", with("reader"), 403),
    ] {
        assert_eq!(get_with(address, path, &header).await.0, status, "{path} {header}");
    }
    let asked = reviews.swap(0, Ordering::SeqCst);
    assert_eq!(asked, 8, "three tokens, five rights");
    assert_eq!(get_with(address, "/metrics", &with("reader")).await.0, 200);
    assert_eq!(get_with(address, "/secret", &with("reader")).await.0, 403);
    assert_eq!(reviews.load(Ordering::SeqCst), 0, "remembered");
}

#[tokio::test]
async fn where_the_api_server_does_not_say_nobody_is_let_in() {
    let service =
        tower::service_fn(|_: Request<Body>| async { Err::<Response<Body>, _>(std::io::Error::other("down")) });
    let access = TokenAccess::new(Client::new(service, "default"));
    let server = MetricsServer::new(local(), MetricsRegistry::new()).access(access);
    let (address, _stop, _running) = run(&server).await;
    let (status, text) = get_with(address, "/metrics", "authorization: Bearer reader\r\n").await;
    assert_eq!((status, text.as_str()), (500, "the API server could not be asked\n"));
}

#[tokio::test]
async fn requests_of_a_client_are_counted_by_code_method_and_host() {
    let registry = MetricsRegistry::new();
    let server = kubewire_apiserver::ApiServer::start().await;
    let client = registry.count_requests(server.client(), "api.example.com");
    let pods: kube_client::Api<k8s_openapi::api::core::v1::Pod> = kube_client::Api::default_namespaced(client);
    assert!(pods.list(&Default::default()).await.is_ok());
    assert!(pods.get("nope").await.is_err());
    let text = registry.text().unwrap();
    for line in [
        r#"rest_client_requests_total{code="200",method="GET",host="api.example.com"} 1"#,
        r#"rest_client_requests_total{code="404",method="GET",host="api.example.com"} 1"#,
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in {text}");
    }
}

#[cfg(feature = "rustls-tls")]
#[tokio::test]
async fn with_tls_a_certificate_that_is_replaced_is_served_and_a_broken_one_counted_and_left_out() {
    use crate::ReloadingCertificate;
    use crate::test_http::certificate_files::{Files, served_by};

    let files = Files::new("metrics-tls");
    files.write("one");
    let certificate = ReloadingCertificate::from_files(files.certificate(), files.key()).unwrap();
    let registry = MetricsRegistry::new();
    let server = MetricsServer::new(local(), registry.clone()).tls(certificate.clone());
    let (address, _stop, _running) = run(&server).await;
    let first = served_by(address, "/metrics").await;
    assert_eq!((first.0, &first.1), (200, &files.der()));
    files.write("two");
    assert!(certificate.look());
    let second = served_by(address, "/metrics").await;
    assert_eq!((second.0, &second.1), (200, &files.der()));
    assert_ne!(first.1, second.1);
    files.break_certificate();
    assert!(!certificate.look());
    assert_eq!(served_by(address, "/metrics").await.1, second.1, "the old one stays");
    let text = registry.text().unwrap();
    assert!(text.contains("certwatcher_read_certificate_total 2\n"), "{text}");
    assert!(text.contains("certwatcher_read_certificate_errors_total 1\n"), "{text}");
}

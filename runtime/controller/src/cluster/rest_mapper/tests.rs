//! Against a server whose groups change.

use std::convert::Infallible;

use futures::future::join_all;
use http::{Request, Response};
use kube_client::client::Body;
use serde_json::{Value, json};

use super::*;

/// Group, versions, kind.
type Kind = (&'static str, Vec<&'static str>, &'static str);

/// What is served, and how many requests came.
#[derive(Clone, Default)]
struct Served {
    groups: Arc<Mutex<Vec<Kind>>>,
    requests: Arc<Mutex<usize>>,
}

impl Served {
    fn client(&self) -> Client {
        let this = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let this = this.clone();
            async move {
                // So that others may ask meanwhile.
                tokio::task::yield_now().await;
                if request.uri().path().contains("hangs.example.com") {
                    std::future::pending().await
                }
                Ok::<_, Infallible>(this.answer(request.uri().path()))
            }
        });
        Client::new(service, "default")
    }

    fn answer(&self, path: &str) -> Response<Body> {
        *self.requests.lock() += 1;
        let groups = self.groups.lock().clone();
        let body = match path.trim_start_matches('/').split('/').collect::<Vec<_>>()[..] {
            ["apis"] => {
                let group = |(group, versions, _): &(&str, Vec<&str>, &str)| {
                    let version =
                        |version: &&str| json!({"groupVersion": format!("{group}/{version}"), "version": version});
                    let versions: Vec<_> = versions.iter().map(version).collect();
                    json!({"name": group, "versions": versions, "preferredVersion": versions[0]})
                };
                let groups: Vec<_> = groups.iter().map(group).collect();
                Some(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}))
            }
            ["apis", group, version] => groups.iter().find(|(name, ..)| *name == group).map(|(_, _, kind)| {
                let plural = format!("{}s", kind.to_lowercase());
                let verbs = ["get", "list", "watch"];
                let resource =
                    json!({"name": plural, "singularName": "", "namespaced": true, "kind": kind, "verbs": verbs});
                let version = format!("{group}/{version}");
                json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": [resource]})
            }),
            _ => None,
        };
        let status = if body.is_some() { 200 } else { 404 };
        let missing = json!({"kind": "Status", "status": "Failure", "message": "", "reason": "NotFound", "code": 404});
        let body: Value = body.unwrap_or(missing);
        Response::builder().status(status).body(Body::from(body.to_string().into_bytes())).unwrap()
    }

    fn requests(&self) -> usize {
        std::mem::take(&mut *self.requests.lock())
    }
}

#[tokio::test]
async fn nothing_is_asked_before_it_is_needed_and_what_is_known_is_not_asked_again() {
    let served = Served::default();
    served.groups.lock().push(("example.com", vec!["v1", "v1beta1"], "Widget"));
    let mapper = RestMapper::new(served.client());
    assert_eq!(served.requests(), 0);
    let widget = mapper.kind("example.com", "Widget").await.unwrap();
    assert_eq!((widget.resource.version.as_str(), widget.resource.plural.as_str()), ("v1", "widgets"));
    assert!(served.requests() > 0);
    assert_eq!(mapper.resource("example.com", "widgets").await.unwrap(), widget);
    let beta = mapper.kind_in("example.com", "v1beta1", "Widget").await.unwrap();
    assert_eq!(beta.resource.api_version, "example.com/v1beta1");
    assert_eq!(served.requests(), 0);
}

#[tokio::test]
async fn a_kind_that_is_defined_later_is_found_and_a_version_that_is_gone_forgotten() {
    let served = Served::default();
    let mapper = RestMapper::new(served.client());
    let error = mapper.kind("example.com", "Widget").await.unwrap_err();
    assert!(error.is_no_match(), "{error}");
    served.groups.lock().push(("example.com", vec!["v1", "v1beta1"], "Widget"));
    mapper.kind("example.com", "Widget").await.unwrap();
    mapper.kind_in("example.com", "v1beta1", "Widget").await.unwrap();

    served.groups.lock()[0].1 = vec!["v2", "v1"];
    mapper.kind_in("example.com", "v2", "Widget").await.unwrap();
    let error = mapper.kind_in("example.com", "v1beta1", "Widget").await.unwrap_err();
    assert!(error.is_no_match(), "{error}");
    served.groups.lock().clear();
    assert!(mapper.kind("example.com", "Gadget").await.unwrap_err().is_no_match());
    assert!(mapper.kind("example.com", "Widget").await.unwrap_err().is_no_match(), "the group is gone");
}

#[tokio::test]
async fn several_who_miss_the_same_ask_once() {
    let served = Served::default();
    served.groups.lock().push(("example.com", vec!["v1"], "Widget"));
    let mapper = RestMapper::new(served.client());
    mapper.kind("example.com", "Widget").await.unwrap();
    let once = served.requests();
    mapper.forget("example.com");
    let found = join_all((0..20).map(|_| mapper.kind("example.com", "Widget"))).await;
    assert!(found.iter().all(Result::is_ok));
    assert_eq!(served.requests(), once);
}

#[tokio::test]
async fn several_who_miss_a_group_that_is_not_there_ask_once_and_leave_nothing() {
    let served = Served::default();
    let mapper = RestMapper::new(served.client());
    assert!(mapper.kind("example.com", "Widget").await.unwrap_err().is_no_match());
    let once = served.requests();
    let found = join_all((0..20).map(|_| mapper.kind("example.com", "Widget"))).await;
    assert!(found.into_iter().all(|found| found.unwrap_err().is_no_match()));
    assert_eq!(served.requests(), once);
    assert!(mapper.shared.groups.lock().is_empty(), "names come from anywhere");
}

/// Such as that of an aggregated API server that is down.
#[tokio::test(start_paused = true)]
async fn a_group_that_does_not_answer_holds_up_no_other_one() {
    let served = Served::default();
    served.groups.lock().push(("hangs.example.com", vec!["v1"], "Gadget"));
    served.groups.lock().push(("example.com", vec!["v1"], "Widget"));
    let mapper = RestMapper::new(served.client());
    let mut hung = Box::pin(mapper.kind("hangs.example.com", "Gadget"));
    let hour = std::time::Duration::from_secs(3600);
    assert!(tokio::time::timeout(hour, &mut hung).await.is_err());
    tokio::time::timeout(hour, mapper.kind("example.com", "Widget")).await.expect("it is asked for").unwrap();
    drop(hung);
    assert_eq!(mapper.shared.groups.lock().len(), 1, "who gives up leaves nothing");
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_another_error_than_an_unknown_kind() {
    let service =
        tower::service_fn(|_: Request<Body>| async { Err::<Response<Body>, _>(std::io::Error::other("down")) });
    let mapper = RestMapper::new(Client::new(service, "default"));
    let error = mapper.kind("example.com", "Widget").await.unwrap_err();
    assert!(matches!(error, MapError::Discovery { .. }), "{error}");
}

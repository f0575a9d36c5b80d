//! Who may do what.

use kubewire_apiserver::{ApiServer, Matching, Verb};
use serde_json::json;

use crate::raw::{get, send, write};

async fn code(server: &ApiServer, path: &str, token: &str) -> u16 {
    let header = format!("Bearer {token}");
    send(server, "GET", path, &[("authorization", &header)], "").await.unwrap().status().as_u16()
}

#[tokio::test]
async fn without_a_known_token_nothing_is_answered_but_401() {
    let server = ApiServer::start().await;
    assert_eq!(code(&server, "/api/v1/pods", "x").await, 200);
    server.require_token("one", "alice");
    assert_eq!(code(&server, "/api/v1/pods", "x").await, 401);
    assert_eq!(get(&server, "/api/v1/pods").await.reason(), (401, "Unauthorized"));
    assert_eq!(get(&server, "/version").await.code, 401);
    assert_eq!(code(&server, "/api/v1/pods", "one").await, 200);
    server.require_token("two", "alice");
    server.revoke_token("one");
    assert_eq!((code(&server, "/api/v1/pods", "one").await, code(&server, "/api/v1/pods", "two").await), (401, 200));
    server.revoke_token("two");
    assert_eq!(code(&server, "/api/v1/pods", "two").await, 401);
    server.allow_all();
    assert_eq!(get(&server, "/api/v1/pods").await.code, 200);
}

#[tokio::test]
async fn what_is_forbidden_is_told_in_the_real_servers_words() {
    let server = ApiServer::start().await;
    server.require_token("one", "alice");
    server.require_token("two", "bob");
    server.forbid(Matching::any().user("alice").verb(Verb::List).verb(Verb::Watch).resource("pods"));
    assert_eq!(code(&server, "/api/v1/pods", "one").await, 403);
    assert_eq!(code(&server, "/api/v1/pods?watch=true", "one").await, 403);
    assert_eq!(code(&server, "/api/v1/pods", "two").await, 200);
    assert_eq!(code(&server, "/api/v1/nodes", "one").await, 200);
    server.allow_all();
    server.forbid(Matching::any().namespace("default"));
    let answer = get(&server, "/api/v1/namespaces/default/pods").await;
    assert_eq!(answer.reason(), (403, "Forbidden"));
    let message = "pods is forbidden: User \"kubewire\" cannot list resource \"pods\" in API group \"\" in the namespace \"default\"";
    assert_eq!(answer.message(), message);
}

#[tokio::test]
async fn reviews_say_what_would_be_answered() {
    let server = ApiServer::start().await;
    server.forbid(Matching::any().verb(Verb::Delete).resource("pods"));
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    for (verb, allowed) in [("delete", false), ("list", true)] {
        let asked = json!({"spec": {"resourceAttributes": {"verb": verb, "resource": "pods"}}});
        let review = write(&server, "POST", path, asked).await;
        assert_eq!((review.code, &review.body["status"]["allowed"]), (201, &json!(allowed)));
    }
    let me = write(&server, "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", json!({})).await;
    assert_eq!(me.body["status"]["userInfo"]["username"], "kubewire");
    server.require_token("one", "alice");
    let review = json!({"spec": {"token": "one"}});
    let token = [("authorization", "Bearer one")];
    let answer = send(&server, "POST", "/apis/authentication.k8s.io/v1/tokenreviews", &token, review.to_string()).await;
    assert_eq!(answer.unwrap().status(), 201);
}

//! Credentials that change while an informer runs: B28.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube_client::Config;
use kubewire_conformance::wire::{Server, Socket};
use kubewire_listwatch::{ErrorClass, client_from_config};

use crate::forms::Served;
use crate::support::{RotatedFile, Run, quick, until, within};

/// An informer with the token of this file.
fn over_socket_with(file: &RotatedFile, socket: &Socket) -> Run<Arc<Pod>> {
    let mut config = Config::new(format!("http://{}", socket.address()).parse().unwrap());
    config.auth_info.token_file = file.path_text();
    let pods = Arc::<Pod>::pods(client_from_config(config).unwrap());
    Run::start_list_watch(socket.server(), pods, quick(), usize::MAX)
}

/// B28: the file was changed before the 401: one request fails, the next one has the new token; no list.
#[tokio::test]
async fn a_token_that_was_rotated_on_disk_is_used_with_the_next_request() {
    let file = RotatedFile::new("rotated", "t1");
    let socket = Socket::listen(Server::new("LIST → [] rv=10\n WATCH → +x@11 …")).await;
    socket.server().accepts("Bearer t1");
    let run = over_socket_with(&file, &socket);
    run.converges_after(&["x@11"]).await;
    file.write("t2");
    socket.server().accepts("Bearer t2");
    socket.server().happens("+y@12");
    run.has(&["x@11", "y@12"]).await;
    // The watch is cut, as servers do when a token runs out.
    socket.close().await;
    socket.reopen().await;
    run.requests(4).await;
    socket.server().happens("-x@13");
    run.converges_after(&["y@12"]).await;
    let log = socket.server().log();
    let tokens: Vec<&str> = log.iter().skip(2).map(|asked| asked.header("authorization").unwrap()).collect();
    assert_eq!(tokens, ["Bearer t1", "Bearer t2"]);
    assert_eq!(socket.server().asked()[2..], ["WATCH(12)", "WATCH(12)"]);
    assert!(run.errors().iter().all(|error| !error.contains("unauthorized")), "{:?}", run.errors());
}

/// B28: the file is empty or away for a moment: the old token goes on.
#[tokio::test]
async fn a_token_file_that_is_away_for_a_moment_changes_nothing() {
    let file = RotatedFile::new("away", "t1");
    let socket = Socket::listen(Server::new("LIST → [] rv=10\n WATCH → +x@11 ■\n WATCH → 401\n WATCH → +y@12 …")).await;
    socket.server().accepts("Bearer t1");
    let run = over_socket_with(&file, &socket);
    file.remove();
    run.has(&["x@11", "y@12"]).await;
    file.write("t1");
    let log = socket.server().log();
    assert!(log.iter().all(|asked| asked.header("authorization") == Some("Bearer t1")));
    run.converges().await;
}

/// B28: 401 for ever (A-budget), and the way back when the server accepts it again.
#[tokio::test(start_paused = true)]
async fn credentials_that_are_refused_for_ever_make_no_hot_loop_and_recover() {
    let server = Server::new("LIST → [x@10] rv=10\n WATCH → 2000ms ■");
    let run = Run::<Arc<Pod>>::of(&server);
    run.has(&["x@10"]).await;
    run.requests(2).await;
    server.accepts("Bearer other");
    let before = server.log().len();
    let requests = within(&run, Duration::from_secs(7)).await - before;
    assert!((2..=10).contains(&requests), "{requests}");
    assert_eq!(run.informer.status().last_error().unwrap().error.class(), ErrorClass::Unauthorized);
    assert_eq!(run.store(), ["x@10"], "what is known stays readable");
    server.accepts("");
    until("an error is told", || run.errors().iter().any(|error| error.contains("unauthorized"))).await;
    run.ends().await;
}

//! Names and keys with odd characters: B42.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kubewire_conformance::wire::{Server, Socket, Thing};
use kubewire_indexer::{ObjectKey, split_key};
use kubewire_listwatch::{ErrorClass, ListOptions, ListWatch, ListerWatcher};
use kubewire_ratelimit::ItemExponentialFailureRateLimiter;
use kubewire_workqueue::RateLimitingQueue;

use crate::support::{in_process, over_socket, quick};

/// B42: what the server sees in the path, for each namespace; nothing where no path can carry it.
#[tokio::test(start_paused = true)]
async fn a_namespace_is_one_segment_of_the_path_or_no_request_is_made() {
    let table: [(&str, Option<&str>); 14] = [
        ("ns1", Some("/api/v1/namespaces/ns1/pods")),
        ("", Some("/api/v1/pods")),
        ("system:node", Some("/api/v1/namespaces/system:node/pods")),
        ("a?x=1", Some("/api/v1/namespaces/a%3Fx=1/pods")),
        ("a#b", Some("/api/v1/namespaces/a%23b/pods")),
        ("a b", Some("/api/v1/namespaces/a%20b/pods")),
        ("é", Some("/api/v1/namespaces/%C3%A9/pods")),
        ("a/b", None),
        ("..", None),
        (".", None),
        ("%2e", None),
        ("a%b", None),
        ("../../etc", None),
        ("/", None),
    ];
    for (namespace, path) in table {
        let server = Server::new("");
        let pods = ListWatch::<Arc<Pod>>::namespaced(in_process(&server), namespace);
        let answer = pods.list(&ListOptions::default(), &mut |_| {}).await;
        let seen: Vec<String> = server.log().iter().map(|asked| asked.path.clone()).collect();
        // The separators of paths, queries and fragments are never the name's own.
        match path {
            Some(path) => {
                let same = seen.iter().map(|seen| seen.replace("%3D", "=").replace("%3A", ":")).collect::<Vec<_>>();
                assert_eq!(same, [path], "{namespace:?}");
            }
            None => {
                assert!(seen.is_empty(), "{namespace:?}: {seen:?}");
                assert_eq!(answer.unwrap_err().class(), ErrorClass::Invalid, "{namespace:?}");
                assert!(pods.check().is_err());
            }
        }
    }
}

/// B42: a name goes out as a field selector, and its characters stay its own.
#[tokio::test(start_paused = true)]
async fn a_name_with_odd_characters_is_asked_for_as_it_is() {
    for name in ["x", "system:node", "a/b", "a?x=1", "a#b", "a&watch=true", "a%2Fb", "..", "é😀"] {
        let server = Server::new("");
        let pods = ListWatch::<Arc<Pod>>::all(in_process(&server)).named(name);
        pods.list(&ListOptions::default(), &mut |_| {}).await.unwrap();
        let log = server.log();
        assert_eq!(log[0].path, "/api/v1/pods");
        let selector = log[0].param("fieldSelector").unwrap().replace("\\=", "=");
        assert_eq!(selector, format!("metadata.name={name}"));
        assert_eq!(log[0].param("watch"), None, "{name}");
    }
}

/// B42: objects with such names live side by side, over the whole path.
#[tokio::test]
async fn objects_with_odd_names_are_kept_apart() {
    let names = ["x", "system:node", "a.b", "a%2Fb", "..", "a b", "é😀", "a?x=1"];
    let mut server = Server::new("");
    let mut items = String::new();
    for (n, name) in names.iter().enumerate() {
        let thing = Thing { name: (*name).to_owned(), uid: format!("u{n}"), ..Thing::parse("x@5") };
        let mut cluster = thing.json();
        cluster["metadata"]["namespace"] = serde_json::Value::Null;
        cluster["metadata"]["uid"] = format!("c{n}").into();
        server = server.bytes(&format!("n{n}"), thing.json().to_string()).bytes(&format!("c{n}"), cluster.to_string());
        items.push_str(&format!("$n{n} $c{n} "));
    }
    server.then(&format!("LIST → [{items}] rv=10"));
    let socket = Socket::listen(server).await;
    let run = over_socket::<Arc<Pod>>(&socket, quick());
    run.informer.synced().await.unwrap();
    let indexer = run.informer.indexer();
    assert_eq!(indexer.len(), 2 * names.len());
    for (n, name) in names.iter().enumerate() {
        let uid = |key: ObjectKey| indexer.get_by_key(&key).unwrap().metadata.uid.clone().unwrap();
        assert_eq!(uid(ObjectKey::new("ns1", name)), format!("u{n}"));
        assert_eq!(uid(ObjectKey::cluster(name)), format!("c{n}"));
    }
    run.ends().await;
}

/// B42: a worker that gets a key that cannot be split reports and forgets it.
#[tokio::test(start_paused = true)]
async fn a_malformed_key_is_worked_on_once_and_forgotten() {
    let limiter = ItemExponentialFailureRateLimiter::new(Duration::from_millis(5), Duration::from_secs(1));
    let queue = RateLimitingQueue::new(limiter);
    for key in ["ns/a", "a/b/c", "a", "a/b/c/d"] {
        queue.queue().add(key.to_owned());
    }
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    while let Ok(guard) = queue.queue().try_get() {
        let key = guard.key().clone();
        match split_key(&key) {
            Ok(_) => good.push(key.clone()),
            Err(error) => bad.push((key.clone(), error.to_string())),
        }
        // Nothing to try again: the key will not become right.
        queue.forget(&key);
        guard.done();
    }
    assert_eq!(good, ["ns/a", "a"]);
    assert_eq!(bad.len(), 2);
    assert!(bad.iter().all(|(key, error)| error.contains(key.as_str())), "{bad:?}");
    assert!(["a/b/c", "a/b/c/d"].iter().all(|key| queue.num_requeues(&(*key).to_owned()) == 0));
    assert!(queue.queue().is_empty());
}

//! Objects as they come from a server: the embedded one, in the format that the representation asks for.

use std::any::TypeId;
use std::collections::BTreeMap;
use std::time::Duration;

use futures::TryStreamExt;
use kube_client::Client;
use kubewire_apiserver::{ApiServer, Fault, Status, Verb};
use kubewire_indexer::{IndexFunc, Indexers, LabelSelector, Object, ObjectKey};
use kubewire_informer::reflector::ReflectorOptions;
use kubewire_informer::{Delivery, FactoryOptions, Informer, InformerOptions, SharedInformerFactory};
use kubewire_listwatch::{ErrorClass, Limits, ListOptions, ListerWatcher, RequestError, WatchEvent, WatchOptions};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::PodRef;
use super::recorder::Recorder;
use super::source::{Form, Pod, key, settle};
use crate::forms::{OwnMessage, OwnStruct, Served};

const MINUTE: Duration = Duration::from_secs(60);
/// Longer than any back-off.
const RECOVERY: Duration = Duration::from_secs(300);

fn pod(name: &str, note: &str) -> Value {
    let labels = json!({"note": note, "app": "web"});
    let containers = json!([{"name": "c", "image": "registry.example.com/web:1"}]);
    json!({"metadata": {"namespace": "ns", "name": name, "labels": labels}, "spec": {"nodeName": note, "containers": containers}})
}

fn change(server: &ApiServer, name: &str, note: &str) {
    let change = |object: &mut Value| {
        object["metadata"]["labels"]["note"] = json!(note);
        object["spec"]["nodeName"] = json!(note);
    };
    server.modify("pods", "ns", name, change).unwrap();
}

/// Takes from whoever follows the server all that it could go on from.
fn forget(server: &ApiServer) {
    server.skip_resource_versions(1);
    server.compact();
    server.close_watches();
}

async fn server(pods: &[&str]) -> ApiServer {
    let server = ApiServer::builder().namespaces_on_demand().start().await.unwrap();
    pods.iter().for_each(|name| drop(server.create("pods", pod(name, "1")).unwrap()));
    server
}

fn client(server: &ApiServer) -> Client {
    Client::new(server.service(), "default")
}

/// What the server has.
fn served(server: &ApiServer) -> BTreeMap<ObjectKey, Pod> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let entry = |object: Value| {
        let metadata = &object["metadata"];
        let pod = Pod {
            namespace: text(&metadata["namespace"]),
            name: text(&metadata["name"]),
            uid: text(&metadata["uid"]),
            version: text(&metadata["resourceVersion"]),
            note: text(&metadata["labels"]["note"]),
        };
        (ObjectKey::new(&pod.namespace, &pod.name), pod)
    };
    server.list("pods").into_iter().map(entry).collect()
}

fn stored(informer: &Informer<PodRef>) -> BTreeMap<ObjectKey, Pod> {
    informer.indexer().list().iter().map(|object| (object.key(), object.read())).collect()
}

fn options(streaming: bool) -> InformerOptions<PodRef> {
    let note = IndexFunc::one(|pod: &PodRef| pod.label("note").unwrap_or_default());
    InformerOptions::new()
        .indexers(Indexers::by_namespace().with("note", note))
        .reflector(ReflectorOptions::new().watch_list(streaming).page_size(3))
}

fn informer(server: &ApiServer, options: InformerOptions<PodRef>) -> Informer<PodRef> {
    Informer::with_options(PodRef::pods(client(server)), options.error_handler(|_| {})).unwrap()
}

async fn becomes_right(informer: &Informer<PodRef>, server: &ApiServer) {
    let waiting = async {
        while stored(informer) != served(server) {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    if tokio::time::timeout(RECOVERY, waiting).await.is_err() {
        assert_eq!(stored(informer), served(server), "{}", informer.status());
    }
}

#[tokio::test(start_paused = true)]
async fn lists_pages_watches_and_relists_show_what_the_server_has() {
    for delivery in [Delivery::PerKey, Delivery::InOrder, Delivery::Coalescing] {
        for streaming in [false, true] {
            let server = server(&["a", "b", "c", "d", "e", "f", "g", "gone"]).await;
            let informer = informer(&server, options(streaming).delivery(delivery));
            let log = Recorder::new();
            informer.add_handler(log.clone()).unwrap();
            let running = informer.start(CancellationToken::new());
            informer.synced().await.unwrap();
            assert_eq!(stored(&informer), served(&server));
            settle().await;
            assert_eq!(log.take().len(), 8);
            change(&server, "a", "2");
            server.create("pods", pod("h", "1")).unwrap();
            server.delete("pods", "ns", "b").unwrap();
            becomes_right(&informer, &server).await;
            settle().await;
            assert_eq!(log.take().iter().map(|told| &told[..1]).collect::<String>(), "~+-", "{delivery:?}");
            assert_eq!(informer.indexer().index_keys("note", "2").unwrap(), [key("ns/a")]);

            let unchanged = informer.indexer().get_by_key(&key("ns/c")).unwrap();
            forget(&server);
            change(&server, "d", "2");
            server.delete("pods", "ns", "gone").unwrap();
            forget(&server);
            becomes_right(&informer, &server).await;
            settle().await;
            let told = log.take();
            assert!(told.iter().any(|told| told.starts_with("-ns/gone") && told.ends_with('?')), "{told:?}");
            assert!(unchanged.is_handle_of(&informer.indexer().get_by_key(&key("ns/c")).unwrap()), "it was kept");
            let lists = server.requests().iter().filter(|request| request.verb == Some(Verb::List)).count();
            assert_eq!(lists == 0, streaming, "pages or a stream");
            running.stop();
            running.join().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_leaves_a_selection_is_deleted_and_what_enters_it_is_added() {
    let server = server(&["a", "b"]).await;
    let pods = PodRef::pods(client(&server)).in_namespace("ns").labels("note=in").unwrap();
    let informer = Informer::with_options(pods, options(true)).unwrap();
    let log = Recorder::new();
    informer.add_handler(log.clone()).unwrap();
    let _running = informer.start(CancellationToken::new());
    informer.synced().await.unwrap();
    for (note, told) in [("in", '+'), ("out", '-'), ("in", '+')] {
        change(&server, "a", note);
        settle().await;
        let [one] = &log.take()[..] else { panic!("one notification") };
        assert!(one.starts_with(told), "{one}");
    }
    server.delete("pods", "ns", "a").unwrap();
    settle().await;
    assert!(log.take()[0].starts_with("-ns/a"));
    assert!(informer.indexer().is_empty());
}

/// Its labels are none in any representation.
const UNREADABLE: &str = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"ns","name":"bad","uid":"u","resourceVersion":"1","labels":{"note":[]}}}"#;

#[tokio::test(start_paused = true)]
async fn one_object_that_cannot_be_read_harms_no_other() {
    for streaming in [false, true] {
        let server = server(&["a", "c"]).await;
        let event = format!(r#"{{"type":"ADDED","object":{UNREADABLE}}}"#);
        // In the list, and in the watch after it.
        if !streaming {
            server.fault(Fault::more_items([UNREADABLE]));
        }
        server.fault(Fault::line(1, event));
        let informer = informer(&server, options(streaming));
        let _running = informer.start(CancellationToken::new());
        informer.synced().await.unwrap();
        assert_eq!(stored(&informer), served(&server));
        change(&server, "a", "2");
        change(&server, "c", "2");
        becomes_right(&informer, &server).await;
        let status = informer.status();
        assert_eq!(status.reflector.undecodable, if streaming { 1 } else { 2 }, "{status}");
        assert_eq!(server.requests().len(), if streaming { 1 } else { 2 }, "nothing was asked again");
    }
}

#[tokio::test(start_paused = true)]
async fn failures_have_the_same_classes_in_every_format_and_are_recovered_from() {
    let expired = || Status::expired("too old");
    for (fault, class) in [
        (Fault::answer(Status::new(403, "Forbidden", "no")), ErrorClass::Forbidden),
        (Fault::too_many_requests(1), ErrorClass::Throttled),
        (Fault::unavailable(), ErrorClass::Unavailable),
        (Fault::answer(Status::version_too_large(9, 1)), ErrorClass::VersionTooLarge),
        (Fault::truncate(40), ErrorClass::Truncated),
        (Fault::reset_body(40), ErrorClass::Transport),
    ] {
        let server = server(&["a", "b"]).await;
        let pods = PodRef::pods(client(&server));
        server.fault(fault.clone());
        assert_eq!(pods.list(&ListOptions::default(), &mut |_| {}).await.unwrap_err().class(), class);
        server.fault(fault);
        let options = WatchOptions::streaming_list("", MINUTE);
        let watched: Result<Vec<WatchEvent<PodRef>>, RequestError> =
            async { pods.watch(&options).await?.try_collect().await }.await;
        assert_eq!(watched.unwrap_err().class(), class);
    }
    let server = server(&["a", "b"]).await;
    let informer = informer(&server, options(false));
    let _running = informer.start(CancellationToken::new());
    informer.synced().await.unwrap();
    server.fault(Fault::error_event(1, expired()));
    server.close_watches();
    tokio::time::sleep(MINUTE).await;
    change(&server, "a", "2");
    change(&server, "b", "2");
    becomes_right(&informer, &server).await;
    assert_eq!(informer.status().last_error().unwrap().error.class(), ErrorClass::Expired);
}

/// Wherever a body breaks off, in an envelope, a length, an item or a frame.
#[tokio::test(start_paused = true)]
async fn a_body_that_breaks_off_at_any_byte_loses_nothing_in_the_end() {
    let server = server(&["a", "b", "c", "d"]).await;
    for streaming in [false, true] {
        for at in (0..800).step_by(37) {
            for fault in [Fault::truncate(at), Fault::reset_body(at)] {
                server.clear_faults();
                let fault = server.fault(fault.times(2));
                let informer = informer(&server, options(streaming));
                let running = informer.start(CancellationToken::new());
                informer.synced().await.unwrap();
                change(&server, "a", &at.to_string());
                change(&server, "b", &at.to_string());
                becomes_right(&informer, &server).await;
                running.stop();
                running.join().await;
                server.clear_fault(fault);
            }
        }
    }
    assert!(server.faults_hit()["body truncated"] > 40 && server.faults_hit()["body reset"] > 40);
}

#[tokio::test(start_paused = true)]
async fn what_is_longer_than_its_limit_is_a_named_error_and_the_next_state_is_taken() {
    let long = |object: &mut Value| object["metadata"]["annotations"] = json!({"long": "x".repeat(40_000)});
    let limits = Limits::default().item(20_000).line(20_000);
    for streaming in [false, true] {
        let server = server(&["a", "b"]).await;
        let pods = PodRef::pods(client(&server)).limits(limits);
        let informer = Informer::with_options(pods.clone(), options(streaming).error_handler(|_| {})).unwrap();
        let _running = informer.start(CancellationToken::new());
        informer.synced().await.unwrap();
        server.modify("pods", "ns", "a", long).unwrap();
        tokio::time::sleep(MINUTE).await;
        let error = informer.status().last_error().unwrap().error.clone();
        assert_eq!(error.class(), ErrorClass::TooLong, "{error}");
        let listed = pods.list(&ListOptions::default(), &mut |_| {}).await.unwrap_err();
        assert!(listed.to_string().contains("longer than the limit of 20000 bytes; raise `Limits::"), "{listed}");
        server.modify("pods", "ns", "a", |object| object["metadata"]["annotations"] = json!({})).unwrap();
        becomes_right(&informer, &server).await;
    }
}

#[tokio::test(start_paused = true)]
async fn bytes_that_are_no_events_end_a_watch_with_an_excerpt_and_lose_nothing() {
    let mark = [b"\xff\xff\xff\xff".as_slice(), b"Sign in, please", b"\x08\x01", b"k8s\0", b"[]"];
    for bytes in mark {
        let server = server(&["a"]).await;
        let informer = informer(&server, options(false));
        server.fault(Fault::line(0, bytes));
        let _running = informer.start(CancellationToken::new());
        informer.synced().await.unwrap();
        change(&server, "a", "2");
        server.create("pods", pod("b", "1")).unwrap();
        becomes_right(&informer, &server).await;
        let error = informer.status().last_error().unwrap().error.clone();
        // `k8s\0` begins a bare status, which says nothing here.
        assert!(matches!(error.class(), ErrorClass::Decode | ErrorClass::TooLong | ErrorClass::Other), "{error:?}");
        assert_eq!(server.faults_hit()["foreign line"], 1);
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_of_another_kind_or_format_is_an_error_that_says_what_came() {
    let server = server(&["a"]).await;
    let pods = PodRef::pods(client(&server));
    let raw = |content_type: &str, body: &'static [u8]| Fault::raw(200, content_type, body).times(2);
    for fault in [
        raw("text/html", b"<html>Sign in, please</html>"),
        raw("application/json", b""),
        raw("application/vnd.kubernetes.protobuf", b"k8s"),
        raw("application/vnd.kubernetes.protobuf", b"k8t\0\x0a\x00"),
        // A field of the kind 3, a group, which nobody writes; and a list of another kind.
        raw("application/vnd.kubernetes.protobuf", b"k8s\0\x0b\x00\x0c"),
        raw("application/vnd.kubernetes.protobuf", b"k8s\0\x0a\x0e\x0a\x02v1\x12\x08NodeList\x12\x00"),
    ] {
        server.fault(fault);
        let listed = pods.list(&ListOptions::default(), &mut |_| {}).await.expect_err("it is no list of pods");
        let watched: Result<Vec<WatchEvent<PodRef>>, RequestError> =
            async { pods.watch(&WatchOptions::from_version("1", MINUTE)).await?.try_collect().await }.await;
        assert!(matches!(listed.class(), ErrorClass::Decode | ErrorClass::Truncated), "{listed:?}");
        if let Err(watched) = watched {
            assert!(matches!(watched.class(), ErrorClass::Decode | ErrorClass::Truncated | ErrorClass::TooLong), "{watched:?}");
        }
    }
    assert_eq!(server.faults_left(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_factory_shares_the_informer_and_its_listers_read_it() {
    let server = server(&["a", "b"]).await;
    let factory = SharedInformerFactory::new(FactoryOptions::new());
    let pods = factory.informer(|_| PodRef::pods(client(&server)));
    let same = factory.informer(|_| PodRef::pods(client(&server)));
    let lister = pods.lister();
    let stop = CancellationToken::new();
    factory.start(&stop);
    factory.wait_for_cache_sync(&stop, MINUTE).await.unwrap();
    assert_eq!(same.indexer().len(), 2);
    let one = lister.namespace("ns").require("a").unwrap();
    assert!(one.is_handle_of(&same.indexer().get_by_key(&key("ns/a")).unwrap()));
    assert_eq!(lister.list(&"app=web,note=1".parse::<LabelSelector>().unwrap()).len(), 2);
    assert!(lister.list(&"note=2".parse::<LabelSelector>().unwrap()).is_empty());
    factory.shut_down().await;
}

/// Labels and ids are kept by all; owners and the rest by those that keep the metadata.
#[tokio::test(start_paused = true)]
async fn owners_labels_and_annotations_are_what_the_server_has_and_can_be_indexed() {
    let server = server(&["a"]).await;
    let own = |object: &mut Value| {
        let owner = |name: &str, controller: bool| json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": format!("u-{name}"), "controller": controller});
        object["metadata"]["ownerReferences"] = json!([owner("other", false), owner("web", true)]);
        object["metadata"]["annotations"] = json!({"x": "1", "quoted": "a\"b"});
        object["metadata"]["finalizers"] = json!(["example.com/wait"]);
    };
    server.modify("pods", "ns", "a", own).unwrap();
    server.delete("pods", "ns", "a").unwrap();
    let informer = informer(&server, options(true));
    let by_owner = IndexFunc::many(|pod: &PodRef| {
        pod.owners().iter().filter(|owner| owner.controller).map(|owner| owner.uid.to_owned()).collect::<Vec<_>>()
    });
    informer.add_indexers(Indexers::none().with("owner", by_owner)).unwrap();
    let _running = informer.start(CancellationToken::new());
    informer.synced().await.unwrap();
    let pod = informer.indexer().get_by_key(&key("ns/a")).unwrap();
    assert_eq!((pod.label("app"), pod.label("note"), pod.label("none")), (Some("web"), Some("1"), None));
    assert_eq!(informer.indexer().index_keys("note", "1").unwrap(), [key("ns/a")]);
    let is_brief = [TypeId::of::<OwnStruct>(), TypeId::of::<OwnMessage>()].contains(&TypeId::of::<PodRef>());
    let (owners, deleted) = (pod.owners(), pod.is_being_deleted());
    let owned: Vec<_> = informer.indexer().index_keys("owner", "u-web").unwrap();
    let mut annotations: Vec<_> = pod.all_annotations().iter().map(|(name, value)| format!("{name}={value}")).collect();
    annotations.sort();
    if is_brief {
        assert!(owners.is_empty() && !deleted && owned.is_empty() && annotations.is_empty());
        return;
    }
    assert_eq!(owners.iter().map(|owner| (owner.name, owner.controller)).collect::<Vec<_>>(), [("other", false), ("web", true)]);
    assert_eq!((owned, deleted), (vec![key("ns/a")], true));
    assert_eq!(annotations, ["quoted=a\"b", "x=1"]);
    let mut labels = pod.all_labels();
    labels.sort();
    assert_eq!(labels, [("app", "web"), ("note", "1")]);
    assert_eq!(pod.generation(), server.list("pods")[0]["metadata"]["generation"].as_i64());
}

#[tokio::test(start_paused = true)]
async fn a_state_that_was_replaced_stays_readable_for_who_holds_it() {
    let server = server(&["a"]).await;
    let informer = informer(&server, options(false));
    let _running = informer.start(CancellationToken::new());
    informer.synced().await.unwrap();
    let held = informer.indexer().get_by_key(&key("ns/a")).unwrap();
    change(&server, "a", "2");
    becomes_right(&informer, &server).await;
    server.delete("pods", "ns", "a").unwrap();
    becomes_right(&informer, &server).await;
    assert_eq!((held.read().note.as_str(), informer.indexer().len()), ("1", 0));
}

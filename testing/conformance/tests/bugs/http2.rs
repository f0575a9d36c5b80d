//! Watches that share connections of HTTP/2, and what goes wrong with these: B19 and its neighbours.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::{Request, Response};
use k8s_openapi::api::core::v1::Pod;
use kube_client::{Client, Config};
use kubewire_apiserver::{ApiServer, Verb};
use kubewire_conformance::wire::{Authority, Front, Thing, Tls, event_line};
use kubewire_indexer::Object;
use kubewire_informer::reflector::ReflectorOptions;
use kubewire_informer::{Informer, InformerOptions, RunningInformer};
use kubewire_listwatch::{ClientOptions, Http2, ListWatch, Protocol};
use parking_lot::Mutex;
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::support::{quick_backoff, until, until_or};

const HOST: &str = "127.0.0.1";

/// The embedded API server behind TLS.
struct Cluster {
    server: ApiServer,
    front: Front,
    config: Config,
}

impl Cluster {
    async fn start(takes: &[&str]) -> Self {
        let server = ApiServer::builder().port(0).namespaces_on_demand().start().await.unwrap();
        let authority = Authority::new("ca");
        let tls = Tls::new(&authority.issue(HOST));
        tls.takes(takes);
        let front = Front::before(server.address().unwrap(), &tls).await;
        let mut config = Config::new(format!("https://{}", front.address()).parse().unwrap());
        config.root_cert = Some(vec![authority.der()]);
        Self { server, front, config }
    }

    fn client(&self, options: ClientOptions) -> Client {
        options.build(self.config.clone()).unwrap()
    }

    fn create(&self, name: &str, namespaces: usize) {
        for n in 0..namespaces {
            let pod = json!({"metadata": {"name": name, "namespace": format!("ns{n}")}});
            self.server.create("pods", pod).unwrap();
        }
    }
}

type Pods = (Informer<Arc<Pod>>, RunningInformer);

fn options() -> InformerOptions<Arc<Pod>> {
    InformerOptions::new().reflector(ReflectorOptions::new().watch_list(false).backoff(quick_backoff()))
}

fn start(pods: ListWatch<Arc<Pod>>) -> Pods {
    let informer = Informer::with_options(pods, options()).unwrap();
    let running = informer.start(CancellationToken::new());
    (informer, running)
}

/// An informer for the pods of each of so many namespaces, over one client.
fn informers(client: &Client, count: usize) -> Vec<Pods> {
    (0..count).map(|n| start(ListWatch::namespaced(client.clone(), &format!("ns{n}")))).collect()
}

async fn all_have(informers: &[Pods], len: usize) {
    let lens = || informers.iter().map(|(informer, _)| informer.indexer().list().len()).collect::<Vec<_>>();
    until_or(|| format!("{len} pods each: {:?}", lens()), || lens().iter().all(|has| *has == len)).await;
}

async fn all_watch(cluster: &Cluster, count: usize) {
    until("each has its watch", || cluster.server.requests_open() == count).await;
}

#[tokio::test]
async fn fifty_informers_share_one_connection_and_150_two_and_nothing_is_left() {
    let cluster = Cluster::start(&["h2", "http/1.1"]).await;
    cluster.create("a", 150);
    let client = cluster.client(ClientOptions::new());
    let mut running = informers(&client, 50);
    all_have(&running, 1).await;
    all_watch(&cluster, 50).await;
    assert_eq!((cluster.front.accepted(), cluster.front.open()), (1, 1));

    running.extend((50..150).map(|n| start(ListWatch::namespaced(client.clone(), &format!("ns{n}")))));
    all_have(&running, 1).await;
    all_watch(&cluster, 150).await;
    assert_eq!(cluster.front.open(), 2);
    cluster.create("b", 150);
    all_have(&running, 2).await;

    for (_, running) in running {
        running.stop();
        running.join().await;
    }
    drop(client);
    until("no connection is left", || cluster.front.open() == 0).await;
}

#[tokio::test]
async fn http1_is_spoken_where_the_server_has_nothing_else_and_where_it_is_chosen() {
    for (takes, protocol) in [
        (vec!["http/1.1"], Protocol::Negotiated),
        (vec![], Protocol::Negotiated),
        (vec!["h2", "http/1.1"], Protocol::Http1),
    ] {
        let cluster = Cluster::start(&takes).await;
        cluster.create("a", 5);
        let running = informers(&cluster.client(ClientOptions::new().protocol(protocol)), 5);
        all_have(&running, 1).await;
        all_watch(&cluster, 5).await;
        assert_eq!(cluster.front.open(), 5, "{takes:?}");
        cluster.create("b", 5);
        all_have(&running, 2).await;
    }
}

/// B19: the other end is there and says nothing. All watches of the connection go on over another one, from their
/// versions.
#[tokio::test]
async fn all_watches_of_a_connection_that_falls_silent_go_on_over_another_without_a_list() {
    let cluster = Cluster::start(&["h2"]).await;
    cluster.create("a", 50);
    let soon = Http2::default().ping_after(Duration::from_millis(300)).ping_timeout(Duration::from_secs(2));
    let running = informers(&cluster.client(ClientOptions::new().http2(soon)), 50);
    all_have(&running, 1).await;
    // What was heard by a watch shows that it is open.
    all_watch(&cluster, 50).await;
    cluster.create("b", 50);
    all_have(&running, 2).await;
    let lists = || cluster.server.requests().iter().filter(|request| request.verb == Some(Verb::List)).count();
    let lists_before = lists();
    cluster.front.falls_silent();
    cluster.create("c", 50);
    all_have(&running, 3).await;
    let status = running[0].0.status();
    assert_eq!(lists(), lists_before, "{:?}, {:?}", status.reflector.restarts, status.last_error());
}

/// How the first watch ends, within its second event.
#[derive(Clone, Copy, Debug)]
enum End {
    /// RST_STREAM; the connection lives on.
    Reset(Reason),
    /// GOAWAY with an error: the connection is over.
    Abort(Reason),
    /// GOAWAY in good order: what is open goes on.
    Drain,
    /// The connection is closed.
    Close,
}

/// A server of HTTP/2 without TLS, whose first watch ends badly.
struct Scripted {
    config: Config,
    /// `list`, or `watch` with its version, and the number of the connection.
    asked: Arc<Mutex<Vec<(String, usize)>>>,
    task: JoinHandle<()>,
}

impl Drop for Scripted {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn event(text: &str) -> Vec<u8> {
    event_line("ADDED", &Thing::parse(text).json())
}

impl Scripted {
    async fn start(end: End) -> Self {
        let listener = TcpListener::bind((HOST, 0)).await.unwrap();
        let config = Config::new(format!("http://{}", listener.local_addr().unwrap()).parse().unwrap());
        let asked = Arc::<Mutex<Vec<(String, usize)>>>::default();
        let log = Arc::clone(&asked);
        let task = tokio::spawn(async move {
            let ends = Arc::new(Mutex::new(VecDeque::from([end])));
            let mut connections = tokio::task::JoinSet::new();
            for number in 0.. {
                let (stream, _) = listener.accept().await.unwrap();
                connections.spawn(connection(stream, number, Arc::clone(&log), Arc::clone(&ends)));
            }
        });
        Self { config, asked, task }
    }
}

async fn connection(
    stream: TcpStream,
    number: usize,
    log: Arc<Mutex<Vec<(String, usize)>>>,
    ends: Arc<Mutex<VecDeque<End>>>,
) {
    let mut connection = h2::server::handshake(stream).await.unwrap();
    // Bodies that are open stay so.
    let mut open = Vec::<SendStream<Bytes>>::new();
    while let Some(Ok((request, respond))) = connection.accept().await {
        let (asked, mut body) = answer(&request, respond);
        log.lock().push((asked.clone(), number));
        let mut say = |bytes: Vec<u8>, is_end| body.send_data(bytes.into(), is_end).unwrap();
        match asked.as_str() {
            "list" => say(br#"{"metadata":{"resourceVersion":"10"},"items":[]}"#.to_vec(), true),
            "watch 10" => {
                let second = event("y@12");
                let (half, rest) = second.split_at(second.len() / 2);
                say([&event("x@11"), half].concat(), false);
                let end = ends.lock().pop_front().expect("it comes once");
                // What was said so far goes out, for a while.
                let while_later = tokio::time::sleep(Duration::from_millis(50));
                tokio::select! {
                    _ = connection.accept() => panic!("nothing else is asked"),
                    () = while_later => {}
                }
                match end {
                    End::Reset(reason) => body.send_reset(reason),
                    End::Abort(reason) => connection.abrupt_shutdown(reason),
                    End::Close => return,
                    End::Drain => {
                        connection.graceful_shutdown();
                        body.send_data(Bytes::copy_from_slice(rest), true).unwrap();
                    }
                }
            }
            "watch 11" => say(event("y@12"), false),
            _ => {}
        }
        open.push(body);
    }
}

fn answer(request: &Request<RecvStream>, mut respond: SendResponse<Bytes>) -> (String, SendStream<Bytes>) {
    let query = request.uri().query().unwrap_or_default();
    let version = query.split('&').find_map(|pair| pair.strip_prefix("resourceVersion="));
    let asked = if query.contains("watch=") { format!("watch {}", version.unwrap()) } else { "list".to_owned() };
    let response = Response::builder().header("content-type", "application/json").body(()).unwrap();
    (asked, respond.send_response(response, false).unwrap())
}

#[tokio::test]
async fn streams_and_connections_that_end_within_an_event_lose_nothing_and_cost_no_list() {
    for end in [
        End::Reset(Reason::INTERNAL_ERROR),
        End::Reset(Reason::CANCEL),
        End::Reset(Reason::NO_ERROR),
        End::Reset(Reason::REFUSED_STREAM),
        End::Reset(Reason::ENHANCE_YOUR_CALM),
        End::Abort(Reason::PROTOCOL_ERROR),
        End::Abort(Reason::ENHANCE_YOUR_CALM),
        End::Abort(Reason::NO_ERROR),
        End::Drain,
        End::Close,
    ] {
        let server = Scripted::start(end).await;
        let client = ClientOptions::new().protocol(Protocol::Http2).build(server.config.clone()).unwrap();
        let (informer, running) = start(ListWatch::all(client));
        let store = || {
            let mut keys: Vec<_> = informer.indexer().list().iter().map(|pod| pod.key().to_string()).collect();
            keys.sort();
            keys
        };
        until_or(|| format!("{end:?}: {:?}, {:?}", store(), server.asked.lock()), || store() == ["ns1/x", "ns1/y"])
            .await;
        // The first answer of all told the second event, where the stream was not broken.
        let (second, same) = match end {
            End::Drain => ("watch 12", false),
            End::Reset(_) => ("watch 11", true),
            End::Abort(_) | End::Close => ("watch 11", false),
        };
        until(&format!("{end:?}: it watches again"), || server.asked.lock().len() == 3).await;
        let asked = server.asked.lock().clone();
        let texts: Vec<&str> = asked.iter().map(|(text, _)| text.as_str()).collect();
        assert_eq!(texts, ["list", "watch 10", second], "{end:?}");
        assert_eq!(asked[1].1 == asked[2].1, same, "{end:?}: {asked:?}");
        running.stop();
        running.join().await;
    }
}

//! A network between a client and the server in process, which loses, delays, repeats and holds.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::Stream;
use http::request::Parts;
use http::{Request, Response};
use http_body::Body;
use http_body_util::{BodyExt, Full};
use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};
use tokio::time::sleep;
use tower::Service;

use crate::body::{BoxError, ResponseBody};
use crate::rng::Rng;
use crate::server::ApiServer;
use crate::service::{InProcess, read};

/// How long something is under way where nothing is wrong, at most.
const USUAL_DELAY: Duration = Duration::from_millis(100);
/// How long what is late may be.
const LONG_DELAY: Duration = Duration::from_secs(20);

/// A network between one client and the server in process: a tower service, as [`InProcess`], to make a client of. Clones
/// are the same network.
///
/// Each request and each answer takes up to 100 ms. It can be [bad](Self::bad), [cut](Self::cut) and [hold](Self::hold) what is
/// sent, each for itself. What is under way arrives, though nobody may wait for its answer any more: so a write of somebody
/// who is gone can be done late. All chance follows from the seed.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap().block_on(async {
/// use k8s_openapi::api::core::v1::Pod;
/// use kube_client::{Api, Client};
/// use kubewire_apiserver::{ApiServer, Network};
/// use std::time::Duration;
///
/// let server = ApiServer::start().await;
/// let network = Network::new(&server, 1);
/// let pods: Api<Pod> = Api::all(Client::new(network.clone(), "default"));
/// pods.list(&Default::default()).await?;
///
/// network.cut(true);
/// let an_hour = Duration::from_secs(3600);
/// assert!(tokio::time::timeout(an_hour, pods.list(&Default::default())).await.is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct Network {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    server: InProcess,
    state: Mutex<State>,
    /// Whether all that is under way waits.
    holds: watch::Sender<bool>,
}

/// Guarded by `Shared::state`.
#[derive(Debug)]
struct State {
    rng: Rng,
    is_cut: bool,
    is_bad: bool,
    arrived: Vec<http::Method>,
}

/// What becomes of one request.
struct Fate {
    /// How often it arrives.
    copies: usize,
    late: Duration,
    answer_is_lost: bool,
    answer_late: Duration,
}

impl Network {
    /// A good one.
    pub fn new(server: &ApiServer, seed: u64) -> Self {
        let state = State { rng: Rng::new(seed), is_cut: false, is_bad: false, arrived: Vec::new() };
        let (server, holds) = (server.service(), watch::Sender::new(false));
        Self { shared: Arc::new(Shared { server, state: Mutex::new(state), holds }) }
    }

    /// A client over this network.
    #[cfg(feature = "client")]
    pub fn client(&self) -> kube_client::Client {
        kube_client::Client::new(self.clone(), "default")
    }

    /// Whether it is cut: requests and answers that are sent are lost, which nobody is told. Bodies that are being read, such as
    /// those of watches, wait.
    pub fn cut(&self, is_cut: bool) {
        self.shared.state.lock().is_cut = is_cut;
        self.shared.holds.send_modify(|_| {});
    }

    /// Whether it is bad: of requests and of answers one in 20 is lost, one in ten takes up to 20 s; one request in ten arrives
    /// twice.
    pub fn bad(&self, is_bad: bool) {
        self.shared.state.lock().is_bad = is_bad;
    }

    /// Whether it holds what is under way in both directions, bodies of watches too, until it does so no more: nothing is lost,
    /// and all comes late.
    pub fn hold(&self, holds: bool) {
        self.shared.holds.send_replace(holds);
    }

    /// The methods of the requests that have arrived since the last call.
    pub fn take_arrived(&self) -> Vec<http::Method> {
        std::mem::take(&mut self.shared.state.lock().arrived)
    }

    /// Until nothing is held.
    async fn pass(&self) {
        // The sender is of this network itself.
        let _ = self.shared.holds.subscribe().wait_for(|holds| !holds).await;
    }

    fn is_cut(&self) -> bool {
        self.shared.state.lock().is_cut
    }

    /// Brings a request to the server, and the answer back, as often as its fate wants.
    async fn carry(self, parts: Parts, body: Bytes, fate: Fate, answer: oneshot::Sender<Answer>) {
        let mut answer = Some(answer);
        for _ in 0..fate.copies {
            sleep(fate.late).await;
            self.pass().await;
            self.shared.state.lock().arrived.push(parts.method.clone());
            let copy = Request::from_parts(parts.clone(), Full::new(body.clone()));
            let mut server = self.shared.server.clone();
            let call = server.call(copy);
            let nobody_waits = async {
                if let Some(answer) = &mut answer {
                    answer.closed().await;
                }
                sleep(LONG_DELAY).await;
            };
            let answered = tokio::select! {
                biased;
                answered = call => answered,
                // The server has noticed by now.
                () = nobody_waits => return,
            };
            if let Some(mut answer) = answer.take() {
                if self.is_cut() || fate.answer_is_lost {
                    // Who waits for it gives up some time.
                    drop(answered);
                    answer.closed().await;
                } else {
                    let _ = answer.send(answered);
                }
            }
        }
    }

    /// What is read of a body comes through this network too.
    fn carry_body(self, body: ResponseBody) -> impl Stream<Item = Result<Bytes, BoxError>> + Send {
        let holds = self.shared.holds.subscribe();
        futures::stream::unfold((self, holds, body), |(network, mut holds, mut body)| async move {
            loop {
                let flows = !*holds.borrow_and_update() && !network.is_cut();
                tokio::select! {
                    biased;
                    _ = holds.changed() => {}
                    frame = body.frame(), if flows => {
                        let data = frame?.map(|frame| frame.into_data().unwrap_or_default());
                        return Some((data, (network, holds, body)));
                    }
                }
            }
        })
    }
}

type Answer = Result<Response<ResponseBody>, BoxError>;

impl State {
    /// `None`: it is lost.
    fn fate(&mut self) -> Option<Fate> {
        let is_bad = self.is_bad;
        let mut chance = |percent: u64| self.rng.below(100) < percent && is_bad;
        let (is_lost, answer_is_lost, twice) = (chance(5), chance(5), chance(10));
        let (late, answer_late) = (chance(10), chance(10));
        let mut delay = |long: bool| {
            let longest = if long { LONG_DELAY } else { USUAL_DELAY };
            Duration::from_millis(self.rng.below(longest.as_millis() as u64))
        };
        let (late, answer_late) = (delay(late), delay(answer_late));
        (!is_lost && !self.is_cut).then_some(Fate { copies: 1 + usize::from(twice), late, answer_is_lost, answer_late })
    }
}

impl<B> Service<Request<B>> for Network
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<BoxError>,
{
    type Response = Response<ResponseBody>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Answer> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    /// Sends a request. Where the future is dropped it arrives all the same.
    fn call(&mut self, request: Request<B>) -> Self::Future {
        let this = self.clone();
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let body = read(body).await.map_err(|status| format!("the request cannot be sent: {status:?}"))?;
            let fate = this.shared.state.lock().fate();
            let Some(fate) = fate else { return std::future::pending().await };
            let (send, answer) = oneshot::channel();
            let late = fate.answer_late;
            tokio::spawn(this.clone().carry(parts, body, fate, send));
            let answer = answer.await.map_err(|_| "the network is gone")?;
            sleep(late).await;
            this.pass().await;
            let (parts, body) = answer?.into_parts();
            Ok(Response::from_parts(parts, ResponseBody::stream(this.carry_body(body))))
        })
    }
}

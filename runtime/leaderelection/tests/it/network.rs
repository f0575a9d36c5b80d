//! A network between a client and the embedded API server that loses, delays and repeats.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::{Request, Response};
use kube_client::Client;
use kube_client::client::Body;
use kubewire_apiserver::{ApiServer, BoxError, InProcess, ResponseBody};
use kubewire_ratelimit::Random;
use parking_lot::Mutex;
use tower::Service;

/// How a network behaves.
#[derive(Clone)]
pub(crate) struct Network {
    state: Arc<Mutex<State>>,
    server: InProcess,
}

struct State {
    random: Random,
    is_cut: bool,
    /// Requests and answers are lost, come late and twice.
    is_bad: bool,
    /// Methods of the requests that arrived.
    arrived: Vec<String>,
}

/// What becomes of one request.
struct Fate {
    copies: usize,
    lost: bool,
    late: Duration,
    answer_lost: bool,
    answer_late: Duration,
}

impl Network {
    pub(crate) fn new(server: &ApiServer, seed: u64) -> Self {
        let random = Random::seeded(seed);
        let state = State { random, is_cut: false, is_bad: false, arrived: Vec::new() };
        Self { state: Arc::new(Mutex::new(state)), server: server.service() }
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.clone(), "default")
    }

    pub(crate) fn cut(&self, is_cut: bool) {
        self.state.lock().is_cut = is_cut;
    }

    pub(crate) fn bad(&self, is_bad: bool) {
        self.state.lock().is_bad = is_bad;
    }

    pub(crate) fn take_arrived(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().arrived)
    }
}

impl State {
    fn fate(&mut self) -> Fate {
        let mut chance = |of: f64| self.is_bad && self.random.fraction() < of;
        let (lost, answer_lost, twice) = (chance(0.05), chance(0.05), chance(0.1));
        let (late, answer_late) = (chance(0.1), chance(0.1));
        let mut delay =
            |long: bool| Duration::from_millis((self.random.fraction() * if long { 20_000.0 } else { 100.0 }) as u64);
        Fate {
            copies: if twice { 2 } else { 1 },
            lost: lost || self.is_cut,
            late: delay(late),
            answer_lost,
            answer_late: delay(answer_late),
        }
    }
}

impl Service<Request<Body>> for Network {
    type Response = Response<ResponseBody>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let this = self.clone();
        Box::pin(async move {
            let fate = this.state.lock().fate();
            let (parts, body) = request.into_parts();
            let body = body.collect_bytes().await?;
            let (send, receive) = tokio::sync::oneshot::channel();
            // What is on its way arrives, though nobody waits for the answer any more.
            tokio::spawn(async move {
                let mut send = Some(send);
                for _ in 0..fate.copies {
                    tokio::time::sleep(fate.late).await;
                    if fate.lost {
                        std::future::pending::<()>().await;
                    }
                    this.state.lock().arrived.push(parts.method.to_string());
                    let copy = Request::from_parts(parts.clone(), Body::from(body.to_vec()));
                    let answer = this.server.clone().call(copy).await;
                    if this.state.lock().is_cut {
                        std::future::pending::<()>().await;
                    }
                    if let Some(send) = send.take() {
                        let _ = send.send(answer);
                    }
                }
            });
            let answer = receive.await.map_err(|_| "the network is gone")?;
            tokio::time::sleep(fate.answer_late).await;
            if fate.answer_lost {
                std::future::pending::<()>().await;
            }
            answer
        })
    }
}

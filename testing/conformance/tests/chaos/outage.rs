//! The server is of no use for long, and must not be overrun.

use std::time::Duration;

use kubewire_apiserver::{ApiServer, Fault, Matching, Status};
use kubewire_ratelimit::Backoff;

use crate::dice::Dice;
use crate::writers;

/// The delays of all reflectors of a run: the defaults, written out, as the budget follows from them.
const FIRST_DELAY: Duration = Duration::from_millis(800);
const LONGEST_DELAY: Duration = Duration::from_secs(30);

pub(crate) fn backoff() -> Backoff {
    Backoff::new(FIRST_DELAY).factor(2.0).jitter(1.0).cap(LONGEST_DELAY).steps(38)
}

/// How often one reflector may come to its delay in an outage so long, whatever the jitter (which only adds), its first try
/// and the try that begins at its very end counted.
fn tries(length: Duration) -> u64 {
    let (mut tries, mut at, mut delay) = (2, Duration::ZERO, FIRST_DELAY);
    while at + delay <= length {
        tries += 1;
        at += delay;
        delay = (delay * 2).min(LONGEST_DELAY);
    }
    tries
}

/// How the server is of no use.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Down,
    Refuses(u16),
    Forbids,
    ClosesWatches,
}

/// Lets the server be of no use for a while. `informers` may not ask more often than their back-off allows.
pub(crate) async fn happen(server: &ApiServer, informers: u64, dice: &mut Dice) {
    let kind = dice.one_of(&[
        Kind::Down,
        Kind::Down,
        Kind::Refuses(500),
        Kind::Refuses(503),
        Kind::Refuses(429),
        Kind::Refuses(401),
        Kind::Forbids,
        Kind::ClosesWatches,
    ]);
    let length = Duration::from_secs(600) + dice.seconds(1200);
    let before = asked(server);
    begin(server, kind).await;
    tokio::time::sleep(length).await;
    // A page of a list has five objects.
    let pages = writers::objects(server) / 5 + 1;
    // In the worst case a streaming list is tried, then a list in its place, then a watch from there.
    let requests_for_a_try = match kind {
        Kind::Down | Kind::Refuses(429) => 1,
        Kind::Refuses(_) | Kind::Forbids => 2,
        Kind::ClosesWatches => 2 + pages,
    };
    let budget = informers * tries(length) * requests_for_a_try;
    let asked = asked(server) - before;
    assert!(asked <= budget, "{asked} requests in {length:?} of {kind:?}, of {budget} at most");
    end(server).await;
}

/// Requests that came to the server, and those that came in vain.
fn asked(server: &ApiServer) -> u64 {
    let refused = server.faults_hit().get("refused: the server is down").copied().unwrap_or_default();
    server.requests().len() as u64 + refused
}

async fn begin(server: &ApiServer, kind: Kind) {
    match kind {
        Kind::Down => server.go_down().await,
        Kind::Refuses(code) => {
            let status = match code {
                500 => Status::internal("outage"),
                503 => Status::unavailable(),
                429 => Status::too_many_requests(1),
                _ => Status::unauthorized(),
            };
            server.fault(Fault::answer(status).always());
            server.reset_watches();
        }
        Kind::Forbids => {
            server.forbid(Matching::any());
            server.reset_watches();
        }
        Kind::ClosesWatches => {
            server.fault(Fault::truncate(0).on_watch().named("watch closed at once").always());
            server.close_watches();
        }
    }
}

async fn end(server: &ApiServer) {
    server.clear_faults();
    server.allow_all();
    server.come_back().await;
}

//! What goes wrong.

use std::time::Duration;

use kubewire_apiserver::{ApiServer, Fault, Matching, Status};
use tokio_util::sync::CancellationToken;

use crate::dice::Dice;

/// Faults that wait for a request, at most: the client backs off, and would meet nothing but faults.
const FAULTS_MAX: usize = 3;

/// Makes trouble until it is stopped.
pub(crate) async fn make(server: ApiServer, mut dice: Dice, stop: CancellationToken) {
    while stop.run_until_cancelled(tokio::time::sleep(dice.up_to(Duration::from_secs(15)))).await.is_some() {
        once(&server, &mut dice).await;
        if dice.chance(0.05) {
            // Calm: time for what is rare without trouble, such as a bookmark.
            tokio::time::sleep(dice.up_to(Duration::from_secs(300))).await;
        }
    }
}

async fn once(server: &ApiServer, dice: &mut Dice) {
    match dice.below(10) {
        0 => server.close_watches(),
        1 => server.reset_watches(),
        2 => {
            // Who is away now has missed too much.
            server.compact();
            if dice.chance(0.5) {
                server.reset_watches();
            }
        }
        3 => server.skip_resource_versions(dice.below(1000)),
        4 if dice.chance(0.3) => {
            server.forbid(Matching::any());
            server.reset_watches();
            tokio::time::sleep(dice.up_to(Duration::from_secs(60))).await;
            server.allow_all();
        }
        _ if server.faults_left() < FAULTS_MAX => {
            let fault = fault(dice);
            let _ = server.fault(match dice.below(3) {
                0 => fault.on_list(),
                1 => fault.on_watch(),
                _ => fault,
            });
            // Most faults wait for a request.
            if dice.chance(0.4) {
                server.close_watches();
            }
        }
        _ => {}
    }
}

fn fault(dice: &mut Dice) -> Fault {
    let (events, bytes) = (dice.below(6) as usize, dice.below(20_000));
    let fault = match dice.below(20) {
        0 => Fault::gone(),
        1 => Fault::gone_on_next_watch(),
        2 => Fault::too_many_requests(dice.below(5) as u32),
        3 => Fault::internal_error(),
        4 => Fault::unavailable(),
        5 => Fault::timeout(),
        6 => Fault::refuse(),
        7 => Fault::reset(),
        8 => Fault::stall(),
        9 => Fault::delay(dice.up_to(Duration::from_secs(40))),
        10 => Fault::error_event(events, Status::expired("as the dice say")),
        11 => Fault::error_event(events, Status::unavailable()),
        12 => Fault::end_watch(events),
        13 => Fault::reset_watch_mid_event(events),
        14 => Fault::end_watch_mid_event(events),
        15 => Fault::stall_watch(events),
        16 => Fault::truncate(bytes),
        17 => Fault::reset_body(bytes),
        18 => Fault::drop_bookmarks(),
        _ => Fault::repeat_events(),
    };
    if dice.chance(0.2) { fault.times(1 + dice.below(4) as usize) } else { fault }
}

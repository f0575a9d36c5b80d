//! Chaos of whole managers: two and three replicas, each with an elector, a cache and a controller, on a network of its own
//! which is bad, cut or stands still, and with a clock of its own rate. They are killed, stopped, started again; the lease
//! and the server have their troubles too.
//!
//! What must hold is in `ledger.rs` (who acts when) and `world.rs`: no config is written by an older term than before; a stop
//! takes no longer than its grace period allows; and when all is calm one replica leads, and every config was seen in its
//! last state and every one that was to be deleted is gone, whoever led when that was wanted.
//!
//! Seeds, dice, faults and figures are those of `tests/chaos`, and so is the way to play a seed again:
//! `KUBEWIRE_SEED=7 cargo test -p kubewire-conformance --test managers`.

#[path = "../chaos/dice.rs"]
mod dice;
#[path = "../chaos/digest.rs"]
mod digest;
#[expect(dead_code, reason = "the rest is for `tests/chaos`")]
#[path = "../chaos/faults.rs"]
mod faults;
#[expect(dead_code, reason = "the rest is for `tests/chaos`")]
#[path = "../chaos/seeds.rs"]
mod seeds;
#[path = "../chaos/tally.rs"]
mod tally;

mod keeper;
mod ledger;
mod replica;
mod world;

use seeds::{FIRST_SOCKET_SEED, Seeds};

const USUAL: Seeds = Seeds::Range { first: 1, last: 30, complete: false };

#[test]
fn they_never_act_at_one_moment_and_no_key_is_lost_at_a_hand_over() {
    Seeds::named().unwrap_or(USUAL).play("managers", |seed| seed < FIRST_SOCKET_SEED, world::play);
}

#[test]
fn a_seed_plays_the_same_again() {
    for seed in [1, 2] {
        let digests = [world::play(seed), world::play(seed)].map(|outcome| outcome.digest);
        assert_eq!(digests[0], digests[1], "KUBEWIRE_SEED={seed} does not come again");
    }
}

//! The whole path under trouble: writers against the embedded API server, faults in its answers, several informers
//! with handlers that come and go, workers that fail, an outage. In the end everything must be as if nothing had happened.
//!
//! All of a run follows from its seed. In process it runs in virtual time on one thread and comes again exactly:
//! `KUBEWIRE_SEED=7 cargo test -p kubewire-conformance --test chaos`. How to run more of them says the README of this package.

mod act;
mod crowd;
mod dice;
mod digest;
mod faults;
mod outage;
mod play;
mod restores;
mod scope;
mod seeds;
mod tally;
mod trouble;
mod witness;
mod workers;
mod writers;

use kubewire_informer::Delivery;

use play::{Play, Weather};
use seeds::{FIRST_SOCKET_SEED, Seeds};

#[test]
fn per_key_delivery_ends_right_whatever_happens() {
    play_all(Delivery::PerKey);
}

#[test]
fn in_order_delivery_ends_right_whatever_happens() {
    play_all(Delivery::InOrder);
}

#[test]
fn coalescing_delivery_ends_right_whatever_happens() {
    play_all(Delivery::Coalescing);
}

/// Over the loopback interface. Time is virtual there too, but the kernel decides what is read together: such a run does
/// not come again exactly.
#[test]
fn over_sockets_everything_ends_right_too() {
    Seeds::named().unwrap_or(Seeds::usual_over_sockets()).play("sockets", |seed| seed >= FIRST_SOCKET_SEED, play_one);
}

#[test]
fn a_seed_plays_the_same_again() {
    for seed in [1, 2, 3, 4] {
        let digests = [Play::new(seed), Play::new(seed)].map(|play| play.run().digest);
        assert_eq!(digests[0], digests[1], "KUBEWIRE_SEED={seed} does not come again");
    }
    assert_ne!(Play::new(1).run().digest, Play::new(7).run().digest, "the digest sees nothing");
}

/// The other side of the model: where nothing goes wrong, nothing is listed twice and no deletion is a guess.
#[test]
fn in_calm_weather_nothing_is_asked_twice_and_no_deletion_is_guessed() {
    for seed in 1..=6 {
        Play::new(seed).weather(Weather::Calm).run();
    }
}

fn play_all(delivery: Delivery) {
    Seeds::named().unwrap_or(Seeds::usual()).play(
        &format!("{delivery:?}"),
        |seed| seed < FIRST_SOCKET_SEED && play::delivery(seed) == delivery,
        play_one,
    );
}

fn play_one(seed: u64) -> tally::Outcome {
    Play::new(seed).run()
}

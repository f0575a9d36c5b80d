//! Leader election by a Lease: of several replicas one acts, and has stopped before another one can begin.
//!
//! The rules are those of client-go's `tools/leaderelection`, with 15 s, 10 s and 2 s as its defaults, and stricter where
//! its users were bitten. Nothing here knows of controllers; what a leader does is a future.
//!
//! ```
//! use kubewire_leaderelection::{Elector, fake::FakeLock, unique_identity};
//! use tokio_util::sync::CancellationToken;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()?.block_on(async {
//! # let lock = FakeLock::new(); // LeaseLock::new(client, "default", "my-controller")
//! # let reconcile = || async { tokio::time::sleep(std::time::Duration::from_secs(1)).await };
//! let elector = Elector::builder(lock, unique_identity())
//!     .on_started_leading(move |term| async move {
//!         let stop = term.token();
//!         while !stop.is_cancelled() {
//!             reconcile().await; // and look at term.is_valid() before what only a leader may do
//!         }
//!     })
//!     .release_on_stop(true)
//!     .build()?;
//!
//! let stop = CancellationToken::new(); // cancel it on SIGTERM
//! # tokio::spawn({ let stop = stop.clone(); async move {
//! #     tokio::time::sleep(std::time::Duration::from_secs(60)).await;
//! #     stop.cancel();
//! # }});
//! match elector.run(stop).await {
//!     Ok(()) => println!("stopped; the lease is free"),
//!     Err(lost) => eprintln!("{lost}"), // run again, or exit
//! }
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! # What there is
//!
//! - [`Elector`], made by [`Elector::builder`]: a candidate. [`run`](Elector::run) contends, leads, and says how it ended.
//! - [`Leadership`]: whether this process leads, for everybody else: [`is_leader`](Leadership::is_leader),
//!   [`wait_for_leadership`](Leadership::wait_for_leadership), the holder, the last error.
//! - [`Term`]: a stretch of leadership: [`is_valid`](Term::is_valid), a token for the work, its end as a future.
//! - [`Settings`] and their [rules](SettingsError); [`ElectionError`] and [`EndCause`].
//! - [`LeaseLock`]: the lock that is a Lease. [`Lock`] is the trait, [`FakeLock`](fake::FakeLock) one for tests,
//!   [`Record`] what a lock says.
//! - [`LeaderHealth`]: a health check. [`LeaderMetrics`] and [`LeaderEvents`]: who is told. [`unique_identity`]: a name.
//! - [`Election`]: the rules alone, without lock, task and clock, for other shells and for simulations.
//!
//! # Never two at a time
//!
//! | whose | rule |
//! |---|---|
//! | a candidate's | a lease is over when it was seen unchanged for as long as it says, by the candidate's own clock, from the moment at which the answer was there |
//! | a leader's | a term is over 10 s after the moment *before* the last renewal was sent, by the leader's own clock, whatever task hangs |
//! | the server's | a write names the version that it replaces |
//!
//! So the clocks of machines are never compared: they may differ by years, and be set while this runs. They may run at
//! different rates as long as one is not faster than another by the ratio of lease duration and renew deadline (1.5).
//! A process that stood still, or whose machine was suspended, finds its term over before anything else.
//!
//! What remains: between `is_valid()` and an act that follows it is time, in which a process can stand still. Where
//! that must not harm, send [`Term::transitions`] along and have the receiver refuse lower numbers. And a person who
//! deletes the lease, or writes it by force, makes a second leader for as long as the first one needs to see it, one
//! retry period.
//!
//! # What it is not
//!
//! - No watch: the lease is read each 2 to 4.4 s by a candidate, and when it is over; it is written each 2 s by a leader.
//!   So of a leader that is killed, the next one takes over after the lease duration, and at most 4.4 s for having seen the last
//!   renewal late.
//! - Candidates of a coordinated election announce themselves by objects (`LeaseCandidate`) that this crate does not
//!   write; [`Settings::coordinated`] is the rest.
//! - No other lock than a Lease: those of client-go's past are gone there too.
//!
//! # Costs and caveats
//!
//! - [`Elector::run`] is one future, and needs a tokio runtime with time. Leading work runs in one task more.
//! - One request at a time, given up after half of the renew deadline. Failures are tried again at the retry period.
//! - No lock is held across an await or while your code is called; a panic of it is caught and reported.
//! - Two processes of one identity both lead, until the first one that reads what the other wrote steps down.
//!
//! # Other than client-go's
//!
//! | here | there | why |
//! |---|---|---|
//! | a term counts from before its renewal was sent | a renewal may take up to the deadline each | others must not begin while this one acts |
//! | the lease is released only if it says what this process wrote | a local belief is enough | it could blank somebody else's |
//! | the work has ended before the lease is released | nobody waits for it | the next leader begins at once |
//! | stopped callback only for who led | always | a clean stop of a standby is no loss |
//! | a candidate looks at the lease when it is over | at its next try, up to 4.4 s later | nobody leads meanwhile |
//! | the lease is seen empty while leading: lost | written again | somebody wants another leader |
//! | a lease duration is written rounded up, and a second at least | cut; 0 is refused by the server | |
#![forbid(unsafe_code)]

mod cause;
mod election;
mod elector;
mod elector_builder;
pub mod fake;
mod identity;
mod leadership;
#[cfg(not(shuttle))]
mod lease_lock;
mod local_clock;
mod lock;
#[cfg(all(shuttle, test))]
mod models;
mod record;
mod run;
mod settings;
mod survive;
mod sync;
mod telling;
mod term;

pub use cause::EndCause;
pub use election::{Election, Notice, Outcome, Request, Step};
pub use elector::{ElectionError, Elector};
pub use elector_builder::ElectorBuilder;
pub use identity::unique_identity;
pub use leadership::{HealthError, LeaderHealth, Leadership};
#[cfg(not(shuttle))]
pub use lease_lock::LeaseLock;
pub use lock::{Lock, LockError, LockReference};
pub use record::{Record, Versioned};
pub use settings::{Settings, SettingsError};
pub use telling::{LeaderEvents, LeaderMetrics, names};
pub use term::Term;

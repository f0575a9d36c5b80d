//! What holds kubewire against client-go: the recorded traces and the frame that replays them.
//!
//! `traces/` holds scripts of operations with the answers that client-go gave to them (its README says what
//! they mean). This library loads them ([`load`]), replays them through one [`Area`] for each kind, and
//! reports ([`Runner`]). The areas themselves, which drive the crates of the workspace, are in
//! `tests/traces/`, so that this package builds without the crates it tests.
//!
//! ```text
//! cargo test -p kubewire-conformance --test traces -- --nocapture
//! KUBEWIRE_TRACES=some/folder cargo test -p kubewire-conformance --test traces
//! ```
//!
//! An area is a thing under test: built from a case's `config`, asked one operation after the other.
//!
//! ```
//! use kubewire_conformance::{Area, Case, Outcome, replay};
//!
//! /// Counts what was added.
//! #[derive(Default)]
//! struct Counter(u64);
//!
//! #[derive(Default, serde::Deserialize)]
//! #[serde(default, deny_unknown_fields)]
//! struct Config {}
//!
//! #[derive(Default, serde::Deserialize)]
//! #[serde(default, deny_unknown_fields)]
//! struct Input { by: u64 }
//!
//! #[derive(Debug, Default, PartialEq, serde::Deserialize, serde::Serialize)]
//! #[serde(default, deny_unknown_fields)]
//! struct Answer { sum: u64 }
//!
//! impl Area for Counter {
//!     type Config = Config;
//!     type Input = Input;
//!     type Answer = Answer;
//!
//!     fn build(_: Config, _: &[String]) -> Result<Self, String> {
//!         Ok(Self::default())
//!     }
//!
//!     fn step(&mut self, op: &str, input: Input) -> Result<Answer, String> {
//!         match op {
//!             "add" => { self.0 += input.by; Ok(Answer { sum: self.0 }) }
//!             _ => Err(format!("unknown operation {op:?}")),
//!         }
//!     }
//! }
//!
//! let case = Case::parse("counter-1.json", r#"{"area":"counter","name":"counter-1","config":{},"steps":[
//!     {"op":"add","by":2,"expect":{"sum":2}},
//!     {"op":"add","by":3,"expect":{"sum":5}}]}"#).unwrap();
//! assert!(matches!(replay::<Counter>(&case), Outcome::Passed));
//! ```
//!
//! Strictness: a field that an area does not know, in a script or in an answer, fails the case, and so do an
//! unknown operation, a panic anywhere on the case's thread, and a case that does not come to an end. Nothing
//! is skipped but cases that need `misuse`.

#![forbid(unsafe_code)]

mod area;
mod case;
mod notifications;
mod runner;
mod stage;
pub mod wire;

pub use area::{Area, Difference, Failure, Outcome, replay};
pub use case::{Case, Step, Unreadable, load};
pub use notifications::{Told, matches_told};
pub use runner::{Replay, Runner};
pub use stage::Stage;

//! Bugs on purpose. `mutants.toml` lists small bugs, one at a time plausible enough to be written by anybody; each
//! names the test of the project that catches it. The runner puts one bug at a time into a copy of the workspace and
//! shows that this test fails.
//!
//! ```text
//! cargo run -p kubewire-mutants                 # all of them, each by the test that it names
//! cargo run -p kubewire-mutants -- fifo         # those whose names hold this text
//! cargo run -p kubewire-mutants -- --find NAME  # all tests of the package: which ones catch it?
//! cargo run -p kubewire-mutants -- --table      # write MUTANTS.md anew from the list
//! ```
//!
//! It ends with 0 if every mutant was caught, 1 if one survived, does not apply, does not build or names a test that
//! does not exist. The working tree is only read: the copy lies in the target folder, with a target folder of its own,
//! so that the first run builds all dependencies again.
//!
//! - [`Mutant`]: an entry of the list. [`load`] reads it, [`Mutant::problems`] says what is wrong with one without
//!   building anything; the test of this package asks that for each, so that the list cannot rot.
//! - [`Scratch`]: the copy of the workspace, in which [`Scratch::trial`] tries a mutant; [`Verdict`] is what came of it,
//!   [`Catch`] which tests noticed it.
//! - [`table()`]: the list for people, which stands in [`TABLE`].
//!
//! A mutant costs a build of the crate's tests and their run: some seconds. One at a time, because all share one copy.

#![forbid(unsafe_code)]

mod mutant;
mod scratch;
mod table;
mod test_run;

pub use mutant::{Mutant, load};
pub use scratch::{Catch, Scratch, Verdict};
pub use table::{TABLE, table};

use std::path::PathBuf;

/// The root of the workspace.
pub fn root() -> PathBuf {
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    root.canonicalize().unwrap_or(root)
}

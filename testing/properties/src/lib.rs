//! What must hold for any input, however hostile: one property a module, as a function that panics where it does not.
//!
//! They are driven three ways, and written once:
//!
//! - `cargo test -p kubewire-properties`, on stable: random inputs of the right shape (proptest), the inputs that once
//!   broke something (`fuzz/regressions`), and those that reach far into the code (`fuzz/seeds`);
//! - `fuzz/run 180`, where a nightly compiler and cargo-fuzz are there: inputs that follow the coverage;
//! - by hand, with an input from a report: [`Property::run`].
//!
//! ```
//! kubewire_properties::keys::check(("default/web", "default", "web"));
//! let keys = kubewire_properties::ALL.iter().find(|property| property.name == "keys").expect("it is there");
//! keys.run(b"any bytes stand for an input");
//! ```
//!
//! It is no fuzzer, and no public crate: it reaches the inside of listwatch by a feature that promises nothing.

#![forbid(unsafe_code)]

pub mod answers;
pub mod delta_fifo;
pub mod keys;
pub mod list_splitter;
pub mod paths;
mod pieces;
pub mod protobuf;
pub mod query;
pub mod selectors;
pub mod states;
pub mod store;
pub mod watch_lines;
pub mod zipped;

use arbitrary::{Arbitrary, Unstructured};

pub use pieces::pieces;

/// A property by its name.
pub struct Property {
    /// That of its module, its fuzz target and the folders of its inputs.
    pub name: &'static str,
    run: fn(&[u8]),
}

impl Property {
    /// Checks it for the input that the bytes stand for, as the fuzzer does; nothing where they are too few.
    ///
    /// # Panics
    ///
    /// Where it does not hold.
    pub fn run(&self, bytes: &[u8]) {
        (self.run)(bytes);
    }
}

/// Checks a property for what the bytes stand for.
fn run<'a, I: Arbitrary<'a>>(bytes: &'a [u8], check: impl FnOnce(I)) {
    if bytes.len() < I::size_hint(0).0 {
        return;
    }
    if let Ok(input) = I::arbitrary_take_rest(Unstructured::new(bytes)) {
        check(input);
    }
}

/// All of them.
pub const ALL: [Property; 12] = [
    Property { name: "answers", run: |bytes| run(bytes, answers::check) },
    Property { name: "delta_fifo", run: |bytes| run(bytes, delta_fifo::check) },
    Property { name: "keys", run: |bytes| run(bytes, keys::check) },
    Property { name: "list_splitter", run: |bytes| run(bytes, list_splitter::check) },
    Property { name: "paths", run: |bytes| run(bytes, paths::check) },
    Property { name: "protobuf", run: |bytes| run(bytes, protobuf::check) },
    Property { name: "query", run: |bytes| run(bytes, query::check) },
    Property { name: "selectors", run: |bytes| run(bytes, selectors::check) },
    Property { name: "states", run: |bytes| run(bytes, states::check) },
    Property { name: "store", run: |bytes| run(bytes, store::check) },
    Property { name: "watch_lines", run: |bytes| run(bytes, watch_lines::check) },
    Property { name: "zipped", run: |bytes| run(bytes, zipped::check) },
];

/// Checks the property of this name; for fuzz targets.
///
/// # Panics
///
/// Where it does not hold, or there is none of this name.
pub fn run_named(name: &str, bytes: &[u8]) {
    ALL.iter().find(|property| property.name == name).expect("a property of this name").run(bytes);
}

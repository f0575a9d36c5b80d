//! Tables of behaviour: which test shows each entry, or why none does.
//!
//! Each crate's authors keep a file in the list's folder, one line an entry and test:
//!
//! ```text
//! NUMBER | crate/path.rs::test_name
//! NUMBER | - | reason
//! FIRST-LAST | - | reason
//! ```
//!
//! The tables are made from them: `UPDATE=1 cargo test -p kubewire-conformance --test scenarios`.

mod client_go;
mod controller;
mod list;

//! The embedded API server as a program.
fn main() {}

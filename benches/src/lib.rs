//! Benchmarks stand beside this file; this library is empty.
#![forbid(unsafe_code)]

//! Benchmarks stand beside this file; this library is empty.

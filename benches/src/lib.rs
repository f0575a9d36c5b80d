//! What the benchmarks share: the pods that they run on.
//!
//! The criterion benchmarks of parts stand beside this folder (`cargo bench -p kubewire-benches`); the comparison with
//! client-go and kube is the binary `compare` ([`bin/compare`]). `benches/README.md` tells how to run both.
//!
//! [`bin/compare`]: https://github.com/kubewire/kubewire/tree/main/benches/src/bin/compare
#![forbid(unsafe_code)]

mod field_set;
mod go_random;
pub mod pods;

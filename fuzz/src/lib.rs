//! Counts what the targets were fed, and tells it when the fuzzer ends: libFuzzer counts runs, not bytes.

use std::cell::RefCell;

struct Fed {
    target: &'static str,
    runs: u64,
    bytes: u64,
}

impl Drop for Fed {
    fn drop(&mut self) {
        eprintln!("{}: {} runs, {} bytes", self.target, self.runs, self.bytes);
    }
}

thread_local! {
    static FED: RefCell<Fed> = const { RefCell::new(Fed { target: "", runs: 0, bytes: 0 }) };
}

/// Runs the target of this name on one input.
pub fn feed(target: &'static str, input: &[u8]) {
    FED.with_borrow_mut(|fed| {
        fed.target = target;
        fed.runs += 1;
        fed.bytes += input.len() as u64;
    });
    kubewire_properties::run_named(target, input);
}

//! See `kubewire_properties::watch_lines`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kubewire_properties::run_named("watch_lines", bytes));

//! See `kubewire_properties::watch_lines`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kubewire_fuzz::feed("watch_lines", bytes));

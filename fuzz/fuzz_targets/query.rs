//! See `kubewire_properties::query`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kubewire_fuzz::feed("query", bytes));

//! See `kubewire_properties::selectors`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kubewire_fuzz::feed("selectors", bytes));

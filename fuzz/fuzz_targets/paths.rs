//! See `kubewire_properties::paths`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kubewire_fuzz::feed("paths", bytes));

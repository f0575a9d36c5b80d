//! See `kubewire_properties::keys`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kubewire_fuzz::feed("keys", bytes));

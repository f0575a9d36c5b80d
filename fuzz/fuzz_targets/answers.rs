//! See `kubewire_properties::answers`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kubewire_fuzz::feed("answers", bytes));

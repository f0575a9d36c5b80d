//! See `kubewire_properties::zipped`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kubewire_properties::run_named("zipped", bytes));

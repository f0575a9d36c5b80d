//! See `kubewire_properties::list_splitter`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kubewire_properties::run_named("list_splitter", bytes));

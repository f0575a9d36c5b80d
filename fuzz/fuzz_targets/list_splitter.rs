//! See `kubewire_properties::list_splitter`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kubewire_fuzz::feed("list_splitter", bytes));

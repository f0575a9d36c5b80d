//! See `kubewire_properties::protobuf`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kubewire_properties::run_named("protobuf", bytes));

//! See `kubewire_properties::delta_fifo`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| kubewire_fuzz::feed("delta_fifo", bytes));

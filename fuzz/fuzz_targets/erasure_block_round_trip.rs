#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sutura_erasure::block::fuzz::block_round_trip(data));

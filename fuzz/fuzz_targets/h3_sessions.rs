#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sutura_h3::fuzz::sessions(data));

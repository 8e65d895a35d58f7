#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sutura_proto::fuzz::admission(data));

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sutura_tunnel::fuzz::text(data));

#![no_main]

use sutura_erasure::{fuzz, kernel::Kernel};

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzz::round_trip(data, Kernel::best()));

#![no_main]

use sutura_link::LinkConfig;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let _ = str::from_utf8(data).map(|text| text.parse::<LinkConfig>());
});

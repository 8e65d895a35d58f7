//! The fuzz targets of what programs and the ends of a tunnel say, on seeded inputs.

use sutura_random::fuzz::run;
use sutura_tunnel::fuzz::{masque, socks};

const ITERATIONS: u64 = 20_000;

#[test]
fn fuzz_smoke_socks() {
    let seeds: [&[u8]; 4] = [
        b"\x00\x05\x01\x00\x05\x01\x00\x03\x0bexample.org\x01\xbb",
        b"\x07\x05\x02\x00\x02\x05\x03\x00\x01\0\0\0\0\0\0",
        b"\x01\0\0\0\x01\x7f\0\0\x01\x00\x35payload",
        b"\x01\0\0\0\x03\x01a\x00\x35payload",
    ];
    run(ITERATIONS, &seeds, socks);
}

#[test]
fn fuzz_smoke_masque() {
    let seeds: [&[u8]; 6] = [
        b"sutura;error=connection_refused;details=\"a\"",
        b":BwcHBwcHBwcHBwcHBwcHBw==:",
        b"token=:BwcHBwcHBwcHBwcHBwcHBw==:, taken=12345678901",
        b"12345",
        b"\x04\x40\x80\x08\xc0\0\0\0\0\0\0\x01",
        b"\0payload",
    ];
    run(ITERATIONS, &seeds, masque);
}

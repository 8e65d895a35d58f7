//! The test vectors that `docs/extension.md` publishes, against the code.
#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

use sutura_erasure::block::ReedSolomon;
use sutura_erasure::{
    Combination, Decoder, DecoderLimits, Encoder, WindowLimits, coefficient, gf256,
};

const VECTORS: &str = include_str!("vectors.txt");

/// The fields of every line that starts with `kind`.
fn lines(kind: &str) -> impl Iterator<Item = Vec<&str>> {
    let fields = VECTORS.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    fields.filter(move |fields| fields.first() == Some(&kind)).map(|fields| fields[1..].to_vec())
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2);
    digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn byte(hex: &str) -> u8 {
    bytes(hex)[0]
}

/// The published window.
fn encoder() -> Encoder {
    let mut encoder = Encoder::new(WindowLimits::default());
    for line in lines("source") {
        let id = encoder.push(&bytes(line[1])).unwrap();
        assert_eq!(id.to_string(), line[0]);
    }
    encoder
}

#[test]
fn products() {
    assert!(lines("product").count() >= 5);
    for line in lines("product") {
        assert_eq!(gf256::mul(byte(line[0]), byte(line[1])), byte(line[2]), "{line:?}");
    }
}

#[test]
fn coefficients() {
    assert!(lines("coefficient").count() >= 8);
    for line in lines("coefficient") {
        let (key, id) = (line[0].parse().unwrap(), line[1].parse().unwrap());
        assert_eq!(coefficient(key, id), byte(line[2]), "{line:?}");
    }
}

#[test]
fn repair_symbols() {
    let encoder = encoder();
    assert!(lines("repair").count() >= 4);
    for line in lines("repair") {
        let first: u64 = line[0].parse().unwrap();
        let count: u64 = line[1].parse().unwrap();
        let mut payload = Vec::new();
        let key = line[2].parse().unwrap();
        encoder.repair(first..first + count, key, &mut payload).unwrap();
        assert_eq!(payload, bytes(line[3]), "{line:?}");
    }
}

/// The coefficients of a parity symbol over the block that starts with `first`.
fn parity(first: u64, index: usize) -> impl Combination {
    move |id: u64| ReedSolomon::coefficient(index, (id - first) as usize)
}

#[test]
fn parity_symbols() {
    let encoder = encoder();
    assert!(lines("parity").count() >= 4);
    for line in lines("parity") {
        let first: u64 = line[0].parse().unwrap();
        let count: u64 = line[1].parse().unwrap();
        let index = line[2].parse().unwrap();
        let mut payload = Vec::new();
        encoder.repair_with(first..first + count, parity(first, index), &mut payload).unwrap();
        assert_eq!(payload, bytes(line[3]), "{line:?}");
    }
}

#[test]
fn the_published_parity_symbols_mend_the_published_window() {
    let encoder = encoder();
    let mut decoder = Decoder::new(DecoderLimits::default());
    decoder.source(3, encoder.symbol(3).unwrap()).unwrap();
    for line in lines("parity") {
        let first: u64 = line[0].parse().unwrap();
        let count: u64 = line[1].parse().unwrap();
        let combination = parity(first, line[2].parse().unwrap());
        decoder.repair_with(first..first + count, combination, &bytes(line[3])).unwrap();
    }
    assert_eq!((decoder.missing().len(), decoder.repairs()), (0, 0));
    for id in encoder.window() {
        assert_eq!(decoder.symbol(id), encoder.symbol(id));
    }
}

#[test]
fn the_published_repair_symbols_recover_the_published_window() {
    let encoder = encoder();
    let mut decoder = Decoder::new(DecoderLimits::default());
    for line in lines("repair") {
        let first: u64 = line[0].parse().unwrap();
        let count: u64 = line[1].parse().unwrap();
        let key = line[2].parse().unwrap();
        decoder.repair(first..first + count, key, &bytes(line[3])).unwrap();
    }
    assert_eq!((decoder.missing().len(), decoder.repairs()), (0, 0));
    for id in encoder.window() {
        assert_eq!(decoder.symbol(id), encoder.symbol(id));
    }
}

#[test]
fn the_specification_quotes_the_vectors() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/extension.md");
    let specification = std::fs::read_to_string(path).unwrap();
    assert!(specification.contains(VECTORS), "{path} does not quote vectors.txt as it is");
}

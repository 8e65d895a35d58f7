//! Checks the code against the test vectors of `docs/extension.md`.
#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

use std::ops::Range;

use sutura_erasure::block::{
    BlockCode, LdpcStaircase, ParkMiller, RandomLinear, ReedSolomon, Xor2d,
};
use sutura_erasure::{
    Combination, Decoder, DecoderLimits, Encoder, WindowLimits, coefficient, gf256,
};

/// The vectors of the window code and of the block codes.
const VECTORS: [&str; 2] = [include_str!("vectors.txt"), include_str!("block_vectors.txt")];

/// The fields of every line that starts with `kind`; at least `count` of them.
fn lines(kind: &str, count: usize) -> Vec<Vec<&'static str>> {
    let lines = VECTORS.into_iter().flat_map(str::lines);
    let fields = lines.map(|line| line.split_whitespace().collect::<Vec<_>>());
    let of_kind = fields.filter(|fields| fields.first() == Some(&kind));
    let lines: Vec<Vec<&str>> = of_kind.map(|fields| fields[1..].to_vec()).collect();
    assert!(lines.len() >= count, "{} lines of {kind}", lines.len());
    lines
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks(2);
    digits.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// The numbers before the last field, and the bytes of the last field.
fn symbol(line: &[&str]) -> (Vec<usize>, Vec<u8>) {
    let (last, numbers) = line.split_last().unwrap();
    (numbers.iter().map(|field| field.parse().unwrap()).collect(), bytes(last))
}

#[test]
fn products() {
    for line in lines("product", 5) {
        let [a, b, product] = [0, 1, 2].map(|field| bytes(line[field])[0]);
        assert_eq!(gf256::mul(a, b), product, "{line:?}");
    }
}

#[test]
fn coefficients() {
    for line in lines("coefficient", 8) {
        let (numbers, expected) = symbol(&line);
        assert_eq!([coefficient(numbers[0] as u32, numbers[1] as u64)], *expected, "{line:?}");
    }
}

/// The published window.
fn encoder() -> Encoder {
    let mut encoder = Encoder::new(WindowLimits::default());
    for line in lines("source", 1) {
        let (id, bytes) = symbol(&line);
        assert_eq!(encoder.push(&bytes), Ok(id[0] as u64));
    }
    encoder
}

/// Span, key or index, and bytes of each repair symbol of a kind.
fn window_repairs(kind: &str) -> impl Iterator<Item = (Range<u64>, usize, Vec<u8>)> {
    lines(kind, 4).into_iter().map(|line| {
        let (numbers, payload) = symbol(&line);
        let [first, count, number] = numbers[..] else { unreachable!("there are three") };
        (first as u64..(first + count) as u64, number, payload)
    })
}

fn assert_recovered(encoder: &Encoder, decoder: &Decoder) {
    assert_eq!((decoder.missing().len(), decoder.repairs()), (0, 0));
    for id in encoder.window() {
        assert_eq!(decoder.symbol(id), encoder.symbol(id));
    }
}

#[test]
fn repair_symbols_of_the_window_code_recover_the_window() {
    let encoder = encoder();
    let mut decoder = Decoder::new(DecoderLimits::default());
    for (span, key, expected) in window_repairs("repair") {
        let mut payload = Vec::new();
        encoder.repair(span.clone(), key as u32, &mut payload).unwrap();
        assert_eq!(payload, expected, "{span:?}, {key}");
        decoder.repair(span, key as u32, &payload).unwrap();
    }
    assert_recovered(&encoder, &decoder);
}

#[test]
fn parity_symbols_mend_the_window() {
    /// The coefficients of a parity symbol over the block that starts with `first`.
    fn parity(first: u64, index: usize) -> impl Combination {
        move |id: u64| ReedSolomon::coefficient(index, (id - first) as usize)
    }
    let encoder = encoder();
    let mut decoder = Decoder::new(DecoderLimits::default());
    decoder.source(3, encoder.symbol(3).unwrap()).unwrap();
    for (span, index, expected) in window_repairs("parity") {
        let mut payload = Vec::new();
        encoder.repair_with(span.clone(), parity(span.start, index), &mut payload).unwrap();
        assert_eq!(payload, expected, "{span:?}, {index}");
        decoder.repair_with(span.clone(), parity(span.start, index), &payload).unwrap();
    }
    assert_recovered(&encoder, &decoder);
}

/// The published block.
fn sources() -> Vec<Vec<u8>> {
    let symbols = lines("block-source", 6).into_iter().enumerate().map(|(j, line)| {
        let (number, symbol) = symbol(&line);
        assert_eq!(number, [j]);
        symbol
    });
    symbols.collect()
}

fn repair(code: &dyn BlockCode, sources: &[Vec<u8>], index: usize) -> Vec<u8> {
    let sources: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
    let mut repairs = vec![vec![0xAA; sources[0].len()]; code.repairs()];
    let mut slices: Vec<&mut [u8]> = repairs.iter_mut().map(Vec::as_mut_slice).collect();
    code.encode(&sources, &mut slices).unwrap();
    repairs.swap_remove(index)
}

#[test]
fn pseudorandom_numbers() {
    for line in lines("park-miller", 4) {
        let numbers: Vec<u32> = line.iter().map(|field| field.parse().unwrap()).collect();
        let mut prng = ParkMiller::new(numbers[0]).unwrap();
        for (at, number) in numbers[2..].iter().enumerate() {
            assert_eq!(prng.below(numbers[1]), *number, "number {at} of {line:?}");
        }
        assert_eq!(numbers.len(), 10);
    }
}

#[test]
fn rows_of_parity_check_matrices() {
    for line in lines("ldpc-row", 12) {
        let numbers: Vec<u16> = line.iter().map(|field| field.parse().unwrap()).collect();
        let (parameters, expected) = numbers.split_at(5);
        let [k, m, degree, seed, row] = parameters else { unreachable!("there are five") };
        let (k, m, degree) = (usize::from(*k), usize::from(*m), usize::from(*degree));
        let code = LdpcStaircase::new(k, m, degree, u32::from(*seed)).unwrap();
        assert_eq!(code.row(usize::from(*row)), expected, "{line:?}");
    }
}

#[test]
fn reed_solomon_coefficients() {
    for line in lines("reed-solomon-coefficient", 9) {
        let (numbers, coefficient) = symbol(&line);
        let [i, j] = numbers[..] else { unreachable!("there are two") };
        // The coefficient is the product of a one among zeros.
        let mut sources = vec![vec![0]; j + 1];
        sources[j] = vec![1];
        let code = ReedSolomon::new(j + 1, i + 1).unwrap();
        assert_eq!(repair(&code, &sources, i), coefficient, "{line:?}");
    }
}

#[test]
fn repair_symbols_of_block_codes() {
    let sources = sources();
    let k = sources.len();
    for line in lines("reed-solomon", 4) {
        let (numbers, expected) = symbol(&line);
        // No repair symbol depends on the number of repair symbols.
        for m in [numbers[0] + 1, 250] {
            let code = ReedSolomon::new(k, m).unwrap();
            assert_eq!(repair(&code, &sources, numbers[0]), expected, "{line:?}");
        }
    }
    for line in lines("random-linear", 4) {
        let (numbers, expected) = symbol(&line);
        let code = RandomLinear::new(k, 2, u32::try_from(numbers[0]).unwrap()).unwrap();
        assert_eq!(repair(&code, &sources, numbers[1]), expected, "{line:?}");
    }
    for line in lines("ldpc-staircase", 9) {
        let (numbers, expected) = symbol(&line);
        let [m, degree, seed, i] = numbers[..] else { unreachable!("there are four") };
        let code = LdpcStaircase::new(k, m, degree, u32::try_from(seed).unwrap()).unwrap();
        assert_eq!(repair(&code, &sources, i), expected, "{line:?}");
    }
    for line in lines("xor-2d", 11) {
        let (numbers, expected) = symbol(&line);
        let code = Xor2d::new(k, numbers[0]).unwrap();
        assert_eq!(repair(&code, &sources, numbers[1]), expected, "{line:?}");
    }
}

#[test]
fn the_specification_quotes_the_vectors() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/extension.md");
    let specification = std::fs::read_to_string(path).unwrap();
    for vectors in VECTORS {
        assert!(specification.contains(vectors), "{path} does not quote this:\n{vectors}");
    }
}

//! Protects a file as one block with each of the block codes, over a network that loses packets.
//!
//! Prints the cost of each code and how much it recovers. Run it with
//! `cargo run --release -p sutura-erasure --example block`.

use std::{
    error::Error,
    time::{Duration, Instant},
};

use sutura_erasure::block::{BlockCode, Decoded, LdpcStaircase, RandomLinear, ReedSolomon, Xor2d};

/// Bytes of the file.
const FILE: usize = 240_000;

/// Bytes of a symbol.
const SYMBOL: usize = 1200;

/// Source symbols of the block.
const SOURCES: usize = FILE / SYMBOL;

/// Packet loss in percent.
const LOSS: u64 = 6;

/// Blocks sent with each code.
const BLOCKS: u64 = 200;

fn main() -> Result<(), Box<dyn Error>> {
    let codes: [(&str, Box<dyn BlockCode>); 4] = [
        ("Reed-Solomon", Box::new(ReedSolomon::new(SOURCES, 25)?)),
        ("random linear", Box::new(RandomLinear::new(SOURCES, 25, 0)?)),
        ("LDPC-Staircase", Box::new(LdpcStaircase::new(SOURCES, 25, 5, 1)?)),
        ("2D parity", Box::new(Xor2d::new(SOURCES, 14)?)),
    ];
    println!("{SOURCES} source symbols of {SYMBOL} bytes, {LOSS} % of the packets lost\n");
    println!("code             repair  encoding  decoding    lost  recovered  whole blocks");
    for (name, code) in codes {
        let mut report = Report::default();
        for block in 0..BLOCKS {
            report.send(code.as_ref(), block)?;
        }
        println!(
            "{name:14} {:8} {:6} us {:6} us {:7} {:10} {:9} of {BLOCKS}",
            code.repairs(),
            report.encoding.as_micros() / u128::from(BLOCKS),
            report.decoding.as_micros() / u128::from(BLOCKS),
            report.lost,
            report.recovered,
            report.whole,
        );
    }
    Ok(())
}

#[derive(Default)]
struct Report {
    encoding: Duration,
    decoding: Duration,
    lost: usize,
    recovered: usize,
    whole: u64,
}

impl Report {
    /// Sends the file once.
    fn send(&mut self, code: &dyn BlockCode, block: u64) -> Result<(), Box<dyn Error>> {
        let file: Vec<u8> =
            (0..FILE).map(|at| (at as u64 * 31 + block + at as u64 / 7) as u8).collect();

        // The sender makes repair symbols of the file's parts in place.
        let sources: Vec<&[u8]> = file.chunks(SYMBOL).collect();
        let mut repair_bytes = vec![0; code.repairs() * SYMBOL];
        let mut repairs: Vec<&mut [u8]> = repair_bytes.chunks_mut(SYMBOL).collect();
        let start = Instant::now();
        code.encode(&sources, &mut repairs)?;
        self.encoding += start.elapsed();

        // The network, and the receiver: what arrives is put into its place.
        let mut network = Network { state: block };
        let mut received = vec![0; file.len() + repair_bytes.len()];
        let mut present = Vec::new();
        let sent = file.chunks(SYMBOL).chain(repair_bytes.chunks(SYMBOL));
        for (place, symbol) in received.chunks_mut(SYMBOL).zip(sent) {
            present.push(network.delivers());
            if present.last() == Some(&true) {
                place.copy_from_slice(symbol);
            }
        }
        let mut symbols: Vec<&mut [u8]> = received.chunks_mut(SYMBOL).collect();
        let start = Instant::now();
        let decoded: Decoded = code.decode(&mut symbols, &mut present)?;
        self.decoding += start.elapsed();

        self.lost += decoded.recovered + decoded.missing;
        self.recovered += decoded.recovered;
        if decoded.is_complete() {
            assert!(received[..FILE] == file);
            self.whole += 1;
        }
        Ok(())
    }
}

struct Network {
    state: u64,
}

impl Network {
    fn delivers(&mut self) -> bool {
        // The upper bits of a linear congruential generator.
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
        (self.state >> 33) % 100 >= LOSS
    }
}

//! A stream of packets over a network that loses some of them, partly in bursts.
//!
//! Prints the cost of protection and how much it recovers. Run it with
//! `cargo run -p sutura-erasure --example window`.

use std::error::Error;

use sutura_erasure::{Decoder, DecoderLimits, Encoder, WindowLimits};

/// Packets of the stream.
const PACKETS: u64 = 10_000;

/// Most source symbols that a repair symbol covers.
const WINDOW: usize = 60;

/// Source symbols per repair symbol.
const INTERVAL: u64 = 12;

fn main() -> Result<(), Box<dyn Error>> {
    let mut encoder = Encoder::new(WindowLimits { symbols: WINDOW, ..WindowLimits::default() });
    let mut decoder =
        Decoder::new(DecoderLimits { symbols: 2 * WINDOW, ..DecoderLimits::default() });
    let mut network = Network { state: 2026 };
    let mut repair = Vec::new();
    let (mut lost, mut recovered, mut repairs, mut waited) = (0, 0, 0, 0);

    for id in 0..PACKETS {
        // The sender protects the last `WINDOW` packets. A real one would also release packets that
        // the receiver has acknowledged.
        encoder.release_below((id + 1).saturating_sub(WINDOW as u64));
        let packet = packet(id);
        encoder.push(&packet)?;
        if network.delivers() {
            decoder.source(id, &packet)?;
        } else {
            lost += 1;
        }

        if id % INTERVAL == INTERVAL - 1 {
            repair.clear();
            encoder.repair(encoder.window(), repairs, &mut repair)?;
            if network.delivers() {
                decoder.repair(encoder.window(), repairs, &repair)?;
            }
            repairs += 1;
        }

        while let Some(found) = decoder.pop_recovered() {
            assert_eq!(decoder.symbol(found), Some(&self::packet(found)[..]));
            recovered += 1;
            waited += id - found;
        }
    }

    println!("{PACKETS} packets sent, {lost} lost, and {repairs} repair symbols");
    println!("{recovered} packets recovered, after {} more on average", waited / recovered.max(1));
    println!("{} packets given up", decoder.given_up());
    println!("{} bytes of buffers in the decoder", decoder.allocated());
    Ok(())
}

/// Packets of various lengths.
fn packet(id: u64) -> Vec<u8> {
    (0..400 + id * 97 % 1000).map(|at| (id + at) as u8).collect()
}

/// Loses two packets in a hundred, and after each loss the next packet with a probability of one
/// third.
struct Network {
    state: u64,
}

impl Network {
    fn delivers(&mut self) -> bool {
        let lost_before = self.state & 1 == 1;
        // A linear congruential generator's upper bits decide; the last bit remembers.
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
        let percent = (self.state >> 33) % 100;
        let lost = percent < if lost_before { 33 } else { 2 };
        self.state = (self.state & !1) | u64::from(lost);
        !lost
    }
}

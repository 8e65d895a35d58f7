//! Damage to the bytes of a packet.

use sutura_random::Rng;

/// Flips one to three bits at positions derived from the seed in a [`Delivery`](crate::Delivery).
/// The bits are distinct, so that a non-empty packet always changes.
pub fn corrupt(seed: u64, packet: &mut [u8]) {
    let bits = packet.len().saturating_mul(8) as u64;
    if bits == 0 {
        return;
    }
    let mut rng = Rng::new(seed);
    let mut flipped = [None; 3];
    let count = 1 + rng.below(3) as usize;
    for i in 0..count {
        // Even one byte has eight bits to choose from, so an unused one is soon found.
        let bit = loop {
            let bit = rng.below(bits);
            if !flipped.contains(&Some(bit)) {
                break bit;
            }
        };
        flipped[i] = Some(bit);
        packet[(bit / 8) as usize] ^= 1 << (bit % 8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_to_three_bits_are_flipped() {
        for length in [1usize, 2, 1200] {
            let mut seen = [0u32; 4];
            for seed in 0..2000 {
                let mut packet = vec![0xa5; length];
                corrupt(seed, &mut packet);
                let flipped: u32 = packet.iter().map(|byte| (byte ^ 0xa5).count_ones()).sum();
                seen[flipped as usize] += 1;
            }
            assert_eq!(seen[0], 0);
            assert!(seen[1..].iter().all(|&count| count > 500), "{seen:?}");
        }
    }

    #[test]
    fn the_same_seed_flips_the_same_bits_and_all_bits_are_hit() {
        let damaged = |seed| {
            let mut packet = [0u8; 16];
            corrupt(seed, &mut packet);
            packet
        };
        assert_eq!(damaged(9), damaged(9));
        let mut union = [0u8; 16];
        for seed in 0..2000 {
            for (all, byte) in union.iter_mut().zip(damaged(seed)) {
                *all |= byte;
            }
        }
        assert_eq!(union, [0xff; 16]);
    }

    #[test]
    fn an_empty_packet_stays_empty() {
        corrupt(1, &mut []);
    }
}

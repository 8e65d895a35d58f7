//! The probability of a bit from what followed in several contexts.
//!
//! Each context has a probability of its own; which of them are to be believed is learnt, too, as in the PAQ
//! archivers (Mahoney 2005, "Adaptive weighing of context models for lossless data compression"): their
//! logits are added with weights, and after each bit the weights move to where the sum would have been better.

use super::numbers::Adaptive;
use super::range::Coder;
use std::sync::LazyLock;

/// The contexts of a bit.
pub const ORDERS: usize = 4;
/// Slots for the contexts of one order.
const SLOTS: usize = 1 << 12;
/// 1 as a weight.
const ONE: i32 = 1 << 16;
/// How fast weights move, as a power of two; more is slower.
const SLOWNESS: u32 = 9;

/// Hashes of the contexts of a bit.
pub type Contexts = [u32; ORDERS];

/// A probability for each context.
#[derive(Debug)]
pub struct Table {
    slots: Vec<Adaptive>,
}

impl Table {
    pub fn new() -> Self {
        Self { slots: vec![Adaptive::EVEN; ORDERS * SLOTS] }
    }

    fn places(contexts: &Contexts) -> [usize; ORDERS] {
        let mut places = [0; ORDERS];
        for (order, (place, context)) in places.iter_mut().zip(contexts).enumerate() {
            let hash = context.wrapping_mul(0x9e37_79b1) >> (32 - SLOTS.ilog2());
            *place = order * SLOTS + hash as usize;
        }
        places
    }
}

/// How far each order is believed.
#[derive(Debug, Clone, Copy)]
pub struct Mixer {
    weights: [i32; ORDERS],
}

impl Default for Mixer {
    fn default() -> Self {
        Self { weights: [ONE * 2 / 5; ORDERS] }
    }
}

impl Mixer {
    /// Codes a bit in its contexts.
    pub fn code(
        &mut self,
        table: &mut Table,
        coder: &mut impl Coder,
        contexts: &Contexts,
        bit: bool,
    ) -> bool {
        let places = Table::places(contexts);
        let logits = places.map(|place| logit(table.slots[place].one()));
        let sum: i64 =
            logits.iter().zip(&self.weights).map(|(&l, &w)| i64::from(l) * i64::from(w)).sum();
        let one = share((sum >> 16).clamp(-2047, 2047) as i32);
        let bit = coder.bit(bit, (one << 4) as u16);
        let error = (i32::from(bit) << 12) - one;
        for (weight, logit) in self.weights.iter_mut().zip(logits) {
            *weight = (*weight + ((logit * error) >> SLOWNESS)).clamp(-8 * ONE, 8 * ONE);
        }
        for place in places {
            table.slots[place].follow(bit);
        }
        bit
    }
}

/// Points of the logistic curve, 128 apart, as shares of 4096.
const CURVE: [i32; 33] = [
    1, 2, 3, 6, 10, 16, 27, 45, 73, 120, 194, 310, 488, 747, 1101, 1546, 2047, 2549, 2994, 3348,
    3607, 3785, 3901, 3975, 4022, 4050, 4068, 4079, 4085, 4089, 4092, 4093, 4094,
];

/// The share of 4096 that has this logit, which is in parts of 256 from -2047 to 2047.
fn share(logit: i32) -> i32 {
    let (place, part) = ((logit >> 7) + 16, logit & 127);
    let at = |place: i32| CURVE.get(place as usize).copied().unwrap_or(4094);
    (at(place) * (128 - part) + at(place + 1) * part + 64) >> 7
}

/// The smallest logits of which the share is at least the index.
static LOGITS: LazyLock<Vec<i32>> = LazyLock::new(|| {
    let mut logit = -2047;
    let reach = |least: i32| {
        while logit < 2047 && share(logit) < least {
            logit += 1;
        }
        logit
    };
    (0..4096).map(reach).collect()
});

fn logit(one: u16) -> i32 {
    LOGITS.get(usize::from(one >> 4)).copied().unwrap_or(2047)
}

#[cfg(test)]
mod tests {
    use super::super::range::{RangeDecoder, RangeEncoder};
    use super::*;

    #[test]
    fn logits_are_the_inverse_of_shares() {
        for logit in -2047..=2047 {
            let (one, next) = (share(logit), share((logit + 1).min(2047)));
            assert!((1..4096).contains(&one) && one <= next, "{logit}");
        }
        for (one, &logit) in LOGITS.iter().enumerate().take(4095).skip(1) {
            assert!(
                share(logit) >= one as i32 && (logit == -2047 || share(logit - 1) < one as i32)
            );
        }
    }

    /// A bit that follows from one of its contexts is learnt, however little the others say.
    #[test]
    fn the_context_that_tells_is_believed() {
        let bits: Vec<(bool, Contexts)> = (0..2000_u32)
            .map(|number| {
                let noise = number.wrapping_mul(0x9e37_79b1) >> 20;
                let told = noise % 7;
                (told < 3, [0, noise, told, number])
            })
            .collect();
        let (mut coder, mut table, mut mixer) =
            (RangeEncoder::new(), Table::new(), Mixer::default());
        for (bit, contexts) in &bits {
            mixer.code(&mut table, &mut coder, contexts, *bit);
        }
        let bytes = coder.finish();
        assert!(bytes.len() < 40, "{} bytes for 2000 bits", bytes.len());
        let (mut coder, mut table, mut mixer) =
            (RangeDecoder::new(&bytes), Table::new(), Mixer::default());
        for (bit, contexts) in &bits {
            assert_eq!(mixer.code(&mut table, &mut coder, contexts, !bit), *bit);
        }
    }
}

//! A decoder in use: one window of symbols after the other goes through it.
//!
//! A new decoder would allocate every row; a decoder in use already has its rows.

use super::Losses;
use crate::{Error, cases::encode::encoder::window_limits, measure::Decoded};
use std::{ops::Range, time::Duration};
use sutura_erasure::{Decoder, DecoderLimits, Encoder};

/// A repair symbol: its key, and its bytes.
pub type Repair = (u32, Vec<u8>);

/// About one window in 250 is unsolvable. This many windows in a row are practically never unsolvable.
const ATTEMPTS: usize = 8;

pub struct Stream<'a> {
    job: &'a Losses<'a>,
    encoder: Encoder,
    pub decoder: Decoder,
    repairs: Vec<Repair>,
}

impl<'a> Stream<'a> {
    pub fn new(job: &'a Losses<'a>) -> Self {
        let limits = window_limits(job.n);
        let decoder = Decoder::new(DecoderLimits {
            symbols: limits.symbols,
            bytes: limits.bytes,
            symbol_size: limits.symbol_size,
            repairs: job.missing.len(),
        });
        let repairs = (0..).zip(job.missing.iter().map(|_| Vec::new())).collect();
        Self { job, encoder: Encoder::new(limits), decoder, repairs }
    }

    /// Sends the next window: all sources except the lost ones. Then `give` passes on the repair symbols over
    /// the window, and its time counts.
    pub fn next(
        &mut self,
        give: impl Fn(&mut Decoder, Range<u64>, &[Repair]) -> Result<Duration, Error>,
    ) -> Result<Decoded, Error> {
        for _ in 0..ATTEMPTS {
            let span = self.prepare()?;
            let clock = self.job.clock;
            let (total, last) = clock.time(|| give(&mut self.decoder, span.clone(), &self.repairs));
            if self.decoder.missing().len() == 0 {
                self.check(span.start)?;
                return Ok(Decoded { total, last: last? });
            }
        }
        Err("not recovered".into())
    }

    fn prepare(&mut self) -> Result<Range<u64>, Error> {
        let Self { job, encoder, decoder, repairs } = self;
        encoder.release_below(u64::MAX);
        let first = encoder.next_id();
        decoder.release_below(first);
        for index in 0..job.n {
            encoder.push(job.sources.symbol(index))?;
        }
        let span = encoder.window();
        let count = repairs.len() as u32;
        for (key, payload) in repairs {
            *key = key.wrapping_add(count);
            payload.clear();
            encoder.repair(span.clone(), *key, payload)?;
        }
        // Copied last, the sources are in the cache, as they are when repair symbols follow them.
        for &index in &job.known {
            decoder.source(first + index as u64, job.sources.symbol(index))?;
        }
        Ok(span)
    }

    fn check(&mut self, first: u64) -> Result<(), Error> {
        let Self { job, decoder, .. } = self;
        while decoder.pop_recovered().is_some() {}
        let symbol = |&index: &usize| decoder.symbol(first + index as u64).unwrap_or_default();
        job.check(job.missing.iter().map(symbol))
    }
}

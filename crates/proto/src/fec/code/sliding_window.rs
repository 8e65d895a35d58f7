//! Code 0: random linear combinations of all symbols in the span.

use super::Code;
use crate::wire::code_id::CodeId;
use std::ops::Range;
use sutura_erasure::{DecodeError, Decoder, Encoder, RepairOutcome, SpanError, coefficient};

/// The sliding-window random linear code. Every repair symbol depends on its whole span, and every key gives
/// a different repair symbol. As many repair symbols as losses recover all losses, except about one time in
/// 255.
#[derive(Debug, Clone, Copy, Default)]
pub struct SlidingWindow;

impl Code for SlidingWindow {
    fn id(&self) -> CodeId {
        CodeId::SLIDING_WINDOW
    }

    fn name(&self) -> &'static str {
        "sliding-window"
    }

    fn summary(&self) -> &'static str {
        "random linear combinations of all that is in the window"
    }

    fn admits(&self, _span: &Range<u64>, _key: u32) -> bool {
        true
    }

    fn coefficient(&self, _span: &Range<u64>, key: u32, id: u64) -> u8 {
        coefficient(key, id)
    }

    fn encode(
        &self,
        encoder: &Encoder,
        span: Range<u64>,
        key: u32,
        out: &mut Vec<u8>,
    ) -> Result<usize, SpanError> {
        encoder.repair(span, key, out)
    }

    fn decode(
        &self,
        decoder: &mut Decoder,
        span: Range<u64>,
        key: u32,
        payload: &[u8],
    ) -> Result<RepairOutcome, DecodeError> {
        decoder.repair(span, key, payload)
    }
}

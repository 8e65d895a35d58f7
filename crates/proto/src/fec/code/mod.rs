//! The code seam: the coefficients of a repair symbol.
//!
//! Every linear code over GF(256) is a way of choosing the coefficients of a repair symbol over a
//! span of source symbols. So one elimination decoder serves all of them, and one session may mix
//! repair symbols of several codes. To add a code, write a file with a [`Code`] and a line in
//! [`CODES`].

mod ldpc_staircase;
mod parity_2d;
mod reed_solomon;
mod sliding_window;

pub use ldpc_staircase::LdpcStaircase;
pub use parity_2d::Parity2d;
pub use reed_solomon::ReedSolomon;
pub use sliding_window::SlidingWindow;

use crate::wire::code_id::{CodeId, CodeSet};
use std::fmt::Debug;
use std::ops::Range;
use sutura_erasure::{DecodeError, Decoder, Encoder, RepairOutcome, SpanError};

/// Chooses the coefficients of repair symbols.
///
/// `span` contains the identifiers of the source symbols that a repair symbol covers. `key` distinguishes
/// repair symbols over the same span. Both values are in the frame. A code keeps no state: the same span and
/// key give the same repair symbol at both ends.
pub trait Code: Debug + Send + Sync {
    /// The code's number in frames and in the transport parameter.
    fn id(&self) -> CodeId;

    /// The name of the code.
    fn name(&self) -> &'static str;

    /// A one-line description of the use of the code.
    fn summary(&self) -> &'static str;

    /// Whether the code has a repair symbol with this key over this span, which is never empty.
    fn admits(&self, span: &Range<u64>, key: u32) -> bool;

    /// The coefficient of symbol `id`, which is in `span`, in a repair symbol that the code
    /// [admits](Self::admits). 0 leaves the symbol out.
    fn coefficient(&self, span: &Range<u64>, key: u32, id: u64) -> u8;

    /// Appends a repair symbol to `out` and returns its length, which equals
    /// [`Encoder::repair_size`]. Override this only for speed.
    ///
    /// # Errors
    /// See [`Encoder::repair_with`].
    fn encode(
        &self,
        encoder: &Encoder,
        span: Range<u64>,
        key: u32,
        out: &mut Vec<u8>,
    ) -> Result<usize, SpanError> {
        let covered = span.clone();
        encoder.repair_with(span, |id: u64| self.coefficient(&covered, key, id), out)
    }

    /// Passes a repair symbol to a decoder. Override this only for speed.
    ///
    /// # Errors
    /// See [`Decoder::repair_with`].
    fn decode(
        &self,
        decoder: &mut Decoder,
        span: Range<u64>,
        key: u32,
        payload: &[u8],
    ) -> Result<RepairOutcome, DecodeError> {
        let covered = span.clone();
        decoder.repair_with(span, |id: u64| self.coefficient(&covered, key, id), payload)
    }
}

/// All codes.
pub static CODES: [&dyn Code; 4] = [&SlidingWindow, &ReedSolomon, &Parity2d, &LdpcStaircase];

impl CodeSet {
    /// All codes.
    #[must_use]
    pub fn all() -> Self {
        CODES.iter().fold(Self::default(), |set, code| set.with(code.id()))
    }
}

/// The code with this number, if it exists.
#[must_use]
pub fn find(id: CodeId) -> Option<&'static dyn Code> {
    CODES.iter().copied().find(|code| code.id() == id)
}

#[cfg(test)]
mod tests {
    use super::*;
    use sutura_erasure::{DecoderLimits, WindowLimits};

    #[test]
    fn every_code_has_a_line_of_its_own() {
        for (index, code) in CODES.iter().enumerate() {
            assert!(!code.name().is_empty() && !code.summary().is_empty());
            assert_eq!(find(code.id()).map(|found| found.name()), Some(code.name()));
            for other in &CODES[index + 1..] {
                assert_ne!((code.id(), code.name()), (other.id(), code.name()));
                assert_ne!(code.name(), other.name());
            }
        }
        assert_eq!(CODES[0].id(), CodeId::SLIDING_WINDOW);
        assert!(CODES.iter().all(|code| CodeSet::all().contains(code.id())));
        assert!(CodeId::new(61).and_then(find).is_none());
    }

    /// Every code recovers the third of five symbols.
    #[test]
    fn every_code_mends_a_loss() {
        let symbols = [&b"some"[..], b"symbols", b"of", b"several", b"lengths"];
        for code in CODES {
            let mut encoder = Encoder::new(WindowLimits::default());
            let mut decoder = Decoder::new(DecoderLimits::default());
            for (id, symbol) in (0..).zip(symbols) {
                assert_eq!(encoder.push(symbol), Ok(id));
                if id != 2 {
                    decoder.source(id, symbol).unwrap();
                }
            }
            // Repair symbol 1 of 4 with LDPC-Staircase; with the other codes, a repair symbol of four or
            // more.
            let key = if code.id() == CodeId::LDPC_STAIRCASE { 0x301 } else { 3 };
            assert!(code.admits(&(1..5), key));
            let mut payload = vec![7];
            assert_eq!(code.encode(&encoder, 1..5, key, &mut payload), Ok(9));
            let outcome = code.decode(&mut decoder, 1..5, key, &payload[1..]);
            assert_eq!(outcome, Ok(RepairOutcome::Innovative { recovered: 1 }), "{code:?}");
            assert_eq!(decoder.symbol(2), Some(symbols[2]));
        }
    }

    /// An optimised code must produce the same repair symbols byte for byte.
    #[test]
    fn repair_symbols_are_what_the_coefficients_say() {
        let mut encoder = Encoder::new(WindowLimits::default());
        for id in 0..40u8 {
            encoder.push(&[id; 30][..1 + usize::from(id) % 30]).unwrap();
        }
        for code in CODES {
            for (span, key) in [(0..40, 0), (3..20, 5), (9..10, 77), (0..40, 0x502)] {
                let (mut made, mut expected) = (Vec::new(), Vec::new());
                code.encode(&encoder, span.clone(), key, &mut made).unwrap();
                let coefficient = |id| code.coefficient(&span, key, id);
                encoder.repair_with(span.clone(), coefficient, &mut expected).unwrap();
                assert_eq!(made, expected, "{code:?}");
            }
        }
    }
}

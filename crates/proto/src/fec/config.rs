//! How much of a decoder this end offers.

use crate::wire::code_id::CodeSet;

/// The limits of this endpoint's decoder, as announced to the peer.
///
/// Whatever the announcement, all sessions of a connection together hold at most 8 MiB. Beyond this limit, an
/// idle session drops its symbols, or else the session that holds most drops its oldest quarter. A session
/// can no longer use dropped symbols to recover losses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct FecConfig {
    /// How many coding windows the peer may use at once.
    pub max_sessions: u16,
    /// How many source symbols each window may hold.
    pub max_window_symbols: u32,
    /// The most bytes that the symbols of a window may add up to.
    pub max_window_bytes: u32,
    /// The codes that the peer may use. Codes that this implementation does not support are left
    /// out.
    pub codes: CodeSet,
}

/// The most source symbols of a coding window.
pub const MAX_WINDOW_SYMBOLS: u32 = 8192;
/// The most bytes of a coding window. One such window and the memory for decoding it fit into the 8 MiB that
/// all decoders of a connection hold at most.
pub const MAX_WINDOW_BYTES: u32 = 6 << 20;
/// The most bytes of a packet that a symbol takes of the window.
const SYMBOL_BYTES: u32 = 1536;

impl FecConfig {
    sutura_schedule::setters! {
        with_max_sessions: max_sessions = u16,
        with_max_window_symbols: max_window_symbols = u32,
        with_max_window_bytes: max_window_bytes = u32,
        with_codes: codes = CodeSet,
    }

    /// The default with windows of `symbols` source symbols of full packets, at least 1 and at most
    /// [`MAX_WINDOW_SYMBOLS`], and no more bytes than [`MAX_WINDOW_BYTES`]. Both ends go by the smaller of
    /// their windows: it bounds the losses that repair symbols can mend, and the cost of making and using a
    /// repair symbol.
    #[must_use]
    pub fn with_window(symbols: u32) -> Self {
        let symbols = symbols.clamp(1, MAX_WINDOW_SYMBOLS);
        let bytes = symbols.saturating_mul(SYMBOL_BYTES).min(MAX_WINDOW_BYTES);
        Self { max_window_symbols: symbols, max_window_bytes: bytes, ..Self::default() }
    }
}

impl Default for FecConfig {
    /// Windows as large as memory allows, so that they can hold all data in flight. They hold only symbols
    /// that were sent and are not known to have arrived.
    fn default() -> Self {
        Self {
            max_sessions: 16,
            max_window_symbols: MAX_WINDOW_SYMBOLS,
            max_window_bytes: MAX_WINDOW_BYTES,
            codes: CodeSet::default(),
        }
    }
}

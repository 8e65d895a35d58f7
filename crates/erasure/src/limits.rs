//! The bounds of encoders and decoders.

use crate::{slot, symbol::PREFIX};

/// The longest source symbol: what its length prefix can say.
pub const MAX_SYMBOL_SIZE: usize = u16::MAX as usize;

/// The most symbols any window spans. Larger limits are lowered to it.
pub const MAX_WINDOW_SYMBOLS: usize = 1 << 15;

/// The most repair symbols that an encoder has open at a time.
pub const MAX_OPEN_REPAIRS: usize = 64;

/// The most unsolved equations any decoder keeps. Larger limits are lowered to it.
pub const MAX_REPAIRS: usize = 1 << 10;

/// What an [`Encoder`](crate::Encoder) may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowLimits {
    /// Source symbols in the window, at most [`MAX_WINDOW_SYMBOLS`].
    pub symbols: usize,
    /// Bytes of source symbols in the window.
    pub bytes: usize,
    /// Bytes of one source symbol, at most [`MAX_SYMBOL_SIZE`] and `bytes`.
    pub symbol_size: usize,
}

impl Default for WindowLimits {
    /// 1024 symbols, 1.5 MiB, symbols of up to 1500 bytes.
    fn default() -> Self {
        Self { symbols: 1024, bytes: 3 << 19, symbol_size: 1500 }
    }
}

impl WindowLimits {
    /// The limits as they are applied: nothing is zero and nothing exceeds the code's own bounds.
    #[must_use]
    pub fn effective(self) -> Self {
        let bytes = self.bytes.clamp(1, MAX_WINDOW_SYMBOLS * MAX_SYMBOL_SIZE);
        Self {
            symbols: self.symbols.clamp(1, MAX_WINDOW_SYMBOLS),
            bytes,
            symbol_size: self.symbol_size.clamp(1, MAX_SYMBOL_SIZE.min(bytes)),
        }
    }

    /// Buffer bytes that may be held with no regard to how well they are used, see
    /// [`Pool`](crate::pool::Pool).
    pub(crate) fn budget(self) -> usize {
        2 * self.bytes + 2 * slot::memory(self.symbol_size + PREFIX)
    }
}

/// What a [`Decoder`](crate::Decoder) may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecoderLimits {
    /// Symbols from the oldest that is held or missing to the newest, and the longest span of a
    /// repair symbol; at most [`MAX_WINDOW_SYMBOLS`].
    pub symbols: usize,
    /// Bytes of source symbols held, received or recovered.
    pub bytes: usize,
    /// Bytes of one source symbol, at most [`MAX_SYMBOL_SIZE`] and `bytes`.
    pub symbol_size: usize,
    /// Unsolved equations held, at most `symbols` and [`MAX_REPAIRS`]. Each costs up to
    /// `symbol_size` bytes and a coefficient for each missing symbol.
    pub repairs: usize,
}

impl Default for DecoderLimits {
    /// The default [`WindowLimits`] and 128 equations.
    fn default() -> Self {
        let WindowLimits { symbols, bytes, symbol_size } = WindowLimits::default();
        Self { symbols, bytes, symbol_size, repairs: 128 }
    }
}

impl DecoderLimits {
    /// The limits as they are applied: nothing is zero and nothing exceeds the code's own bounds.
    #[must_use]
    pub fn effective(self) -> Self {
        let window = self.window().effective();
        Self {
            symbols: window.symbols,
            bytes: window.bytes,
            symbol_size: window.symbol_size,
            repairs: self.repairs.clamp(1, window.symbols.min(MAX_REPAIRS)),
        }
    }

    /// The window of an encoder that this decoder can follow without giving anything up.
    #[must_use]
    pub fn window(self) -> WindowLimits {
        WindowLimits { symbols: self.symbols, bytes: self.bytes, symbol_size: self.symbol_size }
    }

    /// The bound on the buffers that a decoder ever holds for symbols and equations, in bytes.
    /// [`Decoder::allocated`](crate::Decoder::allocated) says how much it is now.
    #[must_use]
    pub fn memory(self) -> usize {
        let limits = self.effective();
        let coefficients = 2 * (limits.repairs + BURST + 2) * limits.symbols;
        limits.budget() + limits.known() + coefficients
    }

    /// The bound on the bytes that a decoder's arithmetic reads for one symbol that it is given.
    /// [`Decoder::work`](crate::Decoder::work) says how much it was so far.
    ///
    /// That is all known symbols of a window once, all equations twice, and their coefficients.
    /// A CPU with vector instructions reads tens of gigabytes in a second.
    #[must_use]
    pub fn work(self) -> usize {
        let limits = self.effective();
        let coefficients = 2 * (limits.repairs + 1) * limits.symbols;
        limits.known() + 2 * limits.equations() + coefficients
    }

    /// Memory of all symbols in the window, each in a buffer that fits.
    fn known(self) -> usize {
        self.bytes + (slot::memory(PREFIX) + PREFIX) * self.symbols
    }

    /// Buffer bytes that may be held with no regard to how well they are used, see
    /// [`Pool`](crate::pool::Pool).
    pub(crate) fn budget(self) -> usize {
        self.window().budget() + self.equations()
    }

    /// Bytes of all equations; a burst more than the limit are held while they are being placed.
    fn equations(self) -> usize {
        (self.repairs + BURST) * slot::memory(self.symbol_size + PREFIX)
    }
}

/// How many repair symbols a decoder works on at a time.
pub(crate) const BURST: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_lowered_to_what_the_code_can_do() {
        let limits = DecoderLimits {
            symbols: usize::MAX,
            bytes: usize::MAX,
            symbol_size: usize::MAX,
            repairs: usize::MAX,
        }
        .effective();
        assert_eq!(limits.symbols, MAX_WINDOW_SYMBOLS);
        assert_eq!(limits.symbol_size, MAX_SYMBOL_SIZE);
        assert_eq!(limits.repairs, MAX_REPAIRS);
    }

    #[test]
    fn no_limit_is_zero_and_smaller_ones_bind_larger_ones() {
        let none = DecoderLimits { symbols: 0, bytes: 0, symbol_size: 0, repairs: 0 }.effective();
        let one = DecoderLimits { symbols: 1, bytes: 1, symbol_size: 1, repairs: 1 };
        assert_eq!(none, one);
        let tight =
            DecoderLimits { symbols: 4, bytes: 100, symbol_size: 1500, repairs: 9 }.effective();
        assert_eq!((tight.symbol_size, tight.repairs), (100, 4));
    }
}

//! Limits of encoders and decoders.

use crate::{slot, symbol::PREFIX};

/// The longest source symbol that the length prefix can express.
pub const MAX_SYMBOL_SIZE: usize = u16::MAX as usize;

/// The most symbols in any window. Larger limits are lowered to this.
pub const MAX_WINDOW_SYMBOLS: usize = 1 << 15;

/// The most repair symbols that an encoder can have open at a time.
pub const MAX_OPEN_REPAIRS: usize = 64;

/// The most unsolved equations of any decoder. Larger limits are lowered to this.
pub const MAX_REPAIRS: usize = 1 << 10;

/// The most bytes of symbols in any window. The factor keeps all bounds within a machine word on
/// 32-bit platforms.
const MAX_WINDOW_BYTES: usize = {
    let (symbols, word) = (MAX_WINDOW_SYMBOLS as u64 * MAX_SYMBOL_SIZE as u64, usize::MAX / 8);
    if symbols < word as u64 { symbols as usize } else { word }
};

/// Limits of an [`Encoder`](crate::Encoder).
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
    /// The limits as applied: nothing is zero and nothing exceeds the code's own bounds.
    #[must_use]
    pub fn effective(self) -> Self {
        let bytes = self.bytes.clamp(1, MAX_WINDOW_BYTES);
        Self {
            symbols: self.symbols.clamp(1, MAX_WINDOW_SYMBOLS),
            bytes,
            symbol_size: self.symbol_size.clamp(1, MAX_SYMBOL_SIZE.min(bytes)),
        }
    }

    /// Bytes of buffers that may be allocated, even if their contents are short; see
    /// [`Pool`](crate::pool::Pool).
    pub(crate) fn budget(self) -> usize {
        2 * self.bytes + 2 * self.longest()
    }

    /// Memory for all symbols in the window, each in a buffer that fits.
    pub(crate) fn known(self) -> usize {
        self.bytes + (PREFIX + slot::MAX_OVERHEAD) * self.symbols
    }

    /// Memory for the longest symbol, and for each repair symbol being processed.
    pub(crate) fn longest(self) -> usize {
        slot::memory(PREFIX + self.symbol_size)
    }
}

/// Limits of a [`Decoder`](crate::Decoder).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecoderLimits {
    /// Symbols from the oldest one held or missing to the newest, and the longest span of a repair
    /// symbol; at most [`MAX_WINDOW_SYMBOLS`].
    pub symbols: usize,
    /// Bytes of held source symbols, received or recovered.
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
    /// The limits as applied: nothing is zero and nothing exceeds the code's own bounds.
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

    /// The window of an encoder that this decoder can follow without giving up symbols.
    #[must_use]
    pub fn window(self) -> WindowLimits {
        WindowLimits { symbols: self.symbols, bytes: self.bytes, symbol_size: self.symbol_size }
    }

    /// The bound on the bytes that a decoder's arithmetic reads for each symbol given to it.
    /// [`Decoder::work`](crate::Decoder::work) is the total so far.
    ///
    /// It covers all known symbols of a window once, all equations twice, and their coefficients
    /// three times. A CPU with vector instructions reads tens of gigabytes per second.
    #[must_use]
    pub fn work(self) -> usize {
        let limits = self.effective();
        let known = limits.bytes + (PREFIX + slot::MAX_PADDING) * limits.symbols;
        let equation = slot::padded(PREFIX + limits.symbol_size);
        known + limits.equations() * (2 * equation + 3 * limits.symbols)
    }

    /// The most equations at any time: the equations of a burst are added before the limit is enforced.
    pub(crate) fn equations(self) -> usize {
        self.repairs + BURST
    }
}

/// The most memory of a vector with up to `len` elements: vectors double when they grow, and start
/// with eight bytes or four elements.
pub(crate) const fn vector<T>(len: usize) -> usize {
    let least = if size_of::<T>() == 1 { 8 } else { 4 };
    let capacity = if 2 * len > least { 2 * len } else { least };
    capacity * size_of::<T>()
}

/// How many repair symbols a decoder processes together.
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
    fn the_largest_limits_have_bounds() {
        let most = usize::MAX;
        let window = WindowLimits { symbols: most, bytes: most, symbol_size: most };
        assert!(window.memory() > 3 * window.effective().bytes);
        let decoder =
            DecoderLimits { symbols: most, bytes: most, symbol_size: most, repairs: most };
        assert!(decoder.memory() > 3 * decoder.effective().bytes);
        assert!(decoder.work() > decoder.effective().bytes);
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

//! Memory in cache lines, so that no load of a vector touches two.

/// Bytes of a [`Line`]: those of a cache line and of the longest register.
pub(crate) const LINE: usize = 64;

/// Bytes that start where a cache line does.
#[repr(C, align(64))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Line(pub(crate) [u8; LINE]);

impl Line {
    pub(crate) const ZERO: Self = Self([0; LINE]);
}

/// The bytes of lines.
pub(crate) fn bytes(lines: &[Line]) -> &[u8] {
    // SAFETY: a line is 64 bytes without padding, any of which may have any value, and bytes need
    // no alignment.
    unsafe { core::slice::from_raw_parts(lines.as_ptr().cast(), size_of_val(lines)) }
}

/// The bytes of lines, to be changed.
pub(crate) fn bytes_mut(lines: &mut [Line]) -> &mut [u8] {
    // SAFETY: as in `bytes`, and the borrow is as exclusive as before.
    unsafe { core::slice::from_raw_parts_mut(lines.as_mut_ptr().cast(), size_of_val(lines)) }
}

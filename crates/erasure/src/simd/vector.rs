//! An interface to vector units, and the loops over regions, written once for all tiers.
//!
//! Everything here is inlined into functions that enable the instructions of one tier. The shape of
//! the loops follows from one observation: the multiplications are so fast that loading and storing
//! the destination costs more. A *tile* of it therefore stays in registers while all sources are
//! processed.

/// A register full of bytes.
///
/// # Safety
///
/// Every method needs a CPU with the instructions of the tier. Loads and stores need pointers that
/// are valid for [`BYTES`](Self::BYTES) bytes, or for `len` bytes where given. They may be
/// unaligned.
pub(super) trait Vector: Copy {
    /// Bytes of a register, at most 64.
    const BYTES: usize;
    /// The most registers of one destination in a tile, at most 24.
    const DOT_COLUMNS: usize;
    /// The most destinations in a tile, at most [`MAX_ROWS`].
    const ROWS: usize;
    /// By number of destinations, the most registers of each of them in a tile.
    const MATMUL_COLUMNS: [usize; MAX_ROWS + 1];
    /// Whether it is best to add sources two at a time.
    const PAIRS: bool;
    /// A constant, prepared for multiplication.
    type Factor: Copy;

    unsafe fn load(at: *const u8) -> Self;
    unsafe fn store(self, at: *mut u8);
    unsafe fn add(self, other: Self) -> Self;
    unsafe fn factor(c: u8) -> Self::Factor;
    unsafe fn times(self, factor: Self::Factor) -> Self;

    /// The sum of three.
    #[inline(always)]
    unsafe fn add2(self, a: Self, b: Self) -> Self {
        // SAFETY: the caller's promise.
        unsafe { self.add(a).add(b) }
    }

    /// Loads `len` bytes, less than a register, and pads them with zeros.
    #[inline(always)]
    unsafe fn load_part(at: *const u8, len: usize) -> Self {
        let mut bytes = [0u8; 64];
        // SAFETY: `at` is good for `len` bytes, and the buffer for any register.
        unsafe {
            core::ptr::copy_nonoverlapping(at, bytes.as_mut_ptr(), len);
            Self::load(bytes.as_ptr())
        }
    }

    /// Stores the first `len` bytes, less than a register.
    #[inline(always)]
    unsafe fn store_part(self, at: *mut u8, len: usize) {
        let mut bytes = [0u8; 64];
        // SAFETY: `at` is good for `len` bytes, and the buffer for any register.
        unsafe {
            self.store(bytes.as_mut_ptr());
            core::ptr::copy_nonoverlapping(bytes.as_ptr(), at, len);
        }
    }
}

/// The methods of a [`Vector`] that are one instruction each.
macro_rules! instructions {
    ($load:ident, $store:ident, $add:ident) => {
        #[inline(always)]
        unsafe fn load(at: *const u8) -> Self {
            // SAFETY: the caller's promise.
            Self(unsafe { $load(at.cast()) })
        }

        #[inline(always)]
        unsafe fn store(self, at: *mut u8) {
            // SAFETY: the caller's promise.
            unsafe { $store(at.cast(), self.0) }
        }

        #[allow(unused_unsafe, reason = "WebAssembly's addition is safe")]
        #[inline(always)]
        unsafe fn add(self, other: Self) -> Self {
            // SAFETY: the caller's promise.
            Self(unsafe { $add(self.0, other.0) })
        }
    };
}

pub(super) use instructions;

/// Sources per pass. Their pointers fit on the stack, and this many symbols of 1536 bytes stay in a
/// second-level cache while they are used for several destinations.
const BLOCK: usize = 128;

/// The most destinations per pass in any tier.
pub(super) const MAX_ROWS: usize = 6;

/// Calls a tile function with the number of registers as a constant.
macro_rules! with_columns {
    ($columns:expr, [$($c:literal)*], $tile:ident<$v:ty, $k:tt>$arguments:tt) => {
        match $columns {
            $($c => $tile::<$v, $k, $c>$arguments,)*
            _ => debug_assert!(false, "no tile has so many columns"),
        }
    };
}

/// See [`Kernel::dot`](crate::kernel::Kernel::dot). Without `MULTIPLY`, all coefficients are 1 and are not
/// read.
///
/// # Safety
///
/// The CPU has the instructions of the tier. With `MULTIPLY` there are as many coefficients as
/// sources.
#[inline(always)]
pub(super) unsafe fn dot<V: Vector, const MULTIPLY: bool>(
    dst: &mut [u8],
    coefficients: &[u8],
    sources: &[&[u8]],
) {
    if sources.iter().all(|source| source.len() >= dst.len()) {
        // SAFETY: the caller's promise, and no source is shorter than the destination.
        unsafe { dot_long::<V, MULTIPLY>(dst, coefficients, sources) };
        return;
    }
    // Shorter sources are added one by one, the others together as above.
    for (block, sources) in sources.chunks(BLOCK).enumerate() {
        let mut long: [&[u8]; BLOCK] = [&[]; BLOCK];
        let mut by = [0; BLOCK];
        let mut len = 0;
        for (i, &source) in sources.iter().enumerate() {
            let c = if MULTIPLY { coefficients[block * BLOCK + i] } else { 1 };
            if source.len() < dst.len() {
                // SAFETY: the CPU is right.
                unsafe { mad::<V>(dst, source, c) };
            } else {
                (long[len], by[len]) = (source, c);
                len += 1;
            }
        }
        // SAFETY: the CPU is right, and no source is shorter than the destination.
        unsafe { dot_long::<V, MULTIPLY>(dst, &by[..len], &long[..len]) };
    }
}

/// # Safety
///
/// As for [`dot`], and no source is shorter than the destination.
#[inline(always)]
unsafe fn dot_long<V: Vector, const MULTIPLY: bool>(
    dst: &mut [u8],
    coefficients: &[u8],
    sources: &[&[u8]],
) {
    let mut offset = 0;
    // SAFETY: `offset` and the tile behind it are inside the destination, and so inside all sources.
    unsafe {
        loop {
            let columns = ((dst.len() - offset) / V::BYTES).min(V::DOT_COLUMNS);
            if columns == 0 {
                break;
            }
            with_columns!(
                columns,
                [1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24],
                dot_tile<V, MULTIPLY>(dst.as_mut_ptr(), coefficients, sources, offset)
            );
            offset += columns * V::BYTES;
        }
        let part = dst.len() - offset;
        if part > 0 {
            let dst = dst.as_mut_ptr().add(offset);
            let mut sum = V::load_part(dst, part);
            for (i, source) in sources.iter().enumerate() {
                let value = V::load_part(source.as_ptr().add(offset), part);
                sum = sum.add(if MULTIPLY {
                    value.times(V::factor(*coefficients.get_unchecked(i)))
                } else {
                    value
                });
            }
            sum.store_part(dst, part);
        }
    }
}

/// Adds all sources to `C` registers of the destination from `offset` on.
///
/// # Safety
///
/// As for [`dot`], and all regions are valid for that many bytes.
#[inline(always)]
unsafe fn dot_tile<V: Vector, const MULTIPLY: bool, const C: usize>(
    dst: *mut u8,
    coefficients: &[u8],
    sources: &[&[u8]],
    offset: usize,
) {
    if C > V::DOT_COLUMNS {
        return;
    }
    // SAFETY: the caller's promise.
    unsafe {
        let dst = dst.add(offset);
        let mut sum = [V::load(dst); C];
        for (i, sum) in sum.iter_mut().enumerate() {
            *sum = V::load(dst.add(i * V::BYTES));
        }
        let factor =
            |i: usize| V::factor(if MULTIPLY { *coefficients.get_unchecked(i) } else { 1 });
        let at = |i: usize| sources.get_unchecked(i).as_ptr().add(offset);
        let mut next = 0;
        while V::PAIRS && next + 2 <= sources.len() {
            let (a, b) = (at(next), at(next + 1));
            let (fa, fb) = (factor(next), factor(next + 1));
            for (i, sum) in sum.iter_mut().enumerate() {
                let (a, b) = (V::load(a.add(i * V::BYTES)), V::load(b.add(i * V::BYTES)));
                *sum = if MULTIPLY { sum.add2(a.times(fa), b.times(fb)) } else { sum.add2(a, b) };
            }
            next += 2;
        }
        while next < sources.len() {
            let (a, factor) = (at(next), factor(next));
            for (i, sum) in sum.iter_mut().enumerate() {
                let value = V::load(a.add(i * V::BYTES));
                *sum = sum.add(if MULTIPLY { value.times(factor) } else { value });
            }
            next += 1;
        }
        for (i, sum) in sum.into_iter().enumerate() {
            sum.store(dst.add(i * V::BYTES));
        }
    }
}

/// Adds `c` times `src` to `dst`, up to the shorter length.
///
/// # Safety
///
/// The CPU has the instructions of the tier.
#[inline(always)]
pub(super) unsafe fn mad<V: Vector>(dst: &mut [u8], src: &[u8], c: u8) {
    let len = dst.len().min(src.len());
    let (dst, src) = (dst.as_mut_ptr(), src.as_ptr());
    // SAFETY: all offsets are below `len`, and full registers end at or below it.
    unsafe {
        let factor = V::factor(c);
        let mut at = 0;
        while at + V::BYTES <= len {
            let product = V::load(src.add(at)).times(factor);
            V::load(dst.add(at)).add(product).store(dst.add(at));
            at += V::BYTES;
        }
        if at < len {
            let part = len - at;
            let product = V::load_part(src.add(at), part).times(factor);
            V::load_part(dst.add(at), part).add(product).store_part(dst.add(at), part);
        }
    }
}

/// Multiplies `dst` by `c`.
///
/// # Safety
///
/// The CPU has the instructions of the tier.
#[inline(always)]
pub(super) unsafe fn scale<V: Vector>(dst: &mut [u8], c: u8) {
    let (len, dst) = (dst.len(), dst.as_mut_ptr());
    // SAFETY: all offsets are below `len`, and full registers end at or below it.
    unsafe {
        let factor = V::factor(c);
        let mut at = 0;
        while at + V::BYTES <= len {
            V::load(dst.add(at)).times(factor).store(dst.add(at));
            at += V::BYTES;
        }
        if at < len {
            let part = len - at;
            V::load_part(dst.add(at), part).times(factor).store_part(dst.add(at), part);
        }
    }
}

/// See [`Kernel::matmul`](crate::kernel::Kernel::matmul).
///
/// # Safety
///
/// The CPU has the instructions of the tier. There is a coefficient for each destination and
/// source.
#[inline(always)]
pub(super) unsafe fn matmul<V: Vector>(
    dsts: &mut [&mut [u8]],
    coefficients: &[u8],
    sources: &[&[u8]],
) {
    let common = dsts.iter().map(|dst| dst.len()).min().unwrap_or(0);
    for (number, block) in sources.chunks(BLOCK).enumerate() {
        let first = number * BLOCK;
        // Tiles can be used for this many bytes: none if there is a short source.
        let tiled = if block.iter().all(|source| source.len() >= common) { common } else { 0 };
        // SAFETY: the CPU is right, and all regions have `tiled` bytes.
        unsafe { matmul_block::<V>(dsts, coefficients, sources.len(), first, block, tiled) };
        for (dst, row) in dsts.iter_mut().zip(coefficients.chunks_exact(sources.len())) {
            if dst.len() > tiled {
                let dst = &mut dst[tiled..];
                for (source, &c) in block.iter().zip(&row[first..]) {
                    if source.len() > tiled {
                        // SAFETY: the CPU is right.
                        unsafe { mad::<V>(dst, &source[tiled..], c) };
                    }
                }
            }
        }
    }
}

/// The first `len` bytes of all destinations, for the sources from number `first` on.
///
/// # Safety
///
/// The CPU has the instructions of the tier, all regions have `len` bytes, and there are
/// coefficients for rows of `stride` sources.
#[inline(always)]
unsafe fn matmul_block<V: Vector>(
    dsts: &mut [&mut [u8]],
    coefficients: &[u8],
    stride: usize,
    first: usize,
    sources: &[&[u8]],
    len: usize,
) {
    // Groups of about equal size.
    let groups = dsts.len().div_ceil(V::ROWS);
    let largest = dsts.len().div_ceil(groups.max(1));
    let mut offset = 0;
    while offset < len {
        // A strip of the sources that stays in the first-level cache while all groups use it.
        let strip = (len - offset).min(V::MATMUL_COLUMNS[largest] * V::BYTES);
        let mut row = 0;
        for group in 0..groups {
            let rows = (dsts.len() - row).div_ceil(groups - group);
            let mut to = [core::ptr::null_mut(); MAX_ROWS];
            let mut by = [core::ptr::null(); MAX_ROWS];
            for i in 0..rows {
                to[i] = dsts[row + i].as_mut_ptr();
                by[i] = coefficients[(row + i) * stride + first..][..sources.len()].as_ptr();
            }
            // SAFETY: the caller's promise, and coefficients for all sources of the block.
            unsafe { matmul_group::<V>(rows, &to, &by, sources, offset..offset + strip) };
            row += rows;
        }
        offset += strip;
    }
}

/// One strip of a few destinations.
///
/// # Safety
///
/// As for [`matmul_tile`].
#[inline(always)]
unsafe fn matmul_group<V: Vector>(
    rows: usize,
    dsts: &[*mut u8; MAX_ROWS],
    coefficients: &[*const u8; MAX_ROWS],
    sources: &[&[u8]],
    strip: core::ops::Range<usize>,
) {
    let mut offset = strip.start;
    while offset < strip.end {
        let columns = ((strip.end - offset) / V::BYTES).min(V::MATMUL_COLUMNS[rows]);
        // SAFETY: the caller's promise.
        unsafe {
            macro_rules! tiles {
                ($rows:tt, $columns:tt) => {{
                    if columns == 0 {
                        let part = strip.end - offset;
                        matmul_part::<V, $rows>(dsts, coefficients, sources, offset, part);
                        return;
                    }
                    with_columns!(
                        columns,
                        $columns,
                        matmul_tile < V,
                        $rows > (dsts, coefficients, sources, offset)
                    );
                }};
            }
            match rows {
                1 => tiles!(1, [1 2 3 4]),
                2 => tiles!(2, [1 2 3 4]),
                3 => tiles!(3, [1 2 3 4]),
                4 => tiles!(4, [1 2 3 4]),
                5 => tiles!(5, [1 2 3 4]),
                6 => tiles!(6, [1 2 3]),
                _ => debug_assert!(false, "no tile has so many rows"),
            }
        }
        offset += columns * V::BYTES;
    }
}

/// Adds all sources to `C` registers of each of `R` destinations.
///
/// # Safety
///
/// The CPU has the instructions of the tier. The first `R` destinations and all sources are valid
/// for that many bytes after `offset`, and the first `R` lists of coefficients are as long as the
/// list of sources.
#[inline(always)]
unsafe fn matmul_tile<V: Vector, const R: usize, const C: usize>(
    dsts: &[*mut u8; MAX_ROWS],
    coefficients: &[*const u8; MAX_ROWS],
    sources: &[&[u8]],
    offset: usize,
) {
    if R > V::ROWS || C > V::MATMUL_COLUMNS[R] {
        return;
    }
    // SAFETY: the caller's promise.
    unsafe {
        let mut sum = [[V::load(dsts[0].add(offset)); C]; R];
        for (sum, dst) in sum.iter_mut().zip(dsts) {
            for (i, sum) in sum.iter_mut().enumerate() {
                *sum = V::load(dst.add(offset + i * V::BYTES));
            }
        }
        let at = |i: usize| sources.get_unchecked(i).as_ptr().add(offset);
        let mut next = 0;
        while V::PAIRS && next + 2 <= sources.len() {
            let (at, bt) = (at(next), at(next + 1));
            let (mut a, mut b) = ([V::load(at); C], [V::load(bt); C]);
            for i in 1..C {
                a[i] = V::load(at.add(i * V::BYTES));
                b[i] = V::load(bt.add(i * V::BYTES));
            }
            for (sum, c) in sum.iter_mut().zip(coefficients) {
                let (fa, fb) = (V::factor(*c.add(next)), V::factor(*c.add(next + 1)));
                for i in 0..C {
                    sum[i] = sum[i].add2(a[i].times(fa), b[i].times(fb));
                }
            }
            next += 2;
        }
        while next < sources.len() {
            let at = at(next);
            let mut a = [V::load(at); C];
            for (i, a) in a.iter_mut().enumerate().skip(1) {
                *a = V::load(at.add(i * V::BYTES));
            }
            for (sum, c) in sum.iter_mut().zip(coefficients) {
                let factor = V::factor(*c.add(next));
                for i in 0..C {
                    sum[i] = sum[i].add(a[i].times(factor));
                }
            }
            next += 1;
        }
        for (sum, dst) in sum.into_iter().zip(dsts) {
            for (i, sum) in sum.into_iter().enumerate() {
                sum.store(dst.add(offset + i * V::BYTES));
            }
        }
    }
}

/// Adds all sources to less than a register of each of `R` destinations.
///
/// # Safety
///
/// As for [`matmul_tile`], for `part` bytes.
#[inline(always)]
unsafe fn matmul_part<V: Vector, const R: usize>(
    dsts: &[*mut u8; MAX_ROWS],
    coefficients: &[*const u8; MAX_ROWS],
    sources: &[&[u8]],
    offset: usize,
    part: usize,
) {
    if R > V::ROWS {
        return;
    }
    // SAFETY: the caller's promise.
    unsafe {
        let mut sum = [V::load_part(dsts[0].add(offset), part); R];
        for (sum, dst) in sum.iter_mut().zip(dsts) {
            *sum = V::load_part(dst.add(offset), part);
        }
        for (i, source) in sources.iter().enumerate() {
            let value = V::load_part(source.as_ptr().add(offset), part);
            for (sum, c) in sum.iter_mut().zip(coefficients) {
                *sum = sum.add(value.times(V::factor(*c.add(i))));
            }
        }
        for (sum, dst) in sum.into_iter().zip(dsts) {
            sum.store_part(dst.add(offset), part);
        }
    }
}

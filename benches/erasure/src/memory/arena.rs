//! An arena: a mapping in huge pages that is handed out in blocks.
#![allow(unsafe_code, reason = "a mapping of memory, handed out in parts")]

use std::{
    alloc::Layout,
    ptr::{self, NonNull},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};
use talc::{ErrOnOom, Span, Talc};

/// Bytes of the mapping, of which only what is used takes memory.
const BYTES: usize = 512 << 20;
/// Bytes of a huge page on x86-64 and on AArch64 with base pages of 4 KiB.
const PAGE: usize = 2 << 20;
/// All blocks start at the start of a cache line.
const LINE: usize = 64;

/// Where the mapping starts, 0 if there is none. It never moves.
static START: AtomicUsize = AtomicUsize::new(0);

/// The address of the mapping.
pub fn start() -> Option<usize> {
    Some(START.load(Relaxed)).filter(|&start| start != 0)
}

/// Whether a block is part of the arena.
pub fn contains(memory: *const u8) -> bool {
    start().is_some_and(|start| memory.addr().wrapping_sub(start) < BYTES)
}

/// The allocator of the mapping.
pub struct Arena(Talc<ErrOnOom>);

impl Arena {
    /// An arena without a mapping.
    pub const NONE: Self = Self(Talc::new(ErrOnOom));

    /// Makes the mapping unless it exists; `false` if that fails.
    pub fn reserve(&mut self) -> bool {
        if start().is_none()
            && let Some(memory) = map()
            // SAFETY: a new mapping of so many bytes, which is never unmapped.
            && unsafe { self.0.claim(Span::from_base_size(memory, BYTES)) }.is_ok()
        {
            START.store(memory.addr(), Relaxed);
        }
        start().is_some()
    }

    /// Allocates a block; `None` if there is no room for it.
    pub fn take(&mut self, layout: Layout) -> Option<*mut u8> {
        let layout = layout.align_to(LINE).ok().filter(|layout| layout.size() > 0)?;
        // SAFETY: the size is not zero.
        unsafe { self.0.malloc(layout) }.ok().map(NonNull::as_ptr)
    }

    /// Frees a block.
    ///
    /// # Safety
    ///
    /// It is from [`take`](Self::take) with the same layout, and no longer in use.
    pub unsafe fn give(&mut self, block: *mut u8, layout: Layout) {
        if let (Some(block), Ok(layout)) = (NonNull::new(block), layout.align_to(LINE)) {
            // SAFETY: the caller's; `take` asked for the same.
            unsafe { self.0.free(block, layout) };
        }
    }
}

/// Maps memory that starts a huge page and asks for huge pages.
#[cfg(target_os = "linux")]
fn map() -> Option<*mut u8> {
    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE;
    // SAFETY: a new mapping at an address that the kernel chooses.
    let memory = unsafe {
        mmap_anonymous(ptr::null_mut(), BYTES + PAGE, ProtFlags::READ | ProtFlags::WRITE, flags)
    };
    let memory = memory.ok()?.cast::<u8>();
    let to_page = memory.addr().next_multiple_of(PAGE) - memory.addr();
    // SAFETY: the mapping is a page longer than what is used of it.
    let memory = unsafe { memory.add(to_page) };
    // SAFETY: all of it is in the mapping, and advice does not change what it holds.
    unsafe { madvise(memory.cast(), BYTES, Advice::LinuxHugepage) }.ok()?;
    Some(memory)
}

/// Other systems have no such advice.
#[cfg(not(target_os = "linux"))]
fn map() -> Option<*mut u8> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_used_again_and_do_not_overlap() {
        let mut arena = Arena::NONE;
        let layout = Layout::from_size_align(1600, 8).unwrap();
        assert_eq!(arena.take(layout), None);
        let Some(memory) = map() else { return };
        // SAFETY: a new mapping, of which this part is used.
        unsafe { arena.0.claim(Span::from_base_size(memory, PAGE)) }.unwrap();
        assert_eq!(arena.take(Layout::from_size_align(PAGE, 8).unwrap()), None);
        let mut blocks = Vec::new();
        for _ in 0..3 {
            blocks.extend(std::iter::from_fn(|| arena.take(layout)).map(<*mut u8>::addr));
            assert!(blocks.len() > 1000 && blocks.iter().all(|block| block % LINE == 0));
            blocks.sort_unstable();
            assert!(blocks.windows(2).all(|two| two[1] - two[0] >= 1600));
            for block in blocks.drain(..) {
                // SAFETY: it was just taken.
                unsafe { arena.give(memory.with_addr(block), layout) };
            }
        }
    }
}

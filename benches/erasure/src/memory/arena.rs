//! An arena: a mapping in huge pages that is handed out in blocks.
//!
//! Block sizes fall into classes. A freed block goes onto the list of its class and is taken from that list
//! again; if the list is empty, a new block is cut off the mapping. Both operations take constant time,
//! because allocation is part of what the bench measures.
#![allow(unsafe_code, reason = "a mapping of memory, handed out in parts")]

use std::{
    alloc::Layout,
    ptr,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

/// Bytes of the mapping. Only the used part takes memory.
const BYTES: usize = 512 << 20;
/// Bytes of a huge page on x86-64 and on AArch64 with base pages of 4 KiB.
const PAGE: usize = 2 << 20;
/// All blocks start at the start of a cache line.
const LINE: usize = 64;
/// Blocks up to this size are a multiple of a cache line, longer ones a power of two. With powers of
/// two alone, symbols would compete for the same lines of the caches.
const FINE: usize = 4096;
const FINE_CLASSES: usize = FINE / LINE;
const CLASSES: usize = FINE_CLASSES + (BYTES / FINE).ilog2() as usize;

/// The address of the mapping, 0 if there is none. It never moves.
static START: AtomicUsize = AtomicUsize::new(0);

/// Whether a block is part of the arena.
pub fn contains(memory: *const u8) -> bool {
    let start = START.load(Relaxed);
    start != 0 && memory.addr().wrapping_sub(start) < BYTES
}

/// The mapping.
pub struct Arena {
    /// The start of the mapping; null if there is none.
    memory: *mut u8,
    /// Bytes of the mapping that are cut into blocks.
    used: usize,
    /// The first free block of each class; its first bytes hold the address of the next one.
    waiting: [*mut u8; CLASSES],
}

// SAFETY: the pointers lead to memory of the arena, which belongs to no thread.
unsafe impl Send for Arena {}

impl Arena {
    /// An arena without a mapping.
    pub const NONE: Self =
        Self { memory: ptr::null_mut(), used: 0, waiting: [ptr::null_mut(); CLASSES] };

    /// Makes the mapping unless it exists; `false` if the system refuses.
    pub fn reserve(&mut self) -> bool {
        if self.memory.is_null()
            && let Some(memory) = map()
        {
            self.memory = memory;
            START.store(memory.addr(), Relaxed);
        }
        !self.memory.is_null()
    }

    /// The address of the mapping.
    pub fn start(&self) -> Option<usize> {
        (!self.memory.is_null()).then(|| self.memory.addr())
    }

    /// Allocates a block; `None` if there is no room for it.
    pub fn take(&mut self, layout: Layout) -> Option<*mut u8> {
        let (class, bytes) = class_of(layout)?;
        if self.memory.is_null() {
            return None;
        }
        let waiting = self.waiting.get_mut(class)?;
        if !waiting.is_null() {
            let block = *waiting;
            // SAFETY: a free block holds the address of the next one, see `give`.
            *waiting = unsafe { block.cast::<*mut u8>().read() };
            return Some(block);
        }
        if bytes > BYTES - self.used {
            return None;
        }
        // SAFETY: the mapping has at least `used` bytes.
        let block = unsafe { self.memory.add(self.used) };
        self.used += bytes;
        Some(block)
    }

    /// Frees a block.
    ///
    /// # Safety
    ///
    /// The block is from [`take`](Self::take) with the same layout, and no longer in use.
    pub unsafe fn give(&mut self, block: *mut u8, layout: Layout) {
        let class = class_of(layout).and_then(|(class, _)| self.waiting.get_mut(class));
        // The block had a class when it was taken, so there is always one.
        if let Some(waiting) = class {
            // SAFETY: the block starts at a cache line and is at least a cache line long.
            unsafe { block.cast::<*mut u8>().write(*waiting) };
            *waiting = block;
        }
    }
}

/// The class of a block and the size of its blocks; `None` if the arena cannot hold it.
fn class_of(layout: Layout) -> Option<(usize, usize)> {
    if layout.align() > LINE || layout.size() > BYTES {
        return None;
    }
    if layout.size() <= FINE {
        let bytes = layout.size().max(1).next_multiple_of(LINE);
        return Some((bytes / LINE - 1, bytes));
    }
    let bytes = layout.size().next_power_of_two();
    Some((FINE_CLASSES - 1 + (bytes / FINE).ilog2() as usize, bytes))
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
    // SAFETY: the mapping is a page longer than its used part.
    let memory = unsafe { memory.add(to_page) };
    // SAFETY: all of it is in the mapping, and advice does not change what it holds.
    unsafe { madvise(memory.cast(), BYTES, Advice::LinuxHugepage) }.ok()?;
    Some(memory)
}

/// Other systems cannot be asked for huge pages.
#[cfg(not(target_os = "linux"))]
fn map() -> Option<*mut u8> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_size_has_a_class_whose_blocks_are_long_enough() {
        let layout = |size| Layout::from_size_align(size, 8).unwrap();
        let mut before = (0, LINE);
        for size in (1..3 * FINE).chain([PAGE, PAGE + 1, BYTES - 1, BYTES]) {
            let (class, bytes) = class_of(layout(size)).unwrap();
            assert!(size <= bytes && class < CLASSES);
            assert!((class, bytes) == before || (class > before.0 && bytes > before.1));
            before = (class, bytes);
        }
        assert_eq!(before.0, CLASSES - 1);
        assert_eq!(class_of(layout(BYTES + 1)), None);
        assert_eq!(class_of(Layout::from_size_align(1, 4096).unwrap()), None);
    }

    #[test]
    fn blocks_are_used_again_and_do_not_overlap() {
        let mut arena = Arena::NONE;
        let layout = Layout::from_size_align(1600, 64).unwrap();
        assert_eq!(arena.take(layout), None);
        let Some(memory) = map() else { return };
        arena.memory = memory;
        let blocks: Vec<_> = (0..10).map(|_| arena.take(layout).unwrap()).collect();
        assert!(blocks.windows(2).all(|two| two[1].addr() - two[0].addr() == 1600));
        for &block in &blocks {
            // SAFETY: it was just taken.
            unsafe { arena.give(block, layout) };
        }
        let again: Vec<_> = (0..10).map(|_| arena.take(layout).unwrap()).collect();
        assert!(again.iter().rev().eq(&blocks));
        assert_eq!(arena.used, 16_000);
    }
}

//! Memory in huge pages, on request.
//!
//! The second-level cache is indexed by physical address. Whether a working set that nearly fills it fits
//! depends on which pages of 4 KiB a process happens to get, so that the same code is up to a third slower in
//! one process than in the next. Huge pages avoid this difference. Allocations inside [`Pages::with`] may
//! come from an arena of huge pages; all other allocations come from the system's allocator, as they do for
//! users.

mod arena;

use arena::Arena;
use std::{
    alloc::{GlobalAlloc, Layout, System},
    fs,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

/// The kind of pages in which memory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pages {
    /// The pages that the system gives by default.
    Ordinary,
    /// Pages of 2 MiB.
    Huge,
}

impl Pages {
    /// Runs `work`; its allocations are in pages of this kind.
    pub fn with<R>(self, work: impl FnOnce() -> R) -> R {
        let before = HUGE.swap(self == Self::Huge, Relaxed);
        let result = work();
        HUGE.store(before, Relaxed);
        result
    }

    /// The suffix of titles and labels.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Ordinary => "",
            Self::Huge => ", huge pages",
        }
    }
}

/// Whether allocations are in huge pages now. Only one thread of the bench allocates.
static HUGE: AtomicBool = AtomicBool::new(false);
static ARENA: Mutex<Arena> = Mutex::new(Arena::NONE);

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

fn arena() -> MutexGuard<'static, Arena> {
    ARENA.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reserves the address space of the huge pages; `false` if that fails.
pub fn reserve() -> bool {
    arena().reserve()
}

/// How much of the arena is resident, and how much of that in huge pages, in KiB, as Linux reports
/// it.
pub fn resident() -> Option<(u64, u64)> {
    let start = arena().start()?;
    let maps = fs::read_to_string("/proc/self/smaps").ok()?;
    resident_at(&maps, start)
}

fn resident_at(maps: &str, start: usize) -> Option<(u64, u64)> {
    let bounds = |line: &str| {
        let (from, to) = line.split_whitespace().next()?.split_once('-')?;
        let address = |digits| usize::from_str_radix(digits, 16).ok();
        Some(address(from)?..address(to)?)
    };
    let mapping = |line: &&str| bounds(line).is_some_and(|bounds| bounds.contains(&start));
    let mut lines = maps.lines().skip_while(|line| !mapping(line)).skip(1);
    let mut field = |name| {
        let line = lines.find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse().ok()
    };
    Some((field("Rss:")?, field("AnonHugePages:")?))
}

/// The allocator of the bench.
struct Allocator;

#[allow(unsafe_code, reason = "an allocator is an unsafe trait")]
// SAFETY: memory comes from the arena or from the system's allocator, whose contracts are those of the trait;
// the address of freed memory tells which of the two it came from.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if HUGE.load(Relaxed)
            && let Some(memory) = arena().take(layout)
        {
            return memory;
        }
        // SAFETY: the caller's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if HUGE.load(Relaxed)
            && let Some(memory) = arena().take(layout)
        {
            // SAFETY: the memory is as long as the layout says, and no one else uses it.
            unsafe { memory.write_bytes(0, layout.size()) };
            return memory;
        }
        // SAFETY: the caller's.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        if arena::contains(memory) {
            // SAFETY: it came from the arena, and the caller does not use it any more.
            unsafe { arena().give(memory, layout) };
        } else {
            // SAFETY: the caller's, and it came from the system's allocator.
            unsafe { System.dealloc(memory, layout) };
        }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if !arena::contains(memory) {
            // SAFETY: the caller's, and it came from the system's allocator.
            return unsafe { System.realloc(memory, layout, size) };
        }
        // SAFETY: the caller says that the size is a possible one.
        let new = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        // SAFETY: the caller says that the size is not zero.
        let moved = unsafe { self.alloc(new) };
        if !moved.is_null() {
            // SAFETY: both blocks have at least this length, and do not overlap because one is new; the old
            // block came from this allocator.
            unsafe {
                moved.copy_from_nonoverlapping(memory, layout.size().min(size));
                self.dealloc(memory, layout);
            }
        }
        moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mapping_is_found_by_its_address() {
        let maps = "\
7f0000000000-7f0000200000 rw-p 00000000 00:00 0
Rss:                 100 kB
AnonHugePages:         0 kB
7f0000200000-7f0020200000 rw-p 00000000 00:00 0
Size:             524288 kB
Rss:                5000 kB
AnonHugePages:      4096 kB
VmFlags: rd wr mr mw me ac sd hg
";
        assert_eq!(resident_at(maps, 0x7f00_0020_0000), Some((5000, 4096)));
        assert_eq!(resident_at(maps, 0x7f00_0000_0000), Some((100, 0)));
        assert_eq!(resident_at(maps, 0x1000), None);
    }

    #[test]
    fn vectors_grow_and_shrink_in_huge_pages_and_move_between_them() {
        if !reserve() {
            return;
        }
        let mut growing = vec![7u8; 100];
        Pages::Huge.with(|| {
            let mut inside = vec![1u8; 10];
            assert!(arena::contains(inside.as_ptr()));
            for round in 0..200_000u32 {
                inside.push(round as u8);
            }
            assert!(inside[10..].iter().zip(0u32..).all(|(&byte, round)| byte == round as u8));
            inside.truncate(3);
            inside.shrink_to_fit();
            assert_eq!(inside, [1, 1, 1]);
            let zeros = vec![0u8; 200_000];
            assert!(zeros.iter().all(|&byte| byte == 0), "memory that was used before");
            growing = inside;
        });
        growing.resize(5000, 2);
        assert_eq!((growing[2], growing[4999]), (1, 2));
    }
}

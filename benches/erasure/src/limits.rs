//! The limits of the machine, measured in the same run: reading, copying, multiplying.

#[cfg(target_arch = "x86_64")]
mod x86;

use crate::{
    SYMBOLS,
    buffers::{SLOT, Slot, Symbols},
    cases::Case,
    measure::{Kind, Race},
};
use std::hint::black_box;

/// Reading the very symbols that a race works on, with the widest loads. The place of their pages and the
/// time of measuring both matter, so this limit is measured in turns with the other entries.
pub const READ: &str = "read";
/// Reading some of the source symbols, by the cache level with room for them; the last set exceeds the usual
/// L2 caches.
pub const L2: &str = "read-l2";
pub const L3: &str = "read-3m";
/// Multiplying in registers with GFNI.
pub const ALU: &str = "alu";
/// Cycles in a second.
pub const CLOCK: &str = "clock";

/// Working sets: limit, the same with AVX2, name, slots.
const SETS: [(&str, &str, &str, usize); 4] = [
    ("read-l1", "read-l1-avx2", "32 KiB", (32 << 10) / SLOT),
    (L2, "read-l2-avx2", "256 KiB", (256 << 10) / SLOT),
    ("read-l2-large", "read-l2-large-avx2", "1.5 MiB", (3 << 19) / SLOT),
    (L3, "read-3m-avx2", "3 MB", SYMBOLS),
];

/// A loop that reads memory, and the name of its loads.
struct Reader {
    loads: &'static str,
    read: fn(&[Slot]),
}

/// A loop that multiplies the given number of bytes in registers.
struct Multiplier {
    name: &'static str,
    multiply: fn(usize),
}

/// The widest first.
fn readers() -> Vec<Reader> {
    #[cfg(target_arch = "x86_64")]
    return x86::readers();
    #[cfg(not(target_arch = "x86_64"))]
    Vec::new()
}

/// The widest first.
fn multipliers() -> Vec<Multiplier> {
    #[cfg(target_arch = "x86_64")]
    return x86::multipliers();
    #[cfg(not(target_arch = "x86_64"))]
    Vec::new()
}

/// Loads of any width.
pub const ANY: &str = "";
/// Loads of 256 bits.
pub const AVX2: &str = "AVX2";

/// Adds [reading](READ) the first `n` symbols, with the widest `loads` of that name.
pub fn read<'a>(race: &mut Race<'a>, sources: &'a Symbols, n: usize, loads: &str) {
    let set = &sources.memory()[..n];
    let reader = readers().into_iter().find(|reader| loads == ANY || loads == reader.loads);
    if let Some(Reader { loads, read }) = reader {
        let label = format!("reading these symbols, {loads} loads");
        race.add_loop((READ, &label, Kind::Limit), size_of_val(set), move || read(black_box(set)));
    }
}

/// The race of the limits. It reads the memory of the source symbols themselves.
pub fn race(sources: &Symbols) -> Race<'_> {
    let mut race = Race::new(Case::Limits, "limits", 0);
    let memory = sources.memory();
    for (rank, reader) in readers().into_iter().enumerate() {
        for (widest, avx2, name, slots) in SETS {
            let id = if rank == 0 { widest } else { avx2 };
            let label = format!("read {name}, {} loads", reader.loads);
            let (set, read) = (&memory[..slots], reader.read);
            race.add_loop((id, &label, Kind::Limit), size_of_val(set), move || {
                read(black_box(set));
            });
        }
    }
    for (id, name, slots) in
        [("copy-l2", "256 KiB", (256 << 10) / SLOT), ("copy-3m", "3 MB", SYMBOLS)]
    {
        let from = &memory[..slots];
        let mut to = vec![Slot::ZERO; slots];
        let label = format!("copy {name}, memcpy");
        race.add_loop((id, &label, Kind::Limit), size_of_val(from), move || {
            black_box(&mut to).copy_from_slice(black_box(from));
        });
    }
    for (rank, Multiplier { name, multiply }) in multipliers().into_iter().enumerate() {
        const BYTES: usize = 3 << 19;
        let id = if rank == 0 { ALU } else { "alu-ymm" };
        let label = format!("multiply in registers, {name}");
        race.add_loop((id, &label, Kind::Limit), BYTES, move || multiply(black_box(BYTES)));
    }
    // The latency of a multiplication is the same on all CPUs worth measuring.
    const LATENCY: usize = 3;
    const STEPS: usize = 1000;
    let label = format!("clock, if a multiplication takes {LATENCY} cycles");
    race.add_loop((CLOCK, &label, Kind::Limit), LATENCY * STEPS, || {
        let mut x = black_box(3u64);
        for _ in 0..STEPS {
            x = x.wrapping_mul(x);
        }
        black_box(x);
    });
    race
}

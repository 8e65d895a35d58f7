//! Loops with vector instructions, which need `unsafe` code.
#![allow(unsafe_code, reason = "vector loads, and functions that need instructions of the CPU")]

use super::{Multiplier, Reader};
use crate::buffers::Slot;
use std::{arch::x86_64::*, hint::black_box, is_x86_feature_detected as has};

pub fn readers() -> Vec<Reader> {
    let mut readers = Vec::new();
    if has!("avx512f") {
        // SAFETY: the CPU has the instructions.
        readers.push(Reader { loads: "AVX-512", read: |memory| unsafe { read_512(memory) } });
    }
    if has!("avx2") {
        // SAFETY: the CPU has the instructions.
        readers.push(Reader { loads: "AVX2", read: |memory| unsafe { read_256(memory) } });
    }
    readers
}

pub fn multipliers() -> Vec<Multiplier> {
    let mut multipliers = Vec::new();
    if has!("avx512f") && has!("gfni") {
        multipliers.push(Multiplier {
            name: "GFNI, 512 bits",
            // SAFETY: the CPU has the instructions.
            multiply: |bytes| unsafe { multiply_512(bytes) },
        });
    }
    if has!("avx2") && has!("gfni") {
        multipliers.push(Multiplier {
            name: "GFNI, 256 bits",
            // SAFETY: the CPU has the instructions.
            multiply: |bytes| unsafe { multiply_256(bytes) },
        });
    }
    multipliers
}

/// Number of sums that do not wait for each other. It divides a slot evenly in registers of either size.
const SUMS: usize = 8;

#[target_feature(enable = "avx512f")]
fn read_512(memory: &[Slot]) {
    const WIDTH: usize = 64;
    let mut sums = [_mm512_setzero_si512(); SUMS];
    for slot in memory {
        for step in slot.0.as_chunks::<{ SUMS * WIDTH }>().0 {
            for (sum, bytes) in sums.iter_mut().zip(step.as_chunks::<WIDTH>().0) {
                // SAFETY: these are as many bytes as are loaded, and no alignment is needed.
                let loaded = unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) };
                *sum = _mm512_xor_si512(*sum, loaded);
            }
        }
    }
    black_box(sums);
}

#[target_feature(enable = "avx2")]
fn read_256(memory: &[Slot]) {
    const WIDTH: usize = 32;
    let mut sums = [_mm256_setzero_si256(); SUMS];
    for slot in memory {
        for step in slot.0.as_chunks::<{ SUMS * WIDTH }>().0 {
            for (sum, bytes) in sums.iter_mut().zip(step.as_chunks::<WIDTH>().0) {
                // SAFETY: these are as many bytes as are loaded, and no alignment is needed.
                let loaded = unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) };
                *sum = _mm256_xor_si256(*sum, loaded);
            }
        }
    }
    black_box(sums);
}

/// Number of chains of multiplications that do not wait for each other: more than the latency of a
/// multiplication times the number of multiplications that start in a cycle.
const CHAINS: usize = 12;

#[target_feature(enable = "avx512f,gfni")]
fn multiply_512(bytes: usize) {
    let matrix = _mm512_set1_epi64(black_box(0x0102_0408_1020_4081));
    let mut chains = [_mm512_set1_epi8(black_box(1)); CHAINS];
    for _ in 0..bytes / (64 * CHAINS) {
        for chain in &mut chains {
            *chain = _mm512_gf2p8affine_epi64_epi8::<0>(*chain, matrix);
        }
    }
    black_box(chains);
}

#[target_feature(enable = "avx2,gfni")]
fn multiply_256(bytes: usize) {
    let matrix = _mm256_set1_epi64x(black_box(0x0102_0408_1020_4081));
    let mut chains = [_mm256_set1_epi8(black_box(1)); CHAINS];
    for _ in 0..bytes / (32 * CHAINS) {
        for chain in &mut chains {
            *chain = _mm256_gf2p8affine_epi64_epi8::<0>(*chain, matrix);
        }
    }
    black_box(chains);
}

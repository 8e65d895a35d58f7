use super::*;
use crate::gf256;
use alloc::{vec, vec::Vec};
use core::ops::Range;

/// Lengths for every case of the loops: less than a register, several tiles, and every remainder.
fn lengths() -> impl Iterator<Item = usize> {
    let all = (0..=200).chain([255, 384, 511, 767, 1500, 1536, 1600, 3100]);
    // Miri is slow, and a few lengths suffice for it.
    all.step_by(if cfg!(miri) { 23 } else { 1 })
}

const OFFSETS: [usize; 4] = [0, 1, 7, 33];

/// Allocated with exactly this length, so that AddressSanitizer detects accesses past its end.
fn region(len: usize, salt: usize) -> Vec<u8> {
    (0..len).map(|i| ((i * 31 + (i >> 8) * 57 + salt * 97) % 251) as u8).collect()
}

/// Shortens a region and its allocation.
fn shorten(region: &mut Vec<u8>, len: usize) {
    *region = region[..len].to_vec();
}

/// Regions that start `offset` bytes into their allocation.
fn regions(count: usize, len: usize, offset: usize) -> Vec<Vec<u8>> {
    (0..count).map(|salt| region(len + offset, salt + 1)).collect()
}

fn behind(regions: &[Vec<u8>], offset: usize) -> Vec<&[u8]> {
    regions.iter().map(|region| &region[offset..]).collect()
}

/// The kernels that are compared with the scalar one.
fn vector_tiers() -> impl Iterator<Item = Kernel> {
    Kernel::available().filter(|kernel| kernel.tier() != Tier::Scalar)
}

#[test]
fn scalar_products_are_those_of_the_field() {
    let elements: Vec<u8> = (0..=255).collect();
    let kernel = Kernel::scalar();
    for c in 0..=255 {
        let expected: Vec<u8> = elements.iter().map(|&e| gf256::mul(c, e)).collect();
        // An odd length, so that single bytes occur too.
        for from in [0, 3] {
            let mut scaled = elements[from..].to_vec();
            kernel.scale(&mut scaled, c);
            assert_eq!(scaled, expected[from..], "scale by {c}");
            let mut sum = vec![0; 256 - from];
            kernel.mad(&mut sum, &elements[from..], c);
            assert_eq!(sum, expected[from..], "mad with {c}");
        }
    }
}

/// Applies each operation to part of a region, and compares every result with the result of the scalar
/// kernel.
fn check(
    kernel: Kernel,
    before: &[u8],
    range: Range<usize>,
    coefficients: &[u8],
    sources: &[&[u8]],
    c: u8,
) {
    type Operation<'a> = &'a dyn Fn(Kernel, &mut [u8]);
    let terms = || coefficients.iter().copied().zip(sources.iter().copied());
    let operations: [(&str, Operation<'_>); 5] = [
        ("dot", &|kernel, dst| kernel.dot(dst, coefficients, sources)),
        ("sum", &|kernel, dst| kernel.sum(dst, sources)),
        ("dot of terms", &|kernel, dst| kernel.dot_terms(dst, terms())),
        ("mad", &|kernel, dst| sources.iter().take(1).for_each(|src| kernel.mad(dst, src, c))),
        ("scale", &|kernel, dst| kernel.scale(dst, c)),
    ];
    let (mut expected, mut dst) = (before.to_vec(), before.to_vec());
    for (operation, act) in operations {
        act(Kernel::scalar(), &mut expected[range.clone()]);
        act(kernel, &mut dst[range.clone()]);
        let lengths = || sources.iter().map(|source| source.len()).collect::<Vec<_>>();
        assert!(dst == expected, "{kernel:?}: {operation} of {:?} to {range:?}, {c}", lengths());
    }
}

#[test]
fn every_tier_multiplies_by_every_coefficient() {
    for kernel in vector_tiers() {
        for c in 0..=255u8 {
            for (len, offset) in [(256, 0), (1500, 1), (203, 3)] {
                let (src, dst) = (region(len + offset, 1), region(len + offset, 2));
                let sources = [&src[offset..], &dst[offset..], &src[offset..]];
                let coefficients = [c, c ^ 0x55, c.wrapping_mul(3)];
                check(kernel, &dst, offset..offset + len, &coefficients, &sources, c);
            }
        }
    }
}

#[test]
fn every_tier_agrees_on_every_length_and_offset_and_stays_inside_allocations() {
    for kernel in vector_tiers() {
        for len in lengths() {
            for offset in OFFSETS {
                for count in [1, 2, 5] {
                    let sources = regions(count, len, offset);
                    let sources = behind(&sources, offset);
                    let coefficients: Vec<u8> = (0..count).map(|i| (i * 83 + len) as u8).collect();
                    let range = offset..offset + len;
                    let before = region(len + offset + 3, 99);
                    check(kernel, &before, range, &coefficients, &sources, 77);
                }
            }
            let sources = regions(3, len, 0);
            // As long as the sources, longer and shorter.
            for dst_len in [len, len + 5, len.saturating_sub(5)] {
                let before = region(dst_len, 98);
                check(kernel, &before, 0..dst_len, &[3, 77, 200], &behind(&sources, 0), 201);
            }
        }
    }
}

#[test]
fn every_tier_agrees_on_every_number_of_sources() {
    for kernel in vector_tiers() {
        for count in (0..20).chain([127, 128, 129, 300]) {
            let mut regions = regions(count, 150, 0);
            let coefficients: Vec<u8> = (0..count).map(|i| (i * 7) as u8).collect();
            let before = region(150, 99);
            check(kernel, &before, 0..150, &coefficients, &behind(&regions, 0), 77);
            // Some of the sources have other lengths.
            for (i, region) in regions.iter_mut().enumerate().skip(1).step_by(3) {
                shorten(region, i % 150);
            }
            check(kernel, &before, 0..150, &coefficients, &behind(&regions, 0), 77);
        }
    }
}

/// Multiplies `count` sources into `rows` destinations, some of them shorter if `short`.
fn check_matmul(kernel: Kernel, rows: usize, count: usize, len: usize, short: bool) {
    let (mut sources, mut before) = (regions(count, len, 1), regions(rows, len, 3));
    if short {
        for (i, source) in sources.iter_mut().enumerate().skip(1).step_by(3) {
            shorten(source, 1 + len - i % len);
        }
        for (i, dst) in before.iter_mut().enumerate() {
            shorten(dst, 3 + len - (i * 7) % len);
        }
    }
    let sources = behind(&sources, 1);
    let (mut expected, mut dsts) = (before.clone(), before);
    let coefficients: Vec<u8> = (0..rows * count).map(|i| (i * 37 % 256) as u8).collect();
    for (dst, row) in expected.iter_mut().zip(coefficients.chunks(count)) {
        Kernel::scalar().dot(&mut dst[3..], row, &sources);
    }
    let mut slices: Vec<&mut [u8]> = dsts.iter_mut().map(|dst| &mut dst[3..]).collect();
    kernel.matmul(&mut slices, &coefficients, &sources);
    assert_eq!(dsts, expected, "{kernel:?}: {rows} x {count} of {len}, some shorter: {short}");
}

#[test]
fn every_tier_agrees_on_products_of_matrices() {
    for kernel in Kernel::available() {
        for rows in (1..=14).chain([50]) {
            for count in [1, 2, 3, 9, 130] {
                for len in [1, 16, 63, 64, 200, 450, 1500] {
                    check_matmul(kernel, rows, count, len, false);
                    check_matmul(kernel, rows, count, len, true);
                }
            }
        }
        for len in 1..=200 {
            check_matmul(kernel, 5, 4, len, false);
        }
        for c in 0..=255u8 {
            let source = region(300, 1);
            let [mut a, mut b] = [region(300, 2), region(300, 3)];
            let (mut x, mut y) = (a.clone(), b.clone());
            kernel.matmul(&mut [&mut a, &mut b], &[c, !c], &[&source]);
            Kernel::scalar().mad(&mut x, &source, c);
            Kernel::scalar().mad(&mut y, &source, !c);
            assert_eq!((a, b), (x, y), "{kernel:?}: {c}");
        }
        kernel.matmul(&mut [], &[], &[&[1, 2]]);
        kernel.matmul(&mut [&mut [1], &mut [2]], &[], &[]);
    }
}

#[test]
fn shorter_regions_are_padded_and_longer_ones_cut() {
    for kernel in Kernel::available() {
        for c in [1, 77] {
            let mut long = region(140, 1);
            kernel.mad(&mut long, &region(121, 2), c);
            assert_eq!(long[121..], region(140, 1)[121..]);
            let mut short = region(121, 1);
            kernel.mad(&mut short, &region(140, 2), c);
            assert_eq!(long[..121], short);
        }
    }
}

#[test]
fn the_best_kernel_is_the_last_that_runs() {
    let best = Kernel::best().tier();
    assert_eq!(Kernel::available().last().map(Kernel::tier), Some(best));
    assert_eq!(Kernel::new(Tier::Scalar).map(Kernel::tier), Some(Tier::Scalar));
    for tier in Tier::ALL {
        assert!(Kernel::new(tier).is_none_or(|kernel| kernel.tier() == tier));
    }
}

#[test]
fn targets_that_promise_vector_instructions_have_their_tier() {
    let has = |tier| Kernel::new(tier).is_some();
    assert_eq!(has(Tier::Neon), cfg!(target_arch = "aarch64"));
    let simd128 = cfg!(all(target_arch = "wasm32", target_feature = "simd128"));
    assert_eq!(has(Tier::Simd128), simd128);
    // On x86-64 it depends on the machine, unless the program is compiled for a specific one.
    let avx2 = cfg!(all(target_arch = "x86_64", target_feature = "avx2"));
    assert!(has(Tier::Avx2) || !avx2);
}

#[test]
#[should_panic(expected = "a coefficient for each source")]
fn a_missing_coefficient_is_a_mistake_of_the_caller() {
    Kernel::best().dot(&mut [0; 4], &[1], &[&[1], &[2]]);
}

#[test]
fn zeros_are_counted() {
    assert!(is_zero(&[]) && is_zero(&[0; 50]) && !is_zero(&[0, 0, 4]));
    assert_eq!((weight(&[]), weight(&[0, 3, 0, 1])), (0, 2));
}

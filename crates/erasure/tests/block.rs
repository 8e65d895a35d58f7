//! Compares the block codes with a textbook decoder: Gaussian elimination over everything received.
#![allow(clippy::unwrap_used, reason = "a failure here is a failed test")]

mod naive;

use naive::{inverse, mul};
use proptest::prelude::*;
use sutura_erasure::{
    Encoder, WindowLimits,
    block::{
        BlockCode, BlockError, Decoded, LdpcStaircase, ParameterError, RandomLinear, ReedSolomon,
        Xor2d,
    },
    kernel::Kernel,
};

/// The coefficients of each repair symbol: a coefficient for each source symbol.
type Generator = Vec<Vec<u8>>;

fn reed_solomon_generator(k: usize, m: usize) -> Generator {
    let element = |i: usize, j: usize| mul(255 ^ j as u8, inverse((255 - i as u8) ^ j as u8));
    (0..m).map(|i| (0..k).map(|j| element(i, j)).collect()).collect()
}

fn random_linear_generator(k: usize, m: usize, key: u32) -> Generator {
    let row = |i: usize| {
        let key = key.wrapping_add(i as u32);
        (0..k as u64).map(|id| naive::coefficient(key, id)).collect()
    };
    (0..m).map(row).collect()
}

fn xor_generator(k: usize, columns: usize) -> Generator {
    let rows = (0..k.div_ceil(columns))
        .map(|row| (0..k).map(|j| u8::from(j / columns == row)).collect::<Vec<u8>>());
    let columns =
        (0..columns).map(|column| (0..k).map(|j| u8::from(j % columns == column)).collect());
    rows.chain(columns).collect()
}

/// Uses the rows that the code reports, which the test vectors check.
fn ldpc_generator(code: &LdpcStaircase) -> Generator {
    let mut sum = vec![0; code.sources()];
    let row = |i| {
        for &j in code.row(i) {
            sum[usize::from(j)] ^= 1;
        }
        sum.clone()
    };
    (0..code.repairs()).map(row).collect()
}

/// Which source symbols are determined by the present symbols.
fn determined(generator: &Generator, k: usize, present: &[bool]) -> Vec<bool> {
    let unit = |j: usize| (0..k).map(|other| u8::from(other == j)).collect::<Vec<u8>>();
    let rows = (0..k + generator.len())
        .filter(|&symbol| present[symbol])
        .map(|symbol| if symbol < k { unit(symbol) } else { generator[symbol - k].clone() });
    naive::determined(rows, k)
}

/// The simplest form of the rule: while some row or column has its repair symbol and lacks one
/// source symbol, that symbol is recovered.
fn peel(k: usize, columns: usize, present: &[bool]) -> Vec<bool> {
    let generator = xor_generator(k, columns);
    let mut found = present[..k].to_vec();
    loop {
        let next = generator.iter().zip(&present[k..]).find_map(|(line, &usable)| {
            let mut lost = (0..k).filter(|&j| line[j] == 1 && !found[j]);
            lost.next().filter(|_| usable && lost.next().is_none())
        });
        match next {
            Some(j) => found[j] = true,
            None => return found,
        }
    }
}

fn content(k: usize, len: usize) -> Vec<Vec<u8>> {
    (0..k).map(|j| (0..len).map(|at| (j * 89 + at * at * 13 + j * at) as u8).collect()).collect()
}

fn slices(symbols: &mut [Vec<u8>]) -> Vec<&mut [u8]> {
    symbols.iter_mut().map(Vec::as_mut_slice).collect()
}

fn repairs(code: &dyn BlockCode, sources: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let sources: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
    let mut repairs = vec![vec![0x55; sources[0].len()]; code.repairs()];
    code.encode(&sources, &mut slices(&mut repairs)).unwrap();
    repairs
}

/// A complete block.
fn block(code: &dyn BlockCode, len: usize) -> Vec<Vec<u8>> {
    let mut block = content(code.sources(), len);
    block.extend(repairs(code, &block));
    block
}

/// The repair symbols according to the generator.
fn expected_repairs(generator: &Generator, sources: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let repair = |row: &Vec<u8>| {
        let mut sum = vec![0; sources[0].len()];
        for (source, &c) in sources.iter().zip(row) {
            for (byte, s) in sum.iter_mut().zip(source) {
                *byte ^= mul(c, *s);
            }
        }
        sum
    };
    generator.iter().map(repair).collect()
}

/// Decodes the present symbols. Checks that afterwards the `expected` source symbols are present
/// with the right bytes, and that all other symbols are as the trait documents.
fn check(code: &dyn BlockCode, block: &[Vec<u8>], present: &[bool], expected: &[bool]) {
    let k = code.sources();
    let mut symbols = block.to_vec();
    for (symbol, _) in symbols.iter_mut().zip(present).filter(|(_, present)| !**present) {
        symbol.fill(0xEE);
    }
    let mut flags = present.to_vec();
    let decoded = code.decode(&mut slices(&mut symbols), &mut flags).unwrap();
    let missing = |flags: &[bool]| flags.iter().filter(|&&there| !there).count();
    let after = missing(expected);
    assert_eq!(flags[..k], *expected, "from {present:?}");
    assert_eq!(decoded, Decoded { recovered: missing(&present[..k]) - after, missing: after });
    assert_eq!(decoded.is_complete(), after == 0);
    for (symbol, there) in flags.iter().enumerate() {
        assert!(*there || !present[symbol], "flag {symbol} was cleared");
        assert!(!there || symbols[symbol] == block[symbol], "symbol {symbol} from {present:?}");
    }
}

/// All patterns of losses.
fn patterns(symbols: usize) -> impl Iterator<Item = Vec<bool>> {
    (0..1_u32 << symbols).map(move |bits| (0..symbols).map(|at| bits >> at & 1 == 1).collect())
}

#[test]
fn reed_solomon_recovers_up_to_m_losses_whichever_they_are() {
    for (k, m) in [(1, 0), (1, 3), (2, 2), (5, 1), (5, 5), (7, 4), (3, 8)] {
        let code = ReedSolomon::new(k, m).unwrap();
        let block = block(&code, 67);
        for present in patterns(k + m) {
            let lost = present.iter().filter(|&&there| !there).count();
            let expected = if lost <= m { vec![true; k] } else { present[..k].to_vec() };
            check(&code, &block, &present, &expected);
        }
    }
}

#[test]
fn random_linear_recovers_what_is_determined() {
    for (k, m, key) in [(1, 2, 0), (4, 4, 9), (6, 5, u32::MAX - 1), (3, 7, 77)] {
        let code = RandomLinear::new(k, m, key).unwrap();
        let (block, generator) = (block(&code, 19), random_linear_generator(k, m, key));
        for present in patterns(k + m) {
            check(&code, &block, &present, &determined(&generator, k, &present));
        }
    }
}

/// For some keys, a square part of the coefficient matrix is singular, so that a decoder has to use
/// another repair symbol or give up.
#[test]
fn random_linear_gets_along_with_repair_symbols_that_say_the_same() {
    let k = 2;
    let dependent = |key: u32| {
        let rows = random_linear_generator(k, 2, key);
        mul(rows[0][0], rows[1][1]) == mul(rows[0][1], rows[1][0])
    };
    let keys: Vec<u32> = (0..5000).filter(|&key| dependent(key)).take(5).collect();
    assert_eq!(keys.len(), 5);
    for key in keys {
        let code = RandomLinear::new(k, 3, key).unwrap();
        let block = block(&code, 5);
        check(&code, &block, &[false, false, true, true, false], &[false, false]);
        check(&code, &block, &[false, false, true, true, true], &[true, true]);
    }
}

#[test]
fn random_linear_is_the_code_of_the_window() {
    let (k, key) = (9, 41);
    let mut window = Encoder::new(WindowLimits::default());
    let mut sources = Vec::new();
    for j in 0..k as usize {
        let symbol = &content(k as usize, 30)[j][..5 + 2 * j];
        window.push(symbol).unwrap();
        sources.push(naive::framed(symbol, 23));
    }
    let code = RandomLinear::new(k as usize, 3, key).unwrap();
    for (i, repair) in (0..).zip(repairs(&code, &sources)) {
        let mut expected = Vec::new();
        window.repair(0..k, key + i, &mut expected).unwrap();
        assert_eq!(repair, expected);
    }
}

#[test]
fn xor_2d_recovers_what_peeling_does() {
    for (k, columns) in [(1, 1), (4, 2), (5, 3), (7, 3), (6, 1), (4, 4), (8, 4)] {
        let code = Xor2d::new(k, columns).unwrap();
        let (block, generator) = (block(&code, 9), xor_generator(k, columns));
        for present in patterns(k + code.repairs()) {
            let expected = peel(k, columns, &present);
            // Peeling recovers most symbols that are determined, and is never wrong.
            let determined = determined(&generator, k, &present);
            assert!(expected.iter().zip(&determined).all(|(peeled, found)| peeled <= found));
            check(&code, &block, &present, &expected);
        }
    }
}

#[test]
fn ldpc_staircase_recovers_what_is_determined() {
    for (k, m, degree, seed) in
        [(2, 3, 3, 1), (4, 6, 3, 5), (6, 4, 3, 2), (6, 4, 4, 3), (7, 6, 5, 4), (3, 8, 3, 2026)]
    {
        let code = LdpcStaircase::new(k, m, degree, seed).unwrap();
        let (block, generator) = (block(&code, 9), ldpc_generator(&code));
        for present in patterns(k + m) {
            check(&code, &block, &present, &determined(&generator, k, &present));
        }
    }
}

#[test]
fn ldpc_staircase_needs_elimination_and_does_it() {
    // Some bursts of eight leave no equation with a single loss, yet all their symbols are
    // determined.
    let code = LdpcStaircase::new(60, 12, 3, 1).unwrap();
    let (block, generator) = (block(&code, 33), ldpc_generator(&code));
    let mut stuck = 0;
    for start in 0..60 {
        let lost = |j: usize| (j + 60 - start) % 60 < 8;
        let present: Vec<bool> = (0..72).map(|symbol| symbol >= 60 || !lost(symbol)).collect();
        let single =
            (0..12).any(|row| code.row(row).iter().filter(|&&j| lost(usize::from(j))).count() == 1);
        let expected = determined(&generator, 60, &present);
        stuck += usize::from(!single && expected.iter().all(|&there| there));
        check(&code, &block, &present, &expected);
    }
    assert!(stuck > 0, "iterative decoding would have done");
}

/// The effort is bounded no matter how many symbols are lost; up to the bound, all losses that can be
/// recovered are.
#[test]
fn ldpc_staircase_does_not_eliminate_beyond_its_bound() {
    let (k, m, bound) = (2000, 1060, LdpcStaircase::MAX_ML_UNKNOWNS);
    // With so many ones in a column, the iterative algorithm recovers none of the losses here.
    let code = LdpcStaircase::new(k, m, 10, 7).unwrap();
    let block = block(&code, 2);
    for (lost, recovered) in [(bound, bound), (bound + 1, 0), (k, 0)] {
        let mut symbols = block.clone();
        let mut present = vec![true; k + m];
        present[..lost].fill(false);
        let decoded = code.decode(&mut slices(&mut symbols), &mut present).unwrap();
        assert_eq!(decoded, Decoded { recovered, missing: lost - recovered });
        assert!(recovered == 0 || symbols == block);
    }
    let mut present = vec![false; k + m];
    let nothing = code.decode(&mut slices(&mut block.clone()), &mut present).unwrap();
    assert_eq!(nothing, Decoded { recovered: 0, missing: k });
    assert!(present.iter().all(|&there| !there));
}

#[test]
fn the_largest_random_linear_systems_are_solved_or_refused() {
    let (k, m) = (1500, RandomLinear::MAX_REPAIRS);
    let code = RandomLinear::new(k, m, 1).unwrap();
    let block = block(&code, 2);
    for (lost, recovered) in [(m - 2, m - 2), (m + 40, 0)] {
        let mut symbols = block.clone();
        let mut present = vec![true; k + m];
        present[..lost].fill(false);
        let decoded = code.decode(&mut slices(&mut symbols), &mut present).unwrap();
        assert_eq!(decoded, Decoded { recovered, missing: lost - recovered });
        assert!(recovered == 0 || symbols == block);
    }
}

#[test]
fn all_kernels_make_and_recover_the_same() {
    let k = 23;
    let codes = |kernel: Kernel| -> [Box<dyn BlockCode>; 4] {
        [
            Box::new(ReedSolomon::new(k, 7).unwrap().with_kernel(kernel)),
            Box::new(RandomLinear::new(k, 7, 3).unwrap().with_kernel(kernel)),
            Box::new(Xor2d::new(k, 5).unwrap().with_kernel(kernel)),
            Box::new(LdpcStaircase::new(k, 7, 3, 5).unwrap().with_kernel(kernel)),
        ]
    };
    // Around the lengths of registers and of packets.
    for len in [0, 1, 15, 31, 32, 33, 63, 64, 65, 100, 127, 128, 191, 255, 257, 1200, 1500, 1536] {
        let first = codes(Kernel::available().next().unwrap()).map(|code| block(&*code, len));
        for kernel in Kernel::available() {
            for (code, expected) in codes(kernel).iter().zip(&first) {
                assert!(block(&**code, len) == *expected, "{kernel:?}, {len} bytes");
                let mut present = vec![true; expected.len()];
                present[3..6].fill(false);
                check(&**code, expected, &present, &vec![true; k]);
            }
        }
    }
}

#[test]
fn parameters_are_bounded() {
    use ParameterError::{Columns, Degree, Repairs, Seed, Sources};
    let new = |k, m| ReedSolomon::new(k, m).err();
    assert_eq!([new(1, 255), new(256, 0)], [None; 2]);
    assert_eq!([new(0, 1), new(257, 0)], [Some(Sources); 2]);
    assert_eq!([new(256, 1), new(1, usize::MAX)], [Some(Repairs); 2]);

    let (k, m) = (RandomLinear::MAX_SOURCES, RandomLinear::MAX_REPAIRS);
    let new = |k, m| RandomLinear::new(k, m, u32::MAX).err();
    assert_eq!([new(k, m), new(1, m + 1)], [None, Some(Repairs)]);
    assert_eq!([new(0, 1), new(k + 1, 1)], [Some(Sources); 2]);

    let k = Xor2d::MAX_SOURCES;
    let new = |k, columns| Xor2d::new(k, columns).err();
    assert_eq!([new(k, 1), new(k, k)], [None; 2]);
    assert_eq!([new(0, 1), new(k + 1, 1)], [Some(Sources); 2]);
    assert_eq!([new(3, 0), new(3, 4)], [Some(Columns); 2]);

    let (k, m) = (LdpcStaircase::MAX_SOURCES, LdpcStaircase::MAX_REPAIRS);
    let new = |k, m, degree, seed| LdpcStaircase::new(k, m, degree, seed).err();
    assert_eq!([new(k, m, 10, 0x7FFF_FFFE), new(5, m + 1, 3, 1)], [None, Some(Repairs)]);
    assert_eq!([new(1, 5, 3, 1), new(k + 1, 5, 3, 1)], [Some(Sources); 2]);
    assert_eq!([new(5, 5, 2, 1), new(50, 50, 11, 1), new(5, 3, 4, 1)], [Some(Degree); 3]);
    assert_eq!([new(5, 5, 3, 0), new(5, 5, 3, 0x7FFF_FFFF)], [Some(Seed); 2]);
}

#[test]
fn blocks_of_the_wrong_shape_are_refused_untouched() {
    let codes: [Box<dyn BlockCode>; 4] = [
        Box::new(ReedSolomon::new(6, 5).unwrap()),
        Box::new(RandomLinear::new(6, 5, 3).unwrap()),
        Box::new(Xor2d::new(6, 3).unwrap()),
        Box::new(LdpcStaircase::new(6, 5, 3, 5).unwrap()),
    ];
    for code in codes {
        let (k, m) = (code.sources(), code.repairs());
        assert_eq!((k, m), (6, 5));
        let count = |expected, given| Err(BlockError::Count { expected, given });
        let encode = |sources: &[Vec<u8>], repairs: usize, len: usize| {
            let sources: Vec<&[u8]> = sources.iter().map(Vec::as_slice).collect();
            let mut repairs = vec![vec![0x55; len]; repairs];
            let result = code.encode(&sources, &mut slices(&mut repairs));
            assert!(result.is_ok() || repairs.iter().flatten().all(|&byte| byte == 0x55));
            result
        };
        assert_eq!(encode(&content(k, 8), m, 8), Ok(()));
        assert_eq!(encode(&content(k - 1, 8), m, 8), count(k, k - 1));
        assert_eq!(encode(&content(k + 1, 8), m, 8), count(k, k + 1));
        assert_eq!(encode(&content(k, 8), m - 1, 8), count(m, m - 1));
        assert_eq!(encode(&content(k, 8), m, 7), Err(BlockError::Length));

        let decode = |lengths: &[usize], flags: usize| {
            let mut symbols: Vec<Vec<u8>> = lengths.iter().map(|&len| vec![0xEE; len]).collect();
            let mut present = vec![true; flags];
            present[0] = false;
            let result = code.decode(&mut slices(&mut symbols), &mut present);
            let touched = symbols.iter().flatten().any(|&byte| byte != 0xEE) || present[0];
            assert!(result.is_ok() || !touched);
            result.map(|_| ())
        };
        let mut lengths = vec![8; k + m];
        assert_eq!(decode(&lengths, k + m), Ok(()));
        assert_eq!(decode(&lengths, k + m - 1), count(k + m, k + m - 1));
        assert_eq!(decode(&lengths[1..], k + m), count(k + m, k + m - 1));
        lengths[k + m - 1] = 9;
        assert_eq!(decode(&lengths, k + m), Err(BlockError::Length));
        lengths[k + m - 1] = 8;
        lengths[0] = 7;
        assert_eq!(decode(&lengths, k + m), Err(BlockError::Length));
    }
}

/// Which of `symbols` symbols are present: each is lost with a probability of `percent`.
fn losses(symbols: usize) -> impl Strategy<Value = Vec<bool>> {
    (0..=100_u32).prop_flat_map(move |percent| {
        prop::collection::vec((0..100_u32).prop_map(move |roll| roll >= percent), symbols)
    })
}

fn verify(code: &dyn BlockCode, generator: &Generator, len: usize, present: &[bool]) {
    let block = block(code, len);
    let k = code.sources();
    assert_eq!(block[k..], expected_repairs(generator, &block[..k]));
    check(code, &block, present, &determined(generator, k, present));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(160))]

    #[test]
    fn reed_solomon_beside_the_textbook(
        (k, m, present) in (1..40_usize, 0..20_usize)
            .prop_flat_map(|(k, m)| (Just(k), Just(m), losses(k + m))),
        len in 0..200_usize,
    ) {
        let code = ReedSolomon::new(k, m).unwrap();
        verify(&code, &reed_solomon_generator(k, m), len, &present);
    }

    #[test]
    fn random_linear_beside_the_textbook(
        (k, m, present) in (1..40_usize, 0..20_usize)
            .prop_flat_map(|(k, m)| (Just(k), Just(m), losses(k + m))),
        key in any::<u32>(),
        len in 0..200_usize,
    ) {
        let code = RandomLinear::new(k, m, key).unwrap();
        verify(&code, &random_linear_generator(k, m, key), len, &present);
    }

    #[test]
    fn xor_2d_beside_the_textbook(
        (k, columns, present) in (1..50_usize)
            .prop_flat_map(|k| (Just(k), 1..=k))
            .prop_flat_map(|(k, c)| (Just(k), Just(c), losses(k + k.div_ceil(c) + c))),
        len in 0..100_usize,
    ) {
        let code = Xor2d::new(k, columns).unwrap();
        let block = block(&code, len);
        prop_assert_eq!(&block[k..], expected_repairs(&xor_generator(k, columns), &block[..k]));
        check(&code, &block, &present, &peel(k, columns, &present));
    }

    #[test]
    fn ldpc_staircase_beside_the_textbook(
        (k, m, present) in (2..60_usize, 10..30_usize)
            .prop_flat_map(|(k, m)| (Just(k), Just(m), losses(k + m))),
        degree in 3..=10_usize,
        seed in 1..0x7FFF_FFFF_u32,
        len in 0..100_usize,
    ) {
        let code = LdpcStaircase::new(k, m, degree, seed).unwrap();
        verify(&code, &ldpc_generator(&code), len, &present);
    }
}

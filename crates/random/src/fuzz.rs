//! Helpers for seeded fuzz tests: inputs are mutations of valid ones.

use std::borrow::ToOwned;
use std::fs;
use std::path::Path;
use std::vec;
use std::vec::Vec;

use crate::Rng;

/// The maximum length in bytes of a mutated input, if its seeds are no longer than this.
const MAX_LENGTH: usize = 4096;

/// Number of inputs to test: the environment variable `FUZZ_ITERATIONS`, or else `default`.
#[must_use]
pub fn iterations(default: u64) -> u64 {
    std::env::var("FUZZ_ITERATIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

/// Runs `target` on [`iterations`] inputs made by [`input`].
pub fn run(default: u64, seeds: &[impl AsRef<[u8]>], mut target: impl FnMut(&[u8])) {
    let mut rng = Rng::new(7);
    for _ in 0..iterations(default) {
        target(&input(&mut rng, seeds));
    }
}

/// Runs a fuzz target on the inputs that are stored for it, in `fuzz/corpus/<name>` of the
/// repository. `make` makes inputs like them. If the environment variable `FUZZ_STORE` is set to a number,
/// that many inputs are stored first, instead of the old ones.
///
/// # Panics
/// Nothing is stored, or a file cannot be read or written.
pub fn replay(name: &str, make: impl FnMut(&mut Rng) -> Vec<u8>, mut target: impl FnMut(&[u8])) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    if let Some(count) = std::env::var("FUZZ_STORE").ok().and_then(|count| count.parse().ok()) {
        store(&directory, count, make);
    }
    let entries = fs::read_dir(&directory).expect("no inputs are stored");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("directory").path()).collect();
    files.sort();
    assert!(!files.is_empty(), "no inputs are stored");
    for file in files {
        target(&fs::read(file).expect("a stored input"));
    }
}

/// Replaces the inputs in a directory by `count` new ones, none of which is longer than [`MAX_LENGTH`].
fn store(directory: &Path, count: usize, mut make: impl FnMut(&mut Rng) -> Vec<u8>) {
    let _ = fs::remove_dir_all(directory);
    fs::create_dir_all(directory).expect("a directory for inputs");
    let mut rng = Rng::new(19);
    for n in 0..count {
        let mut input = make(&mut rng);
        input.truncate(MAX_LENGTH);
        fs::write(directory.join(std::format!("seed-{n:02}")), input).expect("an input");
    }
}

/// One of `seeds` or noise, mutated at up to four places.
pub fn input(rng: &mut Rng, seeds: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let seed = |rng: &mut Rng| match rng.index(seeds.len()) {
        at if at < seeds.len() => seeds[at].as_ref().to_owned(),
        _ => Vec::new(),
    };
    let mut data = match rng.below(8) {
        0 => noise(rng, 400),
        _ => seed(rng),
    };
    for _ in 0..rng.below(5) {
        let other = seed(rng);
        mutate(rng, &mut data, &other);
        data.truncate(MAX_LENGTH);
    }
    data
}

/// Fewer than `end` random bytes. Half of the time all bytes are small, which covers more code:
/// most bytes of a format are types, counts and lengths.
pub fn noise(rng: &mut Rng, end: usize) -> Vec<u8> {
    let len = rng.index(end);
    let mut noise = rng.bytes(len);
    if rng.below(2) == 0 {
        noise.iter_mut().for_each(|byte| *byte &= 0x1f);
    }
    noise
}

/// Flips, overwrites, truncates, duplicates, splices or inserts at one place.
fn mutate(rng: &mut Rng, data: &mut Vec<u8>, other: &[u8]) {
    let at = rng.index(data.len() + 1);
    match rng.below(8) {
        0 | 1 if at < data.len() => data[at] ^= 1 << rng.below(8),
        // The first and the last value of the first byte for each length of a variable-length
        // integer.
        2 if at < data.len() => {
            data[at] = [0, 0x3f, 0x40, 0x7f, 0x80, 0xbf, 0xc0, 0xff][rng.index(8)];
        }
        3 => data.truncate(at),
        4 => drop(data.splice(at..at, vec![0xff; rng.index(9)])),
        5 => {
            data.truncate(at);
            data.extend_from_slice(&other[rng.index(other.len() + 1)..]);
        }
        6 => drop(data.splice(at..at, other.iter().copied())),
        _ => data.extend_from_within(at..),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_is_replayed() {
        let directory = std::env::temp_dir().join(std::format!("fuzz-{}", std::process::id()));
        store(&directory, 3, |rng| rng.bytes(5000));
        let sizes =
            fs::read_dir(&directory).unwrap().map(|file| file.unwrap().metadata().unwrap().len());
        assert_eq!(sizes.collect::<Vec<_>>(), [MAX_LENGTH as u64; 3]);
        fs::remove_dir_all(&directory).unwrap();
    }

    #[test]
    fn inputs_repeat_differ_and_keep_their_bound() {
        let seeds: [&[u8]; 3] = [b"", b"a seed", &[9; MAX_LENGTH]];
        let inputs = || {
            let mut rng = Rng::new(3);
            (0..500).map(|_| input(&mut rng, &seeds)).collect::<Vec<_>>()
        };
        let all = inputs();
        assert_eq!(all, inputs());
        assert!(all.iter().all(|input| input.len() <= MAX_LENGTH));
        assert!(seeds.iter().all(|&seed| all.iter().any(|input| input == seed)));
        let distinct: std::collections::BTreeSet<_> = all.iter().collect();
        assert!(distinct.len() > 250, "{}", distinct.len());
        assert!(input(&mut Rng::new(1), &[] as &[&[u8]]).len() <= MAX_LENGTH);
    }
}

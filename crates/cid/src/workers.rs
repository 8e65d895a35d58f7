//! Identifiers that say which of several workers at one address has the connection.

use crate::generator::ConnectionIdGenerator;
use crate::{ConnectionId, MAX_CID_SIZE};
use aes::Aes128;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use rand::RngCore;
use std::fmt;
use std::sync::Arc;

/// The size of an AES block in bytes.
const BLOCK: usize = 16;
/// How many identifiers are made for each worker until one is the worker's own. Of random ones, all belong to
/// others with a probability below 2^-92.
const ATTEMPTS_PER_WORKER: usize = 64;

/// The identifiers of another generator, dealt out to the workers of an endpoint by a keyed hash: an
/// identifier belongs to the worker whose number the hash yields, and each worker takes only those that are
/// its own. Workers that share the key see whose a packet is, and can [hand it over](Self::elsewhere).
///
/// The identifiers have the length and the contents that the other generator gives them, so load balancers
/// read them as before. To those who do not know the key, they do not show to which worker they belong, or
/// whether two belong to the same one. Of `n` workers, one in `n` identifiers is taken; the others are used
/// up.
#[derive(Clone)]
pub struct WorkerIds {
    generator: Arc<dyn ConnectionIdGenerator>,
    cipher: Aes128,
    number: usize,
    workers: usize,
}

impl fmt::Debug for WorkerIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WorkerIds")
            .field("generator", &self.generator)
            .field("number", &self.number)
            .field("workers", &self.workers)
            .finish_non_exhaustive()
    }
}

impl WorkerIds {
    /// The generators of this many workers, in the order of their numbers. `key` must be unpredictable.
    #[must_use]
    pub fn all(
        generator: &Arc<dyn ConnectionIdGenerator>,
        workers: usize,
        key: [u8; BLOCK],
    ) -> Vec<Self> {
        let cipher = Aes128::new(&key.into());
        let make = |number| {
            let (generator, cipher) = (generator.clone(), cipher.clone());
            Self { generator, cipher, number, workers }
        };
        (0..workers).map(make).collect()
    }

    /// The number of the worker to which an identifier belongs.
    fn worker(&self, cid: &ConnectionId) -> usize {
        // The CBC-MAC of the identifier behind its length, which makes no input the beginning of another.
        let mut input = [0; 2 * BLOCK];
        input[0] = cid.len() as u8;
        input[1..=cid.len()].copy_from_slice(cid.as_slice());
        let mut mac = [0; BLOCK];
        for part in input[..=cid.len()].chunks(BLOCK) {
            mac.iter_mut().zip(part).for_each(|(mac, byte)| *mac ^= byte);
            let mut block = mac.into();
            self.cipher.encrypt_block(&mut block);
            mac = block.into();
        }
        let (hash, _) = mac.split_first_chunk().unwrap_or((&[0; 8], &[]));
        // As large a part of all hashes for each worker.
        let scaled = u128::from(u64::from_be_bytes(*hash)) * self.workers as u128;
        (scaled >> u64::BITS) as usize
    }
}

const _: () = assert!(MAX_CID_SIZE < 2 * BLOCK);

impl ConnectionIdGenerator for WorkerIds {
    fn size(&self) -> usize {
        self.generator.size()
    }

    /// A new identifier of this worker. If the other generator yields none, because it always makes the same
    /// few, the identifier is another worker's: packets still arrive as long as the peer does not move.
    fn generate(&self, random: &mut dyn RngCore) -> ConnectionId {
        let mut cid = self.generator.generate(random);
        for _ in 1..ATTEMPTS_PER_WORKER * self.workers {
            if self.worker(&cid) == self.number {
                break;
            }
            cid = self.generator.generate(random);
        }
        cid
    }

    fn owner(&self) -> &[u8] {
        self.generator.owner()
    }

    fn elsewhere(&self, cid: &ConnectionId) -> Option<usize> {
        if cid.len() != self.size() {
            return None;
        }
        Some(self.worker(cid)).filter(|worker| *worker != self.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generator::RandomIds;
    use crate::{QuicLb, QuicLbConfig};
    use rand::SeedableRng;
    use rand::rngs::StdRng;
    use std::collections::HashSet;

    fn workers(generator: impl ConnectionIdGenerator + 'static, count: usize) -> Vec<WorkerIds> {
        WorkerIds::all(&(Arc::new(generator) as _), count, [7; 16])
    }

    fn load_balancing() -> QuicLb {
        let config = QuicLbConfig::new(vec![1, 2]).with_key(Some([9; 16]));
        QuicLb::new(config.with_nonce_size(17)).unwrap()
    }

    #[test]
    fn each_worker_knows_its_own_identifiers_and_those_of_the_others() {
        let mut random = StdRng::from_seed([1; 32]);
        for count in [1, 2, 3, 64] {
            for all in [workers(RandomIds, count), workers(load_balancing(), count)] {
                let mut seen = HashSet::new();
                for (number, worker) in all.iter().enumerate() {
                    for _ in 0..20 {
                        let cid = worker.generate(&mut random);
                        assert_eq!(cid.len(), worker.size());
                        assert!(seen.insert(cid), "twice");
                        for (other, ids) in all.iter().enumerate() {
                            let expected = (other != number).then_some(number);
                            assert_eq!(ids.elsewhere(&cid), expected);
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn load_balancers_read_the_identifiers_as_before() {
        let mut random = StdRng::from_seed([1; 32]);
        let (plain, all) = (load_balancing(), workers(load_balancing(), 4));
        let first = plain.generate(&mut random).as_slice()[0];
        for worker in &all {
            assert_eq!(worker.owner(), plain.owner());
            assert_eq!(worker.generate(&mut random).as_slice()[0], first);
        }
    }

    #[test]
    fn random_identifiers_are_spread_evenly() {
        let mut random = StdRng::from_seed([1; 32]);
        let all = workers(RandomIds, 5);
        let mut counts = [0; 5];
        for _ in 0..10_000 {
            counts[all[0].worker(&RandomIds.generate(&mut random))] += 1;
        }
        // More than six standard deviations to both sides.
        assert!(counts.iter().all(|count| (1750..2250).contains(count)), "{counts:?}");
    }

    #[test]
    fn identifiers_show_nothing_without_the_key() {
        let mut random = StdRng::from_seed([1; 32]);
        let ours = workers(RandomIds, 2);
        let theirs = WorkerIds::all(&(Arc::new(RandomIds) as _), 2, [8; 16]);
        let of_the_first = (0..10_000).map(|_| ours[0].generate(&mut random));
        let guessed = of_the_first.filter(|cid| theirs[0].worker(cid) == 0).count();
        assert!((4700..5300).contains(&guessed), "{guessed}");
    }

    #[test]
    fn a_generator_that_knows_one_identifier_ends() {
        #[derive(Debug)]
        struct Stuck;

        impl ConnectionIdGenerator for Stuck {
            fn size(&self) -> usize {
                20
            }

            fn generate(&self, _: &mut dyn RngCore) -> ConnectionId {
                ConnectionId::new(&[5; 20]).unwrap()
            }
        }

        let mut random = StdRng::from_seed([1; 32]);
        let all = workers(Stuck, 3);
        assert!(all.iter().all(|worker| worker.generate(&mut random).as_slice() == [5; 20]));
    }

    #[test]
    fn identifiers_of_other_lengths_are_nobodys() {
        let all = workers(RandomIds, 2);
        for size in [0, 7, 9, MAX_CID_SIZE] {
            let mut random = StdRng::from_seed([1; 32]);
            for _ in 0..20 {
                let cid = crate::generator::random_cid(&mut random, size);
                assert_eq!(all.iter().find_map(|worker| worker.elsewhere(&cid)), None);
            }
        }
    }
}

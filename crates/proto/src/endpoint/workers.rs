//! Endpoints of one process that share an address, each with a socket of its own, so that each works on a core
//! of its own.
//!
//! Whoever is told by one of them must be able to rely on it with all. They therefore have the same keys, and
//! remember used tokens and offenders together. What bounds the work and the memory of a process is divided
//! among them instead, so that clients who come and go take no common lock: the system spreads clients evenly.

use super::offenders::Offenders;
use super::token::AddressTokens;
use super::{Endpoint, MAX_HANDSHAKES_PER_ADDRESS};
use crate::config::{EndpointConfig, ServerConfig};
use rand::rngs::StdRng;
use rand::{RngCore, SeedableRng};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use sutura_cid::WorkerIds;

/// Most endpoints that share an address, each of which has then a part of every bound.
pub const MAX_WORKERS: usize = 64;
const _: () = assert!(MAX_WORKERS <= MAX_HANDSHAKES_PER_ADDRESS);

/// The part that one of several endpoints has in the bounds of a process.
#[derive(Debug, Clone, Copy)]
pub struct Share {
    number: usize,
    of: usize,
}

impl Share {
    /// The share of an endpoint that has its address for itself.
    pub const WHOLE: Self = Self { number: 0, of: 1 };

    /// Whether there are others.
    pub const fn is_part(self) -> bool {
        self.of > 1
    }

    /// Its part of a bound. All parts together are the whole.
    pub const fn part(self, whole: usize) -> usize {
        whole / self.of + (self.number < whole % self.of) as usize
    }
}

/// What endpoints that share an address have in common.
#[derive(Debug, Clone)]
pub struct Common {
    tokens: Arc<Mutex<AddressTokens>>,
    offenders: Arc<Mutex<Offenders>>,
}

impl Common {
    pub fn new(config: &EndpointConfig, seed: [u8; 32]) -> Self {
        // A generator of its own, so that tokens do not change the numbers that connections draw.
        let random = StdRng::from_seed(seed.map(|b| !b));
        let tokens = AddressTokens::new(config.token_key.clone(), random);
        Self { tokens: Arc::new(Mutex::new(tokens)), offenders: Arc::default() }
    }

    pub fn tokens(&self) -> MutexGuard<'_, AddressTokens> {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn offenders(&self) -> MutexGuard<'_, Offenders> {
        self.offenders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// So many endpoints cannot share an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0} workers: there are from 1 to {MAX_WORKERS}, and at most one for each handshake and each connection \
     that is allowed"
)]
pub struct WorkerCountError(usize);

impl EndpointConfig {
    /// Whether `count` endpoints can share an address with these limits, so that nothing has to be made for
    /// workers that cannot be.
    ///
    /// # Errors
    /// `count` is 0 or above [`MAX_WORKERS`], or more than the handshakes or connections that are allowed.
    pub fn check_workers(&self, count: usize) -> Result<(), WorkerCountError> {
        let most = MAX_WORKERS.min(self.max_handshakes).min(self.max_connections);
        if (1..=most).contains(&count) { Ok(()) } else { Err(WorkerCountError(count)) }
    }
}

impl Endpoint {
    /// Creates `count` endpoints that share an address, for one socket each, in the order of the numbers of
    /// [`DatagramEvent::Elsewhere`](super::DatagramEvent::Elsewhere). They accept each other's tokens, refuse
    /// each other's offenders and have the same key of stateless resets, so a datagram for another of them
    /// must be given to that one. Each has an equal part of [`EndpointConfig::max_handshakes`],
    /// [`EndpointConfig::retry_above`], [`EndpointConfig::max_connections`] and of the bounds that have no
    /// setting. What is remembered of the loss on the way to a peer is each one's own.
    ///
    /// All datagrams of a client's address must go to the same endpoint until its handshake is complete.
    ///
    /// # Errors
    /// Those of [`EndpointConfig::check_workers`].
    pub fn workers(
        config: &EndpointConfig,
        server: Option<&Arc<ServerConfig>>,
        seed: [u8; 32],
        count: usize,
    ) -> Result<Vec<Self>, WorkerCountError> {
        config.check_workers(count)?;
        let common = Common::new(config, seed);
        let mut random = StdRng::from_seed(seed);
        let mut key = [0; 16];
        random.fill_bytes(&mut key);
        let reset_key = super::reset_key(config, &seed);
        let ids = WorkerIds::all(&config.connection_ids, count, key);
        let make = |(number, ids)| {
            let config = config.clone().with_connection_ids(Arc::new(ids));
            let config = Arc::new(config.with_reset_key(Some(reset_key.clone())));
            let mut seed = [0; 32];
            random.fill_bytes(&mut seed);
            let share = Share { number, of: count };
            Self::with_share(config, server.cloned(), seed, share, common.clone())
        };
        Ok(ids.into_iter().enumerate().map(make).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_equal_and_together_the_whole() {
        for of in 1..=MAX_WORKERS {
            for whole in [0, 1, 63, 64, 256, 500, 1000, 100_000] {
                let part = |number| Share { number, of }.part(whole);
                assert_eq!((0..of).map(part).sum::<usize>(), whole);
                assert!(part(0) - part(of - 1) <= 1);
            }
        }
        assert_eq!(Share::WHOLE.part(77), 77);
    }
}

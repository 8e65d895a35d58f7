//! Slows down clients that guess tokens.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::doors::network;

/// Wrong tokens of an address that cost nothing: somebody may have mistaken one.
const FREE: u32 = 3;
/// How long an address waits after the next wrong token. Each further one doubles the wait, up to the longest
/// time.
const FIRST_WAIT: Duration = Duration::from_millis(250);
const MAX_WAIT: Duration = Duration::from_secs(10);
/// The longest time that an attempt waits for its turn; attempts that would wait longer are refused at once.
const MAX_QUEUE: Duration = Duration::from_secs(20);
/// After how long it is forgotten that an address showed wrong tokens.
const FORGET: Duration = Duration::from_secs(600);
/// Most addresses that are remembered; addresses whose turn comes first are forgotten for new ones.
const MAX_ADDRESSES: usize = 1024;

/// The addresses that showed wrong tokens.
#[derive(Debug, Default)]
pub struct Guesses(Mutex<HashMap<IpAddr, Guesser>>);

#[derive(Debug, Clone, Copy)]
struct Guesser {
    wrong: u32,
    /// When its next attempt is looked at.
    next: Instant,
}

impl Guesser {
    fn wait(&self) -> Duration {
        match self.wrong.checked_sub(FREE) {
            None => Duration::ZERO,
            Some(doublings) => FIRST_WAIT.saturating_mul(1 << doublings.min(16)).min(MAX_WAIT),
        }
    }
}

impl Guesses {
    /// How long the attempt of an address has to wait before its token is looked at; `None` if it is refused,
    /// because too many attempts wait before it.
    pub fn queue(&self, address: IpAddr, now: Instant) -> Option<Duration> {
        let mut guessers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(guesser) = guessers.get_mut(&network(address)) else {
            return Some(Duration::ZERO);
        };
        let wait = guesser.next.saturating_duration_since(now);
        if wait > MAX_QUEUE {
            return None;
        }
        // Attempts are looked at one after the other, however many come at once.
        guesser.next = now + wait + guesser.wait();
        Some(wait)
    }

    /// The token that an address showed is wrong.
    pub fn wrong(&self, address: IpAddr, now: Instant) {
        let mut guessers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let network = network(address);
        if !guessers.contains_key(&network) && guessers.len() >= MAX_ADDRESSES {
            guessers.retain(|_, guesser| now < guesser.next + FORGET);
            let first = guessers.iter().min_by_key(|(_, guesser)| guesser.next);
            let first = first.map(|(&address, _)| address);
            if let Some(first) = first.filter(|_| guessers.len() >= MAX_ADDRESSES) {
                guessers.remove(&first);
            }
        }
        let guesser = guessers.entry(network).or_insert(Guesser { wrong: 0, next: now });
        if now >= guesser.next + FORGET {
            *guesser = Guesser { wrong: 0, next: now };
        }
        guesser.wrong = guesser.wrong.saturating_add(1);
        guesser.next = guesser.next.max(now + guesser.wait());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(n: u32) -> IpAddr {
        std::net::Ipv4Addr::from_bits(n).into()
    }

    /// How many tokens an address can try in a time, one after the other.
    fn tried(guesses: &Guesses, start: Instant, time: Duration) -> usize {
        let (mut now, mut tried) = (start, 0);
        while now < start + time {
            now += guesses.queue(address(1), now).unwrap() + Duration::from_millis(1);
            guesses.wrong(address(1), now);
            tried += 1;
        }
        tried
    }

    #[test]
    fn an_address_guesses_a_few_tokens_and_then_one_in_ten_seconds() {
        let (guesses, start) = (Guesses::default(), Instant::now());
        let hour = Duration::from_secs(3600);
        let tried = tried(&guesses, start, hour);
        assert!((360..=372).contains(&tried), "{tried}");
        assert_eq!(guesses.queue(address(2), start), Some(Duration::ZERO));
        // After a long time the guesses are forgotten.
        let later = start + hour + 2 * FORGET;
        guesses.wrong(address(1), later);
        assert_eq!(guesses.queue(address(1), later), Some(Duration::ZERO));
    }

    #[test]
    fn attempts_at_once_are_looked_at_one_after_the_other_and_only_few_wait() {
        let (guesses, start) = (Guesses::default(), Instant::now());
        tried(&guesses, start, Duration::from_secs(60));
        let now = start + Duration::from_secs(120);
        let waits: Vec<_> = (0..1000).map_while(|_| guesses.queue(address(1), now)).collect();
        let expected = [0, 10, 20].map(Duration::from_secs);
        assert_eq!(waits, expected);
        // An address with attempts that wait is refused for a while, however often it comes.
        assert_eq!(guesses.queue(address(1), now), None);
    }

    #[test]
    fn a_flood_of_addresses_keeps_the_bound() {
        let (guesses, mut now) = (Guesses::default(), Instant::now());
        tried(&guesses, now, Duration::from_secs(60));
        for n in 0..5000 {
            guesses.wrong(address(1000 + n), now);
            now += Duration::from_millis(1);
            assert!(guesses.0.lock().unwrap().len() <= MAX_ADDRESSES);
        }
        // The addresses that have guessed most are remembered.
        assert!(guesses.0.lock().unwrap().contains_key(&address(1)));
    }
}

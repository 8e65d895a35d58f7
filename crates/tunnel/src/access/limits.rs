//! How much of what is allowed a client may use.

use std::time::{Duration, Instant};

/// How long a client that was silent may send faster than its rate: it has saved up the bytes of this time.
const BURST: Duration = Duration::from_millis(250);
/// What a client may send at once at least, whatever its rate, in bytes.
const MIN_BURST: u64 = 64 * 1024;
/// A client that is over its rate waits until it may send so many bytes, not for each byte. At most `MIN_BURST`.
const PIECE: u64 = 1500;
/// Parts of a byte in which a balance is counted, so that a nanosecond at one byte a second is a whole number.
const PARTS: i128 = 1_000_000_000;

/// What a client may use at most. No limits by default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Tunnels that are open at a time.
    pub flows: Option<usize>,
    /// Bytes per second, averaged over a quarter of a second, or over 64 KiB if that is longer. Zero allows
    /// these 64 KiB.
    pub bytes_per_second: Option<u64>,
    /// Bytes in total.
    pub bytes: Option<u64>,
}

/// How much may be passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allowance {
    /// So many bytes now; at least one. A datagram is passed on whole even if it is longer.
    Now(u64),
    /// Nothing before this time.
    At(Instant),
    /// Nothing any more: the total is used up.
    Never,
}

/// A client has as many flows as it may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("more than {0} tunnels at a time")]
pub struct TooManyFlows(pub usize);

/// What a client has used of its [`Limits`].
///
/// A token bucket. Ask [`look`](Self::look) how much may be passed on, pass it on, and tell
/// [`commit`](Self::commit) how much that was. It may be more, which makes the next wait longer: in any time the
/// client gets no more than its rate allows, a burst and one piece.
#[derive(Debug, Clone)]
pub struct Meter {
    limits: Limits,
    flows: usize,
    used: u64,
    /// What may be passed on, in parts of a byte, at the time `since`. Negative if too much was.
    balance: i128,
    since: Instant,
}

impl Meter {
    /// The meter of a client that has used nothing.
    #[must_use]
    pub fn new(limits: Limits, now: Instant) -> Self {
        let mut meter = Self { limits, flows: 0, used: 0, balance: 0, since: now };
        meter.balance = meter.full();
        meter
    }

    /// Adds a flow.
    ///
    /// # Errors
    /// There are as many as there may be.
    pub fn open(&mut self) -> Result<(), TooManyFlows> {
        match self.limits.flows {
            Some(most) if self.flows >= most => Err(TooManyFlows(most)),
            Some(_) | None => {
                self.flows += 1;
                Ok(())
            }
        }
    }

    /// Removes a flow that [`open`](Self::open) added.
    pub fn close(&mut self) {
        self.flows = self.flows.saturating_sub(1);
    }

    /// The flows that are open.
    #[must_use]
    pub fn flows(&self) -> usize {
        self.flows
    }

    /// The bytes that were passed on.
    #[must_use]
    pub fn used(&self) -> u64 {
        self.used
    }

    /// How many bytes may be passed on.
    #[must_use]
    pub fn look(&self, now: Instant) -> Allowance {
        let left = self.limits.bytes.map_or(u64::MAX, |most| most.saturating_sub(self.used));
        if left == 0 {
            return Allowance::Never;
        }
        let Some(rate) = self.limits.bytes_per_second else { return Allowance::Now(left) };
        let (balance, piece) = (self.balance(now), i128::from(PIECE) * PARTS);
        if balance >= piece {
            return Allowance::Now(left.min(u64::try_from(balance / PARTS).unwrap_or(u64::MAX)));
        }
        if rate == 0 {
            return Allowance::Never;
        }
        let wait = (piece - balance + i128::from(rate) - 1) / i128::from(rate);
        let wait = Duration::from_nanos(u64::try_from(wait).unwrap_or(u64::MAX));
        let base = now.max(self.since);
        base.checked_add(wait).map_or(Allowance::Never, Allowance::At)
    }

    /// So many bytes were passed on.
    pub fn commit(&mut self, now: Instant, bytes: u64) {
        self.used = self.used.saturating_add(bytes);
        if self.limits.bytes_per_second.is_some() {
            self.balance = self.balance(now) - i128::from(bytes) * PARTS;
            self.since = self.since.max(now);
        }
    }

    /// Whether a packet of so many bytes may be passed on now; it is counted if so.
    pub fn admit(&mut self, now: Instant, bytes: u64) -> bool {
        let is_admitted = matches!(self.look(now), Allowance::Now(_));
        if is_admitted {
            self.commit(now, bytes);
        }
        is_admitted
    }

    /// The most that may be saved up, in parts of a byte.
    fn full(&self) -> i128 {
        let rate = self.limits.bytes_per_second.unwrap_or_default();
        let burst = i128::from(rate) * BURST.as_nanos() as i128;
        burst.max(i128::from(MIN_BURST) * PARTS)
    }

    /// What is saved up, in parts of a byte.
    fn balance(&self, now: Instant) -> i128 {
        let rate = i128::from(self.limits.bytes_per_second.unwrap_or_default());
        let elapsed = now.saturating_duration_since(self.since).as_nanos() as i128;
        self.balance.saturating_add(elapsed.saturating_mul(rate)).min(self.full())
    }
}

impl Limits {
    /// With this many flows at a time at most.
    #[must_use]
    pub fn with_flows(mut self, flows: Option<usize>) -> Self {
        self.flows = flows;
        self
    }

    /// With this many bytes per second at most.
    #[must_use]
    pub fn with_bytes_per_second(mut self, bytes_per_second: Option<u64>) -> Self {
        self.bytes_per_second = bytes_per_second;
        self
    }

    /// With this many bytes in total at most.
    #[must_use]
    pub fn with_bytes(mut self, bytes: Option<u64>) -> Self {
        self.bytes = bytes;
        self
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A token bucket that adds its rate millisecond by millisecond.
    struct Naive {
        per_ms: i64,
        full: i64,
        balance: i64,
    }

    impl Naive {
        fn new(per_ms: i64) -> Self {
            let full = (per_ms * 250).max(64 * 1024);
            Self { per_ms, full, balance: full }
        }

        fn tick(&mut self) {
            self.balance = (self.balance + self.per_ms).min(self.full);
        }
    }

    proptest! {
        #[test]
        fn a_meter_counts_as_a_naive_one(
            per_ms in 1..3000_i64,
            steps in prop::collection::vec((0..400_u64, 0..300_000_u64, any::<bool>()), 1..60),
        ) {
            let start = Instant::now();
            let limits = Limits::default().with_bytes_per_second(Some(per_ms as u64 * 1000));
            let (mut meter, mut naive) = (Meter::new(limits, start), Naive::new(per_ms));
            let mut at = 0;
            for (wait, bytes, obedient) in steps {
                (0..wait).for_each(|_| naive.tick());
                at += wait;
                let now = start + Duration::from_millis(at);
                let allowance = meter.look(now);
                match allowance {
                    Allowance::Now(most) => prop_assert_eq!(most as i64, naive.balance),
                    Allowance::At(then) => {
                        prop_assert!(naive.balance < 1500 && then > now);
                        // The meter says the first nanosecond at which it would be different.
                        prop_assert!(matches!(meter.look(then), Allowance::Now(_)));
                        let before = then - Duration::from_nanos(1);
                        prop_assert_eq!(meter.look(before), Allowance::At(then));
                    }
                    Allowance::Never => prop_assert!(false, "no total was set"),
                }
                prop_assert_eq!(meter.look(now), allowance, "a look changes nothing");
                let bytes = match allowance {
                    Allowance::Now(most) if obedient => bytes.min(most),
                    Allowance::At(_) | Allowance::Never if obedient => 0,
                    _ => bytes,
                };
                meter.commit(now, bytes);
                naive.balance -= bytes as i64;
            }
        }

        #[test]
        fn an_obedient_client_gets_no_more_than_rate_and_burst(
            rate in 1..10_000_000_u64,
            wants in prop::collection::vec(1..200_000_u64, 1..50),
        ) {
            let start = Instant::now();
            let mut meter = Meter::new(Limits::default().with_bytes_per_second(Some(rate)), start);
            let (mut now, mut sent) = (start, 0);
            for want in wants {
                let most = loop {
                    match meter.look(now) {
                        Allowance::Now(most) => break most,
                        Allowance::At(then) => now = then,
                        Allowance::Never => unreachable!(),
                    }
                };
                meter.commit(now, want.min(most));
                sent += want.min(most);
                let earned = (now - start).as_nanos() * u128::from(rate) / 1_000_000_000;
                prop_assert!(u128::from(sent) <= earned + u128::from((rate / 4).max(MIN_BURST)) + 1);
            }
        }
    }

    #[test]
    fn a_total_is_used_up_once() {
        let now = Instant::now();
        let mut meter = Meter::new(Limits::default().with_bytes(Some(1000)), now);
        assert_eq!(meter.look(now), Allowance::Now(1000));
        meter.commit(now, 999);
        assert_eq!(meter.look(now), Allowance::Now(1));
        meter.commit(now, 1500);
        assert_eq!(meter.look(now + Duration::from_secs(9)), Allowance::Never);
        assert_eq!(meter.used(), 2499);
    }

    #[test]
    fn packets_are_admitted_whole_and_counted_only_then() {
        let now = Instant::now();
        let mut meter = Meter::new(Limits::default().with_bytes(Some(1000)), now);
        assert!(meter.admit(now, 999) && meter.admit(now, 1500));
        assert!(!meter.admit(now, 1));
        assert_eq!(meter.used(), 2499);
    }

    #[test]
    fn flows_are_counted_to_their_bound() {
        let mut meter = Meter::new(Limits::default().with_flows(Some(2)), Instant::now());
        meter.open().unwrap();
        meter.open().unwrap();
        assert_eq!(meter.open(), Err(TooManyFlows(2)));
        meter.close();
        assert_eq!((meter.flows(), meter.open()), (1, Ok(())));
        let mut free = Meter::new(Limits::default(), Instant::now());
        (0..1000).for_each(|_| free.open().unwrap());
    }

    #[test]
    fn a_clock_that_goes_back_gives_nothing() {
        let start = Instant::now() + Duration::from_secs(10);
        let mut meter = Meter::new(Limits::default().with_bytes_per_second(Some(1000)), start);
        meter.commit(start, MIN_BURST);
        meter.commit(start - Duration::from_secs(5), 0);
        assert_eq!(meter.look(start), Allowance::At(start + Duration::from_millis(1500)));
        let zero = Meter::new(Limits::default().with_bytes_per_second(Some(0)), start);
        assert_eq!(zero.look(start), Allowance::Now(MIN_BURST));
    }
}

//! Pacing (RFC 9002 section 7.7): a token bucket that is refilled at the controller's rate.

use super::CongestionController;
use super::arithmetic::{bytes_within, percent, rate_of, time_for};
use crate::rtt::RttEstimator;
use std::time::{Duration, Instant};

/// The pacing rate of a controller without a rate of its own, in percent of one window per round
/// trip. It is above 100 so that the whole window can be used (N in RFC 9002 section 7.7).
const WINDOW_GAIN: u64 = 125;
/// How many packets may always be sent at once after a pause, like the initial window.
const BURST_PACKETS: u64 = 10;
/// The most tokens that can be saved up, as time, so that late timers do not cost throughput.
const LATENESS: Duration = Duration::from_millis(2);
/// Sending resumes once this much time's worth of bytes may be sent at once.
const QUANTUM_TIME: Duration = Duration::from_millis(1);
/// The most bytes in one batch of datagrams.
const MAX_QUANTUM: u64 = 64 * 1024;
/// The fewest packets in a batch.
const QUANTUM_PACKETS: u64 = 2;
/// The least time between timers.
const GRANULARITY: Duration = Duration::from_micros(100);
/// The lowest rate, in bytes per second, so that waiting always ends.
const MIN_RATE: u64 = 1_000;
/// The highest rate, in bytes per second: 8 Tbit/s keeps every product in range.
const MAX_RATE: u64 = 1 << 40;
const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// How many bytes to send at once at `rate` bytes per second with datagrams of `mtu` bytes: about a
/// millisecond's worth, at least two datagrams, at most 64 KiB (draft-ietf-ccwg-bbr 5.6.3).
#[inline]
pub(super) fn send_quantum(rate: u64, mtu: u64) -> u64 {
    let quantum = bytes_within(rate, QUANTUM_TIME).min(MAX_QUANTUM);
    quantum.max(mtu.saturating_mul(QUANTUM_PACKETS))
}

/// Spreads packets over time.
///
/// A sender calls [`Self::delay_until`] before every packet (or batch) and [`Self::on_sent`] after
/// it. Call [`Self::update`] after changes of the window, the rate or the round-trip time.
#[derive(Debug, Clone)]
pub struct Pacer {
    mtu: u64,
    /// Bytes per second.
    rate: u64,
    /// Bytes that may be sent now; negative after packets that did not wait (probes).
    tokens: i64,
    /// Byte-nanoseconds per second that do not add up to a whole byte yet.
    remainder: u128,
    filled: Option<Instant>,
}

impl Pacer {
    /// Creates a full bucket for datagrams of `mtu` bytes.
    #[must_use]
    pub fn new(mtu: u16) -> Self {
        let mut pacer =
            Self { mtu: u64::from(mtu), rate: MIN_RATE, tokens: 0, remainder: 0, filled: None };
        pacer.tokens = pacer.depth();
        pacer
    }

    /// Takes the rate from the controller, or derives it from the window and the round-trip time.
    pub fn update(
        &mut self,
        now: Instant,
        controller: &dyn CongestionController,
        rtt: &RttEstimator,
    ) {
        let rate = controller.pacing_rate(rtt).unwrap_or_else(|| {
            let rate = rate_of(controller.window(), rtt.smoothed());
            if rate == 0 { MAX_RATE } else { percent(rate, WINDOW_GAIN) }
        });
        self.set_rate(now, rate);
    }

    /// Sets the rate to `rate` bytes per second from `now` on.
    pub fn set_rate(&mut self, now: Instant, rate: u64) {
        self.fill(now);
        self.rate = rate.clamp(MIN_RATE, MAX_RATE);
    }

    /// The rate in bytes per second.
    #[must_use]
    #[cfg(test)]
    pub fn rate(&self) -> u64 {
        self.rate
    }

    /// Sets the maximum datagram size.
    pub fn on_mtu_changed(&mut self, mtu: u16) {
        self.mtu = u64::from(mtu);
    }

    /// How many bytes a batch should have at the current rate.
    #[inline]
    #[must_use]
    pub fn quantum(&self) -> u64 {
        send_quantum(self.rate, self.mtu)
    }

    /// How many bytes may be sent now.
    #[cfg(test)]
    pub fn budget(&mut self, now: Instant) -> u64 {
        self.fill(now);
        u64::try_from(self.tokens).unwrap_or(0)
    }

    /// Returns `None` if `bytes` may be sent now. Otherwise returns when to ask again: by then a
    /// whole quantum may be sent, and that is at least 100 microseconds from now. With a full
    /// bucket, more bytes than it holds may be sent.
    #[inline]
    pub fn delay_until(&self, now: Instant, bytes: u64) -> Option<Instant> {
        let (tokens, _) = self.tokens_at(now);
        let depth = self.depth();
        let needed = i64::try_from(bytes).unwrap_or(i64::MAX).min(depth);
        if tokens >= needed {
            return None;
        }
        let target = needed.max(i64::try_from(self.quantum()).unwrap_or(i64::MAX)).min(depth);
        let missing = target.saturating_sub(tokens).unsigned_abs();
        let wait = time_for(missing, self.rate).max(GRANULARITY);
        Some(now.checked_add(wait).unwrap_or(now + GRANULARITY))
    }

    /// Accounts for `bytes` that were sent, whether or not they waited.
    #[inline]
    pub fn on_sent(&mut self, now: Instant, bytes: u64) {
        self.fill(now);
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        // Packets that did not wait delay later ones, within reason.
        self.tokens = self.tokens.saturating_sub(bytes).max(self.depth().saturating_neg());
    }

    /// The most tokens that can be saved up.
    #[inline]
    fn depth(&self) -> i64 {
        let depth = self
            .mtu
            .saturating_mul(BURST_PACKETS)
            .max(bytes_within(self.rate, LATENESS))
            .max(self.quantum());
        i64::try_from(depth).unwrap_or(i64::MAX)
    }

    /// The tokens at `now`, and the fraction of a token that is left over.
    #[inline]
    fn tokens_at(&self, now: Instant) -> (i64, u128) {
        let elapsed = self.filled.map_or(Duration::ZERO, |at| now.saturating_duration_since(at));
        if elapsed.is_zero() {
            return (self.tokens, self.remainder);
        }
        let grown = u128::from(self.rate).saturating_mul(elapsed.as_nanos());
        let grown = grown.saturating_add(self.remainder);
        let bytes = i64::try_from(grown / NANOS_PER_SECOND).unwrap_or(i64::MAX);
        let (tokens, depth) = (self.tokens.saturating_add(bytes), self.depth());
        if tokens >= depth { (depth, 0) } else { (tokens, grown % NANOS_PER_SECOND) }
    }

    #[inline]
    fn fill(&mut self, now: Instant) {
        (self.tokens, self.remainder) = self.tokens_at(now);
        self.filled = self.filled.max(Some(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::WindowLimits;
    use crate::new_reno::NewReno;

    const MTU: u64 = 1_200;
    const MS: Duration = Duration::from_millis(1);

    fn pacer(now: Instant, rate: u64) -> Pacer {
        let mut pacer = Pacer::new(MTU as u16);
        pacer.set_rate(now, rate);
        pacer
    }

    /// Sends packets of `MTU` bytes as fast as the pacer allows, waking up `late` after every
    /// timer. Returns the bytes sent, the number of timers and the shortest time between two
    /// timers.
    fn drive(
        pacer: &mut Pacer,
        start: Instant,
        length: Duration,
        late: Duration,
    ) -> (u64, u32, Duration) {
        let (mut now, mut sent, mut timers, mut shortest) = (start, 0, 0, Duration::MAX);
        while now < start + length {
            match pacer.delay_until(now, MTU) {
                None => {
                    pacer.on_sent(now, MTU);
                    sent += MTU;
                }
                Some(at) => {
                    assert!(at > now);
                    shortest = shortest.min(at - now);
                    timers += 1;
                    now = at + late;
                    if now < start + length {
                        assert_eq!(pacer.delay_until(now, MTU), None, "woken for nothing");
                    }
                }
            }
        }
        (sent, timers, shortest)
    }

    #[test]
    fn the_first_ten_packets_do_not_wait() {
        let t = Instant::now();
        let mut pacer = pacer(t, 100_000);
        for _ in 0..10 {
            assert_eq!(pacer.delay_until(t, MTU), None);
            pacer.on_sent(t, MTU);
        }
        // After that it waits for a quantum of two packets: 2 400 bytes at 100 000 bytes per
        // second.
        assert_eq!(pacer.delay_until(t, MTU), Some(t + 24 * MS));
        assert_eq!(pacer.budget(t), 0);
        assert_eq!(pacer.delay_until(t + 24 * MS, MTU), None);
        assert_eq!(pacer.budget(t + 24 * MS), 2_400);
    }

    #[test]
    fn bytes_match_the_rate_at_every_speed() {
        for rate in [10_000, 125_000, 1_250_000, 12_500_000, 125_000_000, 1_250_000_000] {
            let t = Instant::now();
            let mut pacer = pacer(t, rate);
            let length = Duration::from_millis(2_000_000_000 / rate.max(2_000_000));
            let burst = pacer.budget(t);
            let (sent, timers, shortest) = drive(&mut pacer, t, length, Duration::ZERO);
            let expected = bytes_within(rate, length) + burst;
            assert!(sent <= expected + MTU, "{rate}: {sent} of {expected}");
            let pending = pacer.quantum().max(bytes_within(rate, GRANULARITY)) + 2 * MTU;
            assert!(sent + pending >= expected, "{rate}: {sent} of {expected}");
            assert!(shortest >= GRANULARITY, "{rate}: {shortest:?}");
            assert!(u128::from(timers) <= length.as_millis() * 10 + 1);
        }
    }

    #[test]
    fn late_timers_do_not_slow_it_down() {
        let t = Instant::now();
        let mut pacer = pacer(t, 12_500_000);
        let (sent, ..) = drive(&mut pacer, t, 500 * MS, MS);
        assert!(sent >= 6_250_000 * 98 / 100, "{sent}");
    }

    #[test]
    fn a_pause_saves_up_no_more_than_a_burst() {
        let t = Instant::now();
        let mut pacer = pacer(t, 100_000);
        pacer.on_sent(t, 12_000);
        assert_eq!(pacer.budget(t + Duration::from_secs(3_600)), 12_000);
    }

    #[test]
    fn probes_do_not_wait_but_are_paid_for() {
        let t = Instant::now();
        let mut pacer = pacer(t, 100_000);
        pacer.on_sent(t, 12_000 + 2_400);
        assert_eq!(pacer.budget(t), 0);
        assert_eq!(pacer.delay_until(t, MTU), Some(t + 48 * MS));
        // The debt is bounded: no number of probes stalls the sender for long.
        for _ in 0..1_000 {
            pacer.on_sent(t, u64::MAX);
        }
        assert_eq!(pacer.delay_until(t, MTU), Some(t + 144 * MS));
    }

    #[test]
    fn a_change_of_rate_counts_from_then_on() {
        let t = Instant::now();
        let mut pacer = pacer(t, 100_000);
        pacer.on_sent(t, 12_000);
        pacer.set_rate(t + 10 * MS, 200_000);
        assert_eq!(pacer.budget(t + 20 * MS), 1_000 + 2_000);
    }

    #[test]
    fn small_steps_lose_no_fraction() {
        let t = Instant::now();
        let mut pacer = pacer(t, 1_001);
        pacer.on_sent(t, 12_000);
        for i in 1..=10_000 {
            pacer.budget(t + i * Duration::from_micros(100));
        }
        assert_eq!(pacer.budget(t + 1_000 * MS), 1_001);
    }

    #[test]
    fn quanta_fit_batches() {
        assert_eq!(send_quantum(0, 1_200), 2_400);
        assert_eq!(send_quantum(12_500_000, 1_200), 12_500);
        assert_eq!(send_quantum(u64::MAX, 1_200), 65_536);
    }

    #[test]
    fn window_and_round_trip_make_a_rate() {
        let t = Instant::now();
        let mut rtt = RttEstimator::default();
        rtt.update(t, 100 * MS, Duration::ZERO);
        let mut pacer = Pacer::new(1_200);
        pacer.update(t, &NewReno::new(WindowLimits::new(1_200, u64::MAX)), &rtt);
        assert_eq!(pacer.rate(), 150_000);
    }

    #[test]
    fn extremes_do_not_overflow() {
        let t = Instant::now();
        let mut pacer = Pacer::new(u16::MAX);
        for rate in [0, 1, u64::MAX] {
            pacer.set_rate(t, rate);
            pacer.on_sent(t, u64::MAX);
            assert!(pacer.delay_until(t, u64::MAX).is_some_and(|at| at > t));
            assert!(pacer.budget(t + Duration::from_secs(1 << 33)) > 0);
            pacer = Pacer::new(u16::MAX);
        }
    }
}

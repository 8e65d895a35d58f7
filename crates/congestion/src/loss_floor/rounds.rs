//! Packets by the round trip in which they were sent.

use super::experiments::Leg;
use super::headroom::RoundFates;
use super::queue::Extreme;
use super::tally::Tally;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Rounds that wait for outcomes or for evidence about their rate.
const MAX_ROUNDS: usize = 16;
/// A round is at least this long.
const MIN_ROUND: Duration = Duration::from_millis(1);
/// A round is within the bandwidth if it was sent at most this much faster than the fastest delivery.
const TOLERANCE: f64 = 1.05;
/// A delivery counts as fast as this many rounds in a row are on average, so that a burst which a
/// policer lets pass does not.
const SUSTAINED: usize = 2;
/// Rounds below this share of the fastest delivery are slow: their losses are not due to a lack of capacity,
/// even if a policer without a queue enforces it.
const SLOW: f64 = 0.75;

/// The packets that were sent within about a round trip.
#[derive(Debug)]
struct Round {
    start: Instant,
    /// When its last packet was sent.
    last_sent: Instant,
    /// How long it lasts: the round-trip time when it began.
    length: Duration,
    closed: bool,
    sent: u64,
    delivered: u64,
    outstanding: u32,
    /// When packets of it were first and last acknowledged in order.
    acked: Option<(Instant, Instant)>,
    /// Whether its delivery rate is known to the filter.
    measured: bool,
    fates: RoundFates,
    /// The leg of an experiment that it is of.
    leg: Option<Leg>,
    /// Packets that met an empty queue.
    empty: Tally,
    /// Packets that met a queue.
    filled: Tally,
}

impl Round {
    /// In bytes per second, like all rates here.
    fn sending_rate(&self) -> f64 {
        self.sent as f64 / self.length.as_secs_f64()
    }

    /// The slower of the rates at which its packets were sent and acknowledged, so that
    /// acknowledgements that come in a burst do not look like a fast path.
    fn delivery_rate(&self) -> f64 {
        let spread = self.acked.map(|(first, last)| last.saturating_duration_since(first));
        let time = self.length.max(spread.unwrap_or_default());
        self.delivered as f64 / time.as_secs_f64()
    }
}

/// A finished round.
#[derive(Debug, Clone, Copy)]
pub(super) struct Finished {
    /// Packets that met an empty queue, if the path carries the rate of the round.
    pub(super) empty: Option<Tally>,
    /// Whether the rate was well below the fastest delivery.
    pub(super) slow: bool,
    /// Packets that met a queue.
    pub(super) filled: Tally,
}

/// The latest rounds.
#[derive(Debug, Default)]
pub(super) struct LatestRounds {
    rounds: VecDeque<Round>,
    /// The newest deliveries, in bytes per second, newest first.
    deliveries: [f64; SUSTAINED],
    /// The fastest sustained delivery.
    fastest: Extreme<f64>,
    /// Whether some round is settled since the last call of [`Self::finish`].
    news: bool,
}

impl LatestRounds {
    /// Gives back the memory for more rounds than there are.
    pub(super) fn shrink(&mut self) {
        self.rounds.shrink_to_fit();
    }

    /// Handles a packet that is sent. A round lasts for `rtt`; if one begins, `leg` is asked of which leg it is.
    #[inline]
    pub(super) fn on_sent(
        &mut self,
        now: Instant,
        bytes: u64,
        rtt: Duration,
        leg: impl FnOnce() -> Option<Leg>,
    ) {
        let current = self.rounds.back_mut();
        if let Some(round) =
            current.filter(|round| now.saturating_duration_since(round.start) < round.length)
        {
            round.last_sent = now;
            round.sent += bytes;
            round.outstanding += 1;
            return;
        }
        if let Some(round) = self.rounds.back_mut() {
            round.closed = true;
            self.news |= round.outstanding == 0;
        }
        if self.rounds.len() == MAX_ROUNDS {
            self.rounds.pop_front();
        }
        self.rounds.push_back(Round {
            start: now,
            last_sent: now,
            length: rtt.max(MIN_ROUND),
            closed: false,
            sent: bytes,
            delivered: 0,
            outstanding: 1,
            acked: None,
            measured: false,
            fates: RoundFates::default(),
            leg: leg(),
            empty: Tally::default(),
            filled: Tally::default(),
        });
    }

    /// The round in which a packet was sent, if it is not finished.
    fn of(&mut self, sent: Instant) -> Option<&mut Round> {
        let round = self.rounds.iter_mut().rev().find(|round| round.start <= sent)?;
        (sent <= round.last_sent).then_some(round)
    }

    /// Counts the fate of a packet with repair symbols that was sent at `sent`, before it is settled.
    pub(super) fn on_repair(&mut self, sent: Instant, lost: bool) {
        if let Some(round) = self.of(sent) {
            round.fates.repairs.add(lost);
        }
    }

    /// Handles the acknowledgement of a packet that was sent at `sent`. `empty` is whether it found
    /// the queue empty, if that is known.
    pub(super) fn on_acked(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        empty: Option<bool>,
    ) {
        if let Some(round) = self.of(sent) {
            round.acked = Some((round.acked.map_or(now, |(first, _)| first), now));
        }
        self.on_acked_late(sent, bytes, empty);
    }

    /// Handles the acknowledgement of a packet that later packets overtook on the path.
    pub(super) fn on_acked_late(&mut self, sent: Instant, bytes: u64, empty: Option<bool>) {
        let Some(round) = self.of(sent) else { return };
        round.delivered += bytes;
        round.fates.all.add(false);
        match empty {
            Some(true) => round.empty.on_acked(),
            Some(false) => round.filled.on_acked(),
            None => {}
        }
        self.settle(sent);
    }

    /// Handles the loss of a packet that was sent at `sent`, the `nth` in a row.
    pub(super) fn on_lost(&mut self, sent: Instant, empty: Option<bool>, nth: u32) {
        let Some(round) = self.of(sent) else { return };
        round.fates.all.add(true);
        match empty {
            Some(true) => round.empty.on_lost(nth),
            Some(false) => round.filled.on_lost(nth),
            None => {}
        }
        self.settle(sent);
    }

    /// Handles the late acknowledgement of a packet that was counted as lost. Returns false if its
    /// round is finished.
    pub(super) fn on_refuted(&mut self, sent: Instant) -> bool {
        let Some(round) = self.of(sent) else { return false };
        let tally = if round.empty.lost > 0.0 { &mut round.empty } else { &mut round.filled };
        tally.on_refuted();
        true
    }

    fn settle(&mut self, sent: Instant) {
        if let Some(round) = self.of(sent) {
            round.outstanding = round.outstanding.saturating_sub(1);
            let settled = round.closed && round.outstanding == 0;
            self.news |= settled;
        }
    }

    /// Measures the rounds whose packets all have outcomes since the last call, and passes on what became of them.
    pub(super) fn settle_all(
        &mut self,
        now: Instant,
        mut settled: impl FnMut(&RoundFates, Option<Leg>),
    ) {
        if !self.news {
            return;
        }
        for round in &mut self.rounds {
            if round.closed && round.outstanding == 0 && !round.measured {
                round.measured = true;
                settled(&round.fates, round.leg);
                self.deliveries.rotate_right(1);
                self.deliveries[0] = round.delivery_rate();
                let sustained = self.deliveries.iter().sum::<f64>() / SUSTAINED as f64;
                self.fastest.update(now, sustained, faster);
            }
        }
    }

    /// Takes measured rounds. A round that was faster than any delivery so far waits for a round that shows that
    /// the path can carry its rate, until there is no room for it.
    pub(super) fn finish(&mut self, mut take: impl FnMut(Finished)) {
        if !std::mem::take(&mut self.news) {
            return;
        }
        let fastest = self.fastest.get(faster).unwrap_or(0.0);
        self.rounds.retain(|round| {
            let proven = round.sending_rate() <= fastest * TOLERANCE;
            if !round.measured || !proven && round.empty.packets > 0.0 {
                return true;
            }
            let empty = proven.then_some(round.empty);
            let slow = round.sending_rate() < fastest * SLOW;
            take(Finished { empty, slow, filled: round.filled });
            false
        });
    }
}

fn faster(a: f64, b: f64) -> bool {
    a > b
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const RTT: Duration = Duration::from_millis(100);

    /// Sends rounds of these numbers of packets and settles them a round trip later; every packet
    /// with a number below `lost` is lost. For each finished round, returns the number of packets that met a
    /// queue, the losses among those that met none, and whether it was slow.
    fn play(packets: &[u32], lost: u32) -> Vec<(f64, Option<f64>, bool)> {
        let (start, mut rounds) = (Instant::now(), LatestRounds::default());
        let mut finished = Vec::new();
        for (&count, round) in packets.iter().zip(0..) {
            let begin = start + RTT * round;
            let at = |i: u32| begin + RTT * i / (count + 1);
            (0..count).for_each(|i| rounds.on_sent(at(i), 1_000, RTT, || None));
            rounds.on_sent(begin + RTT, 0, RTT, || None);
            for i in 0..count {
                if i < lost {
                    rounds.on_lost(at(i), Some(true), 1);
                } else {
                    rounds.on_acked(at(i) + RTT, at(i), 1_000, Some(true));
                }
            }
            rounds.on_acked(begin + 2 * RTT, begin + RTT, 0, Some(true));
            rounds.settle_all(begin + 2 * RTT, |_, _| {});
            rounds.finish(|f| {
                finished.push((f.filled.packets, f.empty.map(|tally| tally.lost), f.slow));
            });
            assert!(rounds.rounds.len() <= MAX_ROUNDS);
        }
        finished
    }

    #[test]
    fn a_round_counts_once_the_path_has_carried_its_rate() {
        // A tenth is lost. Only the next round, twice as large, shows that the path had room.
        let finished = play(&[10, 20], 1);
        assert_eq!(finished, [(0.0, Some(1.0), true)]);
    }

    #[test]
    fn what_a_policer_drops_is_no_floor() {
        // However many packets are sent, 10 packets of a round arrive.
        let (start, mut rounds) = (Instant::now(), LatestRounds::default());
        let mut lost = 0.0;
        for round in 0..40 {
            let begin = start + RTT * round;
            for i in 0..20 {
                rounds.on_sent(begin + 5 * MS * i, 1_000, RTT, || None);
            }
            rounds.on_sent(begin + RTT, 0, RTT, || None);
            for i in 0..20 {
                let sent = begin + 5 * MS * i;
                if i % 2 == 0 {
                    rounds.on_acked(sent + RTT, sent, 1_000, Some(true));
                } else {
                    rounds.on_lost(sent, Some(true), 1);
                }
            }
            rounds.settle_all(begin + 2 * RTT, |_, _| {});
            rounds.finish(|f| lost += f.empty.unwrap_or_default().lost);
        }
        assert_eq!(lost, 0.0);
    }

    #[test]
    fn late_news_of_a_finished_round_is_refused() {
        let (start, mut rounds) = (Instant::now(), LatestRounds::default());
        rounds.on_sent(start, 1_000, RTT, || None);
        rounds.on_sent(start + RTT, 1_000, RTT, || None);
        rounds.on_lost(start, Some(true), 1);
        assert!(rounds.on_refuted(start));
        assert!(!rounds.on_refuted(start - MS));
        assert!(!rounds.on_refuted(start + 2 * RTT));
    }
}

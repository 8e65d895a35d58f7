//! How long a path keeps losing packets once it has lost one.
//!
//! A run of lost packets says little about time if packets are sent in clumps: a path that is bad
//! for 5 ms loses all five packets of a message that are sent within 1 ms, and all is well 16 ms
//! later, when the next message is sent. The duration in between shows only in the times between packets. So
//! the loss of a packet is compared with the fate of the packet before it, by the time between the two. In
//! the two-state model of Gilbert and Elliott, the chance that the earlier packet was lost too falls with
//! this time as `e^(-time / T)` towards the share of lost packets. This module estimates `T`.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The newest packets that arrived, among which the packet before a lost one is found.
const MAX_ARRIVED: usize = 128;

/// Times between packets are told apart by powers of two, from this one on, in seconds.
const SHORTEST: f64 = 62.5e-6;
/// Up to a second.
const BINS: usize = 14;
/// How many losses back the estimate looks.
const MEMORY: f32 = 100.0;
/// The number of losses that a new connection starts with.
const REMEMBERED: f32 = 20.0;

/// The shortest time `T` that is considered, in seconds; each further candidate is twice as long. Shorter
/// bursts show in runs of packets that follow each other closely ([`Gaps::bounds`]).
const SHORTEST_TIME: f64 = 1e-3;
const TIMES: usize = 10;
/// The last candidate is infinity, which counts as this time in the mean: there the chance does not depend on the time
/// between packets, as where the number of packets ends bursts.
const LONGEST_TIME: f64 = SHORTEST_TIME * (1 << TIMES) as f64;
/// The number of packets ends bursts rather than the time if `T` is more than so many times as long as a burst. Then more
/// than three quarters of the dependence between losses are left after a burst.
const HARDLY_FADES: f64 = 4.0;
/// The probability with which that must be so.
const CERTAIN: f64 = 0.9;
/// By how much the chance that the packet before a lost one was lost may exceed the share of lost
/// packets, if no time passes between the two. Not all packets of a burst need be lost.
const STRENGTHS: [f64; 5] = [0.2, 0.4, 0.6, 0.8, 1.0];
/// Losses come in bursts if that is this many times as likely as independent losses.
const EVIDENCE: f64 = 3.0;
/// The smallest share of lost packets that counts, so that one loss among few is no surprise.
const LEAST_SHARE: f64 = 0.002;
/// The estimate is renewed when this share of its evidence is new.
const RENEWED: f32 = 1.0 / 16.0;

/// Lost packets by the time since the packet before, and by whether that packet was lost too.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Gaps {
    joined: [f32; BINS],
    alone: [f32; BINS],
    /// The sum of the times in each bin, in seconds.
    times: [f32; BINS],
}

impl Gaps {
    fn count(&mut self, gap: Duration, joined: bool) {
        let bin = (gap.as_secs_f64() / SHORTEST).max(1.0).log2() as usize;
        let bin = bin.min(BINS - 1);
        let side = if joined { &mut self.joined } else { &mut self.alone };
        side[bin] += 1.0;
        self.times[bin] += gap.as_secs_f32();
    }

    fn total(&self) -> f32 {
        self.joined.iter().chain(&self.alone).sum()
    }

    fn scale(&mut self, kept: f32) {
        for counts in [&mut self.joined, &mut self.alone, &mut self.times] {
            counts.iter_mut().for_each(|count| *count *= kept);
        }
    }

    /// The counts, reduced to the weight that a later connection should give them.
    pub(super) fn remembered(mut self) -> Self {
        self.scale((REMEMBERED / self.total().max(REMEMBERED)).min(1.0));
        self
    }

    /// The bins that are not empty: their mean time in seconds, and how many are joined and alone.
    fn bins(&self) -> impl Iterator<Item = (f64, f64, f64)> + '_ {
        let counts = self.joined.iter().zip(&self.alone).zip(&self.times);
        let bins = counts.filter(|((joined, alone), _)| *joined + *alone > 0.0);
        bins.map(|((&joined, &alone), &time)| {
            (f64::from(time / (joined + alone)), f64::from(joined), f64::from(alone))
        })
    }

    /// How long bursts last by Bayes' rule, all times `T` being equally likely at first; zero if losses do not come
    /// in bursts. `share` of all packets are lost.
    fn length(&self, share: f64) -> BurstLength {
        // A new path has no counts yet; the computation below would give zero, too.
        if self.bins().next().is_none() {
            return BurstLength::default();
        }
        let weights = self.weights(share.clamp(LEAST_SHARE, 0.5));
        let total: f64 = weights.iter().map(|(_, weight)| weight).sum();
        if total < EVIDENCE * weights.len() as f64 {
            return BurstLength::default();
        }
        let times = weights.iter().map(|(time, weight)| weight * time.min(LONGEST_TIME));
        let (shortest, longest) = self.bounds();
        let burst = (times.sum::<f64>() / total).min(longest).max(shortest);
        let lasting = weights.iter().filter(|(time, _)| burst * HARDLY_FADES < *time);
        let by_number = lasting.map(|(_, weight)| weight).sum::<f64>() > CERTAIN * total;
        BurstLength { time: Duration::from_secs_f64(burst), by_number }
    }

    /// For each time `T`, how many times as likely the counts are as if losses were independent.
    fn weights(&self, share: f64) -> [(f64, f64); TIMES + 1] {
        std::array::from_fn(|index| {
            let time =
                if index < TIMES { SHORTEST_TIME * (index as f64).exp2() } else { f64::INFINITY };
            let likelihood = |strength: f64| {
                let gain = self.bins().map(|(gap, joined, alone)| {
                    let more = strength * (-gap / time).exp();
                    let less = (1.0 - more).max(f64::MIN_POSITIVE);
                    joined * (1.0 + more * (1.0 - share) / share).ln() + alone * less.ln()
                });
                gain.sum::<f64>().min(500.0).exp()
            };
            (time, STRENGTHS.map(likelihood).iter().sum::<f64>() / STRENGTHS.len() as f64)
        })
    }

    /// Bounds from the runs of lost packets themselves: on average a burst lasts at least from the first to
    /// the last packet of a run, and at most from the packet before the run, which arrived. If the number of
    /// packets rather than the time determines how many are lost, only these bounds are right.
    fn bounds(&self) -> (f64, f64) {
        let (mut within, mut before, mut runs) = (0.0, 0.0, 0.0);
        for (gap, joined, alone) in self.bins() {
            within += gap * joined;
            before += gap * alone;
            runs += alone;
        }
        if runs < 1.0 { (0.0, f64::INFINITY) } else { (within / runs, (within + before) / runs) }
    }
}

/// How long losing packets lasts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct BurstLength {
    /// The mean length of a burst.
    pub(super) time: Duration,
    /// Whether the number of packets ends bursts rather than the time.
    pub(super) by_number: bool,
}

/// Estimates how long losing packets lasts.
#[derive(Debug, Default)]
pub(super) struct Bursts {
    /// The newest packets that arrived, by number, with the times at which they were sent.
    arrived: VecDeque<(u64, Instant)>,
    last_lost: Option<(u64, Instant)>,
    gaps: Gaps,
    /// How many are counted since the time was estimated.
    fresh: f32,
    length: BurstLength,
}

impl Bursts {
    /// Starts from the counts of an earlier connection; `share` of all packets are lost.
    pub(super) fn new(gaps: Gaps, share: f64) -> Self {
        Self { gaps, length: gaps.length(share), ..Self::default() }
    }

    pub(super) fn gaps(&self) -> Gaps {
        self.gaps
    }

    /// How long bursts last, as of the last update.
    pub(super) fn length(&self) -> BurstLength {
        self.length
    }

    /// Handles a packet that arrived.
    pub(super) fn on_acked(&mut self, pn: u64, sent: Instant) {
        if self.arrived.len() == MAX_ARRIVED {
            self.arrived.pop_front();
        }
        // Only overtaken packets are not the newest.
        let overtakes = self.arrived.iter().rev().take_while(|(newer, _)| *newer > pn).count();
        self.arrived.insert(self.arrived.len() - overtakes, (pn, sent));
    }

    /// Handles a lost packet, in the order of packet numbers. The fate of all packets before it is
    /// known. Returns whether the packet just before it was lost too. `counts` if the loss is not due to
    /// congestion.
    pub(super) fn on_lost(&mut self, pn: u64, sent: Instant, counts: bool) -> bool {
        let older = self.arrived.partition_point(|(older, _)| *older < pn);
        let arrived = older.checked_sub(1).and_then(|index| self.arrived.get(index)).copied();
        let lost = self.last_lost.replace((pn, sent));
        // The packet before it may have arrived so long ago that it is forgotten.
        let known = arrived.is_some() || self.arrived.len() < MAX_ARRIVED;
        let joined = match (arrived, lost) {
            (Some((arrived, _)), Some((lost, _))) => arrived < lost,
            (None, Some((lost, _))) => known || lost + 1 == pn,
            (_, None) => false,
        };
        let before = if joined { lost } else { arrived };
        if let Some((_, before)) = before.filter(|_| counts && known) {
            self.gaps.count(sent.saturating_duration_since(before), joined);
            self.fresh += 1.0;
        }
        joined
    }

    /// Handles the late acknowledgement of a packet that was reported as lost.
    pub(super) fn on_refuted(&mut self) {
        let total = self.gaps.total();
        self.gaps.scale(if total > 1.0 { 1.0 - total.recip() } else { 0.0 });
        self.fresh += 1.0;
    }

    /// Renews the estimate if enough is new; `share` of all packets are lost.
    pub(super) fn update(&mut self, share: f64) {
        let total = self.gaps.total();
        if self.fresh == 0.0 || self.fresh < total * RENEWED {
            return;
        }
        self.fresh = 0.0;
        self.gaps.scale((MEMORY / total.max(MEMORY)).min(1.0));
        self.length = self.gaps.length(share);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sutura_random::Rng;

    const MS: Duration = Duration::from_millis(1);

    /// The length of bursts that is learned of a path that is good for `good` and bad for `bad` on average, in
    /// milliseconds, and loses all packets while it is bad, from `clumps` of `size` packets that are sent
    /// `spacing` apart, every `interval`.
    fn learn(
        seed: u64,
        (good, bad): (f64, f64),
        (clumps, interval): (u32, Duration),
        (size, spacing): (u32, Duration),
    ) -> BurstLength {
        let (start, mut random) = (Instant::now(), Rng::new(seed));
        let (mut bursts, mut is_bad, mut until, mut lost) = (Bursts::default(), false, 0.0, 0);
        for i in 0..clumps * size {
            let at = interval * (i / size) + spacing * (i % size);
            while until <= at.as_secs_f64() * 1e3 {
                is_bad = !is_bad;
                until -= if is_bad { bad } else { good } * (1.0 - random.unit()).ln();
            }
            if is_bad {
                lost += 1;
                bursts.on_lost(i.into(), start + at, true);
            } else {
                bursts.on_acked(i.into(), start + at);
            }
        }
        bursts.update(f64::from(lost) / f64::from(clumps * size));
        assert!(bursts.arrived.len() <= MAX_ARRIVED);
        bursts.length()
    }

    /// The median of the burst times that several connections learn.
    fn median(channel: (f64, f64), clumps: (u32, Duration), packets: (u32, Duration)) -> Duration {
        let mut times: Vec<_> =
            (0..31).map(|seed| learn(seed, channel, clumps, packets).time).collect();
        times.sort_unstable();
        println!("{channel:?} {packets:?}: {:?} to {:?}", times[3], times[27]);
        times[times.len() / 2]
    }

    #[test]
    fn a_steady_flow_shows_how_long_a_burst_lasts() {
        for (bad, low, high) in [(4.8, 3, 7), (20.0, 13, 30)] {
            let time = median((100.0 * bad, bad), (20_000, MS), (1, MS));
            assert!(low * MS <= time && time <= high * MS, "{bad}: {time:?}");
        }
    }

    #[test]
    fn clumps_do_too() {
        let interval = Duration::from_nanos(1_000_000_000 / 60);
        for spacing in [MS / 10, MS] {
            let time = median((240.0, 4.8), (1_800, interval), (5, spacing));
            assert!(2 * MS <= time && time <= 10 * MS, "{spacing:?}: {time:?}");
        }
    }

    #[test]
    fn what_ends_bursts_is_told_apart_if_packets_are_sent_in_clumps() {
        // Each burst is of three packets on average, however far apart.
        let by_number = |seed| {
            let (start, mut random) = (Instant::now(), Rng::new(seed));
            let (mut bursts, mut is_bad) = (Bursts::default(), false);
            for i in 0..3_000u32 {
                is_bad = random.unit() < if is_bad { 0.67 } else { 0.02 };
                let at = start + 40 * MS * (i / 10) + MS / 10 * (i % 10);
                if is_bad {
                    bursts.on_lost(i.into(), at, true);
                } else {
                    bursts.on_acked(i.into(), at);
                }
            }
            bursts.update(0.06);
            bursts.length().by_number
        };
        let by_time = |seed| learn(seed, (240.0, 4.8), (1_800, 16 * MS), (5, MS / 10)).by_number;
        let count = |of: &dyn Fn(u64) -> bool| (0..40).filter(|seed| of(*seed)).count();
        let (number, time) = (count(&by_number), count(&by_time));
        println!("{number} and {time} of 40");
        assert!(number > 30 && time < 4, "{number} {time}");
    }

    #[test]
    fn losses_that_are_independent_are_no_bursts() {
        // A bad period is over long before the next packet.
        let wrong = (0..100)
            .filter(|seed| !learn(*seed, (0.97, 0.03), (2_000, 10 * MS), (1, MS)).time.is_zero());
        assert!(wrong.count() <= 5);
    }

    #[test]
    fn a_packet_that_arrived_late_and_one_that_is_forgotten() {
        let (start, mut bursts) = (Instant::now(), Bursts::default());
        for pn in [0, 1, 4, 3] {
            bursts.on_acked(pn, start + MS * pn as u32);
        }
        assert!(!bursts.on_lost(2, start + 2 * MS, true));
        assert!(!bursts.on_lost(5, start + 5 * MS, true));
        assert!(bursts.on_lost(6, start + 6 * MS, true));
        assert_eq!((bursts.gaps.total(), bursts.gaps.joined.iter().sum()), (3.0, 1.0));
        // More packets arrive than are remembered before an earlier packet is lost.
        for pn in 1_000..2_000 {
            bursts.on_acked(pn, start + MS * pn as u32);
        }
        assert_eq!(bursts.arrived.len(), MAX_ARRIVED);
        assert!(!bursts.on_lost(1_000, start + MS, true));
        assert!(bursts.on_lost(1_001, start + MS, true));
        assert_eq!(bursts.gaps.total(), 3.0);
        (0..5).for_each(|_| bursts.on_refuted());
        assert_eq!(bursts.gaps.total(), 0.0);
    }

    #[test]
    fn what_is_remembered_is_believed_less() {
        let mut gaps = Gaps::default();
        (0..400).for_each(|i| gaps.count(MS, i % 4 > 0));
        let remembered = gaps.remembered();
        assert!((remembered.total() - REMEMBERED).abs() < 0.01, "{}", remembered.total());
        assert!((remembered.joined[4] / remembered.alone[4] - 3.0).abs() < 0.01);
        assert_eq!(Gaps::default().remembered(), Gaps::default());
        assert!(!Bursts::new(remembered, 0.02).length().time.is_zero());
    }
}

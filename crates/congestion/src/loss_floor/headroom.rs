//! Whether the path has room for redundancy.
//!
//! Losses that do not depend on the rate take packets with repair symbols as often as others. A full queue or a
//! policer whose bucket is empty takes what comes last, after the data for which there was room: repair symbols
//! above all. So packets with repair symbols that are lost more often than the data around them show that they
//! are too much for the path, and that the losses come with them.
//!
//! Only packets of the same round trip are compared (Mantel and Haenszel 1959): more repair symbols are sent while
//! more is lost, so that a comparison of all packets would find them lost more often on any path that changes. A
//! burst takes several repair symbols at once, or several other packets: so the surplus of a round varies more than
//! it would if each packet were lost for itself, and is judged by how much it differs from round to round.

use super::rests::Rests;
use super::tally::Tally;
use std::time::Instant;

/// How many rounds back the comparison looks.
const MEMORY: f64 = 100.0;
/// The statistic above which a difference is proven: equals exceed it by chance in one of 4,000 comparisons.
const PROOF: f64 = 12.0;
/// How much fewer losses a count of whole packets may stand for (Yates's correction).
const CONTINUITY: f64 = 0.5;

/// What became of packets of one kind.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Fates {
    /// How many there were, and how many of them were lost.
    pub(super) packets: u32,
    pub(super) lost: u32,
}

/// What became of the packets that were sent in a round.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RoundFates {
    /// Packets with repair symbols.
    pub(super) repairs: Fates,
    /// These and all others.
    pub(super) all: Fates,
}

impl RoundFates {
    /// The packets without repair symbols, as if all of these that were lost were lost in one run.
    pub(super) fn data(&self) -> Tally {
        let packets = f64::from(self.all.packets.saturating_sub(self.repairs.packets));
        let lost = f64::from(self.all.lost.saturating_sub(self.repairs.lost));
        Tally { packets, lost, runs: lost.min(1.0), squares: lost * lost }
    }
}

impl Fates {
    /// Counts a packet.
    #[inline]
    pub(super) fn add(&mut self, lost: bool) {
        self.packets += 1;
        self.lost += u32::from(lost);
    }
}

/// Compares the fates of packets with repair symbols and of others.
#[derive(Debug, Default)]
pub(super) struct Headroom {
    /// By how many the lost packets with repair symbols exceed what would be lost if all were lost alike, the
    /// variance of this number if each packet is lost for itself, and the sum of the squares of the rounds' numbers.
    excess: f64,
    variance: f64,
    squares: f64,
    rests: Rests,
}

impl Headroom {
    /// The fates of all packets of a round are known. Returns whether they prove that repair symbols are too much
    /// for the path.
    pub(super) fn on_round(&mut self, now: Instant, round: &RoundFates) -> bool {
        let RoundFates { repairs: Fates { packets: repairs, lost: missed }, all } = *round;
        if repairs == 0 || repairs >= all.packets {
            return false;
        }
        let [repairs, missed, all, lost] = [repairs, missed, all.packets, all.lost].map(f64::from);
        let others = all - repairs;
        let excess = missed - repairs * lost / all;
        for sum in [&mut self.excess, &mut self.variance, &mut self.squares] {
            *sum *= 1.0 - 1.0 / MEMORY;
        }
        self.excess += excess;
        self.variance += repairs * others * lost * (all - lost) / (all * all * (all - 1.0));
        self.squares += excess * excess;
        let surplus = (self.excess - CONTINUITY).max(0.0);
        let variance = self.variance.max(self.squares);
        let proven = surplus * surplus > PROOF * variance && surplus > 1.0;
        if proven {
            let mut rests = self.rests;
            rests.begin(now);
            *self = Self { rests, ..Self::default() };
        }
        proven
    }

    /// Whether no redundancy is to be sent for now.
    pub(super) fn is_crowded(&self, now: Instant) -> bool {
        self.rests.lasts(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use sutura_random::Rng;

    const ROUND: Duration = Duration::from_millis(100);

    /// Sends rounds of 30 packets and of repair symbols for 100 s, with these probabilities of loss of both, and
    /// numbers of repair symbols, which take turns for five rounds each. Returns how often repair symbols were
    /// found to be too much.
    fn play(seed: u64, states: &[(f64, f64, u32)]) -> usize {
        let (start, mut random, mut headroom) =
            (Instant::now(), Rng::new(seed), Headroom::default());
        let mut proofs = 0;
        for number in 0..1_000u32 {
            let now = start + ROUND * number;
            let (others, repairs, count) = states[number as usize / 5 % states.len()];
            if headroom.is_crowded(now) {
                continue;
            }
            let mut round = RoundFates::default();
            (0..30).for_each(|_| round.all.add(random.unit() < others));
            for _ in 0..count {
                let lost = random.unit() < repairs;
                round.all.add(lost);
                round.repairs.add(lost);
            }
            proofs += usize::from(headroom.on_round(now, &round));
        }
        proofs
    }

    #[test]
    fn losses_that_take_everything_alike_prove_nothing() {
        let paths = [[(0.02, 0.02, 8); 2], [(0.2, 0.2, 4); 2], [(0.0, 0.0, 1), (0.15, 0.15, 12)]];
        for states in paths {
            let proofs: usize = (0..20).map(|seed| play(seed, &states)).sum();
            assert!(proofs <= 2, "{states:?}: {proofs} in 20 times 100 s");
        }
    }

    #[test]
    fn bursts_that_take_several_at_once_prove_nothing() {
        let proofs: usize = (0..20).map(play_bursts).sum();
        assert!(proofs <= 2, "{proofs} in 20 times 100 s");
    }

    /// Sends rounds of 30 packets and 6 repair symbols behind them for 100 s over a channel whose losses come in
    /// bursts of 4 packets on average. Returns how often repair symbols were found to be too much.
    fn play_bursts(seed: u64) -> usize {
        let (start, mut random, mut headroom) =
            (Instant::now(), Rng::new(seed), Headroom::default());
        let (mut bad, mut proofs) = (false, 0);
        for number in 0..1_000u32 {
            let now = start + ROUND * number;
            if headroom.is_crowded(now) {
                continue;
            }
            let mut round = RoundFates::default();
            for packet in 0..36 {
                bad = random.unit() < if bad { 0.75 } else { 0.01 };
                round.all.add(bad);
                if packet >= 30 {
                    round.repairs.add(bad);
                }
            }
            proofs += usize::from(headroom.on_round(now, &round));
        }
        proofs
    }

    #[test]
    fn redundancy_that_is_lost_more_often_rests_ever_longer() {
        for state in [(0.0, 0.2, 6), (0.05, 0.5, 6)] {
            // 10, 20 and 40 s, and in between some repair symbols.
            let proofs = play(1, &[state]);
            assert!((3..=4).contains(&proofs), "{state:?}: {proofs}");
        }
    }
}

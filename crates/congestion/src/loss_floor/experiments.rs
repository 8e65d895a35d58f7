//! Whether the data is lost more often because of redundancy, found out by experiment.
//!
//! Where a queue drops what has been in it for long, or anything at random, packets with repair symbols are lost no
//! more often than the data around them, even if all the losses are theirs to answer for. Nor does it say much
//! that more is lost while repair symbols are sent: they are sent while more is lost. So, where that is so, redundancy
//! is left out for some rounds and sent for as many, in an order that is drawn. Two such *legs* are a pair, and
//! the leg in which a larger share of the data is lost is equally likely to be either if redundancy does not matter.

use super::headroom::RoundFates;
use super::rests::Rests;
use super::tally::Tally;
use std::time::{Duration, Instant};
use sutura_random::SplitMix64;

/// How many rounds a leg has. Its first ones do not count: what was sent before is still on the path.
const LEG: u32 = 8;
const UNSETTLED: u32 = 2;
/// Harm is proven if so many pairs in a row have lost more in the leg with redundancy, which chance does at most once
/// in 64 times, or half as many if it was proven before.
const PROOF: u32 = 6;
/// How many times as large a share of the data is lost in the leg with redundancy, at least, if redundancy does
/// harm.
const WORSE: f64 = 1.5;
/// After so many pairs an experiment ends, if in most of them nothing was lost.
const MOST_PAIRS: u32 = 12;
/// How many times as long as an experiment took no other begins. The next pauses are longer.
const PAUSE: u32 = 16;
/// So many packets must be known with and without repair symbols for a suspicion.
const ENOUGH: f64 = 50.0;

/// How often it was found out by experiment whether redundancy makes the data be lost more often, and what came
/// out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Experiments {
    /// More was lost with redundancy each time it was tried.
    pub harmful: u32,
    /// No less was lost without redundancy.
    pub harmless: u32,
    /// Too little was lost to tell.
    pub undecided: u32,
}

/// Where a round belongs in an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Leg {
    pair: u32,
    redundant: bool,
}

/// Compares the losses of data with and without redundancy.
#[derive(Debug)]
pub(super) struct Trials {
    random: SplitMix64,
    /// The data of rounds with repair symbols, and of others.
    with: Tally,
    without: Tally,
    running: Option<Trial>,
    /// When no experiment begins because there was one, and when no redundancy is sent because it does harm.
    pauses: Rests,
    rests: Rests,
    results: Experiments,
}

/// An experiment that is under way.
#[derive(Debug)]
struct Trial {
    began: Instant,
    /// How many rounds have begun of the present pair.
    rounds: u32,
    pair: u32,
    /// Whether redundancy is sent in the first leg of the pair, or in the second.
    redundant_first: bool,
    /// How many pairs are compared, and in how many more was lost with redundancy.
    compared: u32,
    worse: u32,
    /// The data of the pair that is compared next, with redundancy and without.
    with: Tally,
    without: Tally,
    /// Whether redundancy was sent in its leg with redundancy.
    sent: bool,
}

/// What an experiment has shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Finding {
    Harmful,
    Harmless,
    Undecided,
}

impl Trial {
    fn new(now: Instant, random: &mut SplitMix64) -> Self {
        Self {
            began: now,
            rounds: 0,
            pair: 0,
            redundant_first: flip(random),
            compared: 0,
            worse: 0,
            with: Tally::default(),
            without: Tally::default(),
            sent: false,
        }
    }

    /// Whether redundancy is sent in the present leg.
    fn is_redundant(&self) -> bool {
        (self.rounds <= LEG) == self.redundant_first
    }

    /// A round begins: which leg it is of, unless it is one of the first of a leg.
    fn on_round(&mut self, random: &mut SplitMix64) -> Option<Leg> {
        if self.rounds == 2 * LEG {
            (self.rounds, self.pair) = (0, self.pair + 1);
            self.redundant_first = flip(random);
        }
        self.rounds += 1;
        let counts = (self.rounds - 1) % LEG >= UNSETTLED;
        counts.then(|| Leg { pair: self.pair, redundant: self.is_redundant() })
    }

    /// Counts the data of a round. What settles after its pair is compared counts no longer.
    fn add(&mut self, leg: Leg, data: &Tally, redundant: bool) {
        if leg.pair == self.compared {
            self.sent |= redundant;
            let tally = if leg.redundant { &mut self.with } else { &mut self.without };
            tally.add(data);
        }
    }

    /// Compares the legs of a pair once its last packets have had time to arrive. Harm is proven by `proof` pairs.
    fn compare(&mut self, proof: u32) -> Option<Finding> {
        if self.pair == self.compared || self.rounds <= UNSETTLED {
            return None;
        }
        self.compared = self.pair;
        let (with, without) = (std::mem::take(&mut self.with), std::mem::take(&mut self.without));
        let sent = std::mem::take(&mut self.sent);
        if sent && without.packets > 0.0 && with.lost + without.lost > 0.0 {
            if with.rate() <= WORSE * without.rate() {
                return Some(Finding::Harmless);
            }
            self.worse += 1;
        }
        if self.worse >= proof {
            return Some(Finding::Harmful);
        }
        (self.compared >= MOST_PAIRS).then_some(Finding::Undecided)
    }
}

fn flip(random: &mut SplitMix64) -> bool {
    random.next_u64() & 1 == 1
}

impl Trials {
    /// `bare` is what was lost of the data so far, without redundancy; `seed` draws the order of the legs.
    pub(super) fn new(bare: Tally, seed: u64) -> Self {
        Self {
            random: SplitMix64::new(seed),
            with: Tally::default(),
            without: bare,
            running: None,
            pauses: Rests::default(),
            rests: Rests::default(),
            results: Experiments::default(),
        }
    }

    /// What experiments have shown so far.
    pub(super) fn results(&self) -> Experiments {
        self.results
    }

    /// Whether an experiment leaves out redundancy for now.
    pub(super) fn withholds(&self) -> bool {
        self.running.as_ref().is_some_and(|trial| !trial.is_redundant())
    }

    /// Whether no redundancy is to be sent for now because it does harm.
    pub(super) fn is_crowded(&self, now: Instant) -> bool {
        self.rests.lasts(now)
    }

    /// A round begins: which leg of an experiment it is of.
    pub(super) fn on_round(&mut self) -> Option<Leg> {
        self.running.as_mut()?.on_round(&mut self.random)
    }

    /// The fates of all packets of a round are known. Returns whether they prove that redundancy does harm.
    pub(super) fn on_fates(&mut self, now: Instant, fates: &RoundFates, leg: Option<Leg>) -> bool {
        let data = fates.data();
        let redundant = fates.repairs.packets > 0;
        let tally = if redundant { &mut self.with } else { &mut self.without };
        tally.fade_and_add(&data);
        let Some(trial) = &mut self.running else {
            if redundant && self.is_suspicious() && !self.pauses.lasts(now) {
                self.running = Some(Trial::new(now, &mut self.random));
            }
            return false;
        };
        // Policies that heed no experiment are not judged by it.
        if let Some(leg) = leg.filter(|leg| leg.redundant || !redundant) {
            trial.add(leg, &data, redundant);
        }
        let proof = if self.results.harmful > 0 { PROOF / 2 } else { PROOF };
        let Some(finding) = trial.compare(proof) else { return false };
        let took = now.saturating_duration_since(trial.began);
        self.end(now, took, finding);
        finding == Finding::Harmful
    }

    /// An experiment of this length has shown something.
    fn end(&mut self, now: Instant, took: Duration, finding: Finding) {
        self.running = None;
        (self.with, self.without) = (Tally::default(), Tally::default());
        let Experiments { harmful, harmless, undecided } = &mut self.results;
        let count = match finding {
            Finding::Harmful => harmful,
            Finding::Harmless => harmless,
            Finding::Undecided => undecided,
        };
        *count = count.saturating_add(1);
        if finding == Finding::Harmful {
            self.rests.begin(now);
        } else {
            self.pauses.begin_for(now, took.saturating_mul(PAUSE));
        }
    }

    /// Whether more of the data is lost in rounds with repair symbols, whatever the reason.
    fn is_suspicious(&self) -> bool {
        let enough = self.with.packets.min(self.without.packets) >= ENOUGH;
        enough && self.without.interval().1 < self.with.interval().0
    }
}

#[cfg(test)]
mod tests {
    use super::super::headroom::Fates;
    use super::*;
    use sutura_random::Rng;

    const ROUND: Duration = Duration::from_millis(50);
    /// Data of a round, and the repair symbols beside it.
    const DATA: u32 = 20;
    const REPAIRS: u32 = 4;

    /// A path with the policy that uses it.
    struct Bed {
        trials: Trials,
        random: Rng,
        now: Instant,
        start: Instant,
        /// Rounds whose fates become known later.
        flying: Vec<(RoundFates, Option<Leg>)>,
        /// Rounds without redundancy, and when harm was proven.
        bare: u32,
        proofs: Vec<Duration>,
    }

    impl Bed {
        fn new(seed: u64) -> Self {
            let now = Instant::now();
            let (trials, random) = (Trials::new(Tally::default(), seed), Rng::new(seed));
            let (flying, proofs) = (Vec::new(), Vec::new());
            Self { trials, random, now, start: now, flying, bare: 0, proofs }
        }

        /// Plays rounds of a policy that sends redundancy if it `wants` to in this round and may; of all packets of
        /// a round a share `loss` is lost, which depends on the round and on whether it has repair symbols.
        fn play(
            &mut self,
            rounds: u32,
            wants: impl Fn(u32) -> bool,
            loss: impl Fn(u32, bool) -> f64,
        ) {
            for round in 0..rounds {
                let leg = self.trials.on_round();
                let may = !self.trials.withholds() && !self.trials.is_crowded(self.now);
                let redundant = may && wants(round);
                self.bare += u32::from(wants(round) && !may);
                let mut fates = RoundFates::default();
                let repairs = if redundant { REPAIRS } else { 0 };
                for n in 0..DATA + repairs {
                    let lost = self.random.chance(loss(round, redundant));
                    fates.all.add(lost);
                    if n >= DATA {
                        fates.repairs.add(lost);
                    }
                }
                self.flying.push((fates, leg));
                self.now += ROUND;
                if self.flying.len() > 1 {
                    let (fates, leg) = self.flying.remove(0);
                    if self.trials.on_fates(self.now, &fates, leg) {
                        self.proofs.push(self.now - self.start);
                    }
                }
            }
        }
    }

    /// A second without redundancy and one with it, in turns.
    fn now_and_then(round: u32) -> bool {
        round / 20 % 2 == 1
    }

    #[test]
    fn redundancy_that_makes_all_be_lost_more_often_is_found_out() {
        for seed in 0..20 {
            let mut bed = Bed::new(seed);
            // Ten minutes, of which the most is spent without redundancy once harm is proven.
            bed.play(12_000, now_and_then, |_, redundant| if redundant { 0.1 } else { 0.001 });
            let results = bed.trials.results();
            assert!(results.harmful >= 3, "{seed}: {results:?}");
            assert!(bed.proofs[0] < Duration::from_secs(60), "{seed}: {:?}", bed.proofs);
            assert!(bed.bare > 4_000, "{seed}: {}", bed.bare);
        }
    }

    #[test]
    fn redundancy_that_follows_the_losses_is_soon_acquitted() {
        let mut proofs = 0;
        for seed in 0..100 {
            let mut bed = Bed::new(seed);
            let loss = |round, _| if now_and_then(round) { 0.1 } else { 0.001 };
            bed.play(12_000, now_and_then, loss);
            let results = bed.trials.results();
            proofs += results.harmful;
            assert!(results.harmful + results.harmless + results.undecided >= 2, "{results:?}");
            // Of 6,000 rounds in which redundancy is of use.
            assert!(results.harmful > 0 || bed.bare < 300, "{seed}: {}", bed.bare);
        }
        assert!(proofs <= 12, "{proofs} of 100 by chance");
    }

    #[test]
    fn equal_losses_raise_no_suspicion() {
        for seed in 0..20 {
            let mut bed = Bed::new(seed);
            bed.play(4_000, now_and_then, |_, _| 0.05);
            assert!(bed.bare < 100, "{seed}: {}", bed.bare);
        }
        let mut bed = Bed::new(0);
        bed.play(1_000, |_| true, |_, _| 0.05);
        assert_eq!((bed.bare, bed.trials.results()), (0, Experiments::default()));
    }

    #[test]
    fn a_policy_that_heeds_no_experiment_is_not_judged() {
        let mut bed = Bed::new(1);
        let fates = |lost, repairs| {
            let repairs = Fates { packets: repairs, lost: 0 };
            RoundFates { repairs, all: Fates { packets: DATA + repairs.packets, lost } }
        };
        for round in 0..4_000 {
            let leg = bed.trials.on_round();
            // What was lost without redundancy at first is all that makes it suspicious.
            let fates = if round < 100 { fates(0, 0) } else { fates(2, REPAIRS) };
            bed.now += ROUND;
            assert!(!bed.trials.on_fates(bed.now, &fates, leg));
        }
        let Experiments { harmful, harmless, undecided } = bed.trials.results();
        assert_eq!((harmful, harmless), (0, 0));
        assert!(undecided > 0);
    }
}

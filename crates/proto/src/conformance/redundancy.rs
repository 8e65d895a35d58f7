//! Checks whether a policy keeps the contract of [`Redundancy`].
//!
//! [`Redundancy`]: crate::policy::Redundancy

mod history;
mod session;
#[cfg(test)]
mod tests;

use crate::fec::redundancy::{PathView, RedundancyFactory, Terms};
use history::SessionStep;
use session::{ModelSession, PolicyAnswers};
use std::time::Instant;
use sutura_random::Rng;

/// Number of histories, and of steps in each.
const HISTORIES: u64 = 48;
const STEPS: usize = 250;
/// Sizes of coding windows in source symbols.
const WINDOWS: [usize; 4] = [1, 5, 32, 200];
/// The first source symbol of a session: 0, or more if it has served other streams before.
const FIRST_IDS: [u64; 3] = [0, 5_000, 1 << 61];

/// Tests the policies of `factory` with random histories of a coding session. The session sends,
/// loses, recovers, runs out of data, is given up and rests, on paths with realistic and with
/// extreme properties.
///
/// ```
/// use std::time::Duration;
/// use sutura_proto::{conformance, policy::Tail};
///
/// conformance::redundancy(&Tail::new(3, Duration::from_millis(25)));
/// ```
///
/// # Panics
/// A policy breaks a rule, which the message names:
///
/// * Queries change nothing: `decide` and `timeout` give the same answer when asked again, and a policy
///   that is asked all the time decides like a policy that is asked once per slot.
/// * A repair symbol covers some of the coding window and no symbol that was never sent. The part of its
///   span below the window is cut off.
/// * When everything has arrived, no repair symbol is wanted, nor while the policy
///   [rests](crate::policy::Redundancy::rests).
/// * Redundancy ends. If nothing happens except that repair symbols are sent, a policy wants at
///   most [`MAX_BURST`](crate::policy::MAX_BURST) of them, plus four for each symbol that is not
///   known to have arrived, however much time passes.
/// * A caller that waits for `timeout` does not spin: after the repair symbols that a policy wanted
///   were sent, the next timeout is not in the past.
/// * Policies are independent of each other, and give the same answers after the same calls.
/// * A factory that [stays awake](RedundancyFactory::stays_awake) sees no reason to sleep but for streams of the
///   protocol itself.
/// * Name and parameters never change.
/// * No call panics, whatever the path is like, even if a century passes between two calls.
pub fn redundancy(factory: &dyn RedundancyFactory) {
    let (name, parameters) = (factory.name().to_owned(), factory.parameters());
    assert!(!name.is_empty(), "a policy has a name");
    // The result does not depend on the start time.
    let start = Instant::now();
    for seed in 0..HISTORIES {
        Trial::new(factory, start, seed).run();
    }
    assert_eq!(factory.name(), name, "{name}: the name of the factory changed");
    assert_eq!(factory.parameters(), parameters, "{name}: the parameters of the factory changed");
}

/// One history, played to several policies that must not differ.
struct Trial<'a> {
    factory: &'a dyn RedundancyFactory,
    start: Instant,
    seed: u64,
    window: usize,
    first: u64,
    steps: Vec<SessionStep>,
}

impl<'a> Trial<'a> {
    fn new(factory: &'a dyn RedundancyFactory, start: Instant, seed: u64) -> Self {
        let mut random = Rng::new(seed);
        let window = WINDOWS[random.below(WINDOWS.len() as u64) as usize];
        let first = FIRST_IDS[random.below(FIRST_IDS.len() as u64) as usize];
        let steps = (0..STEPS).map(|_| SessionStep::any(&mut random)).collect();
        Self { factory, start, seed, window, first, steps }
    }

    fn session(&self, seed: u64) -> ModelSession {
        ModelSession::new(self.factory, self.start, self.window, self.first, seed)
    }

    fn run(&self) {
        let mut alone = self.session(self.seed);
        let play = |step: &SessionStep| {
            let answers = alone.play(*step);
            self.check_wakefulness(alone.path());
            answers
        };
        let answers: Vec<PolicyAnswers> = self.steps.iter().map(play).collect();
        self.play_beside_another(&answers);
        self.play_and_pester(&answers);
    }

    /// A factory that stays awake does not sleep on this path.
    fn check_wakefulness(&self, path: &PathView) {
        let name = self.factory.name();
        for terms in [Terms::STREAM, Terms::GROUP, Terms::DATAGRAM] {
            let sleeps = self.factory.sleeps(path, terms).is_some();
            let awake = self.factory.stays_awake();
            assert!(!(sleeps && awake), "{name}: it stays awake and sleeps on {terms:?}");
        }
    }

    /// Plays the history while another policy of the factory gets other calls in between.
    fn play_beside_another(&self, answers: &[PolicyAnswers]) {
        let [mut session, mut other] = [self.session(self.seed), self.session(!self.seed)];
        for ((step, foreign), expected) in
            self.steps.iter().zip(self.steps.iter().rev()).zip(answers)
        {
            other.play(*foreign);
            assert_eq!(
                &session.play(*step),
                expected,
                "{}: two policies that heard the same differ after {step:?}, when one of them is \
                 not the only one",
                self.factory.name()
            );
        }
    }

    /// Plays it with many additional queries.
    fn play_and_pester(&self, answers: &[PolicyAnswers]) {
        let mut session = self.session(self.seed);
        let mut random = Rng::new(self.seed);
        for (step, expected) in self.steps.iter().zip(answers) {
            session.pester(&mut random);
            assert_eq!(
                &session.play(*step),
                expected,
                "{}: questions changed something; noticed after {step:?}",
                self.factory.name()
            );
        }
    }
}

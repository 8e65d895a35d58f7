//! Whether a policy keeps the contract of [`Redundancy`].
//!
//! [`Redundancy`]: crate::policy::Redundancy

mod history;
mod session;
#[cfg(test)]
mod tests;

use crate::fec::redundancy::RedundancyFactory;
use history::Step;
use session::{Answers, Session};
use std::time::Instant;
use sutura_random::Rng;

/// Histories that are played, and steps in each.
const HISTORIES: u64 = 48;
const STEPS: usize = 250;
/// Coding windows, source symbols.
const WINDOWS: [usize; 4] = [1, 5, 32, 200];
/// The first source symbol of a session that has served other streams before, or none.
const FIRST_IDS: [u64; 3] = [0, 5_000, 1 << 61];

/// Drives the policies of `factory` through random histories of a coding session: it sends, loses,
/// recovers, runs out of data, is given up and rests, on paths with sane and with extreme figures.
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
/// * Questions change nothing: `decide` and `timeout` answer the same when asked again, and a
///   policy that is asked all the time decides as one that is asked once for each slot.
/// * A repair symbol covers something of the coding window and names no symbol that was never sent.
///   What is below the window is cut off.
/// * When everything has arrived, no repair symbol is wanted.
/// * Redundancy ends. A policy that is told of nothing but repair symbols being sent wants at most
///   [`MAX_BURST`](crate::policy::MAX_BURST) of them and four for each symbol that is not known to
///   have arrived, however much time passes.
/// * A caller that waits for `timeout` does not spin: when the repair symbols that a policy wanted
///   were sent, the time that it names next has not passed yet.
/// * Policies are independent of each other, and those that hear the same answer the same.
/// * Name and parameters stay as they are.
/// * No call panics, whatever the path is like, nor when a century passes between two.
pub fn redundancy(factory: &dyn RedundancyFactory) {
    let (name, parameters) = (factory.name().to_owned(), factory.parameters());
    assert!(!name.is_empty(), "a policy has a name");
    // Nothing depends on which instant that is.
    let start = Instant::now();
    for seed in 0..HISTORIES {
        Trial::new(factory, start, seed).run();
    }
    assert_eq!(factory.name(), name, "{name}: the name of the factory changed");
    assert_eq!(factory.parameters(), parameters, "{name}: the parameters of the factory changed");
}

/// One history, for several policies that should not differ.
struct Trial<'a> {
    factory: &'a dyn RedundancyFactory,
    start: Instant,
    seed: u64,
    window: usize,
    first: u64,
    steps: Vec<Step>,
}

impl<'a> Trial<'a> {
    fn new(factory: &'a dyn RedundancyFactory, start: Instant, seed: u64) -> Self {
        let mut random = Rng::new(seed);
        let window = WINDOWS[random.below(WINDOWS.len() as u64) as usize];
        let first = FIRST_IDS[random.below(FIRST_IDS.len() as u64) as usize];
        let steps = (0..STEPS).map(|_| Step::any(&mut random)).collect();
        Self { factory, start, seed, window, first, steps }
    }

    fn session(&self, seed: u64) -> Session {
        Session::new(self.factory, self.start, self.window, self.first, seed)
    }

    fn run(&self) {
        let mut alone = self.session(self.seed);
        let answers: Vec<Answers> = self.steps.iter().map(|step| alone.play(*step)).collect();
        self.play_beside_another(&answers);
        self.play_and_pester(&answers);
    }

    /// Another policy of the factory is told something else in between.
    fn play_beside_another(&self, answers: &[Answers]) {
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

    /// Questions are asked all the time.
    fn play_and_pester(&self, answers: &[Answers]) {
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

//! Requests at once, and the applications that ask and answer.

use crate::Error;
use crate::pair::{Pair, REST};
use std::time::{Duration, Instant};

/// The bytes of an answer.
pub const ANSWER: usize = 1000;
/// No request takes longer.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// The applications of both ends of a pair.
pub trait Load {
    /// The pair.
    fn pair(&mut self) -> &mut Pair;

    /// Lets the applications of both ends work.
    ///
    /// # Errors
    /// The connection fails.
    fn work(&mut self) -> Result<(), Error>;

    /// Sends a request.
    ///
    /// # Errors
    /// No stream may be opened.
    fn send(&mut self) -> Result<(), Error>;

    /// How many answers are complete.
    fn answered(&self) -> usize;

    /// Bytes of answers that were read.
    fn received(&self) -> usize;

    /// Lets both ends work, and goes on to the next arrival or timer, if that is not after `end`. Returns whether
    /// there was one.
    ///
    /// # Errors
    /// The connection fails.
    fn step(&mut self, end: Instant) -> Result<bool, Error> {
        self.work()?;
        Ok(self.pair().step(end))
    }

    /// Sends requests at once, and waits for all answers.
    ///
    /// # Errors
    /// Not all requests are answered.
    fn ask(&mut self, requests: usize) -> Result<(), Error> {
        let end = self.pair().now + PATIENCE;
        let (answered, received) = (self.answered(), self.received());
        (0..requests).try_for_each(|_| self.send())?;
        loop {
            self.work()?;
            if self.answered() == answered + requests {
                break;
            }
            if !self.pair().step(end) {
                return Err("not all requests were answered".into());
            }
        }
        if self.received() != received + requests * ANSWER {
            return Err("not all of the answers arrived".into());
        }
        Ok(())
    }

    /// Lets time pass.
    ///
    /// # Errors
    /// The connection fails.
    fn pass(&mut self, time: Duration) -> Result<(), Error> {
        let end = self.pair().now + time;
        while self.step(end)? {}
        self.pair().now = end;
        Ok(())
    }
}

/// The least number of requests that are measured.
pub const REQUESTS: usize = 400;

/// Plays rounds of requests, of which the first half is a warm-up. Each round goes on until all data is
/// acknowledged. Returns how many requests were measured.
///
/// # Errors
/// Not all requests are answered.
pub fn play(mut load: impl Load, at_once: usize) -> Result<u64, Error> {
    let rounds = REQUESTS.div_ceil(at_once);
    for round in 0..2 * rounds {
        load.pair().meter.switch(round >= rounds);
        load.ask(at_once)?;
        load.pass(REST)?;
    }
    Ok((rounds * at_once) as u64)
}

/// Plays requests one after another without a pause, of which the first half is a warm-up. Returns how many were
/// measured.
///
/// # Errors
/// Not all requests are answered.
pub fn in_turn(mut load: impl Load) -> Result<u64, Error> {
    for round in 0..2 * REQUESTS {
        load.pair().meter.switch(round >= REQUESTS);
        load.ask(1)?;
    }
    Ok(REQUESTS as u64)
}

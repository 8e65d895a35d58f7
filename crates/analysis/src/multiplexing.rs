//! How streams took turns.

use serde::Serialize;

use crate::arrivals::{Arrival, Direction, arrivals};
use crate::trace::Trace;

/// The STREAM frames that brought data, in their order, and how often the stream changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Multiplexing {
    /// STREAM frames with data.
    pub arrivals: Vec<Arrival>,
    /// How many of them are of another stream than the one before.
    pub switches: u64,
    /// The most in a row of the same stream.
    pub longest_run: u64,
}

impl Multiplexing {
    /// Frames in a row of the same stream, on average. 0 if there are none.
    pub fn mean_run(&self) -> f64 {
        if self.arrivals.is_empty() {
            return 0.0;
        }
        self.arrivals.len() as f64 / (self.switches + 1) as f64
    }
}

/// The multiplexing graph of a trace, as data.
pub fn multiplexing(trace: &Trace, direction: Direction) -> Multiplexing {
    let mut arrivals = arrivals(trace, direction);
    arrivals.retain(|a| a.frame.length > 0);
    let mut result = Multiplexing { arrivals, ..Multiplexing::default() };
    let mut run = 0;
    let mut before = None;
    for arrival in &result.arrivals {
        let stream = Some(arrival.frame.stream);
        if stream == before {
            run += 1;
        } else {
            result.switches += u64::from(before.is_some());
            run = 1;
        }
        before = stream;
        result.longest_run = result.longest_run.max(run);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::{Build, frame, last};

    #[test]
    fn runs_are_counted() {
        // 0 0 0 | 4 | 0 0: two switches, three runs, six frames; the empty one does not count.
        let trace = Build::default()
            .received(0, 0, &[frame(0, 0, 1), frame(0, 1, 1), frame(0, 2, 1)])
            .received(1, 1, &[frame(4, 0, 1), last(4, 1, 0)])
            .received(2, 2, &[frame(0, 3, 1), frame(0, 4, 1)])
            .trace();
        let result = multiplexing(&trace, Direction::Received);
        assert_eq!((result.arrivals.len(), result.switches, result.longest_run), (6, 2, 3));
        assert!((result.mean_run() - 2.0).abs() < 1e-12);
        let empty = multiplexing(&trace, Direction::Sent);
        assert_eq!(empty, Multiplexing::default());
        assert!(empty.mean_run().abs() < 1e-12);
    }
}

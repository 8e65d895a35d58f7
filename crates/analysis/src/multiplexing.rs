//! How streams took turns.

use crate::arrivals::{Arrival, Direction, arrivals};
use crate::statistics::mean;
use crate::trace::Trace;

/// The STREAM frames that carried data, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Multiplexing {
    /// STREAM frames with data.
    pub arrivals: Vec<Arrival>,
}

impl Multiplexing {
    /// Runs of consecutive frames of one stream: the stream and the number of frames.
    pub fn runs(&self) -> impl Iterator<Item = (u64, usize)> {
        let runs = self.arrivals.chunk_by(|a, b| a.frame.stream == b.frame.stream);
        runs.filter_map(|run| Some((run.first()?.frame.stream, run.len())))
    }

    /// How many frames belong to another stream than the previous frame.
    pub fn switches(&self) -> usize {
        self.runs().count().saturating_sub(1)
    }

    /// The longest run of frames of one stream.
    pub fn longest_run(&self) -> usize {
        self.runs().map(|(_, length)| length).max().unwrap_or(0)
    }

    /// The mean length of a run; 0 if there are none.
    pub fn mean_run(&self) -> f64 {
        mean(self.runs().map(|(_, length)| length as f64))
    }
}

/// The multiplexing graph of a trace, as data.
pub fn multiplexing(trace: &Trace, direction: Direction) -> Multiplexing {
    let mut arrivals = arrivals(trace, direction);
    arrivals.retain(|a| a.frame.length > 0);
    Multiplexing { arrivals }
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
        assert_eq!((result.arrivals.len(), result.switches(), result.longest_run()), (6, 2, 3));
        assert!(result.runs().eq([(0, 3), (4, 1), (0, 2)]));
        assert!((result.mean_run() - 2.0).abs() < 1e-12);
        let empty = multiplexing(&trace, Direction::Sent);
        assert_eq!(empty, Multiplexing::default());
        assert!(empty.mean_run().abs() < 1e-12);
    }
}

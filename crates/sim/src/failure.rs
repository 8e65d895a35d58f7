//! Failures of a simulation.

use std::fmt;
use std::time::Duration;

/// A failed simulation. The message names the seed that reproduces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The seed, if the simulation is a scenario.
    pub seed: Option<u64>,
    /// The time of the failure, since the start.
    pub at: Duration,
    /// The kind of the failure.
    pub kind: FailureKind,
    /// The last events before the failure, one per line, if they were traced.
    pub trace: String,
}

/// The kinds of failures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// Events kept coming at one instant.
    Livelock,
    /// No event is left, but the goal is not reached.
    Quiescent,
    /// Neither end sent anything for too long although there was data to send.
    Stall {
        /// The length of the silence.
        silence: Duration,
        /// The longest silence that is allowed.
        allowed: Duration,
    },
    /// The work was not done by this time.
    Deadline(Duration),
    /// A connection could not be opened.
    Connect(String),
    /// A connection was lost.
    ConnectionLost(String),
    /// An application gave up.
    App(String),
    /// State was left behind after the end.
    Leftover(String),
}

impl Failure {
    pub(crate) fn new(at: Duration, kind: FailureKind) -> Self {
        Self { seed: None, at, kind, trace: String::new() }
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Livelock => f.write_str("events kept coming at one instant"),
            Self::Quiescent => f.write_str("nothing will ever happen again"),
            Self::Stall { silence, allowed } => {
                write!(f, "nobody sends for {silence:?}, {allowed:?} would be allowed")
            }
            Self::Deadline(deadline) => write!(f, "not done within {deadline:?}"),
            Self::Connect(error) => write!(f, "cannot connect: {error}"),
            Self::ConnectionLost(error) => write!(f, "connection lost: {error}"),
            Self::App(error) => write!(f, "application: {error}"),
            Self::Leftover(what) => write!(f, "left behind: {what}"),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(seed) = self.seed {
            write!(f, "seed {seed}, ")?;
        }
        write!(f, "at {:?}: {}", self.at, self.kind)?;
        if !self.trace.is_empty() {
            write!(f, "\n{}", self.trace)?;
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}

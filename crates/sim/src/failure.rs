//! What can go wrong in a simulation.

use std::fmt;
use std::time::Duration;

/// A simulation did not do what it should. Its text says with which seed it happens again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The seed of the scenario, if it is part of one.
    pub seed: Option<u64>,
    /// When, since the start.
    pub at: Duration,
    /// What.
    pub kind: FailureKind,
    /// The last events before, if they were recorded; one a line.
    pub trace: String,
}

/// What went wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// Events kept coming at one instant.
    Livelock,
    /// Nothing will ever happen again, and the goal is not reached.
    Quiescent,
    /// Nobody sent anything for too long, though there was something to send.
    Stall {
        /// How long nobody would send anything.
        silence: Duration,
        /// How long is allowed.
        allowed: Duration,
    },
    /// Time is up.
    Deadline(Duration),
    /// A connection could not be opened.
    Connect(String),
    /// A connection was lost.
    ConnectionLost(String),
    /// An application is not content.
    App(String),
    /// Something was left behind after the end.
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

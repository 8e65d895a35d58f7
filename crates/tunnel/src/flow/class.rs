//! What flows need.

use std::fmt;

/// What a flow needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// Somebody waits for each answer: keystrokes, look-ups, pages. Few bytes, now and then.
    Interactive,
    /// A steady flow of which each packet is of use for a moment: games, calls, video conferences.
    RealTime,
    /// Much data, of which the end counts: downloads, backups.
    Bulk,
}

impl Class {
    /// All there are.
    pub const ALL: [Self; 3] = [Self::Interactive, Self::RealTime, Self::Bulk];

    /// `interactive`, `real-time` or `bulk`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Interactive => "interactive",
            Self::RealTime => "real-time",
            Self::Bulk => "bulk",
        }
    }

    /// The class that is called so.
    #[must_use]
    pub fn find(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.as_str() == text)
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

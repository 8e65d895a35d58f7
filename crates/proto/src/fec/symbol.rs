//! Source symbols as the sender knows them: what they carry, and what became of them.

use super::lost_symbols::LostState;
use super::redundancy::Message;
use crate::ids::MessageId;
use crate::recovery::token::StreamToken;
use smallvec::SmallVec;
use std::time::Instant;

/// The STREAM frames of one source symbol.
pub(crate) type Frames = SmallVec<[StreamToken; 1]>;

/// The contents of one source symbol, or of several.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    pub(crate) frames: Frames,
    /// The datagrams, which are never sent again.
    pub(crate) datagrams: Vec<MessageId>,
}

impl Contents {
    /// The contents of a symbol that was just written.
    pub(super) fn of(symbol: &NewSymbol<'_>) -> Self {
        match symbol.frame {
            Some(frame) => Self { frames: Frames::from_buf([*frame]), datagrams: Vec::new() },
            None => Self { frames: Frames::new(), datagrams: symbol.datagrams.to_vec() },
        }
    }

    /// Drops the contents.
    pub(super) fn clear(&mut self) {
        self.frames.clear();
        self.datagrams = Vec::new();
    }

    pub(super) fn extend(&mut self, other: Self) {
        self.frames.extend(other.frames);
        self.datagrams.extend(other.datagrams);
    }
}

/// A source symbol that was just written into a packet.
#[derive(Debug)]
pub(crate) struct NewSymbol<'a> {
    pub(crate) bytes: &'a [u8],
    /// The STREAM frame in it, unless it holds datagrams.
    pub(crate) frame: Option<&'a StreamToken>,
    pub(crate) datagrams: &'a [MessageId],
    /// The message to which the data belongs.
    pub(crate) message: Option<Message>,
}

/// The state of a source symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SymbolState {
    /// The packet with the symbol is in flight.
    InFlight,
    /// The packet with the symbol was lost, but a repair symbol in flight may recover the symbol.
    Held {
        /// When the waiting ends.
        until: Instant,
    },
    /// The packet with the symbol was lost, and the symbol waits to be sent again.
    Resend,
    /// The symbol arrived, was recovered, or is no longer needed.
    Done,
}

impl From<LostState> for SymbolState {
    fn from(state: LostState) -> Self {
        match state {
            LostState::InFlight => Self::InFlight,
            LostState::Held { until } => Self::Held { until },
            LostState::Resend => Self::Resend,
        }
    }
}

/// A source symbol in the window.
#[derive(Debug)]
pub(super) struct Symbol {
    /// The contents of the symbol; empty once it is done.
    pub(super) contents: Contents,
    /// Whether the symbol is [`SymbolState::Done`].
    pub(super) done: bool,
    /// When the symbol must be at the receiver.
    pub(super) deadline: Option<Instant>,
    /// When the symbol was sent for the first time.
    pub(super) sent: Instant,
}

/// A symbol that left the window before it was known to have arrived.
#[derive(Debug)]
pub(crate) struct Evicted {
    pub(crate) id: u64,
    /// Whether the packet with the symbol is still in flight, so that the fate of its frames is open.
    pub(crate) in_flight: bool,
    /// Whether the symbol was queued to be sent again.
    pub(crate) queued: bool,
    pub(crate) contents: Contents,
}

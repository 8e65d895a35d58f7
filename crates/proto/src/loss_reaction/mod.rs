//! The seam of the loss reaction: what becomes of stream data between "declared lost" and "queued to be
//! sent again". It is sent again, held back for a while, or given up.

pub use hold_for_repair::HoldForRepair;
pub use resend_at_once::ResendAtOnce;

use crate::ids::StreamId;
use std::fmt::Debug;
use std::ops::Range;
use std::time::{Duration, Instant};
use sutura_schedule::policies;

policies! {
    /// The built-in reactions, as they are listed.
    pub(crate) const ENTRIES: dyn LossReactionFactory = [hold_for_repair, resend_at_once];
}

/// What erasure coding may still do for lost data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairOutlook {
    /// When the newest repair symbol in flight that covers the data was sent; `None` if there is none.
    pub newest_repair: Option<Instant>,
    /// Repair symbols in flight that cover the data.
    pub repairs: u32,
    /// Pieces of the same coding session that are held already, waiting for the same or other repair
    /// symbols.
    pub held: u32,
}

/// Lost stream data: one STREAM frame.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LostData {
    /// The stream.
    pub stream: StreamId,
    /// The bytes of the stream.
    pub range: Range<u64>,
    /// Whether the end of the stream was lost with them.
    pub fin: bool,
    /// When the packet was sent.
    pub sent: Instant,
    /// When the data has to be at the receiver, if the application said so.
    pub deadline: Option<Instant>,
    /// What repair symbols may do; `None` if the data is not protected, or not any more.
    pub repair: Option<RepairOutlook>,
    /// The smoothed round-trip time.
    pub rtt: Duration,
    /// The probe timeout, without backoff.
    pub pto: Duration,
}

impl LostData {
    /// Bare data as a conformance kit or a test makes it: sent at `sent`, with these round-trip time
    /// and probe timeout.
    #[must_use]
    pub fn new(
        stream: StreamId,
        range: Range<u64>,
        sent: Instant,
        rtt: Duration,
        pto: Duration,
    ) -> Self {
        Self { stream, range, fin: false, sent, deadline: None, repair: None, rtt, pto }
    }

    /// The same data, protected: `repairs` repair symbols in flight cover it, the newest sent at
    /// `newest_repair`, and `held` pieces of the session wait for some already.
    #[must_use]
    pub fn protected(mut self, newest_repair: Option<Instant>, repairs: u32, held: u32) -> Self {
        self.repair = Some(RepairOutlook { newest_repair, repairs, held });
        self
    }
}

/// What becomes of lost data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is sent again, in turn.
    Resend,
    /// It waits: if it is not known to have arrived by then, it is sent again. Protected data waits
    /// no longer than a repair symbol is in flight that covers it.
    Hold {
        /// When the waiting ends.
        until: Instant,
    },
    /// Nobody sends it again. The rest of the stream is sent; when nothing of it is outstanding any
    /// more, the stream ends with RESET_STREAM and this code instead of its regular end, unless the
    /// peer recovered the data or it arrived late.
    Drop {
        /// The application error code.
        code: u64,
    },
}

/// Decides what becomes of lost data, protected or not. Congestion control has heard of the loss by
/// then: a policy cannot hide it (RFC 9265).
pub trait LossReaction: Debug + Send {
    /// `lost` was just declared lost. Asked once for each lost frame.
    fn on_lost(&mut self, now: Instant, lost: &LostData) -> Verdict;
}

/// Makes policies of one kind: what a connection's configuration holds.
pub trait LossReactionFactory: Debug + Send + Sync {
    /// The name by which people choose it.
    fn name(&self) -> &str;

    /// A policy for one connection.
    fn build(&self) -> Box<dyn LossReaction>;
}

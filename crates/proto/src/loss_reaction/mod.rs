//! Policies that react to loss: the treatment of stream data between "declared lost" and "queued to be sent
//! again". It is sent again, held back for a while, or dropped.

pub use hold_for_repair::HoldForRepair;
pub use resend_at_once::ResendAtOnce;

use crate::ids::StreamId;
use std::fmt::Debug;
use std::ops::Range;
use std::time::{Duration, Instant};
use sutura_schedule::policies;

policies! {
    /// The built-in reactions, in the order in which they are listed.
    pub(crate) const ENTRIES: dyn LossReactionFactory = [hold_for_repair, resend_at_once];
}

/// How many probe timeouts data waits for a policy to mend it: a repair symbol of its own may be lost
/// as well.
pub(crate) const PATIENCE: u32 = 3;

/// How erasure coding may still recover lost data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairOutlook {
    /// When the newest packet was sent that may let the peer recover the data: a packet with a repair symbol
    /// that covers the data or, if such a repair symbol has arrived and lacks other data as well, a packet
    /// with a copy of that other data. `None` if no such packet is in flight.
    pub newest_repair: Option<Instant>,
    /// How many repair symbols cover the data: symbols in flight, and symbols that have arrived but could not
    /// mend anything alone. Each can mend one source symbol. 0 if the data can no longer be recovered.
    pub repairs: u32,
    /// How many of these repair symbols are needed for symbols that are held already.
    pub held: u32,
    /// Whether the redundancy policy sends as many repair symbols in place of lost data as it takes: see
    /// [`Redundancy::mends`](crate::policy::Redundancy::mends).
    pub mends: bool,
}

/// Lost stream data: the contents of one STREAM frame.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LostData {
    /// The stream.
    pub stream: StreamId,
    /// The lost bytes of the stream.
    pub range: Range<u64>,
    /// Whether the end of the stream was lost with them.
    pub fin: bool,
    /// When the packet was sent.
    pub sent: Instant,
    /// When the data must be at the receiver, if the application gave a deadline.
    pub deadline: Option<Instant>,
    /// The outlook for recovery by erasure coding; `None` if the data is not protected, or no longer.
    pub repair: Option<RepairOutlook>,
    /// The smoothed round-trip time.
    pub rtt: Duration,
    /// The probe timeout, without backoff.
    pub pto: Duration,
}

impl LostData {
    /// Creates unprotected data for a conformance kit or a test, sent at `sent`, with this
    /// round-trip time and probe timeout.
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

    /// Makes the data protected: `repairs` repair symbols cover it, the newest in flight sent at
    /// `newest_repair`, and `held` of them are needed for symbols that wait already.
    #[must_use]
    pub fn protected(mut self, newest_repair: Option<Instant>, repairs: u32, held: u32) -> Self {
        self.repair = Some(RepairOutlook { newest_repair, repairs, held, mends: false });
        self
    }

    /// Makes the data protected by a policy that itself sends repair symbols in place of lost data.
    #[must_use]
    pub fn mended(mut self) -> Self {
        let none = RepairOutlook { newest_repair: None, repairs: 0, held: 0, mends: true };
        self.repair = Some(RepairOutlook { mends: true, ..self.repair.unwrap_or(none) });
        self
    }
}

/// The decision about lost data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Send it again when the resend order says so.
    Resend,
    /// Wait: send it again if it is not known to have arrived by then. Protected data waits only as
    /// long as repair symbols in flight can mend it, together with all other waiting data, unless the
    /// redundancy policy mends losses by further repair symbols.
    Hold {
        /// When to stop waiting.
        until: Instant,
    },
    /// Never send it again. The rest of the stream is sent. Once nothing of it is outstanding, the
    /// stream ends with RESET_STREAM and this code instead of its regular end, unless the peer
    /// recovered the data or it arrived late.
    Drop {
        /// The application error code.
        code: u64,
    },
}

/// Decides about lost data, protected or not.
pub trait LossReaction: Debug + Send {
    /// Decides about `lost`, which was just declared lost. Called once for each lost frame.
    fn on_lost(&mut self, now: Instant, lost: &LostData) -> Verdict;
}

/// Builds policies of one kind. A connection's configuration holds such a factory.
pub trait LossReactionFactory: Debug + Send + Sync {
    /// The name under which users choose the policy.
    fn name(&self) -> &str;

    /// Builds a policy for one connection.
    fn build(&self) -> Box<dyn LossReaction>;
}

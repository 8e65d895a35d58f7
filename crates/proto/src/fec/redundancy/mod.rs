//! The redundancy seam: at each free slot of a packet, the policy of a coding session says whether it
//! would send new data or a repair symbol.
//!
//! [`Tail`] and [`Incremental`] are the two schedules of Holzinger 2025, sections II-D4 and II-D5;
//! [`Block`] makes Reed-Solomon blocks.
//! What a policy sees is what Algorithm 1 of Michel 2022 (FlEC) decides from.

mod protection;
#[cfg(test)]
mod tests;

pub use block::{Block, MAX_BLOCK};
pub use incremental::Incremental;
use protection::parameters;
pub use protection::{MAX_BURST, MAX_DELAY, Protection};
pub use tail::Tail;

use crate::wire::code_id::{CodeId, CodeSet};
use std::fmt::Debug;
use std::ops::Range;
use std::time::{Duration, Instant};
use sutura_schedule::policies;

policies! {
    /// The built-in policies, as they are listed.
    pub(crate) const ENTRIES: dyn RedundancyFactory = [tail, incremental, block];
}

/// A retransmission needs this share of a round trip from the first sending to the arrival, in
/// eighths: nine to notice the loss and four to arrive (Holzinger 2025, II-D2).
const RETRANSMISSION_EIGHTHS: u32 = 13;

/// What the path is like.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct PathView {
    /// The smoothed round-trip time.
    pub rtt: Duration,
    /// The smallest round-trip time.
    pub min_rtt: Duration,
    /// The probe timeout, without backoff.
    pub pto: Duration,
    /// Share of recently sent packets that were lost, 0 to 1.
    pub loss: f64,
    /// The congestion window, bytes.
    pub window: u64,
    /// Bytes in flight.
    pub in_flight: u64,
}

impl Default for PathView {
    /// A path of which nothing is known.
    fn default() -> Self {
        let rtt = crate::recovery::rtt::INITIAL_RTT;
        Self { rtt, min_rtt: rtt, pto: 3 * rtt, loss: 0.0, window: 0, in_flight: 0 }
    }
}

/// A piece of a stream that is of use only as a whole, and perhaps only for a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Message {
    /// When it has to be at the receiver; `None` if it is never too late.
    pub deadline: Option<Instant>,
    /// Its bytes.
    pub size: u64,
}

/// What a policy may know of its session and of the connection.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct View {
    /// First symbol of the coding window. Those below are known to have arrived, or given up.
    pub first: u64,
    /// The session's next source symbol.
    pub next: u64,
    /// Source symbols in the window that are not known to have arrived.
    pub unacked: u32,
    /// Those of them that were declared lost, and not sent again: the missing degrees of freedom
    /// (FlEC's `md`).
    pub missing: u32,
    /// Repair symbols in flight that cover a symbol of the window: the added degrees of freedom
    /// (FlEC's `ad`).
    pub added: u32,
    /// Whether the session has new data that flow control lets it send now.
    pub has_source: bool,
    /// Whether nothing of the whole connection waits to be sent but redundancy.
    pub idle: bool,
    /// Bytes that the connection's flow control lets new data take.
    pub credit: u64,
    /// The newest message that the application announced on a stream of the session.
    pub message: Option<Message>,
    /// The codes that the peer takes.
    pub codes: CodeSet,
    /// What the path is like.
    pub path: PathView,
}

impl Default for View {
    /// A session that has sent nothing.
    fn default() -> Self {
        Self {
            first: 0,
            next: 0,
            unacked: 0,
            missing: 0,
            added: 0,
            has_source: false,
            idle: true,
            credit: u64::MAX,
            message: None,
            codes: CodeSet::default(),
            path: PathView::default(),
        }
    }
}

impl View {
    /// All of the coding window, from the oldest symbol that is not known to have arrived.
    #[must_use]
    pub fn span(&self) -> Range<u64> {
        self.first..self.next
    }

    /// Whether an application that waits for `tolerance` does as well with plain retransmission,
    /// which takes 13/8 of a round trip (Holzinger 2025, II-D2).
    #[must_use]
    pub fn retransmission_is_enough(&self, tolerance: Duration) -> bool {
        tolerance > self.path.rtt * RETRANSMISSION_EIGHTHS / 8
    }
}

/// When a repair symbol goes, relative to other data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Turn {
    /// With the urgency of the most urgent stream that it protects: more urgent new data of others
    /// goes first.
    #[default]
    Protected,
    /// Before all new data.
    First,
}

/// A repair symbol that a policy wants to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairPlan {
    /// The source symbols that it covers. Only what is within the coding window counts.
    pub span: Range<u64>,
    /// The code that makes it. Towards a peer that does not take the code, or if the code has no such
    /// repair symbol, the sliding window makes it.
    pub code: CodeId,
    /// Which of the code's repair symbols over the span, such as the number of a parity symbol of a
    /// block; `None` for one that the session did not use yet.
    pub key: Option<u32>,
    /// When it goes.
    pub turn: Turn,
}

impl RepairPlan {
    /// A new repair symbol of the sliding window over `span`, which goes when its data would.
    #[must_use]
    pub fn over(span: Range<u64>) -> Self {
        Self { span, code: CodeId::SLIDING_WINDOW, key: None, turn: Turn::default() }
    }
}

/// What goes into a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// New data, if there is any.
    Source,
    /// A repair symbol.
    Repair(RepairPlan),
}

/// How the sender learned that the peer holds a source symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// Its packet was acknowledged.
    Acked,
    /// Its packet was acknowledged after it had been declared lost.
    Late,
    /// The peer computed it from repair symbols.
    Recovered,
}

/// Decides when a session sends redundancy.
///
/// [`decide`](Self::decide) is a question: it changes nothing, and may be asked any number of times
/// for one slot. What was decided counts only when the policy hears that it was done. A policy owns
/// no timer: it says by [`timeout`](Self::timeout) when it wants to be asked again.
///
/// Whatever a policy answers, redundancy stays within the congestion window and the pacing rate, and
/// a lost packet stays lost for congestion control (RFC 9265).
pub trait Redundancy: Debug + Send {
    /// The source symbol `id` was sent for the first time.
    fn on_source_sent(&mut self, now: Instant, id: u64, view: &View);

    /// Everything that the application gave was sent; `ended` if it gave all that there will be.
    fn on_flushed(&mut self, now: Instant, ended: bool, view: &View) {
        let _ = (now, ended, view);
    }

    /// A repair symbol was sent.
    fn on_repair_sent(&mut self, now: Instant, view: &View);

    /// The packet with the source symbol `id` was declared lost.
    fn on_lost(&mut self, now: Instant, id: u64, view: &View) {
        let _ = (now, id, view);
    }

    /// The peer holds the source symbol `id`.
    fn on_arrived(&mut self, now: Instant, id: u64, how: Arrival, view: &View) {
        let _ = (now, id, how, view);
    }

    /// What goes into this slot.
    fn decide(&self, now: Instant, view: &View) -> Decision;

    /// When the decision may change though nothing else happens.
    fn timeout(&self) -> Option<Instant> {
        None
    }
}

/// Makes policies of one kind with the same parameters: what protects a stream.
pub trait RedundancyFactory: Debug + Send + Sync {
    /// The name by which people choose it.
    fn name(&self) -> &str;

    /// The parameters as people would write them, such as `burst=3, delay=25ms`. Streams whose
    /// protection has the same name and parameters may share a session.
    fn parameters(&self) -> String;

    /// A policy for a session that has sent nothing yet.
    fn build(&self) -> Box<dyn Redundancy>;
}

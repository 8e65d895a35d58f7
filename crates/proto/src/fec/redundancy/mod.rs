//! The redundancy seam: for each free slot of a packet, the policy of a coding session decides
//! whether to send new data or a repair symbol.
//!
//! [`Tail`] and [`Incremental`] are the two schedules of Holzinger 2025, sections II-D4 and II-D5. [`Block`]
//! makes blocks of block codes, and [`Auto`] decides by the losses of the path.

mod each_symbol;
mod in_time;
mod last_flight;
mod protection;
mod reason;
#[cfg(feature = "testing")]
pub(crate) mod stand_in;
#[cfg(test)]
mod tests;

pub use auto::Auto;
pub use block::{Block, BlockRate, MAX_BLOCK};
pub use incremental::Incremental;
use protection::parameters;
pub use protection::{MAX_BURST, MAX_DELAY, Protection};
pub use reason::Reason;
pub use tail::{FLUSH_LINGER, Tail};

use crate::loss_floor::LossFloor;
use crate::wire::code_id::{CodeId, CodeSet};
use std::fmt::Debug;
use std::ops::Range;
use std::time::{Duration, Instant};
use sutura_schedule::policies;

policies! {
    /// The built-in policies, in the order in which they are listed.
    pub(crate) const ENTRIES: dyn RedundancyFactory = [auto, tail, incremental, block];
}

/// The time from first sending data to the detection of its loss, in eighths of a round trip (RFC
/// 9002 section 6.1.2).
pub(super) const LOSS_DETECTION_EIGHTHS: u32 = 9;
/// The time from first sending data to the arrival of its retransmission, in eighths of a round
/// trip: nine to detect the loss and four to arrive (Holzinger 2025, II-D2).
const RETRANSMISSION_EIGHTHS: u32 = LOSS_DETECTION_EIGHTHS + 4;

/// Keys below this take at most two bytes in a frame, for which all symbols of full packets leave room.
pub(crate) const SHORT_KEYS: u32 = 1 << 14;

/// The state of the path.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct PathView {
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// Minimum round-trip time.
    pub min_rtt: Duration,
    /// Mean deviation of the round-trip time (`rttvar` of RFC 9002).
    pub rtt_variation: Duration,
    /// The probe timeout, without backoff.
    pub pto: Duration,
    /// Fraction of recently sent packets that were lost, 0 to 1, whatever the cause: a moving average over
    /// about 256 packets. It does not tell how uncertain it is, and includes losses that end as soon as the
    /// rate falls.
    pub loss: f64,
    /// How many packets in a row were lost on average, whatever the cause: a moving average over about 100
    /// losses, 1 until there are losses. [`LossFloor::burst`] leaves out packets that a queue may have
    /// dropped.
    pub burst: f64,
    /// Number of packets from which `loss` was learned: packets acknowledged or declared lost so far.
    pub outcomes: u64,
    /// The losses that do not depend on the rate, with their bounds, their bursts and the losses in addition.
    /// The floor takes some rounds longer to learn than `loss`.
    pub floor: LossFloor,
    /// The congestion window in bytes.
    pub window: u64,
    /// Bytes in flight.
    pub in_flight: u64,
    /// Share of the latest pieces of data that found the congestion window full: a moving average over 64 pieces. A
    /// piece is what the application has to send between two moments in which it has nothing.
    pub held: f64,
    /// Whether acknowledgements of several packets in flight are overdue: none came for a probe timeout. The path may
    /// carry nothing at present, and what is sent may be lost whatever protects it.
    pub silent: bool,
}

impl Default for PathView {
    /// A path before the first measurement.
    fn default() -> Self {
        let rtt = crate::rtt::INITIAL_RTT;
        Self {
            rtt,
            min_rtt: rtt,
            rtt_variation: rtt / 2,
            pto: 3 * rtt,
            loss: 0.0,
            burst: 1.0,
            outcomes: 0,
            floor: LossFloor::default(),
            window: 0,
            in_flight: 0,
            held: 0.0,
            silent: false,
        }
    }
}

impl PathView {
    /// Whether plain retransmission, which takes 13/8 of a round trip, is good enough for an
    /// application that can wait for `tolerance` (Holzinger 2025, II-D2).
    #[must_use]
    pub fn retransmission_is_enough(&self, tolerance: Duration) -> bool {
        tolerance > self.rtt * RETRANSMISSION_EIGHTHS / 8
    }

    /// The estimated delay from here to the peer: half a round trip, as in Michel 2022, section
    /// VIII-A2.
    #[must_use]
    pub fn one_way(&self) -> Duration {
        self.rtt / 2
    }

    /// The chance that new data waits for what was sent before, by what became of the latest: here for room in the
    /// congestion window, or in a queue on the path.
    #[must_use]
    pub const fn wait_probability(&self) -> f64 {
        self.held.max(self.floor.queued)
    }

    /// When the peer sent the packet that arrived at `now`, as far as it can be told.
    pub(crate) fn heard_from(&self, now: Instant) -> Instant {
        now.checked_sub(self.one_way()).unwrap_or(now)
    }
}

/// A piece of a stream that is useful only as a whole, and perhaps only until a deadline.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Message {
    /// When the message must reach the receiver; `None` if it is never too late.
    pub deadline: Option<Instant>,
    /// Its size in bytes.
    pub size: u64,
    /// The place of the message in an ordered group.
    pub stage: Stage,
}

impl Message {
    sutura_schedule::setters! {
        with_deadline: deadline = Option<Instant>,
        with_size: size = u64,
        with_stage: stage = Stage,
    }
}

/// Where a message stands among the fences of an [ordered group](https://docs.rs/sutura-groups).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Stage {
    /// The message belongs to no group.
    #[default]
    Apart,
    /// The message is somewhere between two fences.
    Within,
    /// The message is directly behind a fence: the receiver holds it, and all later messages, until it has
    /// all messages before the fence. Policies see this stage with the first symbol of the message.
    First,
}

/// The properties of data that is about to be sent, by which a policy decides whether to protect it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Terms {
    /// Whether lost data is sent again; false for datagrams.
    pub resends: bool,
    /// Whether the data is a message of an [ordered group](https://docs.rs/sutura-groups), for which all
    /// messages behind the next fence wait.
    pub fenced: bool,
    /// Whether the data belongs to a stream of the protocol itself
    /// ([`Urgency::CONTROL`](sutura_schedule::Urgency::CONTROL)), such as HTTP/3's control stream.
    pub control: bool,
    /// How long the data may take from now on to be of use at the receiver, by the deadline of its message;
    /// `None` without a deadline.
    pub tolerance: Option<Duration>,
    /// How many bytes the application has written to the stream so far, sent or not; 0 for datagrams.
    pub written: u64,
}

impl Terms {
    /// The terms of streams to which little was written.
    pub const STREAM: Self =
        Self { resends: true, fenced: false, control: false, tolerance: None, written: 0 };
    /// The terms of messages of ordered groups.
    pub const GROUP: Self = Self { fenced: true, ..Self::STREAM };
    /// The terms of datagrams.
    pub const DATAGRAM: Self = Self { resends: false, ..Self::STREAM };
    /// The terms of streams of the protocol itself.
    pub const CONTROL: Self = Self { control: true, ..Self::STREAM };

    /// These terms for data that may take this long.
    #[must_use]
    pub const fn within(self, tolerance: Option<Duration>) -> Self {
        Self { tolerance, ..self }
    }

    /// These terms for a stream to which so many bytes were written.
    #[must_use]
    pub const fn of_stream(self, written: u64) -> Self {
        Self { written, ..self }
    }
}

/// The state of its session and of the connection that a policy sees.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct View {
    /// The first symbol of the coding window. Symbols below have arrived or were given up.
    pub first: u64,
    /// The first symbol that may still be in time: `first`, or a later one if the symbols before it are datagrams that
    /// come too late even if a repair symbol is sent now.
    pub timely: u64,
    /// The first symbol that a repair symbol may cover: `first`, or an earlier one that the policy
    /// [keeps](Redundancy::keeps).
    pub kept: u64,
    /// The identifier of the session's next source symbol.
    pub next: u64,
    /// The most symbols, from `kept` on, for which there is room.
    pub capacity: u32,
    /// Number of source symbols from `timely` on that are not known to have arrived.
    pub unacked: u32,
    /// Number of source symbols from `timely` on that were declared lost, were not sent again, and for which no
    /// repair symbol at the peer stands: the missing degrees of freedom (FlEC's `md`). A repair symbol stands
    /// for one source symbol of its span as soon as it has arrived, although it may take further repair
    /// symbols before any source symbol is recovered.
    pub missing: u32,
    /// The newest of the symbols from `timely` on that were declared lost and not sent again.
    pub newest_missing: Option<u64>,
    /// Number of repair symbols in flight that cover a symbol of the window and have recovered no symbol so
    /// far: the added degrees of freedom (FlEC's `ad`).
    pub added: u32,
    /// Number of source symbols that are not known to have arrived, can still be in time, and are newer than
    /// all symbols that a repair symbol covers.
    pub unprotected: u32,
    /// The earliest deadline of the unprotected symbols; `None` if none of them has a deadline.
    pub deadline: Option<Instant>,
    /// Bytes that the application has written to streams of the session and that were never sent.
    pub left: u64,
    /// How many bytes the peer buffers: for the session's streams, the bytes that flow control allows from
    /// the oldest byte that is not known to have arrived to the newest byte that may be sent.
    pub buffer: u64,
    /// Whether the session has new data that flow control allows to send now.
    pub has_source: bool,
    /// Whether nothing but redundancy waits to be sent on the whole connection.
    pub idle: bool,
    /// Number of new bytes that the connection's flow control allows.
    pub credit: u64,
    /// The last message that the application announced on a stream of the session. In
    /// [`Redundancy::on_source_sent`], the message to which the symbol's data belongs.
    pub message: Option<Message>,
    /// Whether lost data is sent again if no repair symbol mends it. False for datagrams.
    pub resends: bool,
    /// When the application will write its next message; `None` if it did not say.
    pub next_message: Option<Instant>,
    /// The codes that the peer accepts.
    pub codes: CodeSet,
    /// The state of the path.
    pub path: PathView,
}

impl Default for View {
    /// A session that has sent no symbol.
    fn default() -> Self {
        Self {
            first: 0,
            timely: 0,
            kept: 0,
            next: 0,
            capacity: u32::MAX,
            unacked: 0,
            missing: 0,
            newest_missing: None,
            added: 0,
            unprotected: 0,
            deadline: None,
            left: 0,
            buffer: u64::MAX,
            has_source: false,
            idle: true,
            credit: u64::MAX,
            message: None,
            resends: true,
            next_message: None,
            codes: CodeSet::default(),
            path: PathView::default(),
        }
    }
}

impl View {
    /// All symbols that repair symbols may bring in time.
    #[must_use]
    pub fn span(&self) -> Range<u64> {
        self.first.max(self.timely)..self.next
    }

    /// How long the message to which the last source symbol belongs may take from `now` on; `None` if it
    /// has no deadline.
    #[must_use]
    pub fn tolerance(&self, now: Instant) -> Option<Duration> {
        let deadline = self.message.and_then(|message| message.deadline)?;
        Some(deadline.saturating_duration_since(now))
    }

    /// Whether flow control holds back data of the session.
    #[must_use]
    pub fn is_blocked(&self) -> bool {
        self.left > 0 && !self.has_source
    }

    /// See [`PathView::retransmission_is_enough`]; false for data that is not sent again.
    #[must_use]
    pub fn retransmission_is_enough(&self, tolerance: Duration) -> bool {
        self.resends && self.path.retransmission_is_enough(tolerance)
    }
}

/// When a repair symbol is sent, relative to other data.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Turn {
    /// With the urgency of the most urgent stream that it protects: more urgent new data of other
    /// streams goes first.
    #[default]
    Protected,
    /// Before all new data.
    First,
}

/// A repair symbol that a policy wants to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepairPlan {
    /// The source symbols that the repair symbol covers. Symbols before [`View::kept`] and from
    /// [`View::next`] on are left out.
    pub span: Range<u64>,
    /// The code that makes the repair symbol. If the peer does not accept the code, or the code has no such
    /// repair symbol, the sliding window is used instead.
    pub code: CodeId,
    /// Selects one of the code's repair symbols over the span, such as a parity symbol of a block by its
    /// number. `None` for a key that the session has not used yet.
    pub key: Option<u32>,
    /// When the repair symbol is sent.
    pub turn: Turn,
}

impl RepairPlan {
    /// A new repair symbol of the sliding window over `span`, sent when its data would be sent.
    #[must_use]
    pub fn over(span: Range<u64>) -> Self {
        Self { span, code: CodeId::SLIDING_WINDOW, key: None, turn: Turn::default() }
    }
}

/// The choice for a slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// New data, if there is any.
    Source,
    /// A repair symbol.
    Repair(RepairPlan),
}

/// How the sender learned that the peer has a source symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// The packet with the symbol was acknowledged.
    Acked,
    /// The packet with the symbol was acknowledged after it had been declared lost.
    Late,
    /// The peer recovered the symbol from repair symbols.
    Recovered,
}

/// Decides when a session sends redundancy.
///
/// [`decide`](Self::decide) is a pure query: it changes nothing, and may be called any number of times for
/// one slot. A decision counts only once the policy is told that the symbol was sent. A policy has no timer
/// of its own: its [`timeout`](Self::timeout) tells when it wants to be asked again.
///
/// Whatever a policy answers, redundancy stays within the congestion window and the pacing rate,
/// and a lost packet stays lost for congestion control (RFC 9265).
pub trait Redundancy: Debug + Send {
    /// The source symbol `id` was sent for the first time.
    fn on_source_sent(&mut self, now: Instant, id: u64, view: &View);

    /// All data that the application has written was sent, the last data as a source symbol or because the
    /// protection [sleeps](RedundancyFactory::sleeps); `ended` if there will be no more data.
    fn on_flushed(&mut self, now: Instant, ended: bool, view: &View) {
        let _ = (now, ended, view);
    }

    /// A repair symbol was sent.
    fn on_repair_sent(&mut self, now: Instant, view: &View);

    /// The packet with the source symbol `id` was declared lost.
    fn on_lost(&mut self, now: Instant, id: u64, view: &View) {
        let _ = (now, id, view);
    }

    /// The datagrams in the source symbol `id` were lost, nobody sends them again, and no repair symbol is left for
    /// them: each of those that cover them, in flight or at the peer, is needed for other datagrams. Called when the
    /// loss is known, and again when a repair symbol is lost that was to mend them.
    fn on_unmended(&mut self, now: Instant, id: u64, view: &View) {
        let _ = (now, id, view);
    }

    /// The peer has the source symbol `id`.
    fn on_arrived(&mut self, now: Instant, id: u64, how: Arrival, view: &View) {
        let _ = (now, id, how, view);
    }

    /// Whether the policy itself sends repair symbols in place of lost data. The data then waits for the
    /// repair symbols, and is sent again itself only if they fail to mend it.
    fn mends(&self) -> bool {
        false
    }

    /// Whether data that is sent now becomes a source symbol. A policy that will not cover the data by a
    /// repair symbol returns false, and saves the bytes of a symbol's header in each packet. If such data is
    /// lost, the policy is asked again when the data is sent again.
    fn protects(&self, view: &View) -> bool {
        let _ = view;
        true
    }

    /// Whether the policy [protects](Self::protects) all data, whatever its view is. It is then not asked about
    /// each frame, which saves the view.
    fn protects_all(&self) -> bool {
        false
    }

    /// The first symbol that the policy still needs, although all symbols before `first`, the first of the
    /// coding window, have arrived: for example the first symbol of a block whose parity symbols must all
    /// cover the same symbols. The kept symbols stay as long as the coding window has room.
    fn keeps(&self, first: u64) -> u64 {
        first
    }

    /// The first symbol that repair symbols may still cover, where `kept` is [`View::kept`]. It never decreases.
    /// The contents of symbols before it need no room, and those of few symbols stay in the cache: a policy that
    /// covers only its newest symbols, as blocks do, takes less time if it says so.
    fn covers_from(&self, kept: u64) -> u64 {
        kept
    }

    /// The largest key that [plans](RepairPlan::key) name. Source symbols are so much shorter than packets
    /// that repair symbols with this key fit; repair symbols with a larger key are not sent if the key takes
    /// more bytes. Keys below 2^14 always have room.
    fn largest_key(&self) -> u32 {
        0
    }

    /// Whether the policy wants no repair symbol at `now`, whatever its view is. `missing` tells whether
    /// [`View::missing`] may be more than 0. The policy is then not asked to [decide](Self::decide), which saves the
    /// view.
    fn rests(&self, now: Instant, missing: bool) -> bool {
        let _ = (now, missing);
        false
    }

    /// Decides what to send in this slot.
    fn decide(&self, now: Instant, view: &View) -> Decision;

    /// When the decision may change without any other event. While the connection has nothing else to send,
    /// the policy is not asked again before that time, unless one of its other methods was called, its view
    /// has changed, or the view contains a deadline or the time of the next message.
    fn timeout(&self) -> Option<Instant> {
        None
    }

    /// Why the policy sends redundancy at present, or sends none; `None` if the policy does not say. The
    /// reason may change with any event of which the policy is told.
    fn reason(&self) -> Option<Reason> {
        None
    }
}

/// Builds policies of one kind with the same parameters: the protection of a stream.
pub trait RedundancyFactory: Debug + Send + Sync {
    /// The name of the policy in configurations.
    fn name(&self) -> &str;

    /// The parameters as text, such as `burst=3, delay=25ms`. Streams whose protections have the
    /// same name and parameters may share a session.
    fn parameters(&self) -> String;

    /// Why data on this path on these terms needs no repair symbols, if there is a reason. This is the only
    /// place that decides whether redundancy is worth while for data on such terms, and it is asked for each
    /// frame. Only without such a reason do streams and datagrams join a session, whose policy is then asked
    /// whether it [protects](Redundancy::protects) the frame. A pure query: it changes nothing.
    fn sleeps(&self, path: &PathView, terms: Terms) -> Option<Reason> {
        let _ = (path, terms);
        None
    }

    /// Whether data of the application is protected on any path and on any terms: [`sleeps`](Self::sleeps) has a
    /// reason only for streams of the protocol itself, if for any. It is then not asked about each frame of the other
    /// streams, which saves the terms.
    fn stays_awake(&self) -> bool {
        false
    }

    /// Whether all streams with this protection share one session, so that a repair symbol may cover several
    /// streams. Otherwise each stream has a session of its own as long as there are enough sessions.
    fn shares_session(&self) -> bool {
        false
    }

    /// A policy for a session that has sent no symbol yet.
    fn build(&self) -> Box<dyn Redundancy>;
}

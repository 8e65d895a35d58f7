//! The trait that every scheme implements.

use std::fmt::Debug;

use crate::Priority;

/// Names a stream. QUIC stream ids in practice; all that counts here is that they are unique and
/// ordered.
pub type StreamKey = u64;

/// Leave to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Grant {
    /// The stream that may send.
    pub stream: StreamKey,
    /// How many bytes of the packet it may fill at most; from 1 to the room that was asked for.
    pub bytes: usize,
}

/// Decides which stream fills the packet that is being built.
///
/// A stream is *inserted* when it comes to exist, *active* while it has bytes that may be sent now
/// (flow control and all other limits considered), and *removed* when it will never send again. For
/// each piece of a packet the caller asks [`next`](Self::next), writes, and reports what came of
/// it: [`charge`](Self::charge), and [`deactivate`](Self::deactivate) or [`remove`](Self::remove)
/// if nothing more may be sent.
///
/// * `next` is a question: it changes nothing, and may be asked as often as one likes. Only a charge
///   ends a turn, so a packet that was not built after all costs no stream its place. A caller must
///   therefore deactivate a stream that cannot use its grant at all, and must stop asking when the
///   room is too small for a frame.
/// * Streams of [`Urgency::CONTROL`](crate::Urgency::CONTROL) go before all others.
/// * A call that names a stream that is not inserted changes nothing, and repeating a call changes
///   nothing, except that each charge is of bytes of its own. Any order of calls is harmless.
/// * Equal calls to two schedulers of one kind have equal answers.
/// * An implementation holds one entry for each inserted stream and nothing else. Its caller bounds
///   the number of streams (RFC 9000, section 4.6).
///
/// [`conformance`](crate::conformance) checks all of this but the last.
pub trait Scheduler: Send + Debug {
    /// Adds a stream, not active. For a stream that is there already it is the same as
    /// [`reprioritize`](Self::reprioritize).
    fn insert(&mut self, stream: StreamKey, priority: Priority);

    /// Forgets a stream.
    fn remove(&mut self, stream: StreamKey);

    /// Changes the priority of a stream, active or not. It takes effect with the next decision; a
    /// priority equal to the present one leaves the stream where it is.
    fn reprioritize(&mut self, stream: StreamKey, priority: Priority);

    /// The stream has bytes that may be sent now.
    fn activate(&mut self, stream: StreamKey);

    /// The stream has no bytes that may be sent now.
    fn deactivate(&mut self, stream: StreamKey);

    /// Who may fill the `room` bytes that are left in the packet being built: an active stream.
    /// `None` only if no stream is active, or there is no room.
    fn next(&self, room: usize) -> Option<Grant>;

    /// `bytes` of the connection's capacity were used for the stream. That is what it sent of a
    /// grant, and just as well bytes that no grant was asked for: a retransmission, or a repair
    /// symbol that protects it. Zero bytes are nothing.
    fn charge(&mut self, stream: StreamKey, bytes: usize);

    /// The congestion window is `bytes` long now, for schemes whose turns are as long as it is.
    /// Others ignore it, and so does this default.
    fn on_congestion_window(&mut self, bytes: u64) {
        let _ = bytes;
    }

    /// Whether classes ([`Priority::parents`]) decide before a stream's own urgency. Asked when
    /// something is ranked that no grant is asked for, such as a repair symbol. No by default.
    fn goes_by_classes(&self) -> bool {
        false
    }

    /// Whether no stream is active.
    fn is_empty(&self) -> bool;
}

/// Makes schedulers of one kind: what a connection's configuration holds.
pub trait SchedulerFactory: Debug + Send + Sync {
    /// The name by which people choose it.
    fn name(&self) -> &str;

    /// A scheduler without streams.
    fn build(&self) -> Box<dyn Scheduler>;
}

//! The trait that every scheme implements.

use std::fmt::Debug;

use crate::Priority;

/// Identifies a stream. In practice this is a QUIC stream ID, but schedulers only rely on keys
/// being unique and ordered.
pub type StreamKey = u64;

/// Permission to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Grant {
    /// The stream that may send.
    pub stream: StreamKey,
    /// The maximum number of bytes of the packet that it may fill, from 1 to the room that was
    /// asked for.
    pub bytes: usize,
}

/// Decides which stream fills the packet that is being built.
///
/// A stream is *inserted* when it is created, *active* while it has bytes that may be sent now
/// (considering flow control and all other limits), and *removed* when it will never send again.
/// For each piece of a packet, the caller asks [`next`](Self::next), writes, and reports the result
/// with [`charge`](Self::charge), followed by [`deactivate`](Self::deactivate) or [`remove`](Self::remove) if
/// the stream may send no more.
///
/// * `next` changes nothing and may be called any number of times. Only a charge ends a turn, so a
///   packet that is not built after all costs no stream its place. Therefore, a caller must
///   deactivate a stream that cannot use its grant at all, and must stop asking when the room is
///   too small for a frame.
/// * Streams of [`Urgency::CONTROL`](crate::Urgency::CONTROL) go before all others.
/// * A call for a stream that is not inserted changes nothing, and neither does repeating a call,
///   except that each charge accounts for new bytes. Calls may come in any order.
/// * Two schedulers of the same kind answer the same sequence of calls in the same way.
/// * An implementation stores one entry per inserted stream and nothing else. The caller bounds the
///   number of streams (RFC 9000, section 4.6).
///
/// The test kit `conformance`, a feature, checks all points except the last.
pub trait Scheduler: Send + Debug {
    /// Adds an inactive stream. If the stream is inserted already, this is the same as
    /// [`reprioritize`](Self::reprioritize).
    fn insert(&mut self, stream: StreamKey, priority: Priority);

    /// Removes a stream.
    fn remove(&mut self, stream: StreamKey);

    /// Changes the priority of a stream, active or not, starting with the next decision. A priority
    /// equal to the current one has no effect.
    fn reprioritize(&mut self, stream: StreamKey, priority: Priority);

    /// Marks a stream as active: it has bytes that may be sent now.
    fn activate(&mut self, stream: StreamKey);

    /// Marks a stream as inactive: it has no bytes that may be sent now.
    fn deactivate(&mut self, stream: StreamKey);

    /// Selects the active stream that may fill the `room` bytes left in the packet being built.
    /// Returns `None` only if no stream is active or there is no room.
    fn next(&self, room: usize) -> Option<Grant>;

    /// Accounts for `bytes` of the connection's capacity that were used for the stream. This includes the
    /// bytes that the stream sent of a grant, but also bytes sent without a grant: a retransmission, or a
    /// repair symbol that protects the stream. Of a STREAM frame the bytes of data count, and the header only
    /// if the scheduler [goes by frames](Self::goes_by_frames). Zero bytes have no effect. There may be more
    /// than the scheduler can count: its sums saturate.
    fn charge(&mut self, stream: StreamKey, bytes: usize);

    /// Sets the current congestion window, in bytes, for schemes whose turns are as long as the
    /// window. By default, it is ignored.
    fn on_congestion_window(&mut self, bytes: u64) {
        let _ = bytes;
    }

    /// Gives back the memory that is kept for the next burst, because the connection may be silent for a while.
    /// Changes no decision. By default, nothing is given back.
    fn rest(&mut self) {}

    /// Whether classes ([`Priority::parents`]) take precedence over a stream's own urgency. Used to rank
    /// frames that need no grant, such as a repair symbol. Always the same answer, `false` by default.
    fn goes_by_classes(&self) -> bool {
        false
    }

    /// Whether turns are measured by the lengths of frames (Holzinger et al. 2025, section III-B1). If
    /// so, the headers of STREAM frames are charged with their data, so that a stream may overdraw its
    /// grant by a header, and since turns end in the middle of packets, the next stream fills up the
    /// packet. Always the same answer, `false` by default.
    fn goes_by_frames(&self) -> bool {
        false
    }

    /// Whether no stream is active.
    fn is_empty(&self) -> bool;
}

/// Creates schedulers of one kind. Part of a connection's configuration.
pub trait SchedulerFactory: Debug + Send + Sync {
    /// The name under which users select it.
    fn name(&self) -> &str;

    /// Creates a scheduler without streams.
    fn build(&self) -> Box<dyn Scheduler>;
}

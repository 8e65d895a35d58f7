//! Congestion control (RFC 9002 section 7): the seam and its algorithms.
//!
//! A controller is told of every packet that counts as in flight: sent, acknowledged, lost,
//! wrongly declared lost, or discarded. It answers with a window and perhaps a rate. It need not
//! keep packets: what it wants to remember about one is the [`PacketState`] that it hands out at
//! sending and gets back with the packet's fate.
//!
//! Erasure coding hides no loss from a controller; the caller sees to that. A packet whose contents
//! were recovered by erasure coding is still reported as lost, and repair symbols are sent bytes
//! like any other. Nor does redundancy hide that the application had nothing to send: a flow that
//! fills its window with repair symbols only is application-limited.

mod algorithm;
mod arithmetic;
pub(crate) mod bottleneck;
mod delivery;
mod episode;
mod factory;
mod hystart;
mod pacer;
mod packet;
#[cfg(test)]
mod tests;
mod window;

pub use algorithm::Algorithm;
pub use factory::{CongestionFactory, PathParameters};
pub use pacer::Pacer;
pub use packet::{Acked, Lost, Packet, PacketState, Sent};
pub use window::{MAX_WINDOW, WindowLimits};

use crate::ids::SpaceId;
use crate::recovery::rtt::RttEstimator;
use std::fmt;
use std::time::Instant;
use sutura_schedule::policies;

policies! {
    /// The built-in algorithms, as they are listed.
    pub(crate) const ENTRIES: dyn CongestionFactory = [new_reno, cubic, bbr];
}

/// Decides how much may be in flight, and how fast it is sent.
///
/// Calls for one ACK frame come in the order of RFC 9002 appendix A.7: [`Self::on_ecn_ce`],
/// [`Self::on_packets_lost`], [`Self::on_spurious_loss`], [`Self::on_packets_acked`]; empty slices
/// are ignored. `in_flight` is always without the packets that the call is about. Packets whose
/// state another controller made (the one of an old path) must not be reported.
///
/// The packets of one call are of one space. A packet has at most one fate: acknowledged, lost, or
/// discarded with its space. A lost one may be refuted once, soon after. A controller that keeps
/// packets by space and number therefore forgets them when they are acknowledged or lost, and a
/// whole space when that is discarded.
///
/// Questions change nothing: asking twice gives the same answer, and what the controller does later
/// does not depend on what it was asked. A method has a default body only where doing nothing is
/// right for an algorithm that takes no interest in it.
///
/// *Application-limited* means that the sender had nothing to send although window and pacer had
/// room: the application wrote nothing, or flow control held back what it wrote. Waiting for the
/// pacer is not that; sending repair symbols because there is nothing else is.
pub trait CongestionController: Send + fmt::Debug {
    /// A packet is sent. The answer comes back with the packet's fate; an algorithm that remembers
    /// nothing of packets leaves it empty.
    fn on_packet_sent(&mut self, _now: Instant, _packet: &Sent) -> PacketState {
        PacketState::default()
    }

    /// Packets were newly acknowledged by one ACK frame, after `rtt` was updated from it.
    /// `app_limited`: the sender was application-limited when the frame arrived; the window is not
    /// raised then (RFC 9002 section 7.8).
    fn on_packets_acked(
        &mut self,
        now: Instant,
        acked: &[Acked],
        rtt: &RttEstimator,
        in_flight: u64,
        app_limited: bool,
    );

    /// Packets were declared lost; `persistent_congestion` if they establish it (RFC 9002 section
    /// 7.6).
    fn on_packets_lost(
        &mut self,
        now: Instant,
        lost: &[Lost],
        persistent_congestion: bool,
        in_flight: u64,
    );

    /// The peer reported `newly_marked` (at least one) more packets with ECN-CE, in an ACK frame
    /// whose largest newly acknowledged packet was sent at `sent` (RFC 9002 section 7.1). A mark
    /// asks for a reaction just as a loss does.
    fn on_ecn_ce(&mut self, now: Instant, sent: Instant, newly_marked: u64, in_flight: u64);

    /// Packets that had been reported as lost were acknowledged after all. A controller may take
    /// its reaction back if nothing else stands behind it. One that does not is only slower than
    /// it could be.
    fn on_spurious_loss(&mut self, _now: Instant, _packets: &[Lost]) {}

    /// All packets of `space` that were in flight, `bytes` in all, are no longer. That says nothing
    /// about the path (RFC 9002 section 6.4): only an algorithm that counts or keeps packets has
    /// something to do. A packet that discards a space may acknowledge others of that space, which
    /// are not among `bytes`: they are reported next.
    fn on_discarded(&mut self, _space: SpaceId, _bytes: u64) {}

    /// The maximum datagram size is now `mtu` bytes. The bounds of the window, two datagrams
    /// at least, change with it.
    fn on_mtu_changed(&mut self, mtu: u16);

    /// The congestion window: bytes that may be in flight. Two datagrams at least (RFC 9002
    /// section 7.2), at most what [`PathParameters`] allow.
    fn window(&self) -> u64;

    /// Slow start threshold in bytes, while there is one.
    fn slow_start_threshold(&self) -> Option<u64> {
        None
    }

    /// The rate to send at in bytes per second, if the algorithm has one of its own. If not, the
    /// pacer derives one from window and round-trip time.
    fn pacing_rate(&self, _rtt: &RttEstimator) -> Option<u64> {
        None
    }

    /// The algorithm's name.
    fn name(&self) -> &str;
}

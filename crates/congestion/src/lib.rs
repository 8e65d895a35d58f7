//! Congestion control (RFC 9002 section 7): the interface and its algorithms, with what they decide from, the
//! [round-trip time](rtt) and the [floor of loss](loss_floor), and a [`Pacer`].
//!
//! Time is an argument: this crate uses no sockets, threads, clocks or async, and knows nothing of frames or
//! keys. `sutura-proto` is built on it; the test kit for algorithms of one's own is in `conformance`, with the
//! feature of that name.
//!
//! A controller is told about every packet that counts as in flight: when it is sent, acknowledged,
//! lost, found to be wrongly declared lost, or discarded. It answers with a window and perhaps a
//! rate. It need not store packets: its notes about a packet are the [`PacketState`] that it returns when the
//! packet is sent, and that it gets back with the packet's outcome.
//!
//! Erasure coding never hides a loss from a controller; the caller ensures that. A packet whose
//! contents were recovered by erasure coding is still reported as lost, and repair symbols count as
//! sent bytes like any others. Nor does redundancy hide that the application had nothing to send: a
//! flow that fills its window with repair symbols alone is application-limited.
//!
//! ```
//! use std::time::{Duration, Instant};
//! use sutura_congestion::rtt::RttEstimator;
//! use sutura_congestion::{
//!     Algorithm, CongestionFactory, Packet, PathParameters, Sent, SpaceId,
//! };
//!
//! let mut controller = Algorithm::CUBIC.build(&PathParameters::new(1200, 1));
//! let (now, mut rtt) = (Instant::now(), RttEstimator::default());
//! let initial = controller.window();
//!
//! let sent = Sent::new(SpaceId::Data, 0, 1200);
//! let note = controller.on_packet_sent(now, &sent);
//! let later = now + Duration::from_millis(50);
//! rtt.update(later, later - now, Duration::ZERO);
//! controller.on_packets_acked(later, &[Packet::new(&sent, now, note)], &rtt, 0, false);
//! assert_eq!(controller.window(), initial + 1200);
//! ```

#![forbid(unsafe_code)]

mod algorithm;
mod arithmetic;
#[cfg(feature = "conformance")]
mod bottleneck;
#[cfg(feature = "conformance")]
pub mod conformance;
mod delivery;
mod episode;
mod excuse;
mod factory;
mod hystart;
pub mod loss_floor;
mod pacer;
mod packet;
pub mod rtt;
mod space;
#[cfg(test)]
mod tests;
mod window;

pub use algorithm::Algorithm;
pub use factory::{CongestionFactory, PathParameters};
pub use fixed::FixedRate;
pub use pacer::Pacer;
pub use packet::{Acked, Lost, Packet, PacketState, Sent};
pub use space::SpaceId;
pub use window::{MAX_WINDOW, WindowLimits};

use loss_floor::LossFloor;
use rtt::RttEstimator;
use std::fmt;
use std::time::Instant;
use sutura_schedule::policies;

policies! {
    /// The built-in algorithms, in the order in which they are listed.
    pub const ALGORITHMS: dyn CongestionFactory = [new_reno, cubic, bbr, fixed];
}

/// Decides how much may be in flight and how fast it is sent.
///
/// Calls for one ACK frame come in the order of RFC 9002 appendix A.7: [`Self::on_ecn_ce`],
/// [`Self::on_packets_lost`], [`Self::on_spurious_loss`], [`Self::on_packets_acked`]. Empty slices
/// are ignored. `in_flight` never includes the packets that the call is about. Packets whose state
/// was made by another controller (such as the controller of an old path) must not be reported.
///
/// All packets of one call are of one space. A packet has at most one outcome: acknowledged, lost,
/// or discarded with its space. A loss may be refuted once, soon after. A controller that stores
/// packets by space and number therefore removes them when they are acknowledged or lost, and a
/// whole space when it is discarded.
///
/// Queries change nothing: a repeated query gives the same answer, and later behaviour does not depend on
/// queries. A method has a default body only if doing nothing is right for an algorithm that takes no
/// interest in it.
///
/// *Application-limited* means that the sender had nothing to send although window and pacer had
/// room: the application wrote nothing, or flow control held back its data. Waiting for the pacer does not
/// count; sending repair symbols for lack of other data does.
pub trait CongestionController: Send + fmt::Debug {
    /// A packet is sent. The returned state comes back with the packet's outcome; an algorithm that
    /// remembers nothing about packets leaves it empty.
    fn on_packet_sent(&mut self, _now: Instant, _packet: &Sent) -> PacketState {
        PacketState::default()
    }

    /// Packets were newly acknowledged by one ACK frame, and `rtt` was already updated from it.
    /// `app_limited` is whether the sender was application-limited when the frame arrived; the
    /// window must not be raised then (RFC 9002 section 7.8).
    fn on_packets_acked(
        &mut self,
        now: Instant,
        acked: &[Acked],
        rtt: &RttEstimator,
        in_flight: u64,
        app_limited: bool,
    );

    /// Packets were declared lost. `persistent_congestion` is whether they establish it (RFC 9002
    /// section 7.6).
    fn on_packets_lost(
        &mut self,
        now: Instant,
        lost: &[Lost],
        persistent_congestion: bool,
        in_flight: u64,
    );

    /// The estimate of the losses that do not depend on the rate has changed. Called before the
    /// losses and acknowledgements that changed it are reported. A controller may refrain from
    /// slowing down for losses up to the floor; it still hears of each (RFC 9265).
    fn on_loss_floor(&mut self, _floor: &LossFloor) {}

    /// The peer reported `newly_marked` (at least one) more packets with ECN-CE, in an ACK frame
    /// whose largest newly acknowledged packet was sent at `sent` (RFC 9002 section 7.1). A mark
    /// requires the same reaction as a loss.
    fn on_ecn_ce(&mut self, now: Instant, sent: Instant, newly_marked: u64, in_flight: u64);

    /// Packets that were reported as lost were acknowledged after all. A controller may undo its reaction if
    /// no other loss or mark justifies it. A controller that does not is merely slower than necessary.
    fn on_spurious_loss(&mut self, _now: Instant, _packets: &[Lost]) {}

    /// All packets of `space` that were in flight, `bytes` in total, no longer are. This says
    /// nothing about the path (RFC 9002 section 6.4), so only an algorithm that counts or stores
    /// packets needs to act. A packet that discards a space may also acknowledge other packets of
    /// that space. These are not part of `bytes` and are reported next.
    fn on_discarded(&mut self, _space: SpaceId, _bytes: u64) {}

    /// The maximum datagram size is now `mtu` bytes. The bounds of the window, at least two
    /// datagrams, change with it.
    fn on_mtu_changed(&mut self, mtu: u16);

    /// The congestion window: how many bytes may be in flight. At least two datagrams (RFC 9002
    /// section 7.2), and at most the maximum in [`PathParameters`].
    fn window(&self) -> u64;

    /// The slow start threshold in bytes, if there is one.
    fn slow_start_threshold(&self) -> Option<u64> {
        None
    }

    /// The rate to send at, in bytes per second, if the algorithm has one of its own. Otherwise the
    /// pacer derives a rate from the window and the round-trip time.
    fn pacing_rate(&self, _rtt: &RttEstimator) -> Option<u64> {
        None
    }

    /// The algorithm's name.
    fn name(&self) -> &str;
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

//! A path to the peer and everything that depends on it: the address and its validation, the
//! datagram size, the peer's identifiers, the round-trip time, loss recovery, congestion control
//! and pacing.
//!
//! A connection has one path at a time; when the peer moves, it stays and its conditions are replaced
//! ([`Conditions`]). [`egress`](crate::egress) decides which data is sent; a path decides when a packet may
//! be sent ([`gate`](Path::gate)), remembers sent packets, and reports their outcomes to congestion control.

pub mod cids;
mod conditions;
mod ecn;
mod held;
mod loss_estimate;
mod loss_runs;
mod mtu;
mod settle;
mod validation;

pub use conditions::Conditions;
pub use ecn::EcnValidation;
pub use mtu::{Mtu, MtuDiscovery, Sized};
pub use settle::Settled;
pub use validation::{Challenge, Validation};

use crate::congestion::{CongestionController, Pacer, PacketState, PathParameters, Sent};
use crate::ecn::{EcnCodepoint, EcnState};
use crate::fec::redundancy::PathView;
use crate::ids::{ConnectionId, Side, SpaceId};
use crate::loss_floor::{LossFloor, LossFloorEstimator, LossMemory};
use crate::recovery::Recovery;
use crate::recovery::sent::SentPacket;
use cids::RemoteCids;
use ecn::EcnMarks;
use held::HeldBack;
use loss_estimate::LossEstimate;
use loss_runs::LossRuns;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Whether a path allows sending a datagram now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// The datagram may be sent.
    Open,
    /// The congestion window is full. The datagram may be sent once a packet in flight is acknowledged or
    /// lost.
    Window,
    /// The pacer allows it at this time.
    Pacing(Instant),
}

/// A path is silent if none of so many packets is acknowledged in time. Fewer are lost together on any path.
const SILENT_PACKETS: usize = 8;

/// A path to the peer.
#[derive(Debug)]
pub struct Path {
    /// The peer's address.
    pub remote: SocketAddr,
    /// The datagram size.
    pub mtu: Mtu,
    /// The validation of the peer's address.
    pub address: Validation,
    /// The peer's identifiers. Packets on this path carry the active one.
    pub remote_cids: RemoteCids,
    /// Packets in flight and the round-trip time.
    pub recovery: Recovery<PacketState>,
    /// Limits how much may be in flight.
    pub congestion: Box<dyn CongestionController>,
    pacer: Pacer,
    marks: EcnMarks,
    ecn: EcnValidation,
    /// Whether the last packets left room in the congestion window for lack of data.
    app_limited: bool,
    held: HeldBack,
    loss: LossEstimate,
    runs: LossRuns,
    floor: LossFloorEstimator,
    /// When acknowledgements are overdue: a probe timeout after the newest one, or after the first packet that was
    /// sent once all others were acknowledged.
    overdue_at: Option<Instant>,
}

/// The parameters of a new path.
pub struct NewPath {
    pub side: Side,
    pub remote: SocketAddr,
    pub mtu: Mtu,
    /// The identifier to which the first packets are sent.
    pub remote_cid: ConnectionId,
    pub initial_rtt: Duration,
    /// Whether this end can set and read ECN marks.
    pub ecn: bool,
    /// Losses that earlier connections to the peer measured.
    pub loss_memory: LossMemory,
    /// Builds the congestion controller.
    pub congestion: std::sync::Arc<dyn crate::congestion::CongestionFactory>,
    pub seed: u64,
}

impl Path {
    /// Creates a path on which nothing has been sent. A client's is validated from the start.
    pub fn new(new: NewPath) -> Self {
        let NewPath {
            side,
            remote,
            mtu,
            remote_cid,
            initial_rtt,
            ecn,
            loss_memory,
            congestion,
            seed,
        } = new;
        let size = mtu.size();
        Self {
            remote,
            mtu,
            address: Validation::new(side.is_client()),
            remote_cids: RemoteCids::new(remote_cid, cids::ACTIVE_CID_LIMIT as usize),
            recovery: Recovery::new(side, initial_rtt),
            congestion: congestion.build(&PathParameters::new(size, seed)),
            pacer: Pacer::new(size),
            marks: EcnMarks::default(),
            ecn: EcnValidation::new(ecn),
            app_limited: true,
            held: HeldBack::default(),
            loss: LossEstimate::default(),
            runs: LossRuns::default(),
            floor: LossFloorEstimator::new(loss_memory, seed),
            overdue_at: None,
        }
    }

    /// The facts about the path that policies may know at `now`.
    pub fn view(&self, now: Instant) -> PathView {
        self.view_with(self.is_silent(now))
    }

    /// The same without whether acknowledgements are overdue, for statistics.
    pub fn timeless_view(&self) -> PathView {
        self.view_with(false)
    }

    #[inline]
    fn view_with(&self, silent: bool) -> PathView {
        let rtt = self.recovery.rtt();
        PathView {
            rtt: rtt.smoothed(),
            min_rtt: rtt.min(),
            rtt_variation: rtt.variance(),
            pto: self.recovery.pto(SpaceId::Data),
            loss: self.loss_estimate(),
            burst: self.runs.burst(),
            outcomes: self.loss.outcomes(),
            floor: self.floor.get(),
            window: self.congestion.window(),
            in_flight: self.recovery.bytes_in_flight(),
            held: self.held.share(),
            silent,
        }
    }

    /// How long data that is sent now takes to the peer, by what is known of the path: half a round trip. With nothing
    /// in flight, nothing of this connection waits before the data, and the last round trips tell little: if these took
    /// so long that everything were given up now, no further one would ever be measured. The shortest counts then.
    pub fn delay(&self) -> Duration {
        let rtt = self.recovery.rtt();
        let round_trip =
            if self.recovery.bytes_in_flight() == 0 { rtt.min() } else { rtt.smoothed() };
        round_trip / 2
    }

    /// Whether acknowledgements of several packets in flight are overdue.
    fn is_silent(&self, now: Instant) -> bool {
        self.overdue_at.is_some_and(|at| now > at)
            && self.recovery.ack_eliciting_in_flight(SpaceId::Data) >= SILENT_PACKETS
    }

    /// Acknowledgements are overdue from a probe timeout after `now`.
    fn await_acks(&mut self, now: Instant) {
        self.overdue_at = now.checked_add(self.recovery.pto(SpaceId::Data));
    }

    /// Share of recently sent packets that were lost, from 0 to 1.
    pub fn loss_estimate(&self) -> f64 {
        self.loss.get()
    }

    /// The losses that do not depend on the rate.
    pub fn loss_floor(&self) -> LossFloor {
        self.floor.get()
    }

    /// Losses from which the estimate of a later connection to the peer may start.
    pub fn loss_memory(&self) -> LossMemory {
        self.floor.memory()
    }

    /// The ECN mark of the next datagrams, if they contain only 1-RTT packets.
    pub fn ecn_mark(&self) -> Option<EcnCodepoint> {
        self.ecn.mark()
    }

    /// Whether the path carries ECN marks, as far as is known.
    pub fn ecn_state(&self) -> EcnState {
        self.ecn.state()
    }

    /// Whether congestion control and pacing allow sending a datagram of `size` bytes now. Changes
    /// nothing.
    pub fn gate(&self, now: Instant, size: usize) -> Gate {
        let size = size as u64;
        if self.recovery.bytes_in_flight() + size > self.congestion.window() {
            return Gate::Window;
        }
        self.pacer.delay_until(now, size).map_or(Gate::Open, Gate::Pacing)
    }

    /// Notes that the window or the pacer, `by`, holds data back, so the application does not limit the rate (RFC
    /// 9002 section 7.8).
    pub fn on_held_back(&mut self, by: Gate) {
        self.app_limited = false;
        match by {
            Gate::Window => self.held.begin(),
            Gate::Open | Gate::Pacing(_) => {}
        }
    }

    /// Notes that there is nothing to send but redundancy at most, whether or not the path has room.
    pub fn on_idle(&mut self) {
        self.app_limited = true;
        self.held.end();
    }

    /// Handles a packet that is being sent. `redundant` if it carries only redundancy because there was no
    /// other data to send. The congestion controller's state is stored with the packet.
    pub fn on_packet_sent(
        &mut self,
        now: Instant,
        space: SpaceId,
        mut packet: SentPacket<PacketState>,
        redundant: bool,
    ) {
        if packet.ect0 {
            self.marks.on_sent();
            self.ecn.on_sent();
        }
        if packet.in_flight {
            let bytes = u64::from(packet.size);
            self.pacer.on_sent(now, bytes);
            let mut sent = Sent::new(space, packet.pn, bytes);
            sent.in_flight = self.recovery.bytes_in_flight();
            sent.app_limited = self.app_limited || redundant;
            packet.cc = self.congestion.on_packet_sent(now, &sent);
            if space == SpaceId::Data {
                let rtt = self.recovery.rtt().smoothed();
                self.floor.on_sent(now, bytes, rtt, self.app_limited);
                if !redundant {
                    self.held.on_sent();
                }
            }
        }
        if space != SpaceId::Data {
            // No acknowledgement may have given the pacer a rate yet.
            self.update_pacer(now);
        }
        let is_first = self.recovery.ack_eliciting_in_flight(SpaceId::Data) == 0;
        if space == SpaceId::Data && packet.is_probed() && is_first {
            self.await_acks(now);
        }
        if redundant {
            self.recovery.on_redundancy_sent(space, packet);
        } else {
            self.recovery.on_packet_sent(space, packet);
        }
    }

    /// Discards the packets in flight in a space, without counting them as lost.
    pub fn discard_space(&mut self, now: Instant, space: SpaceId) {
        drop(self.withdraw_space(now, space));
    }

    /// Discards the packets in flight in a space, without counting them as lost; returns them.
    pub fn withdraw_space(
        &mut self,
        now: Instant,
        space: SpaceId,
    ) -> VecDeque<SentPacket<PacketState>> {
        let before = self.recovery.bytes_in_flight();
        let packets = self.recovery.discard_space(now, space);
        let discarded = before.saturating_sub(self.recovery.bytes_in_flight());
        self.congestion.on_discarded(space, discarded);
        packets
    }

    /// Gives back the memory that is not needed while the path is silent.
    pub fn rest(&mut self) {
        self.recovery.shrink();
        self.floor.rest();
    }

    /// Updates the pacer from congestion control.
    pub fn update_pacer(&mut self, now: Instant) {
        self.pacer.update(now, &*self.congestion, self.recovery.rtt());
    }
}

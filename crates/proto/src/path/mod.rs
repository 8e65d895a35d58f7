//! A path to the peer, and all that depends on where packets go: the address and its validation, how
//! long datagrams may be, the peer's identifiers, the round-trip time, loss recovery, congestion
//! control and pacing.
//!
//! A connection has one path for now. What is sent is decided elsewhere ([`egress`](crate::egress)):
//! a path says by [`gate`](Path::gate) whether it may go, remembers what went, and tells congestion
//! control what became of it.

pub mod cids;
mod loss_estimate;
mod settle;
mod validation;

pub use settle::Settled;

use crate::congestion::{CongestionController, Pacer, PacketState, PathParameters, Sent};
use crate::ecn::EcnCounts;
use crate::fec::redundancy::PathView;
use crate::ids::{ConnectionId, Side, SpaceId};
use crate::recovery::Recovery;
use crate::recovery::sent::SentPacket;
use cids::RemoteCids;
use loss_estimate::LossEstimate;
use settle::Reports;
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use validation::Validation;

/// Whether a path lets a datagram go now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gate {
    /// It may go.
    Open,
    /// The congestion window is full: it may go when something in flight is acknowledged or lost.
    Window,
    /// The pacer lets it go then.
    Pacing(Instant),
}

/// A path to the peer.
#[derive(Debug)]
pub struct Path {
    /// The peer's address.
    pub remote: SocketAddr,
    /// Bytes of UDP payload that the path is known to carry.
    pub mtu: u16,
    /// What the peer's newest PATH_CHALLENGE asked, until it is answered. Older ones are
    /// forgotten, so that a flood of them costs nothing.
    pub response_due: Option<[u8; 8]>,
    /// Whether the peer is known to be at its address.
    pub address: Validation,
    /// The peer's identifiers; packets on this path carry the active one.
    pub remote_cids: RemoteCids,
    /// What is in flight, and the round-trip time.
    pub recovery: Recovery<PacketState>,
    /// The marks that the peer has counted on packets of this path, by its newest ACK frame (RFC 9000
    /// section 13.4). No packet is sent with a mark yet.
    pub ecn_reported: EcnCounts,
    /// How much may be in flight.
    pub congestion: Box<dyn CongestionController>,
    pacer: Pacer,
    /// Whether the last packets left room in the congestion window for want of data.
    app_limited: bool,
    loss: LossEstimate,
    reports: Reports,
}

/// What a path is made from.
pub struct NewPath {
    pub side: Side,
    pub remote: SocketAddr,
    pub mtu: u16,
    /// The identifier that the first packets carry.
    pub remote_cid: ConnectionId,
    pub initial_rtt: Duration,
    /// Makes the congestion controller.
    pub congestion: std::sync::Arc<dyn crate::congestion::CongestionFactory>,
    pub seed: u64,
}

impl Path {
    /// A path on which nothing was sent. A client's is validated from the start.
    pub fn new(new: &NewPath) -> Self {
        let &NewPath { side, remote, mtu, remote_cid, initial_rtt, ref congestion, seed } = new;
        Self {
            remote,
            mtu,
            response_due: None,
            address: Validation::new(side.is_client()),
            remote_cids: RemoteCids::new(remote_cid, cids::ACTIVE_CID_LIMIT as usize),
            recovery: Recovery::new(side, initial_rtt),
            ecn_reported: EcnCounts::default(),
            congestion: congestion.build(&PathParameters::new(mtu, seed)),
            pacer: Pacer::new(mtu),
            app_limited: true,
            loss: LossEstimate::default(),
            reports: Reports::default(),
        }
    }

    /// What policies may know of the path.
    pub fn view(&self) -> PathView {
        let rtt = self.recovery.rtt();
        PathView {
            rtt: rtt.smoothed(),
            min_rtt: rtt.min(),
            pto: self.recovery.pto(SpaceId::Data),
            loss: self.loss_estimate(),
            window: self.congestion.window(),
            in_flight: self.recovery.bytes_in_flight(),
        }
    }

    /// Share of recently sent packets that were lost, 0 to 1.
    pub fn loss_estimate(&self) -> f64 {
        self.loss.get()
    }

    /// The peer asks whether this end is reachable.
    pub fn on_challenge(&mut self, data: [u8; 8]) {
        self.response_due = Some(data);
    }

    /// Whether a datagram of `size` bytes may go now, as far as congestion control and pacing are
    /// concerned. Changes nothing.
    pub fn gate(&self, now: Instant, size: usize) -> Gate {
        let size = size as u64;
        if self.recovery.bytes_in_flight() + size > self.congestion.window() {
            return Gate::Window;
        }
        self.pacer.delay_until(now, size).map_or(Gate::Open, Gate::Pacing)
    }

    /// The window or the pacer holds something back, so it is not the application that limits the
    /// rate (RFC 9002 section 7.8).
    pub fn on_held_back(&mut self) {
        self.app_limited = false;
    }

    /// There was nothing to send although the path had room.
    pub fn on_idle(&mut self) {
        self.app_limited = true;
    }

    /// A packet is being sent. `redundant` if it carries redundancy only, because there was nothing
    /// else to send. What congestion control remembers of it is kept with the packet.
    pub fn on_packet_sent(
        &mut self,
        now: Instant,
        space: SpaceId,
        mut packet: SentPacket<PacketState>,
        redundant: bool,
    ) {
        if packet.in_flight {
            let bytes = u64::from(packet.size);
            self.pacer.on_sent(now, bytes);
            let sent = Sent {
                in_flight: self.recovery.bytes_in_flight(),
                app_limited: self.app_limited || redundant,
                ..Sent::new(space, packet.pn, bytes)
            };
            packet.cc = self.congestion.on_packet_sent(now, &sent);
        }
        if space != SpaceId::Data {
            // There may be no acknowledgement yet that would have told the pacer a rate.
            self.update_pacer(now);
        }
        self.recovery.on_packet_sent(space, packet);
    }

    /// Gives up what is in flight in a space, with no loss.
    pub fn discard_space(&mut self, now: Instant, space: SpaceId) {
        let before = self.recovery.bytes_in_flight();
        drop(self.recovery.discard_space(now, space));
        let discarded = before.saturating_sub(self.recovery.bytes_in_flight());
        self.congestion.on_discarded(space, discarded);
    }

    /// The pacer follows congestion control.
    pub fn update_pacer(&mut self, now: Instant) {
        self.pacer.update(now, &*self.congestion, self.recovery.rtt());
    }
}

//! Probes for larger datagrams (RFC 9000 section 14.4).

use super::transmit::{TAG_SIZE, Transmit};
use super::{Connection, LifeStage};
use crate::config::{SocketFeatures, TransportConfig};
use crate::ids::SpaceId;
use crate::path::{Gate, Mtu};
use crate::recovery::token::Token;
use crate::wire::frame::Frame;
use crate::wire::transport_parameters::TransportParameters;
use std::time::Instant;

/// The largest datagram that the peer accepts.
pub(super) fn peer_limit(peer: &TransportParameters) -> u16 {
    u16::try_from(peer.max_udp_payload_size).unwrap_or(u16::MAX)
}

/// The search for the datagram size of a path that was not used before.
pub(super) fn of_new_path(
    config: &TransportConfig,
    socket: SocketFeatures,
    peer: &TransportParameters,
) -> Mtu {
    let discovery = config.mtu_discovery.filter(|_| socket.unfragmented);
    let mut mtu = Mtu::new(config.udp_payload_size, discovery);
    mtu.set_peer_limit(peer_limit(peer));
    mtu
}

impl Connection {
    /// Sends a probe, if it is time for one. It keeps to the congestion window, but is not in flight,
    /// so that its loss is no sign of congestion (RFC 9000 section 14.4).
    pub(super) fn transmit_mtu_probe(
        &mut self,
        now: Instant,
        out: &mut Vec<u8>,
    ) -> Option<Transmit> {
        let settled = self.state == LifeStage::Established
            && self.handshake.confirmed
            && self.path.address.is_validated();
        let size = self.path.mtu.probe(now).filter(|_| settled)?;
        if self.path.gate(now, size.into()) != Gate::Open {
            return None;
        }
        let (begin, ecn) = (out.len(), self.mark());
        let dcid = self.path.remote_cids.active();
        let mut packet = self.start_packet(SpaceId::Data, dcid, begin, out);
        Frame::Ping.encode(out);
        packet.tokens.push(Token::MtuProbe(packet.pn));
        packet.pad_to(begin + usize::from(size) - TAG_SIZE, out);
        (packet.ack_eliciting, packet.in_flight) = (true, false);
        self.path.mtu.on_probe_sent(packet.pn, size);
        let end = out.len();
        out.resize(end + TAG_SIZE, 0);
        self.seal(now, packet, end, out);
        let size = out.len() - begin;
        self.stats.sent.datagrams += 1;
        self.stats.sent.bytes += size as u64;
        self.stats.mtu_probes_sent += 1;
        Some(Transmit::new(self.path.remote, size).with_ecn(ecn))
    }
}

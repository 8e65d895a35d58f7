//! Access to a connection for a fuzzer that plays a hostile peer: its keys, and the state it waits in.

use super::Connection;
use super::transmit::TAG_SIZE;
use crate::crypto::DirectionalKeys;
use crate::ids::SpaceId;
use crate::wire::packet::{PacketType, ShortHeader, TruncatedNumber};

impl Connection {
    /// The keys that seal packets of this type, and the number of the next one.
    pub(crate) fn sealer_of(&self, ty: PacketType) -> Option<(&DirectionalKeys, u64)> {
        let space = &self.spaces[ty.space()];
        let keys = match ty {
            PacketType::ZeroRtt => self.zero_rtt.sealer()?,
            PacketType::Initial | PacketType::Handshake | PacketType::OneRtt => {
                &space.keys.as_ref()?.local
            }
        };
        Some((keys, space.peek_pn()))
    }

    /// The next 1-RTT packet, with this payload instead of the connection's own frames. `None` without keys.
    pub(crate) fn forge(&mut self, payload: &[u8]) -> Option<Vec<u8>> {
        let space = &mut self.spaces[SpaceId::Data];
        let pn = space.peek_pn();
        space.take_pn(false, &mut self.rng);
        let dcid = self.path.remote_cids.active();
        let mut packet = Vec::with_capacity(payload.len() + 64);
        let header = ShortHeader { dcid, spin: false, key_phase: false };
        let layout = header.encode(TruncatedNumber::with_size(pn, 4), &mut packet);
        packet.extend_from_slice(payload);
        packet.extend_from_slice(&[0; TAG_SIZE]);
        let keys = space.keys.as_ref()?;
        let len = layout.payload - layout.number;
        layout.finish(0, &mut packet).ok()?;
        keys.local.protect(pn, &mut packet, layout.number, len).ok()?;
        Some(packet)
    }

    /// The numbers of the 1-RTT packets in flight, in ascending order.
    pub(crate) fn outstanding(&self) -> impl Iterator<Item = u64> {
        self.path.recovery.sent(SpaceId::Data).map(|packet| packet.pn)
    }
}

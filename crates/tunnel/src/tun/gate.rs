//! Which packets pass between a tunnel and a device, and what becomes of the others.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use ipnet::IpNet;

use super::flows::{Flows, Seen};
use super::permit::Permit;
use crate::access::{Limits, Meter};
use crate::flow::{Rules, Treatment};
use crate::ip::{self, Answer, Header, InvalidPacket};

/// Bytes of ICMP answers in a second, and at once 64 KiB of them: a flood is not answered by a flood.
const ANSWERS: u64 = 16 * 1024;
const ICMP: [u8; 2] = [1, 58];

/// What stands between the tunnel of one client and a device, at either end.
#[derive(Debug)]
pub struct PacketGate {
    /// The networks of the client: the only ones that it sends from and is sent to.
    client: Vec<IpNet>,
    /// What the client may send to, and be sent from. `None` at the client's end, where the proxy decides.
    permit: Option<Permit>,
    rules: Arc<Rules>,
    flows: Flows,
    /// This end's addresses, which refusals come from.
    own: Vec<IpAddr>,
    answers: Meter,
}

/// Why a packet did not pass.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Dropped {
    /// It is no packet.
    Invalid(InvalidPacket),
    /// The client does not have its address.
    Foreign,
    /// No rule allows it. The answer for its source, if it gets one.
    Denied(Option<Vec<u8>>),
    /// It does not fit in a datagram. The answer for its source, if it gets one.
    TooBig(Option<Vec<u8>>),
}

impl PacketGate {
    /// The gate of a client with these addresses, where this end has `own` addresses.
    #[must_use]
    pub fn new(
        client: Vec<IpNet>,
        own: Vec<IpAddr>,
        permit: Option<Permit>,
        rules: Arc<Rules>,
        now: Instant,
    ) -> Self {
        let answers = Meter::new(Limits::default().with_bytes_per_second(Some(ANSWERS)), now);
        Self { client, permit, rules, flows: Flows::default(), own, answers }
    }

    /// The client has these networks now.
    pub fn set_client(&mut self, client: Vec<IpNet>) {
        self.client = client;
    }

    /// A packet of the device is to be sent into the tunnel, of which datagrams carry packets of `mtu` bytes. Lowers the
    /// largest segment that a TCP connection begins with, and says how the packet is sent.
    ///
    /// # Errors
    /// It does not pass.
    pub fn enter(
        &mut self,
        now: Instant,
        packet: &mut [u8],
        mtu: usize,
        is_from_client: bool,
    ) -> Result<Treatment, Dropped> {
        let (header, ports) = self.check(now, packet, is_from_client)?;
        if packet.len() > mtu {
            let mtu = u16::try_from(mtu).unwrap_or(u16::MAX);
            // Kernels take no packets from a device that claim to be from themselves, as one from this end's address
            // would: the answer is from where the packet was to go.
            let from = Some(header.destination);
            let answer = self.answer(now, Answer::TooBig(mtu), packet, &header, from);
            return Err(Dropped::TooBig(answer));
        }
        ip::clamp_mss(packet, &header, mtu);
        let seen = Seen { header: &header, ports, size: packet.len(), is_from_client };
        Ok(self.flows.sent(now, seen, &self.rules))
    }

    /// A packet of the tunnel is to be handed to the device.
    ///
    /// # Errors
    /// It does not pass.
    pub fn leave(
        &mut self,
        now: Instant,
        packet: &mut [u8],
        mtu: usize,
        is_from_client: bool,
    ) -> Result<(), Dropped> {
        let (header, ports) = self.check(now, packet, is_from_client)?;
        ip::clamp_mss(packet, &header, mtu);
        let seen = Seen { header: &header, ports, size: packet.len(), is_from_client };
        self.flows.received(now, seen, &self.rules);
        Ok(())
    }

    /// Reads a packet, and checks its addresses. Also returns its ports, 0 where it has none.
    fn check(
        &mut self,
        now: Instant,
        packet: &[u8],
        is_from_client: bool,
    ) -> Result<(Header, (u16, u16)), Dropped> {
        let header = Header::parse(packet).map_err(Dropped::Invalid)?;
        let ports = ip::ports(packet, &header).unwrap_or_default();
        let (client, remote) = if is_from_client {
            (header.source, SocketAddr::new(header.destination, ports.1))
        } else {
            (header.destination, SocketAddr::new(header.source, ports.0))
        };
        if !self.client.iter().any(|net| net.contains(&client)) {
            return Err(Dropped::Foreign);
        }
        // Any router may have something to say of a packet that was allowed.
        let is_report = !is_from_client && ICMP.contains(&header.protocol);
        let is_allowed = is_report
            || self.permit.as_ref().is_none_or(|permit| permit.allows(header.protocol, remote));
        if is_allowed {
            return Ok((header, ports));
        }
        // Nobody outside is told what clients may do.
        let own = self.own.iter().find(|own| own.is_ipv4() == header.source.is_ipv4());
        let from = own.copied().filter(|_| is_from_client);
        Err(Dropped::Denied(self.answer(now, Answer::Prohibited, packet, &header, from)))
    }

    /// The answer to a packet from this address, if there is one and may be one more answer.
    fn answer(
        &mut self,
        now: Instant,
        what: Answer,
        packet: &[u8],
        header: &Header,
        from: Option<IpAddr>,
    ) -> Option<Vec<u8>> {
        let answer = ip::answer(what, packet, header, from?)?;
        self.answers.admit(now, answer.len() as u64).then_some(answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{AllowList, AllowRule};
    use crate::flow::Class;
    use crate::ip::tests::v4;
    use crate::ip::{TCP, UDP, everywhere};

    const CLIENT: [u8; 4] = [10, 77, 0, 2];
    const REMOTE: [u8; 4] = [10, 1, 2, 3];

    fn gate(allow: &str) -> PacketGate {
        let allow: AllowList =
            allow.split_whitespace().map(|rule| rule.parse::<AllowRule>().unwrap()).collect();
        let client = vec!["10.77.0.2/32".parse().unwrap()];
        let own = vec!["10.77.0.1".parse().unwrap()];
        let permit = Permit::new(Arc::new(allow), None, everywhere().to_vec(), None);
        PacketGate::new(client, own, Some(permit), Arc::default(), Instant::now())
    }

    fn udp(source: u16, destination: u16) -> Vec<u8> {
        [&source.to_be_bytes()[..], &destination.to_be_bytes(), &[0, 8, 0, 0]].concat()
    }

    #[test]
    fn a_client_sends_from_its_address_to_what_is_allowed() {
        let (mut gate, now) = (gate("10.1.0.0/16:53"), Instant::now());
        let mut pass = |mut packet: Vec<u8>| gate.leave(now, &mut packet, 1400, true);
        assert_eq!(pass(v4(CLIENT, REMOTE, UDP, &udp(9, 53))), Ok(()));
        let foreign = v4([10, 77, 0, 3], REMOTE, UDP, &udp(9, 53));
        assert_eq!(pass(foreign), Err(Dropped::Foreign));
        for packet in [
            v4(CLIENT, REMOTE, UDP, &udp(9, 54)),
            v4(CLIENT, [10, 2, 2, 3], UDP, &udp(9, 53)),
            v4(CLIENT, REMOTE, 1, &[8; 8]),
            v4(CLIENT, REMOTE, UDP, &[0]),
        ] {
            let Err(Dropped::Denied(Some(answer))) = pass(packet) else { panic!("not denied") };
            let told = Header::parse(&answer).unwrap();
            assert_eq!((told.source, told.destination), ([10, 77, 0, 1].into(), CLIENT.into()));
            assert_eq!(answer[20..22], [3, 13]);
        }
        assert!(matches!(pass(vec![0; 20]), Err(Dropped::Invalid(_))));
    }

    #[test]
    fn a_client_is_sent_what_it_may_ask_for_and_reports_of_routers() {
        let (mut gate, now) = (gate("10.1.0.0/16:53"), Instant::now());
        let mut pass = |mut packet: Vec<u8>| gate.enter(now, &mut packet, 1400, false).map(drop);
        assert_eq!(pass(v4(REMOTE, CLIENT, UDP, &udp(53, 9))), Ok(()));
        assert_eq!(pass(v4(REMOTE, CLIENT, UDP, &udp(54, 9))), Err(Dropped::Denied(None)));
        assert_eq!(pass(v4([192, 0, 2, 1], CLIENT, 1, &[3; 8])), Ok(()));
        assert_eq!(pass(v4(REMOTE, [10, 77, 0, 3], UDP, &udp(53, 9))), Err(Dropped::Foreign));
    }

    #[test]
    fn a_packet_that_does_not_fit_is_answered_with_what_does() {
        let (mut gate, now) = (gate("10.1.0.0/16:*"), Instant::now());
        let mut packet = v4(REMOTE, CLIENT, UDP, &[7; 1300]);
        let Err(Dropped::TooBig(Some(answer))) = gate.enter(now, &mut packet, 1200, false) else {
            panic!("fits")
        };
        assert_eq!(answer[20..22], [3, 4]);
        assert_eq!(answer[26..28], 1200_u16.to_be_bytes());
        assert!(gate.enter(now, &mut packet, 1320, false).is_ok());
    }

    #[test]
    fn answers_to_a_flood_are_bounded() {
        let (mut gate, now) = (gate(""), Instant::now());
        let mut packet = v4(CLIENT, REMOTE, UDP, &[7; 1000]);
        let answered = (0..10_000)
            .filter(|_| {
                matches!(gate.leave(now, &mut packet, 1400, true), Err(Dropped::Denied(Some(_))))
            })
            .count();
        assert!((100..=120).contains(&answered), "{answered}");
    }

    #[test]
    fn segments_of_connections_fit_and_packets_are_classed() {
        let (mut gate, now) = (gate("10.1.0.0/16:*"), Instant::now());
        let syn = [0, 9, 0, 22, 0, 0, 0, 1, 0, 0, 0, 0, 0x60, 2, 1, 0, 0, 0, 0, 0, 2, 4, 5, 0xb4];
        let mut packet = v4(CLIENT, REMOTE, TCP, &syn);
        let treatment = gate.enter(now, &mut packet, 1200, true).unwrap();
        assert_eq!(packet[42..44], 1160_u16.to_be_bytes());
        assert_eq!(treatment, Treatment::of(Class::Interactive));
    }
}

//! What marks and ports say of a flow.

use super::class::Class;
use super::dscp::Dscp;
use super::info::FlowInfo;
use crate::access::Transport;

/// Ports of services, and what flows to them are.
const PORTS: [(Transport, u16, u16, Class); 20] = [
    // Secure shell, telnet, DNS, DNS over TLS, NTP, SIP, remote desktops.
    (Transport::Tcp, 22, 23, Class::Interactive),
    (Transport::Tcp, 53, 53, Class::Interactive),
    (Transport::Udp, 53, 53, Class::Interactive),
    (Transport::Tcp, 853, 853, Class::Interactive),
    (Transport::Udp, 853, 853, Class::Interactive),
    (Transport::Udp, 123, 123, Class::Interactive),
    (Transport::Tcp, 5060, 5061, Class::Interactive),
    (Transport::Udp, 5060, 5060, Class::Interactive),
    (Transport::Tcp, 3389, 3389, Class::Interactive),
    (Transport::Udp, 3389, 3389, Class::Interactive),
    (Transport::Tcp, 5900, 5909, Class::Interactive),
    // Mosh.
    (Transport::Udp, 60000, 60999, Class::Interactive),
    // STUN and TURN, as calls use them; two known games.
    (Transport::Udp, 3478, 3481, Class::RealTime),
    (Transport::Udp, 19302, 19309, Class::RealTime),
    (Transport::Udp, 27015, 27030, Class::RealTime),
    // FTP, mail between servers, rsync, BitTorrent.
    (Transport::Tcp, 20, 21, Class::Bulk),
    (Transport::Tcp, 25, 25, Class::Bulk),
    (Transport::Tcp, 873, 873, Class::Bulk),
    (Transport::Tcp, 6881, 6889, Class::Bulk),
    (Transport::Udp, 6881, 6889, Class::Bulk),
];

/// What the mark of a flow's first packet says of it, or else its port.
#[must_use]
pub fn hint(info: &FlowInfo) -> Option<Class> {
    let port = info.destination.port();
    let by_port = || {
        let mut ports = PORTS.iter();
        let of = |(transport, first, last, _): &&(_, u16, u16, _)| {
            *transport == info.transport && (*first..=*last).contains(&port)
        };
        ports.find(of).map(|(_, _, _, class)| *class)
    };
    by_mark(info.dscp).or_else(by_port)
}

/// The classes of service of RFC 4594, and lower effort (RFC 8622).
fn by_mark(dscp: Dscp) -> Option<Class> {
    match (dscp, dscp.assured()) {
        (Dscp::EF | Dscp::VOICE_ADMIT, _) => Some(Class::RealTime),
        // Multimedia conferences.
        (_, Some((4, _))) => Some(Class::RealTime),
        // Low-latency data.
        (_, Some((2, _))) => Some(Class::Interactive),
        // High-throughput data; multimedia that is buffered.
        (Dscp::LE, _) | (_, Some((1 | 3, _))) => Some(Class::Bulk),
        _ if dscp.value() & 7 == 0 => match dscp.selector() {
            // Real-time interactive, signalling of calls.
            4 => Some(Class::RealTime),
            // Operation of networks, and their control.
            2 | 5 | 6 | 7 => Some(Class::Interactive),
            1 => Some(Class::Bulk),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_say_more_than_ports() {
        for (transport, port, mark, expected) in [
            (Transport::Tcp, 22, "cs0", Some(Class::Interactive)),
            (Transport::Udp, 22, "cs0", None),
            (Transport::Tcp, 22, "le", Some(Class::Bulk)),
            (Transport::Tcp, 873, "cs0", Some(Class::Bulk)),
            (Transport::Udp, 53, "cs0", Some(Class::Interactive)),
            (Transport::Udp, 51820, "cs0", None),
            (Transport::Udp, 51820, "ef", Some(Class::RealTime)),
            (Transport::Udp, 443, "af42", Some(Class::RealTime)),
            (Transport::Udp, 443, "af21", Some(Class::Interactive)),
            (Transport::Udp, 443, "af11", Some(Class::Bulk)),
            (Transport::Udp, 443, "cs1", Some(Class::Bulk)),
            (Transport::Udp, 443, "cs4", Some(Class::RealTime)),
            (Transport::Udp, 443, "cs6", Some(Class::Interactive)),
            (Transport::Udp, 443, "cs3", None),
            (Transport::Udp, 443, "2", None),
            (Transport::Ip, 0, "cs0", None),
        ] {
            let mut info = FlowInfo::to(transport, ([192, 0, 2, 1], port).into());
            info.dscp = mark.parse().unwrap();
            assert_eq!(hint(&info), expected, "{transport} {port} {mark}");
        }
    }
}

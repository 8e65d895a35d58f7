//! The largest segments that the ends of TCP connections agree on.

use super::checksum;
use super::packet::{Header, Part, TCP};

const SYN: u8 = 2;
const TCP_HEADER: usize = 20;
const OPTION_END: u8 = 0;
const OPTION_NOTHING: u8 = 1;
const OPTION_MSS: u8 = 2;

/// Lowers the largest segment that a TCP SYN offers, so that packets with one are no longer than `mtu` bytes: not
/// all hosts hear of packets that are too big. Returns whether it did. Changes nothing in other packets.
pub fn clamp_mss(packet: &mut [u8], header: &Header, mtu: usize) -> bool {
    if header.protocol != TCP || header.part == Part::Later {
        return false;
    }
    let ip_header = if header.source.is_ipv4() { 20 } else { 40 };
    let Ok(most) = u16::try_from(mtu.saturating_sub(ip_header + TCP_HEADER)) else { return false };
    let Some(tcp) = packet.get_mut(header.offset..) else { return false };
    let Some(at) = offered(tcp) else { return false };
    let Some([a, b]) = tcp.get(at..at + 2) else { return false };
    let before = [*a, *b];
    if u16::from_be_bytes(before) <= most {
        return false;
    }
    tcp[at..at + 2].copy_from_slice(&most.to_be_bytes());
    // An option may begin at an odd byte. Then its bytes are the low and high ones of two words.
    let swapped = |[a, b]: [u8; 2]| if at % 2 == 0 { [a, b] } else { [b, a] };
    let sum = checksum::update([tcp[16], tcp[17]], swapped(before), swapped(most.to_be_bytes()));
    tcp[16..18].copy_from_slice(&sum);
    true
}

/// Where in a TCP header the largest segment is that a SYN offers.
fn offered(tcp: &[u8]) -> Option<usize> {
    let end = usize::from(tcp.get(12)? >> 4) * 4;
    let options = tcp.get(TCP_HEADER..end)?;
    if tcp[13] & SYN == 0 {
        return None;
    }
    let mut at = 0;
    while let Some(kind) = options.get(at) {
        at += match *kind {
            OPTION_END => return None,
            OPTION_NOTHING => 1,
            kind => match (kind, *options.get(at + 1)?) {
                (OPTION_MSS, 4) if at + 4 <= options.len() => return Some(TCP_HEADER + at + 2),
                (_, length @ 2..) => usize::from(length),
                _ => return None,
            },
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::packet::tests::{v4, v6};
    use super::*;

    fn segment(flags: u8, options: &[u8]) -> Vec<u8> {
        let mut tcp = vec![0, 1, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, flags, 1, 0, 0x12, 0x34, 0, 0];
        tcp.extend_from_slice(options);
        tcp.resize(tcp.len().next_multiple_of(4), 0);
        tcp[12] = (tcp.len() << 2) as u8;
        tcp
    }

    /// What is left of the sum of a segment's words apart from its checksum.
    fn sum(tcp: &[u8]) -> u16 {
        checksum::finish(checksum::add(0, tcp))
    }

    fn clamped(packet: &mut [u8], mtu: usize) -> bool {
        let header = Header::parse(packet).unwrap();
        clamp_mss(packet, &header, mtu)
    }

    #[test]
    fn what_is_offered_is_lowered_and_never_raised() {
        let tcp = segment(SYN, &[OPTION_NOTHING, OPTION_MSS, 4, 0x05, 0xb4, 4, 2]);
        let mut packet = v4([10, 0, 0, 1], [10, 0, 0, 2], TCP, &tcp);
        assert!(!clamped(&mut packet, 1500));
        assert!(clamped(&mut packet, 1300));
        assert_eq!(packet[20 + 23..20 + 25], 1260_u16.to_be_bytes());
        assert_eq!(sum(&packet[20..]), sum(&tcp));
        assert!(!clamped(&mut packet, 1300));
        let mut packet = v6("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap(), TCP, &tcp);
        assert!(clamped(&mut packet, 1300));
        assert_eq!(packet[40 + 23..40 + 25], 1240_u16.to_be_bytes());
        assert_eq!(sum(&packet[40..]), sum(&tcp));
    }

    #[test]
    fn other_packets_stay_as_they_are() {
        let mss = [OPTION_MSS, 4, 0x05, 0xb4];
        for (protocol, payload) in [
            (TCP, segment(0x10, &mss)),
            (TCP, segment(SYN, &[])),
            (TCP, segment(SYN, &[OPTION_END, OPTION_MSS, 4, 0x05, 0xb4])),
            (TCP, segment(SYN, &[OPTION_MSS, 3, 0x05, 0xb4])),
            (TCP, segment(SYN, &[8, 0, OPTION_MSS, 4, 0x05, 0xb4])),
            (TCP, segment(SYN, &mss)[..20].to_vec()),
            (TCP, segment(SYN, &[3, 3, 3, OPTION_MSS])),
            (TCP, Vec::new()),
            (17, segment(SYN, &mss)),
        ] {
            let mut packet = v4([10, 0, 0, 1], [10, 0, 0, 2], protocol, &payload);
            let before = packet.clone();
            assert!(!clamped(&mut packet, 576));
            assert_eq!(packet, before);
        }
    }

    proptest! {
        #[test]
        fn the_checksum_holds_wherever_the_option_is(
            before in prop::collection::vec(Just(OPTION_NOTHING), 0..8), mss: u16, mtu in 0..1600_usize,
        ) {
            let [a, b] = mss.to_be_bytes();
            let tcp = segment(SYN, &[&before[..], &[OPTION_MSS, 4, a, b]].concat());
            let mut packet = v4([10, 0, 0, 1], [10, 0, 0, 2], TCP, &tcp);
            let is_lower = clamped(&mut packet, mtu);
            prop_assert_eq!(is_lower, usize::from(mss) > mtu.saturating_sub(40));
            let (old, new) = (sum(&tcp), sum(&packet[20..]));
            prop_assert!(old == new || [old, new].iter().all(|sum| [0, 0xffff].contains(sum)));
        }

        #[test]
        fn no_options_panic(flags: u8, options in prop::collection::vec(any::<u8>(), 0..40)) {
            let mut packet = v4([10, 0, 0, 1], [10, 0, 0, 2], TCP, &segment(flags, &options));
            let length = packet.len();
            clamped(&mut packet, 576);
            prop_assert_eq!(packet.len(), length);
        }
    }
}

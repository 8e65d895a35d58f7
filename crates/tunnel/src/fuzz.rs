//! Entry points for fuzzing.

mod ends;

use std::net::IpAddr;

use sutura::http::Capsule;

use crate::access::{AllowRule, Target};
use crate::flow::Rules;
use crate::ip::{self, AddressedCapsule, Answer, Header, Scope, checksum};

pub use ends::{masque, socks};

/// Reads `data` as a packet. What is read of it and changed in it must fit together, and an answer to it must be a
/// packet itself that is not answered with an error.
pub fn packet(data: &[u8]) {
    let mut data = data.to_vec();
    mend(&mut data);
    let data = &data[..];
    let Ok(header) = Header::parse(data) else { return };
    assert!(header.offset <= data.len());
    let mut changed = data.to_vec();
    ip::set_ecn(&mut changed, 3);
    ip::clamp_mss(&mut changed, &header, 600);
    let is_left = ip::decrement_hops(&mut changed).is_ok();
    let again = Header::parse(&changed).expect("a packet stays one");
    assert_eq!(again.hops, header.hops - u8::from(is_left));
    assert_eq!((again.source, again.destination), (header.source, header.destination));
    assert_eq!((ip::ecn(&again), again.traffic_class | 3), (3, header.traffic_class | 3));
    assert_eq!(ip::ports(&changed, &again), ip::ports(data, &header));
    let from: IpAddr = if header.source.is_ipv4() {
        [10, 0, 0, 1].into()
    } else {
        [0xfd00, 0, 0, 0, 0, 0, 0, 1].into()
    };
    for what in [Answer::TooBig(1280), Answer::Prohibited, Answer::NoRoute, Answer::Expired] {
        let Some(answer) = ip::answer(what, data, &header, from) else { continue };
        let told = Header::parse(&answer).expect("an answer is a packet");
        assert_eq!((told.source, told.destination), (from, header.source));
        assert!(answer.len() <= ip::MIN_MTU);
        assert_eq!(ip::answer(what, &answer, &told, from), None, "errors are not answered");
    }
}

/// Makes the checksum of an IPv4 header right, which changes by chance do not.
fn mend(packet: &mut [u8]) {
    let length = packet.first().map_or(0, |first| usize::from(first & 0xf) * 4);
    if packet.first().is_some_and(|first| first >> 4 == 4)
        && let Some(header) = packet.get_mut(..length.max(20))
    {
        header[10..12].fill(0);
        let sum = checksum::finish(checksum::add(0, header)).to_be_bytes();
        header[10..12].copy_from_slice(&sum);
    }
}

/// Reads `data` as a capsule of a tunnel of IP packets, after a byte for its type. What is read is written as it was.
pub fn capsule(data: &[u8]) {
    let Some((kind, value)) = data.split_first() else { return };
    let capsule = Capsule { kind: u64::from(*kind), value: value.to_vec().into() };
    if let Ok(Some(read)) = AddressedCapsule::decode(&capsule) {
        assert_eq!(AddressedCapsule::decode(&read.encode()), Ok(Some(read)));
    }
}

/// Reads `data` as what clients ask for and operators write: targets, paths, rules. What is read is shown as it is
/// read.
pub fn text(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(target) = text.parse::<Target>() {
        assert_eq!(target.to_string().parse(), Ok(target));
    }
    if let Ok(scope) = text.parse::<Scope>() {
        assert_eq!(scope.to_string().parse(), Ok(scope));
    }
    if let Ok(rule) = text.parse::<AllowRule>() {
        assert_eq!(rule.to_string().parse(), Ok(rule));
    }
    let _ = Rules::parse(text);
}

//! The capsules by which the ends of a tunnel agree on addresses and routes (RFC 9484 section 4.7).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use sutura::http::Capsule;

use super::version;

/// Most addresses of a capsule. More are refused.
pub const MAX_ADDRESSES: usize = 64;
/// Most ranges of a capsule. More are refused.
pub const MAX_ROUTES: usize = 1024;

const ADDRESS_ASSIGN: u64 = 1;
const ADDRESS_REQUEST: u64 = 2;
const ROUTE_ADVERTISEMENT: u64 = 3;

/// What one end tells the other. Each capsule replaces the one of its kind before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AddressedCapsule {
    /// All addresses that the other end may send from.
    Assign(Vec<AssignedAddress>),
    /// Addresses that this end would like; at least one.
    Request(Vec<AddressRequest>),
    /// All that the other end may send to, in order.
    Routes(Vec<IpRange>),
}

/// A network that the other end may send from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AssignedAddress {
    /// The request that this answers; 0 if it answers none.
    pub request: u64,
    /// The network. All zero with the longest prefix if the request is declined.
    pub network: IpNet,
}

/// A wish for a network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AddressRequest {
    /// Its number, which is not 0.
    pub request: u64,
    /// The network. All zero if any of this length will do.
    pub network: IpNet,
}

/// Addresses from `start` to `end`, which may be sent to with one protocol or any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct IpRange {
    /// The first address.
    pub start: IpAddr,
    /// The last address, of the same version.
    pub end: IpAddr,
    /// The protocol; 0 is any. ICMP may always be sent.
    pub protocol: u8,
}

/// Why a capsule is none of these. The tunnel is to be given up (RFC 9297 section 3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidCapsule {
    /// It ends within a field, or a version of IP is neither 4 nor 6.
    #[error("malformed capsule")]
    Malformed,
    /// A prefix is too long, or bits behind it are not zero.
    #[error("invalid prefix")]
    Prefix,
    /// Requests without numbers of their own, or none.
    #[error("invalid requests")]
    Requests,
    /// Ranges that are empty, overlap or are out of order.
    #[error("ranges out of order")]
    Order,
    /// More than is accepted.
    #[error("too many addresses or ranges")]
    TooMany,
}

impl AddressedCapsule {
    /// The types of these capsules.
    pub const KINDS: [u64; 3] = [ADDRESS_ASSIGN, ADDRESS_REQUEST, ROUTE_ADVERTISEMENT];

    /// Reads a capsule; `None` if it is of another type.
    ///
    /// # Errors
    /// It is malformed, or has more than is accepted.
    pub fn decode(capsule: &Capsule) -> Result<Option<Self>, InvalidCapsule> {
        let mut rest = &capsule.value[..];
        Ok(Some(match capsule.kind {
            ADDRESS_ASSIGN => Self::Assign(assigned(&mut rest)?),
            ADDRESS_REQUEST => Self::Request(requested(&mut rest)?),
            ROUTE_ADVERTISEMENT => Self::Routes(ranges(&mut rest)?),
            _ => return Ok(None),
        }))
    }

    /// The capsule to send. Ranges are brought into the order that they must have; they must not overlap.
    #[must_use]
    pub fn encode(&self) -> Capsule {
        let mut value = Vec::new();
        let kind = match self {
            Self::Assign(all) => {
                all.iter().for_each(|one| put_network(&mut value, one.request, one.network));
                ADDRESS_ASSIGN
            }
            Self::Request(all) => {
                all.iter().for_each(|one| put_network(&mut value, one.request, one.network));
                ADDRESS_REQUEST
            }
            Self::Routes(all) => {
                let mut all = all.clone();
                all.sort_by_key(IpRange::order);
                for range in all {
                    value.push(version(range.start));
                    put_address(&mut value, range.start);
                    put_address(&mut value, range.end);
                    value.push(range.protocol);
                }
                ROUTE_ADVERTISEMENT
            }
        };
        Capsule { kind, value: value.into() }
    }
}

impl IpRange {
    /// All addresses of a network, for every protocol.
    #[must_use]
    pub fn of(network: IpNet) -> Self {
        Self { start: network.network(), end: network.broadcast(), protocol: 0 }
    }

    /// The addresses that both ranges have, for the protocol of `self`.
    #[must_use]
    pub fn within(&self, other: &Self) -> Option<Self> {
        let is_same = version(self.start) == version(other.start);
        let (start, end) = (self.start.max(other.start), self.end.min(other.end));
        (is_same && start <= end).then_some(Self { start, end, protocol: self.protocol })
    }

    /// Whether packets to this address with this protocol are meant.
    #[must_use]
    pub fn contains(&self, ip: IpAddr, protocol: u8) -> bool {
        let is_meant = self.protocol == 0 || self.protocol == protocol || is_icmp(protocol);
        version(ip) == version(self.start) && self.start <= ip && ip <= self.end && is_meant
    }

    /// What ranges are sorted by.
    fn order(&self) -> (u8, u8, IpAddr) {
        (version(self.start), self.protocol, self.start)
    }

    /// Whether this range may be followed by another one in a capsule.
    fn is_before(&self, next: &Self) -> bool {
        let (own, other) = (self.order(), next.order());
        if (own.0, own.1) == (other.0, other.1) { self.end < next.start } else { own < other }
    }
}

/// All addresses, for every protocol.
#[must_use]
pub fn everywhere() -> [IpRange; 2] {
    let (v4, v6) = (Ipv4Addr::UNSPECIFIED, Ipv6Addr::UNSPECIFIED);
    [
        IpRange { start: v4.into(), end: Ipv4Addr::BROADCAST.into(), protocol: 0 },
        IpRange { start: v6.into(), end: Ipv6Addr::from(u128::MAX).into(), protocol: 0 },
    ]
}

fn is_icmp(protocol: u8) -> bool {
    matches!(protocol, 1 | 58)
}

fn assigned(rest: &mut &[u8]) -> Result<Vec<AssignedAddress>, InvalidCapsule> {
    let mut all = Vec::new();
    while !rest.is_empty() {
        if all.len() == MAX_ADDRESSES {
            return Err(InvalidCapsule::TooMany);
        }
        let (request, network) = take_network(rest)?;
        all.push(AssignedAddress { request, network });
    }
    Ok(all)
}

fn requested(rest: &mut &[u8]) -> Result<Vec<AddressRequest>, InvalidCapsule> {
    let mut all: Vec<AddressRequest> = Vec::new();
    while !rest.is_empty() {
        if all.len() == MAX_ADDRESSES {
            return Err(InvalidCapsule::TooMany);
        }
        let (request, network) = take_network(rest)?;
        if request == 0 || all.iter().any(|other| other.request == request) {
            return Err(InvalidCapsule::Requests);
        }
        all.push(AddressRequest { request, network });
    }
    if all.is_empty() { Err(InvalidCapsule::Requests) } else { Ok(all) }
}

fn ranges(rest: &mut &[u8]) -> Result<Vec<IpRange>, InvalidCapsule> {
    let mut all: Vec<IpRange> = Vec::new();
    while !rest.is_empty() {
        if all.len() == MAX_ROUTES {
            return Err(InvalidCapsule::TooMany);
        }
        let version = take_byte(rest)?;
        let (start, end) = (take_address(rest, version)?, take_address(rest, version)?);
        let range = IpRange { start, end, protocol: take_byte(rest)? };
        if start > end || all.last().is_some_and(|last| !last.is_before(&range)) {
            return Err(InvalidCapsule::Order);
        }
        all.push(range);
    }
    Ok(all)
}

/// A number, a version, an address and the length of a prefix.
fn take_network(rest: &mut &[u8]) -> Result<(u64, IpNet), InvalidCapsule> {
    let request = take_varint(rest)?;
    let version = take_byte(rest)?;
    let address = take_address(rest, version)?;
    let network = IpNet::new(address, take_byte(rest)?).map_err(|_| InvalidCapsule::Prefix)?;
    if network.trunc() == network { Ok((request, network)) } else { Err(InvalidCapsule::Prefix) }
}

fn put_network(out: &mut Vec<u8>, request: u64, network: IpNet) {
    // Numbers are ours, or were read as such.
    match request {
        0..0x40 => out.push(request as u8),
        0x40..0x4000 => out.extend_from_slice(&(request as u16 | 1 << 14).to_be_bytes()),
        0x4000..0x4000_0000 => out.extend_from_slice(&(request as u32 | 2 << 30).to_be_bytes()),
        _ => out.extend_from_slice(&(request | 3 << 62).to_be_bytes()),
    }
    out.push(version(network.addr()));
    put_address(out, network.addr());
    out.push(network.prefix_len());
}

fn put_address(out: &mut Vec<u8>, address: IpAddr) {
    match address {
        IpAddr::V4(ip) => out.extend_from_slice(&ip.octets()),
        IpAddr::V6(ip) => out.extend_from_slice(&ip.octets()),
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], InvalidCapsule> {
    let (taken, after) = rest.split_first_chunk().ok_or(InvalidCapsule::Malformed)?;
    *rest = after;
    Ok(*taken)
}

fn take_byte(rest: &mut &[u8]) -> Result<u8, InvalidCapsule> {
    take::<1>(rest).map(|[byte]| byte)
}

fn take_address(rest: &mut &[u8], version: u8) -> Result<IpAddr, InvalidCapsule> {
    match version {
        4 => take::<4>(rest).map(|ip| Ipv4Addr::from(ip).into()),
        6 => take::<16>(rest).map(|ip| Ipv6Addr::from(ip).into()),
        _ => Err(InvalidCapsule::Malformed),
    }
}

/// An integer of QUIC (RFC 9000 section 16).
fn take_varint(rest: &mut &[u8]) -> Result<u64, InvalidCapsule> {
    let first = rest.first().ok_or(InvalidCapsule::Malformed)?;
    Ok(match first >> 6 {
        0 => take_byte(rest)?.into(),
        1 => (u16::from_be_bytes(take(rest)?) & 0x3fff).into(),
        2 => (u32::from_be_bytes(take(rest)?) & 0x3fff_ffff).into(),
        _ => u64::from_be_bytes(take(rest)?) & (u64::MAX >> 2),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn range(start: &str, end: &str, protocol: u8) -> IpRange {
        IpRange { start: start.parse().unwrap(), end: end.parse().unwrap(), protocol }
    }

    fn raw(kind: u64, value: &[u8]) -> Result<Option<AddressedCapsule>, InvalidCapsule> {
        AddressedCapsule::decode(&Capsule { kind, value: value.to_vec().into() })
    }

    #[test]
    fn capsules_are_as_the_rfc_has_them() {
        let assign = AddressedCapsule::Assign(vec![AssignedAddress {
            request: 1,
            network: "192.0.2.11/32".parse().unwrap(),
        }]);
        assert_eq!(assign.encode().value[..], [1, 4, 192, 0, 2, 11, 32]);
        let routes = AddressedCapsule::Routes(vec![
            range("::", "::5", 0),
            range("10.0.0.0", "10.0.0.255", 17),
            range("0.0.0.0", "9.255.255.255", 0),
        ]);
        let Ok(Some(AddressedCapsule::Routes(read))) = AddressedCapsule::decode(&routes.encode())
        else {
            panic!("not routes")
        };
        assert_eq!(read[0], range("0.0.0.0", "9.255.255.255", 0));
        assert_eq!(read[2], range("::", "::5", 0));
        assert_eq!(raw(0x17, &[1, 2, 3]), Ok(None));
        assert_eq!(raw(1, &[]), Ok(Some(AddressedCapsule::Assign(Vec::new()))));
    }

    #[test]
    fn what_breaks_a_rule_is_refused() {
        for (kind, value, error) in [
            (1, &[0, 5, 1, 2, 3, 4, 32][..], InvalidCapsule::Malformed),
            (1, &[0, 4, 1, 2, 3, 4], InvalidCapsule::Malformed),
            (1, &[0, 4, 1, 2, 3, 4, 33], InvalidCapsule::Prefix),
            (1, &[0, 4, 1, 2, 3, 4, 24], InvalidCapsule::Prefix),
            (1, &[0x40], InvalidCapsule::Malformed),
            (2, &[], InvalidCapsule::Requests),
            (2, &[0, 4, 0, 0, 0, 0, 32], InvalidCapsule::Requests),
            (2, &[1, 4, 0, 0, 0, 0, 32, 1, 4, 0, 0, 0, 0, 32], InvalidCapsule::Requests),
            (3, &[4, 1, 0, 0, 0, 1, 0, 0], InvalidCapsule::Malformed),
            (3, &[4, 1, 0, 0, 1, 1, 0, 0, 0, 0], InvalidCapsule::Order),
            (
                3,
                &[4, 1, 0, 0, 0, 1, 0, 0, 9, 0, 4, 1, 0, 0, 9, 1, 0, 0, 10, 0],
                InvalidCapsule::Order,
            ),
            (
                3,
                &[4, 1, 0, 0, 0, 1, 0, 0, 9, 6, 4, 2, 0, 0, 9, 2, 0, 0, 10, 0],
                InvalidCapsule::Order,
            ),
        ] {
            assert_eq!(raw(kind, value), Err(error), "{value:?}");
        }
        // The same range with another protocol is another one.
        let twice = [4, 1, 0, 0, 0, 1, 0, 0, 9, 0, 4, 1, 0, 0, 0, 1, 0, 0, 9, 6];
        assert!(raw(3, &twice).is_ok());
    }

    #[test]
    fn a_flood_of_addresses_or_ranges_is_refused() {
        let address = [0, 4, 1, 2, 3, 4, 32];
        assert!(raw(1, &address.repeat(MAX_ADDRESSES)).is_ok());
        assert_eq!(raw(1, &address.repeat(MAX_ADDRESSES + 1)), Err(InvalidCapsule::TooMany));
        let routes = |count: u32| {
            let at = |n: u32| IpAddr::from(Ipv4Addr::from(n * 2));
            let all = (1..=count).map(|n| IpRange { start: at(n), end: at(n), protocol: 0 });
            AddressedCapsule::decode(&AddressedCapsule::Routes(all.collect()).encode())
        };
        assert!(routes(MAX_ROUTES as u32).is_ok());
        assert_eq!(routes(MAX_ROUTES as u32 + 1), Err(InvalidCapsule::TooMany));
    }

    #[test]
    fn ranges_hold_their_addresses_and_always_icmp() {
        let range = IpRange { protocol: 17, ..IpRange::of("10.0.0.0/24".parse().unwrap()) };
        let at = |ip: &str, protocol| range.contains(ip.parse().unwrap(), protocol);
        assert!(at("10.0.0.0", 17) && at("10.0.0.255", 17) && at("10.0.0.9", 1));
        assert!(!at("10.0.0.9", 6) && !at("10.0.1.0", 17) && !at("::1", 17));
    }

    #[test]
    fn ranges_meet_where_both_are() {
        let one = range("10.0.0.0", "10.0.0.9", 17);
        assert_eq!(
            one.within(&range("10.0.0.5", "10.1.0.0", 0)),
            Some(range("10.0.0.5", "10.0.0.9", 17))
        );
        assert_eq!(one.within(&range("10.0.0.10", "10.1.0.0", 0)), None);
        let [v4, v6] = everywhere();
        assert_eq!((one.within(&v4), one.within(&v6)), (Some(one), None));
    }

    fn any_network() -> impl Strategy<Value = IpNet> {
        (any::<IpAddr>(), 0..=128_u8).prop_map(|(ip, length)| {
            let most = if ip.is_ipv4() { 32 } else { 128 };
            IpNet::new(ip, length.min(most)).unwrap().trunc()
        })
    }

    proptest! {
        #[test]
        fn addresses_survive(all in prop::collection::vec((0..1_u64 << 62, any_network()), 0..9)) {
            let assigned =
                all.iter().map(|(request, network)| AssignedAddress { request: *request, network: *network });
            let assign = AddressedCapsule::Assign(assigned.collect());
            prop_assert_eq!(AddressedCapsule::decode(&assign.encode()), Ok(Some(assign)));
        }

        #[test]
        fn what_is_read_is_written_as_it_was(
            kind in 1..4_u64, value in prop::collection::vec(prop_oneof![0..9_u8, any::<u8>()], 0..60),
        ) {
            if let Ok(Some(read)) = raw(kind, &value) {
                let again = AddressedCapsule::decode(&read.encode());
                prop_assert_eq!(again, Ok(Some(read)));
            }
        }
    }
}

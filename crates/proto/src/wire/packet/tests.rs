use super::*;
use crate::wire::coding::varint_size;
use proptest::collection::vec;
use proptest::prelude::*;

/// The bytes after the header of a test packet: enough for the sample with any packet number.
const FILL: usize = MAX_NUMBER_SIZE - 1 + SAMPLE_SIZE;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

fn cid(bytes: &[u8]) -> ConnectionId {
    ConnectionId::new(bytes).unwrap()
}

/// Reads a packet whose fixed bit must be set.
fn parse(
    datagram: &[u8],
    start: usize,
    local_cid_len: usize,
) -> Result<DecodedPacket, HeaderError> {
    super::parse(datagram, start, HeaderRules { local_cid_len, greased: false })
}

fn protected(datagram: &[u8], start: usize, local_cid_len: usize) -> ProtectedPacket {
    match parse(datagram, start, local_cid_len) {
        Ok(DecodedPacket::Protected(packet)) => packet,
        other => panic!("not a protected packet: {other:?}"),
    }
}

fn any_cid() -> impl Strategy<Value = ConnectionId> {
    vec(any::<u8>(), 0..=20).prop_map(|bytes| cid(&bytes))
}

fn any_version() -> impl Strategy<Value = Version> {
    proptest::sample::select(&Version::ALL[..])
}

fn any_number() -> impl Strategy<Value = TruncatedNumber> {
    (any::<u64>(), 1usize..=4).prop_map(|(number, size)| TruncatedNumber::with_size(number, size))
}

fn long_type(selector: u8, token: &[u8]) -> LongType<'_> {
    match selector % 3 {
        0 => LongType::Initial { token },
        1 => LongType::ZeroRtt,
        _ => LongType::Handshake,
    }
}

fn long(ty: LongType<'_>, dcid: ConnectionId, scid: ConnectionId) -> LongHeader<'_> {
    LongHeader { version: Version::V1, ty, dcid, scid }
}

/// The type of such packets, and the size of the header.
fn type_and_size(header: &LongHeader<'_>, number: TruncatedNumber) -> (PacketType, usize) {
    let (ty, token) = match header.ty {
        LongType::Initial { token } => {
            (PacketType::Initial, varint_size(token.len() as u64) + token.len())
        }
        LongType::ZeroRtt => (PacketType::ZeroRtt, 0),
        LongType::Handshake => (PacketType::Handshake, 0),
    };
    let cids = 1 + header.dcid.len() + 1 + header.scid.len();
    (ty, 1 + 4 + cids + token + 2 + number.size())
}

/// A complete long-header packet with `fill` bytes of payload and no tag.
fn build_long(
    header: &LongHeader<'_>,
    number: TruncatedNumber,
    fill: usize,
    out: &mut Vec<u8>,
) -> Layout {
    let layout = header.encode(number, out);
    assert_eq!(out.len() - layout.start, type_and_size(header, number).1);
    out.resize(out.len() + fill, 0xee);
    layout.finish(0, out).unwrap();
    layout
}

#[test]
fn rfc9001_appendix_a2_client_initial() {
    let plain = hex("c300000001088394c8f03e5157080000449e00000002");
    let dcid = cid(&hex("8394c8f03e515708"));
    let header = long(LongType::Initial { token: &[] }, dcid, ConnectionId::default());
    let number = TruncatedNumber::with_size(2, 4);
    let mut out = Vec::new();
    let layout = header.encode(number, &mut out);
    out.resize(out.len() + 1162, 0);
    layout.finish(16, &mut out).unwrap();
    assert_eq!(out[..plain.len()], plain);
    assert_eq!((layout.start, layout.number, layout.payload), (0, 18, 22));

    out.resize(1200, 0);
    let packet = protected(&out, 0, 0);
    assert_eq!((packet.ty, packet.dcid), (PacketType::Initial, header.dcid));
    assert_eq!((packet.number, packet.end), (18, 1200));
    assert_eq!(packet.unprotected(&out).unwrap().number, number);
}

#[test]
fn rfc9001_appendix_a3_server_initial() {
    let mut datagram = hex("c1000000010008f067a5502a4262b50040750001");
    datagram.resize(18 + 0x75, 0);
    let packet = protected(&datagram, 0, 0);
    assert_eq!((packet.dcid.len(), packet.scid), (0, cid(&hex("f067a5502a4262b5"))));
    assert_eq!(packet.end, datagram.len());
    let header = packet.unprotected(&datagram).unwrap();
    assert_eq!((header.number.value(), header.payload.start), (1, 20));
    assert_eq!(header.check_reserved(), Ok(()));

    let again = long(LongType::Initial { token: &[] }, packet.dcid, packet.scid);
    let mut out = Vec::new();
    build_long(&again, header.number, 0x75 - 2, &mut out);
    assert_eq!(out[..20], datagram[..20]);
}

#[test]
fn rfc9001_appendix_a4_retry() {
    let datagram = hex("ff000000010008f067a5502a4262b5746f6b656e04a265ba2eff4d829058fb3f0f2496ba");
    let Ok(DecodedPacket::Retry(retry)) = parse(&datagram, 0, 0) else { panic!("not a Retry") };
    assert_eq!(&datagram[retry.token.clone()], b"token");
    assert_eq!(datagram[retry.tag.clone()], hex("04a265ba2eff4d829058fb3f0f2496ba"));
    let mut out = Vec::new();
    encode_retry(Version::V1, retry.dcid, retry.scid, b"token", &mut out);
    assert_eq!(out, datagram[..retry.tag.start]);
}

#[test]
fn rfc9001_appendix_a5_short_header() {
    let datagram = hex("4cfe4189655e5cd55c41f69080575d7999c25a5bfb");
    let packet = protected(&datagram, 0, 0);
    assert_eq!((packet.number, packet.end), (1, 21));
    assert_eq!(
        datagram[packet.number + MAX_NUMBER_SIZE..][..SAMPLE_SIZE],
        hex("5e5cd55c41f69080575d7999c25a5bfb")
    );
    // One byte less is too short for the sample.
    assert_eq!(parse(&datagram[..20], 0, 0), Err(HeaderError::NoSample));

    let plain = [hex("4200bff4"), vec![0; 17]].concat();
    let header = protected(&plain, 0, 0).unprotected(&plain).unwrap();
    assert_eq!((header.number.size(), header.number.expand(654_360_560)), (3, 654_360_564));
    let mut out = Vec::new();
    let short = ShortHeader { dcid: cid(&[]), spin: false, key_phase: false };
    let number = TruncatedNumber::with_size(654_360_564, 3);
    assert_eq!(short.encode(number, &mut out), Layout { start: 0, number: 1, payload: 4 });
    assert_eq!(out, hex("4200bff4"));
}

#[test]
fn reserved_bits_are_judged_when_asked() {
    let mut short = vec![0x40 | 0x10; 30];
    short[1..].fill(0);
    let header = protected(&short, 0, 4).unprotected(&short).unwrap();
    assert_eq!(header.check_reserved().unwrap_err().code, TransportErrorCode::PROTOCOL_VIOLATION);
    // In a short header, the same bits are not reserved.
    short[0] = 0x40 | SPIN | KEY_PHASE;
    let header = protected(&short, 0, 4).unprotected(&short).unwrap();
    assert_eq!((header.check_reserved(), header.spin, header.key_phase), (Ok(()), true, true));

    let long = long(LongType::Handshake, cid(&[1]), ConnectionId::default());
    let mut out = Vec::new();
    build_long(&long, TruncatedNumber::with_size(0, 1), FILL, &mut out);
    out[0] |= 0x08;
    assert!(protected(&out, 0, 0).unprotected(&out).unwrap().check_reserved().is_err());
}

#[test]
fn headers_that_are_not_ours_are_told_apart() {
    assert_eq!(parse(&[], 0, 8), Err(HeaderError::Truncated));
    assert_eq!(parse(&[0x40], 5, 8), Err(HeaderError::Truncated));
    assert_eq!(parse(&[0; 60], 0, 8), Err(HeaderError::FixedBit));
    let other = hex("c0 6b3343ce 02 aabb 01 cc 00");
    assert_eq!(parse(&other, 0, 8), Err(HeaderError::UnsupportedVersion(0x6b33_43ce)));
    let invariants = parse_invariants(&other, 8).unwrap();
    assert_eq!((invariants.version, invariants.dcid), (Some(0x6b33_43ce), &[0xaa, 0xbb][..]));
    assert_eq!(invariants.scid, [0xcc]);
    let no_fixed = hex("80 00000001 00 00 00 4014");
    assert_eq!(parse(&no_fixed, 0, 8), Err(HeaderError::FixedBit));
    let greased = HeaderRules { local_cid_len: 8, greased: true };
    assert_ne!(super::parse(&no_fixed, 0, greased), Err(HeaderError::FixedBit));
    let long_cid = [&hex("c0 00000001 15")[..], &[7; 60]].concat();
    assert_eq!(parse(&long_cid, 0, 8), Err(HeaderError::ConnectionIdTooLong));
    // Other versions may have identifiers of up to 255 bytes.
    let long_cid = [&hex("c0 00000002 ff")[..], &[7; 255], &[0]].concat();
    assert_eq!(parse_invariants(&long_cid, 8).unwrap().dcid.len(), 255);
}

#[test]
fn lengths_are_held_against_the_datagram() {
    // A token of 2^62 - 1 bytes.
    let token = hex("c0 00000001 00 00 ffffffffffffffff 00");
    assert_eq!(parse(&token, 0, 0), Err(HeaderError::Truncated));
    // A length that exceeds the datagram by one byte.
    let mut length = hex("e0 00000001 00 00 4015");
    length.resize(length.len() + 20, 0);
    assert_eq!(parse(&length, 0, 0), Err(HeaderError::Truncated));
    length.push(0);
    assert_eq!(protected(&length, 0, 0).end, length.len());
    // The datagram is long enough, but the packet is not.
    let mut short = hex("e0 00000001 00 00 4013");
    short.resize(short.len() + 40, 0);
    assert_eq!(parse(&short, 0, 0), Err(HeaderError::NoSample));
}

#[test]
fn retry_needs_a_token() {
    let retry = [&hex("f0 00000001 00 00")[..], &[0; RETRY_TAG_SIZE]].concat();
    assert_eq!(parse(&retry, 0, 0), Err(HeaderError::Malformed));
    assert_eq!(parse(&retry[..retry.len() - 1], 0, 0), Err(HeaderError::Truncated));
}

#[test]
fn version_negotiation_lists_versions() {
    // The fixed bit has no meaning here.
    for first in ["80", "c0", "ff"] {
        let mut datagram = hex(first);
        datagram.extend(hex("00000000 01 aa 02 bbcc 00000001 1a2a3a4a"));
        let Ok(DecodedPacket::VersionNegotiation(packet)) = parse(&datagram, 0, 8) else {
            panic!("not Version Negotiation")
        };
        assert_eq!((packet.dcid, packet.scid), (cid(&[0xaa]), cid(&[0xbb, 0xcc])));
        assert_eq!(packet.versions(&datagram).collect::<Vec<_>>(), [1, 0x1a2a_3a4a]);
        assert_eq!(parse_invariants(&datagram, 8).unwrap().version, Some(0));
        assert_eq!(parse(&datagram[..17], 0, 8), Err(HeaderError::Malformed));
        assert_eq!(parse(&datagram[..10], 0, 8), Err(HeaderError::Truncated));
    }
}

#[test]
fn coalesced_packets_are_walked_and_strangers_skipped() {
    let ours = cid(&[1; 8]);
    let header = |ty, dcid| long(ty, dcid, cid(&[2]));
    let number = TruncatedNumber::with_size(0, 1);
    let mut datagram = Vec::new();
    build_long(&header(LongType::Initial { token: b"t" }, ours), number, FILL, &mut datagram);
    build_long(&header(LongType::Handshake, cid(&[9; 8])), number, FILL, &mut datagram);
    build_long(&header(LongType::Handshake, ours), number, FILL, &mut datagram);
    let short = datagram.len();
    ShortHeader { dcid: ours, spin: false, key_phase: false }.encode(number, &mut datagram);
    datagram.resize(datagram.len() + FILL, 0);

    let mut walk = Coalesced::new(HeaderRules { local_cid_len: 8, greased: false });
    let mut types = Vec::new();
    while let Some(packet) = walk.next(&datagram) {
        let Ok(DecodedPacket::Protected(packet)) = packet else { panic!("unexpected {packet:?}") };
        types.push(packet.ty);
        // Decrypting in place must not affect the iteration.
        datagram[packet.start..packet.end].fill(0);
    }
    assert_eq!(types, [PacketType::Initial, PacketType::Handshake, PacketType::OneRtt]);

    // Padding after a packet ends the iteration with an error and does not loop.
    let mut padded = Vec::new();
    build_long(&header(LongType::Handshake, ours), number, FILL, &mut padded);
    padded.resize(padded.len() + 100, 0);
    let mut walk = Coalesced::new(HeaderRules { local_cid_len: 8, greased: false });
    assert!(matches!(walk.next(&padded), Some(Ok(_))));
    assert_eq!(walk.next(&padded), Some(Err(HeaderError::FixedBit)));
    assert_eq!(walk.next(&padded), None);
    assert!(short > 0);
}

#[test]
fn a_packet_too_long_for_its_length_field_is_refused() {
    let header = long(LongType::Handshake, cid(&[]), cid(&[]));
    let mut out = Vec::new();
    let layout = header.encode(TruncatedNumber::with_size(0, 1), &mut out);
    out.resize(layout.number + (1 << 14) - 1 - 16, 0);
    assert_eq!(layout.finish(16, &mut out), Ok(()));
    assert_eq!(layout.finish(17, &mut out), Err(HeaderError::TooLong));
}

proptest! {
    #[test]
    fn long_headers_round_trip(
        version in any_version(), selector in 0u8..3, token in vec(any::<u8>(), 0..100), dcid in any_cid(),
        scid in any_cid(), number in any_number(), fill in FILL..300, before in 0usize..40,
    ) {
        let header = LongHeader { version, ty: long_type(selector, &token), dcid, scid };
        let mut out = vec![0; before];
        let layout = build_long(&header, number, fill, &mut out);
        let end = out.len();
        out.extend([0; 7]);

        let packet = protected(&out, before, 8);
        prop_assert_eq!((packet.version, packet.ty, packet.dcid, packet.scid),
            (Some(version), type_and_size(&header, number).0, dcid, scid));
        prop_assert_eq!((packet.start, packet.number, packet.end), (before, layout.number, end));
        let expected_token = if selector == 0 { &token[..] } else { &[] };
        prop_assert_eq!(&out[packet.token.clone()], expected_token);
        let rest = packet.unprotected(&out).unwrap();
        prop_assert_eq!((rest.number, rest.payload.clone()), (number, layout.payload..end));
        prop_assert_eq!(rest.check_reserved(), Ok(()));

        let invariants = parse_invariants(&out[before..], 8).unwrap();
        prop_assert_eq!((invariants.version, invariants.dcid, invariants.scid),
            (Some(version.number()), dcid.as_slice(), scid.as_slice()));
        for cut in before..end {
            prop_assert!(parse(&out[..cut], before, 8).is_err());
        }
    }

    #[test]
    fn short_headers_round_trip(
        dcid in any_cid(), spin: bool, key_phase: bool, number in any_number(), fill in FILL..300,
    ) {
        let header = ShortHeader { dcid, spin, key_phase };
        let mut out = Vec::new();
        let layout = header.encode(number, &mut out);
        prop_assert_eq!(out.len(), 1 + dcid.len() + number.size());
        out.resize(out.len() + fill, 0);
        prop_assert_eq!(layout.finish(0, &mut out), Ok(()));
        let packet = protected(&out, 0, dcid.len());
        prop_assert_eq!((packet.ty, packet.dcid), (PacketType::OneRtt, dcid));
        prop_assert_eq!((packet.number, packet.end), (layout.number, out.len()));
        let rest = packet.unprotected(&out).unwrap();
        prop_assert_eq!((rest.number, rest.spin, rest.key_phase), (number, spin, key_phase));
        prop_assert_eq!(rest.header, 0..layout.payload);
        prop_assert_eq!(parse_invariants(&out, dcid.len()).unwrap().dcid, dcid.as_slice());
        let minimum = layout.number + MAX_NUMBER_SIZE + SAMPLE_SIZE;
        for cut in 0..out.len() {
            prop_assert_eq!(parse(&out[..cut], 0, dcid.len()).is_ok(), cut >= minimum);
        }
    }

    #[test]
    fn retry_round_trips(
        version in any_version(), dcid in any_cid(), scid in any_cid(),
        token in vec(any::<u8>(), 1..100),
    ) {
        let mut out = Vec::new();
        encode_retry(version, dcid, scid, &token, &mut out);
        let tag = out.len();
        out.extend([9; RETRY_TAG_SIZE]);
        let Ok(DecodedPacket::Retry(retry)) = parse(&out, 0, 8) else { panic!("not a Retry") };
        prop_assert_eq!((retry.version, retry.dcid, retry.scid), (version, dcid, scid));
        prop_assert_eq!((&out[retry.token], retry.tag), (&token[..], tag..out.len()));
    }

    #[test]
    fn any_bytes_are_a_walk_that_ends(bytes in vec(any::<u8>(), 0..300), long: bool) {
        let mut bytes = bytes;
        if let (true, Some(head)) = (long, bytes.get_mut(..7)) {
            head.copy_from_slice(&[0xe0 | head[0], 0, 0, 0, 1, 0, 0]);
        }
        crate::wire::fuzz::packets(&bytes);
    }
}

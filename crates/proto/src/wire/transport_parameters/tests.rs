use super::*;
use crate::wire::code_id::CodeId;
use crate::wire::coding::VARINT_MAX;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

fn encoded(parameters: &TransportParameters, from: Side) -> Vec<u8> {
    let mut out = Vec::new();
    parameters.encode(from, &mut out);
    out
}

/// The smallest limits.
pub(super) const ONE: FecParameters = FecParameters {
    max_sessions: 1,
    max_window_symbols: 1,
    max_window_bytes: 1,
    max_symbol_size: 1,
    codes: CodeSet::ONLY_SLIDING_WINDOW,
};

/// A parameter whose value is one integer.
fn with_integer(id: u64, value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_varint(&mut bytes, value);
    with_bytes(id, &bytes)
}

fn with_bytes(id: u64, value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_bytes(id, value, &mut out);
    out
}

fn refused(bytes: &[u8], from: Side) -> bool {
    match TransportParameters::decode(bytes, from) {
        Ok(_) => false,
        Err(error) => {
            assert_eq!(error.code, TransportErrorCode::TRANSPORT_PARAMETER_ERROR);
            true
        }
    }
}

fn any_cid() -> impl Strategy<Value = ConnectionId> {
    vec(any::<u8>(), 0..=20).prop_map(|bytes| ConnectionId::new(&bytes).unwrap())
}

fn any_preferred_address() -> impl Strategy<Value = PreferredAddress> {
    (
        option::of((any::<[u8; 4]>(), 1u16..)),
        option::of((any::<[u8; 16]>(), 1u16..)),
        vec(any::<u8>(), 1..=20),
        any::<[u8; 16]>(),
    )
        .prop_map(|(ipv4, ipv6, id, reset_token)| PreferredAddress {
            ipv4: ipv4.map(|(ip, port)| SocketAddrV4::new(ip.into(), port)),
            ipv6: ipv6.map(|(ip, port)| SocketAddrV6::new(ip.into(), port, 0, 0)),
            connection_id: ConnectionId::new(&id).unwrap(),
            reset_token,
        })
}

fn any_fec() -> impl Strategy<Value = FecParameters> {
    let number = 1..=VARINT_MAX;
    ([number.clone(), number.clone(), number.clone(), number], 0..=VARINT_MAX).prop_map(
        |([max_sessions, max_window_symbols, max_window_bytes, max_symbol_size], codes)| {
            let codes = CodeSet::from_bits(codes);
            FecParameters {
                max_sessions,
                max_window_symbols,
                max_window_bytes,
                max_symbol_size,
                codes,
            }
        },
    )
}

prop_compose! {
    fn any_parameters()(
        [idle, data, local, remote, uni, datagram] in [0..=VARINT_MAX, 0..=VARINT_MAX, 0..=VARINT_MAX,
            0..=VARINT_MAX, 0..=VARINT_MAX, 0..=VARINT_MAX],
        [streams_bidi, streams_uni] in [0..=MAX_STREAMS, 0..=MAX_STREAMS],
        payload in MIN_UDP_PAYLOAD_SIZE..=VARINT_MAX,
        exponent in 0..=20u8,
        ack_delay in 0..MAX_ACK_DELAY_BOUND,
        min_ack_delay in option::of(0..=1_000u64),
        version_information in option::of((1u32.., vec(1u32.., 0..MAX_AVAILABLE_VERSIONS))),
        cid_limit in MIN_ACTIVE_CONNECTION_ID_LIMIT..=VARINT_MAX,
        [migration, grease_quic_bit, reset_stream_at]: [bool; 3],
        [original, initial, retry] in [option::of(any_cid()), option::of(any_cid()),
            option::of(any_cid())],
        token in option::of(any::<[u8; 16]>()),
        preferred in option::of(any_preferred_address()),
        fec in option::of(any_fec()),
        grease in option::of(any::<u64>()),
    ) -> TransportParameters {
        TransportParameters {
            original_destination_connection_id: original,
            max_idle_timeout: idle,
            stateless_reset_token: token,
            max_udp_payload_size: payload,
            initial_max_data: data,
            initial_max_stream_data_bidi_local: local,
            initial_max_stream_data_bidi_remote: remote,
            initial_max_stream_data_uni: uni,
            initial_max_streams_bidi: streams_bidi,
            initial_max_streams_uni: streams_uni,
            ack_delay_exponent: exponent,
            max_ack_delay: ack_delay,
            disable_active_migration: migration,
            preferred_address: preferred.map(Box::new),
            active_connection_id_limit: cid_limit,
            initial_source_connection_id: initial,
            retry_source_connection_id: retry,
            max_datagram_frame_size: datagram,
            version_information: version_information.map(|(chosen, mut available)| {
                available.push(chosen);
                VersionInformation { chosen, available }
            }),
            grease_quic_bit,
            reset_stream_at,
            min_ack_delay: min_ack_delay.map(|share| share * ack_delay),
            fec,
            grease: grease.map(Grease::new),
        }
    }
}

proptest! {
    #[test]
    fn round_trip(parameters in any_parameters()) {
        let server = TransportParameters { grease: None, ..parameters.clone() };
        let bytes = encoded(&parameters, Side::Server);
        prop_assert_eq!(TransportParameters::decode(&bytes, Side::Server), Ok(server.clone()));

        let client = TransportParameters {
            original_destination_connection_id: None,
            stateless_reset_token: None,
            preferred_address: None,
            retry_source_connection_id: None,
            ..server
        };
        let bytes = encoded(&parameters, Side::Client);
        prop_assert_eq!(TransportParameters::decode(&bytes, Side::Client), Ok(client));
    }

    #[test]
    fn truncations_are_errors_or_fewer_parameters(parameters in any_parameters()) {
        let bytes = encoded(&parameters, Side::Server);
        let mut whole = 0;
        for cut in 0..bytes.len() {
            whole += usize::from(!refused(&bytes[..cut], Side::Server));
            crate::wire::fuzz::transport_parameters(&bytes[..cut]);
        }
        // Truncated parameters are valid only if they are cut between two parameters, of which there are at
        // most 24.
        prop_assert!(whole <= 24);
    }

    #[test]
    fn any_bytes_are_parameters_or_an_error(bytes in vec(any::<u8>(), 0..100)) {
        crate::wire::fuzz::transport_parameters(&bytes);
    }

    #[test]
    fn grease_is_reserved_and_ignored(random: u64) {
        let grease = Grease::new(random);
        prop_assert_eq!(grease.id() % 31, 27);
        let parameters = TransportParameters { grease: Some(grease), ..Default::default() };
        let bytes = encoded(&parameters, Side::Client);
        prop_assert!(!bytes.is_empty());
        prop_assert_eq!(
            TransportParameters::decode(&bytes, Side::Client),
            Ok(TransportParameters::default())
        );
    }
}

#[test]
fn nothing_means_the_defaults_of_rfc9000() {
    let parameters = TransportParameters::decode(&[], Side::Server).unwrap();
    assert_eq!(parameters, TransportParameters::default());
    assert_eq!(parameters.max_udp_payload_size, 65_527);
    assert_eq!((parameters.ack_delay_exponent, parameters.max_ack_delay), (3, 25));
    assert_eq!(parameters.active_connection_id_limit, 2);
    assert!(encoded(&parameters, Side::Server).is_empty());
}

#[test]
fn integers_are_held_to_their_ranges() {
    for (id, good, bad) in [
        (id::MAX_UDP_PAYLOAD_SIZE, 1200, 1199),
        (id::INITIAL_MAX_STREAMS_BIDI, 1 << 60, (1 << 60) + 1),
        (id::INITIAL_MAX_STREAMS_UNI, 1 << 60, (1 << 60) + 1),
        (id::ACK_DELAY_EXPONENT, 20, 21),
        (id::MAX_ACK_DELAY, (1 << 14) - 1, 1 << 14),
        (id::ACTIVE_CONNECTION_ID_LIMIT, 2, 1),
    ] {
        assert!(!refused(&with_integer(id, good), Side::Client), "{id:#x} = {good}");
        assert!(refused(&with_integer(id, bad), Side::Client), "{id:#x} = {bad}");
    }
}

#[test]
fn the_shortest_delay_of_acknowledgements_is_no_longer_than_the_longest() {
    for (min, max, good) in
        [(5_000, 5, true), (5_001, 5, false), (25_000, 25, true), (25_001, 25, false)]
    {
        let [min, max] =
            [(id::MIN_ACK_DELAY, min), (id::MAX_ACK_DELAY, max)].map(|(id, n)| with_integer(id, n));
        assert_eq!(!refused(&[&min[..], &max].concat(), Side::Client), good);
        assert_eq!(!refused(&[&max[..], &min].concat(), Side::Client), good);
    }
}

#[test]
fn version_information_is_whole_and_names_no_version_0() {
    for (value, good) in [
        (&[][..], false),
        (&[0, 0, 0, 1], true),
        (&[0, 0, 0, 1, 0x6b, 0x33, 0x43, 0xcf], true),
        (&[0, 0, 0, 1, 2], false),
        (&[0, 0, 0, 0], false),
        (&[0, 0, 0, 1, 0, 0, 0, 0], false),
    ] {
        let bytes = with_bytes(id::VERSION_INFORMATION, value);
        assert_eq!(!refused(&bytes, Side::Server), good, "{value:?}");
    }
    // A client's first flight is compatible with the version that it begins with.
    for (available, good) in [(&[][..], false), (&[2], false), (&[2, 1], true)] {
        let versions = [&[1], available].concat();
        let bytes: Vec<u8> = versions.iter().flat_map(|v: &u32| v.to_be_bytes()).collect();
        let bytes = with_bytes(id::VERSION_INFORMATION, &bytes);
        assert_eq!(!refused(&bytes, Side::Client), good, "{available:?}");
    }
    let late: Vec<u8> =
        std::iter::once(1).chain(2..=100).chain([1]).flat_map(u32::to_be_bytes).collect();
    let late = with_bytes(id::VERSION_INFORMATION, &late);
    let parameters = TransportParameters::decode(&late, Side::Client).unwrap();
    let available = parameters.version_information.unwrap().available;
    assert_eq!((available.len(), available.last()), (MAX_AVAILABLE_VERSIONS, Some(&1)));
    let many = with_bytes(id::VERSION_INFORMATION, &[7; 4 * 10_000]);
    let parameters = TransportParameters::decode(&many, Side::Client).unwrap();
    assert_eq!(parameters.version_information.unwrap().available.len(), MAX_AVAILABLE_VERSIONS);
}

#[test]
fn values_have_exactly_their_length() {
    for id in 0..=0x20 {
        let value = [0x41, 0xf4, 0, 0];
        let is_bytes = matches!(id, 0x00 | 0x0f | 0x10 | 0x11);
        let is_known = id <= 0x11 || id == 0x20;
        let refused = refused(&with_bytes(id, &value), Side::Server);
        assert_eq!(refused, is_known && !is_bytes, "{id:#x}");
    }
    assert!(refused(&with_bytes(id::DISABLE_ACTIVE_MIGRATION, &[0]), Side::Client));
    assert!(refused(&with_bytes(id::GREASE_QUIC_BIT, &[0]), Side::Client));
    assert!(refused(&with_bytes(id::RESET_STREAM_AT, &[0]), Side::Client));
    assert!(refused(&with_bytes(id::STATELESS_RESET_TOKEN, &[0; 15]), Side::Server));
    assert!(refused(&with_bytes(id::STATELESS_RESET_TOKEN, &[0; 17]), Side::Server));
    assert!(refused(&with_bytes(id::INITIAL_SOURCE_CONNECTION_ID, &[0; 21]), Side::Client));
    assert!(refused(&with_bytes(id::MAX_IDLE_TIMEOUT, &[]), Side::Client));
}

#[test]
fn known_parameters_come_once() {
    let full = TransportParameters {
        original_destination_connection_id: ConnectionId::new(&[1]),
        max_idle_timeout: 1,
        stateless_reset_token: Some([1; 16]),
        max_udp_payload_size: 1200,
        initial_max_data: 1,
        initial_max_stream_data_bidi_local: 1,
        initial_max_stream_data_bidi_remote: 1,
        initial_max_stream_data_uni: 1,
        initial_max_streams_bidi: 1,
        initial_max_streams_uni: 1,
        ack_delay_exponent: 1,
        max_ack_delay: 1,
        disable_active_migration: true,
        preferred_address: Some(Box::new(PreferredAddress {
            ipv4: None,
            ipv6: None,
            connection_id: ConnectionId::new(&[1]).unwrap(),
            reset_token: [1; 16],
        })),
        active_connection_id_limit: 3,
        initial_source_connection_id: ConnectionId::new(&[1]),
        retry_source_connection_id: ConnectionId::new(&[1]),
        max_datagram_frame_size: 1,
        version_information: Some(VersionInformation { chosen: 1, available: vec![1, 2] }),
        grease_quic_bit: true,
        reset_stream_at: true,
        min_ack_delay: Some(1),
        fec: Some(ONE),
        grease: None,
    };
    let bytes = encoded(&full, Side::Server);
    assert_eq!(TransportParameters::decode(&bytes, Side::Server), Ok(full));
    let mut r = Reader::new(&bytes);
    let mut known = 0;
    while !r.is_empty() {
        let (id, value) = (r.varint().unwrap(), r.varint_bytes().unwrap());
        let twice = [bytes.clone(), with_bytes(id, value)].concat();
        assert!(refused(&twice, Side::Server), "{id:#x} twice");
        known += 1;
    }
    assert_eq!(known, 23);
}

#[test]
fn unknown_parameters_are_ignored() {
    let bytes = [with_bytes(0x21, &[1, 2, 3]), with_bytes(VARINT_MAX, &[])].concat();
    assert!(!refused(&bytes, Side::Client));
    // Ignored parameters are read nevertheless.
    assert!(refused(&[0x21, 0x04, 1, 2, 3], Side::Client));
    assert!(refused(&[0x40], Side::Client));
    assert!(refused(&[0x21, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff], Side::Client));
}

#[test]
fn clients_do_not_send_what_servers_send() {
    for (id, value) in [
        (id::ORIGINAL_DESTINATION_CONNECTION_ID, &[1; 8][..]),
        (id::STATELESS_RESET_TOKEN, &[1; 16]),
        (id::PREFERRED_ADDRESS, &[1; 42]),
        (id::RETRY_SOURCE_CONNECTION_ID, &[1; 8]),
    ] {
        assert!(refused(&with_bytes(id, value), Side::Client), "{id:#x} from a client");
        assert!(!refused(&with_bytes(id, value), Side::Server), "{id:#x} from a server");
    }
}

#[test]
fn preferred_address_needs_a_connection_id() {
    let with_len = |len: u8, cid: usize| {
        with_bytes(id::PREFERRED_ADDRESS, &[&[7; 24][..], &[len], &vec![7; cid + 16]].concat())
    };
    assert!(refused(&with_len(0, 0), Side::Server));
    assert!(!refused(&with_len(20, 20), Side::Server));
    assert!(refused(&with_len(21, 21), Side::Server));
    assert!(refused(&with_len(8, 7), Side::Server));
}

fn decoded_fec(value: &[u8]) -> Result<TransportParameters, TransportError> {
    TransportParameters::decode(&with_bytes(id::FEC, value), Side::Client)
}

#[test]
fn fec_parameter_of_another_version_is_not_negotiated() {
    let fec = decoded_fec;
    assert!(fec(&[1, 1, 1, 1, 1]).unwrap().fec.is_some());
    assert_eq!(fec(&[2]).unwrap().fec, None);
    assert_eq!(fec(&[2, 0, 0]).unwrap().fec, None);
    for malformed in [&[][..], &[0], &[0x40], &[1, 1, 1, 1], &[1, 1, 1, 1, 1, 0x40], &[1; 7]] {
        assert!(fec(malformed).is_err(), "{malformed:?}");
    }
    for zero in 1..5 {
        let mut value = [1; 5];
        value[zero] = 0;
        assert!(fec(&value).is_err(), "{value:?}");
    }
    // The identifier must not look like GREASE either, which peers may send with any value.
    assert_ne!(id::FEC % 31, 27);
    assert_eq!(varint_size(id::FEC), 4);
}

#[test]
fn fec_parameter_says_which_codes_are_taken() {
    let codes = |value: &[u8]| decoded_fec(value).unwrap().fec.unwrap().codes;
    assert_eq!(codes(&[1, 1, 1, 1, 1]), CodeSet::default());
    // The sliding window is supported whether or not its bit is set.
    for none in [0, 1] {
        assert_eq!(codes(&[1, 1, 1, 1, 1, none]), CodeSet::default());
    }
    let one_more = CodeSet::default().with(CodeId::REED_SOLOMON);
    assert_eq!(codes(&[1, 1, 1, 1, 1, 2]), one_more);
    assert_eq!(codes(&[1, 1, 1, 1, 1, 3]), one_more);
    // Unknown codes are remembered as well.
    let highest = codes(&[1, 1, 1, 1, 1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
    assert!(highest.contains(CodeId::MAX));
}

#[test]
fn connection_ids_of_the_handshake_are_confirmed() {
    let cid = |byte| ConnectionId::new(&[byte; 8]).unwrap();
    let (peer_initial_source, original_destination) = (cid(1), cid(2));
    let ids = HandshakeIds { peer_initial_source, original_destination, retry_source: None };
    let good = TransportParameters {
        initial_source_connection_id: Some(cid(1)),
        original_destination_connection_id: Some(cid(2)),
        ..Default::default()
    };
    assert_eq!(good.authenticate(Side::Server, &ids), Ok(()));
    let client = TransportParameters { original_destination_connection_id: None, ..good.clone() };
    assert_eq!(client.authenticate(Side::Client, &ids), Ok(()));
    assert!(client.authenticate(Side::Server, &ids).is_err());
    let no_source = TransportParameters { initial_source_connection_id: None, ..good.clone() };
    assert!(no_source.authenticate(Side::Client, &ids).is_err());
    let other = TransportParameters { initial_source_connection_id: Some(cid(9)), ..good.clone() };
    assert!(other.authenticate(Side::Server, &ids).is_err());

    let retry = HandshakeIds { retry_source: Some(cid(3)), ..ids };
    assert!(good.authenticate(Side::Server, &retry).is_err());
    let retried = TransportParameters { retry_source_connection_id: Some(cid(3)), ..good };
    assert_eq!(retried.authenticate(Side::Server, &retry), Ok(()));
    assert!(retried.authenticate(Side::Server, &ids).is_err());
}

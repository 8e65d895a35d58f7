//! Tests that every implementation must pass. Each implementation has further tests in this
//! directory.

mod conversion;
mod early;
mod finished;
mod null;
pub(crate) mod rustls;
mod vectors;

use std::collections::VecDeque;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::ids::Side;
use crate::wire::packet::VERSION_1;
use crate::wire::version::Version;

const CLIENT_PARAMETERS: &[u8] = b"the client's transport parameters";
const SERVER_PARAMETERS: &[u8] = b"what the server has to say";
const SERVER_NAME: &str = "sutura.example";

/// Matching client and server configurations.
struct Pair {
    client: ClientCrypto,
    server: ServerCrypto,
}

impl Pair {
    fn both() -> [Self; 2] {
        [rustls::pair(), null::pair()]
    }

    fn start(&self) -> (End, End) {
        self.start_in(Version::V1)
    }

    fn start_in(&self, version: Version) -> (End, End) {
        let versions = || SessionVersions::fixed(version.number());
        (self.client(versions()), self.server(versions()))
    }

    fn client(&self, versions: SessionVersions) -> End {
        let parameters = CLIENT_PARAMETERS.to_vec();
        End::new(self.client.start_session(versions, SERVER_NAME, parameters).expect("a session"))
    }

    fn server(&self, versions: SessionVersions) -> End {
        self.server_with(versions, SERVER_PARAMETERS.to_vec())
    }

    fn server_with(&self, versions: SessionVersions, parameters: Vec<u8>) -> End {
        End::new(self.server.start_session(versions, parameters).expect("a session"))
    }

    fn connect(&self) -> (End, End) {
        self.connect_in(Version::V1)
    }

    fn connect_in(&self, version: Version) -> (End, End) {
        let (mut client, mut server) = self.start_in(version);
        shake(&mut client, &mut server, usize::MAX).expect("handshake");
        (client, server)
    }
}

/// A session and its output so far.
struct End {
    session: Box<dyn Session>,
    level: SpaceId,
    handshake: Option<Keys>,
    one_rtt: Option<Keys>,
    sent: Vec<(SpaceId, usize)>,
}

impl End {
    fn new(session: Box<dyn Session>) -> Self {
        Self { session, level: SpaceId::Initial, handshake: None, one_rtt: None, sent: Vec::new() }
    }

    /// Enters the next key phase; returns its keys.
    fn enter_next_phase(&mut self) -> PacketKeys {
        let keys = self.session.next_1rtt_keys().expect("keys");
        self.session.enter_next_phase();
        keys
    }

    fn flush(&mut self) -> Vec<(SpaceId, Vec<u8>)> {
        let mut flights = Vec::new();
        loop {
            let mut bytes = Vec::new();
            let change = self.session.write_handshake(&mut bytes);
            if !bytes.is_empty() {
                self.sent.push((self.level, bytes.len()));
                flights.push((self.level, bytes));
            }
            match change {
                Some(KeyChange::Handshake(keys)) => {
                    self.level = SpaceId::Handshake;
                    assert!(self.handshake.replace(keys).is_none());
                }
                Some(KeyChange::OneRtt(keys)) => {
                    self.level = SpaceId::Data;
                    assert!(self.one_rtt.replace(keys).is_none());
                }
                None => return flights,
            }
        }
    }
}

/// One end reads all that the other one has to say now.
fn hand_over(from: &mut End, to: &mut End) {
    for (level, bytes) in from.flush() {
        to.session.read_handshake(level, &bytes).expect("an honest flight");
    }
}

/// Passes CRYPTO bytes between both ends, in pieces of at most `piece` bytes, until neither has
/// more.
fn shake(client: &mut End, server: &mut End, piece: usize) -> Result<(), (Side, TransportError)> {
    let mut queue: VecDeque<(Side, SpaceId, Vec<u8>)> = VecDeque::new();
    let first = client.flush();
    queue.extend(first.into_iter().map(|(level, bytes)| (Side::Server, level, bytes)));
    while let Some((to, level, bytes)) = queue.pop_front() {
        let end = if to.is_client() { &mut *client } else { &mut *server };
        for part in bytes.chunks(piece.min(bytes.len())) {
            end.session.read_handshake(level, part).map_err(|error| (to, error))?;
            let answers = end.flush();
            queue.extend(answers.into_iter().map(|(level, bytes)| (to.peer(), level, bytes)));
        }
    }
    Ok(())
}

fn initial_keys(pair: &Pair, dcid: &[u8]) -> (Keys, Keys) {
    let dcid = ConnectionId::new(dcid).expect("short enough");
    (
        pair.client.initial_keys(VERSION_1, &dcid).expect("version 1"),
        pair.server.initial_keys(VERSION_1, &dcid).expect("version 1"),
    )
}

/// Header, payload and space for a tag.
const HEADER: &[u8] = b"\x43someone\x00\x00\x12\x34";
const PAYLOAD: &[u8] = b"a payload that is longer than one block of whatever cipher";

fn sealed(key: &dyn PacketKey, pn: u64) -> Vec<u8> {
    let mut payload = PAYLOAD.to_vec();
    payload.resize(PAYLOAD.len() + key.tag_len(), 0);
    key.seal(pn, HEADER, &mut payload).expect("sealing");
    payload
}

fn opens(from: &dyn PacketKey, to: &dyn PacketKey) -> bool {
    let mut payload = sealed(from, 77);
    match to.open(77, HEADER, &mut payload) {
        Ok(len) => {
            assert_eq!(&payload[..len], PAYLOAD);
            true
        }
        Err(error) => {
            assert_eq!(error, ProtectionError::Open);
            false
        }
    }
}

#[test]
fn handshake_completes_however_it_is_cut() {
    for pair in Pair::both() {
        for piece in [1, 7, 100, usize::MAX] {
            let (mut client, mut server) = pair.start();
            assert!(client.session.is_handshaking() && server.session.is_handshaking());
            shake(&mut client, &mut server, piece).expect("handshake");
            for end in [&client, &server] {
                assert!(!end.session.is_handshaking());
                assert_eq!(end.session.alpn(), Some(&b"second"[..]));
                assert_eq!(end.session.server_name(), Some(SERVER_NAME));
                assert!(end.handshake.is_some() && end.one_rtt.is_some());
            }
            assert_eq!(client.session.transport_parameters(), Some(SERVER_PARAMETERS));
            assert_eq!(server.session.transport_parameters(), Some(CLIENT_PARAMETERS));
        }
    }
}

#[test]
fn server_has_1rtt_keys_before_the_handshake_is_complete() {
    for pair in Pair::both() {
        let (mut client, mut server) = pair.start();
        hand_over(&mut client, &mut server);
        let levels: Vec<_> = server.flush().into_iter().map(|(level, _)| level).collect();
        assert_eq!(levels, [SpaceId::Initial, SpaceId::Handshake]);
        assert!(server.one_rtt.is_some() && server.session.is_handshaking());
        let mut out = [0; 4];
        assert_eq!(
            server.session.export_keying_material(&mut out, b"x", None),
            Err(ExportError::Unavailable)
        );
    }
}

#[test]
fn keys_of_each_level_and_phase_belong_together_and_to_nothing_else() {
    for pair in Pair::both() {
        let (mut client, mut server) = pair.connect();
        let (initial_client, initial_server) = initial_keys(&pair, b"original");
        let mut senders: Vec<Box<dyn PacketKey>> = Vec::new();
        let mut receivers: Vec<Box<dyn PacketKey>> = Vec::new();
        let mut add = |client: PacketKeys, server: PacketKeys| {
            senders.extend([client.local, server.local]);
            receivers.extend([server.remote, client.remote]);
        };
        let packet_keys =
            |keys: Keys| PacketKeys { local: keys.local.packet, remote: keys.remote.packet };
        add(packet_keys(initial_client), packet_keys(initial_server));
        for end in [|end: &mut End| end.handshake.take(), |end: &mut End| end.one_rtt.take()] {
            let (client, server) = (end(&mut client), end(&mut server));
            add(packet_keys(client.expect("keys")), packet_keys(server.expect("keys")));
        }
        for _ in 0..4 {
            add(client.enter_next_phase(), server.enter_next_phase());
        }
        for (i, from) in senders.iter().enumerate() {
            for (j, to) in receivers.iter().enumerate() {
                assert_eq!(opens(&**from, &**to), i == j, "{i} to {j}");
            }
        }
    }
}

#[test]
fn initial_keys_depend_on_the_connection_id() {
    for pair in Pair::both() {
        let (client, _) = initial_keys(&pair, b"original");
        let (_, server) = initial_keys(&pair, b"retried");
        assert!(!opens(&*client.local.packet, &*server.remote.packet));
    }
}

#[test]
fn damage_anywhere_is_detected() {
    for pair in Pair::both() {
        let (client, server) = initial_keys(&pair, b"original");
        let good = sealed(&*client.local.packet, 5);
        let key = &*server.remote.packet;
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(key.open(5, HEADER, &mut bad), Err(ProtectionError::Open), "bit {bit}");
        }
        for bit in 0..HEADER.len() * 8 {
            let mut header = HEADER.to_vec();
            header[bit / 8] ^= 1 << (bit % 8);
            let opened = key.open(5, &header, &mut good.clone());
            assert_eq!(opened, Err(ProtectionError::Open), "bit {bit} of the header");
        }
        for cut in 0..good.len() {
            assert!(key.open(5, HEADER, &mut good[..cut].to_vec()).is_err(), "cut to {cut}");
        }
        let opened = key.open(6, HEADER, &mut good.clone());
        assert_eq!(opened, Err(ProtectionError::Open), "other packet number");
        // Move one byte from the payload to the header.
        let mut header = HEADER.to_vec();
        header.push(good[0]);
        assert!(key.open(5, &header, &mut good[1..].to_vec()).is_err());
        assert_eq!(key.open(5, HEADER, &mut good.clone()), Ok(PAYLOAD.len()));
    }
}

#[test]
fn no_room_for_a_tag_is_an_error() {
    for pair in Pair::both() {
        let (client, _) = initial_keys(&pair, b"original");
        let key = &*client.local.packet;
        for len in 0..TAG_LEN {
            let mut short = vec![0; len];
            assert_eq!(key.seal(0, HEADER, &mut short), Err(ProtectionError::TooShort));
            assert_eq!(key.open(0, HEADER, &mut short), Err(ProtectionError::TooShort));
        }
        let mut empty = [0; TAG_LEN];
        assert_eq!(key.seal(0, HEADER, &mut empty), Ok(()));
    }
}

#[test]
fn header_protection_hides_the_packet_number_and_comes_off() {
    for pair in Pair::both() {
        let (client, server) = initial_keys(&pair, b"original");
        for (form, bits) in [(0x40_u8, 0x1f_u8), (0xc0, 0x0f)] {
            let mut hidden = 0;
            for pn_len in 1..=4 {
                let offset = 9;
                let mut packet = vec![form | (pn_len as u8 - 1)];
                packet.extend_from_slice(b"someones");
                packet.resize(offset + pn_len, 0xab);
                let header = packet.clone();
                packet.extend_from_slice(PAYLOAD);
                packet.resize(packet.len() + TAG_LEN, 0);
                client.local.protect(9, &mut packet, offset, pn_len).expect("long enough");

                let difference = packet[0] ^ header[0];
                assert_eq!(difference & !bits, 0, "bits that are not protected");
                hidden |= difference;
                assert_eq!(packet[1..offset], header[1..offset]);
                assert_ne!(packet[offset..offset + pn_len], header[offset..]);

                let found = server.remote.header.unprotect(&mut packet, offset);
                assert_eq!(found, Ok(pn_len));
                let (received, payload) = packet.split_at_mut(offset + pn_len);
                assert_eq!(received, header);
                assert_eq!(server.remote.packet.open(9, received, payload), Ok(PAYLOAD.len()));
            }
            assert_ne!(hidden, 0, "the first byte is never masked");
        }
    }
}

#[test]
fn header_protection_needs_a_whole_sample() {
    for pair in Pair::both() {
        let (_, server) = initial_keys(&pair, b"original");
        let key = &*server.remote.header;
        for len in 0..1 + SAMPLE_OFFSET + SAMPLE_LEN {
            let mut packet = vec![0x43; len];
            assert_eq!(key.unprotect(&mut packet, 1), Err(ProtectionError::TooShort));
            assert_eq!(key.protect(&mut packet, 1), Err(ProtectionError::TooShort));
            assert_eq!(packet, vec![0x43; len], "unchanged");
        }
        let mut packet = vec![0x43; 1 + SAMPLE_OFFSET + SAMPLE_LEN];
        assert!(key.unprotect(&mut packet, 1).is_ok());
        assert_eq!(key.unprotect(&mut packet, usize::MAX), Err(ProtectionError::TooShort));
    }
}

#[test]
fn handshake_bytes_of_another_level_are_a_violation() {
    for pair in Pair::both() {
        let violation = |end: &mut End, level| {
            let error = end.session.read_handshake(level, &[1]).expect_err("wrong level");
            assert_eq!(error.code, TransportErrorCode::PROTOCOL_VIOLATION);
        };
        for level in [SpaceId::Handshake, SpaceId::Data] {
            let (mut client, mut server) = pair.start();
            violation(&mut client, level);
            violation(&mut server, level);
        }
        for level in [SpaceId::Initial, SpaceId::Handshake] {
            let (mut client, mut server) = pair.connect();
            violation(&mut client, level);
            violation(&mut server, level);
        }
        let (mut client, mut server) = pair.connect();
        client.session.read_handshake(SpaceId::Initial, &[]).expect("nothing is no violation");
        server.session.read_handshake(SpaceId::Initial, &[]).expect("nothing is no violation");
    }
}

#[test]
fn exported_keying_material_is_shared_and_bound_to_label_and_context() {
    for pair in Pair::both() {
        let (client, server) = pair.connect();
        let export = |end: &End, label: &[u8], context: Option<&[u8]>| {
            let mut out = [0; 40];
            end.session.export_keying_material(&mut out, label, context).expect("complete");
            out
        };
        let ours = export(&client, b"label", Some(b"context"));
        assert_eq!(ours, export(&server, b"label", Some(b"context")));
        assert_ne!(ours, export(&client, b"other", Some(b"context")));
        assert_ne!(ours, export(&client, b"label", None));
        assert_ne!(ours[..20], ours[20..]);
        let nothing = client.session.export_keying_material(&mut [], b"label", None);
        assert_eq!(nothing, Err(ExportError::Unavailable));
    }
}

#[test]
fn no_other_versions_are_spoken() {
    for pair in Pair::both() {
        let refused = StartError::UnsupportedVersion(0x6b33_43ce);
        let dcid = ConnectionId::new(b"original").expect("short enough");
        let client =
            pair.client.start_session(SessionVersions::fixed(0x6b33_43ce), SERVER_NAME, Vec::new());
        assert_eq!(client.err(), Some(refused.clone()));
        let server = pair.server.start_session(SessionVersions::fixed(0x6b33_43ce), Vec::new());
        assert_eq!(server.err(), Some(refused.clone()));
        assert_eq!(pair.client.initial_keys(0x6b33_43ce, &dcid).err(), Some(refused.clone()));
        assert_eq!(pair.server.initial_keys(0x6b33_43ce, &dcid).err(), Some(refused));
    }
}

#[test]
fn an_unusable_server_name_is_refused() {
    for pair in Pair::both() {
        let session = pair.client.start_session(SessionVersions::fixed(VERSION_1), "", Vec::new());
        assert_eq!(session.err(), Some(StartError::InvalidServerName(String::new())));
    }
}

#[test]
fn debug_output_shows_no_secrets() {
    let (client, _) = initial_keys(&rustls::pair(), b"original");
    assert_eq!(format!("{:?}", client.local), "DirectionalKeys { .. }");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn garbage_never_panics(data in prop::collection::vec(any::<u8>(), 0..600)) {
        for pair in Pair::both() {
            let (mut client, mut server) = pair.start();
            client.flush();
            for end in [&mut client, &mut server] {
                if end.session.read_handshake(SpaceId::Initial, &data).is_ok() {
                    prop_assert!(end.session.is_handshaking());
                    end.flush();
                }
            }
        }
    }

    #[test]
    fn a_damaged_handshake_does_not_complete(at in any::<prop::sample::Index>(), bit in 0..8_u32) {
        for pair in Pair::both() {
            let (mut client, mut server) = pair.start();
            let hello: Vec<_> = client.flush().into_iter().flat_map(|(_, bytes)| bytes).collect();
            let mut damaged = hello.clone();
            *at.get_mut(&mut damaged) ^= 1_u8 << bit;
            if server.session.read_handshake(SpaceId::Initial, &damaged).is_err() {
                continue;
            }
            let completed = server.flush().into_iter().try_for_each(|(level, bytes)| {
                client.session.read_handshake(level, &bytes)?;
                client.flush();
                Ok::<_, TransportError>(())
            });
            prop_assert!(completed.is_err() || client.session.is_handshaking());
        }
    }
}

//! A client that speaks TLS, but not truthfully, or whose keys wear out early.

use super::*;
use crate::TransportError;
use crate::crypto::{
    ClientCrypto, ClientCryptoConfig, DirectionalKeys, ExportError, KeyChange, Keys, PacketKey,
    PacketKeys, ProtectionError, Session, SessionVersions, StartError,
};
use crate::wire::coding::Reader;
use rustls::pki_types::CertificateDer;
use std::sync::atomic::{AtomicU64, Ordering};

/// Handshake messages by their type (RFC 8446 section 4).
pub(super) const CLIENT_HELLO: u8 = 1;
pub(super) const FINISHED: u8 = 20;

/// A hostile client's changes to its handshake.
#[derive(Debug, Clone, Default)]
pub(super) struct Lies {
    /// The value of a transport parameter, by its identifier; `None` leaves the parameter out.
    pub(super) parameter: Option<(u64, Option<Vec<u8>>)>,
    /// Cuts the encoded transport parameters to this length.
    pub(super) cut: Option<usize>,
    /// Changes the handshake messages that the client sends, flight by flight.
    pub(super) messages: Option<fn(&mut Vec<u8>)>,
    /// The only application protocol that is offered.
    pub(super) protocol: Option<&'static [u8]>,
    /// The limits of its 1-RTT keys.
    pub(super) wear: Option<Wear>,
}

/// How much 1-RTT keys can be used, and how much they were.
#[derive(Debug, Clone)]
pub(super) struct Wear {
    /// How many packets each may seal.
    pub(super) confidentiality: u64,
    /// How many packets may fail to open.
    pub(super) integrity: u64,
    pub(super) used: Arc<Used>,
}

#[derive(Debug, Default)]
pub(super) struct Used {
    /// Attempts to open a packet.
    opened: AtomicU64,
    /// Key phases whose keys were derived.
    derived: AtomicU64,
}

impl Wear {
    pub(super) fn new(confidentiality: u64, integrity: u64) -> Self {
        Self { confidentiality, integrity, used: Arc::default() }
    }

    /// Attempts to open a packet.
    pub(super) fn opened(&self) -> u64 {
        self.used.opened.load(Ordering::Relaxed)
    }

    /// Key phases whose keys were derived.
    pub(super) fn derived(&self) -> u64 {
        self.used.derived.load(Ordering::Relaxed)
    }

    fn key(&self, key: Box<dyn PacketKey>) -> Box<dyn PacketKey> {
        Box::new(WornKey { key, wear: self.clone() })
    }

    fn keys(&self, keys: PacketKeys) -> PacketKeys {
        PacketKeys { local: self.key(keys.local), remote: self.key(keys.remote) }
    }

    fn change(&self, change: KeyChange) -> KeyChange {
        match change {
            KeyChange::Handshake(keys) => KeyChange::Handshake(keys),
            KeyChange::OneRtt(Keys { mut local, mut remote }) => {
                local.packet = self.key(local.packet);
                remote.packet = self.key(remote.packet);
                KeyChange::OneRtt(Keys { local, remote })
            }
        }
    }
}

struct WornKey {
    key: Box<dyn PacketKey>,
    wear: Wear,
}

impl PacketKey for WornKey {
    fn seal(&self, pn: u64, header: &[u8], payload: &mut [u8]) -> Result<(), ProtectionError> {
        self.key.seal(pn, header, payload)
    }

    fn open(&self, pn: u64, header: &[u8], payload: &mut [u8]) -> Result<usize, ProtectionError> {
        self.wear.used.opened.fetch_add(1, Ordering::Relaxed);
        self.key.open(pn, header, payload)
    }

    fn confidentiality_limit(&self) -> u64 {
        self.wear.confidentiality
    }

    fn integrity_limit(&self) -> u64 {
        self.wear.integrity
    }
}

/// A client whose 1-RTT keys wear like that, and a server whose keys do not.
pub(super) fn worn(wear: &Wear) -> Pair {
    let lies = Lies { wear: Some(wear.clone()), ..Lies::default() };
    let server = null_server();
    Pair::with_cryptos(Arc::new(Liar { honest: honest(), lies }), Arc::new(server))
}

/// A client that tells these lies, and an honest server, both with TLS 1.3.
pub(super) fn pair(lies: Lies) -> Pair {
    let (mut client, server) = tls("localhost", CipherSuite::TLS13_AES_128_GCM_SHA256);
    if let Some(protocol) = lies.protocol {
        client.alpn_protocols = vec![protocol.to_vec()];
    }
    let honest = Arc::new(RustlsClientConfig::new(client).unwrap());
    let server = RustlsServerConfig::new(server).unwrap();
    Pair::with_cryptos(Arc::new(Liar { honest, lies }), Arc::new(server))
}

#[derive(Debug)]
struct Liar {
    honest: ClientCrypto,
    lies: Lies,
}

impl ClientCryptoConfig for Liar {
    fn start_session(
        &self,
        versions: SessionVersions,
        server_name: &str,
        transport_parameters: Vec<u8>,
    ) -> Result<Box<dyn Session>, StartError> {
        let parameters = match &self.lies.parameter {
            Some((id, value)) => replace(&transport_parameters, *id, value.as_deref()),
            None => transport_parameters,
        };
        let cut = self.lies.cut.unwrap_or(parameters.len());
        let parameters = parameters[..cut.min(parameters.len())].to_vec();
        let honest = self.honest.start_session(versions, server_name, parameters)?;
        Ok(Box::new(LyingSession { honest, lies: self.lies.clone() }))
    }

    fn initial_keys(&self, version: u32, dcid: &ConnectionId) -> Result<Keys, StartError> {
        self.honest.initial_keys(version, dcid)
    }
}

/// Replaces a transport parameter in the encoded extension, or leaves it out.
fn replace(parameters: &[u8], replaced: u64, value: Option<&[u8]>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut put = |id, value: &[u8]| {
        put_varint(&mut out, id);
        put_varint(&mut out, value.len() as u64);
        out.extend_from_slice(value);
    };
    let mut reader = Reader::new(parameters);
    while !reader.is_empty() {
        let id = reader.varint().unwrap();
        let value = reader.varint_bytes().unwrap();
        if id != replaced {
            put(id, value);
        }
    }
    if let Some(value) = value {
        put(replaced, value);
    }
    out
}

struct LyingSession {
    honest: Box<dyn Session>,
    lies: Lies,
}

impl Session for LyingSession {
    fn set_version(&mut self, version: Version) {
        self.honest.set_version(version);
    }

    fn read_handshake(&mut self, level: SpaceId, data: &[u8]) -> Result<(), TransportError> {
        self.honest.read_handshake(level, data)
    }

    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<KeyChange> {
        let mut flight = Vec::new();
        let change = self.honest.write_handshake(&mut flight);
        if let Some(messages) = self.lies.messages
            && !flight.is_empty()
        {
            messages(&mut flight);
        }
        out.extend_from_slice(&flight);
        match &self.lies.wear {
            Some(wear) => change.map(|change| wear.change(change)),
            None => change,
        }
    }

    fn transport_parameters(&self) -> Option<&[u8]> {
        self.honest.transport_parameters()
    }

    fn early_keys(&self) -> Option<DirectionalKeys> {
        self.honest.early_keys()
    }

    fn early_parameters(&self) -> Option<&[u8]> {
        self.honest.early_parameters()
    }

    fn is_early_data_accepted(&self) -> bool {
        self.honest.is_early_data_accepted()
    }

    fn is_handshaking(&self) -> bool {
        self.honest.is_handshaking()
    }

    fn alpn(&self) -> Option<&[u8]> {
        self.honest.alpn()
    }

    fn peer_certificates(&self) -> Option<&[CertificateDer<'static>]> {
        self.honest.peer_certificates()
    }

    fn server_name(&self) -> Option<&str> {
        self.honest.server_name()
    }

    fn enter_next_phase(&mut self) {
        self.honest.enter_next_phase();
    }

    fn next_1rtt_keys(&self) -> Option<PacketKeys> {
        let next = self.honest.next_1rtt_keys();
        let Some(wear) = &self.lies.wear else { return next };
        wear.used.derived.fetch_add(1, Ordering::Relaxed);
        next.map(|keys| wear.keys(keys))
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: Option<&[u8]>,
    ) -> Result<(), ExportError> {
        self.honest.export_keying_material(output, label, context)
    }
}

/// Where an extension is in a ClientHello, with its type and length (RFC 8446 section 4.1.2).
/// Also returns where the length of all extensions is.
pub(super) fn extension(hello: &[u8], ty: u16) -> (usize, std::ops::Range<usize>) {
    let number = |at: usize| u16::from_be_bytes([hello[at], hello[at + 1]]);
    // Type, length, version, random.
    let mut at = 1 + 3 + 2 + 32;
    at += 1 + usize::from(hello[at]);
    at += 2 + usize::from(number(at));
    at += 1 + usize::from(hello[at]);
    let lengths = at;
    at += 2;
    while number(at) != ty {
        at += 4 + usize::from(number(at + 2));
    }
    (lengths, at..at + 4 + usize::from(number(at + 2)))
}

//! The null handshake: two hellos, a server flight of extensions, certificate and Finished, and the
//! client's Finished, on the same levels as in TLS 1.3.

use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

use ::rustls::pki_types::CertificateDer;

use super::super::{
    DirectionalKeys, ExportError, KeyChange, PacketKeys, Session, TAG_LEN, check_level,
};
use super::keys::{Checksum, derive, directional_secret, keys, packet_keys, versioned_secret};
use super::message::{
    Alert, ClientHello, EncryptedExtensions, HEADER_SIZE, HandshakeMessage, HandshakeType,
    SERVER_HELLO_SIZE, VERIFY_DATA_SIZE, put_message, ticket,
};
use super::sessions::{Remembered, Sessions};
use crate::error::{TransportError, TransportErrorCode};
use crate::ids::{Side, SpaceId};
use crate::wire::coding::Reader;
use crate::wire::transport_parameters::TransportParameters;
use crate::wire::version::Version;

/// The message that a session expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Awaiting {
    ClientHello,
    ClientFinished,
    ServerHello,
    EncryptedExtensions,
    Certificate,
    ServerFinished,
    Nothing,
}

impl Awaiting {
    const fn level(self) -> SpaceId {
        match self {
            Self::ClientHello | Self::ServerHello => SpaceId::Initial,
            Self::Nothing => SpaceId::Data,
            _ => SpaceId::Handshake,
        }
    }
}

/// CRYPTO bytes, and the keys that come after them.
struct Flight {
    bytes: Vec<u8>,
    keys: Option<KeyChange>,
}

/// The versions of QUIC of a session.
#[derive(Debug, Clone, Copy)]
pub(super) struct Versions {
    /// The version of the client's first packets.
    pub original: Version,
    /// The version of all keys except 0-RTT keys.
    pub current: Version,
}

/// One end of a null handshake.
pub(super) struct NullSession {
    side: Side,
    versions: Versions,
    awaiting: Awaiting,
    /// The received part of an incomplete message.
    incoming: Vec<u8>,
    outgoing: VecDeque<Flight>,
    /// The checksum over all messages so far, in both directions.
    transcript: Checksum,
    handshake_secret: u64,
    /// The secret of the next key phase to hand out.
    phase_secret: Option<u64>,
    exporter_secret: Option<u64>,
    /// Application protocols to offer or to choose from.
    protocols: Vec<Vec<u8>>,
    protocol: Option<Vec<u8>>,
    server_name: Option<String>,
    /// The server's transport parameters.
    local_parameters: Vec<u8>,
    peer_parameters: Option<Vec<u8>>,
    certificate_size: u16,
    /// The sessions of this end, if it wants 0-RTT.
    sessions: Option<Arc<Sessions>>,
    /// The session that a client resumes.
    resumed: Option<Remembered>,
    early_secret: Option<u64>,
    early_accepted: bool,
}

impl NullSession {
    fn new(side: Side, versions: Versions, awaiting: Awaiting, protocols: Vec<Vec<u8>>) -> Self {
        Self {
            side,
            versions,
            awaiting,
            incoming: Vec::new(),
            outgoing: VecDeque::new(),
            transcript: Checksum::new(0),
            handshake_secret: 0,
            phase_secret: None,
            exporter_secret: None,
            protocols,
            protocol: None,
            server_name: None,
            local_parameters: Vec::new(),
            peer_parameters: None,
            certificate_size: 0,
            sessions: None,
            resumed: None,
            early_secret: None,
            early_accepted: false,
        }
    }

    /// A client. The caller must have checked that every part fits into a message.
    pub fn client(
        versions: Versions,
        server_name: &str,
        protocols: Vec<Vec<u8>>,
        parameters: &[u8],
        sessions: Option<Arc<Sessions>>,
    ) -> Self {
        let mut session = Self::new(Side::Client, versions, Awaiting::ServerHello, protocols);
        session.server_name = Some(server_name.to_owned());
        session.resumed = sessions.as_ref().and_then(|sessions| {
            let offered = |r: &Remembered| session.protocols.contains(&r.protocol);
            let fits = |r: &Remembered| r.version == versions.original && offered(r);
            sessions.take(|r| r.server_name.as_deref() == Some(server_name) && fits(r))
        });
        session.sessions = sessions;
        let ticket = session.resumed.as_ref().map(|resumed| resumed.ticket);
        let hello = ClientHello::encode(server_name, &session.protocols, parameters, ticket);
        let mut bytes = Vec::new();
        session.say(&mut bytes, HandshakeType::ClientHello, &hello);
        session.early_secret = ticket.map(|ticket| session.derive_early(ticket));
        session.outgoing.push_back(Flight { bytes, keys: None });
        session
    }

    /// A server. The caller must have checked that every part fits into a message.
    pub fn server(
        versions: Versions,
        protocols: Vec<Vec<u8>>,
        parameters: Vec<u8>,
        certificate_size: u16,
        sessions: Option<Arc<Sessions>>,
    ) -> Self {
        let mut session = Self::new(Side::Server, versions, Awaiting::ClientHello, protocols);
        session.sessions = sessions;
        session.local_parameters = parameters;
        session.certificate_size = certificate_size;
        session
    }

    /// Writes a message and adds it to the transcript.
    fn say(&mut self, out: &mut Vec<u8>, kind: HandshakeType, body: &[u8]) {
        let start = out.len();
        put_message(out, kind, body);
        self.transcript = self.transcript.bytes(out.get(start..).unwrap_or_default());
    }

    fn hear(&mut self, message: HandshakeMessage<'_>) {
        self.transcript = self.transcript.bytes(message.bytes);
    }

    fn process(&mut self, message: HandshakeMessage<'_>) -> Result<(), Alert> {
        match (self.awaiting, message.kind) {
            (Awaiting::ClientHello, Some(HandshakeType::ClientHello)) => {
                self.on_client_hello(message)
            }
            (Awaiting::ServerHello, Some(HandshakeType::ServerHello)) => {
                self.on_server_hello(message);
                Ok(())
            }
            (Awaiting::EncryptedExtensions, Some(HandshakeType::EncryptedExtensions)) => {
                self.on_encrypted_extensions(message)
            }
            (Awaiting::Certificate, Some(HandshakeType::Certificate)) => {
                self.hear(message);
                self.awaiting = Awaiting::ServerFinished;
                Ok(())
            }
            (Awaiting::ServerFinished, Some(HandshakeType::Finished)) => {
                self.on_server_finished(message)
            }
            (Awaiting::ClientFinished, Some(HandshakeType::Finished)) => {
                self.check_finished(message)?;
                self.awaiting = Awaiting::Nothing;
                self.give_ticket();
                Ok(())
            }
            (Awaiting::Nothing, Some(HandshakeType::NewSessionTicket)) if self.side.is_client() => {
                let ticket = ticket(message.body).ok_or(Alert::DecodeError)?;
                let parameters = self.peer_parameters.clone().unwrap_or_default();
                self.remember(ticket, parameters);
                Ok(())
            }
            _ => Err(Alert::UnexpectedMessage),
        }
    }

    fn on_client_hello(&mut self, message: HandshakeMessage<'_>) -> Result<(), Alert> {
        let hello = ClientHello::parse(message.body)?;
        for ours in &self.protocols {
            if hello.offers(ours)? {
                self.protocol = Some(ours.clone());
                break;
            }
        }
        let protocol = self.protocol.clone().ok_or(Alert::NoApplicationProtocol)?;
        self.peer_parameters = Some(hello.transport_parameters.to_vec());
        self.server_name = (!hello.server_name.is_empty()).then(|| hello.server_name.to_owned());
        self.hear(message);
        if let Some(ticket) = hello.ticket.filter(|ticket| self.may_resume(*ticket)) {
            self.early_secret = Some(self.derive_early(ticket));
            self.early_accepted = true;
        }

        let parameters = self.local_parameters.clone();
        let mut bytes = Vec::new();
        let mut random = Checksum::new(0).bytes(&parameters).tag().to_vec();
        random.resize(SERVER_HELLO_SIZE - HEADER_SIZE, 0);
        self.say(&mut bytes, HandshakeType::ServerHello, &random);
        let keys = Some(self.handshake_keys());
        self.outgoing.push_back(Flight { bytes, keys });

        let mut bytes = Vec::new();
        let extensions = EncryptedExtensions {
            protocol: &protocol,
            transport_parameters: &parameters,
            early_data: self.early_accepted,
        };
        self.say(&mut bytes, HandshakeType::EncryptedExtensions, &extensions.encode());
        let certificate = vec![0; usize::from(self.certificate_size)];
        self.say(&mut bytes, HandshakeType::Certificate, &certificate);
        let finished = self.verify_data(Side::Server);
        self.say(&mut bytes, HandshakeType::Finished, &finished);
        let keys = Some(self.traffic_keys());
        self.outgoing.push_back(Flight { bytes, keys });
        self.awaiting = Awaiting::ClientFinished;
        Ok(())
    }

    fn on_server_hello(&mut self, message: HandshakeMessage<'_>) {
        self.hear(message);
        let keys = Some(self.handshake_keys());
        self.outgoing.push_back(Flight { bytes: Vec::new(), keys });
        self.awaiting = Awaiting::EncryptedExtensions;
    }

    fn on_encrypted_extensions(&mut self, message: HandshakeMessage<'_>) -> Result<(), Alert> {
        let extensions = EncryptedExtensions::parse(message.body)?;
        if extensions.protocol.is_empty() {
            return Err(Alert::NoApplicationProtocol);
        }
        if !self.protocols.iter().any(|offered| offered == extensions.protocol) {
            return Err(Alert::IllegalParameter);
        }
        self.protocol = Some(extensions.protocol.to_vec());
        self.peer_parameters = Some(extensions.transport_parameters.to_vec());
        self.early_accepted = extensions.early_data && self.early_secret.is_some();
        self.hear(message);
        self.awaiting = Awaiting::Certificate;
        Ok(())
    }

    fn on_server_finished(&mut self, message: HandshakeMessage<'_>) -> Result<(), Alert> {
        self.check_finished(message)?;
        let keys = Some(self.traffic_keys());
        let mut bytes = Vec::new();
        let finished = self.verify_data(Side::Client);
        self.say(&mut bytes, HandshakeType::Finished, &finished);
        self.outgoing.push_back(Flight { bytes, keys });
        self.awaiting = Awaiting::Nothing;
        Ok(())
    }

    fn check_finished(&mut self, message: HandshakeMessage<'_>) -> Result<(), Alert> {
        if message.body != self.verify_data(self.side.peer()) {
            return Err(Alert::DecryptError);
        }
        self.hear(message);
        Ok(())
    }

    /// The expected verify data of `sender`'s Finished at this point of the transcript.
    fn verify_data(&self, sender: Side) -> [u8; VERIFY_DATA_SIZE] {
        let secret = directional_secret(self.handshake_secret, sender);
        let tag = Checksum::new(secret).number(self.transcript.finish()).tag();
        let mut data = [0; VERIFY_DATA_SIZE];
        data.chunks_mut(TAG_LEN).for_each(|half| half.copy_from_slice(&tag));
        data
    }

    /// Call this when both hellos are in the transcript.
    fn handshake_keys(&mut self) -> KeyChange {
        self.handshake_secret = derive(self.transcript.finish(), "handshake");
        let secret = versioned_secret(self.handshake_secret, self.versions.current);
        KeyChange::Handshake(keys(secret, self.side))
    }

    /// Call this when the server's Finished is in the transcript.
    fn traffic_keys(&mut self) -> KeyChange {
        let first = derive(self.transcript.finish(), "traffic");
        let first = versioned_secret(first, self.versions.current);
        self.exporter_secret = Some(derive(self.transcript.finish(), "exporter"));
        self.phase_secret = Some(derive(first, "key update"));
        KeyChange::OneRtt(keys(first, self.side))
    }

    /// The secret of 0-RTT packets. Call this when only the ClientHello is in the transcript.
    fn derive_early(&self, ticket: u64) -> u64 {
        let secret = Checksum::new(ticket).number(self.transcript.finish()).finish();
        versioned_secret(derive(secret, "early"), self.versions.original)
    }

    /// Whether a client may resume the session of this ticket with 0-RTT: it was not used before, and
    /// neither the version, the protocol nor the limits have changed.
    fn may_resume(&self, ticket: u64) -> bool {
        let sessions = self.sessions.as_ref();
        let session = sessions.and_then(|all| all.take(|session| session.ticket == ticket));
        session.is_some_and(|session| {
            session.version == self.versions.original
                && Some(&session.protocol) == self.protocol.as_ref()
                && limits(&session.parameters) == limits(&self.local_parameters)
        })
    }

    /// Gives the client a ticket for its next connection.
    fn give_ticket(&mut self) {
        if self.sessions.is_none() {
            return;
        }
        let ticket = derive(self.transcript.finish(), "ticket");
        self.remember(ticket, self.local_parameters.clone());
        let mut bytes = Vec::new();
        put_message(&mut bytes, HandshakeType::NewSessionTicket, &ticket.to_be_bytes());
        self.outgoing.push_back(Flight { bytes, keys: None });
    }

    fn remember(&mut self, ticket: u64, parameters: Vec<u8>) {
        let Some(sessions) = &self.sessions else { return };
        let protocol = self.protocol.clone().unwrap_or_default();
        let server_name = self.server_name.clone();
        let version = self.versions.current;
        sessions.put(Remembered { ticket, version, server_name, protocol, parameters });
    }

    fn process_all(&mut self, incoming: &[u8]) -> Result<usize, TransportError> {
        let mut reader = Reader::new(incoming);
        while let Some(message) = HandshakeMessage::read(&mut reader)? {
            let level = self.awaiting.level();
            self.process(message)?;
            if self.awaiting.level() != level && !reader.is_empty() {
                return Err(TransportError::new(
                    TransportErrorCode::PROTOCOL_VIOLATION,
                    "handshake data beyond the last message of its level",
                ));
            }
        }
        Ok(incoming.len() - reader.remaining())
    }
}

/// The limits in encoded transport parameters of a server.
fn limits(parameters: &[u8]) -> Option<TransportParameters> {
    let parameters = TransportParameters::decode(parameters, Side::Server).ok()?;
    Some(parameters.remembered())
}

impl Session for NullSession {
    fn set_version(&mut self, version: Version) {
        self.versions.current = version;
    }

    fn read_handshake(&mut self, level: SpaceId, data: &[u8]) -> Result<(), TransportError> {
        if data.is_empty() {
            return Ok(());
        }
        check_level(self.awaiting.level(), level)?;
        let mut incoming = mem::take(&mut self.incoming);
        incoming.extend_from_slice(data);
        let consumed = self.process_all(&incoming)?;
        incoming.drain(..consumed);
        // After the handshake there is next to nothing to receive.
        if self.is_handshaking() || !incoming.is_empty() {
            self.incoming = incoming;
        }
        Ok(())
    }

    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<KeyChange> {
        let flight = self.outgoing.pop_front()?;
        out.extend_from_slice(&flight.bytes);
        flight.keys
    }

    fn transport_parameters(&self) -> Option<&[u8]> {
        self.peer_parameters.as_deref()
    }

    fn early_keys(&self) -> Option<DirectionalKeys> {
        let both = keys(self.early_secret?, self.side);
        Some(if self.side.is_client() { both.local } else { both.remote })
    }

    fn early_parameters(&self) -> Option<&[u8]> {
        let resumed = self.resumed.as_ref().filter(|_| self.is_handshaking());
        resumed.map(|session| &session.parameters[..])
    }

    fn is_early_data_accepted(&self) -> bool {
        self.early_accepted
    }

    fn is_handshaking(&self) -> bool {
        self.awaiting != Awaiting::Nothing
    }

    fn alpn(&self) -> Option<&[u8]> {
        self.protocol.as_deref()
    }

    fn peer_certificates(&self) -> Option<&[CertificateDer<'static>]> {
        None
    }

    fn server_name(&self) -> Option<&str> {
        self.server_name.as_deref()
    }

    fn next_1rtt_keys(&self) -> Option<PacketKeys> {
        Some(packet_keys(self.phase_secret?, self.side))
    }

    fn enter_next_phase(&mut self) {
        self.phase_secret = self.phase_secret.map(|secret| derive(secret, "key update"));
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: Option<&[u8]>,
    ) -> Result<(), ExportError> {
        let secret = self
            .exporter_secret
            .filter(|_| !self.is_handshaking())
            .ok_or(ExportError::Unavailable)?;
        if output.is_empty() {
            return Err(ExportError::Unavailable);
        }
        let seed = Checksum::new(secret).bytes(label).bytes(context.unwrap_or_default());
        for (index, block) in output.chunks_mut(TAG_LEN).enumerate() {
            let tag = seed.number(index as u64).tag();
            block.iter_mut().zip(tag).for_each(|(to, from)| *to = from);
        }
        Ok(())
    }
}

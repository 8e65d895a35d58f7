//! The null handshake and packet protection of `sutura-proto` as a crypto layer of quinn-proto.

use std::any::Any;
use std::io::Cursor;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::BytesMut;
use quinn_proto::crypto::{
    self, AeadKey, CryptoError, ExportKeyingMaterialError, HandshakeTokenKey, KeyPair,
    UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError, TransportErrorCode};
use sutura_proto::SpaceId;
use sutura_proto::crypto::null::{NullClientConfig, NullServerConfig};
use sutura_proto::crypto::{
    ClientCryptoConfig, DirectionalKeys, HeaderKey, KeyChange, Keys, PacketKey, PacketKeys,
    SAMPLE_LEN, ServerCryptoConfig, Session, SessionVersions, StartError,
};

/// QUIC version 1.
const VERSION_1: u32 = 1;

/// A client of quinn without TLS that offers one application protocol.
#[must_use]
pub fn null_client(alpn: &[u8]) -> quinn_proto::ClientConfig {
    quinn_proto::ClientConfig::new(Arc::new(Client(NullClientConfig::new(vec![alpn.to_vec()]))))
}

/// A server of quinn without TLS that accepts one application protocol.
#[must_use]
pub fn null_server(alpn: &[u8]) -> quinn_proto::ServerConfig {
    let server = Server(NullServerConfig::new(vec![alpn.to_vec()]));
    quinn_proto::ServerConfig::new(Arc::new(server), Arc::new(OpenTokens))
}

struct Client(NullClientConfig);

struct Server(NullServerConfig);

impl crypto::ClientConfig for Client {
    fn start_session(
        self: Arc<Self>,
        version: u32,
        server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn crypto::Session>, ConnectError> {
        let session =
            self.0.start_session(SessionVersions::fixed(version), server_name, encoded(params));
        let session = session.map_err(|error| match error {
            StartError::UnsupportedVersion(_) => ConnectError::UnsupportedVersion,
            StartError::InvalidServerName(name) => ConnectError::InvalidServerName(name),
            problem => ConnectError::InvalidServerName(problem.to_string()),
        })?;
        Ok(Box::new(Adapter::new(Some(session), Side::Client)))
    }
}

impl crypto::ServerConfig for Server {
    fn initial_keys(
        &self,
        version: u32,
        dst_cid: &ConnectionId,
    ) -> Result<crypto::Keys, UnsupportedVersion> {
        let cid = sutura_proto::ConnectionId::new(dst_cid).ok_or(UnsupportedVersion)?;
        self.0.initial_keys(version, &cid).map(adapt).map_err(|_| UnsupportedVersion)
    }

    fn retry_tag(&self, _: u32, _: &ConnectionId, _: &[u8]) -> [u8; 16] {
        [0; 16]
    }

    fn start_session(
        self: Arc<Self>,
        version: u32,
        params: &TransportParameters,
    ) -> Box<dyn crypto::Session> {
        let session = self.0.start_session(SessionVersions::fixed(version), encoded(params)).ok();
        Box::new(Adapter::new(session, Side::Server))
    }
}

fn encoded(params: &TransportParameters) -> Vec<u8> {
    let mut bytes = Vec::new();
    params.write(&mut bytes);
    bytes
}

/// An end of a handshake.
struct Adapter {
    /// `None` if the session could not be started; every message is an error then. Behind a lock, because
    /// quinn requires `Sync` and our sessions are not.
    session: Mutex<Option<Box<dyn Session>>>,
    /// The level of the messages that the session expects: quinn does not name it.
    reading: SpaceId,
    side: Side,
}

impl Adapter {
    fn new(session: Option<Box<dyn Session>>, side: Side) -> Self {
        let session = Mutex::new(session);
        Self { session, reading: SpaceId::Initial, side }
    }

    fn session(&mut self) -> Option<&mut Box<dyn Session>> {
        self.session.get_mut().unwrap_or_else(PoisonError::into_inner).as_mut()
    }

    /// The answer of the session to `ask`.
    fn ask<T>(&self, ask: impl FnOnce(&dyn Session) -> T) -> Option<T> {
        let session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        session.as_deref().map(ask)
    }
}

fn handshake_failed(reason: String) -> TransportError {
    // TLS alert 40, handshake_failure.
    TransportError { code: TransportErrorCode::crypto(40), frame: None, reason }
}

impl crypto::Session for Adapter {
    fn initial_keys(&self, dst_cid: &ConnectionId, side: Side) -> crypto::Keys {
        // quinn's connection IDs are never longer than ours may be.
        let cid = sutura_proto::ConnectionId::new(dst_cid).unwrap_or_default();
        let protocols = Vec::new();
        let keys = match side {
            Side::Client => NullClientConfig::new(protocols).initial_keys(VERSION_1, &cid),
            Side::Server => NullServerConfig::new(protocols).initial_keys(VERSION_1, &cid),
        };
        adapt(keys.unwrap_or_else(|error| unreachable!("version 1 is supported: {error}")))
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn crypto::HeaderKey>, Box<dyn crypto::PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        None
    }

    fn is_handshaking(&self) -> bool {
        self.ask(|session| session.is_handshaking()).unwrap_or(true)
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        let reading = self.reading;
        let session = self.session().ok_or_else(|| handshake_failed("cannot start".to_owned()))?;
        session.read_handshake(reading, buf).map_err(|e| handshake_failed(e.to_string()))?;
        Ok(false)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let bytes = self.ask(|session| session.transport_parameters().map(<[u8]>::to_vec));
        let Some(bytes) = bytes.flatten() else { return Ok(None) };
        let params = TransportParameters::read(self.side, &mut Cursor::new(bytes));
        params.map(Some).map_err(|error| handshake_failed(error.to_string()))
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<crypto::Keys> {
        match self.session()?.write_handshake(buf)? {
            KeyChange::Handshake(keys) => {
                self.reading = SpaceId::Handshake;
                Some(adapt(keys))
            }
            KeyChange::OneRtt(keys) => Some(adapt(keys)),
        }
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn crypto::PacketKey>>> {
        let session = self.session()?;
        let PacketKeys { local, remote } = session.next_1rtt_keys()?;
        session.enter_next_phase();
        Some(KeyPair {
            local: Box::new(Packets(local)) as _,
            remote: Box::new(Packets(remote)) as _,
        })
    }

    fn is_valid_retry(&self, _: &ConnectionId, _: &[u8], _: &[u8]) -> bool {
        false
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.ask(|session| session.export_keying_material(output, label, Some(context)))
            .and_then(Result::ok)
            .ok_or(ExportKeyingMaterialError)
    }
}

fn adapt(Keys { local, remote }: Keys) -> crypto::Keys {
    let [local, remote] = [local, remote].map(|DirectionalKeys { header, packet }| {
        (Box::new(Headers(header)) as Box<dyn crypto::HeaderKey>, Box::new(Packets(packet)) as _)
    });
    crypto::Keys {
        header: KeyPair { local: local.0, remote: remote.0 },
        packet: KeyPair { local: local.1, remote: remote.1 },
    }
}

struct Headers(Box<dyn HeaderKey>);

impl crypto::HeaderKey for Headers {
    fn decrypt(&self, pn_offset: usize, packet: &mut [u8]) {
        // The call only fails for packets without a sample, which quinn sorts out before. A packet that
        // slipped through would not pass authentication.
        let _ = self.0.unprotect(packet, pn_offset);
    }

    fn encrypt(&self, pn_offset: usize, packet: &mut [u8]) {
        let _ = self.0.protect(packet, pn_offset);
    }

    fn sample_size(&self) -> usize {
        SAMPLE_LEN
    }
}

struct Packets(Box<dyn PacketKey>);

impl crypto::PacketKey for Packets {
    fn encrypt(&self, packet: u64, buf: &mut [u8], header_len: usize) {
        let (header, payload) = buf.split_at_mut(header_len);
        // The call only fails without room for a tag, which quinn leaves.
        let _ = self.0.seal(packet, header, payload);
    }

    fn decrypt(
        &self,
        packet: u64,
        header: &[u8],
        payload: &mut BytesMut,
    ) -> Result<(), CryptoError> {
        let plain = self.0.open(packet, header, payload).map_err(|_| CryptoError)?;
        payload.truncate(plain);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        self.0.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.0.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.0.integrity_limit()
    }
}

/// Address validation tokens that anybody could write.
struct OpenTokens;

impl HandshakeTokenKey for OpenTokens {
    fn aead_from_hkdf(&self, _: &[u8]) -> Box<dyn AeadKey> {
        Box::new(Self)
    }
}

impl AeadKey for OpenTokens {
    fn seal(&self, _: &mut Vec<u8>, _: &[u8]) -> Result<(), CryptoError> {
        Ok(())
    }

    fn open<'a>(&self, data: &'a mut [u8], _: &[u8]) -> Result<&'a mut [u8], CryptoError> {
        Ok(data)
    }
}

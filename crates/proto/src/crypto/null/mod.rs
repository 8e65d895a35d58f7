//! Handshakes and packet protection for simulations, which have the shape and size of TLS and AEADs
//! but no secrecy.
//!
//! Messages are framed like those of TLS, have about the same length, and carry ALPN and transport
//! parameters. Packets have a 16-byte tag that detects damage, and header protection with a mask
//! derived from a sample. All bytes depend only on the inputs of the two ends, so that a run can be repeated.
//! **Nothing here is secret or authentic.**

mod handshake;
mod keys;
mod message;
mod sessions;

use handshake::{NullSession, Versions};
use message::MAX_FIELD;
use sessions::Sessions;
use std::sync::Arc;

use super::{
    ClientCryptoConfig, Keys, ServerCryptoConfig, Session, SessionVersions, StartError,
    check_version, check_versions,
};
use crate::ids::{ConnectionId, Side};

/// Size of the certificate and the signature in a server's flight, as for a short chain of ECDSA
/// certificates.
const CERTIFICATE_SIZE: u16 = 900;

/// A simulated client.
#[derive(Debug, Clone)]
pub struct NullClientConfig {
    protocols: Vec<Vec<u8>>,
    /// The sessions to resume, if 0-RTT is wanted.
    sessions: Option<Arc<Sessions>>,
}

impl NullClientConfig {
    /// A client that offers these application protocols.
    #[must_use]
    pub const fn new(protocols: Vec<Vec<u8>>) -> Self {
        Self { protocols, sessions: None }
    }

    /// Remembers sessions, and resumes each once with 0-RTT, if the server permits it.
    #[must_use]
    pub fn with_early_data(mut self) -> Self {
        self.sessions = Some(Arc::default());
        self
    }
}

impl ClientCryptoConfig for NullClientConfig {
    fn start_session(
        &self,
        versions: SessionVersions,
        server_name: &str,
        transport_parameters: Vec<u8>,
    ) -> Result<Box<dyn Session>, StartError> {
        let (original, negotiated) = check_versions(versions)?;
        if server_name.is_empty() || server_name.len() > MAX_FIELD {
            return Err(StartError::InvalidServerName(server_name.to_owned()));
        }
        check_sizes(&self.protocols, &transport_parameters)?;
        let protocols = self.protocols.clone();
        let sessions = self.sessions.clone();
        let versions = Versions { original, current: negotiated.unwrap_or(original) };
        let parameters = &transport_parameters;
        let session = NullSession::client(versions, server_name, protocols, parameters, sessions);
        Ok(Box::new(session))
    }

    fn initial_keys(&self, version: u32, dcid: &ConnectionId) -> Result<Keys, StartError> {
        Ok(keys::initial_keys(check_version(version)?, dcid, Side::Client))
    }
}

/// A simulated server.
#[derive(Debug, Clone)]
pub struct NullServerConfig {
    protocols: Vec<Vec<u8>>,
    certificate_size: u16,
    /// The sessions that clients may resume, if 0-RTT is accepted.
    sessions: Option<Arc<Sessions>>,
}

impl NullServerConfig {
    /// A server that supports these application protocols, in order of preference.
    #[must_use]
    pub const fn new(protocols: Vec<Vec<u8>>) -> Self {
        Self { protocols, certificate_size: CERTIFICATE_SIZE, sessions: None }
    }

    /// Accepts 0-RTT: gives each client a ticket, which is good for one connection.
    #[must_use]
    pub fn with_early_data(mut self) -> Self {
        self.sessions = Some(Arc::default());
        self
    }

    /// Sets the size of the certificates and the signature that the server sends, 900 bytes by
    /// default. Long chains exceed the anti-amplification limit.
    #[must_use]
    pub const fn with_certificate_size(mut self, bytes: u16) -> Self {
        self.certificate_size = bytes;
        self
    }
}

impl ServerCryptoConfig for NullServerConfig {
    fn start_session(
        &self,
        versions: SessionVersions,
        transport_parameters: Vec<u8>,
    ) -> Result<Box<dyn Session>, StartError> {
        let (original, negotiated) = check_versions(versions)?;
        check_sizes(&self.protocols, &transport_parameters)?;
        let protocols = self.protocols.clone();
        let certificate = self.certificate_size;
        let sessions = self.sessions.clone();
        let versions = Versions { original, current: negotiated.unwrap_or(original) };
        let parameters = transport_parameters;
        let session = NullSession::server(versions, protocols, parameters, certificate, sessions);
        Ok(Box::new(session))
    }

    fn client_parameters<'a>(&self, handshake: &'a [u8]) -> Option<&'a [u8]> {
        message::client_parameters(handshake)
    }

    fn initial_keys(&self, version: u32, dcid: &ConnectionId) -> Result<Keys, StartError> {
        Ok(keys::initial_keys(check_version(version)?, dcid, Side::Server))
    }
}

/// Checks that the data of this end fits into its messages.
fn check_sizes(protocols: &[Vec<u8>], transport_parameters: &[u8]) -> Result<(), StartError> {
    let is_protocol = |protocol: &Vec<u8>| matches!(protocol.len(), 1..=255);
    if !protocols.iter().all(is_protocol)
        || protocols.iter().map(|p| 1 + p.len()).sum::<usize>() > MAX_FIELD
    {
        return Err(StartError::Tls("invalid list of application protocols".to_owned()));
    }
    if transport_parameters.len() > MAX_FIELD {
        return Err(StartError::Tls("transport parameters are too long".to_owned()));
    }
    Ok(())
}

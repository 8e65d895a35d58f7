//! What a server keeps of a TLS session whose handshake is over. rustls keeps its own record layer, its
//! transcript and more for as long as the session lives: some kilobytes of which a connection needs nothing.

use rustls::pki_types::CertificateDer;
use rustls::quic;

use super::conversion::Conversion;
use super::{DirectionalKeys, ExportError, KeyChange, PacketKeys, Session, check_level};
use crate::error::{TransportError, TransportErrorCode};
use crate::ids::SpaceId;
use crate::wire::version::Version;

/// The TLS alert for a message that must not come at this time (RFC 8446 section 6.2).
const UNEXPECTED_MESSAGE: u8 = 10;

/// The secrets of the next key phase.
pub enum NextPhase {
    /// Of the version that the session was started with.
    Same(quic::Secrets),
    /// Of the version that the session has gone over to.
    Converted(Box<Conversion>),
}

/// The rest of a server's session.
pub struct FinishedSession {
    /// The negotiated application protocol.
    pub alpn: Option<Box<[u8]>>,
    /// The client's certificate chain, if it has shown one.
    pub peer_certificates: Option<Box<[CertificateDer<'static>]>>,
    /// The name that the client asked for.
    pub server_name: Option<Box<str>>,
    /// Where the next keys come from.
    pub next: NextPhase,
}

impl Session for FinishedSession {
    fn set_version(&mut self, _: Version) {}

    /// After the handshake a client has nothing to say that a server would understand: it must not update
    /// keys by a message of TLS (RFC 9001 section 6), and is never asked for a certificate (section 4.4).
    fn read_handshake(&mut self, level: SpaceId, data: &[u8]) -> Result<(), TransportError> {
        if data.is_empty() {
            return Ok(());
        }
        check_level(SpaceId::Data, level)?;
        let code = TransportErrorCode::crypto(UNEXPECTED_MESSAGE);
        Err(TransportError::new(code, "handshake message after the handshake"))
    }

    fn write_handshake(&mut self, _: &mut Vec<u8>) -> Option<KeyChange> {
        None
    }

    fn transport_parameters(&self) -> Option<&[u8]> {
        None
    }

    fn early_keys(&self) -> Option<DirectionalKeys> {
        None
    }

    fn early_parameters(&self) -> Option<&[u8]> {
        None
    }

    fn is_early_data_accepted(&self) -> bool {
        false
    }

    fn is_handshaking(&self) -> bool {
        false
    }

    fn alpn(&self) -> Option<&[u8]> {
        self.alpn.as_deref()
    }

    fn peer_certificates(&self) -> Option<&[CertificateDer<'static>]> {
        self.peer_certificates.as_deref()
    }

    fn server_name(&self) -> Option<&str> {
        self.server_name.as_deref()
    }

    fn next_1rtt_keys(&self) -> Option<PacketKeys> {
        match &self.next {
            NextPhase::Same(secrets) => Some(secrets.clone().next_packet_keys().into()),
            NextPhase::Converted(conversion) => conversion.next_packet_keys(),
        }
    }

    fn enter_next_phase(&mut self) {
        match &mut self.next {
            NextPhase::Same(secrets) => drop(secrets.next_packet_keys()),
            NextPhase::Converted(conversion) => conversion.enter_next_phase(),
        }
    }

    fn export_keying_material(
        &self,
        _: &mut [u8],
        _: &[u8],
        _: Option<&[u8]>,
    ) -> Result<(), ExportError> {
        Err(ExportError::NotKept)
    }
}

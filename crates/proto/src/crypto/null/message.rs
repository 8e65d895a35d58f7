//! The messages of the null handshake. The framing is the same as in TLS (RFC 8446 section 4), but the
//! contents are simpler.
//!
//! A field is a 16-bit length followed by that many bytes.

use super::super::TAG_LEN;
use crate::error::{TransportError, TransportErrorCode};
use crate::wire::coding::{Reader, UnexpectedEnd};

/// Size of the longest field that this end puts into a message.
pub const MAX_FIELD: usize = 4096;

/// Size of the longest message body that is accepted. Longer ones are rejected when their header is
/// read, so at most one body of this size is buffered.
pub const MAX_BODY: usize = 0xffff;

/// Size of the type and length fields.
pub const HEADER_SIZE: usize = 4;

/// Size of a ClientHello, unless its contents are longer.
pub const CLIENT_HELLO_SIZE: usize = 280;

/// Size of a ServerHello.
pub const SERVER_HELLO_SIZE: usize = 90;

/// Size of the body of a Finished message: the size of a SHA-256 hash.
pub const VERIFY_DATA_SIZE: usize = 2 * TAG_LEN;

/// TLS alerts that this handshake can fail with (RFC 8446 section 6.2, RFC 7301 section 3.2).
#[derive(Debug, Clone, Copy)]
pub(super) enum Alert {
    UnexpectedMessage = 10,
    IllegalParameter = 47,
    DecodeError = 50,
    DecryptError = 51,
    NoApplicationProtocol = 120,
}

impl From<Alert> for TransportError {
    fn from(alert: Alert) -> Self {
        let reason = match alert {
            Alert::UnexpectedMessage => "unexpected handshake message",
            Alert::IllegalParameter => "application protocol that was not offered",
            Alert::DecodeError => "malformed handshake message",
            Alert::DecryptError => "Finished does not match the handshake",
            Alert::NoApplicationProtocol => "no application protocol in common",
        };
        Self::new(TransportErrorCode::crypto(alert as u8), reason)
    }
}

impl From<UnexpectedEnd> for Alert {
    fn from(_: UnexpectedEnd) -> Self {
        Self::DecodeError
    }
}

/// Message types (RFC 8446 section 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HandshakeType {
    ClientHello = 1,
    ServerHello = 2,
    NewSessionTicket = 4,
    EncryptedExtensions = 8,
    Certificate = 11,
    Finished = 20,
}

/// A received message.
#[derive(Debug, Clone, Copy)]
pub(super) struct HandshakeMessage<'a> {
    /// Its type; `None` if this handshake does not use it.
    pub kind: Option<HandshakeType>,
    /// The body after the header.
    pub body: &'a [u8],
    /// The whole message.
    pub bytes: &'a [u8],
}

impl<'a> HandshakeMessage<'a> {
    /// Reads the next message; returns `None` and consumes nothing if it is incomplete.
    ///
    /// # Errors
    /// The message is longer than [`MAX_BODY`].
    pub fn read(reader: &mut Reader<'a>) -> Result<Option<Self>, Alert> {
        let Some((&[kind, high, middle, low], _)) = reader.peek_rest().split_first_chunk() else {
            return Ok(None);
        };
        let length = u32::from_be_bytes([0, high, middle, low]) as usize;
        if length > MAX_BODY {
            return Err(Alert::DecodeError);
        }
        let Ok(bytes) = reader.bytes(HEADER_SIZE + length) else {
            return Ok(None);
        };
        let kind = [
            HandshakeType::ClientHello,
            HandshakeType::ServerHello,
            HandshakeType::NewSessionTicket,
            HandshakeType::EncryptedExtensions,
            HandshakeType::Certificate,
            HandshakeType::Finished,
        ]
        .into_iter()
        .find(|&known| known as u8 == kind);
        Ok(Some(Self { kind, body: bytes.get(HEADER_SIZE..).unwrap_or_default(), bytes }))
    }
}

/// A ClientHello.
#[derive(Debug)]
pub(super) struct ClientHello<'a> {
    /// The server's name.
    pub server_name: &'a str,
    /// The protocols offered, each as a length byte and a name.
    protocols: &'a [u8],
    /// Encoded transport parameters.
    pub transport_parameters: &'a [u8],
    /// The number of the session to resume with 0-RTT.
    pub ticket: Option<u64>,
}

impl<'a> ClientHello<'a> {
    /// Parses a body.
    ///
    /// # Errors
    /// It is truncated or its name is not UTF-8.
    pub fn parse(body: &'a [u8]) -> Result<Self, Alert> {
        let mut reader = Reader::new(body);
        Ok(Self {
            server_name: std::str::from_utf8(field(&mut reader)?)
                .map_err(|_| Alert::DecodeError)?,
            protocols: field(&mut reader)?,
            transport_parameters: field(&mut reader)?,
            // Padding reads as an empty field.
            ticket: field(&mut reader).ok().and_then(ticket),
        })
    }

    /// Encodes the body with padding.
    pub fn encode(
        server_name: &str,
        protocols: &[Vec<u8>],
        parameters: &[u8],
        ticket: Option<u64>,
    ) -> Vec<u8> {
        let mut list = Vec::new();
        for protocol in protocols {
            list.push(protocol.len() as u8);
            list.extend_from_slice(protocol);
        }
        let mut body = Vec::with_capacity(CLIENT_HELLO_SIZE);
        put_field(&mut body, server_name.as_bytes());
        put_field(&mut body, &list);
        put_field(&mut body, parameters);
        if let Some(ticket) = ticket {
            put_field(&mut body, &ticket.to_be_bytes());
        }
        body.resize(body.len().max(CLIENT_HELLO_SIZE - HEADER_SIZE), 0);
        body
    }

    /// Whether the client offers `protocol`.
    ///
    /// # Errors
    /// The list is malformed.
    pub fn offers(&self, protocol: &[u8]) -> Result<bool, Alert> {
        let mut reader = Reader::new(self.protocols);
        let mut found = false;
        while !reader.is_empty() {
            let length = reader.u8()?;
            found |= reader.bytes(usize::from(length))? == protocol;
        }
        Ok(found)
    }
}

/// The server's EncryptedExtensions.
#[derive(Debug)]
pub(super) struct EncryptedExtensions<'a> {
    /// The selected protocol; empty if none.
    pub protocol: &'a [u8],
    /// Encoded transport parameters.
    pub transport_parameters: &'a [u8],
    /// Whether 0-RTT is accepted.
    pub early_data: bool,
}

impl<'a> EncryptedExtensions<'a> {
    /// Parses a body.
    ///
    /// # Errors
    /// It is truncated.
    pub fn parse(body: &'a [u8]) -> Result<Self, Alert> {
        let mut reader = Reader::new(body);
        Ok(Self {
            protocol: field(&mut reader)?,
            transport_parameters: field(&mut reader)?,
            early_data: !reader.is_empty(),
        })
    }

    /// Encodes the body.
    pub fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        put_field(&mut body, self.protocol);
        put_field(&mut body, self.transport_parameters);
        if self.early_data {
            body.push(1);
        }
        body
    }
}

/// Appends a message. `body` has at most [`MAX_BODY`] bytes.
pub(super) fn put_message(out: &mut Vec<u8>, kind: HandshakeType, body: &[u8]) {
    debug_assert!(body.len() <= MAX_BODY);
    let [_, high, middle, low] = (body.len() as u32).to_be_bytes();
    out.extend_from_slice(&[kind as u8, high, middle, low]);
    out.extend_from_slice(body);
}

fn put_field(out: &mut Vec<u8>, bytes: &[u8]) {
    debug_assert!(bytes.len() <= MAX_FIELD);
    out.extend_from_slice(&(bytes.len() as u16).to_be_bytes());
    out.extend_from_slice(bytes);
}

/// The transport parameters in a whole ClientHello; `None` if it is none.
pub(super) fn client_parameters(handshake: &[u8]) -> Option<&[u8]> {
    let message = HandshakeMessage::read(&mut Reader::new(handshake)).ok()??;
    let hello = ClientHello::parse(message.body).ok()?;
    Some(hello.transport_parameters).filter(|_| message.kind == Some(HandshakeType::ClientHello))
}

/// The number in a ticket.
pub(super) fn ticket(bytes: &[u8]) -> Option<u64> {
    bytes.try_into().ok().map(u64::from_be_bytes)
}

fn field<'a>(reader: &mut Reader<'a>) -> Result<&'a [u8], UnexpectedEnd> {
    let length = u16::from_be_bytes(reader.array()?);
    reader.bytes(usize::from(length))
}

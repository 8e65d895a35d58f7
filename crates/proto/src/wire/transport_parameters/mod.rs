//! Transport parameters (RFC 9000 section 18, RFC 9221 section 3, RFC 9287 section 3,
//! draft-ietf-quic-reliable-stream-reset-07 section 3, draft-ietf-quic-ack-frequency-11 section 3, and the
//! parameter of the erasure-coding extension).

mod remembered;
#[cfg(test)]
mod tests;

use super::coding::{Reader, UnexpectedEnd, put_varint, varint_size};
use super::frame::{MAX_STREAMS, RESET_TOKEN_SIZE};
use crate::error::{TransportError, TransportErrorCode};
use crate::ids::{ConnectionId, Dir, Side};
use crate::wire::code_id::CodeSet;
use crate::wire::version::Version;
use std::borrow::Cow;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6};
use std::ops::RangeInclusive;

/// Identifiers of the parameters.
mod id {
    pub(super) const ORIGINAL_DESTINATION_CONNECTION_ID: u64 = 0x00;
    pub(super) const MAX_IDLE_TIMEOUT: u64 = 0x01;
    pub(super) const STATELESS_RESET_TOKEN: u64 = 0x02;
    pub(super) const MAX_UDP_PAYLOAD_SIZE: u64 = 0x03;
    pub(super) const INITIAL_MAX_DATA: u64 = 0x04;
    pub(super) const INITIAL_MAX_STREAM_DATA_BIDI_LOCAL: u64 = 0x05;
    pub(super) const INITIAL_MAX_STREAM_DATA_BIDI_REMOTE: u64 = 0x06;
    pub(super) const INITIAL_MAX_STREAM_DATA_UNI: u64 = 0x07;
    pub(super) const INITIAL_MAX_STREAMS_BIDI: u64 = 0x08;
    pub(super) const INITIAL_MAX_STREAMS_UNI: u64 = 0x09;
    pub(super) const ACK_DELAY_EXPONENT: u64 = 0x0a;
    pub(super) const MAX_ACK_DELAY: u64 = 0x0b;
    pub(super) const DISABLE_ACTIVE_MIGRATION: u64 = 0x0c;
    pub(super) const PREFERRED_ADDRESS: u64 = 0x0d;
    pub(super) const ACTIVE_CONNECTION_ID_LIMIT: u64 = 0x0e;
    pub(super) const INITIAL_SOURCE_CONNECTION_ID: u64 = 0x0f;
    pub(super) const RETRY_SOURCE_CONNECTION_ID: u64 = 0x10;
    /// RFC 9368 section 3.
    pub(super) const VERSION_INFORMATION: u64 = 0x11;
    pub(super) const MAX_DATAGRAM_FRAME_SIZE: u64 = 0x20;
    /// RFC 9287 section 3.
    pub(super) const GREASE_QUIC_BIT: u64 = 0x2ab2;
    /// draft-ietf-quic-reliable-stream-reset-07 section 3.
    pub(super) const RESET_STREAM_AT: u64 = 0x17_f758_6d2c_b571;
    /// draft-ietf-quic-ack-frequency-11 section 3.
    pub(super) const MIN_ACK_DELAY: u64 = 0xff04_de1b;
    /// Of the erasure-coding extension; see `docs/extension.md`.
    pub(super) const FEC: u64 = 0x3f53_5554;
}

/// The smallest `max_udp_payload_size` (RFC 9000 section 18.2).
pub const MIN_UDP_PAYLOAD_SIZE: u64 = 1200;

/// The largest `ack_delay_exponent` (RFC 9000 section 18.2).
pub const MAX_ACK_DELAY_EXPONENT: u64 = 20;

/// The exclusive upper bound of `max_ack_delay` in milliseconds (RFC 9000 section 18.2).
pub const MAX_ACK_DELAY_BOUND: u64 = 1 << 14;

/// The smallest `active_connection_id_limit` (RFC 9000 section 18.2).
pub const MIN_ACTIVE_CONNECTION_ID_LIMIT: u64 = 2;

/// How many of the versions that a peer supports are remembered.
pub const MAX_AVAILABLE_VERSIONS: usize = 32;

/// The version of the erasure-coding extension implemented here.
pub const FEC_VERSION: u64 = 1;

/// The parameters that one end declares during the handshake. Absent parameters have the default values of
/// RFC 9000 section 18.2, which `default()` returns.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct TransportParameters {
    /// The destination connection identifier of the client's first Initial packet. Server only.
    pub original_destination_connection_id: Option<ConnectionId>,
    /// The idle timeout in milliseconds; 0 disables it.
    pub max_idle_timeout: u64,
    /// The stateless reset token for the connection identifier of the handshake. Server only.
    pub stateless_reset_token: Option<[u8; RESET_TOKEN_SIZE]>,
    /// The largest UDP payload that this end is willing to receive, at least 1200.
    pub max_udp_payload_size: u64,
    /// Number of bytes that may be sent on all streams together.
    pub initial_max_data: u64,
    /// Number of bytes that may be sent on a bidirectional stream that this end opens.
    pub initial_max_stream_data_bidi_local: u64,
    /// Number of bytes that may be sent on a bidirectional stream that the other end opens.
    pub initial_max_stream_data_bidi_remote: u64,
    /// Number of bytes that may be sent on a unidirectional stream.
    pub initial_max_stream_data_uni: u64,
    /// Number of bidirectional streams that the other end may open, at most 2^60.
    pub initial_max_streams_bidi: u64,
    /// Number of unidirectional streams that the other end may open, at most 2^60.
    pub initial_max_streams_uni: u64,
    /// The number of bits by which this end's ACK Delay fields are shifted, at most 20.
    pub ack_delay_exponent: u8,
    /// How long this end may delay an acknowledgement, in milliseconds, below 2^14.
    pub max_ack_delay: u64,
    /// Whether this end does not support migration to the address of the handshake.
    pub disable_active_migration: bool,
    /// The server's preferred address. Server only.
    pub preferred_address: Option<Box<PreferredAddress>>,
    /// The number of connection identifiers that this end stores, at least 2.
    pub active_connection_id_limit: u64,
    /// The source connection identifier of this end's first Initial packet.
    pub initial_source_connection_id: Option<ConnectionId>,
    /// The source connection identifier of the Retry packet. Server only.
    pub retry_source_connection_id: Option<ConnectionId>,
    /// The largest DATAGRAM frame in bytes that this end accepts; 0 disables them (RFC 9221).
    pub max_datagram_frame_size: u64,
    /// The versions that this end uses and supports (RFC 9368).
    pub version_information: Option<VersionInformation>,
    /// Whether this end ignores the fixed bit of packets that it receives (RFC 9287).
    pub grease_quic_bit: bool,
    /// Whether this end accepts RESET_STREAM_AT frames.
    pub reset_stream_at: bool,
    /// The shortest delay of acknowledgements in microseconds that this end can be asked for, no more
    /// than `max_ack_delay`; if absent, it cannot be asked.
    pub min_ack_delay: Option<u64>,
    /// The limits of this end's decoders; if absent, no FEC frame may be sent to this end.
    pub fec: Option<FecParameters>,
    /// A parameter without meaning. Written if present; never read.
    pub grease: Option<Grease>,
}

impl Default for TransportParameters {
    fn default() -> Self {
        Self {
            original_destination_connection_id: None,
            max_idle_timeout: 0,
            stateless_reset_token: None,
            max_udp_payload_size: 65_527,
            initial_max_data: 0,
            initial_max_stream_data_bidi_local: 0,
            initial_max_stream_data_bidi_remote: 0,
            initial_max_stream_data_uni: 0,
            initial_max_streams_bidi: 0,
            initial_max_streams_uni: 0,
            ack_delay_exponent: 3,
            max_ack_delay: 25,
            disable_active_migration: false,
            preferred_address: None,
            active_connection_id_limit: MIN_ACTIVE_CONNECTION_ID_LIMIT,
            initial_source_connection_id: None,
            retry_source_connection_id: None,
            max_datagram_frame_size: 0,
            version_information: None,
            grease_quic_bit: false,
            reset_stream_at: false,
            min_ack_delay: None,
            fec: None,
            grease: None,
        }
    }
}

/// A server's preferred address (RFC 9000 section 18.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PreferredAddress {
    /// Its IPv4 address, if any.
    pub ipv4: Option<SocketAddrV4>,
    /// Its IPv6 address, if any.
    pub ipv6: Option<SocketAddrV6>,
    /// The connection identifier to use there; 1 to 20 bytes.
    pub connection_id: ConnectionId,
    /// The stateless reset token that belongs to it.
    pub reset_token: [u8; RESET_TOKEN_SIZE],
}

/// The versions of QUIC that an end uses and supports (RFC 9368 section 3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionInformation {
    /// The version of this connection; never 0.
    pub chosen: u32,
    /// The versions that this end supports, the best first; never 0. Only the first 32 versions of a peer are
    /// read.
    pub available: Vec<u32>,
}

/// The limits of this end's erasure decoders: the value of the FEC parameter, version 1. All
/// numbers are at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FecParameters {
    /// Number of concurrent sessions; the peer numbers them from 0.
    pub max_sessions: u64,
    /// Number of source symbols in the window of one session.
    pub max_window_symbols: u64,
    /// Number of bytes of source symbols in the window of one session.
    pub max_window_bytes: u64,
    /// Size of one source symbol in bytes.
    pub max_symbol_size: u64,
    /// The codes that the decoders support. Written only if there are more than the sliding window.
    pub codes: CodeSet,
}

/// A reserved parameter. Its only purpose is to ensure that peers ignore unknown parameters (RFC
/// 9000 section 18.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grease {
    n: u32,
    len: usize,
    value: [u8; 8],
}

impl Grease {
    /// Derives an identifier and a value of 0 to 8 bytes from a random number.
    #[must_use]
    pub const fn new(random: u64) -> Self {
        Self { n: (random >> 32) as u32, len: (random % 9) as usize, value: random.to_be_bytes() }
    }

    const fn id(&self) -> u64 {
        31 * self.n as u64 + 27
    }
}

/// The connection identifiers of a handshake as this end saw them. The peer's parameters must
/// confirm them (RFC 9000 section 7.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandshakeIds {
    /// The source connection identifier of the peer's first Initial packet.
    pub peer_initial_source: ConnectionId,
    /// The destination connection identifier of the client's very first Initial packet. Only a
    /// client checks it.
    pub original_destination: ConnectionId,
    /// The source connection identifier of the Retry packet, if there was one. Only a client checks
    /// it.
    pub retry_source: Option<ConnectionId>,
}

/// Why parameters are rejected; always a TRANSPORT_PARAMETER_ERROR.
struct Invalid(&'static str);

impl From<UnexpectedEnd> for Invalid {
    fn from(_: UnexpectedEnd) -> Self {
        Self("transport parameter cut short")
    }
}

impl From<Invalid> for TransportError {
    fn from(Invalid(reason): Invalid) -> Self {
        Self::new(TransportErrorCode::TRANSPORT_PARAMETER_ERROR, Cow::Borrowed(reason))
    }
}

impl TransportParameters {
    /// Decodes the parameters sent by the end `from`. Unknown parameters are ignored, and so is an
    /// FEC parameter of a version other than 1.
    ///
    /// # Errors
    /// TRANSPORT_PARAMETER_ERROR if a parameter is malformed, out of range, duplicated, or not
    /// allowed from that end. Connection identifiers are only read; see
    /// [`authenticate`](Self::authenticate).
    pub fn decode(bytes: &[u8], from: Side) -> Result<Self, TransportError> {
        let mut parameters = Self::default();
        let mut seen = Seen::default();
        let mut r = Reader::new(bytes);
        while !r.is_empty() {
            parameters.read_one(&mut r, from, &mut seen)?;
        }
        let max_ack_delay = parameters.max_ack_delay * 1_000;
        if parameters.min_ack_delay.is_some_and(|min| min > max_ack_delay) {
            return Err(Invalid("min_ack_delay above max_ack_delay").into());
        }
        let versions = parameters.version_information.as_ref().filter(|_| from.is_client());
        if versions.is_some_and(|versions| !versions.available.contains(&versions.chosen)) {
            return Err(Invalid("chosen version not among those available").into());
        }
        Ok(parameters)
    }

    fn read_one(&mut self, r: &mut Reader<'_>, from: Side, seen: &mut Seen) -> Result<(), Invalid> {
        let id = r.varint()?;
        let mut value = Reader::new(r.varint_bytes()?);
        if from.is_client() && is_server_only(id) {
            return Err(Invalid("transport parameter that only servers send"));
        }
        if !self.set(id, &mut value)? {
            return Ok(());
        }
        if !value.is_empty() {
            return Err(Invalid("transport parameter with bytes left over"));
        }
        if !seen.insert(id) {
            return Err(Invalid("transport parameter sent twice"));
        }
        Ok(())
    }

    /// Reads one parameter's value; returns whether the parameter is known.
    fn set(&mut self, id: u64, r: &mut Reader<'_>) -> Result<bool, Invalid> {
        const ANY: RangeInclusive<u64> = 0..=u64::MAX;
        match id {
            id::ORIGINAL_DESTINATION_CONNECTION_ID => {
                self.original_destination_connection_id = Some(connection_id(r)?);
            }
            id::MAX_IDLE_TIMEOUT => self.max_idle_timeout = r.varint()?,
            id::STATELESS_RESET_TOKEN => self.stateless_reset_token = Some(r.array()?),
            id::MAX_UDP_PAYLOAD_SIZE => {
                self.max_udp_payload_size = integer(r, MIN_UDP_PAYLOAD_SIZE..=u64::MAX)?;
            }
            id::INITIAL_MAX_DATA => self.initial_max_data = integer(r, ANY)?,
            id::INITIAL_MAX_STREAM_DATA_BIDI_LOCAL => {
                self.initial_max_stream_data_bidi_local = integer(r, ANY)?;
            }
            id::INITIAL_MAX_STREAM_DATA_BIDI_REMOTE => {
                self.initial_max_stream_data_bidi_remote = integer(r, ANY)?;
            }
            id::INITIAL_MAX_STREAM_DATA_UNI => self.initial_max_stream_data_uni = integer(r, ANY)?,
            id::INITIAL_MAX_STREAMS_BIDI => {
                self.initial_max_streams_bidi = integer(r, 0..=MAX_STREAMS)?;
            }
            id::INITIAL_MAX_STREAMS_UNI => {
                self.initial_max_streams_uni = integer(r, 0..=MAX_STREAMS)?;
            }
            id::ACK_DELAY_EXPONENT => {
                // At most 20, so nothing is lost.
                self.ack_delay_exponent = integer(r, 0..=MAX_ACK_DELAY_EXPONENT)? as u8;
            }
            id::MAX_ACK_DELAY => self.max_ack_delay = integer(r, 0..=MAX_ACK_DELAY_BOUND - 1)?,
            id::DISABLE_ACTIVE_MIGRATION => self.disable_active_migration = true,
            id::PREFERRED_ADDRESS => {
                self.preferred_address = Some(Box::new(PreferredAddress::read(r)?));
            }
            id::ACTIVE_CONNECTION_ID_LIMIT => {
                let range = MIN_ACTIVE_CONNECTION_ID_LIMIT..=u64::MAX;
                self.active_connection_id_limit = integer(r, range)?;
            }
            id::INITIAL_SOURCE_CONNECTION_ID => {
                self.initial_source_connection_id = Some(connection_id(r)?);
            }
            id::RETRY_SOURCE_CONNECTION_ID => {
                self.retry_source_connection_id = Some(connection_id(r)?);
            }
            id::MAX_DATAGRAM_FRAME_SIZE => self.max_datagram_frame_size = integer(r, ANY)?,
            id::VERSION_INFORMATION => {
                self.version_information = Some(VersionInformation::read(r)?);
            }
            id::GREASE_QUIC_BIT => self.grease_quic_bit = true,
            id::RESET_STREAM_AT => self.reset_stream_at = true,
            id::MIN_ACK_DELAY => self.min_ack_delay = Some(integer(r, ANY)?),
            id::FEC => self.fec = FecParameters::read(r)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Encodes the parameters as sent by the end `from`. Leaves out server-only parameters for a client, and
    /// parameters with their default value.
    pub fn encode(&self, from: Side, out: &mut Vec<u8>) {
        let default = Self::default();
        let integers = [
            (id::MAX_IDLE_TIMEOUT, self.max_idle_timeout, default.max_idle_timeout),
            (id::MAX_UDP_PAYLOAD_SIZE, self.max_udp_payload_size, default.max_udp_payload_size),
            (id::INITIAL_MAX_DATA, self.initial_max_data, 0),
            (id::INITIAL_MAX_STREAM_DATA_BIDI_LOCAL, self.initial_max_stream_data_bidi_local, 0),
            (id::INITIAL_MAX_STREAM_DATA_BIDI_REMOTE, self.initial_max_stream_data_bidi_remote, 0),
            (id::INITIAL_MAX_STREAM_DATA_UNI, self.initial_max_stream_data_uni, 0),
            (id::INITIAL_MAX_STREAMS_BIDI, self.initial_max_streams_bidi, 0),
            (id::INITIAL_MAX_STREAMS_UNI, self.initial_max_streams_uni, 0),
            (
                id::ACK_DELAY_EXPONENT,
                self.ack_delay_exponent.into(),
                default.ack_delay_exponent.into(),
            ),
            (id::MAX_ACK_DELAY, self.max_ack_delay, default.max_ack_delay),
            (
                id::ACTIVE_CONNECTION_ID_LIMIT,
                self.active_connection_id_limit,
                default.active_connection_id_limit,
            ),
            (id::MAX_DATAGRAM_FRAME_SIZE, self.max_datagram_frame_size, 0),
        ];
        for (id, value, default) in integers {
            if value != default {
                put_varint(out, id);
                put_varint(out, varint_size(value) as u64);
                put_varint(out, value);
            }
        }
        if self.disable_active_migration {
            put_bytes(id::DISABLE_ACTIVE_MIGRATION, &[], out);
        }
        if let Some(information) = &self.version_information {
            information.encode(out);
        }
        if self.grease_quic_bit {
            put_bytes(id::GREASE_QUIC_BIT, &[], out);
        }
        if self.reset_stream_at {
            put_bytes(id::RESET_STREAM_AT, &[], out);
        }
        if let Some(delay) = self.min_ack_delay {
            put_varint(out, id::MIN_ACK_DELAY);
            put_varint(out, varint_size(delay) as u64);
            put_varint(out, delay);
        }
        if let Some(id) = self.initial_source_connection_id {
            put_bytes(id::INITIAL_SOURCE_CONNECTION_ID, id.as_slice(), out);
        }
        if let Some(fec) = self.fec {
            fec.encode(out);
        }
        if let Some(grease) = &self.grease {
            put_bytes(grease.id(), grease.value.get(..grease.len).unwrap_or_default(), out);
        }
        if from.is_server() {
            self.encode_server_only(out);
        }
    }

    fn encode_server_only(&self, out: &mut Vec<u8>) {
        if let Some(id) = self.original_destination_connection_id {
            put_bytes(id::ORIGINAL_DESTINATION_CONNECTION_ID, id.as_slice(), out);
        }
        if let Some(token) = &self.stateless_reset_token {
            put_bytes(id::STATELESS_RESET_TOKEN, token, out);
        }
        if let Some(address) = &self.preferred_address {
            address.encode(out);
        }
        if let Some(id) = self.retry_source_connection_id {
            put_bytes(id::RETRY_SOURCE_CONNECTION_ID, id.as_slice(), out);
        }
    }

    /// Checks that the parameters, which the end `from` sent, contain the connection identifiers
    /// that were really used. Otherwise, someone on the path has replaced one.
    ///
    /// # Errors
    /// TRANSPORT_PARAMETER_ERROR (RFC 9000 section 7.3).
    pub fn authenticate(&self, from: Side, ids: &HandshakeIds) -> Result<(), TransportError> {
        let mut matches = self.initial_source_connection_id == Some(ids.peer_initial_source);
        if from.is_server() {
            matches &= self.original_destination_connection_id == Some(ids.original_destination);
            matches &= self.retry_source_connection_id == ids.retry_source;
        }
        if matches {
            return Ok(());
        }
        Err(Invalid("connection ids of the handshake not confirmed").into())
    }

    /// How many streams of direction `dir` the other end may open.
    #[must_use]
    pub const fn initial_max_streams(&self, dir: Dir) -> u64 {
        match dir {
            Dir::Bi => self.initial_max_streams_bidi,
            Dir::Uni => self.initial_max_streams_uni,
        }
    }
}

/// The known parameters that were already read.
#[derive(Default)]
struct Seen(u64);

impl Seen {
    /// Records a known parameter; `false` if it was recorded before.
    fn insert(&mut self, id: u64) -> bool {
        // Identifiers of RFC 9000 and 9221 stand for their own bits; larger identifiers use the bits from the
        // top.
        let bit = 1
            << match id {
                id::FEC => 63,
                id::GREASE_QUIC_BIT => 62,
                id::RESET_STREAM_AT => 61,
                id::MIN_ACK_DELAY => 60,
                small => small.min(59),
            };
        let is_new = self.0 & bit == 0;
        self.0 |= bit;
        is_new
    }
}

const fn is_server_only(id: u64) -> bool {
    matches!(
        id,
        id::ORIGINAL_DESTINATION_CONNECTION_ID
            | id::STATELESS_RESET_TOKEN
            | id::PREFERRED_ADDRESS
            | id::RETRY_SOURCE_CONNECTION_ID
    )
}

fn integer(r: &mut Reader<'_>, allowed: RangeInclusive<u64>) -> Result<u64, Invalid> {
    let value = r.varint()?;
    if !allowed.contains(&value) {
        return Err(Invalid("transport parameter out of range"));
    }
    Ok(value)
}

fn connection_id(r: &mut Reader<'_>) -> Result<ConnectionId, Invalid> {
    ConnectionId::new(r.rest()).ok_or(Invalid("connection id longer than 20 bytes"))
}

fn put_bytes(id: u64, value: &[u8], out: &mut Vec<u8>) {
    put_varint(out, id);
    put_varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

impl PreferredAddress {
    /// IPv4 address and port, IPv6 address and port, the identifier's length, and the token.
    const FIXED_SIZE: usize = 4 + 2 + 16 + 2 + 1 + RESET_TOKEN_SIZE;

    fn read(r: &mut Reader<'_>) -> Result<Self, Invalid> {
        let ipv4 = SocketAddrV4::new(Ipv4Addr::from(r.array::<4>()?), port(r)?);
        let ipv6 = SocketAddrV6::new(Ipv6Addr::from(r.array::<16>()?), port(r)?, 0, 0);
        let len = usize::from(r.u8()?);
        let connection_id = ConnectionId::new(r.bytes(len)?)
            .filter(|id| !id.is_empty())
            .ok_or(Invalid("preferred address needs a connection id of 1 to 20 bytes"))?;
        let is_set = |port: u16, is_unspecified: bool| port != 0 || !is_unspecified;
        Ok(Self {
            ipv4: Some(ipv4).filter(|a| is_set(a.port(), a.ip().is_unspecified())),
            ipv6: Some(ipv6).filter(|a| is_set(a.port(), a.ip().is_unspecified())),
            connection_id,
            reset_token: r.array()?,
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, id::PREFERRED_ADDRESS);
        put_varint(out, (Self::FIXED_SIZE + self.connection_id.len()) as u64);
        let ipv4 = self.ipv4.unwrap_or(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, 0));
        out.extend_from_slice(&ipv4.ip().octets());
        out.extend_from_slice(&ipv4.port().to_be_bytes());
        let ipv6 = self.ipv6.unwrap_or(SocketAddrV6::new(Ipv6Addr::UNSPECIFIED, 0, 0, 0));
        out.extend_from_slice(&ipv6.ip().octets());
        out.extend_from_slice(&ipv6.port().to_be_bytes());
        out.push(self.connection_id.len() as u8);
        out.extend_from_slice(self.connection_id.as_slice());
        out.extend_from_slice(&self.reset_token);
    }
}

fn port(r: &mut Reader<'_>) -> Result<u16, Invalid> {
    Ok(u16::from_be_bytes(r.array()?))
}

impl VersionInformation {
    /// The version information of an end that supports `available`, for a connection of `version`.
    #[must_use]
    pub fn new(version: Version, available: &[Version]) -> Self {
        let available = available.iter().map(|version| version.number()).collect();
        Self { chosen: version.number(), available }
    }

    fn read(r: &mut Reader<'_>) -> Result<Self, Invalid> {
        let (versions, rest) = r.rest().as_chunks::<4>();
        let mut versions = versions.iter().map(|version| u32::from_be_bytes(*version));
        let chosen = versions.next().filter(|_| rest.is_empty());
        let chosen = chosen.ok_or(Invalid("malformed version information"))?;
        if chosen == 0 || versions.clone().any(|version| version == 0) {
            return Err(Invalid("version 0 in version information"));
        }
        // The chosen one counts wherever it stands.
        let last = versions.clone().skip(MAX_AVAILABLE_VERSIONS - 1).find(|v| *v == chosen);
        let kept = MAX_AVAILABLE_VERSIONS - usize::from(last.is_some());
        Ok(Self { chosen, available: versions.take(kept).chain(last).collect() })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        put_varint(out, id::VERSION_INFORMATION);
        put_varint(out, 4 * (1 + self.available.len()) as u64);
        for version in std::iter::once(&self.chosen).chain(&self.available) {
            out.extend_from_slice(&version.to_be_bytes());
        }
    }
}

impl FecParameters {
    /// `None` for an unsupported version, even if its contents are malformed.
    fn read(r: &mut Reader<'_>) -> Result<Option<Self>, Invalid> {
        match r.varint()? {
            0 => return Err(Invalid("FEC version 0")),
            FEC_VERSION => {}
            _ => {
                r.rest();
                return Ok(None);
            }
        }
        let at_least_one = 1..=u64::MAX;
        Ok(Some(Self {
            max_sessions: integer(r, at_least_one.clone())?,
            max_window_symbols: integer(r, at_least_one.clone())?,
            max_window_bytes: integer(r, at_least_one.clone())?,
            max_symbol_size: integer(r, at_least_one)?,
            codes: if r.is_empty() { CodeSet::default() } else { CodeSet::from_bits(r.varint()?) },
        }))
    }

    fn encode(&self, out: &mut Vec<u8>) {
        let fields = [
            FEC_VERSION,
            self.max_sessions,
            self.max_window_symbols,
            self.max_window_bytes,
            self.max_symbol_size,
        ];
        let codes = Some(self.codes.bits()).filter(|_| self.codes != CodeSet::default());
        let fields = fields.into_iter().chain(codes);
        put_varint(out, id::FEC);
        put_varint(out, fields.clone().map(varint_size).sum::<usize>() as u64);
        fields.for_each(|field| put_varint(out, field));
    }
}

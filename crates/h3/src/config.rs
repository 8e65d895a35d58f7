//! Configuration of one end of a connection.

use crate::priority::DefaultProtections;
use crate::qpack::FieldLimits;
use crate::settings::Settings;
use crate::webtransport::WebTransportDrafts;

/// Largest dynamic table in either direction, whatever is configured or announced, in bytes.
pub const MAX_TABLE_CAPACITY: u64 = 64 << 10;

/// Most messages that wait for the dynamic table, whatever is configured.
pub const MAX_BLOCKED_STREAMS: u64 = 256;

/// Configuration of one end. The `Default` suits both client and server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    /// Largest field section accepted from the peer, decoded, in bytes as RFC 9114 section 4.2.2
    /// counts them; announced to the peer. It bounds the encoded section as well. 64 KiB.
    pub max_field_section_size: u64,
    /// Most field lines accepted in one section. 128.
    pub max_field_lines: usize,
    /// Largest dynamic table that the peer may fill, in bytes (RFC 9204 section 3.2.3); announced to
    /// the peer. 4 KiB; 0 for none.
    pub qpack_max_table_capacity: u64,
    /// How many messages may wait for the dynamic table at a time (RFC 9204 section 2.1.2); announced
    /// to the peer. 16.
    pub qpack_blocked_streams: u64,
    /// The most bytes of the peer's dynamic table that this end fills, as far as the peer permits. 4 KiB; 0
    /// to send literals only.
    pub qpack_encoder_capacity: u64,
    /// How many messages this end sends before the peer is known to have the entries that they refer to, as
    /// far as the peer permits. With 0, the default, no message ever waits because a packet of another stream
    /// was lost, and entries are of use from a round trip after their insertion on.
    pub qpack_encoder_blocked_streams: u64,
    /// Largest body accepted from the peer, in bytes. A request that announces more is answered with
    /// 413, any other message that is longer is abandoned. `u64::MAX`.
    pub max_body_size: u64,
    /// Whether this end accepts extended CONNECT, as a server (RFC 9220); announced to the peer. No.
    pub enable_connect_protocol: bool,
    /// Whether this end accepts HTTP datagrams (RFC 9297); announced to the peer. The QUIC connection
    /// must accept datagrams too, and all of them belong to HTTP/3 then. No.
    pub enable_datagrams: bool,
    /// Whether this end speaks WebTransport (draft-ietf-webtrans-http3); announced to the peer. Sessions need
    /// datagrams, too, and a server extended CONNECT: [`Config::for_webtransport`] sets all three. No.
    pub enable_webtransport: bool,
    /// How many requests a client may cancel before they are answered; a server closes the connection with
    /// H3_EXCESSIVE_LOAD if there are more. `None` for any number. 200 at once and 50 a second.
    pub cancelled_requests: Option<CancelLimit>,
    /// The protection of responses for which neither the request nor the response has `exp_b` (server). If
    /// empty, they are protected as the transport is configured.
    pub protections: DefaultProtections,
    /// Seed that picks the reserved setting, frame and stream that are sent for the peer to ignore
    /// (RFC 9114 sections 6.2.3, 7.2.4.1 and 7.2.8); `None` sends none.
    pub grease: Option<u64>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            max_field_section_size: 64 << 10,
            max_field_lines: 128,
            qpack_max_table_capacity: 4 << 10,
            qpack_blocked_streams: 16,
            qpack_encoder_capacity: 4 << 10,
            qpack_encoder_blocked_streams: 0,
            max_body_size: u64::MAX,
            enable_connect_protocol: false,
            enable_datagrams: false,
            enable_webtransport: false,
            cancelled_requests: Some(CancelLimit::default()),
            protections: DefaultProtections::default(),
            grease: Some(0),
        }
    }
}

impl Config {
    sutura_schedule::setters! {
        with_max_field_section_size: max_field_section_size = u64,
        with_max_field_lines: max_field_lines = usize,
        with_qpack_max_table_capacity: qpack_max_table_capacity = u64,
        with_qpack_blocked_streams: qpack_blocked_streams = u64,
        with_qpack_encoder_capacity: qpack_encoder_capacity = u64,
        with_qpack_encoder_blocked_streams: qpack_encoder_blocked_streams = u64,
        with_max_body_size: max_body_size = u64,
        with_enable_connect_protocol: enable_connect_protocol = bool,
        with_enable_datagrams: enable_datagrams = bool,
        with_enable_webtransport: enable_webtransport = bool,
        with_cancelled_requests: cancelled_requests = Option<CancelLimit>,
        with_protections: protections = DefaultProtections,
        with_grease: grease = Option<u64>,
    }

    /// The default without dynamic tables in either direction.
    #[must_use]
    pub fn without_dynamic_table() -> Self {
        Self {
            qpack_max_table_capacity: 0,
            qpack_blocked_streams: 0,
            qpack_encoder_capacity: 0,
            ..Self::default()
        }
    }

    /// The default with all that WebTransport needs.
    #[must_use]
    pub fn for_webtransport() -> Self {
        Self {
            enable_connect_protocol: true,
            enable_datagrams: true,
            enable_webtransport: true,
            ..Self::default()
        }
    }

    /// The SETTINGS that announce this configuration.
    pub(crate) fn settings(&self) -> Settings {
        Settings {
            max_field_section_size: Some(self.max_field_section_size),
            qpack_max_table_capacity: self.qpack_max_table_capacity.min(MAX_TABLE_CAPACITY),
            qpack_blocked_streams: self.qpack_blocked_streams.min(MAX_BLOCKED_STREAMS),
            enable_connect_protocol: self.enable_connect_protocol,
            h3_datagram: self.enable_datagrams,
            webtransport: if self.enable_webtransport {
                WebTransportDrafts::ALL
            } else {
                WebTransportDrafts::NONE
            },
        }
    }

    pub(crate) const fn limits(&self) -> FieldLimits {
        FieldLimits { size: self.max_field_section_size, lines: self.max_field_lines }
    }
}

/// How many requests a client may cancel before they are answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CancelLimit {
    /// How many at once.
    pub burst: u32,
    /// How many a second in the long run.
    pub per_second: u32,
}

impl Default for CancelLimit {
    fn default() -> Self {
        Self { burst: 200, per_second: 50 }
    }
}

//! Transport parameters with the field names of qlog.

use serde::Serialize;
use std::net::{SocketAddrV4, SocketAddrV6};
use sutura_proto::wire_format::{FecParameters, PreferredAddress, TransportParameters};
use sutura_proto::{CodeId, ConnectionId};

/// The data of `transport:parameters_set`.
#[derive(Debug, Serialize)]
pub(super) struct ParametersSet {
    owner: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    original_destination_connection_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    initial_source_connection_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_source_connection_id: Option<String>,
    disable_active_migration: bool,
    max_idle_timeout: u64,
    max_udp_payload_size: u64,
    ack_delay_exponent: u8,
    max_ack_delay: u64,
    active_connection_id_limit: u64,
    initial_max_data: u64,
    initial_max_stream_data_bidi_local: u64,
    initial_max_stream_data_bidi_remote: u64,
    initial_max_stream_data_uni: u64,
    initial_max_streams_bidi: u64,
    initial_max_streams_uni: u64,
    max_datagram_frame_size: u64,
    grease_quic_bit: bool,
    reset_stream_at: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    min_ack_delay: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    preferred_address: Option<Preferred>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fec: Option<Fec>,
}

#[derive(Debug, Serialize)]
struct Preferred {
    #[serde(skip_serializing_if = "Option::is_none")]
    ip_v4: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    port_v4: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ip_v6: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    port_v6: Option<u16>,
    connection_id: String,
}

#[derive(Debug, Serialize)]
struct Fec {
    max_sessions: u64,
    max_window_symbols: u64,
    max_window_bytes: u64,
    max_symbol_size: u64,
    /// Numbers of the codes besides the sliding window.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    codes: Vec<u8>,
}

impl ParametersSet {
    pub(super) fn new(local: bool, parameters: &TransportParameters) -> Self {
        let hex = |id: Option<ConnectionId>| id.map(|id| id.to_string());
        Self {
            owner: if local { "local" } else { "remote" },
            original_destination_connection_id: hex(parameters.original_destination_connection_id),
            initial_source_connection_id: hex(parameters.initial_source_connection_id),
            retry_source_connection_id: hex(parameters.retry_source_connection_id),
            disable_active_migration: parameters.disable_active_migration,
            max_idle_timeout: parameters.max_idle_timeout,
            max_udp_payload_size: parameters.max_udp_payload_size,
            ack_delay_exponent: parameters.ack_delay_exponent,
            max_ack_delay: parameters.max_ack_delay,
            active_connection_id_limit: parameters.active_connection_id_limit,
            initial_max_data: parameters.initial_max_data,
            initial_max_stream_data_bidi_local: parameters.initial_max_stream_data_bidi_local,
            initial_max_stream_data_bidi_remote: parameters.initial_max_stream_data_bidi_remote,
            initial_max_stream_data_uni: parameters.initial_max_stream_data_uni,
            initial_max_streams_bidi: parameters.initial_max_streams_bidi,
            initial_max_streams_uni: parameters.initial_max_streams_uni,
            max_datagram_frame_size: parameters.max_datagram_frame_size,
            grease_quic_bit: parameters.grease_quic_bit,
            reset_stream_at: parameters.reset_stream_at,
            min_ack_delay: parameters.min_ack_delay,
            preferred_address: parameters
                .preferred_address
                .as_deref()
                .copied()
                .map(Preferred::from),
            fec: parameters.fec.map(Fec::from),
        }
    }
}

impl From<PreferredAddress> for Preferred {
    fn from(address: PreferredAddress) -> Self {
        Self {
            ip_v4: address.ipv4.map(|a| a.ip().to_string()),
            port_v4: address.ipv4.as_ref().map(SocketAddrV4::port),
            ip_v6: address.ipv6.map(|a| a.ip().to_string()),
            port_v6: address.ipv6.as_ref().map(SocketAddrV6::port),
            connection_id: address.connection_id.to_string(),
        }
    }
}

impl From<FecParameters> for Fec {
    fn from(fec: FecParameters) -> Self {
        Self {
            max_sessions: fec.max_sessions,
            max_window_symbols: fec.max_window_symbols,
            max_window_bytes: fec.max_window_bytes,
            max_symbol_size: fec.max_symbol_size,
            codes: fec.codes.iter().map(CodeId::get).filter(|&code| code != 0).collect(),
        }
    }
}

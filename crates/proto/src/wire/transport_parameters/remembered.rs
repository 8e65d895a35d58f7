//! The part of a server's parameters that counts for 0-RTT (RFC 9000 section 7.4.1).

use super::TransportParameters;

impl TransportParameters {
    /// The part of a server's parameters that a client may use for 0-RTT on its next connection. Left out are
    /// parameters that belong to one connection, parameters of acknowledgements, which 0-RTT packets do not
    /// carry, and the erasure-coding extension, which is not used in 0-RTT.
    #[must_use]
    pub fn remembered(&self) -> Self {
        Self {
            max_idle_timeout: self.max_idle_timeout,
            max_udp_payload_size: self.max_udp_payload_size,
            initial_max_data: self.initial_max_data,
            initial_max_stream_data_bidi_local: self.initial_max_stream_data_bidi_local,
            initial_max_stream_data_bidi_remote: self.initial_max_stream_data_bidi_remote,
            initial_max_stream_data_uni: self.initial_max_stream_data_uni,
            initial_max_streams_bidi: self.initial_max_streams_bidi,
            initial_max_streams_uni: self.initial_max_streams_uni,
            disable_active_migration: self.disable_active_migration,
            active_connection_id_limit: self.active_connection_id_limit,
            max_datagram_frame_size: self.max_datagram_frame_size,
            ..Self::default()
        }
    }

    /// Whether a client that has kept to the limits of `remembered` has kept to these limits. A server that
    /// accepts 0-RTT must ensure that (RFC 9000 section 7.4.1, RFC 9221 section 3).
    #[must_use]
    pub fn covers(&self, remembered: &Self) -> bool {
        let limits = |p: &Self| {
            [
                p.initial_max_data,
                p.initial_max_stream_data_bidi_local,
                p.initial_max_stream_data_bidi_remote,
                p.initial_max_stream_data_uni,
                p.initial_max_streams_bidi,
                p.initial_max_streams_uni,
                p.active_connection_id_limit,
                p.max_datagram_frame_size,
            ]
        };
        limits(self).into_iter().zip(limits(remembered)).all(|(now, then)| now >= then)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{ConnectionId, Side};
    use crate::wire::transport_parameters::tests::ONE;

    /// Parameters without a default value.
    fn full() -> TransportParameters {
        TransportParameters {
            original_destination_connection_id: ConnectionId::new(&[1; 8]),
            max_idle_timeout: 30_000,
            stateless_reset_token: Some([3; 16]),
            max_udp_payload_size: 1500,
            initial_max_data: 10,
            initial_max_stream_data_bidi_local: 11,
            initial_max_stream_data_bidi_remote: 12,
            initial_max_stream_data_uni: 13,
            initial_max_streams_bidi: 14,
            initial_max_streams_uni: 15,
            ack_delay_exponent: 8,
            max_ack_delay: 99,
            disable_active_migration: true,
            active_connection_id_limit: 7,
            initial_source_connection_id: ConnectionId::new(&[2; 8]),
            retry_source_connection_id: ConnectionId::new(&[4; 8]),
            max_datagram_frame_size: 1200,
            fec: Some(ONE),
            ..TransportParameters::default()
        }
    }

    #[test]
    fn what_belongs_to_one_connection_is_forgotten() {
        let remembered = full().remembered();
        let mut encoded = Vec::new();
        remembered.encode(Side::Server, &mut encoded);
        assert_eq!(TransportParameters::decode(&encoded, Side::Server).unwrap(), remembered);
        let expected = TransportParameters {
            original_destination_connection_id: None,
            stateless_reset_token: None,
            ack_delay_exponent: 3,
            max_ack_delay: 25,
            initial_source_connection_id: None,
            retry_source_connection_id: None,
            fec: None,
            ..full()
        };
        assert_eq!(remembered, expected);
        assert_eq!(remembered.remembered(), remembered);
    }

    #[test]
    fn limits_may_grow_but_not_shrink() {
        let remembered = full().remembered();
        assert!(full().covers(&remembered));
        let raised = TransportParameters { initial_max_data: 11, ..full() };
        assert!(raised.covers(&remembered) && !remembered.covers(&raised));
        let fields: [fn(&mut TransportParameters) -> &mut u64; 8] = [
            |p| &mut p.initial_max_data,
            |p| &mut p.initial_max_stream_data_bidi_local,
            |p| &mut p.initial_max_stream_data_bidi_remote,
            |p| &mut p.initial_max_stream_data_uni,
            |p| &mut p.initial_max_streams_bidi,
            |p| &mut p.initial_max_streams_uni,
            |p| &mut p.active_connection_id_limit,
            |p| &mut p.max_datagram_frame_size,
        ];
        for (index, field) in fields.into_iter().enumerate() {
            let mut reduced = full();
            *field(&mut reduced) -= 1;
            assert!(!reduced.covers(&remembered), "limit {index}");
        }
    }
}

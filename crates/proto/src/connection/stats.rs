//! Counters and gauges of a connection.

use crate::egress::MessageStats;
use crate::fec::FecStats;
use crate::loss_floor::LossFloor;
use crate::streams::StreamStats;
use std::time::Duration;

/// Counters of UDP datagrams and QUIC packets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TrafficStats {
    /// UDP datagrams.
    pub datagrams: u64,
    /// Bytes of UDP payload.
    pub bytes: u64,
    /// QUIC packets.
    pub packets: u64,
}

/// What a connection counts itself. The other statistics are kept where they arise.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) sent: TrafficStats,
    pub(super) received: TrafficStats,
    pub(super) packets_lost: u64,
    pub(super) bytes_lost: u64,
    pub(super) spurious_losses: u64,
    pub(super) probe_timeouts: u64,
    pub(super) undecryptable: u64,
    pub(super) key_updates: u64,
    pub(super) mtu_probes_sent: u64,
    pub(super) mtu_probes_lost: u64,
    pub(super) black_holes: u64,
}

impl Counters {
    /// Statistics of which nothing else is known.
    pub(super) fn report(&self) -> ConnectionStats {
        ConnectionStats {
            sent: self.sent,
            received: self.received,
            packets_lost: self.packets_lost,
            bytes_lost: self.bytes_lost,
            spurious_losses: self.spurious_losses,
            probe_timeouts: self.probe_timeouts,
            undecryptable: self.undecryptable,
            key_updates: self.key_updates,
            mtu_probes_sent: self.mtu_probes_sent,
            mtu_probes_lost: self.mtu_probes_lost,
            black_holes: self.black_holes,
            ..ConnectionStats::default()
        }
    }
}

/// Statistics of a connection.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[non_exhaustive]
pub struct ConnectionStats {
    /// Traffic sent.
    pub sent: TrafficStats,
    /// Traffic received.
    pub received: TrafficStats,
    /// Packets declared lost.
    pub packets_lost: u64,
    /// Bytes of packets declared lost.
    pub bytes_lost: u64,
    /// Packets declared lost that were acknowledged later.
    pub spurious_losses: u64,
    /// Bytes of stream data that were queued for retransmission.
    pub stream_bytes_retransmitted: u64,
    /// Probe timeouts that have expired.
    pub probe_timeouts: u64,
    /// Received packets that could not be opened.
    pub undecryptable: u64,
    /// Key updates of 1-RTT packets, initiated by either end.
    pub key_updates: u64,
    /// Share of recently sent packets that were lost for any cause, as a moving average over about 256
    /// packets.
    pub loss_estimate: f64,
    /// An estimate of the losses that do not depend on the rate: their share and its bounds, how many packets
    /// in a row and how long. Packets whose data the peer recovered count as lost.
    pub loss_floor: LossFloor,
    /// The datagram size that the path is known to carry, in bytes of UDP payload.
    pub udp_payload_size: u16,
    /// Packets sent to find out whether the path carries larger ones.
    pub mtu_probes_sent: u64,
    /// How many of these probes were lost. They do not count as lost packets.
    pub mtu_probes_lost: u64,
    /// How often larger packets alone stopped arriving, so that smaller ones were sent.
    pub black_holes: u64,
    /// Whether the path is known to carry ECN marks (RFC 9000 section 13.4.2).
    pub ecn_capable: bool,
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// Smallest round-trip time.
    pub min_rtt: Duration,
    /// The probe timeout of 1-RTT packets, including backoff.
    pub probe_timeout: Duration,
    /// Congestion window in bytes.
    pub congestion_window: u64,
    /// Bytes in flight.
    pub bytes_in_flight: u64,
    /// Received DATAGRAM frames that were dropped because the application did not read them.
    pub datagrams_dropped_in: u64,
    /// Datagrams of the application that were dropped because they could not be sent in time.
    pub datagrams_dropped_out: u64,
    /// Messages and datagrams sent.
    pub messages: MessageStats,
    /// Streams and flow control.
    pub streams: StreamStats,
    /// Erasure coding.
    pub fec: FecStats,
}

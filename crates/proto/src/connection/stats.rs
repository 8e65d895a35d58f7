//! Counters and gauges of a connection.

use crate::fec::FecStats;
use crate::streams::StreamStats;
use std::time::Duration;

/// Counters of UDP datagrams and QUIC packets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TrafficStats {
    /// UDP datagrams.
    pub datagrams: u64,
    /// Bytes of UDP payload.
    pub bytes: u64,
    /// QUIC packets.
    pub packets: u64,
}

/// What a connection has seen so far.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ConnectionStats {
    /// What was sent.
    pub sent: TrafficStats,
    /// What was received.
    pub received: TrafficStats,
    /// Packets declared lost.
    pub packets_lost: u64,
    /// Bytes of packets declared lost.
    pub bytes_lost: u64,
    /// Packets declared lost that were acknowledged later.
    pub spurious_losses: u64,
    /// Bytes of stream data that were queued to be sent again.
    pub stream_bytes_retransmitted: u64,
    /// Probe timeouts that expired.
    pub probe_timeouts: u64,
    /// Packets received that could not be opened.
    pub undecryptable: u64,
    /// Changes of the keys of 1-RTT packets, whoever began.
    pub key_updates: u64,
    /// Share of recently sent packets that were lost: a moving average over about 256 packets.
    pub loss_estimate: f64,
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// Smallest round-trip time.
    pub min_rtt: Duration,
    /// The probe timeout of 1-RTT packets, with its backoff.
    pub probe_timeout: Duration,
    /// Congestion window in bytes.
    pub congestion_window: u64,
    /// Bytes in flight.
    pub bytes_in_flight: u64,
    /// DATAGRAM frames received that were dropped because the application did not fetch them.
    pub datagrams_dropped_in: u64,
    /// Datagrams of the application that were dropped because they could not be sent in time.
    pub datagrams_dropped_out: u64,
    /// Streams and flow control.
    pub streams: StreamStats,
    /// Erasure coding.
    pub fec: FecStats,
}

/// A moving average of the share of packets lost.
#[derive(Debug, Clone, Copy, Default)]
pub struct LossEstimate(f64);

impl LossEstimate {
    const WEIGHT: f64 = 1.0 / 256.0;

    /// One packet was acknowledged, or declared lost.
    pub fn on_packet(&mut self, lost: bool) {
        self.0 += Self::WEIGHT * (f64::from(u8::from(lost)) - self.0);
    }

    /// Share of packets lost, 0 to 1.
    pub fn get(self) -> f64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimate_settles_at_the_share_lost() {
        let mut estimate = LossEstimate::default();
        for i in 0..10_000 {
            estimate.on_packet(i % 20 == 0);
        }
        assert!((estimate.get() - 0.05).abs() < 0.01, "{}", estimate.get());
    }
}

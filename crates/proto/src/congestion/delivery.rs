//! Delivery rate estimation (draft-ietf-ccwg-bbr section 4.1, draft-cheng-iccrg-delivery-rate).
//!
//! Each packet carries a snapshot of what had been delivered when it was sent; its
//! acknowledgement turns that into a rate: the slower of how fast the data since then was sent
//! and how fast it was acknowledged.

use super::Packet;
use super::arithmetic::rate_of;
use std::time::{Duration, Instant};

/// Snapshot that a controller takes when a packet is sent and gets back with the packet's fate.
/// Only the controller that made it can read it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PacketState {
    /// Bytes delivered before.
    delivered: u64,
    /// Bytes lost before.
    lost: u64,
    /// When `delivered` last changed, nanoseconds of the sampler's clock.
    delivered_time: u64,
    /// When the flight that this packet ends began to be sent, same clock.
    first_sent_time: u64,
    /// Bytes in flight with this packet; a window never reaches the type's limit.
    tx_in_flight: u32,
    /// Whether a lack of data may show in this packet's sample.
    app_limited: bool,
}

impl PacketState {
    /// Bytes in flight just after the packet was sent.
    pub(super) fn tx_in_flight(&self) -> u64 {
        u64::from(self.tx_in_flight)
    }

    /// Whether the application limited the rate when the packet was sent.
    pub(super) fn app_limited(&self) -> bool {
        self.app_limited
    }

    /// Bytes lost on the connection before the packet was sent.
    pub(super) fn lost_before(&self) -> u64 {
        self.lost
    }
}

/// What one acknowledgement tells about the path.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RateSample {
    /// Bytes per second; 0 if this acknowledgement allows no estimate.
    pub(super) delivery_rate: u64,
    /// Whether the application, not the path, may have set `delivery_rate`.
    pub(super) app_limited: bool,
    /// Bytes delivered since the newest acknowledged packet was sent.
    pub(super) delivered: u64,
    /// Bytes that had been delivered when it was sent.
    pub(super) prior_delivered: u64,
    /// Bytes that this acknowledgement newly delivered.
    pub(super) newly_acked: u64,
    /// Bytes in flight just after the newest acknowledged packet was sent.
    pub(super) tx_in_flight: u64,
    /// Bytes declared lost since it was sent.
    pub(super) lost: u64,
    /// Its round-trip time, acknowledgement delay included.
    pub(super) rtt: Duration,
}

/// Per-connection state of the estimator.
#[derive(Debug, Clone, Default)]
pub(super) struct DeliverySampler {
    /// Zero of the sampler's clock: the first packet. Nanoseconds since then take half of the
    /// space of an `Instant` in every sent packet.
    epoch: Option<Instant>,
    delivered: u64,
    lost: u64,
    delivered_time: u64,
    first_sent_time: u64,
    /// Samples are application-limited until more than this was delivered; 0 if they are not.
    app_limited_until: u64,
}

impl DeliverySampler {
    /// Bytes delivered so far.
    pub(super) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Bytes declared lost so far.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// Whether packets sent now give application-limited samples.
    pub(super) fn is_app_limited(&self) -> bool {
        self.app_limited_until != 0
    }

    /// A packet is sent while `in_flight` other bytes are; `app_limited` if there was nothing to
    /// send just before it.
    pub(super) fn on_packet_sent(
        &mut self,
        now: Instant,
        bytes: u64,
        in_flight: u64,
        app_limited: bool,
    ) -> PacketState {
        let now = nanos_since(*self.epoch.get_or_insert(now), now);
        if in_flight == 0 {
            self.first_sent_time = now;
            self.delivered_time = now;
        }
        if app_limited {
            self.mark_app_limited(in_flight);
        }
        PacketState {
            delivered: self.delivered,
            lost: self.lost,
            delivered_time: self.delivered_time,
            first_sent_time: self.first_sent_time,
            tx_in_flight: u32::try_from(in_flight.saturating_add(bytes)).unwrap_or(u32::MAX),
            app_limited: self.is_app_limited(),
        }
    }

    /// Samples are application-limited until what is in flight now has left.
    pub(super) fn mark_app_limited(&mut self, in_flight: u64) {
        self.app_limited_until = self.delivered.saturating_add(in_flight).max(1);
    }

    /// Packets were declared lost.
    pub(super) fn on_lost(&mut self, bytes: u64) {
        self.lost = self.lost.saturating_add(bytes);
    }

    /// Packets left the flight without a fate: what they would have delivered is not waited for.
    pub(super) fn on_discarded(&mut self, bytes: u64) {
        if self.is_app_limited() {
            self.app_limited_until = self.app_limited_until.saturating_sub(bytes).max(1);
        }
    }

    /// Packets were acknowledged; `min_rtt` is the smallest round trip seen. `None` if `acked` is
    /// empty.
    pub(super) fn on_packets_acked(
        &mut self,
        now: Instant,
        acked: &[Packet],
        min_rtt: Duration,
    ) -> Option<RateSample> {
        let newest = acked.iter().max_by_key(|packet| (packet.sent, packet.pn))?;
        let newly_acked = acked.iter().fold(0u64, |sum, packet| sum.saturating_add(packet.bytes));
        let epoch = self.epoch.unwrap_or(newest.sent);
        let sent = nanos_since(epoch, newest.sent);
        self.delivered = self.delivered.saturating_add(newly_acked);
        self.delivered_time = nanos_since(epoch, now);
        self.first_sent_time = sent;
        if self.delivered > self.app_limited_until {
            self.app_limited_until = 0;
        }

        let state = &newest.state;
        let delivered = self.delivered.saturating_sub(state.delivered);
        let send_elapsed = sent.saturating_sub(state.first_sent_time);
        let ack_elapsed = self.delivered_time.saturating_sub(state.delivered_time);
        let interval = Duration::from_nanos(send_elapsed.max(ack_elapsed));
        // Nothing can be acknowledged in less than a round trip: such a sample is noise.
        let delivery_rate = if interval < min_rtt { 0 } else { rate_of(delivered, interval) };
        Some(RateSample {
            delivery_rate,
            app_limited: state.app_limited,
            delivered,
            prior_delivered: state.delivered,
            newly_acked,
            tx_in_flight: state.tx_in_flight(),
            lost: self.lost.saturating_sub(state.lost),
            rtt: now.saturating_duration_since(newest.sent),
        })
    }
}

/// The sampler's clock.
fn nanos_since(epoch: Instant, time: Instant) -> u64 {
    u64::try_from(time.saturating_duration_since(epoch).as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn packet(pn: u64, sent: Instant, state: PacketState) -> Packet {
        Packet { pn, bytes: 1_000, sent, state }
    }

    #[test]
    fn a_snapshot_is_small() {
        assert!(size_of::<PacketState>() <= 40);
    }

    #[test]
    fn rate_is_the_slower_of_sending_and_acknowledging() {
        let t = Instant::now();
        let mut sampler = DeliverySampler::default();
        // Ten packets, one every 10 ms, all acknowledged at once: the burst of acknowledgements
        // must not look like a fast path.
        let sent: Vec<_> = (0..10u64)
            .map(|i| {
                let at = t + 10 * MS * i as u32;
                packet(i, at, sampler.on_packet_sent(at, 1_000, 1_000 * i, false))
            })
            .collect();
        let first = sampler.on_packets_acked(t + 100 * MS, &sent[..1], 50 * MS).unwrap();
        assert_eq!((first.delivery_rate, first.delivered), (10_000, 1_000));
        let rest = sampler.on_packets_acked(t + 101 * MS, &sent[1..], 50 * MS).unwrap();
        // 10 000 bytes since the first send, 101 ms ago.
        assert_eq!(rest.delivered, 10_000);
        assert_eq!(rest.delivery_rate, 10_000 * 1_000 / 101);
        assert_eq!(rest.newly_acked, 9_000);
        assert_eq!(rest.tx_in_flight, 10_000);
        assert_eq!(rest.rtt, 11 * MS);
    }

    #[test]
    fn slow_sending_bounds_the_rate() {
        let t = Instant::now();
        let mut sampler = DeliverySampler::default();
        let a = packet(0, t, sampler.on_packet_sent(t, 1_000, 0, false));
        let late = t + 190 * MS;
        let b = packet(1, late, sampler.on_packet_sent(late, 1_000, 1_000, false));
        // Both acknowledgements were held up and come together.
        let sample = sampler.on_packets_acked(t + 200 * MS, &[a, b], 10 * MS).unwrap();
        assert_eq!(sample.delivery_rate, 10_000);
    }

    #[test]
    fn an_idle_period_is_not_part_of_a_sample() {
        let t = Instant::now();
        let mut sampler = DeliverySampler::default();
        let a = packet(0, t, sampler.on_packet_sent(t, 1_000, 0, false));
        sampler.on_packets_acked(t + 10 * MS, &[a], 10 * MS).unwrap();
        let later = t + 10_000 * MS;
        let b = packet(1, later, sampler.on_packet_sent(later, 1_000, 0, true));
        let sample = sampler.on_packets_acked(later + 10 * MS, &[b], 10 * MS).unwrap();
        assert_eq!(sample.delivery_rate, 100_000);
        assert!(sample.app_limited);
    }

    #[test]
    fn the_bubble_leaves_with_what_was_in_flight() {
        let t = Instant::now();
        let mut sampler = DeliverySampler::default();
        let a = packet(0, t, sampler.on_packet_sent(t, 1_000, 0, false));
        let b = packet(1, t + MS, sampler.on_packet_sent(t + MS, 1_000, 1_000, true));
        let c = packet(2, t + MS, sampler.on_packet_sent(t + MS, 1_000, 2_000, false));
        assert!(!a.state.app_limited() && b.state.app_limited() && c.state.app_limited());
        sampler.on_packets_acked(t + 20 * MS, &[a], 10 * MS).unwrap();
        assert!(sampler.is_app_limited());
        sampler.on_packets_acked(t + 21 * MS, &[b], 10 * MS).unwrap();
        assert!(!sampler.is_app_limited());
        let d = sampler.on_packet_sent(t + 21 * MS, 1_000, 1_000, false);
        assert!(!d.app_limited());
    }

    #[test]
    fn samples_shorter_than_the_path_are_dropped() {
        let t = Instant::now();
        let mut sampler = DeliverySampler::default();
        let a = packet(0, t, sampler.on_packet_sent(t, 1_000, 0, false));
        let sample = sampler.on_packets_acked(t + 5 * MS, &[a], 10 * MS).unwrap();
        assert_eq!((sample.delivery_rate, sample.delivered), (0, 1_000));
        assert!(sampler.on_packets_acked(t + 6 * MS, &[], 10 * MS).is_none());
    }

    #[test]
    fn losses_since_the_packet_was_sent_are_counted() {
        let t = Instant::now();
        let mut sampler = DeliverySampler::default();
        sampler.on_lost(500);
        let a = packet(0, t, sampler.on_packet_sent(t, 1_000, 0, false));
        sampler.on_lost(3_000);
        let sample = sampler.on_packets_acked(t + 10 * MS, &[a], 10 * MS).unwrap();
        assert_eq!((sample.lost, a.state.lost_before(), sampler.lost()), (3_000, 500, 3_500));
    }
}

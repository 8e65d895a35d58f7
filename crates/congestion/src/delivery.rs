//! Delivery rate estimation (draft-ietf-ccwg-bbr section 4.1, draft-cheng-iccrg-delivery-rate).
//!
//! Each packet carries a snapshot of the bytes delivered until it was sent. Its acknowledgement turns the
//! snapshot into a rate: the lower of the rates at which the data since then was sent and acknowledged.
//!
//! A flight that follows a silence and ends within a round trip takes a round trip and its own length to be
//! acknowledged, so that this rate is at most its size over the round-trip time, however fast the path is.
//! The spacing of its acknowledgements tells more: see [`Train`].

use super::arithmetic::{nanos, rate_of};
use super::{Packet, PacketState, Sent};
use std::time::{Duration, Instant};

/// Whether a lack of data may affect the packet's sample. This bit shares a word with the bytes in
/// flight.
const APP_LIMITED: u64 = 1 << 63;

/// The data of a flight behind its first acknowledgement, as far as it was sent before that came and is
/// acknowledged: how long it took to be sent, and to be acknowledged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Train {
    /// Bytes.
    pub(super) bytes: u64,
    pub(super) sent: Duration,
    pub(super) acked: Duration,
}

/// The first acknowledgement of a flight that followed a silence.
#[derive(Debug, Clone, Copy)]
struct FirstAck {
    /// When it came, and when the newest packet that it acknowledges was sent, on the sampler's clock.
    at: u64,
    sent: u64,
    /// Bytes delivered with it.
    delivered: u64,
}

impl Train {
    /// The lower of the rates at which it was sent and acknowledged, in bytes per second; 0 if it is empty.
    pub(super) fn rate(&self) -> u64 {
        rate_of(self.bytes, self.sent.max(self.acked))
    }
}

/// The sampler's state when a packet was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Snapshot {
    /// Bytes delivered by then.
    pub(super) delivered: u64,
    /// Bytes lost by then.
    pub(super) lost: u64,
    /// When `delivered` last changed, in nanoseconds of the sampler's clock.
    pub(super) delivered_time: u64,
    /// When the first packet of the flight that ends with this packet was sent, on the same clock.
    pub(super) first_sent_time: u64,
    /// Bytes in flight including this packet, up to 2^63 - 1: no window reaches that.
    pub(super) tx_in_flight: u64,
    /// Whether a lack of data may affect this packet's sample.
    pub(super) app_limited: bool,
}

impl Snapshot {
    fn pack(self) -> PacketState {
        let limited = if self.app_limited { APP_LIMITED } else { 0 };
        PacketState::from_words([
            self.delivered,
            self.lost,
            self.delivered_time,
            self.first_sent_time,
            self.tx_in_flight.min(APP_LIMITED - 1) | limited,
        ])
    }

    pub(super) fn unpack(state: PacketState) -> Self {
        let [delivered, lost, delivered_time, first_sent_time, last] = state.words();
        Self {
            delivered,
            lost,
            delivered_time,
            first_sent_time,
            tx_in_flight: last & !APP_LIMITED,
            app_limited: last & APP_LIMITED != 0,
        }
    }
}

/// The measurements from one acknowledgement.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RateSample {
    /// Delivery rate in bytes per second; 0 if this acknowledgement allows no estimate.
    pub(super) delivery_rate: u64,
    /// Whether `delivery_rate` may be limited by the application instead of the path.
    pub(super) app_limited: bool,
    /// Bytes delivered since the newest acknowledged packet was sent.
    pub(super) delivered: u64,
    /// Bytes that had been delivered when that packet was sent.
    pub(super) prior_delivered: u64,
    /// Bytes newly delivered by this acknowledgement.
    pub(super) newly_acked: u64,
    /// Bytes in flight just after the newest acknowledged packet was sent.
    pub(super) tx_in_flight: u64,
    /// Bytes declared lost since that packet was sent.
    pub(super) lost: u64,
    /// The round-trip time of the newest acknowledged packet, including the acknowledgement delay.
    pub(super) rtt: Duration,
    /// The train of the flight after the last silence, if it goes up to the newest acknowledged packet.
    pub(super) train: Option<Train>,
}

/// The estimator's state for one connection.
#[derive(Debug, Clone, Default)]
pub(super) struct DeliverySampler {
    /// Zero of the sampler's clock: the time of the first packet. Nanoseconds since then take half
    /// the space of an `Instant` in every sent packet.
    epoch: Option<Instant>,
    delivered: u64,
    lost: u64,
    delivered_time: u64,
    first_sent_time: u64,
    /// When the flight began that followed the last silence, and its first acknowledgement.
    flight_begun: u64,
    first_ack: Option<FirstAck>,
    /// Samples are application-limited until more bytes than this are delivered; 0 if they are not.
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

    /// Whether packets sent now yield application-limited samples.
    pub(super) fn is_app_limited(&self) -> bool {
        self.app_limited_until != 0
    }

    /// Records that a packet is sent.
    pub(super) fn on_packet_sent(&mut self, now: Instant, packet: &Sent) -> PacketState {
        let now = nanos_since(*self.epoch.get_or_insert(now), now);
        if packet.in_flight == 0 {
            self.first_sent_time = now;
            self.delivered_time = now;
            (self.flight_begun, self.first_ack) = (now, None);
        }
        if packet.app_limited {
            self.mark_app_limited(packet.in_flight);
        }
        let snapshot = Snapshot {
            delivered: self.delivered,
            lost: self.lost,
            delivered_time: self.delivered_time,
            first_sent_time: self.first_sent_time,
            tx_in_flight: packet.in_flight.saturating_add(packet.bytes),
            app_limited: self.is_app_limited(),
        };
        snapshot.pack()
    }

    /// Makes samples application-limited until everything now in flight has left.
    pub(super) fn mark_app_limited(&mut self, in_flight: u64) {
        self.app_limited_until = self.delivered.saturating_add(in_flight).max(1);
    }

    /// Counts bytes declared lost.
    pub(super) fn on_lost(&mut self, bytes: u64) {
        self.lost = self.lost.saturating_add(bytes);
    }

    /// Handles the arrival of a packet of `bytes` that had been declared lost.
    ///
    /// Snapshots of packets sent between loss and refutation include the loss, so their samples report
    /// `bytes` fewer lost bytes than there are. The error ends after a round trip, with these packets.
    pub(super) fn on_refuted(&mut self, now: Instant, bytes: u64) {
        self.lost = self.lost.saturating_sub(bytes);
        self.delivered = self.delivered.saturating_add(bytes);
        self.delivered_time = self.epoch.map_or(0, |epoch| nanos_since(epoch, now));
    }

    /// Handles packets that left the flight without an outcome: their delivery is no longer
    /// awaited.
    pub(super) fn on_discarded(&mut self, bytes: u64) {
        if self.is_app_limited() {
            self.app_limited_until = self.app_limited_until.saturating_sub(bytes).max(1);
        }
    }

    /// Handles the acknowledgement of packets. `min_rtt` is the smallest round-trip time seen.
    /// Returns `None` if `acked` is empty.
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

        let state = Snapshot::unpack(newest.state);
        let delivered = self.delivered.saturating_sub(state.delivered);
        let send_elapsed = sent.saturating_sub(state.first_sent_time);
        let ack_elapsed = self.delivered_time.saturating_sub(state.delivered_time);
        let interval = Duration::from_nanos(send_elapsed.max(ack_elapsed));
        // No acknowledgement takes less than a round trip, so a sample over a shorter interval is noise.
        let delivery_rate = if interval < min_rtt { 0 } else { rate_of(delivered, interval) };
        let train = self.train(sent, state.delivered_time);
        Some(RateSample {
            delivery_rate,
            app_limited: state.app_limited,
            delivered,
            prior_delivered: state.delivered,
            newly_acked,
            tx_in_flight: state.tx_in_flight,
            lost: self.lost.saturating_sub(state.lost),
            rtt: now.saturating_duration_since(newest.sent),
            train,
        })
    }

    /// Whether a packet belongs to the flight after the last silence, and was sent before the first
    /// acknowledgement of that flight came.
    pub(super) fn is_of_flight(&self, state: PacketState) -> bool {
        Snapshot::unpack(state).delivered_time == self.flight_begun
    }

    /// The train up to the newest acknowledged packet, which was sent at `sent`, when data had been delivered
    /// last at `delivered_time`. `None` if that packet is not of the flight after the last silence.
    fn train(&mut self, sent: u64, delivered_time: u64) -> Option<Train> {
        if delivered_time != self.flight_begun {
            return None;
        }
        let (at, delivered) = (self.delivered_time, self.delivered);
        let first = *self.first_ack.get_or_insert(FirstAck { at, sent, delivered });
        Some(Train {
            bytes: delivered.saturating_sub(first.delivered),
            sent: Duration::from_nanos(sent.saturating_sub(first.sent)),
            acked: Duration::from_nanos(at.saturating_sub(first.at)),
        })
    }
}

/// Converts `time` to the sampler's clock.
fn nanos_since(epoch: Instant, time: Instant) -> u64 {
    nanos(time.saturating_duration_since(epoch))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SpaceId;

    const MS: Duration = Duration::from_millis(1);

    /// Sends a packet of 1000 bytes.
    fn send(sampler: &mut DeliverySampler, now: Instant, pn: u64, in_flight: u64) -> Packet {
        send_limited(sampler, now, pn, in_flight, false)
    }

    fn send_limited(
        sampler: &mut DeliverySampler,
        now: Instant,
        pn: u64,
        in_flight: u64,
        app_limited: bool,
    ) -> Packet {
        let sent = Sent { in_flight, app_limited, ..Sent::new(SpaceId::Data, pn, 1_000) };
        Packet::new(&sent, now, sampler.on_packet_sent(now, &sent))
    }

    fn is_limited(packet: &Packet) -> bool {
        Snapshot::unpack(packet.state).app_limited
    }

    #[test]
    fn a_snapshot_survives_the_packet() {
        for (tx_in_flight, app_limited) in [(0, true), (1_200, false), (APP_LIMITED - 1, true)] {
            let snapshot = Snapshot {
                delivered: u64::MAX,
                lost: 2,
                delivered_time: 3,
                first_sent_time: 4,
                tx_in_flight,
                app_limited,
            };
            assert_eq!(Snapshot::unpack(snapshot.pack()), snapshot);
        }
        let sent = Sent { in_flight: u64::MAX, ..Sent::new(SpaceId::Data, 0, 1_000) };
        let state = DeliverySampler::default().on_packet_sent(Instant::now(), &sent);
        let snapshot = Snapshot::unpack(state);
        assert_eq!((snapshot.tx_in_flight, snapshot.app_limited), (APP_LIMITED - 1, false));
    }

    #[test]
    fn rate_is_the_slower_of_sending_and_acknowledging() {
        let t = Instant::now();
        let mut sampler = DeliverySampler::default();
        // Ten packets, sent 10 ms apart, are all acknowledged at once. The burst of
        // acknowledgements must not look like a fast path.
        let sent: Vec<_> = (0..10u64)
            .map(|i| {
                let at = t + 10 * MS * i as u32;
                send(&mut sampler, at, i, 1_000 * i)
            })
            .collect();
        let first = sampler.on_packets_acked(t + 100 * MS, &sent[..1], 50 * MS).unwrap();
        assert_eq!((first.delivery_rate, first.delivered), (10_000, 1_000));
        let rest = sampler.on_packets_acked(t + 101 * MS, &sent[1..], 50 * MS).unwrap();
        // 10 000 bytes since the first packet was sent 101 ms ago.
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
        let a = send(&mut sampler, t, 0, 0);
        let late = t + 190 * MS;
        let b = send(&mut sampler, late, 1, 1_000);
        // Both acknowledgements were delayed and arrive together.
        let sample = sampler.on_packets_acked(t + 200 * MS, &[a, b], 10 * MS).unwrap();
        assert_eq!(sample.delivery_rate, 10_000);
    }

    #[test]
    fn an_idle_period_is_not_part_of_a_sample() {
        let t = Instant::now();
        let mut sampler = DeliverySampler::default();
        let a = send(&mut sampler, t, 0, 0);
        sampler.on_packets_acked(t + 10 * MS, &[a], 10 * MS).unwrap();
        let later = t + 10_000 * MS;
        let b = send_limited(&mut sampler, later, 1, 0, true);
        let sample = sampler.on_packets_acked(later + 10 * MS, &[b], 10 * MS).unwrap();
        assert_eq!(sample.delivery_rate, 100_000);
        assert!(sample.app_limited);
    }

    #[test]
    fn the_bubble_leaves_with_what_was_in_flight() {
        let t = Instant::now();
        let mut sampler = DeliverySampler::default();
        let a = send(&mut sampler, t, 0, 0);
        let b = send_limited(&mut sampler, t + MS, 1, 1_000, true);
        let c = send(&mut sampler, t + MS, 2, 2_000);
        assert!(!is_limited(&a) && is_limited(&b) && is_limited(&c));
        sampler.on_packets_acked(t + 20 * MS, &[a], 10 * MS).unwrap();
        assert!(sampler.is_app_limited());
        sampler.on_packets_acked(t + 21 * MS, &[b], 10 * MS).unwrap();
        assert!(!sampler.is_app_limited());
        let d = send(&mut sampler, t + 21 * MS, 3, 1_000);
        assert!(!is_limited(&d));
    }

    #[test]
    fn samples_shorter_than_the_path_are_dropped() {
        let t = Instant::now();
        let mut sampler = DeliverySampler::default();
        let a = send(&mut sampler, t, 0, 0);
        let sample = sampler.on_packets_acked(t + 5 * MS, &[a], 10 * MS).unwrap();
        assert_eq!((sample.delivery_rate, sample.delivered), (0, 1_000));
        assert!(sampler.on_packets_acked(t + 6 * MS, &[], 10 * MS).is_none());
    }

    #[test]
    fn losses_since_the_packet_was_sent_are_counted() {
        let t = Instant::now();
        let mut sampler = DeliverySampler::default();
        sampler.on_lost(500);
        let a = send(&mut sampler, t, 0, 0);
        sampler.on_lost(3_000);
        let sample = sampler.on_packets_acked(t + 10 * MS, &[a], 10 * MS).unwrap();
        let before = Snapshot::unpack(a.state).lost;
        assert_eq!((sample.lost, before, sampler.lost()), (3_000, 500, 3_500));
    }

    #[test]
    fn a_refuted_loss_was_a_delivery() {
        let t = Instant::now();
        let mut sampler = DeliverySampler::default();
        let sent: Vec<_> = (0..3).map(|pn| send(&mut sampler, t, pn, 1_000 * pn)).collect();
        sampler.on_lost(2_000);
        sampler.on_refuted(t + 15 * MS, 1_000);
        let sample = sampler.on_packets_acked(t + 20 * MS, &sent[2..], 10 * MS).unwrap();
        assert_eq!((sample.lost, sample.delivered, sample.newly_acked), (1_000, 2_000, 1_000));
        assert_eq!(sample.delivery_rate, 100_000);
    }
}

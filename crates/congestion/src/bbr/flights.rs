//! Flights after a silence: how fast the path carries what is sent within a round trip.
//!
//! An application that sends a flight now and then, such as a frame or an update of a screen, ends each flight
//! before its first acknowledgement. The delivery rate of the draft is then the size of the flight over the
//! round-trip time, and pacing at such a rate takes the flight as long as a round trip. The spacing of the
//! acknowledgements ([`Train`]) shows what the path carries: flights are sent at twice the known rate as long as
//! they arrive as fast as they were sent, at the rate at which they arrive once that is slower, and seldom faster
//! once packets of a faster one were lost. The window bounds how much is sent this way, as it does all data.

use super::Bbr;
use crate::Sent;
use crate::arithmetic::percent;
use crate::delivery::Train;

/// The least data behind the first acknowledgement that tells a rate: ten packets. The spacing of less tells
/// little, since acknowledgements come at intervals.
const MIN_TRAIN: u64 = 12_000;
/// How much faster than the known rate a flight is sent, in percent: while no limit was met, and to find out
/// whether a limit still stands.
const SEARCH_GAIN: u64 = 200;
const PROBE_GAIN: u64 = 125;
/// What is left of the known rate after a flight at that rate had losses, in percent.
const BACK_OFF: u64 = 85;
/// The weight of a flight in the share that is lost at the known rate.
const LOSS_WEIGHT: f64 = 1.0 / 8.0;
/// A flight met a limit if it lost more than one packet and than so many times that share.
const TOLERATED: f64 = 2.0;
/// The number of flights from one probe to the next: at first, and at most after probes that had losses.
const PROBE_FLIGHTS: u32 = 8;
const MAX_PROBE_FLIGHTS: u32 = 128;
/// A flight that takes this much longer to arrive than to be sent, in percent, met the limit of the path.
const SPREAD: u32 = 125;

/// The flight after the last silence.
#[derive(Debug, Clone, Copy, Default)]
struct Flight {
    /// How fast it is sent, in percent of the known rate; 0 once the first acknowledgement came.
    gain: u64,
    /// Bytes sent before the first acknowledgement, and how many of them were lost.
    sent: u64,
    lost: u64,
    marked: bool,
    /// The fastest train of at least half the flight: the last acknowledgement may be delayed.
    train: Train,
}

/// What flights tell about the path.
#[derive(Debug, Clone, Default)]
pub(super) struct Flights {
    /// The rate at which the path carries a flight, in bytes per second; 0 if it is not known.
    rate: u64,
    /// How many flights are sent at that rate before the next probe, once a limit was met.
    pause: Option<u32>,
    /// The number of flights from one probe to the next.
    period: u32,
    /// The share of bytes that flights at the known rate lost lately.
    loss: f64,
    flight: Flight,
}

impl Flights {
    /// The rate for the flight that begins the path's use after a silence, in bytes per second; 0 if it is not
    /// known, or later than the first acknowledgement.
    pub(super) fn pacing_rate(&self) -> u64 {
        percent(self.rate, self.flight.gain)
    }

    /// Handles an acknowledgement.
    pub(super) fn on_acked(&mut self, train: Option<Train>) {
        self.flight.gain = 0;
        let enough = |train: &Train| train.bytes >= MIN_TRAIN.max(self.flight.sent / 2);
        if let Some(train) = train.filter(enough)
            && train.rate() > self.flight.train.rate()
        {
            self.flight.train = train;
        }
    }

    /// Handles the loss of a packet that was sent before the first acknowledgement of the flight.
    pub(super) fn on_lost(&mut self, bytes: u64) {
        self.flight.lost = self.flight.lost.saturating_add(bytes);
    }

    /// Handles a mark of the network.
    pub(super) fn on_marked(&mut self) {
        self.flight.marked = true;
    }

    /// Chooses the rate of the next flight.
    fn begin(&mut self) {
        let gain = match self.pause {
            None => SEARCH_GAIN,
            Some(0) => PROBE_GAIN,
            Some(_) => 100,
        };
        self.flight = Flight { gain, ..Flight::default() };
    }

    /// Whether flights are sent faster than the known rate at present.
    fn probes(&self) -> bool {
        self.pause.is_none_or(|pause| pause == 0)
    }

    /// Learns from the last flight, all of whose packets have left the path.
    fn conclude(&mut self, mtu: u64) {
        let Flight { marked, train, sent, lost, .. } = self.flight;
        if sent < MIN_TRAIN {
            return;
        }
        // The share that the path loses at any rate is learned from flights alone: a policer without a queue
        // takes the end of each flight that is too fast, which other estimates may take for a floor.
        let expected = sent as f64 * self.loss * TOLERATED;
        let congested = lost > mtu.saturating_add(expected as u64);
        if !self.probes() {
            self.loss += (lost as f64 / sent as f64 - self.loss) * LOSS_WEIGHT;
        }
        if congested || marked {
            self.meet_limit();
            return;
        }
        let rate = train.rate();
        if rate == 0 {
            return;
        }
        if train.acked > train.sent * SPREAD / 100 {
            // The path spreads the flight: this is its rate, whatever was known.
            self.rate = rate;
            self.wait(PROBE_FLIGHTS);
        } else {
            self.rate = self.rate.max(rate);
            match &mut self.pause {
                Some(0) => self.wait(PROBE_FLIGHTS),
                Some(pause) => *pause -= 1,
                None => {}
            }
        }
    }

    /// A flight had losses that its rate may have caused.
    fn meet_limit(&mut self) {
        if !self.probes() {
            self.rate = percent(self.rate, BACK_OFF);
        }
        self.wait((self.period * 2).clamp(PROBE_FLIGHTS, MAX_PROBE_FLIGHTS));
    }

    /// Sends so many flights at the known rate.
    fn wait(&mut self, flights: u32) {
        (self.period, self.pause) = (flights, Some(flights));
    }
}

impl Bbr {
    /// Counts a packet that is sent.
    pub(super) fn count_flight(&mut self, packet: &Sent) {
        if self.flights.flight.gain > 0 {
            self.flights.flight.sent = self.flights.flight.sent.saturating_add(packet.bytes);
        }
    }

    /// Learns from a flight once nothing of it is in flight, and prepares for the next.
    pub(super) fn end_flight(&mut self) {
        if self.in_flight == 0 {
            self.flights.conclude(self.mtu());
            self.flights.begin();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MAX_WINDOW;
    use crate::bottleneck::MTU;
    use crate::rtt::RttEstimator;
    use crate::{CongestionController, Lost, Packet, SpaceId, WindowLimits};
    use std::time::{Duration, Instant};

    const MS: Duration = Duration::from_millis(1);
    const RTT: Duration = Duration::from_millis(200);
    /// Packets of a flight.
    const PACKETS: u64 = 100;

    /// A path that takes `rate` bytes per second, and drops what is sent faster once `bucket` bytes are used
    /// up; without a bucket it queues.
    struct Path {
        rate: u64,
        bucket: Option<u64>,
    }

    struct Sender {
        bbr: Bbr,
        rtt: RttEstimator,
        now: Instant,
        pn: u64,
    }

    impl Sender {
        fn new() -> Self {
            let bbr = Bbr::new(WindowLimits::new(MTU as u16, MAX_WINDOW), 1);
            let mut rtt = RttEstimator::default();
            let now = Instant::now();
            rtt.update(now, RTT, Duration::ZERO);
            Self { bbr, rtt, now, pn: 0 }
        }

        /// Sends a flight at the pacing rate. Returns the rate in bytes per second, and how many packets are
        /// lost.
        fn flight(&mut self, path: &Path) -> (u64, u64) {
            let rate = self.bbr.pacing_rate(&self.rtt).unwrap();
            let interval = Duration::from_secs_f64(MTU as f64 / rate as f64);
            let (mut acks, mut lost, mut free) = (Vec::new(), Vec::new(), self.now);
            for i in 0..PACKETS {
                let at = self.now + interval * i as u32;
                let sent = Sent::new(SpaceId::Data, self.pn, MTU);
                let sent = Sent { in_flight: i * MTU, app_limited: i + 1 == PACKETS, ..sent };
                let state = self.bbr.on_packet_sent(at, &sent);
                self.pn += 1;
                let passed = (path.rate as f64 * (at - self.now).as_secs_f64()) as u64;
                let sent_so_far = (i + 1 - lost.len() as u64) * MTU;
                match path.bucket {
                    Some(bucket) if sent_so_far > bucket + passed => {
                        lost.push(Lost::new(&sent, at, state));
                    }
                    Some(_) => acks.push((at + RTT, Packet::new(&sent, at, state))),
                    None => {
                        free =
                            free.max(at) + Duration::from_secs_f64(MTU as f64 / path.rate as f64);
                        acks.push((free + RTT, Packet::new(&sent, at, state)));
                    }
                }
            }
            let (arrived, count) = (acks.len(), lost.len() as u64);
            for (index, (at, packet)) in acks.into_iter().enumerate() {
                self.now = at;
                let left = (arrived - index - 1) as u64 + count;
                self.bbr.on_packets_acked(at, &[packet], &self.rtt, left * MTU, true);
            }
            if count > 0 {
                self.bbr.on_packets_lost(self.now + MS, &lost, false, 0);
            }
            self.now += Duration::from_secs(1);
            (rate, count)
        }
    }

    #[test]
    fn flights_go_at_the_rate_of_the_path_and_follow_it() {
        let mut sender = Sender::new();
        for rate in [10_000_000, 2_000_000, 6_000_000] {
            let path = Path { rate, bucket: None };
            let rates: Vec<_> = (0..60).map(|_| sender.flight(&path).0).collect();
            let near = rates[40..].iter().filter(|paced| (rate..rate * 13 / 10).contains(*paced));
            assert!(near.count() >= 15, "{rate}: {rates:?}");
        }
    }

    #[test]
    fn few_flights_are_faster_than_a_policer_lets_pass() {
        let mut sender = Sender::new();
        let path = Path { rate: 2_000_000, bucket: Some(30_000) };
        let lossy = (0..200).filter(|_| sender.flight(&path).1 > 0).count();
        assert!(lossy <= 12, "{lossy}");
        // It lets 120 kB pass in 45 ms: 2.7 MB/s.
        let (rate, _) = sender.flight(&path);
        assert!((1_800_000..2_700_000).contains(&rate), "{rate}");
    }
}

//! Simulates a sender and a bottleneck in virtual time, to test controllers in a closed loop. Used
//! by the tests and the conformance kit.

use super::{CongestionController, Pacer, Packet, Sent};
use crate::SpaceId;
use crate::rtt::RttEstimator;
use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};
use sutura_random::SplitMix64;

pub(crate) const MTU: u64 = 1_200;
const PACKET_THRESHOLD: u64 = 3;

/// The simulated path. Losses happen after the bottleneck, so lost packets use its capacity.
#[derive(Debug, Clone)]
pub(crate) struct BottleneckPath {
    /// The rate in bytes per second.
    pub(crate) rate: u64,
    /// The round-trip time when the queue is empty.
    pub(crate) rtt: Duration,
    /// The size of the queue in bytes.
    pub(crate) queue: u64,
    /// Random losses per million packets.
    pub(crate) loss_ppm: u64,
    /// Packets that find more bytes than this in the queue are marked.
    pub(crate) mark_above: Option<u64>,
    /// Acknowledgements are sent at multiples of this; zero means at once.
    pub(crate) aggregation: Duration,
}

impl BottleneckPath {
    /// A path with `mbit` Mbit/s, `rtt` ms, and a queue of `bdps` percent of the bandwidth-delay
    /// product.
    pub(crate) fn new(mbit: u64, rtt: u64, bdps: u64) -> Self {
        let rate = mbit * 125_000;
        Self {
            rate,
            rtt: Duration::from_millis(rtt),
            queue: rate * rtt / 1_000 * bdps / 100,
            loss_ppm: 0,
            mark_above: None,
            aggregation: Duration::ZERO,
        }
    }

    #[cfg(test)]
    pub(crate) fn bdp(&self) -> u64 {
        self.rate * self.rtt.as_millis() as u64 / 1_000
    }
}

/// How much data the application produces.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Application {
    Bulk,
    /// This many bytes at every multiple of the interval.
    #[cfg_attr(not(test), expect(dead_code, reason = "the kit needs none"))]
    Chunks(u64, Duration),
}

/// A snapshot of the run, taken at every acknowledgement.
#[derive(Debug, Clone, Copy)]
#[cfg_attr(not(test), expect(dead_code, reason = "the kit reads some of it only"))]
pub(crate) struct RunSnapshot {
    pub(crate) at: Duration,
    pub(crate) acked: u64,
    pub(crate) backlog: u64,
    pub(crate) in_flight: u64,
    pub(crate) window: u64,
}

#[derive(Debug)]
pub(crate) struct Simulation<T> {
    pub(crate) controller: T,
    pub(crate) path: BottleneckPath,
    pub(crate) application: Application,
    pub(crate) moments: Vec<RunSnapshot>,
    pub(crate) lost: u64,
    pub(crate) sent: u64,
    start: Instant,
    now: Instant,
    pacer: Pacer,
    rtt: RttEstimator,
    prng: SplitMix64,
    outstanding: BTreeMap<u64, Packet>,
    in_flight: u64,
    acked: u64,
    next_pn: u64,
    link_free: Instant,
    arrivals: VecDeque<(Instant, u64, bool)>,
    ready: u64,
    next_chunk: Instant,
    wake: Option<Instant>,
    app_limited: bool,
    last_sent: Instant,
}

impl<T: CongestionController> Simulation<T> {
    pub(crate) fn new(controller: T, path: BottleneckPath) -> Self {
        // The result does not depend on this instant.
        let start = Instant::now();
        Self {
            controller,
            path,
            application: Application::Bulk,
            moments: Vec::new(),
            lost: 0,
            sent: 0,
            start,
            now: start,
            pacer: Pacer::new(MTU as u16),
            rtt: RttEstimator::default(),
            prng: SplitMix64::new(42),
            outstanding: BTreeMap::new(),
            in_flight: 0,
            acked: 0,
            next_pn: 0,
            link_free: start,
            arrivals: VecDeque::new(),
            ready: 0,
            next_chunk: start,
            wake: None,
            app_limited: false,
            last_sent: start,
        }
    }

    /// Changes which packets are lost at random.
    #[cfg(test)]
    pub(crate) fn reseed(&mut self, seed: u64) {
        self.prng = SplitMix64::new(seed);
    }

    /// Runs until `seconds` after the start, calling `watch` after each acknowledgement.
    pub(crate) fn run_with(&mut self, seconds: f64, mut watch: impl FnMut(&mut T, RunSnapshot)) {
        let end = self.start + Duration::from_secs_f64(seconds);
        loop {
            self.produce();
            self.transmit();
            let Some(next) = self.next_event().filter(|next| *next <= end) else {
                self.now = end;
                return;
            };
            self.now = self.now.max(next);
            if self.arrivals.front().is_some_and(|&(at, ..)| at <= self.now) {
                self.receive();
                let moment = self.moment();
                self.moments.push(moment);
                watch(&mut self.controller, moment);
            } else if self.arrivals.is_empty() && self.now >= self.probe_time() {
                self.lose_all(false);
            }
        }
    }

    pub(crate) fn run(&mut self, seconds: f64) {
        self.run_with(seconds, |_, _| {});
    }

    /// Drops the application's unsent data; new data begins with the next chunk.
    #[cfg(test)]
    pub(crate) fn ready_is_nothing(&mut self) {
        self.ready = 0;
        let Application::Chunks(_, interval) = self.application else {
            return;
        };
        while self.next_chunk <= self.now {
            self.next_chunk += interval;
        }
    }

    /// Acknowledged bytes per second between two times in seconds.
    pub(crate) fn goodput(&self, from: f64, to: f64) -> u64 {
        let acked = |until: f64| {
            let until = Duration::from_secs_f64(until);
            let before = self.moments.partition_point(|moment| moment.at <= until);
            before.checked_sub(1).map_or(0, |last| self.moments[last].acked)
        };
        ((acked(to) - acked(from)) as f64 / (to - from)) as u64
    }

    /// Goodput in percent of the bottleneck's rate.
    #[cfg(test)]
    pub(crate) fn utilisation(&self, from: f64, to: f64) -> u64 {
        self.goodput(from, to) * 100 / self.path.rate
    }

    #[cfg(test)]
    pub(crate) fn between(&self, from: f64, to: f64) -> impl Iterator<Item = &RunSnapshot> {
        let (from, to) = (Duration::from_secs_f64(from), Duration::from_secs_f64(to));
        self.moments.iter().filter(move |moment| moment.at >= from && moment.at < to)
    }

    #[cfg(test)]
    pub(crate) fn mean_backlog(&self, from: f64, to: f64) -> u64 {
        let (sum, count) =
            self.between(from, to).fold((0, 0), |(sum, count), m| (sum + m.backlog, count + 1));
        sum / count
    }

    fn moment(&self) -> RunSnapshot {
        RunSnapshot {
            at: self.now - self.start,
            acked: self.acked,
            backlog: self.backlog(),
            in_flight: self.in_flight,
            window: self.controller.window(),
        }
    }

    fn backlog(&self) -> u64 {
        let busy = self.link_free.saturating_duration_since(self.now);
        (busy.as_secs_f64() * self.path.rate as f64) as u64
    }

    fn probe_time(&self) -> Instant {
        self.last_sent + self.rtt.pto_base()
    }

    fn next_event(&self) -> Option<Instant> {
        let chunk = match self.application {
            Application::Bulk => None,
            Application::Chunks(..) => Some(self.next_chunk),
        };
        let stuck = self.arrivals.is_empty() && !self.outstanding.is_empty();
        let probe = stuck.then(|| self.probe_time());
        let arrival = self.arrivals.front().map(|&(at, ..)| at);
        let events = [chunk, probe, arrival, self.wake];
        events.into_iter().flatten().min()
    }

    fn produce(&mut self) {
        match self.application {
            Application::Bulk => self.ready = u64::MAX,
            Application::Chunks(bytes, interval) => {
                while self.next_chunk <= self.now {
                    self.ready += bytes;
                    self.next_chunk += interval;
                }
            }
        }
    }

    fn transmit(&mut self) {
        self.wake = None;
        self.pacer.update(self.now, &self.controller, &self.rtt);
        while self.in_flight + MTU <= self.controller.window() {
            if self.ready < MTU {
                self.app_limited = true;
                return;
            }
            self.wake = self.pacer.delay_until(self.now, MTU);
            if self.wake.is_some() {
                return;
            }
            self.send();
        }
    }

    fn send(&mut self) {
        let limited = std::mem::take(&mut self.app_limited);
        let pn = self.next_pn;
        let sent = Sent {
            in_flight: self.in_flight,
            app_limited: limited,
            ..Sent::new(SpaceId::Data, pn, MTU)
        };
        let state = self.controller.on_packet_sent(self.now, &sent);
        self.pacer.on_sent(self.now, MTU);
        self.next_pn += 1;
        self.outstanding.insert(pn, Packet::new(&sent, self.now, state));
        self.in_flight += MTU;
        self.sent += MTU;
        self.ready -= MTU;
        self.last_sent = self.now;
        let backlog = self.backlog();
        if backlog + MTU > self.path.queue {
            return;
        }
        let marked = self.path.mark_above.is_some_and(|threshold| backlog > threshold);
        let time = Duration::from_secs_f64(MTU as f64 / self.path.rate as f64);
        self.link_free = self.link_free.max(self.now) + time;
        if self.prng.below(1_000_000) < self.path.loss_ppm {
            return;
        }
        let mut arrival = self.link_free + self.path.rtt;
        if !self.path.aggregation.is_zero() {
            let slot = self.path.aggregation.as_nanos();
            let slots = (arrival - self.start).as_nanos().div_ceil(slot);
            arrival = self.start + Duration::from_nanos((slots * slot) as u64);
        }
        let latest = self.arrivals.back().map_or(arrival, |&(at, ..)| at);
        self.arrivals.push_back((arrival.max(latest), pn, marked));
    }

    fn take(&mut self, pn: u64) -> Option<Packet> {
        let packet = self.outstanding.remove(&pn)?;
        self.in_flight -= packet.bytes;
        Some(packet)
    }

    fn receive(&mut self) {
        let (mut acked, mut marked) = (Vec::new(), 0);
        while let Some(&(at, pn, mark)) = self.arrivals.front() {
            if at > self.now {
                break;
            }
            self.arrivals.pop_front();
            if let Some(packet) = self.take(pn) {
                acked.push(packet);
                marked += u64::from(mark);
            }
        }
        let Some(newest) = acked.last().copied() else {
            return;
        };
        self.rtt.update(self.now, self.now - newest.sent, Duration::ZERO);
        let missing: Vec<u64> = self
            .outstanding
            .range(..(newest.pn + 1).saturating_sub(PACKET_THRESHOLD))
            .map(|(&pn, _)| pn)
            .collect();
        let lost: Vec<Packet> = missing.into_iter().filter_map(|pn| self.take(pn)).collect();
        self.acked += acked.iter().map(|packet| packet.bytes).sum::<u64>();
        self.lost += lost.iter().map(|packet| packet.bytes).sum::<u64>();
        if marked > 0 {
            self.controller.on_ecn_ce(self.now, newest.sent, marked, self.in_flight);
        }
        self.controller.on_packets_lost(self.now, &lost, false, self.in_flight);
        let limited = self.app_limited;
        self.controller.on_packets_acked(self.now, &acked, &self.rtt, self.in_flight, limited);
    }

    /// Declares everything in flight lost, because no acknowledgement will ever arrive. A probe
    /// would find this out.
    pub(crate) fn lose_all(&mut self, persistent: bool) {
        let lost: Vec<Packet> = std::mem::take(&mut self.outstanding).into_values().collect();
        self.in_flight = 0;
        self.lost += lost.iter().map(|packet| packet.bytes).sum::<u64>();
        self.controller.on_packets_lost(self.now, &lost, persistent, 0);
    }
}

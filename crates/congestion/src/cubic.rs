//! CUBIC (RFC 9438), with HyStart++ (RFC 9406) in the initial slow start.
//!
//! Where the RFC reduces to a share of the bytes in flight, this reduces to the same share of the
//! window. Section 4.6 allows that for senders that do not let an under-used window grow, as QUIC
//! requires (RFC 9002 section 7.8).
//!
//! One departure from the RFC is on purpose: a loss is no congestion event while no queue stands and
//! no more is lost in a round trip than the floor of the path's loss explains ([`Excuse`]). This
//! holds in slow start too. An estimate of the floor that comes after the first losses counts for these as
//! well: a reduction that the floor explains is undone, unless a queue has stood since. Other signs of
//! congestion are answered as in the RFC: losses in a queue, more losses than the floor explains, marks, and
//! persistent congestion. On a path without a floor nothing differs.

use super::episode::{self, Cause, Episodes, Refuted, newest_sent};
use super::excuse::{Excuse, Toll};
use super::hystart::{Growth, HyStart};
use super::{Acked, Algorithm, CongestionController, CongestionFactory, Lost, WindowLimits};
use crate::loss_floor::LossFloor;
use crate::rtt::RttEstimator;
use std::sync::Arc;
use std::time::{Duration, Instant};
use sutura_schedule::registry::Entry;

impl Algorithm {
    /// CUBIC (RFC 9438) with HyStart++ (RFC 9406).
    pub const CUBIC: Self = Self::new("cubic", |path| Box::new(Cubic::new(path.limits())));
    /// CUBIC as it is published, for comparison: every loss is a congestion event.
    pub const CUBIC_WITHOUT_FLOOR: Self = Self::new("cubic:floor=off", |path| {
        Box::new(Cubic { heeds_floor: false, ..Cubic::new(path.limits()) })
    });
}

pub(super) const ENTRY: Entry<dyn CongestionFactory> = Entry::with_parameters(
    Algorithm::CUBIC.name(),
    "growth by the time since the last loss, 70 % of the window after one",
    "floor=on",
    |parameters| {
        let on = parameters.switch("floor", true)?;
        Ok(Arc::new(if on { Algorithm::CUBIC } else { Algorithm::CUBIC_WITHOUT_FLOOR }))
    },
);

/// The scaling constant of the window, in segments per second cubed.
const C: f64 = 0.4;
/// The share of the window that remains after a congestion event.
const BETA: f64 = 0.7;
/// The additive increase, in segments per round trip, with which a multiplicative decrease to
/// `BETA` is as fast as Reno's decrease to one half (RFC 9438 section 4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
/// In congestion avoidance the window grows by at most half per round trip.
const MAX_GROWTH: f64 = 1.5;

/// A period of congestion avoidance. Windows are in segments, times in seconds.
#[derive(Debug, Clone, Copy)]
struct Epoch {
    start: Instant,
    /// The plateau of the curve.
    w_max: f64,
    /// The time until the curve reaches its plateau.
    k: f64,
    /// The window that Reno would have.
    w_est: f64,
    /// The window before the congestion event that began this epoch.
    w_prior: f64,
}

impl Epoch {
    /// Starts an epoch below the plateau with a window of `window` segments (section 4.2).
    fn new(start: Instant, window: f64, w_max: f64, w_prior: f64) -> Self {
        let w_max = w_max.max(window);
        Self { start, w_max, k: ((w_max - window) / C).cbrt(), w_est: window, w_prior }
    }

    /// The curve's window at `elapsed` after the start (equation 1).
    fn window(&self, elapsed: Duration) -> f64 {
        let t = elapsed.as_secs_f64() - self.k;
        C * t * t * t + self.w_max
    }
}

/// The state that a congestion event changes, saved so that it can be undone (section 4.9).
#[derive(Debug, Clone, Copy)]
struct SavedState {
    window: u64,
    ssthresh: u64,
    w_max: f64,
    w_prior: f64,
    epoch: Option<Epoch>,
}

impl episode::Saved for SavedState {
    fn without_reaction(&mut self, earlier: Self) {
        if earlier.window >= self.window {
            *self = earlier;
        }
    }
}

/// Reductions of which it is open whether a floor of loss explains them: no queue stood.
#[derive(Debug, Clone, Copy)]
struct Doubt {
    /// The state before the first of them.
    before: SavedState,
    /// The outcomes of packets since the round trip that ended with the first reduction.
    toll: Toll,
}

/// The CUBIC controller.
#[derive(Debug)]
pub struct Cubic {
    limits: WindowLimits,
    window: u64,
    /// Growth of less than one byte that is carried over.
    fraction: f64,
    ssthresh: u64,
    /// The plateau for the next epoch and the window before the newest congestion event, in
    /// segments; 0 until there was one.
    w_max: f64,
    w_prior: f64,
    epoch: Option<Epoch>,
    /// When application-limited acknowledgements began, if all since then were application-limited: the curve
    /// is paused.
    limited_since: Option<Instant>,
    hystart: HyStart,
    episodes: Episodes<SavedState>,
    excuse: Excuse,
    doubt: Option<Doubt>,
    heeds_floor: bool,
}

impl Cubic {
    /// Creates a controller in slow start with the initial window.
    #[must_use]
    pub fn new(limits: WindowLimits) -> Self {
        Self {
            limits,
            window: limits.initial(),
            fraction: 0.0,
            ssthresh: u64::MAX,
            w_max: 0.0,
            w_prior: 0.0,
            epoch: None,
            limited_since: None,
            hystart: HyStart::default(),
            episodes: Episodes::default(),
            excuse: Excuse::default(),
            doubt: None,
            heeds_floor: true,
        }
    }

    fn segments(&self, bytes: u64) -> f64 {
        bytes as f64 / self.limits.mtu() as f64
    }

    fn grow_by(&mut self, bytes: f64) {
        let total = bytes.max(0.0) + self.fraction;
        self.fraction = total.fract();
        self.window = self.limits.clamp(self.window.saturating_add(total as u64));
    }

    fn slow_start(&mut self, now: Instant, newest: Instant, bytes: u64, rtt: &RttEstimator) {
        // Only in the first slow start is there no better bound than a rising round-trip time.
        if self.ssthresh != u64::MAX {
            self.window = self.limits.clamp(self.window.saturating_add(bytes));
            return;
        }
        match self.hystart.on_ack(now, newest, rtt.latest()) {
            Growth::Standard => self.grow_by(bytes as f64),
            Growth::Divided(divisor) => self.grow_by(bytes as f64 / divisor as f64),
            Growth::Over => self.ssthresh = self.window,
        }
    }

    fn avoid_congestion(&mut self, now: Instant, bytes: u64, rtt: &RttEstimator) {
        let window = self.segments(self.window);
        let (w_max, w_prior) = (self.w_max, self.w_prior);
        let mut epoch = *self.epoch.get_or_insert_with(|| Epoch::new(now, window, w_max, w_prior));
        // Time in which the application limited the window does not count on the curve (5.8).
        if let Some(since) = self.limited_since.take() {
            let pause = now.saturating_duration_since(since.max(epoch.start));
            epoch.start = epoch.start.checked_add(pause).unwrap_or(now);
        }
        let acked = self.segments(bytes);
        let alpha = if epoch.w_est < epoch.w_prior { ALPHA } else { 1.0 };
        // Bounded like the window: an estimate that runs away would make the window jump later.
        epoch.w_est = (epoch.w_est + alpha * acked / window).min(self.segments(self.limits.max()));
        self.epoch = Some(epoch);

        let elapsed = now.saturating_duration_since(epoch.start);
        if epoch.window(elapsed) < epoch.w_est {
            let gain = (epoch.w_est - window) * self.limits.mtu() as f64;
            // The estimate is absolute, so nothing is carried over.
            self.fraction = 0.0;
            self.grow_by(gain);
            return;
        }
        let target = epoch.window(elapsed.saturating_add(rtt.smoothed()));
        let target = target.clamp(window, window * MAX_GROWTH);
        self.grow_by((target - window) / window * bytes as f64);
    }

    fn save(&self) -> SavedState {
        let Self { window, ssthresh, w_max, w_prior, epoch, .. } = *self;
        SavedState { window, ssthresh, w_max, w_prior, epoch }
    }

    /// Adopts the state as it is without a reduction that is undone. A window that has grown beyond that
    /// state's stays.
    fn restore(&mut self, state: SavedState) {
        if self.window < state.window || self.ssthresh < state.ssthresh {
            self.adopt(SavedState { window: self.window.max(state.window), ..state });
        }
    }

    /// Handles losses of packets that were sent after the newest reduction.
    fn on_new_losses(&mut self, now: Instant, lost: &[Lost], in_flight: u64) {
        let news = lost.iter().filter(|packet| !self.episodes.covers(packet.sent)).count();
        let in_flight = in_flight.div_ceil(self.limits.mtu());
        if self.excuse.excuses(news, in_flight, self.window < self.ssthresh) {
            return;
        }
        let first = Doubt { before: self.save(), toll: self.excuse.toll() };
        self.doubt = (!self.excuse.is_queue_standing()).then_some(self.doubt.unwrap_or(first));
        self.excuse.on_reaction(now);
        self.reduce(now, Cause::Loss);
    }

    fn reduce(&mut self, now: Instant, cause: Cause) {
        let before = self.save();
        self.episodes.begin(now, cause, before);
        self.adopt(self.reduced(before));
    }

    /// The state after a congestion event in state `before` (section 4.6).
    fn reduced(&self, before: SavedState) -> SavedState {
        let segments = self.segments(before.window);
        let window = self.limits.clamp((before.window as f64 * BETA) as u64);
        // Fast convergence (4.7): a flow that loses before it has reached its old plateau makes
        // room.
        let below = segments < before.w_max;
        let w_max = if below { segments * (1.0 + BETA) / 2.0 } else { segments };
        SavedState { window, ssthresh: window, w_max, w_prior: segments, epoch: None }
    }

    fn adopt(&mut self, state: SavedState) {
        let SavedState { window, ssthresh, w_max, w_prior, epoch } = state;
        self.window = self.limits.clamp(window);
        self.ssthresh = ssthresh;
        self.w_max = w_max;
        self.w_prior = w_prior;
        self.epoch = epoch;
        self.fraction = 0.0;
    }

    /// Undoes a reaction, and repeats the later reactions that still stand.
    fn undo(&mut self, refuted: &Refuted<SavedState>) {
        let state = (0..refuted.later).fold(refuted.saved, |state, _| self.reduced(state));
        self.restore(state);
    }
}

impl CongestionController for Cubic {
    fn on_packets_acked(
        &mut self,
        now: Instant,
        acked: &[Acked],
        rtt: &RttEstimator,
        _in_flight: u64,
        app_limited: bool,
    ) {
        let Some(newest) = newest_sent(acked) else {
            return;
        };
        self.episodes.on_acked(newest);
        self.excuse.on_acked(now, acked, newest, rtt);
        // If a queue stands, there was no room for a larger window.
        self.doubt = self.doubt.filter(|_| !self.excuse.is_queue_standing());
        if let Some(doubt) = &mut self.doubt {
            doubt.toll = doubt.toll.and(Toll::arrived(acked.len()));
        }
        let news = acked.iter().filter(|packet| !self.episodes.covers(packet.sent));
        let bytes = news.fold(0u64, |sum, packet| sum.saturating_add(packet.bytes));
        if app_limited {
            self.limited_since.get_or_insert(now);
        } else if bytes > 0 && self.window < self.ssthresh {
            self.slow_start(now, newest, bytes, rtt);
        } else if bytes > 0 {
            self.avoid_congestion(now, bytes, rtt);
        }
    }

    fn on_packets_lost(&mut self, now: Instant, lost: &[Lost], persistent: bool, in_flight: u64) {
        let Some(newest) = newest_sent(lost) else {
            return;
        };
        if let Some(doubt) = &mut self.doubt {
            doubt.toll = doubt.toll.and(Toll::lost(lost.len()));
        }
        if !self.episodes.covers(newest) {
            self.on_new_losses(now, lost, in_flight);
        }
        self.episodes.on_lost(lost);
        if persistent {
            self.doubt = None;
            self.window = self.limits.min();
            self.epoch = None;
            self.episodes.clear();
            // After a collapse the first curve starts at its plateau (4.8).
            self.w_max = 0.0;
        }
    }

    fn on_loss_floor(&mut self, floor: &LossFloor) {
        if !self.heeds_floor {
            return;
        }
        self.excuse.on_floor(floor);
        if let Some(doubt) = self.doubt.take_if(|doubt| doubt.toll.is_explained_by(floor)) {
            self.restore(doubt.before);
            // Time at the smaller window does not count on the old curve.
            self.epoch = None;
        }
    }

    fn on_ecn_ce(&mut self, now: Instant, sent: Instant, _newly_marked: u64, _in_flight: u64) {
        self.doubt = None;
        if self.episodes.covers(sent) {
            self.episodes.confirm();
        } else {
            self.reduce(now, Cause::EcnCe);
        }
    }

    fn on_spurious_loss(&mut self, _now: Instant, packets: &[Lost]) {
        self.excuse.on_spurious(packets.len());
        if let Some(doubt) = &mut self.doubt {
            doubt.toll = doubt.toll.without(packets.len());
        }
        self.episodes.on_spurious(packets);
        while let Some(refuted) = self.episodes.take_refuted() {
            self.undo(&refuted);
        }
    }

    fn on_mtu_changed(&mut self, mtu: u16) {
        let old = self.limits.mtu() as f64;
        self.window = self.limits.change_mtu(mtu, self.window);
        // Quantities in segments keep their size in bytes.
        let scale = old / self.limits.mtu() as f64;
        self.w_max *= scale;
        self.w_prior *= scale;
        self.episodes.confirm_all();
        self.doubt = None;
        self.epoch = None;
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn slow_start_threshold(&self) -> Option<u64> {
        (self.ssthresh != u64::MAX).then_some(self.ssthresh)
    }

    fn name(&self) -> &'static str {
        let on = self.heeds_floor;
        if on { Algorithm::CUBIC.name() } else { Algorithm::CUBIC_WITHOUT_FLOOR.name() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SpaceId;
    use crate::bottleneck::{BottleneckPath, Simulation};
    use crate::{PacketState, Sent};

    const MTU: u16 = 1_000;
    const MS: Duration = Duration::from_millis(1);

    fn cubic() -> Cubic {
        Cubic::new(WindowLimits::new(MTU, u64::MAX))
    }

    fn packet(pn: u64, sent: Instant) -> Lost {
        Lost::new(&Sent::new(SpaceId::Data, pn, u64::from(MTU)), sent, PacketState::default())
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-6 * b.abs().max(1.0)
    }

    #[test]
    fn curve_matches_the_formula() {
        let start = Instant::now();
        // 100 segments cut to 70: K = cbrt(30 / 0.4) = 4.217 163 s.
        let epoch = Epoch::new(start, 70.0, 100.0, 100.0);
        assert!(near(epoch.k, 4.217_163_326_508_746), "{}", epoch.k);
        assert!(near(epoch.window(Duration::ZERO), 70.0));
        assert!(near(epoch.window(Duration::from_secs_f64(epoch.k)), 100.0));
        // 0.4 * (10 - 4.217163)^3 + 100
        assert!(near(epoch.window(Duration::from_secs(10)), 177.353999));
    }

    #[test]
    fn a_curve_without_loss_before_starts_at_its_plateau() {
        let epoch = Epoch::new(Instant::now(), 50.0, 0.0, 0.0);
        assert!(near(epoch.k, 0.0) && near(epoch.window(Duration::ZERO), 50.0));
    }

    #[test]
    fn a_loss_leaves_seven_tenths_and_remembers_the_plateau() {
        let (t, mut cubic) = (Instant::now(), cubic());
        cubic.window = 100_000;
        cubic.on_packets_lost(t + 50 * MS, &[packet(1, t)], false, 0);
        assert_eq!((cubic.window, cubic.ssthresh), (70_000, 70_000));
        assert!(near(cubic.w_max, 100.0) && near(cubic.w_prior, 100.0));
        // A second loss from the same flight changes nothing.
        cubic.on_packets_lost(t + 60 * MS, &[packet(2, t + 40 * MS)], false, 0);
        assert_eq!(cubic.window, 70_000);
        // A loss from the next flight comes below the old plateau: fast convergence.
        cubic.on_packets_lost(t + 150 * MS, &[packet(3, t + 60 * MS)], false, 0);
        assert_eq!(cubic.window, 49_000);
        assert!(near(cubic.w_max, 70.0 * 1.7 / 2.0));
    }

    #[test]
    fn the_window_follows_the_curve_back_to_the_plateau() {
        let (t, mut cubic) = (Instant::now(), cubic());
        let mut rtt = RttEstimator::default();
        rtt.update(t, 100 * MS, Duration::ZERO);
        cubic.window = 1_000_000;
        cubic.on_packets_lost(t, &[packet(0, t - 100 * MS)], false, 0);
        assert_eq!(cubic.window, 700_000);
        // K = cbrt(300 / 0.4) = 9.0856 s. A window of packets is acknowledged per round trip.
        let mut now = t;
        let mut reached = None;
        for round in 0..120u64 {
            now += 100 * MS;
            let acked: Vec<_> = (0..cubic.window / 1_000)
                .map(|i| packet(round * 10_000 + i, now - 50 * MS))
                .collect();
            cubic.on_packets_acked(now, &acked, &rtt, 0, false);
            let epoch = cubic.epoch.unwrap();
            let elapsed = now - epoch.start;
            let ahead = epoch.window(elapsed + 100 * MS) * 1_000.0;
            assert!(cubic.window as f64 <= ahead + 1.0, "ahead of the curve at {elapsed:?}");
            if reached.is_none() && cubic.window >= 990_000 {
                reached = Some(elapsed.as_secs_f64());
            }
        }
        // The curve is at 990 segments (25 / 1)^(1/3) = 2.92 s before K.
        let reached = reached.unwrap();
        assert!((5.9..6.4).contains(&reached), "{reached}");
        assert!(cubic.window > 1_000_000, "beyond the plateau after K");
    }

    #[test]
    fn small_windows_grow_like_reno() {
        let (t, mut cubic) = (Instant::now(), cubic());
        let mut rtt = RttEstimator::default();
        rtt.update(t, 10 * MS, Duration::ZERO);
        cubic.window = 10_000;
        cubic.on_packets_lost(t, &[packet(0, t - 10 * MS)], false, 0);
        let mut now = t;
        for round in 0..100u64 {
            now += 10 * MS;
            let acked: Vec<_> =
                (0..cubic.window / 1_000).map(|i| packet(round * 100 + i, now - MS)).collect();
            cubic.on_packets_acked(now, &acked, &rtt, 0, false);
        }
        // After 1 s the curve has hardly moved. Reno gains 0.53 segments per round up to the old
        // window, and 1 per round from then on.
        let segments = cubic.window / 1_000;
        assert!((85..=105).contains(&segments), "{segments}");
        let curve = cubic.epoch.unwrap().window(Duration::from_secs(1));
        assert!(curve < 12.0, "{curve}");
    }

    #[test]
    fn a_spurious_loss_is_taken_back_only_if_it_stands_alone() {
        for (refuted, expected) in [(1, 70_000), (2, 100_000)] {
            let (t, mut cubic) = (Instant::now(), cubic());
            cubic.window = 100_000;
            let lost = [packet(1, t), packet(2, t + MS)];
            cubic.on_packets_lost(t + 50 * MS, &lost, false, 0);
            cubic.on_spurious_loss(t + 60 * MS, &lost[..refuted]);
            assert_eq!(cubic.window, expected);
        }
        let (t, mut cubic) = (Instant::now(), cubic());
        cubic.window = 100_000;
        cubic.on_packets_lost(t + 50 * MS, &[packet(1, t)], false, 0);
        cubic.on_ecn_ce(t + 51 * MS, t, 1, 0);
        cubic.on_spurious_loss(t + 60 * MS, &[packet(1, t)]);
        assert_eq!(cubic.window, 70_000, "a mark stands behind the reduction too");
    }

    #[test]
    fn reactions_that_overlap_are_taken_back_one_by_one() {
        let t = Instant::now();
        // Each packet is sent after the loss of the packet before it was declared.
        let lost: Vec<_> = (0..3).map(|i| packet(i, t + i as u32 * 100 * MS)).collect();
        for (refuted, left) in
            [(&[0, 1, 2], &[49_000, 70_000, 100_000]), (&[2, 1, 0], &[49_000, 70_000, 100_000])]
        {
            let mut cubic = cubic();
            cubic.window = 100_000;
            for packet in &lost {
                cubic.on_packets_lost(packet.sent + 50 * MS, &[*packet], false, 0);
            }
            assert_eq!(cubic.window, 34_300);
            for (index, window) in refuted.iter().zip(left) {
                cubic.on_spurious_loss(t + 300 * MS, &[lost[*index]]);
                assert_eq!(cubic.window, *window, "{refuted:?}, {index}");
            }
            assert_eq!((cubic.ssthresh, cubic.w_max), (u64::MAX, 0.0));
        }
    }

    #[test]
    fn time_without_data_is_not_time_on_the_curve() {
        let t = Instant::now();
        let run = |pause: bool| {
            let mut cubic = cubic();
            let mut rtt = RttEstimator::default();
            rtt.update(t, 100 * MS, Duration::ZERO);
            cubic.window = 100_000;
            cubic.on_packets_lost(t, &[packet(0, t - 100 * MS)], false, 0);
            let mut now = t + 100 * MS;
            cubic.on_packets_acked(now, &[packet(1, now - MS)], &rtt, 0, false);
            if pause {
                cubic.on_packets_acked(now, &[packet(2, now - MS)], &rtt, 0, true);
                now += Duration::from_secs(20);
            }
            cubic.on_packets_acked(now + 100 * MS, &[packet(3, now + MS)], &rtt, 0, false);
            cubic.window
        };
        // Twenty seconds further along the curve the window would grow by half a segment more.
        let (paused, straight) = (run(true), run(false));
        assert!((70_000..=straight).contains(&paused), "{paused} instead of {straight}");
    }

    #[test]
    fn persistent_congestion_collapses_and_starts_over() {
        let (t, mut cubic) = (Instant::now(), cubic());
        cubic.window = 100_000;
        cubic.on_packets_lost(t + MS, &[packet(1, t)], true, 0);
        assert_eq!((cubic.window, cubic.ssthresh), (2_000, 70_000));
        let acked = [packet(2, t + 2 * MS)];
        cubic.on_packets_acked(t + 9 * MS, &acked, &RttEstimator::default(), 0, false);
        assert_eq!(cubic.window, 3_000, "slow start");
    }

    fn floor(rate: f64) -> LossFloor {
        LossFloor { rate, low: rate, high: rate, ..LossFloor::default() }
    }

    /// 60 seconds over 20 Mbit/s and 40 ms with a queue of `queue` percent of the product.
    fn simulate(floor: Option<LossFloor>, queue: u64, loss_ppm: u64) -> Simulation<Cubic> {
        let mut cubic = Cubic::new(WindowLimits::new(1_200, u64::MAX));
        floor.iter().for_each(|floor| cubic.on_loss_floor(floor));
        let mut path = BottleneckPath::new(20, 40, queue);
        path.loss_ppm = loss_ppm;
        let mut simulation = Simulation::new(cubic, path);
        simulation.run(60.0);
        simulation
    }

    #[test]
    fn losses_of_a_full_queue_are_never_excused() {
        for queue in [100, 400] {
            let plain = simulate(None, queue, 0);
            let told = simulate(Some(floor(0.02)), queue, 0);
            assert!(plain.lost > 0 && plain.lost == told.lost, "{} {}", plain.lost, told.lost);
            let windows = |of: &Simulation<Cubic>| -> Vec<_> {
                of.moments.iter().map(|moment| (moment.at, moment.window)).collect()
            };
            assert_eq!(windows(&plain), windows(&told), "{queue} %");
        }
    }

    #[test]
    fn a_floor_excuses_little_where_the_queue_is_too_short_to_be_seen_in_time() {
        for queue in [10, 25] {
            let plain = simulate(None, queue, 0);
            let told = simulate(Some(floor(0.02)), queue, 0);
            assert!(plain.lost > 0 && plain.lost <= told.lost, "{queue} %");
            let excused = told.lost - plain.lost;
            // A tenth of the losses that the floor alone would explain.
            assert!(excused < told.sent / 500, "{queue} %: {excused} of {}", told.sent);
        }
    }

    #[test]
    fn a_known_floor_does_not_ruin_the_rate() {
        for loss in [0.005, 0.0235, 0.05] {
            let ppm = (loss * 1e6) as u64;
            let plain = simulate(None, 100, ppm).utilisation(5.0, 60.0);
            let told = simulate(Some(floor(loss)), 100, ppm);
            let utilisation = told.utilisation(5.0, 60.0);
            assert!(plain < 60 && utilisation >= 80, "{loss}: {plain} %, then {utilisation} %");
            assert!(told.mean_backlog(5.0, 60.0) < told.path.queue / 2, "{loss}");
        }
    }

    #[test]
    fn more_than_the_floor_is_congestion_without_a_queue_too() {
        let low = simulate(Some(floor(0.005)), 100, 50_000).utilisation(5.0, 60.0);
        assert!(low < 40, "{low} %");
    }

    /// Loses a packet of each of three rounds and learns of the floor. Returns the windows before,
    /// after the losses, and at last. Round-trip times have these lengths.
    fn learn(rtts: [u32; 3], floor: &LossFloor) -> (u64, u64, u64) {
        let (mut now, mut cubic, mut pn) = (Instant::now(), cubic(), 0);
        let mut rtt = RttEstimator::default();
        let mut fly = |cubic: &mut Cubic, length: u32, losses: usize| {
            let flight: Vec<_> = (0..50).map(|i| packet(pn + i, now + MS)).collect();
            pn += 50;
            now += length * MS;
            rtt.update(now, length * MS, Duration::ZERO);
            cubic.on_packets_lost(now, &flight[..losses], false, 49_000);
            for acked in flight[losses..].chunks(10) {
                cubic.on_packets_acked(now, acked, &rtt, 0, true);
            }
        };
        cubic.window = 50_000;
        fly(&mut cubic, 100, 0);
        let before = cubic.window;
        rtts.into_iter().for_each(|rtt| fly(&mut cubic, rtt, 1));
        let reduced = cubic.window;
        cubic.on_loss_floor(floor);
        (before, reduced, cubic.window)
    }

    #[test]
    fn a_floor_that_is_learned_later_undoes_what_it_explains() {
        // 3 of 200 packets: 2 % explain 7, and 0.2 % explain one.
        assert_eq!(learn([100; 3], &floor(0.02)), (50_000, 17_150, 50_000));
        assert_eq!(learn([100; 3], &floor(0.002)), (50_000, 17_150, 17_150));
        assert_eq!(learn([100; 3], &LossFloor::default()), (50_000, 17_150, 17_150));
    }

    #[test]
    fn a_queue_that_stood_since_proves_the_reduction_right() {
        assert_eq!(learn([100, 100, 120], &floor(0.02)).2, 17_150);
        // Only the last loss came without a queue.
        assert_eq!(learn([120, 100, 100], &floor(0.02)).2, 24_500);
    }
}

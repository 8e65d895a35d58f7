//! NewReno as specified for QUIC (RFC 9002 section 7.3 and appendix B).

use super::arithmetic::mul_div;
use super::episode::{Cause, Episodes, Refuted, Saved, newest_sent};
use super::{Acked, Algorithm, CongestionController, CongestionFactory, Lost, WindowLimits};
use crate::rtt::RttEstimator;
use std::sync::Arc;
use std::time::Instant;
use sutura_schedule::registry::Entry;

impl Algorithm {
    /// NewReno as in RFC 9002.
    pub const NEW_RENO: Self = Self::new("newreno", |path| Box::new(NewReno::new(path.limits())));
}

pub(super) const ENTRY: Entry<dyn CongestionFactory> = Entry::new(
    Algorithm::NEW_RENO.name(),
    "one datagram more per round trip, half the window after a loss",
    |_| Ok(Arc::new(Algorithm::NEW_RENO)),
);

/// The share of the window that remains after a congestion event: one half.
const LOSS_REDUCTION: (u64, u64) = (1, 2);

/// Window and slow start threshold before a congestion event.
#[derive(Debug, Clone, Copy)]
struct BeforeEvent {
    window: u64,
    ssthresh: u64,
}

impl Saved for BeforeEvent {
    fn without_reaction(&mut self, earlier: Self) {
        self.window = self.window.max(earlier.window);
        self.ssthresh = self.ssthresh.max(earlier.ssthresh);
    }
}

/// The NewReno controller.
#[derive(Debug)]
pub struct NewReno {
    limits: WindowLimits,
    window: u64,
    ssthresh: u64,
    /// Bytes acknowledged in congestion avoidance since the window last grew.
    acked: u64,
    episodes: Episodes<BeforeEvent>,
}

impl NewReno {
    /// Creates a controller in slow start with the initial window.
    #[must_use]
    pub fn new(limits: WindowLimits) -> Self {
        let window = limits.initial();
        Self { limits, window, ssthresh: u64::MAX, acked: 0, episodes: Episodes::default() }
    }

    fn grow(&mut self, bytes: u64) {
        if self.window < self.ssthresh {
            self.window = self.limits.clamp(self.window.saturating_add(bytes));
            return;
        }
        self.acked = self.acked.saturating_add(bytes);
        // Grow by one datagram per window of acknowledged bytes; the rest counts towards the next
        // datagram.
        if self.acked >= self.window {
            self.acked -= self.window;
            self.window = self.limits.clamp(self.window.saturating_add(self.limits.mtu()));
        }
    }

    /// Bytes counted towards the next growth of the window.
    #[cfg(test)]
    pub(super) fn acked_since_growth(&self) -> u64 {
        self.acked
    }

    /// The window that remains after a congestion event.
    fn reduced(&self, window: u64) -> u64 {
        let (numerator, denominator) = LOSS_REDUCTION;
        self.limits.clamp(mul_div(window, numerator, denominator))
    }

    fn reduce(&mut self, now: Instant, cause: Cause) {
        let before = BeforeEvent { window: self.window, ssthresh: self.ssthresh };
        self.episodes.begin(now, cause, before);
        self.acked = 0;
        self.window = self.reduced(self.window);
        self.ssthresh = self.window;
    }
}

impl CongestionController for NewReno {
    fn on_packets_acked(
        &mut self,
        _now: Instant,
        acked: &[Acked],
        _rtt: &RttEstimator,
        _in_flight: u64,
        app_limited: bool,
    ) {
        for packet in acked {
            self.episodes.on_acked(packet.sent);
            if !app_limited && !self.episodes.covers(packet.sent) {
                self.grow(packet.bytes);
            }
        }
    }

    fn on_packets_lost(&mut self, now: Instant, lost: &[Lost], persistent: bool, _: u64) {
        let Some(newest) = newest_sent(lost) else {
            return;
        };
        if !self.episodes.covers(newest) {
            self.reduce(now, Cause::Loss);
        }
        self.episodes.on_lost(lost);
        if persistent {
            self.window = self.limits.min();
            self.acked = 0;
            self.episodes.clear();
        }
    }

    fn on_ecn_ce(&mut self, now: Instant, sent: Instant, _newly_marked: u64, _in_flight: u64) {
        if self.episodes.covers(sent) {
            self.episodes.confirm();
        } else {
            self.reduce(now, Cause::EcnCe);
        }
    }

    fn on_spurious_loss(&mut self, _now: Instant, packets: &[Lost]) {
        self.episodes.on_spurious(packets);
        while let Some(Refuted { saved, later }) = self.episodes.take_refuted() {
            let window = (0..later).fold(saved.window, |window, _| self.reduced(window));
            self.window = self.window.max(self.limits.clamp(window));
            self.ssthresh = self.ssthresh.max(if later == 0 { saved.ssthresh } else { window });
        }
    }

    fn on_mtu_changed(&mut self, mtu: u16) {
        self.window = self.limits.change_mtu(mtu, self.window);
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn slow_start_threshold(&self) -> Option<u64> {
        (self.ssthresh != u64::MAX).then_some(self.ssthresh)
    }

    fn name(&self) -> &'static str {
        Algorithm::NEW_RENO.name()
    }
}

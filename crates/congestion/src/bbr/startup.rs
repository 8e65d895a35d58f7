//! Startup and Drain (sections 5.3.1 and 5.3.2).

use super::{Bbr, State};
use crate::arithmetic::percent;
use std::time::Instant;

/// The delivery rate has grown if it is at least this many percent of the old one.
const FULL_BANDWIDTH_GROWTH: u64 = 125;
/// After this many rounds without growth the pipe counts as full.
const FULL_BANDWIDTH_ROUNDS: u8 = 3;
/// The least number of runs of lost packets in a round that makes a high loss rate credible.
const FULL_LOSS_RUNS: u32 = 6;
/// Drain ends after this many rounds in any case.
const DRAIN_ROUNDS: u64 = 3;

/// Detects whether sending faster still increases the delivery rate (section 5.3.1.2).
#[derive(Debug, Clone, Default)]
pub(super) struct FullPipe {
    /// Whether the pipe has been full at least once.
    pub(super) reached: bool,
    /// Whether the pipe is full, as far as the estimate since the last reset can tell.
    pub(super) now: bool,
    baseline: u64,
    rounds: u8,
}

impl FullPipe {
    /// ResetFullBW: growth is measured from `baseline` bytes per second.
    pub(super) fn reset(&mut self, baseline: u64) {
        self.now = false;
        self.baseline = baseline;
        self.rounds = 0;
    }
}

impl Bbr {
    /// CheckFullBWReached.
    pub(super) fn check_full_bandwidth_reached(&mut self) {
        let pipe = &mut self.full_pipe;
        if pipe.now || !self.rounds.start || self.sample.app_limited {
            return;
        }
        let rate = self.sample.delivery_rate;
        if rate >= percent(pipe.baseline, FULL_BANDWIDTH_GROWTH) {
            pipe.reset(rate);
            return;
        }
        pipe.rounds = pipe.rounds.saturating_add(1);
        pipe.now = pipe.rounds >= FULL_BANDWIDTH_ROUNDS;
        pipe.reached |= pipe.now;
    }

    /// EnterStartup.
    pub(super) fn enter_startup(&mut self) {
        self.state = State::Startup;
    }

    /// CheckStartupDone.
    pub(super) fn check_startup_done(&mut self) {
        self.check_startup_high_loss();
        if self.state == State::Startup && self.full_pipe.reached {
            self.state = State::Drain;
            self.drain_start_round = self.rounds.count;
        }
    }

    /// CheckStartupHighLoss of section 5.3.1.3: ends Startup at the end of a round in recovery,
    /// because of many losses or of a mark, which needs no threshold.
    fn check_startup_high_loss(&mut self) {
        if !self.loss_round.start {
            return;
        }
        let high_loss = self.loss_round.runs >= FULL_LOSS_RUNS
            && self.is_inflight_too_high(self.sample.lost, self.sample.tx_in_flight);
        let congested = self.episodes.is_open() && (high_loss || self.loss_round.marked);
        if congested && self.state == State::Startup && !self.full_pipe.reached {
            if !self.loss_round.marked {
                self.note_too_high(self.sample.lost, self.sample.tx_in_flight);
            }
            self.full_pipe.reached = true;
            // As in HandleInflightTooHigh: the volume in flight of an application that does not fill the pipe
            // is no bound of the pipe.
            if !self.sample.app_limited {
                let bdp = self.bdp(self.model.max_bandwidth.get(), 100);
                self.model.inflight_longterm = bdp.max(self.model.inflight_latest);
            }
        }
        self.loss_round.runs = 0;
        self.loss_round.marked = false;
    }

    /// CheckDrainDone.
    pub(super) fn check_drain_done(&mut self, now: Instant) {
        if self.state != State::Drain {
            return;
        }
        let drained = self.in_flight <= self.inflight(self.model.bandwidth);
        let rounds = self.rounds.count.saturating_sub(self.drain_start_round);
        if drained || rounds > DRAIN_ROUNDS {
            self.start_probe_bw_down(now);
        }
    }
}

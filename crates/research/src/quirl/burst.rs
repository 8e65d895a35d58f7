//! Redundancy after bursts of data: once when much was sent at a time.

use super::{FEW, LossesPerTrip, in_flight, repairs};
use std::sync::Arc;
use std::time::{Duration, Instant};
use sutura_proto::policy::{
    Arrival, Decision, FLUSH_LINGER, MAX_DELAY, Redundancy, RedundancyFactory, RepairPlan, View,
};
use sutura_proto::registry::Entry;

pub(super) const ENTRY: Entry<dyn RedundancyFactory> = Entry::with_parameters(
    "burst",
    "repair symbols after each burst of more than 15 kB (QUIRL 2024)",
    "delay=0ms",
    |parameters| Ok(Arc::new(Burst::new(parameters.millis("delay", Duration::ZERO)?))),
);

/// At most one repair symbol for this many source symbols of a burst.
const SOURCES_PER_REPAIR: u32 = 2;

/// Protects each burst of more than 15 kB, such as a frame of a video, when it ends: QUIRL's scheduler
/// for real-time video. A burst ends when the session has nothing more that it may send. It is protected
/// by as many repair symbols as losses are to be expected in a round trip, and by at most half of its symbols
/// that are still in flight. Smaller bursts are not protected.
///
/// The delay, QUIRL's *maximum jitter*, is there to keep the loss that takes the end of a burst from
/// taking its repair symbols as well. Data that is sent during the delay belongs to the same burst.
///
/// QUIRL takes any moment without data for the end of a burst. Here the application has a
/// millisecond to write more, unless it ended its stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Burst {
    delay: Duration,
}

impl Burst {
    /// Sends repair symbols `delay`, at most [`MAX_DELAY`], after the end of a burst.
    #[must_use]
    pub fn new(delay: Duration) -> Self {
        Self { delay: delay.min(MAX_DELAY) }
    }
}

impl RedundancyFactory for Burst {
    fn name(&self) -> &str {
        ENTRY.name
    }

    fn parameters(&self) -> String {
        format!("delay={:?}", self.delay)
    }

    fn stays_awake(&self) -> bool {
        true
    }

    fn build(&self) -> Box<dyn Redundancy> {
        Box::new(BurstPolicy {
            delay: self.delay,
            losses: LossesPerTrip::default(),
            sent: 0,
            paused: false,
            unprotected: 0,
            due_at: None,
            due: 0,
            covered: 0,
        })
    }
}

#[derive(Debug)]
struct BurstPolicy {
    delay: Duration,
    losses: LossesPerTrip,
    /// Source symbols of the current burst.
    sent: u32,
    /// Whether there was nothing more to send after the last of them.
    paused: bool,
    /// Source symbols since the last repair symbol.
    unprotected: u32,
    /// When the burst, which has ended, is to be protected.
    due_at: Option<Instant>,
    /// Repair symbols that are left to send for the symbols below `covered`.
    due: u32,
    covered: u64,
}

impl BurstPolicy {
    /// Number of repair symbols to send at `now`.
    fn due(&self, now: Instant, view: &View) -> u32 {
        if self.due_at.is_none_or(|at| at > now) {
            return self.due;
        }
        let symbols = in_flight(view).min(self.unprotected);
        repairs(symbols, SOURCES_PER_REPAIR, self.losses.most(now))
    }
}

impl Redundancy for BurstPolicy {
    fn on_source_sent(&mut self, now: Instant, _id: u64, view: &View) {
        if self.paused && self.due_at.is_none() {
            self.sent = 0;
        }
        self.sent = self.sent.saturating_add(1);
        self.unprotected = self.unprotected.saturating_add(1);
        self.paused = !view.has_source;
        let ended = self.paused && self.sent > FEW;
        self.due_at = ended.then(|| now + self.delay.max(FLUSH_LINGER));
    }

    fn on_flushed(&mut self, now: Instant, ended: bool, view: &View) {
        if ended && !view.has_source && self.due_at.is_some() {
            self.due_at = Some(now + self.delay);
        }
    }

    fn on_repair_sent(&mut self, now: Instant, view: &View) {
        let due = self.due(now, view);
        if self.due_at.take_if(|at| *at <= now).is_some() {
            self.covered = view.next;
        }
        self.due = due.saturating_sub(1);
        self.unprotected = 0;
    }

    fn on_lost(&mut self, now: Instant, id: u64, view: &View) {
        self.losses.on_lost(now, id, view);
    }

    fn on_arrived(&mut self, now: Instant, id: u64, how: Arrival, view: &View) {
        self.losses.on_arrived(now, id, how, view);
        if view.unacked == 0 {
            self.due_at = None;
        }
        if view.unacked == 0 || view.first >= self.covered {
            self.due = 0;
        }
    }

    fn protects_all(&self) -> bool {
        true
    }

    fn decide(&self, now: Instant, view: &View) -> Decision {
        if self.due(now, view) > 0 && view.unacked > 0 && !view.has_source {
            return Decision::Repair(RepairPlan::over(view.span()));
        }
        Decision::Source
    }

    fn timeout(&self) -> Option<Instant> {
        self.due_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::with;

    const MS: Duration = Duration::from_millis(1);

    fn view(next: u64, unacked: u32) -> View {
        with(View::default(), |view| {
            (view.next, view.unacked) = (next, unacked);
            view.path.rtt = 100 * MS;
        })
    }

    /// Sends a burst of the symbols `ids`, of which the window keeps the last `unacked`.
    fn send(policy: &mut dyn Redundancy, now: Instant, ids: std::ops::Range<u64>, ended: bool) {
        for id in ids.clone() {
            let more = id + 1 < ids.end;
            let view = with(view(id + 1, (id + 1) as u32), |view| view.has_source = more);
            policy.on_source_sent(now, id, &view);
            if !more {
                policy.on_flushed(now, ended, &view);
            }
        }
    }

    /// How many repair symbols are sent at `now`.
    fn sent(policy: &mut dyn Redundancy, now: Instant, view: &View) -> u32 {
        let mut count = 0;
        while let Decision::Repair(plan) = policy.decide(now, view) {
            assert_eq!(plan, RepairPlan::over(view.span()));
            policy.on_repair_sent(now, view);
            count += 1;
        }
        count
    }

    #[test]
    fn the_end_of_a_burst_is_protected_once() {
        let (now, mut policy) = (Instant::now(), Burst::default().build());
        send(&mut *policy, now, 0..30, true);
        assert_eq!(sent(&mut *policy, now, &view(30, 30)), 15, "nothing is known of the losses");
        assert_eq!(sent(&mut *policy, now + 200 * MS, &view(30, 30)), 0);
        assert_eq!(policy.timeout(), None);
    }

    #[test]
    fn small_bursts_are_not_protected() {
        let (now, mut policy) = (Instant::now(), Burst::default().build());
        for burst in 0..10 {
            send(&mut *policy, now, burst * 12..burst * 12 + 12, false);
            let next = burst * 12 + 12;
            assert_eq!(sent(&mut *policy, now + MS, &view(next, next as u32)), 0);
        }
        send(&mut *policy, now, 120..133, false);
        let after = view(133, 133);
        assert_eq!(sent(&mut *policy, now, &after), 0, "a slow writer may have more");
        assert_eq!(policy.timeout(), Some(now + MS));
        // All symbols since the last repair symbol are protected, not only the symbols of this burst.
        assert_eq!(sent(&mut *policy, now + MS, &after), 133u32.div_ceil(2));
    }

    #[test]
    fn only_what_is_still_in_flight_is_protected() {
        for (unacked, missing, expected) in [(30, 0, 15), (30, 10, 10), (8, 0, 5), (8, 8, 0)] {
            let (now, mut policy) = (Instant::now(), Burst::default().build());
            send(&mut *policy, now, 0..30, true);
            let view = with(view(30, unacked), |view| view.missing = missing);
            assert_eq!(sent(&mut *policy, now, &view), expected, "{unacked} {missing}");
        }
    }

    #[test]
    fn the_losses_of_earlier_round_trips_decide() {
        let (now, mut policy) = (Instant::now(), Burst::default().build());
        send(&mut *policy, now, 0..30, true);
        (0..3).for_each(|id| policy.on_lost(now, id, &view(30, 30)));
        // Three, and twice the first deviation of one.
        assert_eq!(sent(&mut *policy, now + 100 * MS, &view(30, 30)), 5);
    }

    #[test]
    fn the_delay_joins_bursts_and_new_data_goes_first() {
        let (now, mut policy) = (Instant::now(), Burst::new(10 * MS).build());
        send(&mut *policy, now, 0..20, true);
        assert_eq!(policy.timeout(), Some(now + 10 * MS));
        send(&mut *policy, now + 5 * MS, 20..24, true);
        assert_eq!(sent(&mut *policy, now + 10 * MS, &view(24, 24)), 0);
        let busy = with(view(24, 24), |view| view.has_source = true);
        assert_eq!(sent(&mut *policy, now + 15 * MS, &busy), 0);
        assert_eq!(sent(&mut *policy, now + 15 * MS, &view(24, 24)), 12);
    }

    #[test]
    fn what_has_landed_is_not_protected_further() {
        let (now, mut policy) = (Instant::now(), Burst::default().build());
        send(&mut *policy, now, 0..30, true);
        policy.on_repair_sent(now, &view(30, 30));
        let landed = with(view(31, 1), |view| view.first = 30);
        policy.on_arrived(now, 29, Arrival::Acked, &landed);
        assert_eq!(sent(&mut *policy, now, &landed), 0);
    }
}

//! The redundancy seam: at each free congestion-window slot, a policy says whether the session's
//! next packet carries new data or a repair symbol.
//!
//! [`Tail`] and [`Incremental`] are the two schedules of Holzinger 2025, sections II-D4 and II-D5.

use std::fmt::Debug;
use std::time::{Duration, Instant};

/// How a stream wants to be protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Protection {
    /// Burst loss tolerance: repair symbols per occasion. 0 means no protection.
    pub burst: u32,
    /// Repair delay tolerance: how long a repair may wait after the data that it protects.
    pub delay: Duration,
    /// Whether the data is useful piece by piece, so that every piece is protected soon after it
    /// was sent; otherwise only the end of what was sent is.
    pub incremental: bool,
}

impl Protection {
    /// The most repair symbols that may be asked for per occasion.
    pub const MAX_BURST: u32 = 32;

    /// The policy that gives this protection.
    #[must_use]
    pub fn policy(self) -> Box<dyn RedundancyPolicy> {
        let burst = self.burst.min(Self::MAX_BURST);
        if self.incremental {
            Box::new(Incremental::new(burst, self.delay))
        } else {
            Box::new(Tail::new(burst, self.delay))
        }
    }
}

/// What a policy may know of its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionView {
    /// The session's next source symbol.
    pub next_id: u64,
    /// Source symbols in the coding window that were sent and are not known to have arrived.
    pub unacked: u32,
    /// Repair symbols in flight.
    pub repairs_in_flight: u32,
    /// The smoothed round-trip time.
    pub rtt: Duration,
}

/// A free slot in the congestion window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slot {
    /// Whether the session has new data that flow control lets it send now.
    pub has_source: bool,
}

/// What goes into a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// New data, if there is any.
    Source,
    /// A repair symbol over all that is unacknowledged in the coding window.
    Repair,
}

/// Decides when a session sends redundancy.
///
/// A policy owns no timer: it says by [`timeout`](Self::timeout) when it wants to be asked again.
pub trait RedundancyPolicy: Debug + Send {
    /// A new source symbol was sent.
    fn on_source_sent(&mut self, now: Instant, view: &SessionView);

    /// Everything that the application gave was sent; `ended` if it gave all that there will be.
    fn on_flushed(&mut self, now: Instant, ended: bool, view: &SessionView);

    /// A repair symbol was sent.
    fn on_repair_sent(&mut self, now: Instant, view: &SessionView);

    /// Source symbols were acknowledged, or recovered by the peer.
    fn on_acked(&mut self, now: Instant, view: &SessionView);

    /// What goes into this slot.
    fn decide(&mut self, now: Instant, slot: Slot, view: &SessionView) -> Decision;

    /// When the decision may change though nothing else happens.
    fn timeout(&self) -> Option<Instant>;
}

/// How long an application that wrote nothing new is given to do so, before the stream counts as
/// flushed: a writer in another task needs a moment to refill its buffer.
const FLUSH_LINGER: Duration = Duration::from_millis(1);

/// Repair symbols when the application has no more to send for now: they mend a loss in the last
/// flight, which a retransmission would mend a round trip later (Holzinger 2025, II-D4).
#[derive(Debug)]
pub struct Tail {
    burst: u32,
    delay: Duration,
    /// When the repair symbols of the present occasion fall due.
    due_at: Option<Instant>,
    /// Repair symbols still to send.
    due: u32,
    /// Symbols below were covered by an earlier occasion.
    covered: u64,
}

impl Tail {
    /// Sends `burst` repair symbols `delay` after each flush.
    #[must_use]
    pub fn new(burst: u32, delay: Duration) -> Self {
        Self { burst, delay, due_at: None, due: 0, covered: 0 }
    }
}

impl RedundancyPolicy for Tail {
    fn on_source_sent(&mut self, _now: Instant, _view: &SessionView) {
        // What was meant to be the end was not.
        self.due_at = None;
        self.due = 0;
    }

    fn on_flushed(&mut self, now: Instant, ended: bool, view: &SessionView) {
        if view.next_id > self.covered && self.due_at.is_none() {
            let wait = if ended { self.delay } else { self.delay.max(FLUSH_LINGER) };
            self.due_at = Some(now + wait);
        }
    }

    fn on_repair_sent(&mut self, _now: Instant, _view: &SessionView) {
        self.due = self.due.saturating_sub(1);
    }

    fn on_acked(&mut self, _now: Instant, view: &SessionView) {
        if view.unacked == 0 {
            self.due_at = None;
            self.due = 0;
        }
    }

    fn decide(&mut self, now: Instant, slot: Slot, view: &SessionView) -> Decision {
        if slot.has_source || view.unacked == 0 {
            return Decision::Source;
        }
        if self.due_at.is_some_and(|at| at <= now) {
            self.due_at = None;
            self.due = self.burst;
            self.covered = view.next_id;
        }
        if self.due > 0 { Decision::Repair } else { Decision::Source }
    }

    fn timeout(&self) -> Option<Instant> {
        self.due_at
    }
}

/// Source symbols that a sender which is never idle sends for each repair symbol, at least. What
/// repair symbols take of its window is data that it does not send, and a short window is soon full.
const SOURCES_PER_REPAIR: u32 = 8;

/// Repair symbols a little after each piece of data, unless it is acknowledged by then
/// (Holzinger 2025, II-D5).
#[derive(Debug)]
pub struct Incremental {
    burst: u32,
    delay: Duration,
    /// Source symbols since the last occasion on which new data had to wait; `None` if there was a
    /// moment without new data since.
    sources: Option<u32>,
    /// Whether there was new data, too, at the last decision about a repair symbol.
    pressed: bool,
    /// When the oldest symbol that no repair symbol followed yet wants one.
    due_at: Option<Instant>,
    /// Repair symbols still to send, and since when.
    due: u32,
    due_since: Option<Instant>,
}

impl Incremental {
    /// Sends `burst` repair symbols `delay` after a source symbol.
    #[must_use]
    pub fn new(burst: u32, delay: Duration) -> Self {
        Self { burst, delay, sources: None, pressed: false, due_at: None, due: 0, due_since: None }
    }
}

impl RedundancyPolicy for Incremental {
    fn on_source_sent(&mut self, now: Instant, _view: &SessionView) {
        self.sources = self.sources.map(|n| n.saturating_add(1));
        self.due_at.get_or_insert(now + self.delay);
    }

    fn on_flushed(&mut self, _now: Instant, _ended: bool, _view: &SessionView) {}

    fn on_repair_sent(&mut self, _now: Instant, _view: &SessionView) {
        self.due = self.due.saturating_sub(1);
        if self.due == 0 {
            self.due_since = None;
            self.sources = self.pressed.then_some(0);
        }
    }

    fn on_acked(&mut self, _now: Instant, view: &SessionView) {
        if view.unacked == 0 {
            // How busy the sender is remains as it was.
            (self.due_at, self.due, self.due_since) = (None, 0, None);
        }
    }

    fn decide(&mut self, now: Instant, slot: Slot, view: &SessionView) -> Decision {
        if view.unacked == 0 {
            return Decision::Source;
        }
        if self.due_at.is_some_and(|at| at <= now) {
            self.due_at = None;
            self.due = self.burst;
            self.due_since.get_or_insert(now);
        }
        if self.due == 0 {
            return Decision::Source;
        }
        // New data goes first, so that one repair symbol covers as much as possible. But a sender
        // that is never idle would never repair: past a quarter round trip the repair goes first,
        // if there was data enough since that happened last.
        self.pressed = slot.has_source;
        if !self.pressed {
            self.sources = None;
            return Decision::Repair;
        }
        let patience = view.rtt / 4;
        let overdue = self.due_since.is_some_and(|since| now >= since + patience);
        let enough = self.sources.is_none_or(|n| n >= SOURCES_PER_REPAIR * self.burst);
        if overdue && enough { Decision::Repair } else { Decision::Source }
    }

    fn timeout(&self) -> Option<Instant> {
        self.due_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const IDLE: Slot = Slot { has_source: false };
    const BUSY: Slot = Slot { has_source: true };

    fn view(next_id: u64, unacked: u32) -> SessionView {
        SessionView { next_id, unacked, repairs_in_flight: 0, rtt: 100 * MS }
    }

    /// How many repair symbols the policy sends in a row at `now`.
    fn burst(policy: &mut dyn RedundancyPolicy, now: Instant, v: &SessionView) -> u32 {
        let mut n = 0;
        while policy.decide(now, IDLE, v) == Decision::Repair {
            policy.on_repair_sent(now, v);
            n += 1;
            assert!(n <= Protection::MAX_BURST);
        }
        n
    }

    #[test]
    fn tail_repairs_once_at_the_end() {
        let now = Instant::now();
        let mut tail = Tail::new(3, Duration::ZERO);
        let v = view(5, 5);
        tail.on_source_sent(now, &v);
        assert_eq!(burst(&mut tail, now, &v), 0);
        tail.on_flushed(now, true, &v);
        assert_eq!(burst(&mut tail, now, &v), 3);
        tail.on_flushed(now, true, &v);
        assert_eq!(burst(&mut tail, now, &v), 0, "the same end is not protected twice");
    }

    #[test]
    fn tail_waits_for_a_slow_writer_and_yields_to_new_data() {
        let now = Instant::now();
        let mut tail = Tail::new(2, Duration::ZERO);
        tail.on_flushed(now, false, &view(5, 5));
        assert_eq!(burst(&mut tail, now, &view(5, 5)), 0);
        assert_eq!(tail.timeout(), Some(now + MS));
        tail.on_source_sent(now, &view(6, 6));
        assert_eq!(tail.timeout(), None);
        tail.on_flushed(now, false, &view(6, 6));
        assert_eq!(tail.decide(now + MS, BUSY, &view(6, 6)), Decision::Source);
        assert_eq!(burst(&mut tail, now + MS, &view(6, 6)), 2);
    }

    #[test]
    fn tail_sends_nothing_for_acknowledged_data() {
        let now = Instant::now();
        let mut tail = Tail::new(3, 10 * MS);
        tail.on_flushed(now, true, &view(5, 5));
        tail.on_acked(now + 5 * MS, &view(5, 0));
        assert_eq!(tail.timeout(), None);
        assert_eq!(burst(&mut tail, now + 10 * MS, &view(5, 0)), 0);
    }

    #[test]
    fn incremental_repairs_after_each_piece() {
        let now = Instant::now();
        let mut inc = Incremental::new(3, Duration::ZERO);
        for piece in 1..=4 {
            let now = now + 16 * MS * piece;
            let v = view(u64::from(piece) * 5, 5 * piece);
            for _ in 0..5 {
                assert_eq!(inc.decide(now, BUSY, &v), Decision::Source);
                inc.on_source_sent(now, &v);
            }
            assert_eq!(burst(&mut inc, now, &v), 3);
        }
    }

    #[test]
    fn incremental_waits_for_its_delay() {
        let now = Instant::now();
        let mut inc = Incremental::new(2, 25 * MS);
        let v = view(1, 1);
        inc.on_source_sent(now, &v);
        inc.on_source_sent(now + 10 * MS, &view(2, 2));
        assert_eq!(inc.timeout(), Some(now + 25 * MS));
        assert_eq!(burst(&mut inc, now + 24 * MS, &v), 0);
        assert_eq!(burst(&mut inc, now + 25 * MS, &v), 2);
        inc.on_source_sent(now + 30 * MS, &v);
        inc.on_acked(now + 40 * MS, &view(3, 0));
        assert_eq!(inc.timeout(), None);
    }

    #[test]
    fn incremental_repairs_even_a_sender_that_never_idles_but_not_too_much() {
        let mut now = Instant::now();
        let mut inc = Incremental::new(3, Duration::ZERO);
        let (mut sources, mut repairs) = (0, 0);
        // Two packets in a quarter of a round trip.
        for id in 1..=1000 {
            let v = view(id, 8);
            match inc.decide(now, BUSY, &v) {
                Decision::Source => {
                    inc.on_source_sent(now, &v);
                    sources += 1;
                }
                Decision::Repair => {
                    inc.on_repair_sent(now, &v);
                    repairs += 1;
                }
            }
            assert!(repairs <= 3 + sources / SOURCES_PER_REPAIR, "{sources} {repairs}");
            now += 13 * MS;
        }
        assert!(repairs > sources / SOURCES_PER_REPAIR / 2, "{sources} {repairs}");
        // The end is protected whatever was sent before.
        inc.on_source_sent(now, &view(1001, 8));
        assert_eq!(burst(&mut inc, now, &view(1001, 8)), 3);
    }

    #[test]
    fn incremental_repairs_no_later_than_a_quarter_round_trip_if_there_is_enough() {
        let now = Instant::now();
        let mut inc = Incremental::new(1, Duration::ZERO);
        for id in 1..=8 {
            inc.on_source_sent(now, &view(id, 8));
        }
        assert_eq!(inc.decide(now, BUSY, &view(8, 8)), Decision::Source);
        assert_eq!(inc.decide(now + 24 * MS, BUSY, &view(8, 8)), Decision::Source);
        assert_eq!(inc.decide(now + 25 * MS, BUSY, &view(8, 8)), Decision::Repair);
    }
}

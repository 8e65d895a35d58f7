//! Recovery periods: they limit congestion events to one per round trip (RFC 9002 section 7.3.2),
//! and detect when all losses of a period turn out to be spurious.

use super::Packet;
use std::collections::VecDeque;
use std::time::Instant;

/// How many periods are remembered, to detect that they were spurious; the oldest is forgotten
/// first. A period lasts a round trip, and losses are refuted within a few of these.
pub(super) const MAX_PERIODS: usize = 16;

/// Why a recovery period began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// A packet was declared lost. The declaration may turn out to be wrong.
    Loss,
    /// The network marked a packet. A mark is never refuted.
    EcnCe,
}

/// The state that a controller saves when a period begins, to undo its reaction.
pub(super) trait Saved {
    /// Raises this state, saved after a reaction that should not have happened, to the state without that
    /// reaction. `earlier` was saved before it.
    fn without_reaction(&mut self, earlier: Self);
}

/// A period none of whose losses was real.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Refuted<S> {
    /// The state that was saved when the period began.
    pub(super) saved: S,
    /// How many periods began after it and still stand: their reactions apply to `saved`.
    pub(super) later: usize,
}

/// One recovery period. It covers the packets sent after the previous one began, until it began.
#[derive(Debug, Clone)]
struct Period<S> {
    after: Option<Instant>,
    start: Instant,
    /// Losses of this period that have not been refuted.
    losses: u64,
    /// Whether only losses justify this period.
    refutable: bool,
    /// Whether its last loss was refuted.
    refuted: bool,
    saved: S,
}

impl<S> Period<S> {
    fn owns(&self, sent: Instant) -> bool {
        self.after.is_none_or(|after| after < sent) && sent <= self.start
    }
}

/// The newest recovery periods.
///
/// On a path that reorders, several may have begun before the first turns out to be spurious, so
/// each is judged by its own losses.
#[derive(Debug, Clone)]
pub(super) struct Episodes<S> {
    /// Oldest first.
    periods: VecDeque<Period<S>>,
    /// The start of the newest period that was forgotten or cleared: its losses count towards no
    /// other.
    forgotten: Option<Instant>,
    /// Whether no packet sent after the newest period began has been acknowledged yet.
    open: bool,
}

impl<S> Default for Episodes<S> {
    fn default() -> Self {
        Self { periods: VecDeque::new(), forgotten: None, open: false }
    }
}

impl<S: Saved + Clone> Episodes<S> {
    /// Whether a packet sent at `sent` carries no new information because it was sent before the
    /// newest reaction.
    pub(super) fn covers(&self, sent: Instant) -> bool {
        self.periods.back().is_some_and(|newest| sent <= newest.start)
    }

    /// Whether no packet sent after the newest reaction has been acknowledged yet.
    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    /// Begins a period with a congestion event at `now`. `saved` undoes the reaction to it.
    pub(super) fn begin(&mut self, now: Instant, cause: Cause, saved: S) {
        if self.periods.len() == MAX_PERIODS {
            self.forgotten = self.periods.pop_front().map(|oldest| oldest.start);
        }
        let after = self.periods.back().map(|newest| newest.start).max(self.forgotten);
        let refutable = cause == Cause::Loss;
        self.periods.push_back(Period {
            after,
            start: now,
            losses: 0,
            refutable,
            refuted: false,
            saved,
        });
        self.open = true;
    }

    /// Handles a mark within the newest period: losses alone no longer justify it.
    pub(super) fn confirm(&mut self) {
        if let Some(newest) = self.periods.back_mut() {
            newest.refutable = false;
        }
    }

    /// Makes all reactions so far final.
    pub(super) fn confirm_all(&mut self) {
        self.periods.iter_mut().for_each(|period| period.refutable = false);
    }

    /// Handles the acknowledgement of a packet; returns whether it ended the newest period.
    pub(super) fn on_acked(&mut self, sent: Instant) -> bool {
        let ends = self.open && !self.covers(sent);
        if ends {
            self.open = false;
        }
        ends
    }

    /// Counts losses towards their periods. Call this after [`Self::begin`] if they began one.
    pub(super) fn on_lost(&mut self, lost: &[Packet]) {
        for packet in lost {
            if let Some(period) = self.period_of(packet.sent) {
                period.losses = period.losses.saturating_add(1);
            }
        }
    }

    /// Handles refuted losses. [`take_refuted`](Self::take_refuted) returns the periods to undo.
    pub(super) fn on_spurious(&mut self, packets: &[Packet]) {
        for packet in packets {
            if let Some(period) = self.period_of(packet.sent) {
                period.refuted |= period.losses == 1;
                period.losses = period.losses.saturating_sub(1);
            }
        }
    }

    /// Removes the oldest period that nothing justifies any more, as if it had never begun. Call
    /// this until it returns `None`.
    pub(super) fn take_refuted(&mut self) -> Option<Refuted<S>> {
        let is_refuted = |period: &Period<S>| period.refutable && period.refuted;
        let index = self.periods.iter().position(is_refuted)?;
        let Period { saved, .. } = self.periods.remove(index)?;
        if let Some(next) = self.periods.get_mut(index) {
            next.saved.without_reaction(saved.clone());
        } else {
            self.open = false;
        }
        Some(Refuted { saved, later: self.periods.len() - index })
    }

    /// Forgets all periods, so that the next loss is a separate congestion event.
    pub(super) fn clear(&mut self) {
        let newest = self.periods.back().map(|newest| newest.start);
        *self = Self { forgotten: newest.max(self.forgotten), ..Self::default() };
    }

    fn period_of(&mut self, sent: Instant) -> Option<&mut Period<S>> {
        self.periods.iter_mut().rev().find(|period| period.owns(sent))
    }
}

/// When the newest of `packets` was sent.
pub(super) fn newest_sent(packets: &[Packet]) -> Option<Instant> {
    packets.iter().map(|packet| packet.sent).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SpaceId;
    use crate::{PacketState, Sent};
    use std::time::Duration;

    const MS: Duration = Duration::from_millis(1);

    impl Saved for u64 {
        fn without_reaction(&mut self, earlier: Self) {
            *self = earlier.max(*self);
        }
    }

    fn sent(at: Instant) -> Packet {
        Packet::new(&Sent::new(SpaceId::Data, 0, 1_000), at, PacketState::default())
    }

    /// Declares the packet lost 30 ms after it was sent.
    fn lose(episodes: &mut Episodes<u64>, packet: &Packet, saved: u64) {
        if !episodes.covers(packet.sent) {
            episodes.begin(packet.sent + 30 * MS, Cause::Loss, saved);
        }
        episodes.on_lost(&[*packet]);
    }

    fn refute(episodes: &mut Episodes<u64>, packets: &[Packet]) -> Vec<(u64, usize)> {
        episodes.on_spurious(packets);
        let taken = std::iter::from_fn(|| episodes.take_refuted());
        taken.map(|refuted| (refuted.saved, refuted.later)).collect()
    }

    #[test]
    fn each_period_is_judged_by_its_own_losses() {
        let t = Instant::now();
        let packets = [0, 10, 40, 80].map(|ms| sent(t + ms * MS));
        let mut episodes = Episodes::default();
        lose(&mut episodes, &packets[0], 100);
        lose(&mut episodes, &packets[1], 0);
        lose(&mut episodes, &packets[2], 70);
        lose(&mut episodes, &packets[3], 49);
        assert_eq!(refute(&mut episodes, &packets[..1]), [], "another loss is left");
        assert_eq!(refute(&mut episodes, &packets[1..2]), [(100, 2)]);
        assert_eq!(refute(&mut episodes, &packets[3..]), [(49, 0)]);
        assert!(!episodes.is_open());
        assert_eq!(refute(&mut episodes, &packets[2..3]), [(100, 0)], "saved before the first");
        assert!(!episodes.covers(t), "as if nothing had been lost");
    }

    #[test]
    fn all_periods_may_be_refuted_at_once() {
        let t = Instant::now();
        let packets = [0, 40, 80].map(|ms| sent(t + ms * MS));
        let mut episodes = Episodes::default();
        packets.iter().zip([100, 70, 49]).for_each(|(p, saved)| lose(&mut episodes, p, saved));
        assert_eq!(refute(&mut episodes, &packets), [(100, 2), (100, 1), (100, 0)]);
    }

    #[test]
    fn marks_make_a_reaction_final() {
        let t = Instant::now();
        let mut episodes = Episodes::default();
        lose(&mut episodes, &sent(t), 100);
        episodes.confirm();
        assert_eq!(refute(&mut episodes, &[sent(t)]), []);
        let marked = sent(t + 50 * MS);
        episodes.begin(marked.sent, Cause::EcnCe, 70);
        episodes.on_lost(&[marked]);
        assert_eq!(refute(&mut episodes, &[marked]), []);
        lose(&mut episodes, &sent(t + 90 * MS), 49);
        episodes.confirm_all();
        assert_eq!(refute(&mut episodes, &[sent(t + 90 * MS)]), []);
    }

    #[test]
    fn losses_of_a_forgotten_period_are_not_those_of_the_next() {
        let t = Instant::now();
        let mut episodes = Episodes::default();
        lose(&mut episodes, &sent(t), 100);
        episodes.clear();
        assert!(!episodes.covers(t) && !episodes.is_open());
        lose(&mut episodes, &sent(t + MS), 80);
        assert_eq!(refute(&mut episodes, &[sent(t)]), []);
        lose(&mut episodes, &sent(t + 40 * MS), 70);
        assert_eq!(refute(&mut episodes, &[]), []);
        assert_eq!(refute(&mut episodes, &[sent(t + 40 * MS)]), [(70, 0)]);
    }

    #[test]
    fn a_flood_of_periods_is_remembered_within_bounds() {
        let t = Instant::now();
        let packets: Vec<_> = (0..1_000).map(|i| sent(t + i * 40 * MS)).collect();
        let mut episodes = Episodes::default();
        packets.iter().for_each(|packet| lose(&mut episodes, packet, 1));
        assert_eq!(episodes.periods.len(), MAX_PERIODS);
        assert!(episodes.periods.capacity() <= 2 * MAX_PERIODS);
        assert_eq!(refute(&mut episodes, &packets).len(), MAX_PERIODS);
    }
}

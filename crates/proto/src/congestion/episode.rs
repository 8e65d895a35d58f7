//! A recovery period: what makes a congestion event happen at most once per round trip (RFC 9002
//! section 7.3.2), and detects when all of its losses were declared wrongly.

use super::Packet;
use std::time::Instant;

/// Why a recovery period began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// A packet was declared lost: the declaration may turn out to be wrong.
    Loss,
    /// The network marked a packet: there is nothing to take back.
    EcnCe,
}

/// The newest recovery period.
#[derive(Debug, Clone, Default)]
pub(super) struct Episode {
    start: Option<Instant>,
    previous_start: Option<Instant>,
    /// Losses of this period that were not refuted yet.
    losses: u64,
    /// Whether losses alone stand behind this period.
    refutable: bool,
    open: bool,
}

impl Episode {
    /// Whether a packet sent at `sent` tells nothing new, because it was sent before the reaction.
    pub(super) fn covers(&self, sent: Instant) -> bool {
        self.start.is_some_and(|start| sent <= start)
    }

    /// Whether no packet sent after the reaction has been acknowledged yet.
    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    /// A congestion event at `now`.
    pub(super) fn begin(&mut self, now: Instant, cause: Cause) {
        self.previous_start = self.start;
        self.start = Some(now);
        self.losses = 0;
        self.refutable = cause == Cause::Loss;
        self.open = true;
    }

    /// A mark within this period: it is not only about losses any more.
    pub(super) fn confirm(&mut self) {
        self.refutable = false;
    }

    /// A packet was acknowledged; returns whether that ended the period.
    pub(super) fn on_acked(&mut self, sent: Instant) -> bool {
        let ends = self.open && !self.covers(sent);
        if ends {
            self.open = false;
        }
        ends
    }

    /// Counts losses into this period. Call after [`Self::begin`] if they began it.
    pub(super) fn on_lost(&mut self, lost: &[Packet]) {
        self.losses = self.losses.saturating_add(self.own(lost));
    }

    /// Losses were refuted; returns whether none is left that stands behind this period. Says so
    /// once.
    pub(super) fn on_spurious(&mut self, packets: &[Packet]) -> bool {
        let own = self.own(packets);
        if own == 0 || !self.refutable {
            return false;
        }
        self.losses = self.losses.saturating_sub(own);
        if self.losses > 0 {
            return false;
        }
        self.refutable = false;
        self.open = false;
        true
    }

    /// Forgets the period, so that the next loss is a congestion event of its own.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// How many of `packets` belong to this period and not to the one before.
    fn own(&self, packets: &[Packet]) -> u64 {
        let old = |sent| self.previous_start.is_some_and(|previous| sent <= previous);
        packets.iter().filter(|packet| self.covers(packet.sent) && !old(packet.sent)).count() as u64
    }
}

/// When the newest of `packets` was sent.
pub(super) fn newest_sent(packets: &[Packet]) -> Option<Instant> {
    packets.iter().map(|packet| packet.sent).max()
}

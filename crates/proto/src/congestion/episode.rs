//! Recovery periods: they limit congestion events to one per round trip (RFC 9002 section 7.3.2),
//! and detect when all losses of a period turn out to be spurious.

use super::Packet;
use std::time::Instant;

/// Why a recovery period began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// A packet was declared lost. This may turn out to be wrong.
    Loss,
    /// The network marked a packet. This cannot be undone.
    EcnCe,
}

/// The newest recovery period.
#[derive(Debug, Clone, Default)]
pub(super) struct Episode {
    start: Option<Instant>,
    previous_start: Option<Instant>,
    /// Losses of this period that have not been refuted.
    losses: u64,
    /// Whether only losses justify this period.
    refutable: bool,
    open: bool,
}

impl Episode {
    /// Whether a packet sent at `sent` carries no new information because it was sent before the
    /// reaction.
    pub(super) fn covers(&self, sent: Instant) -> bool {
        self.start.is_some_and(|start| sent <= start)
    }

    /// Whether no packet sent after the reaction has been acknowledged yet.
    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    /// Begins a period with a congestion event at `now`.
    pub(super) fn begin(&mut self, now: Instant, cause: Cause) {
        self.previous_start = self.start;
        self.start = Some(now);
        self.losses = 0;
        self.refutable = cause == Cause::Loss;
        self.open = true;
    }

    /// Handles a mark within this period: losses alone no longer justify it.
    pub(super) fn confirm(&mut self) {
        self.refutable = false;
    }

    /// Handles the acknowledgement of a packet; returns whether it ended the period.
    pub(super) fn on_acked(&mut self, sent: Instant) -> bool {
        let ends = self.open && !self.covers(sent);
        if ends {
            self.open = false;
        }
        ends
    }

    /// Counts losses towards this period. Call this after [`Self::begin`] if they began it.
    pub(super) fn on_lost(&mut self, lost: &[Packet]) {
        self.losses = self.losses.saturating_add(self.own(lost));
    }

    /// Handles refuted losses. Returns whether none is left that justifies this period, which it
    /// does only once.
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

    /// Forgets the period, so that the next loss is a separate congestion event.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// How many of `packets` belong to this period and not to the previous one.
    fn own(&self, packets: &[Packet]) -> u64 {
        let old = |sent| self.previous_start.is_some_and(|previous| sent <= previous);
        packets.iter().filter(|packet| self.covers(packet.sent) && !old(packet.sent)).count() as u64
    }
}

/// When the newest of `packets` was sent.
pub(super) fn newest_sent(packets: &[Packet]) -> Option<Instant> {
    packets.iter().map(|packet| packet.sent).max()
}

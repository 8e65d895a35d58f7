//! The memory of all coding windows of a connection: its budget, and its release.

use super::{MAX_ENCODER_BYTES, SendSessions};
use crate::fec::beyond::{Beyond, MAX_BEYOND_SYMBOLS};
use crate::fec::session::CodingSession;
use crate::fec::symbol::Evicted;
use std::time::Instant;

impl SendSessions {
    /// How many bytes all windows may hold.
    pub(super) fn budget(&self) -> usize {
        MAX_ENCODER_BYTES.saturating_sub(self.withheld)
    }

    /// Whether a window has grown since the last call, so that the budget is to be checked.
    pub fn take_growth(&mut self) -> bool {
        std::mem::take(&mut self.grown)
    }

    /// Whether [`enforce_budget`](Self::enforce_budget) has to evict symbols.
    pub fn is_over_budget(&self) -> bool {
        self.rest.is_none() && self.allocated() > self.budget()
    }

    /// Forgets symbols that left the window of `session` while all sessions remember too many of them.
    pub(super) fn limit_beyond(&mut self, session: u16, mut forget: impl FnMut(Evicted)) {
        let most = MAX_BEYOND_SYMBOLS.min(self.budget() * MAX_BEYOND_SYMBOLS / MAX_ENCODER_BYTES);
        let mut surplus = self.beyond().saturating_sub(most);
        let Some(s) = self.session(session).filter(|_| surplus > 0) else { return };
        while surplus > 0
            && let Some(forgotten) = s.forget_beyond()
        {
            forget(forgotten);
            surplus -= 1;
        }
        s.release_repairs();
    }

    /// Number of symbols that left the windows and are remembered.
    pub(super) fn beyond(&self) -> usize {
        self.sessions.iter().map(CodingSession::beyond_len).sum()
    }

    /// Evicts the oldest symbols of the largest windows while all sessions together hold more than the
    /// allowance, [`MAX_ENCODER_BYTES`] at most. Calls `evict` for evicted symbols that are not known to have
    /// arrived.
    pub fn enforce_budget(&mut self, mut evict: impl FnMut(u16, Evicted)) {
        self.moved = true;
        let mut held = self.allocated();
        while held > self.budget() {
            let sessions = (0u16..).zip(&mut self.sessions);
            let Some((session, s)) = sessions.max_by_key(|(_, s)| s.encoder.allocated()) else {
                return;
            };
            let before = s.encoder.allocated();
            s.give_up_kept();
            s.shrink();
            if s.encoder.allocated() == before {
                // Evict a quarter of the window at a time, so that not every new symbol evicts again.
                for _ in 0..s.window_len().div_ceil(4) {
                    s.evict().into_iter().for_each(|evicted| evict(session, evicted));
                }
                s.shrink();
            }
            s.release_repairs();
            let freed = before - s.encoder.allocated();
            if freed == 0 {
                return;
            }
            held -= freed;
            self.limit_beyond(session, |evicted| evict(session, evicted));
        }
    }

    /// Sets how many bytes all coding windows may hold, [`MAX_ENCODER_BYTES`] at most. Returns whether
    /// they hold more.
    pub fn set_allowance(&mut self, bytes: usize) -> bool {
        self.rest = None;
        self.withheld = MAX_ENCODER_BYTES.saturating_sub(bytes);
        self.withheld > 0 && self.allocated() > bytes
    }

    /// Number of bytes that all coding windows hold.
    pub(super) fn allocated(&self) -> usize {
        self.sessions.iter().map(|s| s.encoder.allocated()).sum()
    }

    /// Bytes of memory of all coding windows and of the symbols that left them.
    pub fn memory(&self) -> usize {
        self.allocated() + self.beyond() * Beyond::SYMBOL_COST
    }

    /// When an idle session releases its memory.
    pub fn idle_timeout(&self) -> Option<Instant> {
        match self.rest {
            Some(rest) => rest.idle,
            None => self.sessions.iter().filter_map(CodingSession::idle_at).min(),
        }
    }

    /// Releases the memory of idle sessions.
    pub fn release_idle(&mut self, now: Instant) {
        if self.idle_timeout().is_none_or(|at| at > now) {
            return;
        }
        self.rest = None;
        self.moved = true;
        for s in &mut self.sessions {
            if s.idle_at().is_some_and(|at| at <= now) {
                s.shrink();
            }
        }
    }
}

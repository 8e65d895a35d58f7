//! The sending half of one session: its coding window and what became of each symbol.

use super::policy::{Protection, RedundancyPolicy, SessionView};
use crate::ids::StreamId;
use crate::recovery::token::StreamToken;
use smallvec::SmallVec;
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use sutura_erasure::{Encoder, WindowLimits};

/// Repair keys are used in turn from this many, so that a key takes two bytes at most. The same
/// key comes again long after its first use has left every window.
const REPAIR_KEYS: u32 = 1 << 14;

/// What became of a source symbol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SymbolState {
    /// Its packet is in flight.
    InFlight,
    /// Its packet was lost; a repair symbol on its way may mend that.
    Held {
        /// When the waiting ends.
        until: Instant,
    },
    /// Its packet was lost and it waits to be sent again.
    Resend,
    /// It arrived, was recovered, or nobody wants it any more.
    Done,
}

/// A source symbol in the window.
#[derive(Debug)]
pub(super) struct Symbol {
    pub(super) state: SymbolState,
    /// The frames that it holds; none once it is [`SymbolState::Done`].
    pub(super) frames: SmallVec<[StreamToken; 1]>,
}

/// A coding window with its policy.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) encoder: Encoder,
    pub(super) protection: Protection,
    pub(super) policy: Box<dyn RedundancyPolicy>,
    /// Streams that belong to the session.
    pub(super) streams: Vec<StreamId>,
    /// Symbols in the encoder's window, oldest first.
    symbols: VecDeque<Symbol>,
    /// Symbols of the window that are not [`SymbolState::Done`].
    open: u32,
    /// Symbols of the window that are [`SymbolState::Held`].
    held: u32,
    /// Repair symbols in flight, oldest first: when sent, and the span.
    repairs: VecDeque<RepairInFlight>,
    next_key: u32,
    /// The lower bound that the peer was told last.
    told: u64,
}

#[derive(Debug, Clone, Copy)]
struct RepairInFlight {
    sent: Instant,
    first: u64,
    end: u64,
}

impl Session {
    pub(super) fn new(limits: WindowLimits, protection: Protection) -> Self {
        Self {
            encoder: Encoder::new(limits),
            protection,
            policy: protection.policy(),
            streams: Vec::new(),
            symbols: VecDeque::new(),
            open: 0,
            held: 0,
            repairs: VecDeque::new(),
            next_key: 0,
            told: 0,
        }
    }

    /// Serves a stream with another protection from now on.
    pub(super) fn reuse(&mut self, protection: Protection) {
        self.protection = protection;
        self.policy = protection.policy();
    }

    /// First symbol of the window.
    pub(super) fn first(&self) -> u64 {
        self.encoder.next_id() - self.symbols.len() as u64
    }

    /// Whether everything sent is known to have arrived.
    pub(super) fn is_quiet(&self) -> bool {
        self.open == 0
    }

    pub(super) fn view(&self, rtt: Duration) -> SessionView {
        SessionView {
            next_id: self.encoder.next_id(),
            unacked: self.open,
            repairs_in_flight: u32::try_from(self.repairs.len()).unwrap_or(u32::MAX),
            rtt,
        }
    }

    pub(super) fn symbol(&mut self, id: u64) -> Option<&mut Symbol> {
        let index = id.checked_sub(self.first())?;
        self.symbols.get_mut(usize::try_from(index).ok()?)
    }

    pub(super) fn get(&self, id: u64) -> Option<&Symbol> {
        let index = id.checked_sub(self.first())?;
        self.symbols.get(usize::try_from(index).ok()?)
    }

    /// See [`super::SendSessions::share_repair`].
    pub(super) fn share(&self, bytes: usize, mut charge: impl FnMut(StreamId, usize)) {
        let open = || self.symbols.iter().flat_map(|s| &s.frames);
        let total: u64 = open().map(|frame| u64::from(frame.len)).sum();
        if total == 0 {
            return;
        }
        // What is charged up to here follows the sum, so that rounding loses nothing.
        let due = |sum: u64| (u128::from(sum) * bytes as u128 / u128::from(total)) as usize;
        let (mut sum, mut charged) = (0, 0);
        let mut frames = open().peekable();
        while let Some(frame) = frames.next() {
            sum += u64::from(frame.len);
            if frames.peek().is_none_or(|next| next.id != frame.id) {
                let share = due(sum) - charged;
                charged += share;
                charge(frame.id, share);
            }
        }
    }

    pub(super) fn symbols(&self) -> impl Iterator<Item = (u64, &Symbol)> {
        (self.first()..).zip(&self.symbols)
    }

    /// Whether a symbol waits for a repair symbol on its way.
    pub(super) fn holds_any(&self) -> bool {
        self.held > 0
    }

    /// Changes what becomes of a symbol that is not done.
    pub(super) fn set_state(&mut self, id: u64, state: SymbolState) {
        if let Some(symbol) = self.symbol(id) {
            let old = std::mem::replace(&mut symbol.state, state);
            self.held -= u32::from(matches!(old, SymbolState::Held { .. }));
            self.held += u32::from(matches!(state, SymbolState::Held { .. }));
        }
    }

    /// Remembers a symbol that was just sent as `bytes`. Oldest symbols leave the window to make
    /// room; the frames of those that still waited to be sent again go to `orphans`.
    pub(super) fn push(
        &mut self,
        bytes: &[u8],
        frames: &[StreamToken],
        orphans: &mut Vec<StreamToken>,
    ) -> Option<u64> {
        let id = loop {
            match self.encoder.push(bytes) {
                Ok(id) => break id,
                Err(_) if self.symbols.is_empty() => return None,
                Err(_) => self.evict(orphans),
            }
        };
        let frames = frames.iter().map(|f| StreamToken { symbol: None, ..*f }).collect();
        self.symbols.push_back(Symbol { state: SymbolState::InFlight, frames });
        self.open += 1;
        Some(id)
    }

    fn evict(&mut self, orphans: &mut Vec<StreamToken>) {
        let first = self.first();
        let waits = self
            .symbol(first)
            .is_some_and(|s| matches!(s.state, SymbolState::Held { .. } | SymbolState::Resend));
        let frames = self.done(first);
        if waits {
            orphans.extend(frames.into_iter().flatten());
        }
        self.symbols.pop_front();
        self.encoder.release_below(self.first());
    }

    /// Marks a symbol as needing nothing more. Returns the frames that it carried if that is news.
    pub(super) fn done(&mut self, id: u64) -> Option<SmallVec<[StreamToken; 1]>> {
        let symbol = self.symbol(id)?;
        if symbol.state == SymbolState::Done {
            return None;
        }
        let frames = std::mem::take(&mut symbol.frames);
        self.set_state(id, SymbolState::Done);
        self.open -= 1;
        Some(frames)
    }

    /// Lets go of what is done at the old end of the window.
    pub(super) fn slide(&mut self) {
        while self.symbols.front().is_some_and(|s| s.state == SymbolState::Done) {
            self.symbols.pop_front();
        }
        self.encoder.release_below(self.first());
    }

    /// The span that a repair symbol would cover now: all of the window.
    pub(super) fn span(&self) -> std::ops::Range<u64> {
        self.first()..self.encoder.next_id()
    }

    pub(super) fn next_key(&mut self) -> u32 {
        let key = self.next_key;
        self.next_key = (key + 1) % REPAIR_KEYS;
        key
    }

    pub(super) fn peek_key(&self) -> u32 {
        self.next_key
    }

    pub(super) fn repair_sent(&mut self, now: Instant, span: std::ops::Range<u64>) {
        self.told = self.told.max(span.start);
        self.repairs.push_back(RepairInFlight { sent: now, first: span.start, end: span.end });
    }

    /// A repair symbol over this span is no longer in flight, or nearly so.
    pub(super) fn repair_settled(&mut self, first: u64, end: u64) {
        if let Some(i) = self.repairs.iter().position(|r| r.first == first && r.end == end) {
            self.repairs.remove(i);
        }
    }

    /// When the newest repair symbol in flight that covers `id` was sent.
    pub(super) fn repair_covering(&self, id: u64) -> Option<Instant> {
        self.repairs.iter().rev().find(|r| (r.first..r.end).contains(&id)).map(|r| r.sent)
    }

    /// The window's lower bound, if the peer should be told: it could free half a window.
    pub(super) fn lower_bound_to_tell(&self, window: u64) -> Option<u64> {
        let first = self.first();
        (first >= self.told.saturating_add(window / 2)).then_some(first)
    }

    pub(super) fn told(&mut self, lower_bound: u64) {
        self.told = self.told.max(lower_bound);
    }
}

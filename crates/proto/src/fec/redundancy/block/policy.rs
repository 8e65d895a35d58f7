//! The blocks of one session.

use super::super::tail::FLUSH_LINGER;
use super::super::{Arrival, Decision, Redundancy, RepairPlan, Stage, Turn, View};
use super::Block;
use std::collections::VecDeque;
use std::ops::Range;
use std::time::Instant;

/// A block whose source symbols were all sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SentBlock {
    span: Range<u64>,
    /// Number of parity symbols of the block by the update's rate, if there is a rate.
    share: u32,
    /// Number of parity symbols sent.
    sent: u32,
}

impl SentBlock {
    /// Whether the block still needs parity symbols: some of its symbols have not arrived and may still be in
    /// time. After the first parity symbol, further parity symbols must cover the same symbols.
    fn is_wanted(&self, view: &View) -> bool {
        view.span().start < self.span.end && (self.sent == 0 || view.kept <= self.span.start)
    }
}

/// The part of an update that has been sent, if parity is in proportion to the update.
#[derive(Debug, Clone, Copy, Default)]
struct SentUpdate {
    symbols: u64,
    /// Parity symbols of the complete blocks of the update.
    parities: u32,
}

#[derive(Debug)]
pub(super) struct BlockPolicy {
    block: Block,
    /// The block that is being filled.
    open: Option<Range<u64>>,
    /// Blocks that need parity symbols, oldest first. Blocks that are no longer within the coding
    /// window are forgotten with the next symbol.
    pub(super) complete: VecDeque<SentBlock>,
    update: SentUpdate,
    /// Whether the newest symbol belongs to an ordered group, whose updates end at fences.
    fenced: bool,
    /// When the open block ends because the application pauses. Only blocks by rate wait for this time.
    rest_at: Option<Instant>,
}

impl BlockPolicy {
    pub(super) fn new(block: Block) -> Self {
        Self {
            block,
            open: None,
            complete: VecDeque::new(),
            update: SentUpdate::default(),
            fenced: false,
            rest_at: None,
        }
    }

    /// How many parity symbols the open block would get by the update's rate. If the block ends only because
    /// it is full, the share is rounded down, so that parity is left for the rest of the update.
    fn share(&self, full: bool) -> u32 {
        let Some(rate) = self.block.parities.rate() else { return 0 };
        let symbols = self.update.symbols;
        let all = if full { rate.whole_parity(symbols) } else { rate.parity(symbols) };
        all.saturating_sub(self.update.parities)
    }

    /// The open block as it would be if it ended now; `None` if it would get no parity symbol.
    fn closed(&self, full: bool) -> Option<SentBlock> {
        let (span, share) = (self.open.clone()?, self.share(full));
        let count = self.block.parities.count(&span, share);
        (count > 0).then_some(SentBlock { span, share, sent: 0 })
    }

    /// Ends the block that is being filled, because it is `full` or for another reason.
    fn close(&mut self, full: bool) {
        if let Some(complete) = self.closed(full) {
            self.update.parities += complete.share;
            self.complete.push_back(complete);
        }
        (self.open, self.rest_at) = (None, None);
    }

    /// Whether the open block has as many symbols as it may have. A block by rate ends only with the next
    /// symbol, which must not push a symbol of the block out of the coding window.
    fn is_full(&self, view: &View) -> bool {
        let most = match self.block.parities.rate() {
            Some(_) => self.block.source.min(view.capacity.saturating_sub(1)).max(1),
            None => self.block.source,
        };
        self.open.as_ref().is_some_and(|open| open.end - open.start >= u64::from(most))
    }

    /// Ends the update and its block.
    fn end_update(&mut self) {
        self.close(false);
        self.update = SentUpdate::default();
    }

    /// Ends the block if it gets parity symbols; otherwise the block goes on with later data.
    fn rest(&mut self) {
        self.rest_at = None;
        if self.closed(false).is_some() {
            self.close(false);
        }
    }

    /// Forgets blocks that no longer need parity symbols.
    fn forget(&mut self, view: &View) {
        while self.complete.front().is_some_and(|block| !block.is_wanted(view)) {
            self.complete.pop_front();
        }
    }

    /// The complete block for which the next parity symbol is.
    fn next(&self, view: &View) -> Option<usize> {
        self.complete.iter().position(|block| block.is_wanted(view))
    }

    /// The open block, if the application has paused long enough for its end.
    fn rested(&self, now: Instant) -> Option<SentBlock> {
        self.rest_at.filter(|at| *at <= now).and_then(|_| self.closed(false))
    }

    /// The number of parity symbols of a block.
    fn count(&self, block: &SentBlock) -> u32 {
        self.block.parities.count(&block.span, block.share)
    }
}

impl Redundancy for BlockPolicy {
    fn on_source_sent(&mut self, now: Instant, id: u64, view: &View) {
        if self.rest_at.is_some_and(|at| at <= now) {
            self.rest();
        }
        self.forget(view);
        let stage = view.message.map_or(Stage::Apart, |message| message.stage);
        if stage == Stage::First {
            self.end_update();
        }
        self.fenced = stage != Stage::Apart;
        // A full block of an update ends with the next symbol, which tells whether the block is the last of
        // the update.
        let by_rate = self.block.parities.rate().is_some();
        if by_rate && self.is_full(view) {
            self.close(true);
        }
        self.update.symbols += 1;
        let open = self.open.get_or_insert(id..id);
        open.end = id + 1;
        let full = self.is_full(view);
        if full && !by_rate {
            self.close(true);
        }
        self.rest_at = (full && by_rate && !view.has_source).then(|| now + FLUSH_LINGER);
    }

    fn on_flushed(&mut self, now: Instant, ended: bool, view: &View) {
        // Another stream or message of the session fills the block.
        if view.has_source {
            return;
        }
        if self.block.parities.rate().is_none() {
            self.close(false);
        } else if !ended || view.left > 0 {
            self.rest_at = Some(now + FLUSH_LINGER);
        } else if self.fenced {
            // More of the update may follow, up to the next fence.
            self.rest();
        } else {
            self.end_update();
        }
    }

    fn on_repair_sent(&mut self, now: Instant, view: &View) {
        if self.next(view).is_none() && self.rested(now).is_some() {
            self.close(false);
        }
        let Some(index) = self.next(view) else { return };
        let parities = self.block.parities;
        if let Some(block) = self.complete.get_mut(index) {
            block.span.start = block.span.start.max(view.kept);
            block.sent += 1;
            if block.sent >= parities.count(&block.span, block.share) {
                self.complete.remove(index);
            }
        }
    }

    fn on_arrived(&mut self, _now: Instant, _id: u64, _how: Arrival, view: &View) {
        self.forget(view);
    }

    fn protects_all(&self) -> bool {
        true
    }

    fn keeps(&self, first: u64) -> u64 {
        let complete = self.complete.iter().map(|block| &block.span);
        let mut wanted = complete.chain(&self.open).filter(|span| span.end > first);
        wanted.next().map_or(first, |span| span.start.min(first))
    }

    fn covers_from(&self, kept: u64) -> u64 {
        let mut wanted = self.complete.iter().map(|block| &block.span).chain(&self.open);
        wanted.next().map_or(u64::MAX, |span| span.start.max(kept))
    }

    fn largest_key(&self) -> u32 {
        self.block.parities.largest_key()
    }

    fn rests(&self, now: Instant, _missing: bool) -> bool {
        self.complete.is_empty() && self.rested(now).is_none()
    }

    fn decide(&self, now: Instant, view: &View) -> Decision {
        let complete = self.next(view).and_then(|index| self.complete.get(index)).cloned();
        let rested = || self.rested(now).filter(|block| block.is_wanted(view));
        let Some(mut block) = complete.or_else(rested) else { return Decision::Source };
        block.span.start = block.span.start.max(view.kept);
        let count = self.count(&block);
        Decision::Repair(RepairPlan {
            code: self.block.parities.code(),
            key: self.block.parities.key(&block.span, count, block.sent),
            span: block.span,
            turn: Turn::Protected,
        })
    }

    fn timeout(&self) -> Option<Instant> {
        self.rest_at.filter(|_| self.closed(false).is_some())
    }
}

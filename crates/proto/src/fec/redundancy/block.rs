//! Parity symbols after each block of data.

use super::{Arrival, Decision, Redundancy, RedundancyFactory, RepairPlan, Stage, Turn, View};
use crate::fec::code::{LdpcStaircase, Parity2d};
use crate::wire::code_id::CodeId;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;
use sutura_schedule::registry::{Entry, UnknownPolicy};

pub(super) const ENTRY: Entry<dyn RedundancyFactory> = Entry::with_parameters(
    "block",
    "parity symbols after each block: Reed-Solomon, LDPC, or rows and columns",
    "source=20,parity=2,code=rs",
    |parameters| {
        let source = parameters.number("source", 20)?;
        let block = match parameters.take("code") {
            None | Some("rs") => Block::new(source, parameters.number("parity", 2)?),
            Some("2d") => Block::parity_2d(source),
            Some("ldpc") => Block::ldpc(source, parameters.number("parity", 3)?),
            Some("window") => Block::window(source, parameters.number("parity", 2)?),
            Some(code) => {
                let text = format!("code: `{code}` is none of rs, ldpc, 2d and window");
                return Err(UnknownPolicy::new(text));
            }
        };
        let block = block.ok_or_else(|| {
            UnknownPolicy::new(
                "a block has 1 to 255 symbols, source and parity together; with ldpc, 2 to 1024 \
                 source and 3 to 256 parity symbols",
            )
        })?;
        Ok(Arc::new(block))
    },
);

/// Maximum number of source and parity symbols of a block together, as for Reed-Solomon codes over
/// GF(256).
pub const MAX_BLOCK: u32 = 255;

/// Blocks: after `source` symbols, at the end of the session's data and at [fences](crate::groups), sends
/// parity symbols. If
/// the peer does not accept the code, repair symbols of the sliding window over the same blocks are
/// sent instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    source: u32,
    parities: Parities,
}

/// The parity symbols of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Parities {
    /// So many of a Reed-Solomon code.
    ReedSolomon(u32),
    /// One for each row and each column.
    Lines,
    /// So many of an LDPC-Staircase code.
    Staircase(u32),
    /// So many of the sliding window's code.
    Window(u32),
}

impl Parities {
    fn code(self) -> CodeId {
        match self {
            Self::ReedSolomon(_) => CodeId::REED_SOLOMON,
            Self::Lines => CodeId::PARITY_2D,
            Self::Staircase(_) => CodeId::LDPC_STAIRCASE,
            Self::Window(_) => CodeId::SLIDING_WINDOW,
        }
    }

    /// How many there are for a block with this span.
    fn count(self, span: &Range<u64>) -> u32 {
        match self {
            Self::ReedSolomon(count) | Self::Staircase(count) | Self::Window(count) => count,
            // There are fewer lines than symbols in all but the smallest blocks.
            Self::Lines => Parity2d::lines(span.end.saturating_sub(span.start)) as u32,
        }
    }
}

impl Parities {
    /// The key of parity symbol `index`; `None` for any that was not used.
    fn key(self, index: u32) -> Option<u32> {
        match self {
            Self::ReedSolomon(_) | Self::Lines => Some(index),
            Self::Staircase(count) => LdpcStaircase::key(count, index),
            Self::Window(_) => None,
        }
    }
}

impl Block {
    /// Reed-Solomon blocks of `source` symbols (k) and `parity` parity symbols (n - k), of which any
    /// set recovers as many losses in its block. `None` if there are no source symbols, or more than
    /// [`MAX_BLOCK`] symbols in all.
    #[must_use]
    pub fn new(source: u32, parity: u32) -> Option<Self> {
        let fits = source.checked_add(parity).is_some_and(|n| n <= MAX_BLOCK);
        let parities = Parities::ReedSolomon(parity);
        (source > 0 && fits).then_some(Self { source, parities })
    }

    /// Blocks of `source` symbols with a parity symbol for each row and each column of the square that
    /// they fill: of 25 symbols, ten (Eghbal and Lu 2022). `None` if there are no source symbols, or
    /// more than [`MAX_BLOCK`] symbols in all.
    #[must_use]
    pub fn parity_2d(source: u32) -> Option<Self> {
        let lines = Parity2d::lines(source.into());
        let fits = u64::from(source) + lines <= u64::from(MAX_BLOCK);
        (source > 0 && fits).then_some(Self { source, parities: Parities::Lines })
    }

    /// LDPC-Staircase blocks of `source` symbols (k) and `parity` parity symbols (n - k). `None` if there
    /// are not 2 to 1024 and 3 to 256 of them.
    #[must_use]
    pub fn ldpc(source: u32, parity: u32) -> Option<Self> {
        let fits = (2..=LdpcStaircase::MAX_SOURCES).contains(&source.into())
            && LdpcStaircase::key(parity, 0).is_some();
        fits.then_some(Self { source, parities: Parities::Staircase(parity) })
    }

    /// Blocks of `source` symbols followed by `parity` repair symbols of the sliding window over the same
    /// symbols, which every peer accepts. `None` if there are no source symbols.
    #[must_use]
    pub fn window(source: u32, parity: u32) -> Option<Self> {
        (source > 0).then_some(Self { source, parities: Parities::Window(parity) })
    }
}

impl RedundancyFactory for Block {
    fn name(&self) -> &str {
        ENTRY.name
    }

    fn parameters(&self) -> String {
        match self.parities {
            Parities::ReedSolomon(parity) => format!("source={}, parity={parity}", self.source),
            Parities::Lines => format!("source={}, code=2d", self.source),
            Parities::Staircase(parity) => {
                format!("source={}, parity={parity}, code=ldpc", self.source)
            }
            Parities::Window(parity) => {
                format!("source={}, parity={parity}, code=window", self.source)
            }
        }
    }

    fn build(&self) -> Box<dyn Redundancy> {
        Box::new(BlockPolicy { block: *self, open: None, complete: VecDeque::new() })
    }
}

/// A block whose source symbols were all sent.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Complete {
    span: Range<u64>,
    /// Number of parity symbols sent.
    sent: u32,
}

#[derive(Debug)]
struct BlockPolicy {
    block: Block,
    /// The block that is being filled.
    open: Option<Range<u64>>,
    /// Blocks that need parity symbols, oldest first. Blocks that are no longer within the coding
    /// window are forgotten with the next symbol.
    complete: VecDeque<Complete>,
}

impl BlockPolicy {
    /// Ends the block that is being filled.
    fn close(&mut self) {
        let wants_any = |span: &Range<u64>| self.block.parities.count(span) > 0;
        if let Some(span) = self.open.take().filter(wants_any) {
            self.complete.push_back(Complete { span, sent: 0 });
        }
    }

    /// Forgets blocks that no longer need parity symbols.
    fn forget(&mut self, view: &View) {
        while self.complete.front().is_some_and(|block| !block.is_wanted(view)) {
            self.complete.pop_front();
        }
    }

    /// The block that the next parity symbol is for.
    fn next(&self, view: &View) -> Option<usize> {
        self.complete.iter().position(|block| block.is_wanted(view))
    }
}

impl Complete {
    /// Whether the block still needs parity symbols: some of it has not arrived. After the first
    /// parity symbol, the others must cover the same symbols.
    fn is_wanted(&self, view: &View) -> bool {
        view.first < self.span.end && (self.sent == 0 || view.first <= self.span.start)
    }
}

impl Redundancy for BlockPolicy {
    fn on_source_sent(&mut self, _now: Instant, id: u64, view: &View) {
        self.forget(view);
        if view.message.is_some_and(|message| message.stage == Stage::First) {
            self.close();
        }
        let open = self.open.get_or_insert(id..id);
        open.end = id + 1;
        if open.end - open.start >= u64::from(self.block.source) {
            self.close();
        }
    }

    fn on_flushed(&mut self, _now: Instant, _ended: bool, view: &View) {
        // Another stream or message of the session fills the block.
        if !view.has_source {
            self.close();
        }
    }

    fn on_repair_sent(&mut self, _now: Instant, view: &View) {
        let Some(index) = self.next(view) else { return };
        if let Some(block) = self.complete.get_mut(index) {
            block.span.start = block.span.start.max(view.first);
            block.sent += 1;
            if block.sent >= self.block.parities.count(&block.span) {
                self.complete.remove(index);
            }
        }
    }

    fn on_arrived(&mut self, _now: Instant, _id: u64, _how: Arrival, view: &View) {
        self.forget(view);
    }

    fn decide(&self, _now: Instant, view: &View) -> Decision {
        match self.next(view).and_then(|index| self.complete.get(index)) {
            Some(block) => Decision::Repair(RepairPlan {
                span: block.span.start.max(view.first)..block.span.end,
                code: self.block.parities.code(),
                key: self.block.parities.key(block.sent),
                turn: Turn::Protected,
            }),
            None => Decision::Source,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Message;
    use crate::fec::code::Code;

    fn view(first: u64, next: u64) -> View {
        View { first, next, unacked: (next - first) as u32, ..View::default() }
    }

    /// The spans and keys of the parity symbols that are sent now.
    fn parities(policy: &mut dyn Redundancy, v: &View) -> Vec<(Range<u64>, u32)> {
        let now = Instant::now();
        let mut plans = Vec::new();
        while let Decision::Repair(plan) = policy.decide(now, v) {
            assert_eq!(policy.decide(now, v), Decision::Repair(plan.clone()));
            assert_eq!(plan.code, CodeId::REED_SOLOMON);
            plans.push((plan.span, plan.key.unwrap()));
            policy.on_repair_sent(now, v);
        }
        plans
    }

    #[test]
    fn parities_follow_each_block_and_the_end() {
        let now = Instant::now();
        let mut policy = Block::new(4, 2).unwrap().build();
        for id in 0..10 {
            policy.on_source_sent(now, id, &view(0, id + 1));
            let expected = match id {
                3 => vec![(0..4, 0), (0..4, 1)],
                7 => vec![(4..8, 0), (4..8, 1)],
                _ => vec![],
            };
            assert_eq!(parities(&mut *policy, &view(0, id + 1)), expected);
        }
        policy.on_flushed(now, true, &view(0, 10));
        assert_eq!(parities(&mut *policy, &view(0, 10)), [(8..10, 0), (8..10, 1)]);
        policy.on_flushed(now, true, &view(0, 10));
        assert_eq!(parities(&mut *policy, &view(0, 10)), []);
    }

    #[test]
    fn rows_and_columns_follow_each_block() {
        let now = Instant::now();
        let mut policy = Block::parity_2d(25).unwrap().build();
        (0..27).for_each(|id| policy.on_source_sent(now, id, &view(0, id + 1)));
        policy.on_flushed(now, true, &view(0, 27));
        let mut sent = Vec::new();
        while let Decision::Repair(plan) = policy.decide(now, &view(0, 27)) {
            assert!(Parity2d.admits(&plan.span, plan.key.unwrap()));
            assert_eq!(plan.code, CodeId::PARITY_2D);
            sent.push((plan.span, plan.key.unwrap()));
            policy.on_repair_sent(now, &view(0, 27));
        }
        let first = (0..10).map(|line| (0..25, line));
        assert!(sent.into_iter().eq(first.chain((0..3).map(|line| (25..27, line)))));
    }

    #[test]
    fn a_staircase_says_how_many_steps_it_has() {
        let now = Instant::now();
        let mut policy = Block::ldpc(100, 5).unwrap().build();
        (0..100).for_each(|id| policy.on_source_sent(now, id, &view(0, id + 1)));
        let mut keys = Vec::new();
        while let Decision::Repair(plan) = policy.decide(now, &view(0, 100)) {
            assert_eq!((&plan.span, plan.code), (&(0..100), CodeId::LDPC_STAIRCASE));
            assert!(LdpcStaircase.admits(&plan.span, plan.key.unwrap()));
            keys.extend(plan.key);
            policy.on_repair_sent(now, &view(0, 100));
        }
        assert_eq!(keys, [0x400, 0x401, 0x402, 0x403, 0x404]);
        assert!(Block::ldpc(1, 3).is_none() && Block::ldpc(2, 2).is_none());
        assert!(Block::ldpc(1025, 3).is_none() && Block::ldpc(100, 257).is_none());
    }

    #[test]
    fn a_fence_ends_a_block() {
        let now = Instant::now();
        let mut policy = Block::new(100, 1).unwrap().build();
        for id in 0..9 {
            let stage = if id % 3 == 0 { Stage::First } else { Stage::Within };
            let message = Some(Message { stage, ..Message::default() });
            policy.on_source_sent(now, id, &View { message, ..view(0, id + 1) });
        }
        assert_eq!(parities(&mut *policy, &view(0, 9)), [(0..3, 0), (3..6, 0)]);
    }

    /// A block may hold many messages, each of which ends its stream.
    #[test]
    fn the_end_of_one_message_of_several_does_not_end_the_block() {
        let now = Instant::now();
        let mut policy = Block::new(4, 1).unwrap().build();
        for id in 0..3 {
            let more = View { has_source: id < 2, ..view(0, id + 1) };
            policy.on_source_sent(now, id, &more);
            policy.on_flushed(now, true, &more);
        }
        assert_eq!(parities(&mut *policy, &view(0, 3)), [(0..3, 0)]);
    }

    #[test]
    fn a_block_shrinks_only_before_its_first_parity() {
        let now = Instant::now();
        let mut policy = Block::new(4, 2).unwrap().build();
        (0..8).for_each(|id| policy.on_source_sent(now, id, &view(0, id + 1)));
        // Two symbols of the first block arrived before any parity symbol was sent.
        policy.on_repair_sent(now, &view(2, 8));
        assert!(matches!(policy.decide(now, &view(2, 8)),
            Decision::Repair(RepairPlan { ref span, key: Some(1), .. }) if *span == (2..4)));
        // Then a third one arrives: its second parity symbol would cover other symbols than the
        // first.
        assert_eq!(parities(&mut *policy, &view(3, 8)), [(4..8, 0), (4..8, 1)]);
    }

    #[test]
    fn blocks_that_arrived_are_forgotten() {
        let now = Instant::now();
        let mut policy =
            BlockPolicy { block: Block::new(2, 1).unwrap(), open: None, complete: VecDeque::new() };
        for id in 0..10_000u64 {
            policy.on_source_sent(now, id, &view(id.saturating_sub(9), id + 1));
            assert!(policy.complete.len() <= 6);
        }
        policy.on_arrived(now, 9_999, Arrival::Acked, &view(10_000, 10_000));
        assert!(policy.complete.is_empty());
        assert!(Block::new(0, 1).is_none() && Block::new(200, 56).is_none());
        assert!(Block::new(200, 55).is_some() && Block::new(u32::MAX, 1).is_none());
        assert!(Block::parity_2d(0).is_none() && Block::parity_2d(u32::MAX).is_none());
        assert!(Block::parity_2d(225).is_some() && Block::parity_2d(226).is_none());
    }
}

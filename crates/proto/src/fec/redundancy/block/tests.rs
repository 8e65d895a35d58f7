//! Tests of blocks.

use super::*;
use crate::Message;
use crate::fec::code::{Code, find};
use crate::fec::redundancy::{Arrival, Decision, RepairPlan, Stage, View};
use std::time::Instant;

fn view(first: u64, next: u64) -> View {
    View { first, next, unacked: (next - first) as u32, ..View::default() }
}

fn built(block: Option<Block>) -> (Box<dyn Redundancy>, Instant) {
    (block.unwrap().build(), Instant::now())
}

/// Sends these source symbols, of which none arrives.
fn fill(policy: &mut dyn Redundancy, now: Instant, ids: Range<u64>) {
    ids.for_each(|id| policy.on_source_sent(now, id, &view(0, id + 1)));
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
    let (mut policy, now) = built(Block::new(4, 2));
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
    let (mut policy, now) = built(Block::parity_2d(25));
    fill(&mut *policy, now, 0..27);
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
    let (mut policy, now) = built(Block::ldpc(100, 5));
    fill(&mut *policy, now, 0..100);
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
    let (mut policy, now) = built(Block::new(100, 1));
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
    let (mut policy, now) = built(Block::new(4, 1));
    for id in 0..3 {
        let more = View { has_source: id < 2, ..view(0, id + 1) };
        policy.on_source_sent(now, id, &more);
        policy.on_flushed(now, true, &more);
    }
    assert_eq!(parities(&mut *policy, &view(0, 3)), [(0..3, 0)]);
}

/// Arrived symbols stay in the block until all of its parity symbols were sent.
#[test]
fn a_block_keeps_its_symbols_until_its_parities_are_out() {
    let (mut policy, now) = built(Block::new(4, 2));
    fill(&mut *policy, now, 0..2);
    assert_eq!((policy.keeps(1), policy.keeps(2)), (0, 2), "the block that is being filled, too");
    fill(&mut *policy, now, 2..8);
    assert_eq!((policy.keeps(3), policy.keeps(4), policy.keeps(7)), (0, 4, 4));
    let most = View { kept: 0, ..view(3, 8) };
    assert!(matches!(policy.decide(now, &most),
        Decision::Repair(RepairPlan { ref span, key: Some(0), .. }) if *span == (0..4)));
    policy.on_repair_sent(now, &most);
    assert_eq!(policy.keeps(3), 0, "for the second one");
    policy.on_repair_sent(now, &most);
    assert_eq!(policy.keeps(3), 3, "both were sent");
    assert_eq!(parities(&mut *policy, &most), [(4..8, 0), (4..8, 1)]);
    assert_eq!(policy.keeps(5), 5);
}

#[test]
fn once_all_of_a_block_has_arrived_it_gets_no_more_parities() {
    let (mut policy, now) = built(Block::new(4, 3));
    fill(&mut *policy, now, 0..6);
    policy.on_repair_sent(now, &view(0, 6));
    let arrived = View { kept: 0, ..view(4, 6) };
    assert_eq!(policy.decide(now, &arrived), Decision::Source);
    policy.on_arrived(now, 3, Arrival::Acked, &arrived);
    assert_eq!(policy.keeps(4), 4);
}

/// The coding window may have no room for the symbols that a block keeps.
#[test]
fn a_block_shrinks_only_before_its_first_parity() {
    let (mut policy, now) = built(Block::new(4, 2));
    fill(&mut *policy, now, 0..8);
    let without = |first| View { kept: first, ..view(first, 8) };
    policy.on_repair_sent(now, &without(2));
    assert!(matches!(policy.decide(now, &without(2)),
        Decision::Repair(RepairPlan { ref span, key: Some(1), .. }) if *span == (2..4)));
    // Then a third symbol leaves: the second parity symbol would cover other symbols than the first.
    assert_eq!(parities(&mut *policy, &without(3)), [(4..8, 0), (4..8, 1)]);
}

#[test]
fn blocks_that_arrived_are_forgotten() {
    let now = Instant::now();
    let mut policy = BlockPolicy::new(Block::new(2, 1).unwrap());
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

/// Sends all repair symbols that are wanted now, checks each, and returns their spans.
fn spans(policy: &mut dyn Redundancy, now: Instant, v: &View) -> Vec<Range<u64>> {
    let mut spans = Vec::new();
    while let Decision::Repair(plan) = policy.decide(now, v) {
        let code = find(plan.code).unwrap();
        let alone = plan.code == CodeId::LDPC_STAIRCASE && plan.span.end - plan.span.start == 1;
        let admitted = plan.key.is_none_or(|key| code.admits(&plan.span, key));
        assert!(admitted || alone, "{plan:?}");
        // A repair symbol over full packets fits in a packet.
        assert!(plan.key.is_none_or(|key| key < SHORT_KEYS), "{plan:?}");
        spans.push(plan.span);
        policy.on_repair_sent(now, v);
    }
    spans
}

/// The spans of the parity symbols of an update of an ordered group, which begins with symbol `first`.
fn spans_of_update(policy: &mut dyn Redundancy, first: u64, symbols: u64) -> Vec<Range<u64>> {
    let now = Instant::now();
    let mut all = Vec::new();
    for id in first..first + symbols {
        let stage = if id == first { Stage::First } else { Stage::Within };
        let has_source = id + 1 < first + symbols;
        let message = Some(Message { stage, ..Message::default() });
        let v = View { has_source, message, capacity: 256, kept: first, ..view(first, id + 1) };
        policy.on_source_sent(now, id, &v);
        policy.on_flushed(now, true, &v);
        all.extend(spans(policy, now, &v));
    }
    all
}

#[test]
fn parity_is_what_the_rate_says_for_updates_of_every_length() {
    let codes = [CodeId::REED_SOLOMON, CodeId::LDPC_STAIRCASE, CodeId::SLIDING_WINDOW];
    for (rate, hundredths) in [(1.03, 3), (1.05, 5), (1.1, 10), (1.5, 50)] {
        for code in codes {
            let block = Block::rated(code, BlockRate::new(rate).unwrap(), None).unwrap();
            let mut policy = block.build();
            let mut first = 0;
            for k in (1..=300).chain([500, 777, 999, 1000]) {
                let spans = spans_of_update(&mut *policy, first, k);
                // k (n/k - 1), rounded up.
                assert_eq!(spans.len() as u64, (k * hundredths).div_ceil(100), "{block:?} {k}");
                assert_eq!(spans.last().map(|span| span.end), Some(first + k));
                first += k;
            }
        }
    }
}

/// Only rows and columns that are not empty count.
#[test]
fn the_parity_of_a_matrix_follows_its_real_length() {
    let mut policy = Block::matrix(5, 10).unwrap().build();
    let mut first = 0;
    for k in 1..=1000 {
        let spans = spans_of_update(&mut *policy, first, k);
        let lines = |k: u64| k.div_ceil(10) + k.min(10);
        assert_eq!(spans.len() as u64, k / 50 * lines(50) + lines(k % 50), "{k}");
        first += k;
    }
}

/// However few repair symbols a block has, they mend a loss of any one symbol.
#[test]
fn a_short_staircase_covers_every_symbol() {
    for parity in 1..=6 {
        let keys = || (0..parity).map(|i| LdpcStaircase::key(LdpcStaircase::rows(parity), i));
        for symbols in [2, 9, 60, 242] {
            let covers = |key: u32, id| LdpcStaircase.coefficient(&(0..symbols), key, id) != 0;
            let covered = |id| keys().any(|key| covers(key.unwrap(), id));
            assert!((0..symbols).all(covered), "{parity} for {symbols}");
            // With only two symbols, both may be in the same rows.
            let is_some = |key: Option<u32>| (0..symbols).any(|id| covers(key.unwrap(), id));
            assert!(symbols == 2 || keys().all(is_some), "{parity} for {symbols}");
        }
    }
}

#[test]
fn a_pause_ends_a_block_but_not_its_update() {
    let start = Instant::now();
    let rate = BlockRate::new(1.05).unwrap();
    let mut policy = Block::rated(CodeId::REED_SOLOMON, rate, None).unwrap().build();
    policy.on_source_sent(start, 0, &view(0, 1));
    policy.on_flushed(start, false, &view(0, 1));
    assert_eq!(spans(&mut *policy, start, &view(0, 1)), [], "more may follow at once");
    let later = policy.timeout().unwrap();
    assert_eq!(spans(&mut *policy, later, &view(0, 1)), vec![0..1]);
    assert_eq!(policy.timeout(), None);
    // Nineteen more source symbols are protected by the same parity symbol, and the twentieth gets another
    // parity symbol.
    for id in 1..21 {
        policy.on_source_sent(later, id, &view(0, id + 1));
        policy.on_flushed(later, false, &view(0, id + 1));
        assert_eq!(policy.timeout().is_some(), id == 20);
    }
    policy.on_flushed(later, true, &view(0, 21));
    assert_eq!(spans(&mut *policy, later, &view(0, 21)), vec![1..21]);
    // Data after the end is another update.
    policy.on_source_sent(later, 21, &view(0, 22));
    policy.on_flushed(later, true, &view(0, 22));
    assert_eq!(spans(&mut *policy, later, &view(0, 22)), vec![21..22]);
}

#[test]
fn names_of_blocks_are_read_and_written() {
    let registry = crate::registry::redundancy();
    for (text, written) in [
        ("block", "source=20, parity=2"),
        ("block:code=ldpc", "source=20, parity=3, code=ldpc"),
        ("block:rate=1.05", "source=242, rate=1.05"),
        ("block:rate=1.05,source=100", "source=100, rate=1.05"),
        ("block:rate=1.5,code=ldpc", "source=126, rate=1.5, code=ldpc"),
        ("block:code=2d,source=25", "source=25, code=2d"),
        ("block:code=2d,rows=5,columns=25", "rows=5, columns=25, code=2d"),
        ("block:code=2d,rows=5,columns=25,shared=on", "rows=5, columns=25, code=2d, shared=on"),
    ] {
        let made = registry.find(text).unwrap();
        assert_eq!(made.parameters(), written, "{text}");
        assert_eq!(made.shares_session(), written.ends_with("shared=on"));
    }
    for wrong in [
        "block:rate=1",
        "block:rate=x",
        "block:rate=1.05,source=243",
        "block:rate=1.05,source=19",
        "block:rate=1.05,parity=3",
        "block:rate=1.05,code=2d",
        "block:rows=5,columns=5",
        "block:code=2d,rows=5",
        "block:code=2d,rows=5,columns=5,source=25",
        "block:code=2d,rows=100,columns=100",
        "block:code=2d,rows=1,columns=64",
    ] {
        assert!(registry.find(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn streams_of_the_protocol_have_none() {
    let block = Block::new(4, 2).unwrap();
    let sleeps = |terms| block.sleeps(&PathView::default(), terms);
    assert_eq!(sleeps(Terms::CONTROL), Some(Reason::Control));
    assert!([Terms::STREAM, Terms::GROUP, Terms::DATAGRAM].map(sleeps) == [None; 3]);
}

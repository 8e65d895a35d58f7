//! Compares the send buffer with a vector that records the state of every byte.

use crate::streams::send_buffer::SendBuffer;
use bytes::Bytes;
use proptest::prelude::*;
use std::ops::Range;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Unsent,
    InFlight,
    Acked,
}

#[derive(Debug, Clone)]
enum Op {
    Write(usize),
    WriteChunk(usize),
    Send(u64),
    Ack(u64, u64),
    Miss(u64, u64),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        (0..3000usize).prop_map(Op::Write),
        (0..3000usize).prop_map(Op::WriteChunk),
        (1..2000u64).prop_map(Op::Send),
        (0..20_000u64, 0..3000u64).prop_map(|(start, len)| Op::Ack(start, len)),
        (0..20_000u64, 0..3000u64).prop_map(|(start, len)| Op::Miss(start, len)),
    ]
}

fn byte(offset: usize) -> u8 {
    (offset ^ (offset >> 7)).wrapping_mul(13) as u8
}

/// Applies `act` to all sent bytes of a range.
fn change(model: &mut [Fate], range: &Range<u64>, act: impl Fn(&mut Fate)) {
    let fates = model.iter_mut().skip(range.start as usize);
    let fates = fates.take((range.end - range.start) as usize);
    fates.filter(|fate| **fate != Fate::Unsent).for_each(act);
}

proptest! {
    #[test]
    fn agrees_with_a_model(ops in prop::collection::vec(op(), 1..100)) {
        const LIMIT: usize = 8000;
        let mut buffer = SendBuffer::new(LIMIT);
        let mut model: Vec<Fate> = Vec::new();
        for op in ops {
            match op {
                Op::Write(len) | Op::WriteChunk(len) => {
                    let data: Vec<u8> = (model.len()..model.len() + len).map(byte).collect();
                    let room = buffer.room();
                    let accepted = match op {
                        Op::Write(_) => buffer.write(&data),
                        _ => buffer.write_chunk(Bytes::from(data)),
                    };
                    prop_assert_eq!(accepted, len.min(room));
                    model.resize(model.len() + accepted, Fate::Unsent);
                }
                Op::Send(len) => {
                    let start = buffer.unsent();
                    let end = (start + len).min(buffer.end());
                    check(&buffer, start..end)?;
                    buffer.sent(end - start);
                    model[start as usize..end as usize].fill(Fate::InFlight);
                }
                Op::Ack(start, len) => {
                    let range = start..start + len;
                    buffer.acked(range.clone());
                    change(&mut model, &range, |fate| *fate = Fate::Acked);
                }
                Op::Miss(start, len) => {
                    let end = start + len;
                    let sent = (start..end.min(model.len() as u64)).collect::<Vec<_>>();
                    let expected: Vec<u64> = sent
                        .into_iter()
                        .filter(|offset| model[*offset as usize] == Fate::InFlight)
                        .collect();
                    prop_assert_eq!(
                        buffer.missing(start..end).flatten().collect::<Vec<_>>(),
                        expected
                    );
                    for range in buffer.missing(start..end) {
                        check(&buffer, range)?;
                    }
                }
            }
            let needed = model.iter().filter(|&&fate| fate != Fate::Acked).count();
            prop_assert!(buffer.retained() >= needed);
            prop_assert!(buffer.retained() <= LIMIT);
            prop_assert_eq!(buffer.is_all_acked(), needed == 0);
            prop_assert_eq!(buffer.end() as usize, model.len());
            if needed == 0 {
                prop_assert_eq!((buffer.retained(), buffer.chunks()), (0, 0));
            }
        }
    }
}

/// Whether the buffer still holds the right bytes.
fn check(buffer: &SendBuffer, range: Range<u64>) -> Result<(), TestCaseError> {
    let mut out = vec![0xaa];
    buffer.copy_to(range.clone(), &mut out);
    let expected = (range.start as usize..range.end as usize).map(byte);
    prop_assert!(out[1..].iter().copied().eq(expected));
    Ok(())
}

#[test]
fn a_peer_that_acknowledges_only_tails_pins_only_the_hole() {
    let mut buffer = SendBuffer::new(10_000);
    let mut written = 0;
    for _ in 0..1000 {
        written += buffer.write_chunk(Bytes::from(vec![1; 1000])) as u64;
        buffer.sent(1000);
        buffer.acked(1000..written);
    }
    assert_eq!(written, 1_000_000);
    assert_eq!((buffer.retained(), buffer.chunks()), (1000, 1));
    buffer.acked(0..1000);
    assert!(buffer.is_all_acked());
    assert_eq!((buffer.retained(), buffer.chunks()), (0, 0));
}

#[test]
fn one_large_chunk_makes_room_while_it_is_acknowledged() {
    let mut buffer = SendBuffer::new(10_000);
    assert_eq!(buffer.write_chunk(Bytes::from(vec![7; 50_000])), 10_000);
    assert_eq!(buffer.room(), 0);
    buffer.sent(10_000);
    buffer.acked(0..6000);
    assert_eq!(buffer.room(), 6000);
}

#[test]
fn small_writes_share_blocks() {
    let mut buffer = SendBuffer::new(100_000);
    for _ in 0..30_000 {
        assert_eq!(buffer.write(b"x"), 1);
        assert_eq!(buffer.write_chunk(Bytes::from_static(b"yz")), 2);
    }
    assert!(buffer.chunks() <= 10, "{}", buffer.chunks());
}

#[test]
fn without_bytes_that_are_needed_at_most_a_small_block_is_held() {
    let mut buffer = SendBuffer::new(100_000);
    for len in [40, 1000, 50_000, 10, 600] {
        assert_eq!(buffer.write(&vec![7; len]), len);
        assert!(buffer.storage() >= len);
        buffer.sent(len as u64);
        buffer.acked(0..buffer.end());
        assert!(buffer.storage() <= 64, "{}", buffer.storage());
    }
}

#[test]
fn few_bytes_at_a_time_use_the_same_block_again() {
    let mut buffer = SendBuffer::new(100_000);
    buffer.write(b"x");
    buffer.sent(1);
    buffer.acked(0..1);
    buffer.write(b"x");
    let block = buffer.tail_address();
    for byte in 0..1000 {
        let at = buffer.tail_address();
        assert!((block..block + 64).contains(&at), "byte {byte}");
        buffer.sent(1);
        buffer.acked(0..buffer.end());
        buffer.write(b"x");
    }
}

#[test]
fn a_chunk_is_not_copied() {
    let data = Bytes::from(vec![3; 4096]);
    let mut buffer = SendBuffer::new(10_000);
    buffer.write(b"before");
    assert_eq!(buffer.write_chunk(data.clone()), 4096);
    assert!(!data.is_unique());
    buffer.sent(5000);
    buffer.acked(0..4102);
    assert!(data.is_unique());
}

#[test]
fn acknowledgements_of_bytes_never_sent_change_nothing() {
    let mut buffer = SendBuffer::new(1000);
    buffer.write(&[5; 100]);
    buffer.sent(10);
    buffer.acked(0..u64::MAX);
    assert_eq!(buffer.retained(), 90);
    let mut out = Vec::new();
    buffer.copy_to(10..100, &mut out);
    assert_eq!(out, [5; 90]);
}

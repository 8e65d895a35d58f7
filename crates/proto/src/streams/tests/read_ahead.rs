//! Reading ahead of missing bytes, up to an offset.

use super::delivery::{DATA, ID, after, receive};
use super::*;
use crate::streams::delivery::{ArrivalOrder, DeliveryFactory, StreamOrder};
use proptest::prelude::*;
use std::ops::Range;

const SIZE: usize = 6000;

/// Reads below `end`, checks the bytes and returns their range.
fn ahead(streams: &mut Sender, end: u64, max: usize) -> Result<Option<Range<usize>>, ReadError> {
    let Some(chunk) = streams.read_ahead(ID, end, max)? else { return Ok(None) };
    let range = chunk.offset as usize..chunk.offset as usize + chunk.bytes.len();
    assert_eq!(chunk.bytes, DATA[range.clone()]);
    Ok(Some(range))
}

#[test]
fn what_is_below_the_offset_does_not_wait_and_order_goes_on_behind_it() {
    let mut streams = after([]);
    let mut out = [0; 99];
    receive(&mut streams, 0..10, false);
    assert_eq!(streams.read(ID, &mut out), Ok(Read::Data(10)));
    assert_eq!(ahead(&mut streams, 100, 99), Err(ReadError::Blocked));
    events(&mut streams);
    receive(&mut streams, 90..120, false);
    assert_eq!(events(&mut streams), [StreamEvent::Readable { id: ID }]);
    assert_eq!(ahead(&mut streams, 100, 4), Ok(Some(90..94)));
    receive(&mut streams, 30..40, false);
    assert_eq!(ahead(&mut streams, 100, 99), Ok(Some(30..40)));
    assert_eq!(ahead(&mut streams, 100, 99), Ok(Some(94..100)));
    assert_eq!(ahead(&mut streams, 100, 99), Err(ReadError::Blocked));
    // There are holes, and the bytes beyond the offset wait.
    let ordered = streams.set_delivery(ID, StreamOrder.build());
    assert_eq!(ordered, Err(ReadError::IllegalOrderedRead));
    assert_eq!(streams.read(ID, &mut out), Err(ReadError::IllegalOrderedRead));
    assert_eq!(streams.read_chunk(ID, 9, true), Err(ReadError::IllegalOrderedRead));
    receive(&mut streams, 10..30, false);
    receive(&mut streams, 40..90, false);
    assert_eq!(ahead(&mut streams, 100, 99), Ok(Some(10..30)));
    assert_eq!(ahead(&mut streams, 100, 99), Ok(Some(40..90)));
    assert_eq!(ahead(&mut streams, 100, 99), Err(ReadError::Blocked));
    assert_eq!(streams.read(ID, &mut out), Ok(Read::Data(20)));
    receive(&mut streams, 120..120, true);
    assert_eq!(streams.read(ID, &mut out), Ok(Read::Fin));
}

#[test]
fn the_end_of_the_stream_comes_after_all_of_it() {
    let mut streams = after([]);
    receive(&mut streams, 20..30, true);
    assert_eq!(ahead(&mut streams, 100, 99), Ok(Some(20..30)));
    assert_eq!(ahead(&mut streams, 100, 99), Err(ReadError::Blocked));
    receive(&mut streams, 0..20, false);
    assert_eq!(ahead(&mut streams, 100, 99), Ok(Some(0..20)));
    assert_eq!(ahead(&mut streams, 100, 99), Ok(None));
    assert_eq!(ahead(&mut streams, 100, 99), Err(ReadError::Closed));
}

#[test]
fn only_what_is_delivered_in_stream_order_is_read_ahead() {
    let mut streams = after([]);
    streams.set_delivery(ID, ArrivalOrder.build()).unwrap();
    receive(&mut streams, 20..30, false);
    assert_eq!(ahead(&mut streams, 100, 99), Err(ReadError::IllegalOrderedRead));
}

#[test]
fn a_window_that_is_read_ahead_is_open_again() {
    let mut streams = after([]);
    receive(&mut streams, 2000..SIZE, false);
    receive(&mut streams, SIZE..10_000, false);
    while ahead(&mut streams, 10_000, 3000).is_ok() {}
    let limits = control(&mut streams);
    let stream = vec![encode::MAX_STREAM_DATA, ID.0, 18_000];
    assert_eq!(limits, [vec![encode::MAX_DATA, 23_000], stream]);
}

proptest! {
    /// A stream of frames, each of which is read ahead to its end once it has begun: each byte comes once,
    /// with the right offset, and all bytes of a frame that have arrived are read at once.
    #[test]
    fn every_byte_comes_once(
        mut ends in prop::collection::btree_set(1..SIZE, 0..6),
        frames in prop::collection::vec((0..SIZE, 1..900usize), 0..60),
        max in 1..700usize,
    ) {
        ends.insert(SIZE);
        let mut streams = after([]);
        let (mut held, mut read) = (vec![false; SIZE], vec![false; SIZE]);
        let last = (0..SIZE).step_by(500).map(|at| (at, 500));
        for (start, len) in frames.into_iter().chain(last) {
            let range = start..(start + len).min(SIZE);
            held[range.clone()].fill(true);
            receive(&mut streams, range, false);
            while let Some(end) = ends.first().copied() {
                while let Ok(Some(range)) = ahead(&mut streams, end as u64, max) {
                    prop_assert!(range.end <= end && range.len() <= max);
                    for at in range {
                        prop_assert!(!std::mem::replace(&mut read[at], true));
                    }
                }
                prop_assert_eq!(&read[..end], &held[..end]);
                if read[..end].contains(&false) {
                    break;
                }
                ends.pop_first();
            }
        }
        prop_assert_eq!(ends.len(), 0);
        receive(&mut streams, SIZE..SIZE, true);
        prop_assert_eq!(streams.read(ID, &mut [0; 9]), Ok(Read::Fin));
    }
}

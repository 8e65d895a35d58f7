//! Reading out of stream order.

use super::*;
use crate::streams::assembler::MAX_GAPS;
use crate::streams::delivery::{ArrivalOrder, Delivery, DeliveryFactory, Held, StreamOrder};
use proptest::prelude::*;
use std::ops::Range;
use std::sync::Arc;

pub(super) static DATA: [u8; 20_000] = {
    let mut data = [0; 20_000];
    let mut at = 0;
    while at < data.len() {
        data[at] = (at ^ (at >> 8)).wrapping_mul(31) as u8;
        at += 1;
    }
    data
};

/// The client's first unidirectional stream.
pub(super) const ID: StreamId = StreamId(2);

pub(super) fn receive(streams: &mut Sender, range: Range<usize>, fin: bool) {
    streams.received(ID, range.start as u64, &DATA[range], fin).unwrap();
}

/// A server that accepted the stream after these pieces arrived.
pub(super) fn after(pieces: impl IntoIterator<Item = Range<usize>>) -> Sender {
    let mut streams = server();
    streams.received(ID, 0, b"", false).unwrap();
    assert_eq!(streams.accept(Dir::Uni), Some(ID));
    for piece in pieces {
        receive(&mut streams, piece, false);
    }
    events(&mut streams);
    streams
}

/// Reads a piece out of order, checks its contents and returns its range.
fn read(streams: &mut Sender, max: usize) -> Result<Option<Range<usize>>, ReadError> {
    let Some(chunk) = streams.read_chunk(ID, max, false)? else { return Ok(None) };
    let start = chunk.offset as usize;
    assert_eq!(chunk.bytes, DATA[start..start + chunk.bytes.len()]);
    Ok(Some(start..start + chunk.bytes.len()))
}

#[test]
fn pieces_are_read_as_they_came_and_then_the_end() {
    let mut streams = after([]);
    assert_eq!(read(&mut streams, 600), Err(ReadError::Blocked));
    receive(&mut streams, 5000..6000, false);
    receive(&mut streams, 100..200, false);
    assert_eq!(read(&mut streams, 600), Ok(Some(5000..5600)));
    assert_eq!(read(&mut streams, 0), Ok(Some(5600..5600)));
    assert_eq!(read(&mut streams, 600), Ok(Some(5600..6000)));
    assert_eq!(read(&mut streams, 600), Ok(Some(100..200)));
    assert_eq!(read(&mut streams, 600), Err(ReadError::Blocked));
    receive(&mut streams, 0..100, false);
    receive(&mut streams, 200..5000, false);
    receive(&mut streams, 5900..6100, true);
    let pieces: Vec<_> = std::iter::from_fn(|| read(&mut streams, 9000).unwrap()).collect();
    assert_eq!(pieces, [0..100, 200..1024, 1024..2048, 2048..4096, 4096..5000, 6000..6100]);
}

#[test]
fn news_is_every_byte_that_is_new() {
    let readable = [StreamEvent::Readable { id: ID }];
    let mut streams = after([]);
    assert_eq!(read(&mut streams, 9), Err(ReadError::Blocked));
    receive(&mut streams, 50..60, false);
    assert_eq!(events(&mut streams), readable, "though the beginning is missing");
    assert_eq!(read(&mut streams, 99), Ok(Some(50..60)));
    receive(&mut streams, 50..60, false);
    assert!(events(&mut streams).is_empty(), "nothing is new");
    receive(&mut streams, 0..50, false);
    assert_eq!(events(&mut streams), readable);
    assert_eq!(read(&mut streams, 99), Ok(Some(0..50)));
    receive(&mut streams, 60..60, true);
    assert_eq!(events(&mut streams), readable);
    assert_eq!(read(&mut streams, 99), Ok(None));
    assert_eq!(read(&mut streams, 99), Err(ReadError::Closed));
    assert_eq!(streams.stats().streams, 0);
}

#[test]
fn the_end_is_told_after_every_byte() {
    let mut streams = after(Some(3000..4000));
    assert_eq!(read(&mut streams, 2000), Ok(Some(3000..4000)));
    receive(&mut streams, 4000..4090, true);
    assert_eq!(read(&mut streams, 2000), Ok(Some(4000..4090)));
    assert_eq!(read(&mut streams, 2000), Err(ReadError::Blocked), "the beginning is missing");
    receive(&mut streams, 0..3000, false);
    assert_eq!(read(&mut streams, 2000), Ok(Some(0..1024)), "as far as it lies together");
    assert_eq!(read(&mut streams, 2000), Ok(Some(1024..2048)));
    assert_eq!(read(&mut streams, 2000), Ok(Some(2048..3000)));
    assert_eq!(read(&mut streams, 2000), Ok(None));
}

#[test]
fn ordered_reads_are_illegal_after_one_that_was_not() {
    let mut streams = after([0..10, 20..30]);
    assert_eq!(streams.read(ID, &mut [0; 4]), Ok(Read::Data(4)));
    assert_eq!(read(&mut streams, 99), Ok(Some(4..10)));
    let illegal = ReadError::IllegalOrderedRead;
    assert_eq!(streams.read(ID, &mut [0; 4]), Err(illegal));
    assert_eq!(streams.read_chunk(ID, 4, true), Err(illegal));
    assert_eq!(streams.set_delivery(ID, StreamOrder.build()), Err(illegal));
    assert_eq!(read(&mut streams, 99), Ok(Some(20..30)), "nothing was lost by that");
}

#[test]
fn order_can_be_restored_while_nothing_was_read_out_of_order() {
    let mut streams = after(Some(20..30));
    assert_eq!(read(&mut streams, 0), Ok(Some(20..20)));
    streams.set_delivery(ID, StreamOrder.build()).unwrap();
    assert_eq!(streams.read(ID, &mut [0; 4]), Err(ReadError::Blocked));
    receive(&mut streams, 0..20, false);
    assert_eq!(streams.read(ID, &mut [0; 99]), Ok(Read::Data(30)));
}

#[test]
fn another_delivery_is_news_if_it_has_something_to_read() {
    let mut streams = after(Some(20..30));
    streams.set_delivery(ID, StreamOrder.build()).unwrap();
    assert!(events(&mut streams).is_empty());
    streams.set_delivery(ID, ArrivalOrder.build()).unwrap();
    assert_eq!(events(&mut streams), [StreamEvent::Readable { id: ID }]);
    streams.set_delivery(ID, ArrivalOrder.build()).unwrap();
    assert!(events(&mut streams).is_empty());
    assert_eq!(read(&mut streams, 99), Ok(Some(20..30)));
}

#[test]
fn the_default_is_the_configurations() {
    let mut streams = Sender::from(server().streams.with_delivery(Arc::new(ArrivalOrder)));
    streams.received(ID, 5, b"abc", false).unwrap();
    streams.accept(Dir::Uni).unwrap();
    assert_eq!(events(&mut streams).len(), 2, "opened and readable");
    assert_eq!(streams.read(ID, &mut [0; 4]), Err(ReadError::IllegalOrderedRead));
    assert_eq!(streams.read_chunk(ID, 4, false).unwrap().unwrap().offset, 5);
    let other = client_stream(Dir::Uni, 1);
    streams.received(other, 0, b"abc", false).unwrap();
    streams.accept(Dir::Uni).unwrap();
    streams.set_delivery(other, StreamOrder.build()).unwrap();
    assert_eq!(streams.read(other, &mut [0; 4]), Ok(Read::Data(3)));
}

#[test]
fn a_window_that_is_read_out_of_order_is_open_again() {
    let mut streams = after(Some(2000..10_000));
    while read(&mut streams, 3000).is_ok() {}
    let limits = control(&mut streams);
    let stream = vec![encode::MAX_STREAM_DATA, ID.0, 18_000];
    assert_eq!(limits, [vec![encode::MAX_DATA, 23_000], stream]);
    receive(&mut streams, 10_000..18_000, false);
    let beyond = streams.received(ID, 18_000, b"x", false);
    assert_eq!(code(beyond), TransportErrorCode::FLOW_CONTROL_ERROR);
}

#[test]
fn what_waits_when_the_peer_resets_is_given_back_and_no_more() {
    let mut streams = after([1100..3000, 5000..6000]);
    assert_eq!(read(&mut streams, 500), Ok(Some(1100..1600)));
    assert_eq!(read(&mut streams, 100), Ok(Some(1600..1700)));
    streams.received_reset(ID, 7, 9000).unwrap();
    assert_eq!(streams.stats().receive_buffered, 0);
    assert_eq!(read(&mut streams, 99), Err(ReadError::Reset(7)));
    assert_eq!(read(&mut streams, 99), Err(ReadError::Closed));
    let frames = control(&mut streams);
    assert!(frames.contains(&vec![encode::MAX_DATA, 9000 + 15_000]), "{frames:?}");
}

#[test]
fn what_waits_when_it_is_not_wanted_is_given_back_and_no_more() {
    let mut streams = after([1100..3000, 5000..9000]);
    assert_eq!(read(&mut streams, 500), Ok(Some(1100..1600)));
    streams.stop(ID, 7).unwrap();
    assert_eq!(streams.stats().receive_buffered, 0);
    assert_eq!(read(&mut streams, 99), Err(ReadError::Closed));
    let closed = streams.set_delivery(ID, ArrivalOrder.build());
    assert_eq!(closed, Err(ReadError::Closed));
    let frames = control(&mut streams);
    assert!(frames.contains(&vec![encode::MAX_DATA, 9000 + 15_000]), "{frames:?}");
    receive(&mut streams, 0..1000, false);
    assert!(control(&mut streams).is_empty(), "counted before");
}

#[test]
fn confetti_is_refused_however_fast_it_is_read() {
    let limits = StreamLimits { stream_window: 1 << 40, connection_window: 1 << 40, ..small() };
    let mut streams = endpoint(Side::Server, &limits);
    let mut accepted = 0;
    while streams.received(ID, 2 * accepted + 1, b"x", false).is_ok() {
        streams.accept(Dir::Uni);
        while streams.read_chunk(ID, 10, false).is_ok() {}
        accepted += 1;
    }
    assert!((MAX_GAPS - 1..MAX_GAPS + 100).contains(&accepted), "{accepted}");
    assert!(streams.stats().receive_buffered <= 64 * 1024);
}

#[test]
fn gaps_that_are_read_around_cost_no_storage() {
    let limits = StreamLimits { stream_window: 1 << 40, connection_window: 1 << 40, ..small() };
    let mut streams = endpoint(Side::Server, &limits);
    streams.received(ID, 0, b"", false).unwrap();
    streams.accept(Dir::Uni).unwrap();
    for start in (1..500 * 20_000).step_by(20_000) {
        streams.received(ID, start, &DATA[1..], false).unwrap();
        while streams.read_chunk(ID, usize::MAX, false).is_ok() {}
        assert!(streams.stats().receive_buffered <= 64 * 1024);
    }
}

/// A delivery whose answers come from a function.
#[derive(Debug, Clone, Copy)]
struct Custom {
    ordered: bool,
    next: fn(&Held<'_>) -> Option<Range<u64>>,
}

impl Delivery for Custom {
    fn is_ordered(&self) -> bool {
        self.ordered
    }

    fn next(&self, held: &Held<'_>) -> Option<Range<u64>> {
        (self.next)(held)
    }
}

#[test]
fn records_can_be_read_in_order_and_only_whole() {
    let next = |held: &Held<'_>| {
        let range = held.range_of(held.front())?;
        let whole = if held.final_size() == Some(range.end) { range.end } else { range.end & !7 };
        (whole > range.start).then_some(range.start..whole)
    };
    let mut streams = after(Some(0..7));
    streams.set_delivery(ID, Box::new(Custom { ordered: true, next })).unwrap();
    assert_eq!(streams.read(ID, &mut [0; 99]), Err(ReadError::Blocked));
    receive(&mut streams, 7..20, false);
    let mut out = [0; 99];
    assert_eq!(streams.read(ID, &mut out), Ok(Read::Data(16)));
    assert_eq!(out[..16], DATA[..16]);
    receive(&mut streams, 20..20, true);
    assert_eq!(streams.read_chunk(ID, 99, true).unwrap().unwrap().bytes, DATA[16..20]);
    assert_eq!(streams.read(ID, &mut out), Ok(Read::Fin));
}

#[test]
fn a_delivery_that_is_wrong_is_silent() {
    let wrong: [Custom; 5] = [
        Custom { ordered: false, next: |held| Some(held.front()..held.front() + 1) },
        Custom { ordered: false, next: |held| held.ranges().next().map(|r| r.start..r.end + 1) },
        Custom { ordered: false, next: |held| held.ranges().next().map(|r| r.start..r.start) },
        Custom { ordered: false, next: |_| Some(u64::MAX - 1..u64::MAX) },
        Custom { ordered: true, next: |held| held.ranges().next() },
    ];
    for custom in wrong {
        let mut streams = after([100..200, 300..400]);
        streams.set_delivery(ID, Box::new(custom)).unwrap();
        receive(&mut streams, 400..500, true);
        assert!(events(&mut streams).is_empty());
        let read_any = streams.read_chunk(ID, 99, custom.ordered);
        assert_eq!(read_any, Err(ReadError::Blocked), "{custom:?}");
        // The faulty delivery lost no byte: a correct delivery finds all of them.
        streams.set_delivery(ID, ArrivalOrder.build()).unwrap();
        assert_eq!(read(&mut streams, 999), Ok(Some(100..200)));
        assert_eq!(read(&mut streams, 999), Ok(Some(300..500)));
    }
}

#[test]
fn no_end_is_told_while_a_delivery_holds_bytes_back() {
    let mut streams = after([]);
    streams.set_delivery(ID, Box::new(Custom { ordered: false, next: |_| None })).unwrap();
    receive(&mut streams, 0..10, true);
    assert!(events(&mut streams).is_empty());
    assert_eq!(read(&mut streams, 99), Err(ReadError::Blocked));
    streams.set_delivery(ID, ArrivalOrder.build()).unwrap();
    assert_eq!(events(&mut streams), [StreamEvent::Readable { id: ID }]);
    assert_eq!(read(&mut streams, 99), Ok(Some(0..10)));
    assert_eq!(read(&mut streams, 99), Ok(None));
}

/// The expected state of the stream.
struct Model {
    received: Vec<bool>,
    delivered: Vec<bool>,
    final_size: Option<usize>,
    /// How reading has ended or is going to end.
    over: Option<ReadError>,
}

impl Model {
    fn is_complete(&self) -> bool {
        self.final_size.is_some_and(|size| self.received[..size].iter().all(|&b| b))
    }

    fn waits(&self) -> bool {
        self.received.iter().zip(&self.delivered).any(|(received, delivered)| received > delivered)
    }

    /// Records the bytes of a read, which must have been received and not read before.
    fn check(
        &mut self,
        result: Result<Option<Range<usize>>, ReadError>,
    ) -> Result<(), TestCaseError> {
        if let Some(error) = self.over {
            prop_assert_eq!(result, Err(error));
            self.over = Some(ReadError::Closed);
            return Ok(());
        }
        match result {
            Ok(Some(range)) => {
                prop_assert!(!range.is_empty());
                prop_assert!(self.received[range.clone()].iter().all(|&b| b));
                for byte in &mut self.delivered[range] {
                    prop_assert!(!std::mem::replace(byte, true));
                }
            }
            Ok(None) => {
                prop_assert!(self.is_complete() && !self.waits());
                self.over = Some(ReadError::Closed);
            }
            Err(error) => {
                prop_assert_eq!(error, ReadError::Blocked);
                prop_assert!(!self.is_complete() && !self.waits());
            }
        }
        Ok(())
    }
}

#[derive(Debug, Clone)]
enum Op {
    Receive(usize, usize),
    Read(usize),
    Reset,
    Stop,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        20 => (0..10_000usize, 0..1500usize).prop_map(|(at, len)| Op::Receive(at, len)),
        20 => prop_oneof![1..100usize, 1..3000usize].prop_map(Op::Read),
        1 => Just(Op::Reset),
        1 => Just(Op::Stop),
    ];
    prop::collection::vec(op, 1..80)
}

proptest! {
    #[test]
    fn every_byte_is_read_once_whatever_happens(ops in ops(), size in 0..=10_000usize) {
        let mut streams = after([]);
        let mut model = Model {
            received: vec![false; 10_000],
            delivered: vec![false; 10_000],
            final_size: None,
            over: None,
        };
        for op in ops.into_iter().chain([Op::Receive(0, size)]) {
            match op {
                Op::Receive(at, len) => {
                    let (at, end) = (at.min(size), (at + len).min(size));
                    receive(&mut streams, at..end, end == size);
                    model.received[at..end].fill(true);
                    model.final_size = model.final_size.or((end == size).then_some(size));
                }
                Op::Read(max) => model.check(read(&mut streams, max))?,
                Op::Reset => {
                    let complete = model.is_complete();
                    streams.received_reset(ID, 9, size as u64).unwrap();
                    // A reset does not discard complete data: it is still read.
                    if !complete && model.over.is_none() {
                        model.over = Some(ReadError::Reset(9));
                        model.final_size = Some(size);
                    }
                }
                Op::Stop => {
                    let stopped = streams.stop(ID, 5).is_ok();
                    prop_assert_eq!(stopped, model.over != Some(ReadError::Closed));
                    model.over = Some(ReadError::Closed);
                }
            }
        }
        while model.over != Some(ReadError::Closed) {
            model.check(read(&mut streams, 700))?;
        }
        // All bytes of the stream are credited to the connection's window.
        prop_assert_eq!(streams.received, size as u64);
        streams.release(15_000);
        let frames = control(&mut streams);
        prop_assert!(frames.contains(&vec![encode::MAX_DATA, size as u64 + 30_000]), "{:?}", frames);
    }
}

//! The receiving part of streams: states, final sizes, stop and reset.

use super::delivery::ID;
use super::*;
use crate::streams::assembler::MAX_GAPS;
use crate::streams::recv::RecvState;
use crate::wire::coding::VARINT_MAX;

const FINAL_SIZE: TransportErrorCode = TransportErrorCode::FINAL_SIZE_ERROR;

fn state(streams: &Sender) -> RecvState {
    streams.table.get(ID).unwrap().halves.recv().unwrap().state()
}

/// A server that accepted the stream after these frames arrived.
fn after(frames: &[(u64, &[u8], bool)]) -> Sender {
    let mut streams = server();
    for &(offset, data, fin) in frames {
        streams.received(ID, offset, data, fin).unwrap();
    }
    assert_eq!(streams.accept(Dir::Uni), Some(ID));
    events(&mut streams);
    streams
}

#[test]
fn final_size_is_what_fin_says() {
    let mut streams = after(&[(0, b"abcd", true)]);
    assert_eq!(code(streams.received(ID, 4, b"e", false)), FINAL_SIZE);
    assert_eq!(code(streams.received(ID, 0, b"abcde", false)), FINAL_SIZE);
    assert_eq!(code(streams.received(ID, 0, b"abc", true)), FINAL_SIZE);
    assert_eq!(code(streams.received(ID, 5, b"", true)), FINAL_SIZE);
    assert_eq!(code(streams.received_reset(ID, 0, 3)), FINAL_SIZE);
    assert_eq!(code(streams.received_reset(ID, 0, 5)), FINAL_SIZE);
    streams.received(ID, 0, b"abcd", true).unwrap();
    streams.received(ID, 4, b"", true).unwrap();
}

#[test]
fn what_is_read_is_no_memory_in_silence() {
    let mut streams = after(&[(0, b"abcd", false)]);
    streams.rest();
    assert!(streams.receive_storage() > 0, "not read yet");
    let mut out = [0; 8];
    assert_eq!(streams.read(ID, &mut out), Ok(Read::Data(4)));
    streams.rest();
    assert_eq!(streams.receive_storage(), 0);
    streams.received(ID, 2, b"cdef", false).unwrap();
    assert!(streams.receive_storage() > 0);
    assert_eq!(streams.read(ID, &mut out), Ok(Read::Data(2)));
    assert_eq!(out[..2], *b"ef");
}

#[test]
fn final_size_is_not_below_what_came() {
    let mut streams = after(&[(10, b"x", false)]);
    assert_eq!(code(streams.received(ID, 10, b"", true)), FINAL_SIZE);
    assert_eq!(code(streams.received_reset(ID, 0, 10)), FINAL_SIZE);
    streams.received(ID, 11, b"", true).unwrap();
}

#[test]
fn final_size_is_what_reset_says() {
    let mut streams = after(&[(0, b"abcd", false)]);
    streams.received_reset(ID, 7, 6).unwrap();
    assert_eq!(code(streams.received(ID, 6, b"x", false)), FINAL_SIZE);
    assert_eq!(code(streams.received(ID, 5, b"", true)), FINAL_SIZE);
    assert_eq!(code(streams.received_reset(ID, 7, 7)), FINAL_SIZE);
    streams.received(ID, 4, b"ef", true).unwrap();
    streams.received_reset(ID, 8, 6).unwrap();
    assert_eq!(streams.read(ID, &mut [0; 8]), Err(ReadError::Reset(7)));
}

#[test]
fn offsets_end_at_the_largest_varint() {
    let limits =
        StreamLimits { stream_window: VARINT_MAX, connection_window: VARINT_MAX, ..small() };
    let mut streams = endpoint(Side::Server, &limits);
    let encoding = TransportErrorCode::FRAME_ENCODING_ERROR;
    assert_eq!(code(streams.received(ID, VARINT_MAX, b"x", false)), encoding);
    assert_eq!(code(streams.received(ID, u64::MAX, b"x", false)), encoding);
    streams.received(ID, VARINT_MAX - 1, b"x", false).unwrap();
}

#[test]
fn states_follow_the_frames() {
    let mut streams = after(&[(0, b"ab", false)]);
    assert_eq!(state(&streams), RecvState::Recv);
    streams.received(ID, 4, b"ef", true).unwrap();
    assert_eq!(state(&streams), RecvState::SizeKnown);
    streams.received(ID, 2, b"cd", false).unwrap();
    assert_eq!(state(&streams), RecvState::DataRecvd);
    // The data is complete: a reset is too late to discard it.
    streams.received_reset(ID, 1, 6).unwrap();
    assert_eq!(streams.read_chunk(ID, 4, true).unwrap().unwrap().bytes, b"abcd"[..]);
    assert_eq!(streams.read_chunk(ID, 9, true).unwrap().unwrap().bytes, b"ef"[..]);
    assert_eq!(state(&streams), RecvState::DataRecvd);
    assert_eq!(streams.read_chunk(ID, 9, true), Ok(None));
    assert_eq!(streams.read_chunk(ID, 9, true), Err(ReadError::Closed));
    assert_eq!(streams.stats().streams, 0);
}

#[test]
fn readable_is_told_when_there_is_something_new_to_read() {
    let mut streams = after(&[(1, b"b", false)]);
    let readable = [StreamEvent::Readable { id: ID }];
    assert_eq!(streams.read(ID, &mut [0; 8]), Err(ReadError::Blocked));
    streams.received(ID, 3, b"d", false).unwrap();
    assert!(events(&mut streams).is_empty(), "the gap is still there");
    streams.received(ID, 0, b"a", false).unwrap();
    streams.received(ID, 0, b"a", false).unwrap();
    streams.received(ID, 2, b"c", false).unwrap();
    assert_eq!(events(&mut streams), readable, "once");
    assert_eq!(streams.read(ID, &mut [0; 8]), Ok(Read::Data(4)));
    streams.received(ID, 0, b"abcd", false).unwrap();
    assert!(events(&mut streams).is_empty(), "nothing is new");
    streams.received(ID, 4, b"", true).unwrap();
    assert_eq!(events(&mut streams), readable);
    assert_eq!(streams.read(ID, &mut [0; 8]), Ok(Read::Fin));
}

#[test]
fn nothing_is_told_about_streams_that_are_gone() {
    let mut streams = after(&[(0, b"ab", false)]);
    streams.received(ID, 2, b"c", true).unwrap();
    assert_eq!(streams.read(ID, &mut [0; 8]), Ok(Read::Data(3)));
    assert_eq!(streams.read(ID, &mut [0; 8]), Ok(Read::Fin));
    assert!(events(&mut streams).is_empty());
}

#[test]
fn a_reset_takes_unread_data_away() {
    let mut streams = after(&[(0, b"abcd", false)]);
    streams.received_reset(ID, 9, 100).unwrap();
    assert_eq!(events(&mut streams), [StreamEvent::Readable { id: ID }]);
    assert_eq!(streams.stats().receive_buffered, 0);
    assert_eq!(streams.read(ID, &mut [0; 8]), Err(ReadError::Reset(9)));
    assert_eq!(streams.stats().streams, 0);
    assert_eq!(streams.read(ID, &mut [0; 8]), Err(ReadError::Closed));
}

#[test]
fn stop_sending_is_repeated_until_the_peer_resets() {
    let mut streams = after(&[(0, b"abcd", false)]);
    streams.stop(ID, 5).unwrap();
    assert_eq!(streams.stop(ID, 5), Err(ClosedStream::Closed));
    assert_eq!(streams.read(ID, &mut [0; 8]), Err(ReadError::Closed));
    let (frames, tokens) = control_tokens(&mut streams);
    assert_eq!(frames, [[encode::STOP_SENDING, ID.0, 5]]);
    streams.lost(&tokens[0]);
    let (frames, tokens) = control_tokens(&mut streams);
    assert_eq!(frames, [[encode::STOP_SENDING, ID.0, 5]]);
    streams.received_reset(ID, 5, 4).unwrap();
    assert_eq!(streams.stats().streams, 0);
    assert!(events(&mut streams).is_empty(), "nobody wants to know");
    streams.lost(&tokens[0]);
    assert_eq!(control(&mut streams), [[encode::MAX_STREAMS_UNI, 9]]);
}

#[test]
fn a_stopped_stream_is_over_when_its_size_and_the_stop_are_known() {
    for fin_first in [false, true] {
        let mut streams = after(&[(0, b"abcd", false)]);
        streams.stop(ID, 5).unwrap();
        let (_, tokens) = control_tokens(&mut streams);
        if fin_first {
            streams.received(ID, 90, b"x", true).unwrap();
            assert_eq!(streams.stats().streams, 1);
            streams.acked(&tokens[0]);
        } else {
            streams.acked(&tokens[0]);
            assert_eq!(streams.stats().streams, 1);
            streams.received(ID, 90, b"x", true).unwrap();
        }
        assert_eq!(streams.stats().streams, 0);
    }
}

#[test]
fn a_complete_stream_is_stopped_without_a_word() {
    let mut streams = after(&[(0, b"abcd", true)]);
    streams.stop(ID, 5).unwrap();
    assert_eq!((streams.stats().streams, streams.wants_control()), (0, true));
    assert_eq!(control(&mut streams), [[encode::MAX_STREAMS_UNI, 9]]);
}

#[test]
fn stopped_streams_hold_nothing() {
    let mut streams = after(&[(100, b"abcd", false)]);
    streams.stop(ID, 5).unwrap();
    for offset in (0..5000).step_by(100) {
        streams.received(ID, offset, &[0; 50], false).unwrap();
    }
    assert_eq!(streams.stats().receive_buffered, 0);
}

#[test]
fn fragments_without_end_are_a_violation() {
    let mut streams = server();
    let mut result = Ok(());
    let mut count = 0;
    while result.is_ok() {
        result = streams.received(ID, 2 * count + 1, b"x", false);
        count += 1;
    }
    assert_eq!(code(result), TransportErrorCode::PROTOCOL_VIOLATION);
    assert!(count > MAX_GAPS);
}

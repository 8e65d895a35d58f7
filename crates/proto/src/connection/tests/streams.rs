//! Frames about streams that two ends may send each other, and frames that they must not send.

use super::*;
use crate::{Outcome, WriteError};

/// The client's unidirectional stream with this index.
fn uni(index: u64) -> StreamId {
    StreamId::new(Side::Client, Dir::Uni, index)
}

const fn stream(id: StreamId, offset: u64, fin: bool, data: &[u8]) -> Frame<'_> {
    Frame::Stream(StreamFrame { id, offset, fin, data })
}

#[test]
fn errors_have_their_codes() {
    use TransportErrorCode as Code;
    let ours = StreamId::new(Side::Server, Dir::Uni, 0);
    let unopened = StreamId::new(Side::Server, Dir::Bi, 0);
    let window = TransportConfig::default().stream_receive_window;
    let total = TransportConfig::default().receive_window;
    let reset = |id, final_size| Frame::ResetStream { id, code: 0, final_size };
    let cases: [(&[Frame<'_>], Code); 14] = [
        (&[stream(uni(100), 0, false, b"x")], Code::STREAM_LIMIT_ERROR),
        (&[reset(uni(100), 0)], Code::STREAM_LIMIT_ERROR),
        (&[Frame::StreamDataBlocked { id: uni(100), limit: 0 }], Code::STREAM_LIMIT_ERROR),
        (&[stream(ours, 0, false, b"x")], Code::STREAM_STATE_ERROR),
        (&[stream(unopened, 0, false, b"x")], Code::STREAM_STATE_ERROR),
        (&[Frame::StopSending { id: uni(0), code: 0 }], Code::STREAM_STATE_ERROR),
        (&[Frame::MaxStreamData { id: uni(0), max: 9 }], Code::STREAM_STATE_ERROR),
        (&[Frame::MaxStreamData { id: unopened, max: 9 }], Code::STREAM_STATE_ERROR),
        (&[stream(uni(0), window, false, b"x")], Code::FLOW_CONTROL_ERROR),
        (&[reset(uni(0), window + 1)], Code::FLOW_CONTROL_ERROR),
        (&[reset(uni(0), window), reset(uni(1), total - window + 1)], Code::FLOW_CONTROL_ERROR),
        (&[stream(uni(0), 5, true, b"x"), stream(uni(0), 6, false, b"y")], Code::FINAL_SIZE_ERROR),
        (&[stream(uni(0), 5, true, b"x"), reset(uni(0), 5)], Code::FINAL_SIZE_ERROR),
        (&[stream(uni(0), 5, false, b"x"), stream(uni(0), 0, true, b"y")], Code::FINAL_SIZE_ERROR),
    ];
    for (frames, code) in cases {
        let mut pair = Pair::connected();
        pair.inject(Side::Client, frames);
        assert_eq!(pair.error(Side::Server), Some(code), "{frames:?}");
    }
}

#[test]
fn a_source_symbol_obeys_the_same_limits() {
    use crate::wire_format::{SourceSymbol, SymbolRef};
    let window = TransportConfig::default().stream_receive_window;
    let cases = [
        (stream(uni(0), window, false, b"x"), TransportErrorCode::FLOW_CONTROL_ERROR),
        (stream(uni(100), 0, false, b"x"), TransportErrorCode::STREAM_LIMIT_ERROR),
    ];
    for (inner, code) in cases {
        let mut pair = Pair::connected();
        let frames = encoded(&inner);
        let symbol = SymbolRef { session: 0, id: 0 };
        let frame = Frame::SourceSymbol(SourceSymbol { symbol, frames: &frames });
        pair.inject(Side::Client, &[frame]);
        assert_eq!(pair.error(Side::Server), Some(code));
    }
}

#[test]
fn a_reset_and_a_stop_reach_the_other_end_even_when_lost_once() {
    let mut pair = Pair::connected();
    let id = pair.send(Side::Client, Dir::Bi, &pattern(2_000));
    pair.run_for(SECOND);
    assert_eq!(pair.server.conn().accept(Dir::Bi), Some(id));
    pair.lose_any(|n| n <= 2);
    pair.server.conn().send_stream(id).reset(7).unwrap();
    pair.server.conn().recv_stream(id).stop(8).unwrap();
    pair.run_for(5 * SECOND);
    let mut buffer = [0; 10];
    assert_eq!(pair.client.conn().recv_stream(id).read(&mut buffer), Err(ReadError::Reset(7)));
    // All data had arrived, so there was nothing to stop.
    assert_eq!(pair.client.conn().send_stream(id).outcome(), Some(Outcome::Finished));
}

#[test]
fn a_stop_ends_the_senders_half() {
    let mut pair = Pair::connected();
    let id = pair.open(Side::Client, None);
    pair.client.conn().send_stream(id).write(b"hello").unwrap();
    pair.run_for(SECOND);
    pair.server.conn().accept(Dir::Uni).unwrap();
    pair.server.conn().recv_stream(id).stop(8).unwrap();
    pair.run_for(SECOND);
    assert!(pair.client.events.contains(&Event::Stream(StreamEvent::Stopped { id, code: 8 })));
    assert_eq!(pair.client.conn().send_stream(id).write(b"more"), Err(WriteError::Closed));
}

#[test]
fn more_streams_are_allowed_as_others_end() {
    let mut pair = Pair::with_server(|server| server.max_concurrent_uni_streams = 2);
    for _ in 0..20 {
        while pair.client.conn().open(Dir::Uni).is_some_and(|id| {
            pair.client.conn().send_stream(id).write(b"x").unwrap();
            pair.client.conn().send_stream(id).finish().is_ok()
        }) {}
        assert!(pair.client.conn().open(Dir::Uni).is_none());
        assert_eq!(pair.accept_and_read(Side::Server, Dir::Uni), b"x");
        assert_eq!(pair.accept_and_read(Side::Server, Dir::Uni), b"x");
        pair.run_for(SECOND);
    }
}

#[test]
fn windows_open_as_the_application_reads() {
    let mut pair = Pair::with_server(|server| {
        server.stream_receive_window = 5_000;
        server.max_stream_receive_window = 5_000;
        server.receive_window = 8_000;
        server.max_receive_window = 8_000;
    });
    pair.send(Side::Client, Dir::Uni, &pattern(100_000));
    pair.run_for(5 * SECOND);
    assert_eq!(pair.server.stats().streams.received, 5_000);
    pair.takes(Side::Server, 100_000);
}

#[test]
fn limits_change_while_the_connection_lives() {
    let mut pair = Pair::connected();
    assert_eq!(pair.server.conn().peer_stream_limit(Dir::Uni), 100);
    pair.server.conn().set_max_concurrent_streams(Dir::Uni, 150);
    pair.run_for(SECOND);
    let open = |pair: &mut Pair| {
        let ids = std::iter::from_fn(|| pair.client.conn().open(Dir::Uni));
        ids.collect::<Vec<_>>()
    };
    let ids = open(&mut pair);
    assert_eq!(ids.len(), 150);
    // A lower limit: streams that end are not replaced until no more than 10 are left.
    pair.server.conn().set_max_concurrent_streams(Dir::Uni, 10);
    for id in &ids {
        pair.client.conn().send_stream(*id).finish().unwrap();
    }
    pair.run_for(SECOND);
    for _ in &ids {
        assert_eq!(pair.accept_and_read(Side::Server, Dir::Uni), b"");
    }
    pair.run_for(SECOND);
    assert_eq!(open(&mut pair).len(), 10);

    pair.server.conn().set_receive_window(4 << 20);
    pair.run_for(SECOND);
    assert_eq!(pair.client.conn().streams.credit(), 4 << 20);
}

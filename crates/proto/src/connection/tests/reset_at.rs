//! Streams that are reset after a number of bytes that arrive nevertheless.

use super::*;
use crate::{Read, ResetAtError};

/// Reads a stream until it is reset; returns the bytes and the code.
fn read_to_reset(pair: &mut Pair, side: Side, id: StreamId) -> (Vec<u8>, u64) {
    let until = pair.now + 60 * SECOND;
    let (mut all, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        match pair.end(side).conn().recv_stream(id).read(&mut buffer) {
            Ok(Read::Data(n)) => all.extend_from_slice(&buffer[..n]),
            Ok(Read::Fin) => panic!("the stream was not finished"),
            Err(ReadError::Reset(code)) => return (all, code),
            Err(ReadError::Blocked) => assert!(pair.step(until), "stalled at {}", all.len()),
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn the_promised_bytes_arrive_although_packets_are_lost() {
    let data = pattern(200_000);
    for every in [2, 3, 7, usize::MAX] {
        let mut pair = Pair::connected();
        pair.lose(Side::Server, move |n| n % every == 0);
        let id = pair.open(Side::Server, None);
        pair.write(Side::Server, id, 200_000);
        pair.run_for(60 * MS);
        pair.server.conn().send_stream(id).reset_at(5, 50_000).unwrap();
        assert_eq!(pair.client.conn().accept(Dir::Uni), Some(id));
        let (read, code) = read_to_reset(&mut pair, Side::Client, id);
        assert!(read.len() >= 50_000 && data.starts_with(&read), "{} bytes", read.len());
        assert_eq!(code, 5);
        pair.run_for(5 * SECOND);
        for side in [Side::Client, Side::Server] {
            assert_eq!(pair.end(side).conn().stream_stats().streams, 0);
        }
    }
}

#[test]
fn without_agreement_there_is_no_promise() {
    let offer = |reset_stream_at| Extensions { reset_stream_at, ..Extensions::NONE };
    for offers in [[false, true], [true, false]] {
        let mut pair = Pair::with_extensions(offers.map(offer)).ready();
        for side in [Side::Client, Side::Server] {
            let id = pair.open(side, None);
            let mut stream = pair.end(side).conn().send_stream(id);
            stream.write(b"data").unwrap();
            assert_eq!(stream.reset_at(5, 2), Err(ResetAtError::UnsupportedByPeer));
            stream.finish().unwrap();
        }
        let id = StreamId::new(Side::Client, Dir::Uni, 1);
        let reset = Frame::ResetStreamAt { id, code: 1, final_size: 10, reliable_size: 5 };
        pair.inject(Side::Client, &[reset]);
        let expected = (!offers[1]).then_some(TransportErrorCode::PROTOCOL_VIOLATION);
        assert_eq!(pair.error(Side::Server), expected);
    }
}

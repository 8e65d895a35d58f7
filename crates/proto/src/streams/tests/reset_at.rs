//! RESET_STREAM_AT (draft-ietf-quic-reliable-stream-reset-07): the beginning of a stream that was reset
//! is delivered.

use super::delivery::ID;
use super::*;
use proptest::prelude::{ProptestConfig, prop_oneof, proptest};

const CODE: u64 = 7;

/// Byte `offset` of the stream.
fn byte(offset: u64) -> u8 {
    (offset ^ (offset >> 8)).wrapping_mul(31) as u8
}

fn bytes(len: u64) -> Vec<u8> {
    (0..len).map(byte).collect()
}

/// A client with a stream on which `len` bytes were written, as far as there is room.
fn writer(len: u64) -> (Sender, StreamId) {
    let mut streams = client();
    let id = streams.open(Dir::Uni).unwrap();
    let _ = streams.write(id, &bytes(len)).unwrap();
    (streams, id)
}

/// Sends all data that can be sent; returns the tokens.
fn send_all(streams: &mut Sender) -> Vec<Token> {
    let packets = std::iter::from_fn(|| packet(streams, Instant::now()));
    packets.flat_map(|packet| packet.tokens).collect()
}

/// The bytes and the end that an application has read from the stream.
#[derive(Default)]
struct Reader {
    /// Every byte that was delivered.
    seen: std::collections::BTreeSet<u64>,
    end: Option<Result<(), u64>>,
}

impl Reader {
    fn read(&mut self, streams: &mut Sender, ordered: bool, random: &mut Rng) {
        while streams.accept(Dir::Uni).is_some() {}
        while self.end.is_none() {
            match streams.read_chunk(ID, 1 + random.below(700) as usize, ordered) {
                Ok(Some(chunk)) => {
                    for (at, b) in (chunk.offset..).zip(&chunk.bytes) {
                        assert_eq!(*b, byte(at));
                        assert!(self.seen.insert(at), "byte {at} twice");
                    }
                }
                Ok(None) => self.end = Some(Ok(())),
                Err(ReadError::Reset(code)) => self.end = Some(Err(code)),
                // The stream is not even open yet, or there is no byte to read.
                Err(ReadError::Closed | ReadError::Blocked) => return,
                Err(ReadError::IllegalOrderedRead) => panic!("never unordered"),
            }
        }
    }

    /// Number of bytes delivered without a gap.
    fn prefix(&self) -> u64 {
        (0..).find(|at| !self.seen.contains(at)).unwrap_or(0)
    }
}

/// A stream of `size` bytes is reset to each of `sizes` in turn while packets get lost. The bytes that the
/// reader got, and the end that it saw, are compared with the promised bytes.
fn run(seed: u64, size: u64, sizes: &[u64], finish: bool, ordered: bool, loss: u64) {
    let mut random = Rng::new(seed);
    let approaches = approaches();
    let approach = &*approaches[random.below(approaches.len() as u64) as usize];
    let [mut a, mut b] =
        [Side::Client, Side::Server].map(|side| endpoint_with(side, &small(), approach));
    let id = a.open(Dir::Uni).unwrap();
    let (mut written, mut resets) = (0, sizes.iter());
    let mut promised = size;
    let mut reader = Reader::default();
    let mut flight: Vec<(bool, Packet)> = Vec::new();
    let mut rounds = 0;
    while a.stats().streams > 0 || b.stats().streams > 0 || reader.end.is_none() {
        if promised == size
            && let Ok(n) = a.write(id, &bytes(size)[written..])
        {
            written += n;
            if written as u64 == size && finish {
                let _ = a.finish(id);
            }
        }
        if (written as u64 == size || random.below(8) == 0)
            && let Some(reliable) = resets.next()
            && a.reset_at(id, CODE, *reliable).is_ok()
        {
            promised = promised.min(*reliable).min(written as u64);
        }
        for (ours, streams) in [(true, &mut a), (false, &mut b)] {
            for _ in 0..random.below(6) {
                flight.extend(packet(streams, Instant::now()).map(|packet| (ours, packet)));
            }
        }
        for _ in 0..random.below(8).min(flight.len() as u64) {
            let (ours, packet) = flight.swap_remove(random.below(flight.len() as u64) as usize);
            let (from, to) = if ours { (&mut a, &mut b) } else { (&mut b, &mut a) };
            let lost = random.below(100) < loss;
            if !lost || random.below(4) == 0 {
                deliver(to, &packet.bytes).unwrap();
            }
            packet.tokens.iter().for_each(|t| if lost { from.lost(t) } else { from.acked(t) });
        }
        reader.read(&mut b, ordered, &mut random);
        assert_eq!(a.out.pool.used(), a.stats().send_buffered);
        rounds += 1;
        assert!(rounds < 20_000, "stuck: {:?} {:?} {:?}", a.stats(), b.stats(), reader.end);
    }
    match reader.end {
        Some(Ok(())) => assert!(finish && reader.prefix() == size),
        Some(Err(code)) => assert!(code == CODE && reader.prefix() >= promised),
        None => unreachable!("the loop ended"),
    }
    // Both ends count the same bytes for flow control, and the reader gave all of the credit back.
    assert_eq!(a.stats().sent, b.stats().received);
    assert_eq!(b.window.consumed(), b.stats().received);
    assert_eq!((a.stats().send_buffered, b.stats().receive_buffered), (0, 0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn what_was_promised_arrives_whatever_is_lost(
        seed: u64,
        size in prop_oneof![1..100u64, 1000..30_000u64],
        shares in proptest::collection::vec(0..120u64, 1..4),
        finish: bool,
        ordered: bool,
        loss in 0..60u64,
    ) {
        let sizes: Vec<u64> = shares.iter().map(|share| share * size / 100).collect();
        run(seed, size, &sizes, finish, ordered, loss);
    }
}

#[test]
fn no_more_is_sent_than_promised_and_only_that_is_sent_again() {
    let (mut streams, id) = writer(8_000);
    let sent: Vec<_> = (0..3).filter_map(|_| send_frame(&mut streams)).collect();
    let before = streams.stats().sent;
    assert!(before > 3_000 && before < 5_000);
    streams.reset_at(id, CODE, 2_000).unwrap();
    assert_eq!(control(&mut streams), [[encode::RESET_STREAM_AT, id.0, CODE, before, 2_000]]);
    assert!(!streams.has_data(), "nothing new is sent");
    assert_eq!(streams.write(id, b"more"), Err(WriteError::Closed));
    streams.lose(&sent);
    let again = send_frames(&mut streams);
    assert_eq!(again.iter().map(|token| token.len).sum::<u32>(), 2_000);
}

#[test]
fn the_frame_waits_for_flow_control() {
    let (mut streams, id) = writer(15_000);
    streams.reset_at(id, CODE, 12_000).unwrap();
    let tokens = send_all(&mut streams);
    assert!(!tokens.iter().any(|t| matches!(t, Token::Control(ControlToken::ResetStreamAt(..)))));
    assert_eq!(streams.stats().sent, 10_000);
    streams.received_max_stream_data(id, 20_000).unwrap();
    let tokens = send_all(&mut streams);
    assert!(tokens.contains(&Token::Control(ControlToken::ResetStreamAt(id, 12_000))));
    assert_eq!(streams.stats().sent, 12_000);
}

#[test]
fn only_the_last_word_ends_the_stream() {
    let (mut streams, id) = writer(1_000);
    let sent = send_all(&mut streams);
    streams.reset_at(id, CODE, 800).unwrap();
    let (_, first) = control_tokens(&mut streams);
    // The peer no longer wants the stream. The code and the final size stay.
    streams.received_stop_sending(id, 99).unwrap();
    let (frames, second) = control_tokens(&mut streams);
    assert_eq!(frames, [[encode::RESET_STREAM, id.0, CODE, 1_000]]);
    first.iter().for_each(|token| streams.acked(token));
    assert_eq!(streams.stats().streams, 1);
    second.iter().for_each(|token| streams.acked(token));
    assert_eq!(streams.stats().streams, 0);
    // Losses of data that was sent before no longer matter.
    sent.iter().for_each(|token| streams.lost(token));
    assert!(!streams.has_data());
}

#[test]
fn more_is_never_promised_than_before() {
    let (mut streams, id) = writer(1_000);
    send_all(&mut streams);
    streams.reset_at(id, CODE, 300).unwrap();
    control(&mut streams);
    streams.reset_at(id, CODE, 400).unwrap();
    streams.reset_at(id, CODE, 300).unwrap();
    assert!(!streams.wants_control());
    streams.reset_at(id, 99, 200).unwrap();
    assert_eq!(control(&mut streams), [[encode::RESET_STREAM_AT, id.0, CODE, 1_000, 200]]);
}

#[test]
fn the_beginning_is_read_before_the_reset() {
    let mut streams = server();
    streams.received(ID, 0, &bytes(500), false).unwrap();
    streams.received_reset_at(ID, CODE, 5_000, 800).unwrap();
    streams.accept(Dir::Uni).unwrap();
    let mut buffer = [0; 1_000];
    assert_eq!(streams.read(ID, &mut buffer), Ok(Read::Data(500)));
    assert_eq!(streams.read(ID, &mut buffer), Err(ReadError::Blocked));
    events(&mut streams);
    // These bytes are late, and extend beyond the bytes that are delivered.
    streams.received(ID, 400, &bytes(1_000)[400..], false).unwrap();
    assert_eq!(events(&mut streams), [StreamEvent::Readable { id: ID }]);
    assert_eq!(streams.read(ID, &mut buffer), Ok(Read::Data(300)));
    assert_eq!(streams.read(ID, &mut buffer), Err(ReadError::Reset(CODE)));
    assert_eq!(streams.stats().streams, 0);
}

#[test]
fn what_is_not_delivered_is_credited_and_freed_at_once() {
    let mut streams = server();
    streams.received(ID, 0, &bytes(9_000), false).unwrap();
    let before = streams.stats().receive_buffered;
    streams.received_reset_at(ID, CODE, 9_500, 100).unwrap();
    assert_eq!(streams.window.consumed(), 9_400);
    assert!(streams.stats().receive_buffered <= 1_024 && before >= 9_000);
    // Late frames that promise more bytes change nothing.
    streams.received_reset_at(ID, CODE, 9_500, 200).unwrap();
    assert_eq!(streams.window.consumed(), 9_400);
    streams.accept(Dir::Uni).unwrap();
    let mut buffer = [0; 1_000];
    assert_eq!(streams.read(ID, &mut buffer), Ok(Read::Data(100)));
    assert_eq!(streams.window.consumed(), 9_500);
}

#[test]
fn contradictions_are_errors() {
    let fresh = || {
        let mut streams = server();
        streams.received_reset_at(ID, CODE, 1_000, 500).unwrap();
        streams
    };
    let size = TransportErrorCode::FINAL_SIZE_ERROR;
    let state = TransportErrorCode::STREAM_STATE_ERROR;
    assert_eq!(code(fresh().received_reset_at(ID, CODE, 999, 400)), size);
    assert_eq!(code(fresh().received_reset(ID, CODE, 1_001)), size);
    assert_eq!(code(fresh().received(ID, 1_000, b"x", false)), size);
    assert_eq!(code(fresh().received(ID, 500, b"x", true)), size);
    assert_eq!(code(fresh().received_reset_at(ID, CODE + 1, 1_000, 400)), state);
    assert_eq!(code(fresh().received_reset(ID, CODE + 1, 1_000)), state);
    let flow = TransportErrorCode::FLOW_CONTROL_ERROR;
    assert_eq!(code(server().received_reset_at(ID, CODE, 10_001, 5)), flow);
    // The stream is one on which only this end sends.
    let (mut streams, ours) = writer(10);
    assert_eq!(code(streams.received_reset_at(ours, CODE, 10, 5)), state);
}

//! Limits of erasure coding, for this end and for a hostile peer.

use super::*;
use crate::connection::timer::Timer;
use crate::policy::{Decision, Redundancy, RepairPlan, View};
use crate::wire_format::SymbolWindow;
use crate::{Algorithm, CodeId};
use sutura_erasure::{Encoder, WindowLimits};

fn symbol(id: u64, frames: &[u8]) -> Frame<'_> {
    Frame::SourceSymbol(SourceSymbol { symbol: SymbolRef { session: 0, id }, frames })
}

fn window(session: u16, lower_bound: u64) -> Frame<'static> {
    Frame::SymbolWindow(SymbolWindow { session, lower_bound })
}

fn repair(header: RepairHeader, payload: &[u8]) -> Frame<'_> {
    Frame::Repair(Repair { header, payload })
}

fn repair_header(session: u16, first: u64, count: u64, key: u32) -> RepairHeader {
    RepairHeader::new(session, CodeId::SLIDING_WINDOW, &(first..first + count), key)
}

fn decoder(max_sessions: u16, max_window_symbols: u32, max_window_bytes: u32) -> FecConfig {
    FecConfig { max_sessions, max_window_symbols, max_window_bytes, ..FecConfig::default() }
}

/// Opens and finishes a protected stream of the server with `len` bytes.
fn protected(pair: &mut Pair, len: usize) -> StreamId {
    pair.send_protected(Side::Server, len, Some(tail()))
}

/// Encodes a SYMBOL_ACK frame.
fn symbol_ack(session: u16, lower: u64, ranges: &[(u64, u64)]) -> Vec<u8> {
    let mut out = vec![0x7f, 0x55];
    let pairs = ranges.iter().flat_map(|&(gap, len)| [gap, len]);
    let fields = [session.into(), lower, ranges.len() as u64];
    fields.into_iter().chain(pairs).for_each(|v| put_varint(&mut out, v));
    out
}

/// How the server reacts to a SYMBOL_ACK after it sent some symbols of session 0.
fn verdict(pair: &mut Pair, ack: &[u8]) -> Result<(), TransportErrorCode> {
    pair.verdict(&FrameIter::new(ack, Carrier::OneRtt).next().unwrap().unwrap())
}

#[test]
fn a_lying_report_frees_what_was_claimed_and_nothing_else() {
    let mut pair = Pair::connected();
    pair.mute(Side::Server);
    let id = protected(&mut pair, 5_000);
    pair.flush(Side::Server);
    let sent = pair.server.stats().fec.source_symbols_sent;
    assert_eq!(sent, 5);
    let in_flight = pair.server.stats().bytes_in_flight;
    let violation = Err(TransportErrorCode::PROTOCOL_VIOLATION);
    assert_eq!(verdict(&mut pair, &symbol_ack(0, sent + 1, &[])), violation);
    assert_eq!(verdict(&mut pair, &symbol_ack(0, 0, &[(sent, 1)])), violation);
    assert_eq!(verdict(&mut pair, &symbol_ack(0, 0, &[(1, 1), (1 << 60, 1 << 60)])), violation);
    assert_eq!(verdict(&mut pair, &symbol_ack(9, 0, &[])), violation);
    // The peer may falsely claim symbols that were sent; its stream then has a hole.
    assert_eq!(verdict(&mut pair, &symbol_ack(0, 0, &[(1, 2)])), Ok(()));
    assert!(pair.server.conn().send_stream(id).outcome().is_none());
    assert_eq!(pair.server.stats().bytes_in_flight, in_flight, "packets stay in flight");
    pair.mend();
    pair.run_for(5 * SECOND);
    assert!(pair.server.stats().packets_lost >= 5, "each was lost all the same");
    assert!(pair.server.conn().send_stream(id).outcome().is_some());
}

#[test]
fn absurd_symbols_cost_no_more_than_was_announced() {
    let fec = decoder(2, 16, 20_000);
    let mut pair = Pair::with_server(|server| server.fec = Some(fec));
    let mut frames = Vec::new();
    let id = StreamId::new(Side::Client, Dir::Uni, 0);
    Frame::Stream(StreamFrame { id, offset: 0, fin: false, data: &[7; 1000] }).encode(&mut frames);
    let server = pair.server.conn();
    let top = (1u64 << 62) - 3;
    for i in 0..3_000u64 {
        let id = if i % 3 == 0 { i << 48 } else { i * i };
        let _ = server.inject_frame(&symbol(id.min(top), &frames));
        let header = repair_header(0, id.min(top) / 2, i % 16 + 1, 3);
        let _ = server.inject_frame(&repair(header, &[i as u8; 1002]));
    }
    assert_eq!(server.inject_frame(&window(0, top)), Ok(()));
    let allocated = server.ingress.decoders.allocated();
    assert!(allocated < 300_000, "{allocated}");
    assert_eq!(server.stats().streams.received, 1_000, "counted once");

    for (frame, what) in [
        (window(2, 0), "a third session"),
        (repair(repair_header(1, 0, 17, 0), &[0; 10]), "a span beyond the window"),
        (symbol(0, &[0; 1473]), "a symbol too long"),
        (repair(repair_header(1, 0, 1, 0), &[0; 1475]), "a repair symbol too long"),
    ] {
        assert_eq!(pair.verdict(&frame), Err(TransportErrorCode::PROTOCOL_VIOLATION), "{what}");
    }
}

/// A repair symbol over the first source symbol of session 0 alone, which consists of `frames`.
fn repair_of(frames: &[u8]) -> Vec<u8> {
    let limits = WindowLimits { symbols: 4, bytes: 1000, symbol_size: 100 };
    let mut encoder = Encoder::new(limits);
    encoder.push(frames).unwrap();
    let mut payload = Vec::new();
    encoder.repair(0..1, 5, &mut payload).unwrap();
    payload
}

/// Recovered bytes count towards flow control like any others, and only once, even if they arrive again.
#[test]
fn recovered_bytes_count_once() {
    let id = StreamId::new(Side::Client, Dir::Uni, 0);
    let data = pattern(60);
    let stream = Frame::Stream(StreamFrame { id, offset: 0, fin: true, data: &data });
    let frames = encoded(&stream);
    let payload = repair_of(&frames);
    let recovering = repair(repair_header(0, 0, 1, 5), &payload);
    let source = symbol(0, &frames);
    let orders = [
        [&recovering, &source, &stream],
        [&stream, &recovering, &source],
        [&source, &stream, &recovering],
    ];
    for (first, order) in orders.into_iter().enumerate() {
        let mut pair = Pair::connected();
        for frame in order {
            pair.server.conn().inject_frame(frame).unwrap();
            assert_eq!(pair.server.stats().streams.received, 60, "{frame:?}");
        }
        assert_eq!(pair.server.stats().fec.recovered, u64::from(first < 2));
        assert_eq!(pair.accept_and_read(Side::Server, Dir::Uni), data);
    }
    // Recovered bytes beyond the limits are an error, as in any STREAM frame.
    let beyond = TransportConfig::default().stream_receive_window;
    let stream = Frame::Stream(StreamFrame { id, offset: beyond, fin: false, data: &data });
    let frames = encoded(&stream);
    let payload = repair_of(&frames);
    let beyond = repair(repair_header(0, 0, 1, 5), &payload);
    let mut pair = Pair::connected();
    assert_eq!(pair.verdict(&beyond), Err(TransportErrorCode::FLOW_CONTROL_ERROR));
}

#[test]
fn a_late_original_is_a_duplicate() {
    let mut pair = Pair::connected();
    let server = pair.server.conn();
    let frames = encoded(&Frame::Datagram(b"once"));
    let payload = repair_of(&frames);
    server.inject_frame(&repair(repair_header(0, 0, 1, 5), &payload)).unwrap();
    server.inject_frame(&symbol(0, &frames)).unwrap();
    // The window moves on, and yet another copy arrives later.
    server.inject_frame(&window(0, 1)).unwrap();
    server.inject_frame(&symbol(0, &frames)).unwrap();
    assert_eq!(server.datagrams().recv().as_deref(), Some(&b"once"[..]));
    assert_eq!(server.datagrams().recv(), None);
    assert_eq!(server.stats().fec.recovered, 1);
}

#[test]
fn a_symbol_that_was_given_up_still_delivers_its_frames() {
    let mut pair = Pair::connected();
    let server = pair.server.conn();
    server.inject_frame(&window(0, 10)).unwrap();
    let frames = encoded(&Frame::Datagram(b"late"));
    server.inject_frame(&symbol(3, &frames)).unwrap();
    assert_eq!(server.datagrams().recv().as_deref(), Some(&b"late"[..]));
}

#[test]
fn only_protectable_frames_stand_in_a_symbol() {
    let mut pair = Pair::connected();
    let inner = [Frame::Ping, Frame::MaxData(9), Frame::Padding, Frame::HandshakeDone];
    for (id, inner) in (0..).zip(inner) {
        let frames = encoded(&inner);
        let verdict = pair.verdict(&symbol(id, &frames));
        assert_eq!(verdict, Err(TransportErrorCode::PROTOCOL_VIOLATION), "{inner:?}");
    }
}

#[test]
fn padding_does_not_get_into_a_symbol() {
    let mut pair = Pair::connected();
    protected(&mut pair, 100);
    pair.inject(Side::Client, &[Frame::PathChallenge([1; 8])]);
    let before = pair.sent(Side::Server);
    pair.takes(Side::Client, 100);
    assert_eq!(pair.datagrams[Side::Server as usize][before], 1200);
    assert!(pair.client.stats().fec.source_symbols_received > 0);
    assert_eq!(pair.loss(Side::Client), None);
}

#[test]
fn redundancy_stays_within_the_congestion_window() {
    let mut pair = Pair::connected();
    pair.lose(Side::Server, |n| n.is_multiple_of(20));
    let id = pair.open(Side::Server, Some(Protection::incremental(32, Duration::ZERO)));
    let mut full = 0;
    for _ in 0..100 {
        let _ = pair.server.conn().send_stream(id).write(&pattern(3_000));
        // New packets are sent only if the window has room for them. A loss may shrink the window below the
        // bytes already in flight.
        let before = pair.server.conn().path.recovery.bytes_in_flight();
        pair.flush(Side::Server);
        let connection = pair.server.conn();
        let (after, window) =
            (connection.path.recovery.bytes_in_flight(), connection.path.congestion.window());
        assert!(after <= window.max(before), "{after} of {window}");
        full += u32::from(after + 1_200 > window);
        pair.run_for(20 * MS);
    }
    assert!(full > 0, "the window was never tried");
    let sent = pair.server.stats();
    assert!(sent.fec.repair_symbols_sent > 20, "{sent:?}");
}

/// Sends a repair symbol over the whole window every 100 ms, as long as some symbols are not known to have
/// arrived.
#[derive(Debug, Default)]
struct Endless(Option<Instant>);

impl Redundancy for Endless {
    fn on_source_sent(&mut self, now: Instant, _id: u64, _view: &View) {
        self.0 = Some(now + INTERVAL);
    }

    fn on_repair_sent(&mut self, now: Instant, _view: &View) {
        self.0 = Some(now + INTERVAL);
    }

    fn decide(&self, now: Instant, view: &View) -> Decision {
        let due = view.unacked > 0 && self.0.is_some_and(|at| at <= now);
        if due { Decision::Repair(RepairPlan::over(view.span())) } else { Decision::Source }
    }

    fn timeout(&self) -> Option<Instant> {
        self.0
    }
}

const INTERVAL: Duration = Duration::from_millis(100);

/// Opens a stream of the server that is protected without end.
fn endless(pair: &mut Pair) -> StreamId {
    pair.open(Side::Server, Some(made("endless", || Box::new(Endless::default()))))
}

#[test]
fn repair_symbols_put_a_probe_off_by_no_more_than_its_timeout() {
    let mut pair = Pair::connected();
    let id = endless(&mut pair);
    pair.server.conn().send_stream(id).write(&pattern(300)).unwrap();
    pair.cut();
    let (start, pto) = (pair.now, pair.server.conn().pto());
    pair.run_until(|pair| pair.server.stats().probe_timeouts > 0);
    let waited = pair.now - start;
    let repairs = pair.server.stats().fec.repair_symbols_sent;
    assert!(repairs >= 2, "{repairs}");
    assert!(waited > pto && waited <= 2 * pto, "{waited:?} of {pto:?}");
    // The probe carries the data.
    pair.mend();
    pair.run_for(60 * MS);
    assert!(pair.server.stats().stream_bytes_retransmitted >= 300);
}

#[test]
fn repair_symbols_do_not_delay_acknowledgements() {
    let mut pair = Pair::connected();
    let id = endless(&mut pair);
    // The server's window is full of packets that nobody acknowledges.
    pair.mute(Side::Server);
    pair.server.conn().send_stream(id).write(&pattern(50_000)).unwrap();
    pair.run_for(120 * MS);
    let acks = |pair: &mut Pair| {
        let space = SpaceId::Data;
        pair.server.conn().spaces[space].acks.is_due(pair.now)
    };
    for _ in 0..10 {
        pair.inject(Side::Client, &[Frame::Ping]);
        pair.inject(Side::Client, &[Frame::Ping]);
        assert!(acks(&mut pair));
        pair.flush(Side::Server);
        assert!(!acks(&mut pair), "it was sent at once");
        pair.run_for(10 * MS);
    }
}

#[test]
fn repair_symbols_are_paced() {
    let mut pair = Pair::connected();
    pair.carry(Side::Server, 1_000_000);
    pair.run_for(SECOND);
    let id = pair.open(Side::Server, Some(Protection::incremental(40, Duration::ZERO)));
    pair.write(Side::Server, id, 1_000);
    pair.flush(Side::Server);
    let stats = pair.server.stats();
    let at_once = stats.fec.repair_symbols_sent;
    assert!(at_once < 40, "{at_once} at once");
    assert!(stats.bytes_in_flight + 40 * 1_200 < stats.congestion_window, "there is room for all");
    assert!(pair.server.conn().timers.is_set(Timer::Pacing));
    pair.run_for(50 * MS);
    assert!(pair.server.stats().fec.repair_symbols_sent > at_once, "the others follow");
}

#[test]
fn redundancy_does_not_make_an_unused_window_grow() {
    for algorithm in [Algorithm::NEW_RENO, Algorithm::CUBIC] {
        let mut pair = Pair::with_server(|server| server.congestion = Arc::new(algorithm));
        let id = pair.open(Side::Server, Some(Protection::incremental(40, Duration::ZERO)));
        let window = pair.server.stats().congestion_window;
        let mut full = 0;
        for _ in 0..30 {
            pair.server.conn().send_stream(id).write(&pattern(1_000)).unwrap();
            pair.flush(Side::Server);
            full += u32::from(pair.server.stats().bytes_in_flight + 1_200 > window);
            pair.run_for(400 * MS);
        }
        let stats = pair.server.stats();
        assert!(stats.fec.repair_symbols_sent > 200 && full > 10, "{full}, {:?}", stats.fec);
        assert_eq!(stats.congestion_window, window, "{algorithm}");
    }
}

#[test]
fn a_probe_repeats_a_symbol_that_is_held_back() {
    let mut pair = Pair::connected();
    // All packets that the server sends at first are lost, including repair symbols.
    pair.lose(Side::Server, |n| n <= 9);
    protected(&mut pair, 5_000);
    let start = pair.now;
    pair.takes(Side::Client, 5_000);
    assert!(pair.now - start < SECOND, "{:?}", pair.now - start);
}

/// Symbols that are recovered after they left the sender's window are credited and not sent again.
#[test]
fn what_the_peer_recovers_beyond_the_window_is_credited() {
    let mut pair = Pair::with_client(|client| client.fec = Some(decoder(1, 4, 1 << 20)));
    pair.lose(Side::Server, |n| [2, 9].contains(&n));
    let blocks = Protection::new(Arc::new(Block::new(4, 1).unwrap()));
    pair.send_protected(Side::Server, 20_000, Some(blocks));
    pair.takes(Side::Client, 20_000);
    pair.run_for(SECOND);
    let (client, server) = (pair.client.stats().fec, pair.server.stats());
    assert!(client.recovered > 0 && server.packets_lost > 0);
    assert_eq!(server.fec.recovered_by_peer, client.recovered);
    assert_eq!(server.fec.repair_symbols_useful, client.recovered);
    assert_eq!(server.stream_bytes_retransmitted, 0);
}

#[test]
fn a_peer_with_a_tiny_decoder_is_not_overrun() {
    for fec in [decoder(1, 2, 1 << 20), decoder(1, 100, 300), decoder(1, 100, 1)] {
        let mut pair = Pair::with_client(|client| client.fec = Some(fec));
        pair.lose(Side::Server, |n| n.is_multiple_of(5));
        protected(&mut pair, 50_000);
        pair.takes(Side::Client, 50_000);
        let coded = pair.server.stats().fec.source_symbols_sent;
        assert_eq!(coded == 0, fec.max_window_bytes == 1);
    }
}

//! Erasure coding between two connections.

use super::pair::{Pair, pattern};
use crate::policy::{Block, RedundancyFactory, Tail};
use crate::{
    CodeSet, Connection, Dir, FecConfig, Priority, Protection, Reason, Side, StreamId,
    TransportConfig,
};
use std::sync::Arc;
use std::time::Duration;

/// A protection that sends three repair symbols at the end.
fn tail() -> Protection {
    Protection::tail(3, Duration::ZERO)
}

/// Sends `len` bytes from the server on a protected stream, losing the datagrams with these
/// numbers. Returns how long the client waited for the end.
fn lossy_transfer(pair: &mut Pair, protection: Option<Protection>, lost: &[usize]) -> Duration {
    let data = pattern(6_500);
    let id = pair.server.conn().open(Dir::Uni).unwrap();
    pair.server.conn().send_stream(id).protect(protection).unwrap();
    pair.server.conn().send_stream(id).write(&data).unwrap();
    pair.server.conn().send_stream(id).finish().unwrap();
    let (lost, mut n) = (lost.to_vec(), 0);
    pair.filter = Box::new(move |from, _| {
        if from == Side::Client {
            return true;
        }
        n += 1;
        !lost.contains(&(n - 1))
    });
    let start = pair.now;
    assert_eq!(pair.accept_and_read(Side::Client, Dir::Uni), data);
    let waited = pair.now - start;
    pair.run_for(Duration::from_secs(2));
    waited
}

#[test]
fn is_negotiated_and_says_so() {
    let mut pair = Pair::connected();
    assert!(pair.client.conn().stats().fec.negotiated);
    assert!(pair.server.conn().stats().fec.negotiated);
    let without = TransportConfig { fec: None, ..TransportConfig::default() };
    let mut pair = Pair::with(without, TransportConfig::default());
    pair.handshake();
    assert!(!pair.server.conn().stats().fec.negotiated);
    // The stream asks for protection in vain, and is sent as plain QUIC.
    lossy_transfer(&mut pair, Some(tail()), &[3]);
    assert_eq!(pair.server.conn().stats().fec.source_symbols_sent, 0);
    assert_eq!(pair.client.conn().stats().fec.source_symbols_received, 0);
}

#[test]
fn losses_are_mended_without_a_round_trip() {
    for lost in [&[0][..], &[2], &[5], &[0, 2, 5], &[3, 4, 5]] {
        let mut pair = Pair::connected();
        let waited = lossy_transfer(&mut pair, Some(tail()), lost);
        assert!(waited < Duration::from_millis(90), "{lost:?}: {waited:?}");
        let (client, server) = (pair.client.conn().stats(), pair.server.conn().stats());
        assert_eq!(client.fec.recovered, lost.len() as u64, "{lost:?}");
        assert_eq!(server.fec.recovered_by_peer, lost.len() as u64, "{lost:?}");
        assert_eq!(server.fec.repair_symbols_sent, 3);
        assert_eq!(server.stream_bytes_retransmitted, 0, "{lost:?}");
        counts_are_right(pair.server.conn(), lost.len() as u64);
        assert_eq!(server.packets_lost, lost.len() as u64, "congestion control hears of each");

        let mut pair = Pair::connected();
        assert!(lossy_transfer(&mut pair, None, lost) > Duration::from_millis(140));
    }
}

/// Checks the counts of a server that sent three repair symbols on one stream, of which the client needed
/// `useful`.
fn counts_are_right(server: &Connection, useful: u64) {
    let (fec, protections) = (server.stats().fec, server.protections());
    let [only, default] = protections.as_slice() else { panic!("{protections:?}") };
    assert_eq!(
        (default.session, default.reason),
        (None, Some(Reason::Unknown)),
        "nothing is known"
    );
    assert_eq!((only.session, &only.protection, only.reason), (Some(0), &tail(), None));
    let counts = only.counts;
    assert_eq!((counts.recovered, counts.useful_symbols), (useful, useful));
    assert_eq!((fec.repair_symbols_useful, fec.repair_symbols_wasted), (useful, 3 - useful));
    assert_eq!((fec.repair_symbols_sent, counts.wasted_symbols()), (3, 3 - useful));
    assert_eq!(fec.repair_bytes_sent, fec.repair_bytes_useful + fec.repair_bytes_wasted);
    assert_eq!(counts.wasted_bytes(), fec.repair_bytes_wasted);
    assert_eq!((fec.source_symbols_sent, fec.source_bytes_sent), (6, counts.source_bytes));
    assert!((6_500..6_600).contains(&fec.source_bytes_sent), "{fec:?}");
    // The round-trip time is 100 ms. A symbol is there after 50 ms, a retransmission after 162 ms.
    let each = fec.time_saved / u32::try_from(useful).unwrap();
    let expected = Duration::from_millis(90)..Duration::from_millis(130);
    assert!(expected.contains(&each), "{each:?}");
    assert_eq!(counts.time_saved, fec.time_saved);
}

#[test]
fn more_losses_than_repair_symbols_are_sent_again() {
    let mut pair = Pair::connected();
    lossy_transfer(&mut pair, Some(tail()), &[1, 2, 3, 4]);
    let server = pair.server.conn().stats();
    assert!(server.stream_bytes_retransmitted > 0);
    assert_eq!(server.packets_lost, 4);
}

#[test]
fn lost_repair_symbols_hold_nothing_back() {
    let mut pair = Pair::connected();
    let waited = lossy_transfer(&mut pair, Some(tail()), &[4, 6, 7, 8]);
    assert!(waited < Duration::from_millis(400), "{waited:?}");
    assert_eq!(pair.client.conn().stats().fec.recovered, 0);
}

#[test]
fn repair_symbols_over_parts_of_the_window_never_vouch_for_the_rest() {
    // Three blocks of two source symbols, each followed by a repair symbol, whatever the losses.
    let blocks = Protection::new(Arc::new(Block::new(2, 1).unwrap()));
    for pattern in 0..1 << 9 {
        let lost: Vec<usize> = (0..9).filter(|n| pattern >> n & 1 == 1).collect();
        for codes in [CodeSet::default(), CodeSet::all()] {
            let fec = Some(FecConfig { codes, ..FecConfig::default() });
            let client = TransportConfig { fec, ..TransportConfig::default() };
            let mut pair = Pair::with(client, TransportConfig::default());
            pair.handshake();
            lossy_transfer(&mut pair, Some(blocks.clone()), &lost);
        }
    }
}

#[test]
fn incremental_data_is_protected_piece_by_piece() {
    let mut pair = Pair::connected();
    let protection = Protection::incremental(3, Duration::ZERO);
    let id = pair.server.conn().open(Dir::Uni).unwrap();
    pair.server.conn().send_stream(id).protect(Some(protection)).unwrap();
    let mut n = 0;
    pair.filter = Box::new(move |from, bytes| {
        n += usize::from(from == Side::Server && bytes.len() > 200);
        from == Side::Client || n % 40 != 3
    });
    let mut received = 0;
    let mut client_id = None;
    for piece in 1..=30usize {
        assert_eq!(pair.server.conn().send_stream(id).write(&pattern(5000)), Ok(5000));
        pair.run_for(Duration::from_millis(200));
        received += drain(&mut pair, &mut client_id);
        assert_eq!(received, piece * 5000, "each piece arrives within its path's delay");
    }
    assert!(pair.client.conn().stats().fec.recovered >= 5);
    assert_eq!(pair.server.conn().stats().stream_bytes_retransmitted, 0);
}

/// Reads everything available on the only stream.
fn drain(pair: &mut Pair, id: &mut Option<StreamId>) -> usize {
    let conn: &mut Connection = pair.client.conn();
    let Some(id) = id.or_else(|| conn.accept(Dir::Uni)).inspect(|i| *id = Some(*i)) else {
        return 0;
    };
    let mut total = 0;
    while let Ok(Some(chunk)) = conn.recv_stream(id).read_chunk(usize::MAX, true) {
        total += chunk.bytes.len();
    }
    total
}

#[test]
fn sessions_serve_one_stream_after_another_and_are_shared_when_scarce() {
    let fec = Some(FecConfig { max_sessions: 2, ..FecConfig::default() });
    let config = || TransportConfig { fec, ..TransportConfig::default() };
    let mut pair = Pair::with(config(), config());
    pair.handshake();
    for _ in 0..10 {
        lossy_transfer(&mut pair, Some(tail()), &[]);
    }
    lossy_transfer(&mut pair, Some(tail()), &[3]);
    assert_eq!(pair.client.conn().stats().fec.recovered, 1);
    let data = pattern(9_000);
    for _ in 0..5 {
        let id = pair.server.conn().open(Dir::Uni).unwrap();
        let mut stream = pair.server.conn().send_stream(id);
        stream.protect(Some(tail())).unwrap();
        stream.write(&data).unwrap();
        stream.finish().unwrap();
    }
    for _ in 0..5 {
        assert_eq!(pair.accept_and_read(Side::Client, Dir::Uni), data);
    }
}

#[test]
fn windows_slide_over_a_long_lossy_transfer() {
    let mut pair = Pair::connected();
    let data = pattern(1_500_000);
    let id = pair.server.conn().open(Dir::Uni).unwrap();
    pair.server.conn().send_stream(id).protect(Some(tail())).unwrap();
    let mut n = 0u64;
    pair.filter = Box::new(move |_, _| {
        n += 1;
        !n.is_multiple_of(17)
    });
    let mut rest = &data[..];
    let mut got = 0;
    let mut client_id = None;
    while got < data.len() {
        if !rest.is_empty()
            && let Ok(written) = pair.server.conn().send_stream(id).write(rest)
        {
            rest = &rest[written..];
        }
        let until = pair.now + Duration::from_secs(5);
        assert!(pair.step(until), "stalled at {got}");
        got += drain(&mut pair, &mut client_id);
    }
    assert_eq!(got, data.len());
}

#[test]
fn frames_of_the_extension_are_refused_if_none_was_offered() {
    use crate::TransportErrorCode;
    use crate::wire::frame::{Frame, SymbolWindow};
    let without = TransportConfig { fec: None, ..TransportConfig::default() };
    let mut pair = Pair::with(without, TransportConfig::default());
    pair.handshake();
    let frame = Frame::SymbolWindow(SymbolWindow { session: 0, lower_bound: 1 });
    let error = pair.client.conn().inject_frame(&frame).unwrap_err();
    assert_eq!(error.code, TransportErrorCode::PROTOCOL_VIOLATION);
}

#[test]
fn with_all_sessions_taken_a_stream_inherits_no_other_protection() {
    let fec = Some(FecConfig { max_sessions: 1, ..FecConfig::default() });
    let config = || TransportConfig { fec, ..TransportConfig::default() };
    let mut pair = Pair::with(config(), config());
    pair.handshake();
    let protections =
        [tail(), Protection::incremental(3, Duration::ZERO), Protection::tail(3, Duration::ZERO)];
    let mut open = |protection: Protection| {
        let id = pair.server.conn().open(Dir::Uni).unwrap();
        let mut stream = pair.server.conn().send_stream(id);
        stream.protect(Some(protection)).unwrap();
        stream.write(&pattern(2_000)).unwrap();
        id
    };
    let ids = protections.map(&mut open);
    pair.flush(Side::Server);
    let streams = &pair.server.conn().streams;
    assert_eq!(ids.map(|id| streams.session(id)), [Some(0), None, Some(0)]);
}

#[test]
fn streams_are_protected_as_the_configuration_says_unless_they_say_otherwise() {
    let redundancy: Option<Arc<dyn RedundancyFactory>> =
        Some(Arc::new(Tail::new(2, Duration::ZERO)));
    let server = TransportConfig { redundancy, ..TransportConfig::default() };
    let mut pair = Pair::with(TransportConfig::default(), server);
    pair.handshake();
    for (index, own) in [false, true].into_iter().enumerate() {
        let id = pair.server.conn().open(Dir::Uni).unwrap();
        let mut stream = pair.server.conn().send_stream(id);
        if own {
            stream.protect(None).unwrap();
        }
        stream.write(&pattern(5_000)).unwrap();
        stream.finish().unwrap();
        assert_eq!(pair.accept_and_read(Side::Client, Dir::Uni), pattern(5_000));
        let sent = pair.server.conn().stats().fec.repair_symbols_sent;
        assert_eq!(sent, 2, "stream {index}");
    }
}

#[test]
fn streams_of_the_protocol_itself_get_no_blocks() {
    let config = TransportConfig {
        redundancy: Some(Arc::new(Block::new(20, 2).unwrap())),
        ..TransportConfig::default()
    };
    let mut pair = Pair::with(config.clone(), config);
    pair.handshake();
    for (priority, symbols) in [(Priority::CONTROL, 0), (Priority::default(), 1)] {
        let id = pair.server.conn().open(Dir::Uni).unwrap();
        let mut stream = pair.server.conn().send_stream(id);
        stream.set_priority(priority).unwrap();
        stream.write(&pattern(500)).unwrap();
        pair.run_for(Duration::from_secs(1));
        assert_eq!(pair.server.conn().stats().fec.source_symbols_sent, symbols);
    }
}

/// The matrix of a block code may hold symbols of several streams.
#[test]
fn blocks_span_streams_that_share_a_session() {
    let fec = Some(FecConfig { codes: CodeSet::all(), ..FecConfig::default() });
    for (shared, repairs) in [(false, 3 * 5), (true, 7)] {
        let client = TransportConfig { fec, ..TransportConfig::default() };
        let mut pair = Pair::with(client, TransportConfig::default());
        pair.handshake();
        let block = Block::matrix(3, 4).unwrap();
        let block = if shared { block.shared() } else { block };
        let protection = Protection::new(Arc::new(block));
        let ids = [(); 3].map(|()| pair.server.conn().open(Dir::Uni).unwrap());
        for id in ids {
            let mut stream = pair.server.conn().send_stream(id);
            stream.protect(Some(protection.clone())).unwrap();
            stream.write(&pattern(4_400)).unwrap();
            stream.finish().unwrap();
        }
        pair.run_for(Duration::from_secs(1));
        let stats = pair.server.conn().stats().fec;
        assert_eq!((stats.source_symbols_sent, stats.repair_symbols_sent), (12, repairs));
    }
}

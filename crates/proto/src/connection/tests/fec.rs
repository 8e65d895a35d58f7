//! Erasure coding between two connections.

use super::*;
use crate::policy::Tail;
use crate::recovery::token::StreamToken;
use crate::{CodeSet, Read, Reason};

/// Sends data from the server on a protected stream, losing the datagrams with these numbers. Returns how long
/// the client waited for the end.
fn lossy_transfer(pair: &mut Pair, protection: Option<Protection>, lost: &[usize]) -> Duration {
    pair.send_protected(Side::Server, 6_500, protection);
    let (lost, start) = (lost.to_vec(), pair.now);
    pair.lose(Side::Server, move |n| lost.contains(&(n - 1)));
    pair.takes(Side::Client, 6_500);
    let waited = pair.now - start;
    pair.run_for(2 * SECOND);
    waited
}

#[test]
fn is_negotiated_and_says_so() {
    let pair = Pair::connected();
    assert!(pair.client.stats().fec.negotiated);
    assert!(pair.server.stats().fec.negotiated);
    let mut pair = Pair::with_client(|client| client.fec = None);
    assert!(!pair.server.stats().fec.negotiated);
    // The stream asks for protection in vain, and is sent as plain QUIC.
    lossy_transfer(&mut pair, Some(tail()), &[3]);
    assert_eq!(pair.server.stats().fec.source_symbols_sent, 0);
    assert_eq!(pair.client.stats().fec.source_symbols_received, 0);
}

#[test]
fn losses_are_mended_without_a_round_trip() {
    for lost in [&[0][..], &[2], &[5], &[0, 2, 5], &[3, 4, 5]] {
        let mut pair = Pair::connected();
        let waited = lossy_transfer(&mut pair, Some(tail()), lost);
        assert!(waited < 90 * MS, "{lost:?}: {waited:?}");
        let (client, server) = (pair.client.stats(), pair.server.stats());
        assert_eq!(client.fec.recovered, lost.len() as u64, "{lost:?}");
        assert_eq!(server.fec.recovered_by_peer, lost.len() as u64, "{lost:?}");
        assert_eq!(server.fec.repair_symbols_sent, 3);
        assert_eq!(server.stream_bytes_retransmitted, 0, "{lost:?}");
        counts_are_right(pair.server.conn(), lost.len() as u64);
        assert_eq!(server.packets_lost, lost.len() as u64, "congestion control hears of each");

        let mut pair = Pair::connected();
        assert!(lossy_transfer(&mut pair, None, lost) > 140 * MS);
    }
}

/// Checks the counts of a server that sent three repair symbols on one stream, of which the client needed
/// `useful`.
fn counts_are_right(server: &Connection, useful: u64) {
    let (fec, protections) = (server.stats().fec, server.protections());
    let [only, default] = protections.as_slice() else { panic!("{protections:?}") };
    let unknown = (None, Some(Reason::Unknown));
    assert_eq!((default.session, default.reason), unknown, "nothing is known");
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
    let expected = 90 * MS..130 * MS;
    assert!(expected.contains(&each), "{each:?}");
    assert_eq!(counts.time_saved, fec.time_saved);
}

#[test]
fn more_losses_than_repair_symbols_are_sent_again() {
    let mut pair = Pair::connected();
    lossy_transfer(&mut pair, Some(tail()), &[1, 2, 3, 4]);
    let server = pair.server.stats();
    assert!(server.stream_bytes_retransmitted > 0);
    assert_eq!(server.packets_lost, 4);
}

/// Once the parity symbol of a block was sent, the contents of the block's symbols are only in the stream.
#[test]
fn symbols_of_a_block_are_sent_again_after_its_parity_symbol() {
    let blocks = Protection::new(Arc::new(Block::new(2, 1).unwrap()));
    let mut pair = Pair::connected();
    lossy_transfer(&mut pair, Some(blocks), &[0, 1, 2, 4]);
    let (client, server) = (pair.client.stats(), pair.server.stats());
    assert_eq!(server.fec.source_symbols_resent, 2);
    assert_eq!((client.fec.recovered, server.packets_lost), (1, 4));
}

/// What becomes of a stream while symbols of its first block are lost.
#[derive(Debug, Clone, Copy)]
enum Meanwhile {
    /// Some bytes of the first symbol arrive in another frame.
    ArrivesInPart,
    /// It is reset, but for the first symbol and a part of the second.
    IsResetInPart,
    /// It is reset altogether.
    IsReset,
}

/// The first block of a stream is lost, with its parity symbol. Returns the number of its symbols that are sent
/// again as symbols.
fn resent_symbols(pair: &mut Pair, id: StreamId, meanwhile: Meanwhile) -> u64 {
    pair.lose(Side::Server, |n| n <= 3);
    pair.write(Side::Server, id, 6_500);
    pair.flush(Side::Server);
    let server = pair.server.conn();
    assert_eq!(server.stats().fec.repair_symbols_sent, 3, "no repair symbol is to come");
    match meanwhile {
        Meanwhile::ArrivesInPart => {
            let (offset, data) = (100, &pattern(6_500)[100..110]);
            let token = StreamToken { id, offset, len: 10, fin: false, symbol: None };
            server.streams.delivered(&token);
            let frame = Frame::Stream(StreamFrame { id, offset, fin: false, data });
            pair.client.conn().inject_frame(&frame).unwrap();
        }
        Meanwhile::IsResetInPart => server.send_stream(id).reset_at(7, 1_500).unwrap(),
        Meanwhile::IsReset => server.send_stream(id).reset(7).unwrap(),
    }
    pair.run_for(2 * SECOND);
    let stats = pair.server.stats();
    assert_eq!(stats.packets_lost, 3);
    stats.fec.source_symbols_resent
}

/// A symbol without contents is sent again from its stream. If the stream no longer holds all of its frame, the
/// bytes that the peer misses go out bare, and all that is due arrives.
#[test]
fn what_is_left_of_a_symbol_without_contents_is_sent_again_bare() {
    let cases = [
        (Meanwhile::ArrivesInPart, 1, 6_500, None),
        (Meanwhile::IsResetInPart, 1, 1_500, Some(7)),
        (Meanwhile::IsReset, 0, 0, Some(7)),
    ];
    for (meanwhile, resent, least, code) in cases {
        let mut pair = Pair::connected();
        let blocks = Protection::new(Arc::new(Block::new(2, 1).unwrap()));
        let id = pair.open(Side::Server, Some(blocks));
        assert_eq!(resent_symbols(&mut pair, id, meanwhile), resent, "{meanwhile:?}");
        let client = pair.client.conn();
        assert_eq!(client.accept(Dir::Uni), Some(id));
        let (mut all, mut buffer) = (Vec::new(), [0; 1024]);
        let end = loop {
            match client.recv_stream(id).read(&mut buffer) {
                Ok(Read::Data(n)) => all.extend_from_slice(&buffer[..n]),
                end => break end,
            }
        };
        assert_eq!(end, Err(code.map_or(ReadError::Blocked, ReadError::Reset)), "{meanwhile:?}");
        assert!(
            all.len() >= least && pattern(6_500).starts_with(&all),
            "{meanwhile:?}: {}",
            all.len()
        );
        let server = pair.server.conn();
        assert_eq!(server.stream_stats().streams, usize::from(code.is_none()));
        assert!(server.egress.is_coding_quiet());
    }
}

#[test]
fn lost_repair_symbols_hold_nothing_back() {
    let mut pair = Pair::connected();
    let waited = lossy_transfer(&mut pair, Some(tail()), &[4, 6, 7, 8]);
    assert!(waited < 400 * MS, "{waited:?}");
    assert_eq!(pair.client.stats().fec.recovered, 0);
}

#[test]
fn repair_symbols_over_parts_of_the_window_never_vouch_for_the_rest() {
    // Three blocks of two source symbols, each followed by a repair symbol, whatever the losses.
    let blocks = Protection::new(Arc::new(Block::new(2, 1).unwrap()));
    for pattern in 0..1 << 9 {
        let lost: Vec<usize> = (0..9).filter(|n| pattern >> n & 1 == 1).collect();
        for codes in [CodeSet::default(), CodeSet::all()] {
            let mut pair = Pair::with_client(|client| fec(client).codes = codes);
            lossy_transfer(&mut pair, Some(blocks.clone()), &lost);
        }
    }
}

#[test]
fn incremental_data_is_protected_piece_by_piece() {
    let mut pair = Pair::connected();
    let id = pair.open(Side::Server, Some(Protection::incremental(3, Duration::ZERO)));
    pair.lose_larger(Side::Server, 200, |n| n % 40 == 3);
    let mut received = 0;
    for piece in 1..=30usize {
        pair.write(Side::Server, id, 5000);
        pair.run_for(200 * MS);
        received += pair.drain(id);
        assert_eq!(received, piece * 5000, "each piece arrives within its path's delay");
    }
    assert!(pair.client.stats().fec.recovered >= 5);
    assert_eq!(pair.server.stats().stream_bytes_retransmitted, 0);
}

#[test]
fn sessions_serve_one_stream_after_another_and_are_shared_when_scarce() {
    let mut pair = Pair::with_both(|config| fec(config).max_sessions = 2);
    for _ in 0..10 {
        lossy_transfer(&mut pair, Some(tail()), &[]);
    }
    lossy_transfer(&mut pair, Some(tail()), &[3]);
    assert_eq!(pair.client.stats().fec.recovered, 1);
    for _ in 0..5 {
        pair.send_protected(Side::Server, 9_000, Some(tail()));
    }
    (0..5).for_each(|_| pair.takes(Side::Client, 9_000));
}

#[test]
fn windows_slide_over_a_long_lossy_transfer() {
    let mut pair = Pair::connected();
    let id = pair.open(Side::Server, Some(tail()));
    pair.lose_any(|n| n.is_multiple_of(17));
    pair.pour(id, 1_500_000);
}

#[test]
fn frames_of_the_extension_are_refused_if_none_was_offered() {
    use crate::TransportErrorCode;
    use crate::wire::frame::{Frame, SymbolWindow};
    let mut pair = Pair::with_client(|client| client.fec = None);
    let frame = Frame::SymbolWindow(SymbolWindow { session: 0, lower_bound: 1 });
    let error = pair.client.conn().inject_frame(&frame).unwrap_err();
    assert_eq!(error.code, TransportErrorCode::PROTOCOL_VIOLATION);
}

#[test]
fn with_all_sessions_taken_a_stream_inherits_no_other_protection() {
    let mut pair = Pair::with_both(|config| fec(config).max_sessions = 1);
    let protections = [tail(), Protection::incremental(3, Duration::ZERO), tail()];
    let ids = protections.map(|protection| {
        let id = pair.open(Side::Server, Some(protection));
        pair.write(Side::Server, id, 2_000);
        id
    });
    pair.flush(Side::Server);
    let streams = &pair.server.conn().streams;
    assert_eq!(ids.map(|id| streams.session(id)), [Some(0), None, Some(0)]);
}

#[test]
fn streams_are_protected_as_the_configuration_says_unless_they_say_otherwise() {
    let redundancy = Arc::new(Tail::new(2, Duration::ZERO));
    let mut pair = Pair::with_server(|server| server.redundancy = Some(redundancy));
    for (index, own) in [false, true].into_iter().enumerate() {
        let id = pair.server.conn().open(Dir::Uni).unwrap();
        let mut stream = pair.server.conn().send_stream(id);
        if own {
            stream.protect(None).unwrap();
        }
        stream.write(&pattern(5_000)).unwrap();
        stream.finish().unwrap();
        pair.takes(Side::Client, 5_000);
        let sent = pair.server.stats().fec.repair_symbols_sent;
        assert_eq!(sent, 2, "stream {index}");
    }
}

#[test]
fn streams_of_the_protocol_itself_get_no_blocks() {
    let redundancy = Arc::new(Block::new(20, 2).unwrap());
    let mut pair = Pair::with_both(|config| config.redundancy = Some(redundancy));
    for (priority, symbols) in [(Priority::CONTROL, 0), (Priority::default(), 1)] {
        let id = pair.server.conn().open(Dir::Uni).unwrap();
        let mut stream = pair.server.conn().send_stream(id);
        stream.set_priority(priority).unwrap();
        stream.write(&pattern(500)).unwrap();
        pair.run_for(SECOND);
        assert_eq!(pair.server.stats().fec.source_symbols_sent, symbols);
    }
}

/// The matrix of a block code may hold symbols of several streams.
#[test]
fn blocks_span_streams_that_share_a_session() {
    for (shared, repairs) in [(false, 3 * 5), (true, 7)] {
        let mut pair = Pair::with_client(|client| fec(client).codes = CodeSet::all());
        let block = Block::matrix(3, 4).unwrap();
        let block = if shared { block.shared() } else { block };
        let protection = Protection::new(Arc::new(block));
        for _ in 0..3 {
            pair.send_protected(Side::Server, 4_400, Some(protection.clone()));
        }
        pair.run_for(SECOND);
        let stats = pair.server.stats().fec;
        assert_eq!((stats.source_symbols_sent, stats.repair_symbols_sent), (12, repairs));
    }
}

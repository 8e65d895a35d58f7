//! Codes other than the sliding window, and the memory of decoders.

use super::pair::{Pair, pattern};
use crate::fec::{MAX_BEYOND_SYMBOLS, MAX_ENCODER_BYTES};
use crate::policy::{Block, CODES};
use crate::wire_format::{Frame, Repair, RepairHeader, SourceSymbol, SymbolRef};
use crate::{
    CodeId, CodeSet, Connection, Dir, FecConfig, Protection, Side, TransportConfig,
    TransportErrorCode,
};
use std::sync::Arc;
use std::time::Duration;
use sutura_erasure::{Encoder, WindowLimits};

const SIZE: usize = 500;

fn datagram(id: u64) -> Vec<u8> {
    let mut frames = Vec::new();
    Frame::Datagram(&[id as u8; SIZE]).encode(&mut frames);
    frames
}

/// A pair whose server supports `codes`.
fn pair(codes: CodeSet) -> Pair {
    let fec = Some(FecConfig { codes, ..FecConfig::default() });
    let server = TransportConfig { fec, ..TransportConfig::default() };
    let mut pair = Pair::with(TransportConfig::default(), server);
    pair.handshake();
    pair
}

/// Passes all of the symbols `0..count` except `lost` to a connection.
fn give(connection: &mut Connection, count: u64, lost: u64) {
    for id in (0..count).filter(|id| *id != lost) {
        let symbol = SymbolRef { session: 0, id };
        let source = SourceSymbol { symbol, frames: &datagram(id) };
        connection.inject_frame(&Frame::SourceSymbol(source)).unwrap();
    }
}

/// Passes all of the symbols `0..count` except `lost` to a connection, and a repair symbol over
/// them.
fn lose_one(
    connection: &mut Connection,
    code: CodeId,
    count: u64,
    lost: u64,
) -> Result<(), TransportErrorCode> {
    give(connection, count, lost);
    let mut encoder = Encoder::new(WindowLimits::default());
    for id in 0..count {
        encoder.push(&datagram(id)).unwrap();
    }
    let header = RepairHeader::new(0, code, &(0..count), 4);
    let code = CODES.into_iter().find(|known| known.id() == code);
    let mut payload = Vec::new();
    code.unwrap_or(CODES[0]).encode(&encoder, 0..count, 4, &mut payload).unwrap();
    let repair = Frame::Repair(Repair { header, payload: &payload });
    connection.inject_frame(&repair).map_err(|error| error.code)
}

#[test]
fn codes_that_were_announced_mend_losses() {
    let mut pair = pair(CodeSet::all());
    let announced = pair.client.conn().peer_parameters().fec.unwrap().codes;
    assert_eq!(announced, CodeSet::all());
    let server = pair.server.conn();
    assert_eq!(lose_one(server, CodeId::REED_SOLOMON, 10, 7), Ok(()));
    assert_eq!(server.stats().fec.recovered, 1);
    let mut received: Vec<u8> =
        std::iter::from_fn(|| server.datagrams().recv()).map(|bytes| bytes[0]).collect();
    assert_eq!(received.pop(), Some(7));
    assert_eq!(received.len(), 9);
}

#[test]
fn codes_that_were_not_announced_are_a_violation() {
    let violation = Err(TransportErrorCode::PROTOCOL_VIOLATION);
    let mut plain = pair(CodeSet::default());
    let announced = plain.client.conn().peer_parameters().fec.unwrap().codes;
    assert_eq!(announced, CodeSet::default());
    assert_eq!(lose_one(plain.server.conn(), CodeId::REED_SOLOMON, 10, 7), violation);
    // Codes that are not implemented are not announced, whatever the configuration says.
    let mut unknown = pair(CodeSet::default().with(CodeId::MAX));
    let announced = unknown.client.conn().peer_parameters().fec.unwrap().codes;
    assert_eq!(announced, CodeSet::default());
    assert_eq!(lose_one(unknown.server.conn(), CodeId::MAX, 10, 7), violation);
}

#[test]
fn a_decoder_that_is_idle_gives_its_memory_back() {
    let mut pair = Pair::connected();
    let server = pair.server.conn();
    assert_eq!(server.ingress.decoders.allocated(), 0);
    give(server, 200, 100);
    assert!(server.ingress.decoders.allocated() > 200 * SIZE);
    pair.run_for(Duration::from_secs(5));
    let server = pair.server.conn();
    assert_eq!(server.ingress.decoders.allocated(), 0);
    assert_eq!(server.ingress.decoders.timeout(server.pto()), None);
    // The connection works as before.
    let data = pattern(50_000);
    pair.send(Side::Client, Dir::Uni, &data);
    assert_eq!(pair.accept_and_read(Side::Server, Dir::Uni), data);
}

#[test]
fn blocks_of_reed_solomon_mend_losses_of_a_stream() {
    for codes in [CodeSet::all(), CodeSet::default()] {
        let mut pair = {
            let fec = Some(FecConfig { codes, ..FecConfig::default() });
            let client = TransportConfig { fec, ..TransportConfig::default() };
            let mut pair = Pair::with(client, TransportConfig::default());
            pair.handshake();
            pair
        };
        let mut n = 0;
        pair.filter = Box::new(move |from, bytes| {
            n += u32::from(from == Side::Server && bytes.len() > 1_000);
            from == Side::Client || ![1, 3, 6].contains(&n)
        });
        let id = pair.server.conn().open(Dir::Uni).unwrap();
        let mut stream = pair.server.conn().send_stream(id);
        let blocks = Block::new(3, 2).unwrap();
        stream.protect(Some(Protection::new(Arc::new(blocks)))).unwrap();
        stream.write(&pattern(6_000)).unwrap();
        stream.finish().unwrap();
        let start = pair.now;
        assert_eq!(pair.accept_and_read(Side::Client, Dir::Uni), pattern(6_000));
        assert!(pair.now - start < Duration::from_millis(140), "nothing waits to be sent again");
        let (client, server) = (pair.client.conn().stats().fec, pair.server.conn().stats().fec);
        assert_eq!((client.recovered, server.repair_symbols_sent), (3, 4), "{codes:?}");
    }
}

/// The keys of blocks with more than 64 parity symbols take four bytes.
#[test]
fn a_staircase_of_many_steps_mends_losses_of_full_packets() {
    for steps in [64, 65, 256] {
        let mut pair = pair(CodeSet::all());
        let mut n = 0;
        pair.filter = Box::new(move |from, bytes| {
            n += u32::from(from == Side::Client && bytes.len() > 1_000);
            from == Side::Server || n != 3
        });
        let id = pair.client.conn().open(Dir::Uni).unwrap();
        let mut stream = pair.client.conn().send_stream(id);
        let blocks = Block::ldpc(5, steps).unwrap();
        stream.protect(Some(Protection::new(Arc::new(blocks)))).unwrap();
        stream.write(&pattern(9_000)).unwrap();
        stream.finish().unwrap();
        assert_eq!(pair.accept_and_read(Side::Server, Dir::Uni), pattern(9_000));
        let (client, server) = (pair.client.conn().stats().fec, pair.server.conn().stats().fec);
        assert!(client.repair_symbols_sent >= 5, "{steps}: {client:?}");
        assert_eq!(server.recovered, 1, "{steps}");
    }
}

#[test]
fn a_peer_that_withholds_acknowledgements_pins_no_more_than_the_budget() {
    let fec = |symbols| FecConfig {
        max_sessions: 64,
        max_window_symbols: symbols,
        max_window_bytes: 1536 * 1024,
        codes: CodeSet::default(),
    };
    let config = TransportConfig {
        fec: Some(fec(1024)),
        receive_window: 1 << 30,
        stream_receive_window: 1 << 30,
        max_concurrent_uni_streams: 100,
        ..TransportConfig::default()
    };
    let mut pair = Pair::with(config.clone(), config);
    pair.handshake();
    let ids: Vec<_> = (0..40).map(|_| pair.server.conn().open(Dir::Uni).unwrap()).collect();
    for id in &ids {
        let mut stream = pair.server.conn().send_stream(*id);
        stream.protect(Some(Protection::tail(1, Duration::ZERO))).unwrap();
    }
    // Acknowledgements free the send buffers, except for the first symbol of each session: its
    // packet is declared lost and never successfully retransmitted.
    let mut lost = 0;
    for round in 0..40u32 {
        for id in &ids {
            let _ = pair.server.conn().send_stream(*id).write(&pattern(30_000));
        }
        pair.filter =
            Box::new(move |from, bytes| from == Side::Client || bytes.len() < 1_000 || round > 0);
        pair.run_for(Duration::from_millis(150));
        let held = pair.server.conn().egress.coding_bytes();
        // Half a kilobyte is more than is remembered of a symbol that left its window.
        assert!(held <= MAX_ENCODER_BYTES + 512 * MAX_BEYOND_SYMBOLS, "{held}");
        lost = pair.server.conn().stats().packets_lost;
    }
    assert!(lost > 0);
    pair.filter = Box::new(|_, _| true);
    pair.run_for(Duration::from_secs(60));
    assert_eq!(pair.server.conn().egress.coding_bytes(), 0, "idle sessions hold nothing");
}

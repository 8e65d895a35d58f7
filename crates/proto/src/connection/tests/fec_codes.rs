//! Codes other than the sliding window, and the memory of decoders.

use super::*;
use crate::fec::{MAX_BEYOND_SYMBOLS, MAX_ENCODER_BYTES};
use crate::policy::CODES;
use crate::{CodeId, CodeSet};
use sutura_erasure::{Encoder, WindowLimits};

const SIZE: usize = 500;

fn datagram(id: u64) -> Vec<u8> {
    encoded(&Frame::Datagram(&[id as u8; SIZE]))
}

/// A pair whose server supports `codes`.
fn pair(codes: CodeSet) -> Pair {
    Pair::with_server(|server| fec(server).codes = codes)
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
    // Codes that are not implemented are not announced, whatever the configuration says.
    let default = CodeSet::default();
    for (codes, used) in [(default, CodeId::REED_SOLOMON), (default.with(CodeId::MAX), CodeId::MAX)]
    {
        let mut pair = pair(codes);
        let announced = pair.client.conn().peer_parameters().fec.unwrap().codes;
        assert_eq!(announced, default, "{codes:?}");
        let violation = Err(TransportErrorCode::PROTOCOL_VIOLATION);
        assert_eq!(lose_one(pair.server.conn(), used, 10, 7), violation, "{codes:?}");
    }
}

#[test]
fn a_decoder_that_is_idle_gives_its_memory_back() {
    let mut pair = Pair::with_client(|client| client.redundancy = None);
    let server = pair.server.conn();
    assert_eq!(server.ingress.decoders.allocated(), 0);
    give(server, 200, 100);
    assert!(server.ingress.decoders.allocated() > 200 * SIZE);
    pair.run_for(5 * SECOND);
    let server = pair.server.conn();
    assert_eq!(server.ingress.decoders.allocated(), 0);
    assert_eq!(server.ingress.decoders.timeout(server.pto()), None);
    // The connection works as before.
    pair.carry(Side::Client, 50_000);
}

#[test]
fn blocks_of_reed_solomon_mend_losses_of_a_stream() {
    for codes in [CodeSet::all(), CodeSet::default()] {
        let mut pair = Pair::with_client(|client| fec(client).codes = codes);
        pair.lose_larger(Side::Server, 1_000, |n| [1, 3, 6].contains(&n));
        let blocks = Protection::new(Arc::new(Block::new(3, 2).unwrap()));
        pair.send_protected(Side::Server, 6_000, Some(blocks));
        let start = pair.now;
        pair.takes(Side::Client, 6_000);
        assert!(pair.now - start < 140 * MS, "nothing waits to be sent again");
        let (client, server) = (pair.client.stats().fec, pair.server.stats().fec);
        assert_eq!((client.recovered, server.repair_symbols_sent), (3, 4), "{codes:?}");
    }
}

/// The keys of blocks with more than 64 parity symbols take four bytes.
#[test]
fn a_staircase_of_many_steps_mends_losses_of_full_packets() {
    for steps in [64, 65, 256] {
        let mut pair = pair(CodeSet::all());
        pair.lose_larger(Side::Client, 1_000, |n| n == 3);
        let blocks = Protection::new(Arc::new(Block::ldpc(5, steps).unwrap()));
        pair.send_protected(Side::Client, 9_000, Some(blocks));
        pair.takes(Side::Server, 9_000);
        let (client, server) = (pair.client.stats().fec, pair.server.stats().fec);
        assert!(client.repair_symbols_sent >= 5, "{steps}: {client:?}");
        assert_eq!(server.recovered, 1, "{steps}");
    }
}

#[test]
fn a_peer_that_withholds_acknowledgements_pins_no_more_than_the_budget() {
    let fec = FecConfig {
        max_sessions: 64,
        max_window_symbols: 1024,
        max_window_bytes: 1536 * 1024,
        codes: CodeSet::default(),
    };
    let mut pair = Pair::with_both(|config| {
        config.fec = Some(fec);
        config.receive_window = 1 << 30;
        config.stream_receive_window = 1 << 30;
        config.max_concurrent_uni_streams = 100;
    });
    let tail = Protection::tail(1, Duration::ZERO);
    let ids: Vec<_> = (0..40).map(|_| pair.open(Side::Server, Some(tail.clone()))).collect();
    // Acknowledgements free the send buffers, except for the first symbol of each session: its
    // packet is declared lost and never successfully retransmitted.
    let mut lost = 0;
    for round in 0..40u32 {
        for id in &ids {
            let _ = pair.server.conn().send_stream(*id).write(&pattern(30_000));
        }
        pair.filter =
            Box::new(move |from, bytes| from == Side::Client || bytes.len() < 1_000 || round > 0);
        pair.run_for(150 * MS);
        let held = pair.server.conn().egress.coding_bytes();
        // Half a kilobyte is more than is remembered of a symbol that left its window.
        assert!(held <= MAX_ENCODER_BYTES + 512 * MAX_BEYOND_SYMBOLS, "{held}");
        lost = pair.server.stats().packets_lost;
    }
    assert!(lost > 0);
    pair.mend();
    pair.run_for(60 * SECOND);
    assert_eq!(pair.server.conn().egress.coding_bytes(), 0, "idle sessions hold nothing");
}

//! Codes beside the sliding window, and the memory of decoders.

use super::pair::{Pair, pattern};
use crate::policy::CODES;
use crate::wire_format::{Frame, Repair, RepairHeader, SourceSymbol, SymbolRef};
use crate::{
    CodeId, CodeSet, Connection, Dir, FecConfig, Side, TransportConfig, TransportErrorCode,
};
use std::time::Duration;
use sutura_erasure::{Encoder, WindowLimits};

const SIZE: usize = 500;

fn datagram(id: u64) -> Vec<u8> {
    let mut frames = Vec::new();
    Frame::Datagram(&[id as u8; SIZE]).encode(&mut frames);
    frames
}

/// A pair whose server takes some codes.
fn pair(codes: CodeSet) -> Pair {
    let fec = Some(FecConfig { codes, ..FecConfig::default() });
    let server = TransportConfig { fec, ..TransportConfig::default() };
    let mut pair = Pair::with(TransportConfig::default(), server);
    pair.handshake();
    pair
}

/// Gives a connection all of the symbols `0..count` but one.
fn give(connection: &mut Connection, count: u64, lost: u64) {
    for id in (0..count).filter(|id| *id != lost) {
        let symbol = SymbolRef { session: 0, id };
        let source = SourceSymbol { symbol, frames: &datagram(id) };
        connection.inject_frame(&Frame::SourceSymbol(source)).unwrap();
    }
}

/// Gives a connection all of the symbols `0..count` but one, and a repair symbol over them.
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
    // What there is not here is not announced, whatever the configuration says.
    let mut unknown = pair(CodeSet::default().with(CodeId::MAX));
    let announced = unknown.client.conn().peer_parameters().fec.unwrap().codes;
    assert_eq!(announced, CodeSet::default());
    assert_eq!(lose_one(unknown.server.conn(), CodeId::MAX, 10, 7), violation);
}

#[test]
fn a_decoder_that_is_idle_gives_its_memory_back() {
    let mut pair = Pair::connected();
    let server = pair.server.conn();
    assert_eq!(server.fec_in.allocated(), 0);
    give(server, 200, 100);
    assert!(server.fec_in.allocated() > 200 * SIZE);
    pair.run_for(Duration::from_secs(5));
    let server = pair.server.conn();
    assert_eq!(server.fec_in.allocated(), 0);
    assert_eq!(server.fec_in.timeout(server.pto()), None);
    // The connection is as good as before.
    let data = pattern(50_000);
    pair.send(Side::Client, Dir::Uni, &data);
    assert_eq!(pair.accept_and_read(Side::Server, Dir::Uni), data);
}

//! Which streams may share a packet.

use super::*;
use std::collections::BTreeSet;

fn streams(payload: &[u8], carrier: Carrier, into: &mut BTreeSet<StreamId>) {
    for frame in FrameIter::new(payload, carrier).flatten() {
        match frame {
            Frame::Stream(frame) => drop(into.insert(frame.id)),
            Frame::SourceSymbol(symbol) => streams(symbol.frames, Carrier::SourceSymbol, into),
            _ => {}
        }
    }
}

/// For each packet that the server sends, the streams in it, if there is one stream for each of
/// `lengths` bytes. The first stream has the priority `first`, the last one the protection `last`.
fn sent(
    mix_streams: bool,
    lengths: &[usize],
    first: &Priority,
    last: Option<&Protection>,
) -> Vec<Vec<u64>> {
    sent_with(&TransportConfig { mix_streams, ..TransportConfig::default() }, lengths, first, last)
}

/// [`sent`] with these parameters on both sides.
fn sent_with(
    config: &TransportConfig,
    lengths: &[usize],
    first: &Priority,
    last: Option<&Protection>,
) -> Vec<Vec<u64>> {
    let mut pair = Pair::with_both(|both| both.clone_from(config));
    pair.run_for(SECOND);
    let packets = pair.watch(Side::Server, |observation, packets| {
        if let Observation::PacketSent { space: SpaceId::Data, payload, .. } = observation {
            let mut ids = BTreeSet::new();
            streams(payload, Carrier::OneRtt, &mut ids);
            packets.extend((!ids.is_empty()).then_some(ids));
        }
    });
    for (i, len) in lengths.iter().enumerate() {
        let id = pair.server.conn().open(Dir::Uni).unwrap();
        let mut stream = pair.server.conn().send_stream(id);
        if i == 0 {
            stream.set_priority(first.clone()).unwrap();
        }
        if i + 1 == lengths.len() {
            stream.protect(last.cloned()).unwrap();
        }
        assert_eq!(stream.write(&pattern(*len)), Ok(*len));
        stream.finish().unwrap();
    }
    pair.run_for(SECOND);
    for len in lengths {
        pair.takes(Side::Client, *len);
    }
    let packets = packets.lock().unwrap();
    packets.iter().map(|ids| ids.iter().map(|id| id.index()).collect()).collect()
}

#[test]
fn a_packet_carries_one_stream_unless_told() {
    let usual = Priority::default();
    assert_eq!(sent(false, &[300, 300, 300], &usual, None), [[0], [1], [2]]);
    assert_eq!(sent(true, &[300, 300, 300], &usual, None), [[0, 1, 2]]);
    // The end of the first stream leaves room in its packet.
    assert_eq!(sent(false, &[1200, 300], &usual, None), [[0], [0], [1]]);
    assert_eq!(sent(true, &[1200, 300], &usual, None), [vec![0], vec![0, 1]]);
}

#[test]
fn source_symbols_are_no_exception() {
    let tail = &Protection::tail(1, Duration::ZERO);
    assert_eq!(sent(false, &[300, 300], &Priority::default(), Some(tail)), [[0], [1]]);
    assert_eq!(sent(true, &[300, 300], &Priority::default(), Some(tail)), [[0, 1]]);
}

#[test]
fn short_messages_go_along() {
    let usual = Priority::default();
    assert_eq!(sent(false, &[100, 256, 100], &usual, None), [[0, 1, 2]]);
    assert_eq!(sent(false, &[100, 257, 300], &usual, None), [vec![0, 1], vec![2]]);
    assert_eq!(sent(false, &[300, 100, 300], &usual, None), [vec![0, 1], vec![2]]);
}

#[test]
fn the_protocols_own_streams_go_along() {
    let packets = sent(false, &[300, 300, 300], &Priority::CONTROL, None);
    assert_eq!(packets, [vec![0, 1], vec![2]]);
}

/// A turn may end anywhere (Holzinger 2025, III-B1).
#[test]
fn the_next_turn_of_a_round_fills_up_the_packet() {
    let scheduler = Arc::new(Scheme::HLS);
    let config = TransportConfig { scheduler, ..TransportConfig::default() };
    assert_eq!(sent_with(&config, &[300, 300, 300], &Priority::default(), None), [[0, 1, 2]]);
}

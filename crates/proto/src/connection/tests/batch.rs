//! Datagrams that are built together.

use super::pair::{Pair, SECOND};
use crate::{Dir, Side, Transmit};

/// Writes a stream of each length at the server, as a whole, in packets of its own.
fn write(pair: &mut Pair, lengths: &[usize]) {
    for &len in lengths {
        let id = pair.server.conn().open(Dir::Uni).unwrap();
        pair.server.conn().send_stream(id).write(&vec![7; len]).unwrap();
        pair.server.conn().send_stream(id).finish().unwrap();
    }
}

/// The batches of at most `most` datagrams that the server sends now.
fn batches(pair: &mut Pair, most: usize) -> Vec<Transmit> {
    let now = pair.now;
    std::iter::from_fn(|| pair.server.conn().poll_transmit(now, most, &mut Vec::new())).collect()
}

/// How many datagrams each batch has.
fn counts(batches: &[Transmit]) -> Vec<usize> {
    let count = |batch: &Transmit| batch.segment_size.map_or(1, |size| batch.size.div_ceil(size));
    batches.iter().map(count).collect()
}

/// A pair whose server has nothing to say but what is written from now on.
fn settled() -> Pair {
    let mut pair = Pair::connected();
    pair.run_for(SECOND);
    write(&mut pair, &[10]);
    assert_eq!(batches(&mut pair, 10).len(), 1);
    pair
}

#[test]
fn short_datagrams_of_one_size_go_together() {
    let mut pair = settled();
    write(&mut pair, &[700; 8]);
    let batches = batches(&mut pair, 5);
    assert_eq!(counts(&batches), [5, 3]);
    assert_eq!(batches[0].segment_size, batches[1].segment_size);
    assert_eq!((batches[0].more, batches[1].more), (true, false));
}

#[test]
fn a_shorter_datagram_ends_a_batch_and_a_longer_one_begins_the_next() {
    let mut pair = settled();
    write(&mut pair, &[700, 700, 500, 700, 800, 800]);
    let batches = batches(&mut pair, 10);
    assert_eq!(counts(&batches), [3, 1, 2]);
    let size = |batch: &Transmit| batch.segment_size.unwrap_or(batch.size);
    assert_eq!(size(&batches[1]), size(&batches[0]));
    assert_eq!(size(&batches[2]), size(&batches[1]) + 100);
}

#[test]
fn what_is_sent_in_batches_arrives_in_any_mix_of_sizes() {
    let mut pair = Pair::connected();
    let lengths = [300, 900, 900, 5_000, 40, 1_100, 400, 400, 20_000, 900, 1];
    write(&mut pair, &lengths);
    pair.run_for(SECOND);
    for len in lengths {
        assert_eq!(pair.accept_and_read(Side::Client, Dir::Uni), vec![7; len]);
    }
    assert_eq!(pair.server.stats().packets_lost, 0);
}

#[test]
fn a_datagram_that_waits_for_its_batch_is_not_sent_after_the_end() {
    let mut pair = settled();
    write(&mut pair, &[700, 800]);
    let now = pair.now;
    let first = pair.server.conn().poll_transmit(now, 10, &mut Vec::new()).unwrap();
    assert!(first.more && first.segment_size.is_none());
    pair.server.conn().close(now, 0, b"");
    let rest = batches(&mut pair, 10);
    assert_eq!(rest.len(), 1, "only the close");
    assert!(rest[0].size < 100);
}

/// Datagrams that differ by a few bytes leave in one call, where a call costs more than the bytes. Longer ones begin
/// a batch, and others are as long as they are.
#[test]
fn segments_that_differ_little_are_padded_alike() {
    let lengths = [700, 692, 700, 684, 683, 700, 710, 700];
    let sizes = |level: bool| {
        let mut pair = settled();
        write(&mut pair, &lengths);
        let now = pair.now;
        let server = pair.server.conn();
        let next = || {
            let out = &mut Vec::new();
            if level {
                server.poll_segments(now, 10, out)
            } else {
                server.poll_transmit(now, 10, out)
            }
        };
        let batches: Vec<_> = std::iter::from_fn(next).collect();
        (counts(&batches), batches.iter().map(|batch| batch.size).sum::<usize>())
    };
    let ((plain, bytes), (level, padded)) = (sizes(false), sizes(true));
    assert_eq!(plain, [2, 2, 1, 1, 2]);
    assert_eq!(level, [5, 1, 2]);
    assert_eq!(padded - bytes, 8 + 16 + 10);
}

#[test]
fn padded_segments_arrive_whole() {
    let mut pair = settled();
    let lengths = [700, 692, 699, 684, 700];
    write(&mut pair, &lengths);
    let (now, mut bytes) = (pair.now, Vec::new());
    let sent = pair.server.conn().poll_segments(now, 10, &mut bytes).unwrap();
    assert_eq!(bytes.len(), 5 * sent.segment_size.unwrap());
    assert!(pair.server.conn().poll_segments(now, 1, &mut Vec::new()).is_none());
}

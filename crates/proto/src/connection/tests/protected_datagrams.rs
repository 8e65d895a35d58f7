//! DATAGRAM frames in source symbols.

use super::*;
use crate::egress::MAX_DATAGRAM_PROTECTIONS;
use crate::fec::redundancy::ENTRIES;
use crate::fec::redundancy::stand_in::Mender;
use crate::policy::MAX_DELAY;
use crate::{DatagramOptions, DatagramProtection, MessageId, SendDatagramError};

/// A pair whose server protects datagrams by one repair symbol at once.
fn protected() -> Pair {
    with(Protection::tail(1, Duration::ZERO))
}

fn with(protection: Protection) -> Pair {
    let mut pair = Pair::connected();
    pair.server.conn().datagrams().protect(Some(protection));
    pair
}

fn send(pair: &mut Pair, data: &[u8]) -> MessageId {
    pair.server.conn().datagrams().send(Bytes::copy_from_slice(data)).unwrap()
}

fn outcomes(pair: &mut Pair) -> Vec<(MessageId, MessageOutcome)> {
    std::iter::from_fn(|| pair.server.conn().poll_message_outcome()).collect()
}

fn received(pair: &mut Pair) -> Vec<Bytes> {
    std::iter::from_fn(|| pair.client.conn().datagrams().recv()).collect()
}

/// Loses the server's datagrams with these numbers, counted from now.
fn lose(pair: &mut Pair, lost: &'static [usize]) {
    pair.lose(Side::Server, |n| lost.contains(&(n - 1)));
}

#[test]
fn the_largest_one_fits_and_one_byte_more_does_not() {
    let mut pair = Pair::connected();
    let bare = pair.server.conn().datagrams().max_size().unwrap();
    pair.server.conn().datagrams().protect(Some(Protection::tail(1, Duration::ZERO)));
    let max = pair.server.conn().datagrams().max_size().unwrap();
    assert!(max < bare && max > bare - 30, "{max} {bare}");
    let data = pattern(max + 1);
    let too_large = pair.server.conn().datagrams().send(Bytes::copy_from_slice(&data));
    assert_eq!(too_large, Err(SendDatagramError::TooLarge));
    // Identifiers of symbols become longer with time, acknowledgements come and go.
    for n in 0..300u32 {
        send(&mut pair, &data[..max]);
        if n.is_multiple_of(3) {
            pair.client.conn().datagrams().send(Bytes::copy_from_slice(&data[..max])).unwrap();
        }
        pair.run_for(150 * MS);
        assert_eq!(received(&mut pair), [&data[..max]], "{n}");
    }
    let stats = pair.server.stats();
    assert_eq!((stats.fec.source_symbols_sent, stats.datagrams_dropped_out), (300, 0));
    assert_eq!(stats.fec.repair_symbols_sent, 300, "a repair symbol over the largest fits too");
}

#[test]
fn what_was_queued_before_protection_goes_bare_if_it_is_too_large_for_a_symbol() {
    let mut pair = Pair::connected();
    let max = pair.server.conn().datagrams().max_size().unwrap();
    send(&mut pair, &pattern(max));
    pair.server.conn().datagrams().protect(Some(Protection::tail(1, Duration::ZERO)));
    send(&mut pair, &pattern(100));
    pair.run_for(SECOND);
    assert_eq!(received(&mut pair), [pattern(max), pattern(100)]);
    assert_eq!(pair.server.stats().fec.source_symbols_sent, 1);
}

#[test]
fn a_lost_one_is_recovered_and_said_to_be() {
    let mut pair = protected();
    lose(&mut pair, &[1]);
    let data = pattern(1_000);
    let ids: Vec<_> = (0..3).map(|n| send(&mut pair, &data[..900 + n])).collect();
    pair.run_for(100 * MS);
    let mut lengths: Vec<_> = received(&mut pair).iter().map(Bytes::len).collect();
    lengths.sort_unstable();
    assert_eq!(lengths, [900, 901, 902]);
    pair.run_for(SECOND);
    use MessageOutcome::{Arrived, Recovered};
    let mut told = outcomes(&mut pair);
    told.sort_unstable_by_key(|(id, _)| *id);
    assert_eq!(told, [(ids[0], Arrived), (ids[1], Recovered), (ids[2], Arrived)]);
    let stats = pair.server.stats();
    assert_eq!((stats.packets_lost, stats.messages.recovered), (1, 1), "the loss is not hidden");
}

#[test]
fn small_ones_share_a_symbol() {
    let mut pair = protected();
    lose(&mut pair, &[0]);
    let sizes = [0, 1, 63, 64, 500, 2, 0];
    let ids = sizes.map(|size| send(&mut pair, &pattern(size)));
    pair.run_for(2 * SECOND);
    assert_eq!(received(&mut pair), sizes.map(pattern));
    assert_eq!(pair.server.stats().fec.source_symbols_sent, 1);
    assert_eq!(outcomes(&mut pair), ids.map(|id| (id, MessageOutcome::Recovered)));
}

#[test]
fn what_cannot_be_mended_is_given_up_and_frees_the_window() {
    let mut pair = protected();
    // Three of four and the repair symbol.
    lose(&mut pair, &[0, 2, 3, 4]);
    for _ in 0..4 {
        send(&mut pair, &pattern(1_000));
    }
    pair.run_for(5 * SECOND);
    let given_up = |pair: &mut Pair| {
        outcomes(pair).iter().filter(|(_, o)| *o == MessageOutcome::GivenUp).count()
    };
    assert_eq!(given_up(&mut pair), 3);
    assert!(pair.server.conn().egress.is_coding_quiet(), "no symbol is left in the window");
    // A repair symbol for the next datagram covers that datagram alone.
    lose(&mut pair, &[0]);
    send(&mut pair, &pattern(700));
    pair.run_for(SECOND);
    assert_eq!(received(&mut pair).pop().unwrap(), pattern(700));
    assert_eq!(given_up(&mut pair), 0);
}

#[test]
fn a_repair_symbol_that_is_to_come_is_waited_for() {
    // The repair symbol is sent after the loss is detected, and before a retransmission would
    // have arrived.
    let mut pair = with(Protection::incremental(1, 140 * MS));
    lose(&mut pair, &[0]);
    send(&mut pair, &pattern(1_000));
    for _ in 0..4 {
        pair.run_for(5 * MS);
        send(&mut pair, &pattern(10));
    }
    pair.run_for(100 * MS);
    let stats = pair.server.stats();
    assert_eq!((stats.packets_lost, stats.fec.repair_symbols_sent), (1, 0));
    pair.run_for(SECOND);
    assert_eq!(received(&mut pair).len(), 5);
}

#[test]
fn every_policy_protects_datagrams_over_a_lossy_path_without_stalling() {
    for entry in ENTRIES {
        let factory = entry.make("").unwrap();
        let mut pair = with(Protection::new(factory));
        pair.server.conn().next_message_at(None);
        let mut random = Rng::new(11);
        pair.filter = Box::new(move |_, _| random.unit() >= 1.0 / 11.0);
        let mut got = 0;
        let sent = 600;
        for _ in 0..sent / 2 {
            send(&mut pair, &pattern(1_100));
            send(&mut pair, &pattern(400));
            pair.run_for(16 * MS);
            got += received(&mut pair).len();
        }
        pair.run_for(10 * SECOND);
        got += received(&mut pair).len();
        let stats = pair.server.stats();
        let messages = stats.messages;
        // One datagram in eleven is lost, and some policies see nothing here that is worth protecting.
        let least = if stats.fec.repair_symbols_sent > 0 { 9 } else { 8 };
        assert!(got > sent * least / 10, "{}: {got} of {sent}", entry.name);
        assert_eq!(messages.arrived + messages.recovered + messages.given_up, sent as u64);
        assert_eq!(stats.streams.send_buffered, 0);
        assert!(pair.server.conn().egress.is_coding_quiet(), "{}", entry.name);
        assert_eq!(pair.server.conn().path.recovery.bytes_in_flight(), 0, "{}", entry.name);
    }
}

#[test]
fn a_peer_without_decoder_gets_them_bare() {
    let mut pair = Pair::with_client(|client| client.fec = None);
    let bare = pair.server.conn().datagrams().max_size();
    pair.server.conn().datagrams().protect(Some(Protection::tail(1, Duration::ZERO)));
    assert_eq!(pair.server.conn().datagrams().max_size(), bare);
    send(&mut pair, &pattern(bare.unwrap()));
    pair.run_for(SECOND);
    assert_eq!(received(&mut pair).len(), 1);
    assert_eq!(pair.server.stats().fec.source_symbols_sent, 0);
}

#[test]
fn with_all_sessions_taken_they_go_bare_and_streams_never_join_theirs() {
    let tail = Protection::tail(1, Duration::ZERO);
    for datagrams_first in [true, false] {
        let mut pair = Pair::with_both(|config| fec(config).max_sessions = 1);
        pair.server.conn().datagrams().protect(Some(tail.clone()));
        if datagrams_first {
            send(&mut pair, &pattern(100));
            pair.flush(Side::Server);
        }
        let id = pair.open(Side::Server, Some(tail.clone()));
        pair.write(Side::Server, id, 100);
        pair.flush(Side::Server);
        send(&mut pair, &pattern(100));
        pair.run_for(SECOND);
        assert_eq!(received(&mut pair).len(), 1 + usize::from(datagrams_first));
        let session = pair.server.conn().streams.session(id);
        assert_eq!(session, (!datagrams_first).then_some(0));
        let symbols = pair.server.stats().fec.source_symbols_sent;
        assert_eq!(symbols, 1 + u64::from(datagrams_first));
    }
}

#[test]
fn protection_can_be_changed_and_ended_at_any_time() {
    let mut pair = protected();
    for protection in [
        Some(Protection::incremental(1, MAX_DELAY)),
        None,
        Some(Protection::new(Arc::new(Mender))),
        Some(Protection::tail(2, Duration::ZERO)),
    ] {
        send(&mut pair, &pattern(300));
        pair.flush(Side::Server);
        pair.server.conn().datagrams().protect(protection);
        send(&mut pair, &pattern(300));
        pair.run_for(SECOND);
        assert_eq!(received(&mut pair).len(), 2);
    }
    pair.run_for(5 * SECOND);
    assert!(pair.server.conn().egress.is_coding_quiet());
}

#[test]
fn a_longer_identifier_of_the_peer_does_not_block_the_queue() {
    let mut pair = protected();
    let max = pair.server.conn().datagrams().max_size().unwrap();
    send(&mut pair, &pattern(max));
    send(&mut pair, &pattern(500));
    pair.server.conn().inject_frame(&long_id()).unwrap();
    let (now, mut out) = (pair.now, Vec::new());
    while pair.server.conn().poll_transmit(now, 10, &mut out).is_some() {}
    assert!(!pair.server.conn().egress.has_datagrams());
    assert!(pair.server.conn().datagrams().max_size().unwrap() <= max);
}

fn by(protection: DatagramProtection) -> DatagramOptions {
    DatagramOptions::default().with_protection(protection)
}

#[test]
fn each_has_the_protection_that_it_asks_for() {
    let mut pair = Pair::connected();
    // What carries data is lost, and what carries repair symbols is not: one follows the second, two the fourth.
    lose(&mut pair, &[0, 1, 3, 4]);
    let tail = |burst| DatagramProtection::By(Protection::tail(burst, Duration::ZERO));
    let options = [DatagramProtection::Bare, tail(1), DatagramProtection::AsSet, tail(2)].map(by);
    for (options, data) in options.iter().zip([b"bare", b"tail", b"set.", b"two."]) {
        let data = Bytes::from_static(data);
        pair.server.conn().datagrams().send_with(data, options).unwrap();
        pair.run_for(10 * MS);
    }
    pair.run_for(SECOND);
    assert_eq!(received(&mut pair), ["tail", "two."]);
    let protections = pair.server.conn().protections();
    assert_eq!(protections.iter().filter(|stats| stats.session.is_some()).count(), 2);
}

#[test]
fn many_protections_take_few_sessions() {
    let mut pair = Pair::connected();
    for burst in 0..100 {
        let protection = DatagramProtection::By(Protection::tail(1 + burst, Duration::ZERO));
        pair.server
            .conn()
            .datagrams()
            .send_with(Bytes::from(pattern(100)), &by(protection))
            .unwrap();
        pair.run_for(if burst.is_multiple_of(2) { Duration::ZERO } else { SECOND });
        assert!(pair.server.conn().egress.datagram_protections() <= MAX_DATAGRAM_PROTECTIONS);
    }
    pair.run_for(SECOND);
    assert_eq!(received(&mut pair), vec![pattern(100); 100]);
}

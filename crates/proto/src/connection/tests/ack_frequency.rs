//! How often packets are acknowledged is up to the end that sends them.

use super::*;
use crate::AckFrequencyConfig;
use crate::recovery::ack::AckRate;
use crate::wire_format::AckFrequency;

fn asking() -> TransportConfig {
    let ack_frequency = Some(AckFrequencyConfig::default());
    TransportConfig { ack_frequency, ..TransportConfig::default() }
}

/// A connected pair whose server asks for fewer acknowledgements.
fn pair() -> Pair {
    Pair::with_server(|server| *server = asking())
}

/// Transfers data from the server; returns how many datagrams the client sent, and how long it took.
fn download(pair: &mut Pair) -> (usize, Duration) {
    let before = pair.sent(Side::Client);
    let time = (0..5).map(|_| pair.carry(Side::Server, 800_000)).sum();
    (pair.sent(Side::Client) - before, time)
}

fn request(sequence: u64, max_ack_delay: u64) -> Frame<'static> {
    let (threshold, reordering_threshold) = (9, 3);
    Frame::AckFrequency(AckFrequency { sequence, threshold, max_ack_delay, reordering_threshold })
}

#[test]
fn few_acknowledgements_are_enough_for_large_windows() {
    let (usual, usual_time) = download(&mut Pair::connected());
    let mut pair = pair();
    let (few, time) = download(&mut pair);
    assert!(few * 2 < usual, "{few} against {usual}");
    assert!(time < usual_time * 11 / 10, "{time:?} against {usual_time:?}");
    // The probe timeout allows for the delay that was asked for, a quarter of the round trip.
    let server = pair.server.conn();
    assert_eq!(server.path.recovery.max_ack_delay(), 25 * MS);
    assert_eq!(server.stats().packets_lost, 0);
}

#[test]
fn losses_are_noticed_as_early() {
    let run = |mut pair: Pair| {
        pair.lose(Side::Server, |n| n % 50 == 0);
        let (_, time) = download(&mut pair);
        assert_eq!(pair.server.stats().spurious_losses, 0);
        time
    };
    let (usual, few) = (run(Pair::connected()), run(pair()));
    assert!(few < usual * 12 / 10, "{few:?} against {usual:?}");
}

#[test]
fn a_lost_request_is_sent_again() {
    let mut pair = pair();
    // All datagrams at the time when the window has grown enough.
    pair.lose_larger(Side::Server, 1_000, |n| n <= 3);
    download(&mut pair);
    assert!(pair.server.conn().ack_frequency.present().unwrap().tolerated > 1);
}

#[test]
fn the_newest_request_counts() {
    let mut pair = Pair::connected();
    pair.inject(Side::Client, &[request(5, 10_000), request(4, 20_000), request(5, 30_000)]);
    let now = pair.now;
    let acks = &pair.server.space().acks;
    assert_eq!(acks.timeout(), Some(now + 10 * MS));
    assert_eq!(acks.rate(), AckRate { tolerated: 9, max_delay: 10 * MS, reordering: 3 });
}

#[test]
fn an_acknowledgement_comes_at_once_if_asked_for() {
    let mut pair = Pair::connected();
    pair.inject(Side::Client, &[request(0, 100_000)]);
    let now = pair.now;
    let is_due = |pair: &mut Pair| pair.server.space().acks.is_due(now);
    assert!(!is_due(&mut pair));
    pair.inject(Side::Client, &[Frame::ImmediateAck]);
    assert!(is_due(&mut pair));
}

#[test]
fn delays_out_of_range_and_frames_without_agreement_are_violations() {
    for (delay, good) in [(999, false), (1_000, true), (16_383_999, true), (16_384_000, false)] {
        let mut pair = Pair::connected();
        pair.inject(Side::Client, &[request(0, delay)]);
        assert_eq!(pair.loss(Side::Server).is_none(), good, "{delay}");
    }
    for frame in [request(0, 10_000), Frame::ImmediateAck] {
        let extensions = [EndpointConfig::default().extensions, Extensions::NONE];
        let mut pair = Pair::with_extensions(extensions).ready();
        pair.inject(Side::Client, &[frame]);
        assert_eq!(pair.error(Side::Server), Some(TransportErrorCode::PROTOCOL_VIOLATION));
    }
}

#[test]
fn nobody_is_asked_who_cannot_be() {
    let endpoint = EndpointConfig { extensions: Extensions::NONE, ..EndpointConfig::default() };
    let endpoints = [endpoint, EndpointConfig::default()];
    let transport = [TransportConfig::default(), asking()];
    let mut pair = Pair::build(transport, honest(), Arc::new(null_server()), endpoints).ready();
    download(&mut pair);
    assert!(pair.server.conn().ack_frequency.present().is_none());
}

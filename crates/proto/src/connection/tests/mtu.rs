//! Path MTU discovery (RFC 9000 section 14.3).

use super::pair::{Pair, pattern};
use crate::{Dir, MIN_UDP_PAYLOAD, Side, SocketFeatures};
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const SOCKET: SocketFeatures = SocketFeatures { ecn: false, unfragmented: true };

/// A pair on a path that carries datagrams of up to the bytes in the cell.
fn pair(carries: u16) -> (Pair, Rc<Cell<u16>>) {
    let limit = Rc::new(Cell::new(carries));
    let mut pair = Pair::with_sockets(SOCKET);
    let carries = limit.clone();
    pair.filter = Box::new(move |_, datagram| datagram.len() <= carries.get().into());
    pair.handshake();
    (pair, limit)
}

/// Sends data from the client to the server; returns how long that took.
fn carry(pair: &mut Pair, len: usize) -> Duration {
    let (start, data) = (pair.now, pattern(len));
    pair.send(Side::Client, Dir::Uni, &data);
    assert!(pair.accept_and_read(Side::Server, Dir::Uni) == data);
    pair.now - start
}

fn size(pair: &mut Pair, side: Side) -> u16 {
    pair.end(side).conn().stats().udp_payload_size
}

#[test]
fn most_paths_carry_more_and_one_probe_finds_out() {
    let (mut pair, _) = pair(1500);
    for side in [Side::Client, Side::Server] {
        assert_eq!(size(&mut pair, side), 1452);
        assert_eq!(pair.end(side).conn().stats().mtu_probes_sent, 1);
    }
    let before = pair.datagrams[0].len();
    carry(&mut pair, 100_000);
    let full = pair.datagrams[0][before..].iter().filter(|size| **size == 1452).count();
    assert!(full > 60, "{full} full datagrams");
    let max = pair.client.conn().datagrams().max_size().unwrap();
    assert!(max > 1400, "datagrams of the application may be larger, too: {max}");
}

#[test]
fn lost_probes_are_no_sign_of_congestion() {
    let (mut pair, _) = pair(1300);
    for _ in 0..20 {
        carry(&mut pair, 20_000);
    }
    let stats = pair.client.conn().stats();
    assert!((1281..=1300).contains(&stats.udp_payload_size), "{}", stats.udp_payload_size);
    assert!(stats.mtu_probes_lost >= 3, "{}", stats.mtu_probes_lost);
    assert_eq!((stats.packets_lost, stats.black_holes), (0, 0));
    assert!(stats.loss_estimate.abs() < f64::EPSILON);
}

#[test]
fn a_black_hole_is_left_within_a_few_round_trips() {
    let (mut pair, limit) = pair(1500);
    let normal = carry(&mut pair, 300_000);
    limit.set(MIN_UDP_PAYLOAD);
    let hampered = carry(&mut pair, 300_000);
    assert!(pair.client.conn().stats().black_holes >= 1);
    assert_eq!(size(&mut pair, Side::Client), MIN_UDP_PAYLOAD);
    assert!(hampered < normal + 10 * (2 * pair.latency), "{normal:?} before, {hampered:?} in it");
}

#[test]
fn a_path_that_carries_more_again_is_noticed() {
    let (mut pair, limit) = pair(1500);
    limit.set(MIN_UDP_PAYLOAD);
    for _ in 0..20 {
        carry(&mut pair, 50_000);
    }
    assert_eq!(size(&mut pair, Side::Client), MIN_UDP_PAYLOAD);
    limit.set(1500);
    for _ in 0..7 {
        pair.run_for(10 * SECOND);
        carry(&mut pair, 1_000);
    }
    carry(&mut pair, 20_000);
    assert_eq!(size(&mut pair, Side::Client), 1452);
}

#[test]
fn random_losses_cost_no_more_than_a_round_trip_of_smaller_packets() {
    let (mut pair, _) = pair(1500);
    let mut count = 0u32;
    // Nine in a row, of every fifty.
    pair.filter = Box::new(move |_, _| {
        count += 1;
        count % 50 > 8
    });
    for _ in 0..20 {
        carry(&mut pair, 100_000);
    }
    pair.filter = Box::new(|_, _| true);
    carry(&mut pair, 20_000);
    assert_eq!(size(&mut pair, Side::Client), 1452);
}

#[test]
fn sockets_that_fragment_are_not_probed() {
    let mut pair = Pair::connected();
    carry(&mut pair, 100_000);
    let stats = pair.client.conn().stats();
    assert_eq!((stats.udp_payload_size, stats.mtu_probes_sent), (MIN_UDP_PAYLOAD, 0));
}

#[test]
fn another_address_is_another_path() {
    let (mut pair, limit) = pair(1500);
    limit.set(1250);
    pair.client.address = ([127, 0, 0, 9], 9).into();
    carry(&mut pair, 300_000);
    pair.run_for(SECOND);
    let stats = pair.server.conn().stats();
    assert!(stats.udp_payload_size <= 1250, "{}", stats.udp_payload_size);
}

/// Two packets at most, no longer than every path must carry, although the window is full; but they
/// count (RFC 9002 section 7.5).
#[test]
fn probes_of_the_timeout_are_small_and_go_beyond_the_window() {
    let (mut pair, _) = pair(1500);
    pair.filter = Box::new(|_, _| false);
    pair.send(Side::Client, Dir::Uni, &pattern(100_000));
    while pair.client.conn().stats().probe_timeouts == 0 {
        assert!(pair.step(pair.now + 10 * SECOND));
    }
    let (before, sent) = (pair.client.conn().stats(), pair.datagrams[0].len());
    assert!(before.bytes_in_flight + 1452 > before.congestion_window, "the window is full");
    pair.flush(Side::Client);
    let probes = &pair.datagrams[0][sent..];
    assert_eq!(probes.len(), 2);
    assert!(probes.iter().all(|size| *size <= usize::from(MIN_UDP_PAYLOAD)), "{probes:?}");
    let bytes: usize = probes.iter().sum();
    assert!(bytes > 2 * 1000, "they carry data: {probes:?}");
    let after = pair.client.conn().stats().bytes_in_flight;
    assert_eq!(after, before.bytes_in_flight + bytes as u64);
}

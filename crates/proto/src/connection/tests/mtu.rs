//! Path MTU discovery (RFC 9000 section 14.3).

use super::*;

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

fn size(pair: &mut Pair, side: Side) -> u16 {
    pair.end(side).stats().udp_payload_size
}

#[test]
fn most_paths_carry_more_and_one_probe_finds_out() {
    let (mut pair, _) = pair(1500);
    for side in [Side::Client, Side::Server] {
        assert_eq!(size(&mut pair, side), 1452);
        assert_eq!(pair.end(side).stats().mtu_probes_sent, 1);
    }
    let before = pair.sent(Side::Client);
    // Source symbols leave room for repair symbols to fit.
    pair.send_protected(Side::Client, 100_000, None);
    pair.takes(Side::Server, 100_000);
    let full = pair.datagrams[0][before..].iter().filter(|size| **size == 1452).count();
    assert!(full > 60, "{full} full datagrams");
    let max = pair.client.conn().datagrams().max_size().unwrap();
    assert!(max > 1400, "datagrams of the application may be larger, too: {max}");
}

#[test]
fn lost_probes_are_no_sign_of_congestion() {
    let (mut pair, _) = pair(1300);
    for _ in 0..20 {
        pair.carry(Side::Client, 20_000);
    }
    let stats = pair.client.stats();
    assert!((1281..=1300).contains(&stats.udp_payload_size), "{}", stats.udp_payload_size);
    assert!(stats.mtu_probes_lost >= 3, "{}", stats.mtu_probes_lost);
    assert_eq!((stats.packets_lost, stats.black_holes), (0, 0));
    assert!(stats.loss_estimate.abs() < f64::EPSILON);
}

#[test]
fn a_black_hole_is_left_within_a_few_round_trips() {
    let (mut pair, limit) = pair(1500);
    let normal = pair.carry(Side::Client, 300_000);
    limit.set(MIN_UDP_PAYLOAD);
    let hampered = pair.carry(Side::Client, 300_000);
    assert!(pair.client.stats().black_holes >= 1);
    assert_eq!(size(&mut pair, Side::Client), MIN_UDP_PAYLOAD);
    assert!(hampered < normal + 10 * (2 * pair.latency), "{normal:?} before, {hampered:?} in it");
}

#[test]
fn a_path_that_carries_more_again_is_noticed() {
    let (mut pair, limit) = pair(1500);
    limit.set(MIN_UDP_PAYLOAD);
    for _ in 0..20 {
        pair.carry(Side::Client, 50_000);
    }
    assert_eq!(size(&mut pair, Side::Client), MIN_UDP_PAYLOAD);
    limit.set(1500);
    for _ in 0..7 {
        pair.run_for(10 * SECOND);
        pair.carry(Side::Client, 1_000);
    }
    pair.carry(Side::Client, 20_000);
    assert_eq!(size(&mut pair, Side::Client), 1452);
}

#[test]
fn random_losses_cost_no_more_than_a_round_trip_of_smaller_packets() {
    let (mut pair, _) = pair(1500);
    // Nine in a row, of every fifty.
    pair.lose_any(|n| n % 50 <= 8);
    for _ in 0..20 {
        pair.carry(Side::Client, 100_000);
    }
    pair.mend();
    pair.carry(Side::Client, 20_000);
    assert_eq!(size(&mut pair, Side::Client), 1452);
}

#[test]
fn sockets_that_fragment_are_not_probed() {
    let mut pair = Pair::connected();
    pair.carry(Side::Client, 100_000);
    let stats = pair.client.stats();
    assert_eq!((stats.udp_payload_size, stats.mtu_probes_sent), (MIN_UDP_PAYLOAD, 0));
}

#[test]
fn another_address_is_another_path() {
    let (mut pair, limit) = pair(1500);
    limit.set(1250);
    pair.client.address = ([127, 0, 0, 9], 9).into();
    pair.carry(Side::Client, 300_000);
    pair.run_for(SECOND);
    let stats = pair.server.stats();
    assert!(stats.udp_payload_size <= 1250, "{}", stats.udp_payload_size);
}

/// Two packets at most, no longer than every path must carry, although the window is full; but they
/// count (RFC 9002 section 7.5).
#[test]
fn probes_of_the_timeout_are_small_and_go_beyond_the_window() {
    let (mut pair, _) = pair(1500);
    pair.cut();
    pair.send(Side::Client, Dir::Uni, &pattern(100_000));
    pair.run_until(|pair| pair.client.stats().probe_timeouts > 0);
    let (before, sent) = (pair.client.stats(), pair.sent(Side::Client));
    assert!(before.bytes_in_flight + 1452 > before.congestion_window, "the window is full");
    pair.flush(Side::Client);
    let probes = &pair.datagrams[0][sent..];
    assert_eq!(probes.len(), 2);
    assert!(probes.iter().all(|size| *size <= usize::from(MIN_UDP_PAYLOAD)), "{probes:?}");
    let bytes: usize = probes.iter().sum();
    assert!(bytes > 2 * 1000, "they carry data: {probes:?}");
    let after = pair.client.stats().bytes_in_flight;
    assert_eq!(after, before.bytes_in_flight + bytes as u64);
}

//! Changes of the client's address (RFC 9000 section 9).

use super::*;
use crate::connection::migration::MAX_PATH_FRAMES;
use crate::policy::LossFloor;

/// Another port of the client's host.
fn other_port(n: u16) -> SocketAddr {
    ([127, 0, 0, 1], 1000 + n).into()
}

/// Another host.
fn other_host(n: u8) -> SocketAddr {
    ([192, 0, 2, n], 1).into()
}

/// The server receives a PING of the client from this address; returns the size of the datagram.
fn ping_from(pair: &mut Pair, address: SocketAddr) -> usize {
    let datagram = pair.packet(Side::Client, &[Frame::Ping]);
    let size = datagram.len();
    pair.receive_from(Side::Server, address, datagram);
    size
}

/// How many bytes went to an address since `from`.
fn sent_to(pair: &Pair, address: SocketAddr, from: usize) -> usize {
    pair.destinations[from..].iter().filter(|(to, _)| *to == address).map(|(_, size)| size).sum()
}

#[test]
fn a_server_follows_its_client_and_validates_the_address() {
    for address in [other_port(1), other_host(1)] {
        for (from, to) in [(Side::Client, Side::Server), (Side::Server, Side::Client)] {
            let mut pair = Pair::connected();
            pair.send(from, Dir::Uni, &pattern(500_000));
            pair.client.address = address;
            pair.keep_alive(Side::Client, true);
            pair.takes(to, 500_000);
            assert_eq!(pair.server.conn().remote_address(), address);
            assert!(pair.server.conn().path.address.is_validated());
            assert!(!pair.server.conn().migration.is_validating());
        }
    }
}

#[test]
fn only_another_host_makes_a_server_forget_the_path() {
    for (address, forgets) in [(other_port(1), false), (other_host(1), true)] {
        let mut pair = Pair::connected();
        pair.carry(Side::Server, 500_000);
        let window = pair.server.stats().congestion_window;
        ping_from(&mut pair, address);
        let stats = pair.server.stats();
        assert_eq!(stats.congestion_window < window, forgets);
        assert_eq!(stats.rtt == TransportConfig::default().initial_rtt, forgets);
    }
}

#[test]
fn all_that_is_known_of_a_path_is_forgotten_on_another() {
    let socket = SocketFeatures { ecn: true, unfragmented: true };
    let mut pair = Pair::with_sockets(socket).ready();
    pair.lose_any(|n| n.is_multiple_of(20));
    pair.carry(Side::Server, 500_000);
    pair.mend();
    pair.run_for(5 * SECOND);
    let known = pair.server.stats();
    assert!(known.ecn_capable && known.loss_estimate > 0.01, "{known:?}");
    assert_eq!(known.udp_payload_size, 1452);
    ping_from(&mut pair, other_host(1));
    let stats = pair.server.stats();
    let new = TransportConfig::default();
    assert_eq!((stats.ecn_capable, stats.udp_payload_size), (false, MIN_UDP_PAYLOAD));
    assert_eq!((stats.rtt, stats.bytes_in_flight), (new.initial_rtt, 0));
    assert!(stats.loss_estimate.abs() < f64::EPSILON);
    assert_eq!(stats.loss_floor, LossFloor::default());
}

#[test]
fn challenges_cannot_be_guessed() {
    let mut pair = Pair::connected();
    let seen = pair.watch_frames(Side::Client, |frame| match *frame {
        Frame::PathChallenge(data) => Some(data),
        _ => None,
    });
    for n in 1..40 {
        pair.move_client(other_host(n));
        pair.run_for(SECOND);
    }
    let seen = seen.lock().unwrap();
    assert!(seen.len() >= 39, "{}", seen.len());
    // Each bit is set in about half of them.
    for bit in 0..64 {
        let set = seen.iter().filter(|data| u64::from_be_bytes(**data) >> bit & 1 == 1).count();
        assert!((seen.len() / 5..seen.len() * 4 / 5).contains(&set), "bit {bit}: {set}");
    }
}

#[test]
fn no_more_than_three_times_what_came_goes_to_an_unvalidated_address() {
    let mut pair = Pair::connected();
    pair.send(Side::Server, Dir::Uni, &pattern(100_000));
    let (spoofed, start) = (other_host(7), pair.destinations.len());
    let size = ping_from(&mut pair, spoofed);
    pair.run_for(2 * SECOND);
    let sent = sent_to(&pair, spoofed, start);
    assert!(sent > 0 && sent <= 3 * size, "{sent} for {size}");
    assert_eq!(pair.loss(Side::Server), None);
}

#[test]
fn repair_symbols_to_an_unvalidated_address_stay_within_the_limit() {
    let mut pair = Pair::connected();
    let id = pair.open(Side::Server, Some(Protection::tail(50, Duration::ZERO)));
    pair.write(Side::Server, id, 20);
    let (spoofed, start) = (other_host(7), pair.destinations.len());
    let datagram = pair.packet(Side::Client, &[Frame::Ping, Frame::PathChallenge([1; 8])]);
    let size = datagram.len();
    pair.receive_from(Side::Server, spoofed, datagram);
    pair.cut();
    pair.run_for(2 * SECOND);
    let sent = sent_to(&pair, spoofed, start);
    assert!(sent > size && sent <= 3 * size, "{sent} for {size}");
}

#[test]
fn a_path_that_nobody_answers_on_is_left_again() {
    let mut pair = Pair::connected();
    let (home, nowhere) = (pair.client.address, other_host(7));
    let window = pair.server.stats().congestion_window;
    pair.mute(Side::Client);
    ping_from(&mut pair, nowhere);
    assert_eq!(pair.server.conn().remote_address(), nowhere);
    pair.run_for(4 * SECOND);
    assert_eq!(pair.server.conn().remote_address(), home);
    assert_eq!(pair.server.stats().congestion_window, window, "nothing was forgotten");
    pair.mend();
    pair.carry(Side::Server, 100_000);
}

#[test]
fn a_copied_packet_does_not_keep_a_server_from_its_client() {
    let mut pair = Pair::connected();
    let home = pair.client.address;
    ping_from(&mut pair, other_host(7));
    assert_ne!(pair.server.conn().remote_address(), home);
    // The challenge on the old path makes the client speak (RFC 9000 section 9.3.3).
    pair.run_for(pair.latency * 2 + 30 * MS);
    assert_eq!(pair.server.conn().remote_address(), home);
    assert!(pair.server.conn().path.address.is_validated());
}

#[test]
fn neither_probes_nor_late_packets_move_a_server() {
    let mut pair = Pair::connected();
    let (home, elsewhere) = (pair.client.address, other_host(7));
    let late = pair.packet(Side::Client, &[Frame::Ping]);
    let newer = pair.packet(Side::Client, &[Frame::Ping]);
    pair.receive(Side::Server, newer);
    pair.receive_from(Side::Server, elsewhere, late);
    assert_eq!(pair.server.conn().remote_address(), home);
    let start = pair.destinations.len();
    let probe = pair.packet(Side::Client, &[Frame::PathChallenge([1; 8]), Frame::Padding]);
    let size = probe.len();
    pair.receive_from(Side::Server, elsewhere, probe);
    pair.flush(Side::Server);
    assert_eq!(pair.server.conn().remote_address(), home);
    let answer = sent_to(&pair, elsewhere, start);
    assert!(answer > 0 && answer <= 3 * size, "{answer} for {size}");
}

/// The handshake is confirmed at the server, which has discarded its keys, and the client gets
/// another address before it learns so.
#[test]
fn a_client_that_moves_before_it_hears_of_the_end_of_the_handshake_is_found() {
    let mut pair = Pair::new();
    pair.run_until(|pair| {
        !(pair.server.connection.is_none() || pair.server.conn().is_handshaking())
    });
    assert!(!pair.client.conn().handshake.confirmed);
    pair.client.address = other_port(1);
    pair.run_for(5 * SECOND);
    assert!(pair.client.conn().handshake.confirmed);
    assert_eq!(pair.server.conn().remote_address(), other_port(1));
}

#[test]
fn nobody_moves_during_the_handshake() {
    let mut pair = Pair::new();
    pair.step(pair.now + SECOND);
    pair.step(pair.now + SECOND);
    let home = pair.client.address;
    pair.client.address = other_port(1);
    pair.run_for(SECOND);
    assert_eq!(pair.server.conn().remote_address(), home);
    assert!(pair.server.conn().is_handshaking());
}

#[test]
fn a_server_that_forbids_migration_follows_another_port_only() {
    let mut pair = Pair::with_server(|server| server.migration = false);
    assert!(!pair.client.conn().may_migrate());
    let home = pair.client.address;
    for (address, then) in [(other_host(7), home), (other_port(7), other_port(7))] {
        ping_from(&mut pair, address);
        assert_eq!(pair.server.conn().remote_address(), then);
    }
}

#[test]
fn a_client_that_moves_takes_other_identifiers_and_gets_others() {
    let mut pair = Pair::connected();
    assert!(pair.client.conn().may_migrate() && !pair.server.conn().may_migrate());
    let before = [Side::Client, Side::Server].map(|s| pair.end(s).conn().path.remote_cids.active());
    pair.move_client(other_host(7));
    pair.run_for(SECOND);
    let after = [Side::Client, Side::Server].map(|s| pair.end(s).conn().path.remote_cids.active());
    assert!(before[0] != after[0] && before[1] != after[1]);
    pair.carry(Side::Server, 200_000);
    assert_eq!(pair.server.conn().remote_address(), other_host(7));
    assert!(pair.server.conn().path.address.is_validated());
}

#[test]
fn clients_ignore_other_servers() {
    let mut pair = Pair::connected();
    let home = pair.server.address;
    let datagram = pair.packet(Side::Server, &[Frame::Ping]);
    pair.receive_from(Side::Client, other_host(7), datagram);
    assert_eq!(pair.client.conn().remote_address(), home);
}

#[test]
fn floods_of_challenges_and_addresses_are_bounded() {
    let mut pair = Pair::connected();
    for n in 0..200 {
        let probe = pair.packet(Side::Client, &[Frame::PathChallenge([n; 8])]);
        pair.receive_from(Side::Server, other_host(n), probe);
        assert!(pair.server.conn().migration.queued() <= MAX_PATH_FRAMES);
    }
    for n in 0..1000 {
        let move_on = pair.packet(Side::Client, &[Frame::Ping, Frame::PathResponse([7; 8])]);
        pair.receive_from(Side::Server, other_port(n), move_on);
        assert!(pair.server.conn().migration.queued() <= MAX_PATH_FRAMES);
    }
    let start = pair.destinations.len();
    pair.flush(Side::Server);
    assert!(pair.destinations.len() - start <= 2 * MAX_PATH_FRAMES);
    pair.carry(Side::Client, 100_000);
}

#[test]
fn one_lost_challenge_or_response_does_no_harm() {
    for lost in 0..6 {
        let mut pair = Pair::connected();
        pair.send(Side::Client, Dir::Uni, &pattern(300_000));
        pair.client.address = other_host(7);
        pair.lose(Side::Server, move |n| n == lost);
        pair.takes(Side::Server, 300_000);
        pair.run_for(SECOND);
        assert!(pair.server.conn().path.address.is_validated(), "{lost}");
    }
}

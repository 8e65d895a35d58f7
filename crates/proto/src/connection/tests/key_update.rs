//! Key updates (RFC 9001 section 6), and how long keys last.

use super::hostile::{Wear, worn};
use super::*;
use crate::connection::key_update::KEYS_AHEAD;

const UNLIMITED: u64 = u64::MAX;

/// A 1-RTT packet of the client under its present keys.
fn packet(pair: &mut Pair, payload: &[u8], phase: bool, ahead: u64) -> Vec<u8> {
    let forgery = Forgery { phase, ahead, ..Forgery::default() };
    pair.forge(Side::Client, SpaceId::Data, payload, forgery)
}

/// A PING of the client under its present keys.
fn ping(pair: &mut Pair, phase: bool) -> Vec<u8> {
    packet(pair, &PING, phase, 0)
}

fn received(pair: &mut Pair) -> u64 {
    pair.server.stats().received.packets
}

/// Lets the client update its keys without telling the server.
fn update(pair: &mut Pair) {
    let connection = pair.client.conn();
    assert!(connection.update_keys());
    connection.key_phases.forget_previous();
}

#[test]
fn keys_are_updated_again_and_again_while_data_flows_both_ways() {
    let mut pair = Pair::connected();
    pair.lose_any(|n| n.is_multiple_of(9));
    for round in 0..12u32 {
        let side = if round.is_multiple_of(2) { Side::Client } else { Side::Server };
        let patience = pair.now + 10 * SECOND;
        while !pair.end(side).conn().update_keys() {
            assert!(pair.now < patience, "{round}");
            // A packet under the present keys must be acknowledged.
            pair.end(side).space().ping = true;
            pair.run_for(SECOND);
        }
        for from in [Side::Client, Side::Server] {
            pair.send(from, Dir::Uni, &pattern(20_000));
        }
        for to in [Side::Client, Side::Server] {
            pair.takes(to, 20_000);
        }
        pair.run_for(2 * SECOND);
    }
    for side in [Side::Client, Side::Server] {
        let stats = pair.end(side).stats();
        assert_eq!((stats.key_updates, stats.undecryptable), (12, 0), "{side:?}");
    }
}

#[test]
fn the_next_keys_are_derived_ahead_where_many_packets_arrive() {
    let wear = Wear::new(UNLIMITED, UNLIMITED);
    let mut pair = worn(&wear).ready();
    assert_eq!(wear.derived(), 0);
    pair.send(Side::Server, Dir::Uni, &pattern(KEYS_AHEAD as usize * 1_500));
    pair.run_for(SECOND);
    assert_eq!(wear.derived(), 1);
    forged(&mut pair, true);
    assert_eq!(wear.derived(), 1);
}

#[test]
fn both_ends_may_update_at_once() {
    let mut pair = Pair::connected();
    for round in 1..5 {
        assert!(pair.client.conn().update_keys() && pair.server.conn().update_keys());
        pair.send(Side::Client, Dir::Uni, &pattern(5_000));
        pair.send(Side::Server, Dir::Uni, &pattern(5_000));
        pair.run_for(2 * SECOND);
        for side in [Side::Client, Side::Server] {
            let stats = pair.end(side).stats();
            assert_eq!((stats.key_updates, stats.undecryptable), (round, 0), "{side:?}");
            assert_eq!(pair.loss(side), None);
        }
    }
}

#[test]
fn no_update_comes_too_early() {
    let mut pair = Pair::new();
    while pair.server.connection.is_none() || pair.server.conn().is_handshaking() {
        assert!(!pair.client.conn().update_keys(), "the handshake is not confirmed");
        assert!(pair.step(pair.now + SECOND));
    }
    pair.run_for(SECOND);
    assert!(pair.client.conn().update_keys());
    assert!(!pair.client.conn().update_keys(), "nothing was acknowledged");
    let pto = pair.client.conn().pto();
    pair.send(Side::Client, Dir::Uni, b"x");
    pair.run_until(|pair| pair.server.stats().key_updates > 0);
    pair.run_for(110 * MS);
    assert!(!pair.client.conn().update_keys(), "late packets may need the keys before");
    pair.run_for(3 * pto);
    assert!(pair.client.conn().update_keys());
}

#[test]
fn late_packets_are_opened_for_three_probe_timeouts() {
    let mut pair = Pair::connected();
    let late: Vec<_> = (0..3).map(|_| ping(&mut pair, false)).collect();
    update(&mut pair);
    let new = ping(&mut pair, true);
    pair.receive(Side::Server, new);
    assert_eq!(pair.server.stats().key_updates, 1);
    let pto = pair.server.conn().pto();
    // Nothing that is sent meanwhile changes the probe timeout.
    pair.cut();
    let before = received(&mut pair);
    pair.receive(Side::Server, late[0].clone());
    pair.run_for(3 * pto - MS);
    pair.receive(Side::Server, late[1].clone());
    assert_eq!(received(&mut pair), before + 2);
    pair.run_for(2 * MS);
    pair.receive(Side::Server, late[2].clone());
    assert_eq!(received(&mut pair), before + 2);
    assert_eq!(pair.server.stats().undecryptable, 1);
    assert_eq!(pair.loss(Side::Server), None);
}

#[test]
fn going_back_to_older_keys_is_an_error() {
    // The packet under old keys has the higher number, and comes first.
    let mut pair = Pair::connected();
    let old = packet(&mut pair, &PING, false, 9);
    update(&mut pair);
    let new = ping(&mut pair, true);
    pair.receive(Side::Server, old);
    assert_eq!(pair.loss(Side::Server), None);
    pair.receive(Side::Server, new);
    assert_eq!(pair.error(Side::Server), Some(TransportErrorCode::KEY_UPDATE_ERROR));

    // The old packet comes last: keys are chosen by numbers, so it is not opened.
    let mut pair = Pair::connected();
    let old = packet(&mut pair, &PING, false, 9);
    update(&mut pair);
    let new = ping(&mut pair, true);
    pair.receive(Side::Server, new);
    let before = received(&mut pair);
    pair.receive(Side::Server, old);
    assert_eq!(received(&mut pair), before);
    assert_eq!(pair.server.stats().undecryptable, 1);

    // The old packet comes between two packets under new keys, with a number above one of theirs.
    let mut pair = Pair::connected();
    let old = packet(&mut pair, &PING, false, 5);
    update(&mut pair);
    let news = [packet(&mut pair, &PING, true, 9), ping(&mut pair, true)];
    for datagram in [&news[0], &old] {
        pair.receive(Side::Server, datagram.clone());
        assert_eq!(pair.loss(Side::Server), None);
    }
    pair.receive(Side::Server, news[1].clone());
    assert_eq!(pair.error(Side::Server), Some(TransportErrorCode::KEY_UPDATE_ERROR));
}

#[test]
fn old_packets_that_an_attacker_sends_again_are_no_error() {
    let mut pair = Pair::connected();
    let old: Vec<_> = (0..5).map(|_| ping(&mut pair, false)).collect();
    update(&mut pair);
    let new: Vec<_> = (0..5).map(|_| ping(&mut pair, true)).collect();
    let order = [&old[0], &old[4], &new[3], &old[2], &new[0], &old[4], &old[0], &new[4], &old[1]];
    for datagram in order.into_iter().chain(order) {
        pair.receive(Side::Server, datagram.clone());
        assert_eq!(pair.loss(Side::Server), None);
    }
    assert_eq!(pair.server.stats().undecryptable, 0);
}

#[test]
fn two_updates_in_a_row_are_an_error() {
    for acknowledged in [true, false] {
        let mut pair = Pair::connected();
        update(&mut pair);
        let first = ping(&mut pair, true);
        pair.receive(Side::Server, first);
        if acknowledged {
            // The server acknowledges the packet, but the acknowledgement is lost.
            pair.cut();
            pair.run_for(SECOND);
        }
        // The client does not wait for that.
        assert!(pair.client.conn().rotate_keys(None));
        let second = ping(&mut pair, false);
        pair.receive(Side::Server, second);
        let expected = (!acknowledged).then_some(TransportErrorCode::KEY_UPDATE_ERROR);
        assert_eq!(pair.error(Side::Server), expected);
        assert_eq!(pair.server.stats().key_updates, 1 + u64::from(acknowledged));
    }
}

#[test]
fn new_packets_acknowledged_under_old_keys_are_an_error() {
    for includes_new in [false, true] {
        let mut pair = Pair::connected();
        let before = pair.server.space().peek_pn();
        assert!(pair.server.conn().update_keys());
        pair.server.space().ping = true;
        pair.flush(Side::Server);
        let largest = if includes_new { before } else { before - 1 };
        // The client has received the update, but answers as if it had not.
        let ack = [2, u8::try_from(largest).unwrap(), 0, 0, 0];
        let datagram = packet(&mut pair, &ack, false, 0);
        pair.receive(Side::Server, datagram);
        let expected = includes_new.then_some(TransportErrorCode::KEY_UPDATE_ERROR);
        assert_eq!(pair.error(Side::Server), expected);
    }
}

#[test]
fn keys_are_replaced_before_they_are_used_up() {
    let mut pair = worn(&Wear::new(100, UNLIMITED)).ready();
    for _ in 0..200 {
        pair.carry(Side::Client, 3_000);
        pair.run_for(100 * MS);
        assert!(pair.client.conn().key_phases.sealed() < 100);
    }
    let sent = pair.client.stats().sent.packets;
    let updates = pair.client.stats().key_updates;
    assert!(updates >= sent / 100 && sent > 600, "{updates} updates, {sent} packets");
    assert_eq!(pair.server.stats().undecryptable, 0);
}

#[test]
fn keys_that_are_used_up_and_cannot_be_replaced_end_the_connection() {
    let mut pair = worn(&Wear::new(100, UNLIMITED)).ready();
    pair.client.conn().update_keys();
    // Nothing is acknowledged any more.
    pair.mute(Side::Server);
    pair.send(Side::Client, Dir::Uni, &pattern(1_000));
    while pair.loss(Side::Client).is_none() {
        pair.client.space().probes = 1;
        assert!(pair.client.conn().key_phases.sealed() < 100);
        pair.run_for(10 * MS);
    }
    assert_eq!(pair.error(Side::Client), Some(TransportErrorCode::AEAD_LIMIT_REACHED));
    // A packet is left to tell the error.
    assert!(pair.client.conn().key_phases.sealed() <= 100);
    pair.run_for(100 * MS);
    assert!(pair.server.conn().is_closed(), "the server hears of it");
}

#[test]
fn too_many_forged_packets_end_the_connection() {
    let mut pair = worn(&Wear::new(UNLIMITED, 20)).ready();
    for n in 0..=20 {
        assert_eq!(pair.loss(Side::Client), None, "{n}");
        // Keys are updated meanwhile: the limit counts for the whole connection.
        if n == 10 {
            assert!(pair.client.conn().update_keys());
            pair.send(Side::Client, Dir::Uni, b"x");
            pair.run_for(2 * SECOND);
        }
        forged(&mut pair, n % 3 == 0);
    }
    assert_eq!(pair.error(Side::Client), Some(TransportErrorCode::AEAD_LIMIT_REACHED));
}

/// A packet that looks as if the server had sent it.
fn forgery(pair: &mut Pair, phase: bool) -> Vec<u8> {
    let forgery = Forgery { phase, ..Forgery::default() };
    let payload = [&PING[..], &[0; 40]].concat();
    let mut datagram = pair.forge(Side::Server, SpaceId::Data, &payload, forgery);
    // The byte is behind the sample, so that the header stays as it is.
    *datagram.last_mut().unwrap() ^= 1;
    datagram
}

/// Lets the client receive a forgery.
fn forged(pair: &mut Pair, phase: bool) {
    let datagram = forgery(pair, phase);
    pair.receive(Side::Client, datagram);
}

#[test]
fn forged_packets_take_one_attempt_whatever_their_key_phase_and_derive_keys_once() {
    let wear = Wear::new(UNLIMITED, UNLIMITED);
    let mut pair = worn(&wear).ready();
    let check = |pair: &mut Pair, when: &str| {
        for phase in [false, true] {
            let before = (wear.opened(), wear.derived());
            forged(pair, phase);
            assert_eq!((wear.opened(), wear.derived()), (before.0 + 1, before.1), "{when} {phase}");
        }
    };
    forged(&mut pair, false);
    assert_eq!(wear.derived(), 0, "few packets have arrived");
    forged(&mut pair, true);
    assert_eq!(wear.derived(), 1);
    check(&mut pair, "in the first phase");
    // A forgery as old as the first phase, and a packet that the server has sent then.
    let old = forgery(&mut pair, false);
    let late = pair.forge(Side::Server, SpaceId::Data, &PING, Forgery::default());
    assert!(pair.client.conn().update_keys());
    check(&mut pair, "after an update of its own");
    pair.send(Side::Client, Dir::Uni, b"x");
    pair.run_for(110 * MS);
    check(&mut pair, "while the previous keys are kept");
    pair.run_for(5 * SECOND);
    check(&mut pair, "later");
    let received = pair.client.stats().received.packets;
    for datagram in [old, late] {
        let before = (wear.opened(), wear.derived());
        pair.receive(Side::Client, datagram);
        assert_eq!((wear.opened(), wear.derived()), (before.0 + 1, before.1), "without keys");
    }
    assert_eq!(pair.client.stats().received.packets, received);
    assert_eq!(wear.derived(), 2, "those of the second and the third phase");
}

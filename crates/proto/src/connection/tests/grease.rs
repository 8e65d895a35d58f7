//! Greasing the fixed bit (RFC 9287).

use super::*;
use std::cell::RefCell;

const FIXED_BIT: u8 = 0x40;

/// The first bytes of the datagrams that each side sends.
type FirstBytes = Rc<RefCell<[Vec<u8>; 2]>>;

fn pair(greased: [bool; 2]) -> (Pair, FirstBytes) {
    let offer = |grease_quic_bit| Extensions { grease_quic_bit, ..Extensions::NONE };
    let mut pair = Pair::with_extensions(greased.map(offer));
    let seen = FirstBytes::default();
    let log = seen.clone();
    pair.filter = Box::new(move |from, datagram| {
        log.borrow_mut()[from as usize].push(datagram[0]);
        true
    });
    (pair, seen)
}

fn exchange(pair: &mut Pair) {
    pair.handshake();
    pair.carry(Side::Client, 100_000);
    pair.carry(Side::Server, 100_000);
}

#[test]
fn the_bit_has_any_value_if_both_ends_agree() {
    let (mut pair, seen) = pair([true, true]);
    pair.flush(Side::Client);
    // Before the client knows the server's parameters.
    assert!(seen.borrow()[0].iter().all(|first| first & FIXED_BIT != 0));
    exchange(&mut pair);
    for bytes in &*seen.borrow() {
        let set = bytes.iter().filter(|first| **first & FIXED_BIT != 0).count();
        assert!(set * 4 > bytes.len() && set * 4 < bytes.len() * 3, "{set} of {}", bytes.len());
    }
}

#[test]
fn the_bit_is_set_for_peers_that_do_not_agree() {
    for greased in [[true, false], [false, true], [false, false]] {
        let (mut pair, seen) = pair(greased);
        exchange(&mut pair);
        assert!(seen.borrow().iter().flatten().all(|first| first & FIXED_BIT != 0));
    }
}

#[test]
fn packets_without_the_bit_are_read_only_where_that_was_announced() {
    for greased in [true, false] {
        let (mut pair, _) = pair([false, greased]);
        pair.handshake();
        let before = pair.server.stats().received.packets;
        let forgery = Forgery { cleared: FIXED_BIT, ..Forgery::default() };
        let ping = encoded(&Frame::Ping);
        pair.inject_packet(Side::Client, SpaceId::Data, &ping, forgery);
        let received = pair.server.stats().received.packets - before;
        assert_eq!(received, u64::from(greased));
    }
}

//! The anti-amplification limit (RFC 9000 section 8.1) and the deadlock that it could cause.

use super::*;

/// A pair whose server's certificates do not fit in three datagrams.
fn talkative() -> Pair {
    with_certificates(9_000)
}

fn with_certificates(size: u16) -> Pair {
    let crypto = null_server().with_certificate_size(size);
    Pair::with_cryptos(honest(), Arc::new(crypto))
}

/// The server hears the client's first datagram, and the client hears nothing.
fn speechless(time: Duration) -> Pair {
    let mut pair = talkative();
    let mut first = true;
    pair.filter = Box::new(move |from, _| from.is_client() && std::mem::take(&mut first));
    pair.run_for(time);
    assert!(pair.server.conn().path.address.is_blocked());
    pair
}

#[test]
fn an_unvalidated_client_gets_three_times_what_it_sent() {
    let mut pair = speechless(20 * SECOND);
    let (received, sent) = (pair.datagrams[0][0], pair.bytes_sent(Side::Server));
    assert!(sent <= 3 * received && sent > 2 * received, "{sent}");
    assert_eq!(pair.server.stats().probe_timeouts, 0, "there is nothing to probe with");
    // A close does not exceed the limit either, even when hardly any of it is left.
    pair.close(Side::Server, 1, b"a reason");
    pair.flush(Side::Server);
    assert!(pair.bytes_sent(Side::Server) <= 3 * received);
}

#[test]
fn a_client_frees_a_server_that_ran_into_the_limit() {
    let mut pair = talkative();
    // All packets that the server may send at first are lost, and it cannot know.
    let mut sent = 0;
    pair.filter = Box::new(move |from, bytes| {
        sent += if from == Side::Server { bytes.len() } else { 0 };
        from == Side::Client || sent > 3_600
    });
    pair.run_for(10 * SECOND);
    assert!(pair.client.events.contains(&Event::Connected));
    assert!(pair.server.events.contains(&Event::Connected));
}

#[test]
fn a_client_with_nothing_in_flight_still_probes() {
    let mut pair = talkative();
    // No further packet arrives after that.
    pair.lose(Side::Server, |n| (2..7).contains(&n));
    pair.run_for(20 * SECOND);
    assert!(pair.client.events.contains(&Event::Connected));
}

/// The limit covers all packets together: the server's data before the handshake is complete, and the repair
/// symbols for it.
#[test]
fn repair_symbols_stay_within_the_limit() {
    let mut pair = with_certificates(100);
    pair.mute(Side::Server);
    pair.flush(Side::Client);
    pair.cut();
    pair.run_until(|pair| pair.server.connection.is_some());
    pair.send_protected(Side::Server, 200, Some(Protection::tail(50, Duration::ZERO)));
    pair.run_for(9 * SECOND);
    let (received, sent) = (pair.datagrams[0][0], pair.bytes_sent(Side::Server));
    assert!(sent <= 3 * received && sent > 2 * received, "{sent} for {received}");
    let symbols = pair.server.stats().fec.repair_symbols_sent;
    assert!((1..50).contains(&symbols), "{symbols} repair symbols");
}

/// Unreadable packets count as well: the limit is one of bytes received (RFC 9000 section 8.1).
#[test]
fn every_datagram_raises_the_limit_before_it_is_processed() {
    let mut pair = speechless(5 * SECOND);
    let before = pair.bytes_sent(Side::Server);
    let mut datagram = pair.forge(Side::Client, SpaceId::Initial, &[0; 1200], Forgery::default());
    *datagram.last_mut().unwrap() ^= 1;
    let size = datagram.len();
    pair.receive(Side::Server, datagram);
    pair.flush(Side::Server);
    pair.run_for(SECOND);
    let more = pair.bytes_sent(Side::Server) - before;
    assert!(more > size && more <= 3 * size, "{more} for {size}");
}

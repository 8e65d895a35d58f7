//! The anti-amplification limit (RFC 9000 section 8.1) and the deadlock that it could cause.

use super::pair::{Forgery, Pair, pattern};
use crate::crypto::null::NullServerConfig;
use crate::{Dir, Event, Protection, Side, SpaceId, TransportConfig};
use std::time::Duration;

/// A pair whose server's certificates do not fit in three datagrams.
fn talkative() -> Pair {
    let crypto = NullServerConfig::new(vec![b"test".to_vec()]).with_certificate_size(9_000);
    Pair::with_crypto(TransportConfig::default(), TransportConfig::default(), crypto)
}

#[test]
fn an_unvalidated_client_gets_three_times_what_it_sent() {
    let mut pair = talkative();
    let mut n = 0;
    pair.filter = Box::new(move |from, _| {
        n += usize::from(from == Side::Client);
        from == Side::Client && n == 1
    });
    pair.run_for(Duration::from_secs(20));
    let (received, sent) = (pair.datagrams[0][0], pair.bytes_sent(Side::Server));
    assert!(sent <= 3 * received && sent > 2 * received, "{sent}");
    assert!(pair.server.conn().path.address.is_blocked());
    assert_eq!(pair.server.conn().stats().probe_timeouts, 0, "there is nothing to probe with");
    // A close does not exceed the limit either, even when hardly any of it is left.
    let now = pair.now;
    pair.server.conn().close(now, 1, b"a reason");
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
    pair.run_for(Duration::from_secs(10));
    assert!(pair.client.events.contains(&Event::Connected));
    assert!(pair.server.events.contains(&Event::Connected));
}

#[test]
fn a_client_with_nothing_in_flight_still_probes() {
    let mut pair = talkative();
    // No further packet arrives after that.
    let mut n = 0;
    pair.filter = Box::new(move |from, _| {
        n += usize::from(from == Side::Server);
        from == Side::Client || n == 1 || n > 6
    });
    pair.run_for(Duration::from_secs(20));
    assert!(pair.client.events.contains(&Event::Connected));
}

/// The limit covers all packets together: the server's data before the handshake is complete, and the repair
/// symbols for it.
#[test]
fn repair_symbols_stay_within_the_limit() {
    let crypto = NullServerConfig::new(vec![b"test".to_vec()]).with_certificate_size(100);
    let mut pair = Pair::with_crypto(Default::default(), Default::default(), crypto);
    pair.filter = Box::new(|from, _| from == Side::Client);
    pair.flush(Side::Client);
    pair.filter = Box::new(|_, _| false);
    while pair.server.connection.is_none() {
        assert!(pair.step(pair.now + Duration::from_secs(1)));
    }
    let server = pair.server.conn();
    let id = server.open(Dir::Uni).expect("the client's limits are known");
    let mut stream = server.send_stream(id);
    stream.protect(Some(Protection::tail(50, Duration::ZERO))).unwrap();
    stream.write(&pattern(200)).unwrap();
    stream.finish().unwrap();
    pair.run_for(Duration::from_secs(9));
    let (received, sent) = (pair.datagrams[0][0], pair.bytes_sent(Side::Server));
    assert!(sent <= 3 * received && sent > 2 * received, "{sent} for {received}");
    let symbols = pair.server.conn().stats().fec.repair_symbols_sent;
    assert!((1..50).contains(&symbols), "{symbols} repair symbols");
}

/// Unreadable packets count as well: the limit is one of bytes received (RFC 9000 section 8.1).
#[test]
fn every_datagram_raises_the_limit_before_it_is_processed() {
    let mut pair = talkative();
    let mut n = 0;
    pair.filter = Box::new(move |from, _| {
        n += usize::from(from == Side::Client);
        from == Side::Client && n == 1
    });
    pair.run_for(Duration::from_secs(5));
    assert!(pair.server.conn().path.address.is_blocked());
    let before = pair.bytes_sent(Side::Server);
    let mut datagram = pair.forge(Side::Client, SpaceId::Initial, &[0; 1200], Forgery::default());
    *datagram.last_mut().unwrap() ^= 1;
    let size = datagram.len();
    pair.receive(Side::Server, datagram);
    pair.flush(Side::Server);
    pair.run_for(Duration::from_secs(1));
    let more = pair.bytes_sent(Side::Server) - before;
    assert!(more > size && more <= 3 * size, "{more} for {size}");
}

//! The end of connections (RFC 9000 section 10).

use super::*;
use std::collections::BTreeSet;

#[test]
fn the_peer_hears_why_and_both_ends_are_forgotten() {
    let mut pair = Pair::connected();
    pair.close(Side::Client, 77, b"enough");
    pair.close(Side::Client, 78, b"not said");
    pair.run_for(60 * MS);
    let why = ConnectionError::ApplicationClosed { code: 77, reason: b"enough".to_vec() };
    assert_eq!(pair.loss(Side::Server), Some(why));
    assert_eq!(pair.loss(Side::Client), Some(ConnectionError::LocallyClosed));
    assert!(pair.client.conn().is_closed() && !pair.client.conn().is_drained());
    pair.run_for(2 * SECOND);
    pair.is_over();
    assert_eq!(pair.client.conn().poll_timeout(), None);
    assert_eq!(pair.server.conn().poll_timeout(), None);
    assert!(pair.client.conn().open(Dir::Bi).is_none());
}

#[test]
fn a_close_during_the_handshake_keeps_the_applications_reason_to_itself() {
    for closer in [Side::Client, Side::Server] {
        let mut pair = Pair::new();
        pair.flush(Side::Client);
        pair.run_until(|pair| closer.is_client() || pair.server.connection.is_some());
        pair.close(closer, 77, b"a secret");
        pair.run_for(10 * SECOND);
        let error = pair.refusal(closer.peer()).unwrap();
        assert_eq!((error.code, &*error.reason), (TransportErrorCode::APPLICATION_ERROR, ""));
        pair.is_over();
    }
}

/// How many datagrams the server sends while so many packets come.
fn answers(pair: &mut Pair, packets: usize) -> usize {
    let before = pair.sent(Side::Server);
    for _ in 0..packets {
        pair.inject(Side::Client, &[Frame::Ping]);
        pair.flush(Side::Server);
    }
    pair.sent(Side::Server) - before
}

#[test]
fn answers_of_a_closing_end_get_rarer() {
    let mut pair = Pair::connected();
    pair.mute(Side::Server);
    pair.close(Side::Server, 0, b"");
    pair.flush(Side::Server);
    assert_eq!(answers(&mut pair, 100), 7, "after 1, 2, 4 .. 64 packets");
}

#[test]
fn a_draining_end_is_silent() {
    let mut pair = Pair::connected();
    pair.close(Side::Client, 0, b"");
    pair.run_for(60 * MS);
    assert_eq!(answers(&mut pair, 10), 0);
}

#[test]
fn both_ends_may_close_at_once() {
    let mut pair = Pair::connected();
    pair.close(Side::Client, 1, b"");
    pair.close(Side::Server, 2, b"");
    pair.run_for(5 * SECOND);
    assert!(pair.client.conn().is_drained() && pair.server.conn().is_drained());
    assert_eq!(pair.loss(Side::Client), Some(ConnectionError::LocallyClosed));
    assert_eq!(pair.client.events.len(), 1, "said once");
}

#[test]
fn silence_ends_a_connection() {
    let mut pair = Pair::connected();
    let before = pair.datagrams.clone();
    pair.run_for(28 * SECOND);
    assert_eq!(pair.loss(Side::Client), None);
    pair.run_for(3 * SECOND);
    assert_eq!(pair.loss(Side::Client), Some(ConnectionError::TimedOut));
    assert_eq!(pair.loss(Side::Server), Some(ConnectionError::TimedOut));
    assert!(pair.client.endpoint.is_empty() && pair.server.endpoint.is_empty());
    assert_eq!(pair.datagrams, before, "without a word");
}

#[test]
fn a_connection_is_kept_alive_as_long_as_is_wanted() {
    let mut pair = Pair::connected();
    pair.keep_alive(Side::Client, true);
    pair.run_for(300 * SECOND);
    assert_eq!(pair.loss(Side::Client), None);
    pair.keep_alive(Side::Client, false);
    pair.run_for(40 * SECOND);
    assert_eq!(pair.loss(Side::Client), Some(ConnectionError::TimedOut));
}

#[test]
fn two_ends_that_keep_a_connection_alive_do_not_keep_each_other_busy() {
    let mut pair = Pair::connected();
    pair.keep_alive(Side::Client, true);
    pair.keep_alive(Side::Server, true);
    let before = pair.sent(Side::Client) + pair.sent(Side::Server);
    pair.run_for(300 * SECOND);
    let sent = pair.sent(Side::Client) + pair.sent(Side::Server) - before;
    assert!((80..200).contains(&sent), "{sent}");
}

#[test]
fn who_is_kept_alive_outlasts_an_outage_at_any_moment() {
    for start in 0..10 {
        let mut pair = Pair::connected();
        pair.keep_alive(Side::Client, true);
        pair.run_for(start * SECOND);
        pair.cut();
        pair.run_for(20 * SECOND);
        pair.mend();
        pair.run_for(60 * SECOND);
        assert_eq!((pair.loss(Side::Client), pair.loss(Side::Server)), (None, None), "{start}");
    }
}

#[test]
fn the_shorter_of_both_timeouts_counts() {
    let mut pair = Pair::with_server(|server| server.max_idle_timeout = Some(5 * SECOND));
    pair.run_for(6 * SECOND);
    assert_eq!(pair.loss(Side::Client), Some(ConnectionError::TimedOut));
}

#[test]
fn only_the_first_unanswered_packet_restarts_the_idle_timer() {
    let mut pair = Pair::connected();
    pair.cut();
    pair.run_for(10 * SECOND);
    let id = pair.client.conn().open(Dir::Uni).unwrap();
    for _ in 0..25 {
        pair.client.conn().send_stream(id).write(b"anybody there?").unwrap();
        pair.run_for(SECOND);
        assert_eq!(pair.loss(Side::Client), None);
    }
    pair.run_for(6 * SECOND);
    assert_eq!(pair.loss(Side::Client), Some(ConnectionError::TimedOut));
}

#[test]
fn keep_alive_keeps_alive() {
    let mut pair = Pair::with_client(|client| client.keep_alive = Some(10 * SECOND));
    pair.run_for(100 * SECOND);
    pair.lives();
}

/// A client cannot know its server's timeout before it connects.
#[test]
fn keep_alive_heeds_a_peer_that_is_less_patient() {
    let mut pair = Pair::with(
        TransportConfig { keep_alive: Some(3 * SECOND), ..TransportConfig::default() },
        TransportConfig { max_idle_timeout: Some(SECOND), ..TransportConfig::default() },
    );
    pair.run_for(100 * SECOND);
    pair.lives();
}

/// Otherwise a packet that is lost, and its repetition, could end a connection on a slow path.
#[test]
fn an_idle_connection_lives_for_three_probe_timeouts_at_least() {
    let impatient = || TransportConfig { max_idle_timeout: Some(MS), ..TransportConfig::default() };
    let mut pair = Pair::with(impatient(), impatient());
    pair.run_until(|pair| pair.client.conn().handshake.confirmed);
    pair.cut();
    pair.inject(Side::Client, &[Frame::Ping]);
    let pto = pair.server.conn().pto();
    assert!(pto > 100 * MS);
    pair.run_for(3 * pto - MS);
    assert_eq!(pair.loss(Side::Server), None);
    pair.run_for(SECOND);
    assert_eq!(pair.loss(Side::Server), Some(ConnectionError::TimedOut));
}

#[test]
fn closing_and_draining_last_three_probe_timeouts() {
    for side in [Side::Client, Side::Server] {
        let mut pair = Pair::connected();
        let pto = pair.end(side).conn().pto();
        pair.close(Side::Client, 0, b"");
        pair.run_until(|pair| pair.end(side).conn().is_closed());
        pair.run_for(3 * pto - MS);
        assert!(!pair.end(side).conn().is_drained(), "{side:?}");
        pair.run_for(2 * MS);
        assert!(pair.end(side).conn().is_drained(), "{side:?}");
    }
}

/// A server does not know which keys its client has until the handshake is confirmed (RFC 9000 section
/// 10.2.3).
#[test]
fn a_server_that_closes_during_the_handshake_says_so_under_all_keys() {
    let mut pair = Pair::new();
    pair.run_until(|pair| pair.server.connection.is_some());
    pair.flush(Side::Server);
    let spaces = pair.watch(Side::Server, |observation, spaces| {
        if let Observation::PacketSent { space, .. } = observation {
            spaces.push(*space);
        }
    });
    pair.close(Side::Server, 5, b"");
    pair.flush(Side::Server);
    let spaces: BTreeSet<_> = spaces.lock().unwrap().iter().copied().collect();
    assert!(spaces.iter().eq(&SpaceId::ALL));
}

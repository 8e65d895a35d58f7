//! The end of connections (RFC 9000 section 10).

use super::pair::Pair;
use crate::wire_format::Frame;
use crate::{
    ConnectionError, Dir, Observation, Observer, Side, SpaceId, TransportConfig, TransportErrorCode,
};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

#[test]
fn the_peer_hears_why_and_both_ends_are_forgotten() {
    let mut pair = Pair::connected();
    let now = pair.now;
    pair.client.conn().close(now, 77, b"enough");
    pair.client.conn().close(now, 78, b"not said");
    pair.run_for(60 * MS);
    let why = ConnectionError::ApplicationClosed { code: 77, reason: b"enough".to_vec() };
    assert_eq!(pair.loss(Side::Server), Some(why));
    assert_eq!(pair.loss(Side::Client), Some(ConnectionError::LocallyClosed));
    assert!(pair.client.conn().is_closed() && !pair.client.conn().is_drained());
    pair.run_for(2 * SECOND);
    assert!(pair.client.conn().is_drained() && pair.server.conn().is_drained());
    assert!(pair.client.endpoint.is_empty() && pair.server.endpoint.is_empty());
    assert_eq!(pair.client.conn().poll_timeout(), None);
    assert_eq!(pair.server.conn().poll_timeout(), None);
    assert!(pair.client.conn().open(Dir::Bi).is_none());
}

#[test]
fn a_close_during_the_handshake_keeps_the_applications_reason_to_itself() {
    for closer in [Side::Client, Side::Server] {
        let mut pair = Pair::new();
        if closer == Side::Server {
            while pair.server.connection.is_none() {
                pair.step(pair.now + SECOND);
            }
        } else {
            pair.flush(Side::Client);
        }
        let now = pair.now;
        pair.end(closer).conn().close(now, 77, b"a secret");
        pair.run_for(10 * SECOND);
        let Some(ConnectionError::ClosedByPeer(error)) = pair.loss(closer.peer()) else {
            panic!("{closer:?}: {:?}", pair.loss(closer.peer()))
        };
        assert_eq!(error.code, TransportErrorCode::APPLICATION_ERROR);
        assert_eq!(error.reason, "");
        assert!(pair.client.conn().is_drained() && pair.server.conn().is_drained());
        assert!(pair.client.endpoint.is_empty() && pair.server.endpoint.is_empty());
    }
}

#[test]
fn answers_of_a_closing_end_get_rarer() {
    let mut pair = Pair::connected();
    pair.filter = Box::new(|from, _| from == Side::Client);
    let now = pair.now;
    pair.server.conn().close(now, 0, b"");
    pair.flush(Side::Server);
    let before = pair.datagrams[Side::Server as usize].len();
    for _ in 0..100 {
        pair.inject(Side::Client, &[Frame::Ping]);
        pair.flush(Side::Server);
    }
    let answers = pair.datagrams[Side::Server as usize].len() - before;
    assert_eq!(answers, 7, "after 1, 2, 4 .. 64 packets");
}

#[test]
fn a_draining_end_is_silent() {
    let mut pair = Pair::connected();
    let now = pair.now;
    pair.client.conn().close(now, 0, b"");
    pair.run_for(60 * MS);
    let before = pair.datagrams[Side::Server as usize].len();
    for _ in 0..10 {
        pair.inject(Side::Client, &[Frame::Ping]);
        pair.flush(Side::Server);
    }
    assert_eq!(pair.datagrams[Side::Server as usize].len(), before);
}

#[test]
fn both_ends_may_close_at_once() {
    let mut pair = Pair::connected();
    let now = pair.now;
    pair.client.conn().close(now, 1, b"");
    pair.server.conn().close(now, 2, b"");
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
    let now = pair.now;
    pair.client.conn().set_kept_alive(now, true);
    pair.run_for(300 * SECOND);
    assert_eq!(pair.loss(Side::Client), None);
    let now = pair.now;
    pair.client.conn().set_kept_alive(now, false);
    pair.run_for(40 * SECOND);
    assert_eq!(pair.loss(Side::Client), Some(ConnectionError::TimedOut));
}

#[test]
fn two_ends_that_keep_a_connection_alive_do_not_keep_each_other_busy() {
    let mut pair = Pair::connected();
    let now = pair.now;
    pair.client.conn().set_kept_alive(now, true);
    pair.server.conn().set_kept_alive(now, true);
    let before = pair.datagrams[0].len() + pair.datagrams[1].len();
    pair.run_for(300 * SECOND);
    let sent = pair.datagrams[0].len() + pair.datagrams[1].len() - before;
    assert!((80..200).contains(&sent), "{sent}");
}

#[test]
fn who_is_kept_alive_outlasts_an_outage_at_any_moment() {
    for start in 0..10 {
        let mut pair = Pair::connected();
        let now = pair.now;
        pair.client.conn().set_kept_alive(now, true);
        pair.run_for(start * SECOND);
        pair.filter = Box::new(|_, _| false);
        pair.run_for(20 * SECOND);
        pair.filter = Box::new(|_, _| true);
        pair.run_for(60 * SECOND);
        assert_eq!((pair.loss(Side::Client), pair.loss(Side::Server)), (None, None), "{start}");
    }
}

#[test]
fn the_shorter_of_both_timeouts_counts() {
    let short =
        TransportConfig { max_idle_timeout: Some(5 * SECOND), ..TransportConfig::default() };
    let mut pair = Pair::with(TransportConfig::default(), short);
    pair.handshake();
    pair.run_for(6 * SECOND);
    assert_eq!(pair.loss(Side::Client), Some(ConnectionError::TimedOut));
}

#[test]
fn only_the_first_unanswered_packet_restarts_the_idle_timer() {
    let mut pair = Pair::connected();
    pair.filter = Box::new(|_, _| false);
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
    let config = TransportConfig { keep_alive: Some(10 * SECOND), ..TransportConfig::default() };
    let mut pair = Pair::with(config, TransportConfig::default());
    pair.handshake();
    pair.run_for(100 * SECOND);
    assert_eq!((pair.loss(Side::Client), pair.loss(Side::Server)), (None, None));
}

/// Otherwise a packet that is lost, and its repetition, could end a connection on a slow path.
#[test]
fn an_idle_connection_lives_for_three_probe_timeouts_at_least() {
    let impatient = || TransportConfig { max_idle_timeout: Some(MS), ..TransportConfig::default() };
    let mut pair = Pair::with(impatient(), impatient());
    while !pair.client.conn().handshake.confirmed {
        assert!(pair.step(pair.now + SECOND));
    }
    pair.filter = Box::new(|_, _| false);
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
    let mut pair = Pair::connected();
    let (now, pto) = (pair.now, pair.client.conn().pto());
    pair.client.conn().close(now, 0, b"");
    pair.run_for(3 * pto - MS);
    assert!(!pair.client.conn().is_drained());
    pair.run_for(2 * MS);
    assert!(pair.client.conn().is_drained());
    let mut pair = Pair::connected();
    let (now, pto) = (pair.now, pair.server.conn().pto());
    pair.client.conn().close(now, 0, b"");
    while !pair.server.conn().is_closed() {
        assert!(pair.step(pair.now + SECOND));
    }
    pair.run_for(3 * pto - MS);
    assert!(!pair.server.conn().is_drained());
    pair.run_for(2 * MS);
    assert!(pair.server.conn().is_drained());
}

/// Records in which spaces packets are sent.
struct Spaces(Arc<Mutex<BTreeSet<SpaceId>>>);

impl Observer for Spaces {
    fn observe(&mut self, _: Instant, observation: &Observation<'_>) {
        if let Observation::PacketSent { space, .. } = observation {
            self.0.lock().unwrap().insert(*space);
        }
    }
}

/// A server does not know which keys its client has until the handshake is confirmed (RFC 9000 section
/// 10.2.3).
#[test]
fn a_server_that_closes_during_the_handshake_says_so_under_all_keys() {
    let mut pair = Pair::new();
    while pair.server.connection.is_none() {
        assert!(pair.step(pair.now + SECOND));
    }
    pair.flush(Side::Server);
    let (now, spaces) = (pair.now, Arc::new(Mutex::new(BTreeSet::new())));
    let server = pair.server.conn();
    server.set_observer(now, Box::new(Spaces(spaces.clone())));
    server.close(now, 5, b"");
    pair.flush(Side::Server);
    assert!(spaces.lock().unwrap().iter().eq(&SpaceId::ALL));
}

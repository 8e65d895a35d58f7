//! Exchange of connection identifiers (RFC 9000 section 5.1).

use super::*;
use crate::path::cids::MAX_LOCAL_CIDS;
use crate::{ConnectError, ConnectionIdGenerator, QuicLb};
use rand::RngCore;

#[test]
fn spare_identifiers_are_issued_and_replaced_when_retired() {
    let mut pair = Pair::connected();
    assert_eq!(pair.server.conn().identity.cids.iter().count(), 4);
    let old: Vec<_> = pair.server.conn().identity.cids.iter().collect();
    assert_eq!(pair.client.conn().path.remote_cids.advance(), Ok(true));
    pair.run_for(SECOND);
    let new: Vec<_> = pair.server.conn().identity.cids.iter().collect();
    assert_eq!(new.len(), 4);
    assert!(!new.contains(&old[0]));
    assert_eq!(pair.loss(Side::Server), None);
}

#[test]
fn an_end_goes_over_to_a_new_identifier_when_told_to() {
    let mut pair = Pair::connected();
    let before = pair.client.conn().path.remote_cids.active();
    // The server has already issued 0 to 3.
    let spare = pair.server.conn().identity.cids.iter().nth(2).unwrap();
    pair.client.conn().inject_frame(&new_id(4, 2)).unwrap();
    assert_ne!(pair.client.conn().path.remote_cids.active(), before);
    assert_eq!(pair.client.conn().path.remote_cids.active(), spare);
    pair.carry(Side::Client, 10_000);
    assert!(!pair.server.conn().identity.cids.iter().any(|cid| cid == before), "it was retired");
}

#[test]
fn wrong_retirements_are_violations() {
    for sequence in [0, 4, 1 << 40] {
        let mut pair = Pair::connected();
        // 0 is the identifier that the packet is sent to; the other identifiers were never issued.
        pair.inject(Side::Client, &[Frame::RetireConnectionId(sequence)]);
        assert_eq!(pair.error(Side::Server), Some(TransportErrorCode::PROTOCOL_VIOLATION));
    }
}

#[test]
fn a_flood_of_identifiers_ends_the_connection() {
    // More than the limit at once.
    let mut pair = Pair::connected();
    pair.inject(Side::Client, &[new_id(4, 0), new_id(5, 0)]);
    let limit = Some(TransportErrorCode::CONNECTION_ID_LIMIT_ERROR);
    assert_eq!(pair.error(Side::Server), limit);
    // The peer may also issue identifiers one by one, and never acknowledge the retirements.
    let mut pair = Pair::connected();
    pair.cut();
    let mut sequence = 3;
    while pair.loss(Side::Server).is_none() {
        sequence += 1;
        pair.inject(Side::Client, &[new_id(sequence, sequence)]);
        assert!(sequence < 100, "unbounded");
    }
    assert_eq!(pair.error(Side::Server), limit);
}

const LIFETIME: Duration = Duration::from_secs(10);

fn rotating() -> EndpointConfig {
    EndpointConfig { connection_id_lifetime: Some(LIFETIME), ..EndpointConfig::default() }
}

#[test]
fn identifiers_in_use_are_replaced_when_their_time_is_over() {
    let mut pair = Pair::with_endpoints([rotating(), rotating()]).ready();
    let mut lost_once = false;
    for round in 0..20 {
        let before: Vec<Vec<_>> = [Side::Client, Side::Server]
            .map(|side| pair.end(side).conn().identity.cids.iter().collect())
            .into();
        pair.carry(Side::Client, 50_000);
        pair.carry(Side::Server, 50_000);
        // Some announcements and retirements are lost.
        pair.filter = Box::new(move |_, datagram| !(round % 3 == 0 && datagram[1] % 4 == 0));
        pair.run_for(LIFETIME);
        pair.mend();
        pair.run_for(3 * SECOND);
        for side in [Side::Client, Side::Server] {
            let after: Vec<_> = pair.end(side).conn().identity.cids.iter().collect();
            assert_eq!(after.len(), MAX_LOCAL_CIDS);
            lost_once |= after.iter().any(|cid| before[side as usize].contains(cid));
        }
    }
    assert!(!lost_once, "some were not replaced");
    pair.lives();
}

#[test]
fn replacing_identifiers_keeps_no_idle_connection_alive() {
    let mut pair = Pair::with_endpoints([rotating(), rotating()]).ready();
    pair.send(Side::Client, Dir::Uni, &pattern(50_000));
    pair.run_for(60 * SECOND);
    assert!(pair.client.conn().is_drained() && pair.server.conn().is_drained());
}

#[test]
fn identifiers_of_load_balancers_are_routed() {
    let config = "server-id=0102 nonce=8 key=8f95f09245765f80256934e50c66207f";
    let config = EndpointConfig {
        connection_ids: Arc::new(QuicLb::new(config.parse().unwrap()).unwrap()),
        ..rotating()
    };
    let mut pair = Pair::with_endpoints([rotating(), config]).ready();
    for _ in 0..3 {
        pair.carry(Side::Client, 50_000);
        let cid = pair.client.conn().path.remote_cids.active();
        assert_eq!((cid.len(), cid.as_slice()[0]), (11, 10));
        pair.run_for(LIFETIME + 2 * SECOND);
        assert_ne!(pair.client.conn().path.remote_cids.active(), cid);
    }
}

#[test]
fn a_generator_that_repeats_itself_stalls_nothing() {
    #[derive(Debug)]
    struct Stuck;

    impl ConnectionIdGenerator for Stuck {
        fn size(&self) -> usize {
            8
        }

        fn generate(&self, _random: &mut dyn RngCore) -> ConnectionId {
            ConnectionId::new(&[7; 8]).unwrap()
        }
    }

    let config = EndpointConfig { connection_ids: Arc::new(Stuck), ..EndpointConfig::default() };
    let mut pair = Pair::with_endpoints([config, EndpointConfig::default()]);
    let (now, remote) = (pair.now, pair.server.address);
    let config = client_config();
    let second = pair.client.endpoint.connect(now, config, remote, "localhost");
    assert_eq!(second.err(), Some(ConnectError::NoConnectionId));
}

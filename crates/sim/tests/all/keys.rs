//! Key updates while packets are lost, delayed and damaged.

use std::time::Duration;

use crate::common::{MS, app, incremental};
use sutura_proto::{Connection, ConnectionStats, TransportConfig};
use sutura_random::Rng;
use sutura_sim::{BulkClient, BulkServer, Host, Network, NodeId, Transfer};

const PATH: &str = "rate=20mbit delay=20ms jitter=5ms,reorder loss=bern:0.03 reorder=0.05,60ms \
                    duplicate=0.05 corrupt=0.02";

fn hosts(seed: u64) -> (Network, NodeId, NodeId) {
    // Half of the uploads are protected.
    let protection = incremental(2, 25 * MS).filter(|_| seed.is_multiple_of(2));
    let transfer = Transfer { protection, ..Transfer::both(4_000_000) };
    let app = BulkClient::new([transfer], 1, Duration::ZERO);
    crate::common::hosts(seed, PATH, &TransportConfig::default(), app, BulkServer::default)
}

fn connection(network: &mut Network, node: NodeId) -> Option<&mut Connection> {
    let host = network.node_mut::<Host>(node).unwrap();
    let handle = host.connections().next()?.0;
    host.connection_mut(handle)
}

fn stats(network: &mut Network, node: NodeId) -> ConnectionStats {
    connection(network, node).unwrap().stats()
}

/// Either end updates its keys, sometimes both at the same time.
#[test]
fn keys_change_while_data_flows() {
    for seed in 0..10 {
        let mut rng = Rng::new(seed);
        let (mut network, client, server) = hosts(seed);
        let mut next = 100 * MS;
        let mut updates = 0;
        loop {
            assert!(network.step().unwrap() && network.now() < Duration::from_secs(60));
            if app::<BulkClient>(&network, client).unwrap().is_done() {
                break;
            }
            if network.now() < next {
                continue;
            }
            // Updates are far enough apart that no packet arrives two key phases late.
            next = network.now() + MS * (100 + rng.below(200) as u32);
            let both = rng.below(4) == 0;
            let client_first = rng.below(2) == 0;
            for (node, begins) in [(client, client_first || both), (server, !client_first || both)]
            {
                let connection = connection(&mut network, node);
                updates += u64::from(begins && connection.is_some_and(Connection::update_keys));
            }
        }
        let until = network.now() + Duration::from_secs(2);
        network.run_until(until).unwrap();
        let (ours, theirs) = (stats(&mut network, client), stats(&mut network, server));
        let recovered = theirs.fec.recovered;
        assert!(recovered > 10 || !seed.is_multiple_of(2), "seed {seed}: {recovered} recovered");
        assert!(updates > 3, "seed {seed}: {updates} updates");
        // The peer does not follow the last update if it has nothing left to send.
        let (ours_n, theirs_n) = (ours.key_updates, theirs.key_updates);
        assert!(ours_n.abs_diff(theirs_n) <= 1, "seed {seed}: {ours_n} and {theirs_n}");
        assert!((updates / 2..=updates).contains(&ours_n.max(theirs_n)), "seed {seed}");
        // Packets that cannot be decrypted were damaged, except for a few that arrived much too
        // late.
        let (up, down) = (network.link_stats(client, server), network.link_stats(server, client));
        let damaged = up.corrupted + down.corrupted;
        let closed = ours.undecryptable + theirs.undecryptable;
        assert!(
            closed <= damaged + damaged / 10 + 5,
            "seed {seed}: {closed} undecryptable, {damaged} damaged"
        );
    }
}

#[test]
fn keys_do_not_change_before_the_peer_has_followed() {
    let (mut network, client, _) = hosts(1);
    assert!(!connection(&mut network, client).unwrap().update_keys(), "before the handshake");
    while !connection(&mut network, client).unwrap().update_keys() {
        network.step().unwrap();
    }
    assert!(!connection(&mut network, client).unwrap().update_keys(), "at once again");
}

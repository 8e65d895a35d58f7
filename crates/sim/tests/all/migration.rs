//! Clients whose address changes during a transfer.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::common::{ALGORITHMS, Beside, address, app, hosts};
use sutura_proto::policy::Block;
use sutura_proto::{Algorithm, Connection, Protection, TransportConfig};
use sutura_sim::{BulkClient, BulkServer, Host, Network, NodeId, Transfer};

const START: Duration = Duration::from_secs(1);
const RTT: Duration = Duration::from_millis(50);
/// Probes alone carry fewer bytes, so this many show that the transfer goes on.
const FLOWING: u64 = 20_000;

/// A client that awaits responses.
type Awaiting = Beside<BulkClient, fn(Instant, &mut Connection)>;

fn await_responses(now: Instant, quic: &mut Connection) {
    if !quic.is_handshaking() {
        quic.set_kept_alive(now, true);
    }
}

/// Two repair symbols for every ten source symbols.
fn blocks() -> Protection {
    Protection::new(Arc::new(Block::new(10, 2).unwrap()))
}

fn transport(algorithm: Algorithm) -> TransportConfig {
    TransportConfig::default().with_congestion(Arc::new(algorithm))
}

fn connection(network: &Network, node: NodeId) -> &Connection {
    let host = network.node::<Host>(node).unwrap();
    host.connections().next().unwrap_or_else(|| panic!("{:?}", host.finished())).1
}

/// The state of a transfer after the last change of address.
struct Resumed {
    /// How long it took until data flowed again.
    took: Duration,
    /// How many symbols were recovered from then on.
    recovered: u64,
}

/// Runs a transfer during which the client's address changes to each of `addresses`, a second apart.
fn resumes(
    seed: u64,
    path: &str,
    config: &TransportConfig,
    transfer: Transfer,
    addresses: &[SocketAddr],
    deliberate: bool,
) -> Resumed {
    let (down, protection) = (transfer.download > 0, transfer.protection.clone());
    let client = BulkClient::new([transfer], 1, Duration::ZERO);
    let client: Awaiting = Beside(client, await_responses);
    let server = move || BulkServer::new(protection.clone());
    let (mut network, client, server) = hosts(seed, path, config, client, server);
    for (n, address) in (1..).zip(addresses) {
        network.run_until(n * START).unwrap();
        network.move_to(client, *address);
        let now = network.clock().at(network.now());
        let host = network.node_mut::<Host>(client).unwrap();
        let handle = host.connections().next().unwrap().0;
        if deliberate {
            host.connection_mut(handle).unwrap().local_address_changed(now);
        }
    }
    let (moved, receiver) = (network.now(), if down { client } else { server });
    let before = connection(&network, receiver).stats().received.bytes;
    let (mut resumed, mut recovered) = (None, 0);
    loop {
        assert!(network.step().unwrap(), "it ended");
        assert!(network.now() < Duration::from_secs(300), "it takes too long");
        let stats = connection(&network, receiver).stats();
        let received = stats.received.bytes;
        // The bytes exclude data that had arrived before the client moved, or was under way from the old
        // address.
        if resumed.is_none() && received > before + FLOWING && network.now() > moved + RTT {
            resumed = Some(network.now() - moved);
            recovered = stats.fec.recovered;
        }
        assert!(app::<BulkServer>(&network, server).is_some());
        if app::<Awaiting>(&network, client).unwrap().0.is_done() {
            break;
        }
    }
    assert_eq!(connection(&network, server).remote_address(), *addresses.last().unwrap());
    let recovered = connection(&network, receiver).stats().fec.recovered - recovered;
    Resumed { took: resumed.unwrap(), recovered }
}

fn port(n: u16) -> SocketAddr {
    (address(1).ip(), 50_000 + n).into()
}

#[test]
fn transfers_survive_another_address() {
    // A client that receives nothing speaks after a second. The rest is the validation of the path,
    // and a window that starts anew.
    let soon = Duration::from_secs(1) + 10 * RTT;
    for algorithm in ALGORITHMS {
        for fec in [false, true] {
            for transfer in [Transfer::download(3_000_000), Transfer::upload(3_000_000)] {
                for (to, deliberate) in [(port(1), false), (address(9), false), (address(9), true)]
                {
                    let config = transport(algorithm);
                    let protection = fec.then(blocks);
                    let transfer = Transfer { protection, ..transfer.clone() };
                    let path = "rate=10mbit delay=25ms queue=60p";
                    let resumed = resumes(3, path, &config, transfer.clone(), &[to], deliberate);
                    let took = resumed.took;
                    println!(
                        "{algorithm:?}, FEC {fec}, {transfer:?}, {to}, {deliberate}: {took:?}"
                    );
                    assert!(took <= soon, "{algorithm:?}, {fec}, {transfer:?}, {to}: {took:?}");
                }
            }
        }
    }
}

#[test]
fn losses_and_packets_from_the_old_address_do_no_harm() {
    for seed in 0..10 {
        for algorithm in ALGORITHMS {
            for to in [[port(1), port(2)], [address(8), address(9)]] {
                let path = "rate=10mbit delay=25ms jitter=40ms,reorder queue=60p loss=bern:0.03";
                let (config, protected) = (transport(algorithm), seed % 2 == 0);
                let plan = [Transfer::download(3_000_000), Transfer::upload(3_000_000)];
                for transfer in plan {
                    let transfer = Transfer { protection: protected.then(blocks), ..transfer };
                    let text = format!("{seed}, {algorithm:?}, {to:?}, {transfer:?}");
                    let resumed = resumes(seed, path, &config, transfer, &to, seed % 3 == 0);
                    println!("{text}: {} recovered", resumed.recovered);
                    assert!(!protected || resumed.recovered > 0, "{text}");
                }
            }
        }
    }
}

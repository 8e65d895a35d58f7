//! Clients whose address changes during a transfer.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use common::{ALGORITHMS, MS, address, hosts, incremental};
use sutura_proto::policy::Auto;
use sutura_proto::{Algorithm, Connection, Event, TransportConfig};
use sutura_sim::{App, AppError, BulkClient, BulkServer, Host, Network, NodeId, Transfer};

const START: Duration = Duration::from_secs(1);
const RTT: Duration = Duration::from_millis(50);
/// More than probes: the transfer itself goes on.
const FLOWING: u64 = 20_000;

/// A client that awaits responses.
struct Awaiting(BulkClient);

impl App<Connection> for Awaiting {
    fn on_event(
        &mut self,
        now: Instant,
        quic: &mut Connection,
        event: Event,
    ) -> Result<(), AppError> {
        if event == Event::Connected {
            quic.set_kept_alive(now, true);
        }
        self.0.on_event(now, quic, event)
    }

    fn poll(&mut self, now: Instant, quic: &mut Connection) -> Result<Option<Instant>, AppError> {
        self.0.poll(now, quic)
    }
}

fn transport(algorithm: Algorithm, fec: bool) -> TransportConfig {
    TransportConfig {
        congestion: Arc::new(algorithm),
        redundancy: fec.then(|| Arc::new(Auto::default()) as _),
        ..TransportConfig::default()
    }
}

fn connection(network: &Network, node: NodeId) -> &Connection {
    let host = network.node::<Host>(node).unwrap();
    host.connections().next().unwrap_or_else(|| panic!("{:?}", host.finished())).1
}

/// Runs a transfer during which the client's address changes to each of `addresses`, a second apart.
/// Returns how long after the last change data flows again.
fn resumes(
    seed: u64,
    path: &str,
    config: &TransportConfig,
    transfer: Transfer,
    addresses: &[SocketAddr],
    deliberate: bool,
) -> Duration {
    let down = transfer.download > 0;
    let app = Awaiting(BulkClient::new([transfer], 1, Duration::ZERO));
    let (mut network, client, server) = hosts::<BulkServer>(seed, path, config, app);
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
    let mut resumed = None;
    loop {
        assert!(network.step().unwrap(), "it ended");
        assert!(network.now() < Duration::from_secs(300), "it takes too long");
        for node in [client, server] {
            let host = network.node::<Host>(node).unwrap();
            assert_eq!((host.connection_error(), host.app_error()), (None, None));
        }
        let received = connection(&network, receiver).stats().received.bytes;
        // What had arrived before it moved, and what was under way from the old address.
        if resumed.is_none() && received > before + FLOWING && network.now() > moved + RTT {
            resumed = Some(network.now() - moved);
        }
        let host = network.node::<Host>(client).unwrap();
        let handle = host.connections().next().unwrap().0;
        if host.app::<Awaiting>(handle).unwrap().0.is_done() {
            break;
        }
    }
    assert_eq!(connection(&network, server).remote_address(), *addresses.last().unwrap());
    resumed.unwrap()
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
                    let config = transport(algorithm, fec);
                    let path = "rate=10mbit delay=25ms queue=60p";
                    let took = resumes(3, path, &config, transfer.clone(), &[to], deliberate);
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
                let protection = incremental(2, 25 * MS).filter(|_| seed % 2 == 0);
                let plan = [Transfer::download(3_000_000), Transfer::upload(3_000_000)];
                for transfer in plan {
                    let transfer = Transfer { protection: protection.clone(), ..transfer };
                    resumes(seed, path, &transport(algorithm, true), transfer, &to, seed % 3 == 0);
                }
            }
        }
    }
}

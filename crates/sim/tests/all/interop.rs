//! Interoperability with quinn-proto, in both roles, over lossy links and with real TLS.

use std::sync::Arc;
use std::time::Duration;

use crate::common::{address, link, linked, quinn_connects, tail, tls};
use sutura_proto::crypto::null::NullServerConfig;
use sutura_proto::{Protection, ServerConfig, TransportConfig};
use sutura_sim::quinn::{QuinnHost, null_client, null_server};
use sutura_sim::{
    BulkClient, BulkServer, FailureKind, Host, Network, Node, NodeId, TraceLog, Transfer,
};

const SEEDS: u64 = 12;
const BYTES: u64 = 300_000;

/// A path with every kind of impairment, and a different loss rate for each seed.
fn path(seed: u64) -> sutura_link::LinkConfig {
    let loss = seed % 4 * 5;
    link(&format!(
        "rate=20mbit queue=100p delay=20ms jitter=5ms,reorder loss=bern:{loss}% \
         reorder=0.02,15ms duplicate=0.01 corrupt=0.01"
    ))
}

fn transfers() -> Vec<Transfer> {
    vec![Transfer::both(BYTES), Transfer::download(0), Transfer::upload(20_000)]
}

/// Panics with the seed and the last events if there is an error.
#[track_caller]
fn check(network: &Network, seed: u64, error: Option<String>) {
    if let Some(error) = error {
        let failure = network.failure(FailureKind::App(error));
        panic!("seed {seed}: {failure}");
    }
}

/// The error of a host of ours, if there is any.
fn error(host: &Host) -> Option<String> {
    let of_app = host.app_error().map(ToString::to_string);
    of_app.or_else(|| Some(host.connection_error()?.to_string()))
}

fn lay(seed: u64, client: impl Node, server: impl Node) -> (Network, NodeId, NodeId) {
    let (mut network, client, server) = linked(seed, &path(seed), client, server);
    network.set_tracer(Box::new(TraceLog::new(60)));
    (network, client, server)
}

/// Runs the transfers of a client of quinn's with a server of ours.
fn run_theirs(
    seed: u64,
    server: Arc<ServerConfig>,
    protection: Option<Protection>,
    config: quinn_proto::ClientConfig,
) -> (Network, NodeId, NodeId) {
    let accept = Box::new(move || Box::new(BulkServer::new(protection.clone())) as _);
    let server = Host::server(server, accept, seed);
    let (mut network, client, server) = lay(seed, QuinnHost::client(seed), server);
    let app = BulkClient::new(transfers(), 1, Duration::ZERO);
    let handle = quinn_connects(&mut network, client, config, app);
    run(&mut network, seed, |network| {
        let (theirs, ours) = (network.node::<QuinnHost>(client), network.node::<Host>(server));
        let (theirs, ours) = (theirs.unwrap(), ours.unwrap());
        check(network, seed, error(ours).or_else(|| theirs.error()));
        theirs.app::<BulkClient>(handle).unwrap().is_done()
    });
    (network, client, server)
}

fn run(network: &mut Network, seed: u64, mut done: impl FnMut(&Network) -> bool) {
    let limit = Duration::from_secs(120);
    while !done(network) {
        assert!(network.step().unwrap_or_else(|e| panic!("seed {seed}: {e}")), "seed {seed}: idle");
        assert!(network.now() < limit, "seed {seed}: not done after {limit:?}");
    }
}

#[test]
fn our_client_and_their_server() {
    for seed in 0..SEEDS {
        let accept = Box::new(|| Box::new(BulkServer::default()) as _);
        let server = QuinnHost::server(tls::their_server(), accept, seed);
        let (mut network, client, server) = lay(seed, Host::client(seed), server);
        let config = tls::our_client(&TransportConfig::default());
        // Requesting protection must not break anything if the peer does not support it.
        let protect = |t| Transfer { protection: tail(3), ..t };
        let app = BulkClient::new(transfers().into_iter().map(protect), 1, Duration::ZERO);
        let now = network.clock().at(Duration::ZERO);
        let host = network.node_mut::<Host>(client).unwrap();
        let handle = host.connect(now, config, address(2), tls::NAME, app).unwrap();
        run(&mut network, seed, |network| {
            let (ours, theirs) = (network.node::<Host>(client), network.node::<QuinnHost>(server));
            let (ours, theirs) = (ours.unwrap(), theirs.unwrap());
            check(network, seed, error(ours).or_else(|| theirs.error()));
            ours.app::<BulkClient>(handle).unwrap().is_done()
        });
        let (_, connection) = network.node::<Host>(client).unwrap().connections().next().unwrap();
        assert!(!connection.stats().fec.negotiated);
        assert_eq!(connection.stats().fec.source_symbols_sent, 0);
        assert_eq!(connection.alpn().unwrap(), b"perf");
        let now = network.clock().at(network.now());
        network.node_mut::<Host>(client).unwrap().close(now, handle, 0, b"");
        while network.step().unwrap() {}
        assert_eq!(network.node::<Host>(client).unwrap().endpoint_len(), 0, "seed {seed}");
        assert!(network.node::<QuinnHost>(server).unwrap().is_empty(), "seed {seed}");
    }
}

#[test]
fn their_client_and_our_server() {
    for seed in 0..SEEDS {
        let config = tls::our_server(&TransportConfig::default());
        let (mut network, client, server) = run_theirs(seed, config, tail(3), tls::their_client());
        let now = network.clock().at(network.now());
        network.node_mut::<QuinnHost>(client).unwrap().close(now);
        while network.step().unwrap() {}
        assert!(network.node::<QuinnHost>(client).unwrap().is_empty(), "seed {seed}");
        assert_eq!(network.node::<Host>(server).unwrap().endpoint_len(), 0, "seed {seed}");
    }
}

/// Without TLS, quinn speaks the null handshake and packet protection of ours.
#[test]
fn quinn_without_tls_and_our_server() {
    let run_once = |seed| {
        let crypto = Arc::new(NullServerConfig::new(vec![b"perf".to_vec()]));
        let config = Arc::new(ServerConfig::new(crypto, Arc::default()));
        let (network, client, server) = run_theirs(seed, config, None, null_client(b"perf"));
        (network.now(), network.link_stats(client, server))
    };
    for seed in 0..SEEDS {
        assert_eq!(run_once(seed), run_once(seed), "a seed repeats a run");
    }
}

#[test]
fn a_server_of_quinn_without_tls_refuses_another_protocol() {
    let accept = Box::new(|| Box::new(BulkServer::default()) as _);
    let server = QuinnHost::server(Arc::new(null_server(b"perf")), accept, 2);
    let path = link("delay=10ms");
    let (mut network, client, _) = linked(1, &path, QuinnHost::client(1), server);
    let app = BulkClient::new(transfers(), 1, Duration::ZERO);
    quinn_connects(&mut network, client, null_client(b"other"), app);
    network.run_until(Duration::from_millis(100)).unwrap();
    let error = network.node::<QuinnHost>(client).unwrap().error();
    assert!(error.as_ref().is_some_and(|e| e.contains("no application protocol")), "{error:?}");
}

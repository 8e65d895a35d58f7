//! By the connections at one endpoint.

use crate::Error;
use crate::exchange::Exchanges;
use crate::gauge::Meter;
use crate::load::Load;
use crate::pair::Pair;
use std::mem;
use std::net::SocketAddr;
use std::time::Duration;
use sutura_proto::{Connection, Side, SocketFeatures, TransportConfig};

/// Longer than a handshake takes.
const HANDSHAKE: Duration = Duration::from_millis(200);
/// How many exchanges are measured, and come before.
const EXCHANGES: usize = 400;

fn transport() -> TransportConfig {
    TransportConfig::default().with_max_idle_timeout(None)
}

/// Connects other clients to the endpoint of the server, and returns the server's connections.
fn joined(server: &mut Pair, others: u32) -> Result<Vec<Box<Connection>>, Error> {
    let transport = transport();
    let join = |number: u32| {
        let mut seed = [3; 32];
        seed[..4].copy_from_slice(&number.to_be_bytes());
        let [_, a, b, c] = number.to_be_bytes();
        let address = SocketAddr::from(([10, a, b, c], 40_000));
        let mut pair = Pair::of(
            seed,
            address,
            server.now,
            SocketFeatures::default(),
            &transport,
            server.meter,
        )?;
        mem::swap(&mut pair.server.endpoint, &mut server.server.endpoint);
        pair.pass(HANDSHAKE);
        mem::swap(&mut pair.server.endpoint, &mut server.server.endpoint);
        server.now = pair.now;
        let connection = pair.server.connection.take().ok_or("a client was not let in")?;
        if connection.is_handshaking() {
            return Err("a handshake does not end".into());
        }
        Ok(connection)
    };
    (0..others).map(join).collect()
}

/// Exchanges one after another beside idle connections.
pub(super) fn datagrams(meter: Meter, others: f64) -> Result<u64, Error> {
    let mut pair = Pair::connected(&transport(), meter)?;
    let _others = joined(&mut pair, others as u32)?;
    let mut exchanges = Exchanges::new(pair);
    let ask = |exchanges: &mut Exchanges| (0..EXCHANGES).try_for_each(|_| exchanges.ask(1));
    ask(&mut exchanges)?;
    let sent = exchanges.pair().client.sent;
    exchanges.pair().meter.switch(true);
    ask(&mut exchanges)?;
    Ok(exchanges.pair().client.sent - sent)
}

/// Probe timeouts beside idle connections.
pub(super) fn timers(meter: Meter, others: f64) -> Result<u64, Error> {
    let mut pair = Pair::connected(&transport(), meter)?;
    let _others = joined(&mut pair, others as u32)?;
    pair.probe(Side::Server)
}

/// The memory of idle connections, with what the endpoint keeps of them.
pub(super) fn held(meter: Meter, others: f64) -> Result<u64, Error> {
    let mut pair = Pair::connected(&transport(), meter)?;
    pair.meter.switch(true);
    let _others = joined(&mut pair, others as u32)?;
    Ok(others as u64)
}

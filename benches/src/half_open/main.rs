//! Memory that a server spends on handshakes that clients begin and never continue.
//!
//! Each of many clients sends its first datagram, a whole ClientHello, and the server answers with
//! as much as it may. What is counted is what the allocator has handed out to the server's side, so
//! that neither the kernel nor the allocator's reserves are in the figures.

mod ours;
mod theirs;

use cap::Cap;
use clap::{Parser, ValueEnum};
use serde::Serialize;
use std::alloc::System;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;
use sutura_analysis::report::Report;
use sutura_analysis::table::{Cell, Table};
use sutura_benches::output::Output;
use sutura_benches::tls::{Identity, aes_128_gcm};
use sutura_benches::{Error, exit_code};
use sutura_proto::crypto::rustls::RustlsClientConfig;
use sutura_proto::{ClientConfig, Endpoint, EndpointConfig, TransportConfig};

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// Bytes allocated for each handshake that was begun.
#[derive(Debug, Parser)]
struct Options {
    /// How many clients begin a handshake
    #[arg(long, default_value_t = 10_000)]
    clients: usize,
    /// Which servers
    #[arg(long, value_delimiter = ',', value_enum, default_values_t = [Name::Sutura, Name::Quinn])]
    servers: Vec<Name>,
    #[command(flatten)]
    output: Output,
}

/// The servers that can be measured.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum Name {
    Sutura,
    Quinn,
}

/// A server, step by step.
pub trait Server {
    /// What it is.
    fn name(&self) -> &'static str;
    /// A client's datagram arrives, and nothing is decided about it.
    fn receive(&mut self, now: Instant, from: SocketAddr, datagram: &[u8]) -> Result<(), Error>;
    /// All clients are let in, and get an answer. Returns how many handshakes are under way.
    fn answer(&mut self, now: Instant) -> Result<usize, Error>;
}

#[derive(Debug, Serialize)]
struct Measurement {
    server: &'static str,
    /// Bytes for each client whose datagram waits for a decision.
    waiting: f64,
    /// Bytes for each client that was answered.
    answered: f64,
}

/// The first datagrams of so many clients at as many addresses.
fn first_datagrams(
    identity: &Identity,
    clients: usize,
    now: Instant,
) -> Result<Vec<(SocketAddr, Vec<u8>)>, Error> {
    let crypto = Arc::new(RustlsClientConfig::new(identity.client_tls(aes_128_gcm())?)?);
    let transport = Arc::new(TransportConfig { fec: None, ..TransportConfig::default() });
    let mut endpoint = Endpoint::new(Arc::new(EndpointConfig::default()), None, [7; 32]);
    let server = (Ipv4Addr::new(192, 0, 2, 1), 443).into();
    let mut datagrams = Vec::with_capacity(clients);
    for n in 0..clients {
        let config = ClientConfig { crypto: crypto.clone(), transport: transport.clone() };
        let (_, mut client) = endpoint.connect(now, config, server, "localhost")?;
        let mut datagram = Vec::new();
        client.poll_transmit(now, 1, &mut datagram).ok_or("a client says nothing")?;
        datagram.shrink_to_fit();
        let [_, a, b, c] = (n as u32).to_be_bytes();
        datagrams.push(((Ipv4Addr::new(10, a, b, c), 4433).into(), datagram));
    }
    Ok(datagrams)
}

fn measure(
    server: &mut dyn Server,
    now: Instant,
    datagrams: &[(SocketAddr, Vec<u8>)],
) -> Result<Measurement, Error> {
    let before = ALLOCATOR.allocated();
    let each = || (ALLOCATOR.allocated().saturating_sub(before)) as f64 / datagrams.len() as f64;
    for (from, datagram) in datagrams {
        server.receive(now, *from, datagram)?;
    }
    let waiting = each();
    let count = server.answer(now)?;
    if count != datagrams.len() {
        return Err(format!("{} let in {count} of {}", server.name(), datagrams.len()).into());
    }
    Ok(Measurement { server: server.name(), waiting, answered: each() })
}

fn report(measurements: &[Measurement], clients: usize) -> Report {
    let mut table = Table::new(
        "Bytes for each handshake",
        ["server", "the first datagram waits", "answered", "of the first"],
    );
    let first = measurements.first().map_or(1.0, |entry| entry.answered);
    for entry in measurements {
        table.row([
            Cell::from(entry.server),
            format!("{:.0}", entry.waiting).into(),
            format!("{:.0}", entry.answered).into(),
            format!("{:.2}", entry.answered / first).into(),
        ]);
    }
    let text = vec![format!(
        "{clients} clients begin a handshake with TLS 1.3 and never go on. The bytes are those that the \
         allocator has handed out to the server: before it has decided about a client, and after it has \
         let it in and answered with as much as it may send to an address that is not validated."
    )];
    Report {
        name: "half-open".to_owned(),
        title: "Memory of handshakes that nobody continues".to_owned(),
        text,
        tables: vec![table],
        ..Report::default()
    }
}

fn run(options: &Options) -> Result<(), Error> {
    let identity = Identity::new()?;
    let now = Instant::now();
    let datagrams = first_datagrams(&identity, options.clients.max(1), now)?;
    let mut measurements = Vec::new();
    for name in &options.servers {
        let mut server: Box<dyn Server> = match name {
            Name::Sutura => Box::new(ours::Sutura::new(&identity, options.clients)?),
            Name::Quinn => Box::new(theirs::Quinn::new(&identity, options.clients)?),
        };
        measurements.push(measure(&mut *server, now, &datagrams)?);
    }
    options.output.write("half-open", &report(&measurements, options.clients), &measurements)
}

fn main() -> ExitCode {
    exit_code("half-open", run(&Options::parse()))
}

//! The memory that a server spends on handshakes that clients begin and never continue.
//!
//! Each of many clients sends its first datagram, a whole ClientHello, and the server answers with as many
//! bytes as it may. Every server has a process of its own. The figures count the memory that malloc has
//! handed out in that process, to Rust and to C alike, so that they include neither the kernel nor the
//! allocator's reserves.

mod child;
mod clients;
mod heap;
#[cfg(feature = "quiche")]
mod quiche;
mod quinn;
#[cfg(feature = "s2n-quic")]
mod s2n_quic;
mod server;
mod sutura;

use clap::Parser;
use std::process::ExitCode;
use sutura_analysis::report::Report;
use sutura_analysis::table::{Cell, Table};
use sutura_benches::output::Output;
use sutura_benches::tls::Identity;
use sutura_benches::{Error, exit_code};

use child::{Job, Measurement};
use server::Name;

/// The command that runs the bench with its present features.
const COMMAND: &str = if cfg!(all(feature = "quiche", feature = "s2n-quic")) {
    "cargo run --release --manifest-path benches/half-open/Cargo.toml --all-features --"
} else {
    "cargo run --release --manifest-path benches/half-open/Cargo.toml --"
};

/// Bytes allocated for each handshake that was begun.
#[derive(Debug, Parser)]
struct Options {
    /// How many clients begin a handshake
    #[arg(long, default_value_t = 10_000)]
    clients: usize,
    /// Which servers; all that were built if there are none
    #[arg(long, value_delimiter = ',', value_enum)]
    servers: Vec<Name>,
    #[command(flatten)]
    output: Output,
    /// Be the process of the server that the standard input describes
    #[arg(long, hide = true, exclusive = true)]
    child: bool,
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
            entry.waiting.map_or("-".to_owned(), |bytes| format!("{bytes:.0}")).into(),
            format!("{:.0}", entry.answered).into(),
            format!("{:.2}", entry.answered / first).into(),
        ]);
    }
    let text = vec![format!(
        "{clients} clients begin a handshake with TLS 1.3 and never go on. The bytes are those that malloc has \
         handed out to the server's process, its own bookkeeping included: before the server has decided about \
         a client, and after it has let it in and answered with as much as it may send to an address that is not \
         validated. quiche and s2n-quic decide about a client as soon as its first datagram arrives."
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
    if options.child {
        return child::run();
    }
    let identity = Identity::new()?;
    let clients = options.clients.max(1);
    let chosen = if options.servers.is_empty() { Name::all() } else { &options.servers };
    let measure = |server: &Name| {
        child::measure(&Job { server: *server, clients, identity: identity.clone() })
    };
    let measurements = chosen.iter().map(measure).collect::<Result<Vec<_>, _>>()?;
    options.output.write_as(COMMAND, &report(&measurements, clients), &measurements)
}

fn main() -> ExitCode {
    exit_code("half-open", run(&Options::parse()))
}

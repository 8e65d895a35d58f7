//! `sutura serve`: serves a directory over HTTP/3, and over HTTPS for browsers to discover it.

mod description;
pub mod h1;
mod h3;
mod pattern;
mod protect_rule;
mod reply;
mod reports;
mod rules;
mod service;
mod site;
mod untold;

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use sutura::policy::ResendOrderFactory;
use sutura::registry::UnknownPolicy;
use sutura::{
    Connection, ConnectionIdGenerator, Endpoint, EndpointConfig, MemoryBudget, QuicLb,
    QuicLbConfig, ServerConfig, TransportConfig, http,
};
use sutura_research::Needs;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::cert::{Identity, IdentityArgs};
use crate::failure::{Exit, Failure};
use crate::fec::Fec;
use crate::interrupt::interrupted;
use crate::listen::{self, Listen};
use crate::memory::MemoryArgs;
use crate::output;
use crate::qlog::QlogArgs;
use crate::secrets::Secrets;
use crate::transport::TransportArgs;
use protect_rule::ProtectRule;
use reports::Reports;
use rules::Rules;
use service::{Log, Service};
use site::Site;

/// Most HTTP/1.1 connections at a time.
const MAX_TCP_CONNECTIONS: usize = 256;
/// Bytes that an HTTP/1.1 connection may hold: the state and the buffers of TLS, and the part of a file
/// that is being sent.
const TCP_COST: usize = 128 * 1024;
/// Timeout of a TLS handshake over TCP.
const TLS_TIMEOUT: Duration = Duration::from_secs(10);
/// The idle timeout of QUIC connections.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long pending responses may take after an interruption.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// How long sending the close of connections may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// Most ports tried until one is free for both UDP and TCP.
const PORT_ATTEMPTS: usize = 16;

const EXAMPLES: &str = "\
Without --cert and --key, a self-signed certificate is made on first use and kept. Clients trust it
by its fingerprint: sutura get --fingerprint <SHA256> https://localhost:4433/

Examples:
  sutura serve ./public
  sutura serve ./public --listen [::]:443 --cert fullchain.pem --key privkey.pem
  sutura serve ./public --fec 3,25 -v
  sutura serve ./public --protect 'u<3 => protect 3,25'
  sutura serve ./public --priorities rules.txt --scheduler eps
  sutura serve ./public --workers 4

A file of priorities has one rule a line: a pattern, blanks, and a priority (RFC 9218). The first
rule that matches decides, over what the request asks for. A pattern with a slash is compared with
the whole path, one without with the file name; * stands for any characters, ? for one. type:
compares the media type. Lines that begin with # are comments:
  # what the page cannot be shown without
  *.css         u=1
  /img/hero.*   u=2, i, exp_b=3
  type:image/*  u=5, i, exp_p=(images;u=5;i)
  # like --protect: what protects urgent responses, if neither rule nor request sets exp_b
  u<2 => protect 3,25
  u=2, !i => protect block:code=rs,source=20,parity=1
  # what responses are, for schedulers such as dfifo, bucket and zeroweight
  /img/hero.*   => resource hero
  /app.css      => resource head critical
  /late.js      => bucket 0/2

An interruption lets responses under way finish; a second one does not.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct ServeArgs {
    /// Directory to serve; index.html stands for a directory. Names that begin with a dot are not
    /// served, except /.well-known/; nor is what symbolic links lead to outside of the directory
    directory: PathBuf,
    /// UDP and TCP address to listen on, or a port for all addresses of this machine. By default,
    /// everybody who reaches this machine can fetch what is served; say 127.0.0.1:4433 to serve this
    /// machine alone
    #[arg(long, value_name = "[ADDR:]PORT", default_value = "4433")]
    listen: Listen,
    #[command(flatten)]
    identity: IdentityArgs,
    /// Protect responses for which nothing else sets exp_b: repair symbols on each occasion, and for
    /// how many milliseconds they may be delayed
    #[arg(long, value_name = "BLT[,RDT]")]
    fec: Option<Fec>,
    /// Protect responses of some priorities for which neither rule nor request sets exp_b, such as
    /// 'u<3 => protect 3,25' or 'u<3, !i => protect block:code=rs': u with <, <= or =, and i or !i; by
    /// BLT[,RDT], none, or a policy as `sutura policies` lists; 3 repair symbols if nothing is named. The
    /// first of several that is for a response counts
    #[arg(long, value_name = "RULE")]
    protect: Vec<ProtectRule>,
    /// Set the priorities of responses by the rules in this file (see below)
    #[arg(long, value_name = "FILE")]
    priorities: Option<PathBuf>,
    /// Which response sends next, as `sutura policies` lists; a stack of 2020 also sets how lost
    /// data is sent again and packets are filled
    #[arg(long, value_name = "NAME", default_value = "hmm", value_parser = scheduler)]
    scheduler: String,
    /// When lost data is sent again, as `sutura policies` lists: first-by:fifo is before new data, one
    /// stream after the other [default: that of a stack of 2020 named by --scheduler, or else by-loss]
    #[arg(long, value_name = "NAME", value_parser = resend_order)]
    resend_order: Option<Arc<dyn ResendOrderFactory>>,
    /// Let every client show first that it receives what is sent to its address (Retry), not only
    /// when many handshakes are under way
    #[arg(long)]
    retry: bool,
    /// Serve over QUIC with this many threads, each with a socket and connections of its own: one for each
    /// core that is to work. More than one takes Linux
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    workers: u8,
    /// Choose connection identifiers that load balancers can read, by the settings in this file, such as
    /// 'server-id=0a2b nonce=6 key=8f95f09245765f80256934e50c66207f'
    #[arg(long, value_name = "FILE")]
    lb_config: Option<PathBuf>,
    /// Answer requests that clients send along with their first packets (0-RTT), which saves those that
    /// were here before a round trip. Attackers may send copies of them; they change nothing here.
    /// Sessions then end when the server does
    #[arg(long)]
    early_data: bool,
    #[command(flatten)]
    memory: MemoryArgs,
    #[command(flatten)]
    transport: TransportArgs,
    #[command(flatten)]
    qlog: QlogArgs,
    /// Write a line per request to standard error
    #[arg(short, long)]
    verbose: bool,
    /// Write to standard error, when a connection ends, what was lost on the way and what redundancy
    /// did about it; with --json, a line of JSON to standard output
    #[arg(long)]
    stats: bool,
    /// Print the listening addresses as JSON
    #[arg(long)]
    json: bool,
}

/// Checks that a scheduler with this name exists.
fn scheduler(name: &str) -> Result<String, UnknownPolicy> {
    sutura_research::schedulers().find(name).map(|_| name.to_owned())
}

fn resend_order(name: &str) -> Result<Arc<dyn ResendOrderFactory>, UnknownPolicy> {
    sutura_research::resend_orders().find(name)
}

/// Serves until interrupted.
pub async fn run(args: ServeArgs) -> Result<Exit, Failure> {
    let site = Site::directory(&args.directory)?;
    let rules = args.priorities.as_deref().map(Rules::load).transpose()?.unwrap_or_default();
    args.qlog.prepare()?;
    let (identity, origin) = args.identity.identity()?;
    let fingerprint = identity.fingerprint();
    let public_key = identity.public_key_hash();
    let (quic, tls) = server_configs(identity)?;
    let secrets = args.identity.secrets();
    let tickets = secrets.as_ref().map(Secrets::ticket_key);
    let quic = tickets.iter().fold(quic.transport(transport(&args)?), |quic, tickets| {
        // Clients that come back resume their sessions even if this is another process.
        quic.ticket_key(tickets.clone())
    });
    let quic = if args.early_data { quic.early_data() } else { quic };
    let limits = EndpointConfig::default();
    let retry_above = if args.retry { Some(0) } else { limits.retry_above };
    let limits = limits.with_retry_above(retry_above);
    let limits = match args.lb_config.as_deref() {
        Some(path) => limits.with_connection_ids(load_balancing(path)?),
        None => limits,
    };
    let (endpoint, tcp, address) = bind(&args, &limits, &quic, secrets.as_ref())?;
    if let Some((secrets, tickets)) = secrets.zip(tickets) {
        tokio::spawn(secrets.renew(tickets));
    }
    let budget = args.memory.budget();
    endpoint.set_memory_budget(budget.clone());
    // Before the address is announced, so that no connection is missed.
    args.qlog.watch(&endpoint, "sutura serve");
    let needs = Needs::of(&args.scheduler);
    if let Some(what) = untold::untold(&args.scheduler, &needs, &rules) {
        output::complain(&what);
    }
    let service = Arc::new(Service {
        site,
        http: http::Config::default().with_protections(protections(&args, &rules)),
        rules,
        alt_svc: Some(format!("h3=\":{}\"; ma=86400", address.port())),
        log: Log { enabled: args.verbose },
        describes: matches!(needs, Needs::Resource(_)),
    });
    let first = interrupted();
    announce(&args, address, (&fingerprint, public_key), &origin)?;

    let (stop, stopped) = watch::channel(false);
    let over_tcp = accept_tcp(tcp, TlsAcceptor::from(Arc::new(tls)), service.clone(), budget);
    let over_tcp = tokio::spawn(over_tcp);
    let reports = args.stats.then(|| Reports::new(args.json));
    let accepted = {
        let reports = reports.clone();
        move |connection: &Connection| reports.iter().for_each(|all| all.follow(connection))
    };
    let mut over_quic = JoinSet::new();
    for worker in endpoint.workers() {
        // Served by the thread that does their I/O, connections cost least.
        let runtime = worker.runtime().clone();
        let (service, stopped, accepted) = (service.clone(), stopped.clone(), accepted.clone());
        let serving = h3::accept(worker, service, stopped, args.early_data, accepted);
        over_quic.spawn_on(serving, &runtime);
    }
    first.await?;
    endpoint.stop_accepting();
    over_tcp.abort();
    // Fails if the server task has ended; then there is nothing to stop.
    let _ = stop.send(true);
    let drained = async { while over_quic.join_next().await.is_some() {} };
    tokio::select! {
        _ = tokio::time::timeout(DRAIN_TIMEOUT, drained) => {}
        again = interrupted() => {
            again?;
        }
    }
    over_quic.abort_all();
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, endpoint.wait_idle()).await;
    if let Some(reports) = reports {
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, reports.finish()).await;
    }
    Ok(Exit::Success)
}

/// The protection of responses when neither a rule nor the request sets it: for each priority the first of
/// `--protect`, the lines of the file, and `--fec`.
fn protections(args: &ServeArgs, rules: &Rules) -> http::DefaultProtections {
    let mut all = http::DefaultProtections::default();
    args.protect.iter().chain(rules.protect()).for_each(|rule| rule.add_to(&mut all));
    args.fec.map(ProtectRule::for_all).iter().for_each(|rule| rule.add_to(&mut all));
    all
}

/// The configuration of connections: the configuration of a stack of 2020 if the scheduler is its default,
/// and an order of resending over that.
fn transport(args: &ServeArgs) -> Result<TransportConfig, Failure> {
    let mut transport = args.transport.config(IDLE_TIMEOUT);
    sutura_research::configure(&mut transport, &args.scheduler)
        .map_err(|error| Failure::local(error.to_string()))?;
    if let Some(order) = &args.resend_order {
        transport.resend_order = order.clone();
    }
    Ok(transport)
}

/// The generator of connection identifiers whose settings are in this file.
fn load_balancing(path: &Path) -> Result<Arc<dyn ConnectionIdGenerator>, Failure> {
    let unusable = |error: &dyn std::fmt::Display| {
        Failure::local(format!("{} cannot be used: {error}", path.display()))
    };
    let text = std::fs::read_to_string(path).map_err(|e| unusable(&e))?;
    let config = text.parse::<QuicLbConfig>().map_err(|e| unusable(&e))?;
    Ok(Arc::new(QuicLb::new(config).map_err(|e| unusable(&e))?))
}

/// The TLS configurations for QUIC and for TCP.
fn server_configs(identity: Identity) -> Result<(ServerConfig, rustls::ServerConfig), Failure> {
    let unusable = |e: &dyn std::fmt::Display| {
        Failure::local(format!("certificate and key cannot be used: {e}"))
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(|builder| {
            let key = identity.key.clone_key();
            builder.with_no_client_auth().with_single_cert(identity.chain.clone(), key)
        })
        .map_err(|e| unusable(&e))?;
    tls.alpn_protocols = vec![b"http/1.1".to_vec()];
    let quic = ServerConfig::with_single_cert(identity.chain, identity.key, &[b"h3"])
        .map_err(|e| unusable(&e))?;
    Ok((quic, tls))
}

/// Binds UDP and TCP to the same address.
fn bind(
    args: &ServeArgs,
    limits: &EndpointConfig,
    config: &ServerConfig,
    secrets: Option<&Secrets>,
) -> Result<(Endpoint, TcpListener, SocketAddr), Failure> {
    let (listen, workers) = (args.listen, usize::from(args.workers));
    listen
        .bind(|address| bind_both((address, workers), limits, config, secrets))
        .map_err(|e| Failure::local(format!("cannot listen on {listen}: {e}")))
}

fn bind_both(
    (address, workers): (SocketAddr, usize),
    limits: &EndpointConfig,
    config: &ServerConfig,
    secrets: Option<&Secrets>,
) -> io::Result<(Endpoint, TcpListener, SocketAddr)> {
    let mut attempts = 0;
    loop {
        let tcp = std::net::TcpListener::bind(address)?;
        tcp.set_nonblocking(true)?;
        let bound = tcp.local_addr()?;
        // Servers at other addresses may have the same secrets.
        let context = bound.to_string();
        let reset_key = secrets.map(|secrets| secrets.reset_key(context.as_bytes()));
        let limits = limits.clone().with_reset_key(reset_key);
        match Endpoint::bind_workers(limits, config.clone(), bound, workers) {
            Ok(endpoint) => return Ok((endpoint, TcpListener::from_std(tcp)?, bound)),
            // A port that is free for TCP may be taken for UDP; another port may be free for both.
            Err(_) if address.port() == 0 && attempts < PORT_ATTEMPTS => attempts += 1,
            Err(error) => return Err(error),
        }
    }
}

/// How to start Chromium so that it trusts the key of this hash and uses HTTP/3 from the first request
/// on. By itself it heeds Alt-Svc only where it trusts the certificate without being told to.
fn chromium(port: u16, public_key: &str) -> String {
    format!(
        "chromium --user-data-dir=/tmp/chromium-{port} --origin-to-force-quic-on=localhost:{port} \
         --ignore-certificate-errors-spki-list={public_key} https://localhost:{port}/"
    )
}

/// Tells where this server is, and how clients know its certificate: the fingerprint, and the hash of
/// the public key.
fn announce(
    args: &ServeArgs,
    address: SocketAddr,
    (fingerprint, public_key): (&str, Option<String>),
    origin: &Path,
) -> Result<(), Failure> {
    let port = address.port();
    let chromium = public_key.as_deref().map(|hash| chromium(port, hash));
    if args.json {
        return output::json(&json!({
            "listening": address.to_string(),
            "port": port,
            "fingerprint": fingerprint,
            "public_key": public_key,
            "certificate": origin,
            "chromium": chromium,
        }));
    }
    output::line(&format!(
        "https://localhost:{port}/ serves {}\nlistening on {}\ncertificate {}\n\
         fingerprint {fingerprint}",
        args.directory.display(),
        listen::describe(address),
        origin.display(),
    ))?;
    chromium.map_or(Ok(()), |command| output::line(&command))
}

/// Serves all clients over HTTP/1.1.
async fn accept_tcp(
    listener: TcpListener,
    tls: TlsAcceptor,
    service: Arc<Service>,
    budget: MemoryBudget,
) {
    let room = Arc::new(Semaphore::new(MAX_TCP_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok(permit) = room.clone().acquire_owned().await else { return };
        let (stream, remote) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                // For example, too many open files: some may be closed soon.
                output::complain(&format!("cannot accept over TCP: {error}"));
                tokio::time::sleep(Duration::from_millis(100)).await;
                continue;
            }
        };
        if !budget.admits(remote.ip()) {
            continue;
        }
        let mut account = budget.open(remote.ip());
        account.set(TCP_COST);
        let (tls, service) = (tls.clone(), service.clone());
        connections.spawn(async move {
            if let Err(error) = answer_tcp(stream, remote, &tls, &service).await {
                service.log.connection(remote, &error);
            }
            drop((permit, account));
        });
    }
}

async fn answer_tcp(
    stream: TcpStream,
    remote: SocketAddr,
    tls: &TlsAcceptor,
    service: &Service,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let stream = tokio::time::timeout(TLS_TIMEOUT, tls.accept(stream)).await??;
    h1::serve(stream, remote, service).await
}

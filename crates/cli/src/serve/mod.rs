//! `sutura serve`: serves a directory over HTTP/3, and over HTTP/2 and HTTP/1.1 for browsers to discover it.

mod access;
mod cache;
mod certificates;
mod description;
mod disk;
mod files;
mod h3;
mod listing;
mod logged;
mod message;
mod origin_server;
mod paths;
mod pattern;
mod protect_rule;
mod proxy;
mod redirect;
mod reports;
mod rules;
mod service;
mod supervisor;
mod tcp;
mod tunnel;
mod underway;
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
    Connection, ConnectionIdGenerator, Endpoint, EndpointConfig, QuicLb, QuicLbConfig, ResetKey,
    ServerConfig, TicketKey, TransportConfig,
};
use sutura_research::Needs;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use crate::cert::IdentityArgs;
use crate::config_file::ConfigArgs;
use crate::failure::{Exit, Failure};
use crate::fec::Fec;
use crate::interrupt::{Hangups, interrupted};
use crate::listen::{self, Listen};
use crate::memory::MemoryArgs;
use crate::monitor::MonitorArgs;
use crate::open_files;
use crate::output;
use crate::passed::Passed;
use crate::qlog::QlogArgs;
use crate::secrets::Secrets;
use crate::transport::TransportArgs;
use access::LogArgs;
use cache::{CacheRule, CacheRules};
use certificates::{Certificates, Facts};
use files::{Files, FilesArgs};
use protect_rule::ProtectRule;
use proxy::{Proxy, ProxyArgs};
use reports::Reports;
use service::{Priorities, Service};

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
  sutura serve --to http://localhost:8080
  sutura serve ./public --to '/api/* => http://localhost:8080' --health /health
  sutura serve ./public --listen [::]:443 --redirect 80 --cert fullchain.pem --key privkey.pem \\
    --precompressed --cache '*.css => max-age=86400' --log combined --log-file access.log

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

SIGHUP reads the certificate, the file of priorities and the log's file again; a certificate whose file
changes is read again within half a minute. Open connections go on.
An interruption lets responses under way finish; a second one does not.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct ServeArgs {
    /// Directory to serve; index.html stands for a directory. Names that begin with a dot are not
    /// served, except /.well-known/; nor is what symbolic links lead to outside of the directory
    #[arg(required_unless_present = "to")]
    directory: Option<PathBuf>,
    /// UDP and TCP address to listen on, or a port for all addresses of this machine. By default,
    /// everybody who reaches this machine can fetch what is served; say 127.0.0.1:4433 to serve this
    /// machine alone
    #[arg(long, value_name = "[ADDR:]PORT", default_value = "4433")]
    listen: Listen,
    /// Send clients of plain HTTP at this TCP address, such as port 80, here
    #[arg(long, value_name = "[ADDR:]PORT")]
    redirect: Option<Listen>,
    #[command(flatten)]
    config: ConfigArgs,
    #[command(flatten)]
    identity: IdentityArgs,
    #[command(flatten)]
    files: FilesArgs,
    /// How long clients may keep responses (Cache-Control): directives such as 'max-age=3600', or a pattern as
    /// in a file of priorities and directives, such as '*.css => max-age=86400, immutable'. The first of
    /// several that is for a response counts
    #[arg(long, value_name = "RULE", help_heading = "Files")]
    cache: Vec<CacheRule>,
    #[command(flatten)]
    proxy: ProxyArgs,
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
    #[command(flatten)]
    log: LogArgs,
    #[command(flatten)]
    monitor: MonitorArgs,
    /// Write to standard error, when a connection ends, what was lost on the way and what redundancy
    /// did about it; with --json, a line of JSON to standard output
    #[arg(long)]
    stats: bool,
    /// Print the listening addresses as JSON
    #[arg(long)]
    json: bool,
}

impl ServeArgs {
    /// What is served, in words.
    fn site(&self) -> String {
        match &self.directory {
            Some(directory) => directory.display().to_string(),
            None => "what servers behind it have".into(),
        }
    }
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
    open_files::permit_all();
    let certificates = Certificates::new(&args.identity)?;
    let mut hangups = Hangups::new()?;
    let (service, needs) = service(&args)?;
    args.qlog.prepare()?;
    let (bound, secrets) = bind(&args, &certificates)?;
    let Bound { sockets: Sockets { endpoint, tcp, plain, address }, tls } = bound;
    if let Some((secrets, tickets)) = secrets {
        tokio::spawn(secrets.renew(tickets));
    }
    let budget = args.memory.budget();
    endpoint.set_memory_budget(budget.clone());
    // Before the address is announced, so that no connection is missed.
    args.qlog.watch(&endpoint, "sutura serve");
    if let Some(what) = untold::untold(&args.scheduler, &needs, &service.priorities.rules()) {
        output::complain(&what);
    }
    let service = Arc::new(service.advertising(address.port()));
    let monitor = Arc::new(args.monitor.start("sutura serve").await?);
    let first = interrupted();
    announce(&args, address, &certificates.facts())?;
    supervisor::tell_ready();

    let (stop, stopped) = watch::channel(false);
    let mut serving = JoinSet::new();
    serving.spawn(tcp::accept(tcp, tls, service.clone(), budget, stopped.clone()));
    let mut beside = JoinSet::new();
    beside.spawn(certificates.clone().watch());
    service.proxy.clone().map(|proxy| beside.spawn(proxy.check()));
    plain.map(|plain| beside.spawn(redirect::accept(plain, address.port())));
    let again = service.clone();
    beside.spawn(async move {
        loop {
            hangups.next().await;
            supervisor::tell_reloading();
            read_again(&certificates, &again);
            supervisor::tell_ready();
        }
    });
    let reports = args.stats.then(|| Reports::new(args.json));
    let accepted = {
        let reports = reports.clone();
        move |connection: &Connection| {
            monitor.follow(connection);
            reports.iter().for_each(|all| all.follow(connection));
        }
    };
    for worker in endpoint.workers() {
        // Served by the thread that does their I/O, connections cost least.
        let runtime = worker.runtime().clone();
        let (service, stopped, accepted) = (service.clone(), stopped.clone(), accepted.clone());
        let over_quic = h3::accept(worker, service, stopped, args.early_data, accepted);
        serving.spawn_on(over_quic, &runtime);
    }
    first.await?;
    supervisor::tell_stopping();
    endpoint.stop_accepting();
    // Fails if the server tasks have ended; then there is nothing to stop.
    let _ = stop.send(true);
    drain(&endpoint, serving, reports).await
}

/// Waits for what is under way, until another interruption or until it takes too long.
async fn drain(
    endpoint: &Endpoint,
    mut serving: JoinSet<()>,
    reports: Option<Reports>,
) -> Result<Exit, Failure> {
    let drained = async { while serving.join_next().await.is_some() {} };
    tokio::select! {
        _ = tokio::time::timeout(DRAIN_TIMEOUT, drained) => {}
        again = interrupted() => {
            again?;
        }
    }
    serving.abort_all();
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, endpoint.wait_idle()).await;
    if let Some(reports) = reports {
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, reports.finish()).await;
    }
    Ok(Exit::Success)
}

/// The site, and what its scheduler needs to know.
fn service(args: &ServeArgs) -> Result<(Service, Needs), Failure> {
    let files = args.directory.as_deref().map(|directory| {
        Files::below(directory, args.files.clone(), CacheRules(args.cache.clone()))
    });
    let options = (args.protect.clone(), args.fec.map(ProtectRule::for_all));
    let needs = Needs::of(&args.scheduler);
    let service = Service {
        files: files.transpose()?,
        proxy: Proxy::new(&args.proxy).map(Arc::new),
        priorities: Priorities::new(args.priorities.clone(), options)?,
        alt_svc: None,
        log: args.log.open()?,
        describes: matches!(needs, Needs::Resource(_)),
    };
    Ok((service, needs))
}

/// Reads again what may have changed. What cannot be read stays as it was.
fn read_again(certificates: &Certificates, service: &Service) {
    certificates.reload_and_tell();
    for result in [service.priorities.reload(), service.log.reopen()] {
        if let Err(failure) = result {
            output::complain(&failure.message);
        }
    }
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

/// The sockets of a server.
struct Sockets {
    endpoint: Endpoint,
    tcp: TcpListener,
    /// For clients of plain HTTP.
    plain: Option<TcpListener>,
    address: SocketAddr,
}

/// The sockets, and what is spoken at that for TCP.
struct Bound {
    sockets: Sockets,
    tls: TlsAcceptor,
}

/// Binds UDP and TCP to the same address. With the sockets come the secrets that must be renewed, with the key
/// of tickets that is made of them, if there are any.
fn bind(
    args: &ServeArgs,
    certificates: &Arc<Certificates>,
) -> Result<(Bound, Option<(Secrets, TicketKey)>), Failure> {
    let (quic, tls) = certificates.configs()?;
    let secrets = args.identity.secrets();
    let tickets = secrets.as_ref().map(Secrets::ticket_key);
    let quic = tickets.iter().fold(quic.transport(transport(args)?), |quic, tickets| {
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
    let sockets = match Passed::take()? {
        Some(passed) => take_over(passed, args, limits, quic, secrets.as_ref()),
        None => open(args, &limits, &quic, secrets.as_ref()),
    };
    let sockets = sockets?;
    let tls = TlsAcceptor::from(Arc::new(tls));
    let bound = Bound { sockets, tls };
    Ok((bound, secrets.zip(tickets)))
}

/// Opens sockets at the addresses that the options name.
fn open(
    args: &ServeArgs,
    limits: &EndpointConfig,
    quic: &ServerConfig,
    secrets: Option<&Secrets>,
) -> Result<Sockets, Failure> {
    let (listen, workers) = (args.listen, usize::from(args.workers));
    let (endpoint, tcp, address) = listen
        .bind(|address| bind_both((address, workers), limits, quic, secrets))
        .map_err(|e| cannot_listen(listen, &e))?;
    let plain = args.redirect.map(|listen| {
        listen.bind(bind_tcp).map(|(plain, _)| plain).map_err(|e| cannot_listen(listen, &e))
    });
    Ok(Sockets { endpoint, tcp, plain: plain.transpose()?, address })
}

/// Serves at the sockets that a supervisor passed.
fn take_over(
    passed: Passed,
    args: &ServeArgs,
    limits: EndpointConfig,
    quic: ServerConfig,
    secrets: Option<&Secrets>,
) -> Result<Sockets, Failure> {
    if args.workers > 1 {
        return Err(Failure::usage(
            "--workers opens sockets of its own: one that is passed has one worker",
        ));
    }
    let Passed { udp, tcp, plain } = passed;
    let unusable =
        |error: io::Error| Failure::local(format!("a socket passed to this process: {error}"));
    let address = tcp.local_addr().map_err(unusable)?;
    let limits = limits.with_reset_key(reset_key(secrets, address));
    let endpoint = Endpoint::with_socket(limits, Some(quic), udp).map_err(unusable)?;
    let tcp = TcpListener::from_std(tcp).map_err(unusable)?;
    let plain = plain.map(TcpListener::from_std).transpose().map_err(unusable)?;
    Ok(Sockets { endpoint, tcp, plain, address })
}

/// The key of stateless resets: servers at other addresses may have the same secrets.
fn reset_key(secrets: Option<&Secrets>, address: SocketAddr) -> Option<ResetKey> {
    secrets.map(|secrets| secrets.reset_key(address.to_string().as_bytes()))
}

fn cannot_listen(listen: Listen, error: &io::Error) -> Failure {
    Failure::local(format!("cannot listen on {listen}: {error}"))
}

fn bind_tcp(address: SocketAddr) -> io::Result<(TcpListener, SocketAddr)> {
    let tcp = std::net::TcpListener::bind(address)?;
    tcp.set_nonblocking(true)?;
    let bound = tcp.local_addr()?;
    Ok((TcpListener::from_std(tcp)?, bound))
}

fn bind_both(
    (address, workers): (SocketAddr, usize),
    limits: &EndpointConfig,
    config: &ServerConfig,
    secrets: Option<&Secrets>,
) -> io::Result<(Endpoint, TcpListener, SocketAddr)> {
    let mut attempts = 0;
    loop {
        let (tcp, bound) = bind_tcp(address)?;
        let limits = limits.clone().with_reset_key(reset_key(secrets, bound));
        match Endpoint::bind_workers(limits, config.clone(), bound, workers) {
            Ok(endpoint) => return Ok((endpoint, tcp, bound)),
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

/// Tells where this server is, and how clients know its certificate.
fn announce(
    args: &ServeArgs,
    address: SocketAddr,
    Facts { origin, fingerprint, public_key }: &Facts,
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
        args.site(),
        listen::describe(address),
        origin.display(),
    ))?;
    chromium.map_or(Ok(()), |command| output::line(&command))
}

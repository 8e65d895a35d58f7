//! `sutura tunnel serve`: the proxy.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use sutura::http::Code;
use sutura::{Connection, Incoming, http};
use sutura_tunnel::access::{AllowList, AllowRule, Limits};
use sutura_tunnel::server::{Server, ServerConfig};
use sutura_tunnel::tun::IpNetwork;
use tokio::time::{sleep, timeout};
use zeroize::Zeroizing;

use super::audit::Audit;
use super::gate::{Keys, Turnstile};
use super::handover;
use super::network::{self, NetworkArgs};
use super::tokens::Tokens;
use super::user::{Needs, UserArgs, is_low};
use super::{LAST_WORDS, STATS_INTERVAL, rules, transport};
use crate::cert::IdentityArgs;
use crate::config_file::ConfigArgs;
use crate::doors::Doors;
use crate::failure::{Exit, Failure};
use crate::guesses::Guesses;
use crate::interrupt::{Stop, interrupted};
use crate::listen::{self, Listen};
use crate::memory::{MemoryArgs, bytes};
use crate::monitor::{Monitor, MonitorArgs};
use crate::open_files;
use crate::output;
use crate::passed::{self, Stored};
use crate::qlog::QlogArgs;
use crate::quic_server::{accept, server_config, start};
use crate::stats::{Statistics, peer};
use crate::token::keep_in;
use crate::transport::TransportArgs;

/// How long a client may take to show that it may use the proxy.
const SILENCE_TIMEOUT: Duration = Duration::from_secs(30);
/// The name of the file of a token that is made.
const TOKEN_FILE: &str = "tunnel-token";

const EXAMPLES: &str = "\
Nothing is allowed unless a rule names it. The other end is `sutura tunnel connect`, or any client of MASQUE (CONNECT,
CONNECT-UDP and CONNECT-IP over HTTP/3). It needs the token, which is made on first use and kept, and the fingerprint of the
certificate, unless that is one that its system trusts.

Examples:
  sutura tunnel serve --allow '*'
  sutura tunnel serve --allow 10.0.0.0/8:22 --allow '*.example.org:443' --allow udp/192.0.2.1:51820
  sutura tunnel serve --cert fullchain.pem --key privkey.pem --token-file tokens.txt --allow '*' --audit audit.jsonl
  sutura tunnel serve --client-ca clients.pem --allow '*' --max-flows 100 --rate 10MB
  sutura tunnel serve --allow '*' --allow-listen 0.0.0.0:8080
  sudo sutura tunnel serve --allow '*' --tun 10.77.0.1/24,fd77::1/64";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct TunnelServeArgs {
    /// UDP address to listen on, or a port for all addresses of this machine
    #[arg(long, value_name = "[ADDR:]PORT", default_value = "4433")]
    listen: Listen,
    #[command(flatten)]
    identity: IdentityArgs,
    /// Let in clients that show one of the tokens in this file: one a line, or a name and a token [default: one that
    /// is made on first use, unless --client-ca is given]
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Let in only clients whose certificate (`sutura tunnel connect --client-cert`) leads to one in this PEM file
    #[arg(long, value_name = "FILE")]
    client_ca: Option<PathBuf>,
    /// Reach these targets for clients: HOST:PORT, where HOST is a name, `*.NAME`, an address, a network or `*`, and
    /// PORT a number, a range or `*`; `tcp/`, `udp/` or `ip/` (packets of --tun) before it for one of these. `*` leaves
    /// out addresses of this machine, private networks and the like, which must be named
    #[arg(long, value_name = "RULE")]
    allow: Vec<AllowRule>,
    /// Let clients have this machine listen at these addresses (`sutura tunnel connect -R`)
    #[arg(long, value_name = "RULE")]
    allow_listen: Vec<AllowRule>,
    #[command(flatten)]
    network: NetworkArgs,
    /// Treat flows as the rules in this file say: a line such as `udp:27015 real-time` (see docs/tunnel.md)
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// Most flows of a client at a time
    #[arg(long, value_name = "N", default_value_t = 4096)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=65_536))]
    max_flows: u32,
    /// Most bytes that the flows of a client carry in a second, both ways together, such as 10MB
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    rate: Option<u64>,
    /// Most bytes that the flows of a client carry at all while this runs, such as 100GB
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    max_bytes: Option<u64>,
    /// Most connections of clients at a time; three quarters of them, rounded up, from one network that is not this
    /// machine
    #[arg(long, value_name = "N", default_value_t = 256)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=65_536))]
    max_clients: u32,
    /// Append what clients do to this file, as lines of JSON
    #[arg(long, value_name = "FILE")]
    audit: Option<PathBuf>,
    #[command(flatten)]
    memory: MemoryArgs,
    #[command(flatten)]
    transport: TransportArgs,
    #[command(flatten)]
    user: UserArgs,
    #[command(flatten)]
    qlog: QlogArgs,
    #[command(flatten)]
    monitor: MonitorArgs,
    /// Show every two seconds, and when a client leaves, what is carried and what is lost on the way
    #[arg(long)]
    stats: bool,
    /// Print the address, the fingerprint and the token as JSON, and statistics of each connection when it ends
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    config: ConfigArgs,
}

impl TunnelServeArgs {
    /// Goes on without root's rights, if that is wanted.
    pub fn give_up_root(&self) -> Result<(), Failure> {
        // Clients may be allowed to have it listen at any port.
        let low_ports = is_low(self.listen.port()) || !self.allow_listen.is_empty();
        self.user.give_up_root(Needs { device: self.network.is_wanted(), low_ports })
    }
}

/// What the tasks of all connections share.
#[derive(Debug)]
struct ProxyContext {
    server: Server,
    keys: Arc<Keys>,
    doors: Doors,
    monitor: Monitor,
    stats: bool,
    json: bool,
}

/// Serves until interrupted.
pub async fn run(args: TunnelServeArgs) -> Result<Exit, Failure> {
    open_files::permit_all();
    args.qlog.prepare()?;
    let (identity, origin) = args.identity.identity()?;
    let fingerprint = identity.fingerprint();
    let (tokens, shown) = tokens(&args)?;
    let network = args.network.open()?;
    let mut rights = rights(&args)?;
    rights.network.clone_from(&network);
    let server = Server::new(rights, Box::new(Audit::open(args.audit.as_deref())?));
    let config = server_config(identity, args.client_ca.as_deref(), http::ALPN)?;
    let config = config.transport(transport(&args.transport, args.max_flows as usize));
    let (passed, stored) = passed::one_for_udp_and_stored(&handover::NAMES)?;
    let (endpoint, address) = start(args.listen, passed, config, &args.identity, &args.memory)?;
    args.qlog.watch(&endpoint, "sutura tunnel serve");
    let monitor = args.monitor.start("sutura tunnel serve").await?;
    let interrupted = interrupted();
    let shown = shown.as_deref().map(String::as_str);
    announce(&args, address, &fingerprint, &origin, shown, network.as_ref())?;
    go_on(&server, stored);

    let proxy = Arc::new(ProxyContext {
        server: server.clone(),
        keys: Arc::new(Keys { tokens, guesses: Guesses::default() }),
        doors: Doors::new(args.max_clients as usize),
        monitor,
        stats: args.stats,
        json: args.json,
    });
    let mut accepting =
        tokio::spawn(accept(endpoint.clone(), move |incoming| serve(incoming, proxy.clone())));
    let stop = tokio::select! {
        stop = interrupted => stop?,
        gone = network::carry(network) => return Err(gone),
    };
    let why: &[u8] = match stop {
        Stop::Interrupted => b"sutura tunnel serve was interrupted",
        Stop::Terminated => b"sutura tunnel serve was stopped",
    };
    if stop == Stop::Terminated && handover::is_possible() {
        handover::store(server.suspend(why).await).await;
    } else {
        // Clients come back if the server is started again; their flows of before are not known then.
        endpoint.close(Code::NO_ERROR.0, why);
        let _ = timeout(LAST_WORDS, &mut accepting).await;
    }
    let _ = timeout(LAST_WORDS, endpoint.wait_idle()).await;
    accepting.abort();
    Ok(Exit::Success)
}

/// Takes the flows that an earlier process has left.
fn go_on(server: &Server, stored: Vec<Stored>) {
    if stored.is_empty() {
        return;
    }
    let (flows, complaints) = handover::read(stored);
    complaints.iter().for_each(|complaint| output::complain(complaint));
    let taken = server.restore(flows);
    output::note(&format!("flows of the earlier process that wait for their clients: {taken}"));
    handover::taken();
}

/// The tokens that let clients in, and the one to be shown.
fn tokens(args: &TunnelServeArgs) -> Result<(Tokens, Option<Zeroizing<String>>), Failure> {
    match (&args.token_file, &args.client_ca) {
        (Some(file), _) => Ok((Tokens::load(file)?, None)),
        (None, Some(_)) => Ok((Tokens::default(), None)),
        (None, None) => {
            let token = keep_in(&args.identity.state_dir()?, TOKEN_FILE)?;
            Ok((Tokens::one(token.clone()), Some(token)))
        }
    }
}

/// What clients may do.
fn rights(args: &TunnelServeArgs) -> Result<ServerConfig, Failure> {
    let mut limits = Limits::default();
    limits.flows = Some(args.max_flows as usize);
    limits.bytes_per_second = args.rate;
    limits.bytes = args.max_bytes;
    let mut config = ServerConfig::default();
    config.allow = Arc::new(args.allow.iter().cloned().collect::<AllowList>());
    config.allow_listen = args.allow_listen.iter().cloned().collect::<AllowList>();
    config.limits = limits;
    config.rules = Arc::new(rules(args.rules.as_deref())?);
    Ok(config)
}

fn announce(
    args: &TunnelServeArgs,
    address: SocketAddr,
    fingerprint: &str,
    origin: &Path,
    token: Option<&str>,
    network: Option<&IpNetwork>,
) -> Result<(), Failure> {
    if args.json {
        return output::json(&json!({
            "listening": address.to_string(),
            "port": address.port(),
            "fingerprint": fingerprint,
            "certificate": origin,
            "token": token,
            "tun": network.map(network::to_json),
        }));
    }
    let who = match (token, &args.token_file, &args.client_ca) {
        (Some(token), _, _) => format!("token {token}"),
        (None, Some(file), _) => format!("tokens of {}", file.display()),
        (None, None, Some(file)) => format!("clients with a certificate of {}", file.display()),
        (None, None, None) => "nobody is let in".into(),
    };
    if args.allow.is_empty() && args.allow_listen.is_empty() {
        output::complain("nothing is allowed: say what is by --allow RULE, such as --allow '*'");
    }
    if let Some(network) = network {
        let own: Vec<String> = network.addresses().iter().map(ToString::to_string).collect();
        output::note(&format!("{} has {}", network.device(), own.join(", ")));
    }
    let (listening, origin) = (listen::describe(address), origin.display());
    output::line(&format!(
        "UDP {listening} is a proxy\ncertificate {origin}\nfingerprint {fingerprint}\n{who}"
    ))
}

/// Serves a connection to its end.
async fn serve(incoming: Incoming, proxy: Arc<ProxyContext>) {
    if proxy.server.is_suspended() {
        // The client asks again, and the next process answers at the same socket. Refused, it would try another proxy.
        return incoming.ignore();
    }
    let Ok(connection) = incoming.await else { return };
    proxy.monitor.follow(&connection);
    let name = peer(&connection);
    let Some(pass) = proxy.doors.enter(connection.remote_address().ip()) else {
        output::complain(&format!("{name}: there are too many clients: see --max-clients"));
        connection.close(Code::EXCESSIVE_LOAD.0, b"too many clients");
        return;
    };
    let pass = Arc::new(pass);
    let gate = Arc::new(Turnstile::new(proxy.keys.clone(), pass.clone(), &connection));
    let let_in = gate.admitted();
    let serving = proxy.server.serve(connection.clone(), gate.clone());
    tokio::pin!(serving, let_in);
    let over = tokio::select! {
        over = &mut serving => Some(over),
        () = pass.turned_out() => {
            connection.close(Code::EXCESSIVE_LOAD.0, b"others wanted to connect");
            return;
        }
        () = sleep(SILENCE_TIMEOUT) => {
            connection.close(Code::NO_ERROR.0, b"no request came that may be answered");
            return;
        }
        () = &mut let_in => None,
    };
    output::note(&format!("{name}: connected"));
    let ending = match over {
        Some(over) => over,
        None => watch(serving, &connection, &proxy, &name).await,
    };
    match ending {
        Ok(()) => output::note(&format!("{name}: left")),
        Err(error) => output::complain(&format!("{name}: lost: {error}")),
    }
    report(&connection, &proxy, &name);
}

/// Shows statistics while a connection is served.
async fn watch(
    mut serving: std::pin::Pin<&mut impl Future<Output = Result<(), http::Error>>>,
    connection: &Connection,
    proxy: &ProxyContext,
    name: &str,
) -> Result<(), http::Error> {
    let mut earlier = Statistics::of(connection);
    loop {
        match timeout(STATS_INTERVAL, &mut serving).await {
            Ok(ending) => return ending,
            Err(_) if proxy.stats && !proxy.json => {
                let now = Statistics::of(connection);
                now.live(name, &earlier).iter().for_each(|line| output::note(line));
                output::note(&format!("  {} flows of all clients", proxy.server.flows()));
                earlier = now;
            }
            Err(_) => {}
        }
    }
}

fn report(connection: &Connection, proxy: &ProxyContext, name: &str) {
    let statistics = Statistics::of(connection);
    if proxy.json {
        let mut value = statistics.to_json();
        value["client"] = name.into();
        // Nobody may read it any more; the proxy goes on.
        let _ = output::json(&value);
    } else if proxy.stats {
        statistics.summary(name).iter().for_each(|line| output::note(line));
    }
}

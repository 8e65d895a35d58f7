//! `sutura tunnel connect`: the end beside the programs.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use serde_json::{Value, json};
use sutura_tunnel::client::{Totals, Tunnel};
use sutura_tunnel::local;
use tokio::net::{TcpListener, UdpSocket};
use tokio::task::JoinSet;
use tokio::time::{interval, timeout};

use super::dialer::{Dialer, Terminal};
use super::known_proxy::KnownProxy;
use super::machine::MachineArgs;
use super::ports::{Backward, Bind, Forward};
use super::user::{Needs, UserArgs, is_low};
use super::{LAST_WORDS, STATS_INTERVAL, rules, transport};
use crate::cert::Identity;
use crate::config_file::ConfigArgs;
use crate::connect::Connector;
use crate::dial::DialArgs;
use crate::failure::{Exit, Failure};
use crate::interrupt::interrupted;
use crate::monitor::MonitorArgs;
use crate::open_files;
use crate::output::{self, bytes};
use crate::qlog::QlogArgs;
use crate::seconds;
use crate::stats::Statistics;
use crate::token::given;
use crate::transport::TransportArgs;
use crate::trust::TrustArgs;

/// How long a handshake may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Streams that the proxy may open, which it never does.
const NO_STREAMS: usize = 0;

const EXAMPLES: &str = "\
Flows go on when the connection is lost and comes back, also over another network or after sleep.

Examples:
  sutura tunnel connect proxy.example.org --token-file token.txt -D 1080
  curl --proxy socks5h://127.0.0.1:1080 https://example.org/
  sutura tunnel connect 192.0.2.7 --fingerprint 9f86d0...0a08 --token-file token.txt -L 2222:intra.example.org:22
  ssh -p 2222 localhost
  sutura tunnel connect proxy.example.org --token-file token.txt --http 8080 -U 51820:wg.example.org:51820
  sutura tunnel connect 'https://masque.example.net/udp{?target_host,target_port}' -U 5353:192.0.2.53:53
  sutura tunnel connect proxy.example.org --token-file token.txt -R 0.0.0.0:8080:localhost:80
  sudo sutura tunnel connect proxy.example.org --token-file token.txt --tun --route 0.0.0.0/0 --route ::/0";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct TunnelConnectArgs {
    /// Where proxies are, in the order in which they are tried; UDP port 4433 by default. One that takes requests for
    /// UDP at a path of its own is given by its URI template (RFC 9298), with port 443 by default
    #[arg(value_name = "HOST[:PORT]", required = true)]
    hosts: Vec<KnownProxy>,
    /// Show the token in this file
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// The token; others on this machine may see it in the list of processes, so prefer the file or the variable
    #[arg(long, value_name = "TEXT", env = "SUTURA_TUNNEL_TOKEN", hide_env_values = true)]
    #[arg(conflicts_with = "token_file")]
    token: Option<String>,
    #[command(flatten)]
    trust: TrustArgs,
    /// Certificate chain in PEM form to show to a proxy that wants one (`sutura tunnel serve --client-ca`)
    #[arg(long, value_name = "FILE", requires = "client_key")]
    client_cert: Option<PathBuf>,
    /// Private key of --client-cert in PEM form
    #[arg(long, value_name = "FILE", requires = "client_cert")]
    client_key: Option<PathBuf>,
    /// Forward connections to a port of this machine to a target beyond the proxy
    #[arg(short = 'L', long = "local", value_name = "[BIND:]PORT:HOST:HOSTPORT")]
    local: Vec<Forward>,
    /// Forward connections to a port of the proxy's machine to a target on this side
    #[arg(short = 'R', long = "remote", value_name = "[BIND:]PORT:HOST:HOSTPORT")]
    remote: Vec<Backward>,
    /// Be a SOCKS5 proxy at a port of this machine, for TCP and UDP
    #[arg(short = 'D', long = "socks", value_name = "[BIND:]PORT")]
    socks: Vec<Bind>,
    /// Be an HTTP proxy (CONNECT) at a port of this machine
    #[arg(long, value_name = "[BIND:]PORT")]
    http: Vec<Bind>,
    /// Forward datagrams to a UDP port of this machine to a target beyond the proxy
    #[arg(short = 'U', long = "udp", value_name = "[BIND:]PORT:HOST:HOSTPORT")]
    udp: Vec<Forward>,
    #[command(flatten)]
    machine: MachineArgs,
    /// Treat flows as the rules in this file say: a line such as `udp:27015 real-time` (see docs/tunnel.md)
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// Ask for a sign of life after this many seconds of silence, so that a lost connection is noticed; with 0, do
    /// not
    #[arg(long, value_name = "SECONDS", default_value = "3", value_parser = seconds::pause)]
    keepalive: Duration,
    #[command(flatten)]
    dial: DialArgs,
    #[command(flatten)]
    transport: TransportArgs,
    #[command(flatten)]
    user: UserArgs,
    #[command(flatten)]
    qlog: QlogArgs,
    #[command(flatten)]
    monitor: MonitorArgs,
    /// Show every two seconds, and at the end, what is carried and what is lost on the way
    #[arg(long)]
    stats: bool,
    /// Print the addresses as JSON, and statistics at the end
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    config: ConfigArgs,
}

impl TunnelConnectArgs {
    /// Goes on without root's rights, if that is wanted.
    pub fn give_up_root(&self) -> Result<(), Failure> {
        let forwards = self.local.iter().chain(&self.udp).map(|forward| forward.bind);
        let doors = self.socks.iter().chain(&self.http).map(|Bind(at)| *at);
        let low_ports = forwards.chain(doors).any(|at| is_low(at.port()));
        self.user.give_up_root(Needs { device: self.machine.is_wanted(), low_ports })
    }

    fn carries_nothing(&self) -> bool {
        self.local.is_empty()
            && self.remote.is_empty()
            && self.socks.is_empty()
            && self.http.is_empty()
            && self.udp.is_empty()
            && !self.machine.is_wanted()
    }
}

/// The sockets at which programs come in.
#[derive(Debug, Default)]
struct Doorways {
    local: Vec<(TcpListener, Forward)>,
    socks: Vec<TcpListener>,
    http: Vec<TcpListener>,
    udp: Vec<(UdpSocket, Forward)>,
}

/// Carries programs until interrupted.
pub async fn run(args: TunnelConnectArgs) -> Result<Exit, Failure> {
    open_files::permit_all();
    let token = given(args.token_file.as_deref(), args.token.as_deref())?;
    if args.carries_nothing() {
        return Err(Failure::usage(
            "there is nothing to carry: say -L, -R, -D, --http, -U or --tun",
        ));
    }
    let sockets = Doorways::bind(&args).await?;
    let (dial, proxies) = dialling(&args).await?;
    let tunnel = tunnel(&args, dial, token.as_ref().map(|token| token.as_str())).await?;
    let interrupted = interrupted();
    tokio::pin!(interrupted);
    let mut running = tokio::spawn({
        let tunnel = tunnel.clone();
        async move { tunnel.run().await }
    });
    tokio::select! {
        ended = &mut running => return Err(refused(ended)),
        ready = tunnel.ready() => ready.map_err(|why| Failure::new(Exit::NoConnection, why))?,
    }
    let mut machine = args.machine.start(&tunnel, &proxies);
    let device = tokio::select! {
        device = machine.attached() => device?,
        ended = &mut running => return Err(refused(ended)),
        _ = &mut interrupted => return Err(Failure::interrupted()),
    };
    sockets.announce(&args, device.as_ref())?;
    let mut serving = sockets.serve(&tunnel);
    for Backward(reverse) in &args.remote {
        let (tunnel, reverse) = (tunnel.clone(), reverse.clone());
        let to = reverse.to.to_string();
        let told = std::sync::atomic::AtomicBool::new(false);
        let listening = move |at: &str| {
            if !told.swap(true, Relaxed) {
                output::note(&format!("{at} of the proxy leads to {to}"));
            }
        };
        serving.spawn(async move { tunnel.reverse(reverse, listening).await });
    }
    if args.stats && !args.json {
        serving.spawn(show(tunnel.clone()));
    }
    tokio::select! {
        ended = &mut running => return Err(refused(ended)),
        failure = machine.failed() => return Err(failure),
        stop = &mut interrupted => {
            stop?;
        }
    }
    let last = tunnel.connection();
    machine.stop().await;
    serving.shutdown().await;
    tunnel.close();
    let _ = timeout(LAST_WORDS, &mut running).await;
    report(&args, &tunnel, last.as_ref())?;
    Ok(Exit::Success)
}

/// The failure for a tunnel that no proxy lets in.
fn refused(ended: Result<Result<(), String>, tokio::task::JoinError>) -> Failure {
    let why = match ended {
        Ok(Err(why)) => why,
        Ok(Ok(())) | Err(_) => "the tunnel has ended".into(),
    };
    Failure::new(Exit::NoConnection, why)
}

/// How proxies are dialled, and their addresses if these are needed: with a device for packets, names of proxies are
/// asked for once, before there is a connection, since the resolver may be beyond the tunnel.
async fn dialling(args: &TunnelConnectArgs) -> Result<(DialArgs, Vec<IpAddr>), Failure> {
    let (mut dial, mut all, mut failure) = (args.dial.clone(), Vec::new(), None);
    if !args.machine.is_wanted() {
        return Ok((dial, all));
    }
    for KnownProxy { authority: host, .. } in &args.hosts {
        match args.dial.addresses(host).await {
            Ok(addresses) => {
                dial.pin(host, &addresses);
                all.extend(addresses.iter().map(SocketAddr::ip));
            }
            Err(why) => {
                output::complain(&why.message);
                failure = Some(why);
            }
        }
    }
    match failure {
        Some(failure) if all.is_empty() => Err(failure),
        Some(_) | None => Ok((dial, all)),
    }
}

async fn tunnel(
    args: &TunnelConnectArgs,
    dial: DialArgs,
    token: Option<&str>,
) -> Result<Tunnel, Failure> {
    args.qlog.prepare()?;
    let identity = Identity::given(args.client_cert.as_deref(), args.client_key.as_deref())?;
    let config = args.trust.trust().client_config_with(sutura::http::ALPN, identity)?;
    let keepalive = Some(args.keepalive).filter(|interval| !interval.is_zero());
    let config =
        config.transport(transport(&args.transport, NO_STREAMS).with_keep_alive(keepalive));
    let connector = Connector::new(config, HANDSHAKE_TIMEOUT, &args.qlog, "sutura tunnel connect")?;
    let connector = connector.dialling(dial);
    let monitor = Some(args.monitor.start("sutura tunnel connect").await?);
    let dialer = Dialer { connector, proxies: args.hosts.clone(), monitor };
    Ok(Tunnel::new(Box::new(dialer), Box::new(Terminal), token, rules(args.rules.as_deref())?))
}

impl Doorways {
    async fn bind(args: &TunnelConnectArgs) -> Result<Self, Failure> {
        let mut all = Self::default();
        for forward in &args.local {
            all.local.push((listen(forward.bind).await?, forward.clone()));
        }
        for Bind(at) in &args.socks {
            all.socks.push(listen(*at).await?);
        }
        for Bind(at) in &args.http {
            all.http.push(listen(*at).await?);
        }
        for forward in &args.udp {
            let socket = UdpSocket::bind(forward.bind).await;
            all.udp.push((socket.map_err(|e| unusable(forward.bind, &e))?, forward.clone()));
        }
        Ok(all)
    }

    /// What is listened at, for people or for scripts, and for these the device.
    fn announce(&self, args: &TunnelConnectArgs, device: Option<&Value>) -> Result<(), Failure> {
        let tcp = |listener: &TcpListener| listener.local_addr().map_err(|e| unknown(&e));
        let mut all: Vec<(&str, SocketAddr, Option<String>)> = Vec::new();
        for (listener, forward) in &self.local {
            all.push(("local", tcp(listener)?, Some(forward.to.to_string())));
        }
        for listener in &self.socks {
            all.push(("socks", tcp(listener)?, None));
        }
        for listener in &self.http {
            all.push(("http", tcp(listener)?, None));
        }
        for (socket, forward) in &self.udp {
            let at = socket.local_addr().map_err(|e| unknown(&e))?;
            all.push(("udp", at, Some(forward.to.to_string())));
        }
        if args.json {
            let ports = all.iter().map(|(kind, at, to)| {
                json!({ "kind": kind, "listening": at.to_string(), "port": at.port(), "to": to })
            });
            let first = all.first().map(|(_, at, _)| at.to_string());
            let ports: Vec<Value> = ports.collect();
            return output::json(&json!({ "listening": first, "ports": ports, "tun": device }));
        }
        for (kind, at, to) in all {
            output::line(&match (kind, to) {
                ("socks", _) => format!("{at} is a SOCKS5 proxy"),
                ("http", _) => format!("{at} is an HTTP proxy"),
                ("udp", Some(to)) => format!("UDP {at} leads to {to}"),
                (_, to) => format!("{at} leads to {}", to.unwrap_or_default()),
            })?;
        }
        Ok(())
    }

    fn serve(self, tunnel: &Tunnel) -> JoinSet<()> {
        let mut serving = JoinSet::new();
        for (listener, forward) in self.local {
            serving.spawn(local::forward_tcp(listener, tunnel.clone(), forward.to));
        }
        for listener in self.socks {
            serving.spawn(local::serve_socks(listener, tunnel.clone()));
        }
        for listener in self.http {
            serving.spawn(local::serve_http(listener, tunnel.clone()));
        }
        for (socket, forward) in self.udp {
            serving.spawn(local::forward_udp(socket, tunnel.clone(), forward.to));
        }
        serving
    }
}

async fn listen(at: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(at).await.map_err(|e| unusable(at, &e))
}

fn unusable(at: SocketAddr, error: &std::io::Error) -> Failure {
    Failure::local(format!("cannot listen on {at}: {error}"))
}

fn unknown(error: &std::io::Error) -> Failure {
    Failure::local(format!("the system does not say where it listens: {error}"))
}

/// Shows what is carried, for ever.
async fn show(tunnel: Tunnel) {
    let mut ticks = interval(STATS_INTERVAL);
    ticks.tick().await;
    let mut earlier: Option<(usize, Statistics)> = None;
    loop {
        ticks.tick().await;
        if let Some(connection) = tunnel.connection() {
            let (id, now) = (connection.stable_id(), Statistics::of(&connection));
            if let Some((_, before)) = earlier.as_ref().filter(|(known, _)| *known == id) {
                now.live("proxy", before).iter().for_each(|line| output::note(line));
            }
            earlier = Some((id, now));
        }
        output::note(&format!("  {}", text(tunnel.totals())));
    }
}

/// Statistics at the end.
fn report(
    args: &TunnelConnectArgs,
    tunnel: &Tunnel,
    last: Option<&sutura::Connection>,
) -> Result<(), Failure> {
    let statistics = last.map(Statistics::of);
    if args.json {
        let mut value = statistics.map_or_else(|| json!({}), |statistics| statistics.to_json());
        value["tunnel"] = to_json(tunnel.totals());
        return output::json(&value);
    }
    if args.stats {
        let lines = statistics.map(|statistics| statistics.summary("proxy")).unwrap_or_default();
        lines.iter().for_each(|line| output::note(line));
        output::note(&format!("  {}", text(tunnel.totals())));
    }
    Ok(())
}

fn text(totals: &Totals) -> String {
    format!(
        "{} flows, {} of TCP, {} of UDP and {} of packets in all, {} refused, {} resumed, {} lost; {} sent, \
         {} received, {} datagrams dropped, {} reconnections",
        totals.flows.load(Relaxed),
        totals.tcp.load(Relaxed),
        totals.udp.load(Relaxed),
        totals.ip.load(Relaxed),
        totals.refused.load(Relaxed),
        totals.resumed.load(Relaxed),
        totals.lost.load(Relaxed),
        bytes(totals.sent.load(Relaxed)),
        bytes(totals.received.load(Relaxed)),
        totals.dropped.load(Relaxed),
        totals.reconnections.load(Relaxed),
    )
}

fn to_json(totals: &Totals) -> Value {
    json!({
        "flows": totals.flows.load(Relaxed),
        "tcp": totals.tcp.load(Relaxed),
        "udp": totals.udp.load(Relaxed),
        "ip": totals.ip.load(Relaxed),
        "refused": totals.refused.load(Relaxed),
        "resumed": totals.resumed.load(Relaxed),
        "lost": totals.lost.load(Relaxed),
        "bytes_sent": totals.sent.load(Relaxed),
        "bytes_received": totals.received.load(Relaxed),
        "datagrams_dropped": totals.dropped.load(Relaxed),
        "reconnections": totals.reconnections.load(Relaxed),
    })
}

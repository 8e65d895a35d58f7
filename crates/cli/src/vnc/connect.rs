//! `sutura vnc connect`: the end of the bridge beside the viewer.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;
use zeroize::Zeroizing;

use super::listener::{Arrival, ListenAt, ViewerListener};
use super::token::TokenArgs;
use super::{ALPN, DEFAULT_PORT, DONE, HANDSHAKE_TIMEOUT, LAST_WORDS, stopped, transport, viewer};
use crate::cert::Identity;
use crate::connect::Connector;
use crate::doors::Doors;
use crate::failure::{Exit, Failure};
use crate::interrupt::interrupted;
use crate::monitor::{Monitor, MonitorArgs};
use crate::output;
use crate::qlog::QlogArgs;
use crate::transport::TransportArgs;
use crate::trust::TrustArgs;
use crate::url::Authority;

/// Most viewers at a time, and most of one network that is not this machine: 48.
const MAX_VIEWERS: usize = 64;

const NO_TOKEN: &str = "no token: `sutura vnc serve` prints it when it starts; give it by --token-file FILE or \
                        the variable SUTURA_VNC_TOKEN, or say --no-token if the server wants none";

const EXAMPLES: &str = "\
Any viewer then shows the screen: vncviewer localhost::5901, or Remmina, or noVNC through websockify. It stays
open when the connection is lost for a while, and goes on when it is back.

Examples:
  sutura vnc connect desktop.example.org --token-file token.txt
  sutura vnc connect 192.0.2.7 --fingerprint 9f86d0...0a08 --token-file token.txt --listen localhost:5902
  sutura vnc connect desktop.example.org --no-token --client-cert ann.pem --client-key ann.key
  sutura vnc connect desktop.example.org --token-file token.txt --listen unix:/run/user/1000/desktop
  SUTURA_VNC_TOKEN=... sutura vnc connect desktop.example.org:7000 --stats";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct ConnectArgs {
    /// Where `sutura vnc serve` runs; UDP port 5900 by default
    #[arg(value_name = "HOST[:PORT]", value_parser = server)]
    host: Authority,
    /// TCP address to listen on for viewers, or a UNIX socket, which only this user may connect to
    #[arg(long, value_name = "HOST:PORT|unix:PATH", default_value = "localhost:5901")]
    #[arg(value_parser = ListenAt::parse)]
    listen: ListenAt,
    #[command(flatten)]
    trust: TrustArgs,
    /// Certificate chain in PEM form to show to a server that wants one (`sutura vnc serve --client-ca`)
    #[arg(long, value_name = "FILE", requires = "client_key")]
    client_cert: Option<PathBuf>,
    /// Private key of --client-cert in PEM form
    #[arg(long, value_name = "FILE", requires = "client_cert")]
    client_key: Option<PathBuf>,
    #[command(flatten)]
    token: TokenArgs,
    /// Show no token, to a server that wants none (`sutura vnc serve --no-token`)
    #[arg(long, conflicts_with_all = ["token", "token_file"])]
    no_token: bool,
    #[command(flatten)]
    transport: TransportArgs,
    #[command(flatten)]
    qlog: QlogArgs,
    #[command(flatten)]
    monitor: MonitorArgs,
    /// Show every two seconds, and when a viewer leaves, how long pieces of the screen wait for
    /// others, and what is lost on the way
    #[arg(long)]
    stats: bool,
    /// Print the listening address as JSON, and statistics of each viewer when it leaves
    #[arg(long)]
    json: bool,
}

fn server(text: &str) -> Result<Authority, &'static str> {
    Authority::parse(text, DEFAULT_PORT)
}

/// The parts that all viewers share.
#[derive(Debug)]
pub struct Context {
    pub connector: Connector,
    pub authority: Authority,
    pub token: Zeroizing<String>,
    pub monitor: Monitor,
    pub stats: bool,
    pub json: bool,
    /// Whether the command is to stop.
    pub stop: watch::Receiver<bool>,
}

/// Serves viewers until interrupted.
pub async fn run(args: ConnectArgs) -> Result<Exit, Failure> {
    let token = match args.token.given()? {
        None if args.no_token => Zeroizing::default(),
        None => return Err(Failure::usage(NO_TOKEN)),
        Some(token) => token,
    };
    args.qlog.prepare()?;
    let identity = Identity::given(args.client_cert.as_deref(), args.client_key.as_deref())?;
    let config = args.trust.trust().client_config_with(ALPN, identity)?;
    let config = config.transport(transport(&args.transport));
    let connector = Connector::new(config, HANDSHAKE_TIMEOUT, &args.qlog, "sutura vnc connect")?;
    let unusable =
        |e: std::io::Error| Failure::local(format!("cannot listen on {}: {e}", args.listen));
    let listener = ViewerListener::bind(&args.listen).await.map_err(unusable)?;
    let (address, port) = listener.local().map_err(unusable)?;
    let monitor = args.monitor.start("sutura vnc connect").await?;
    let interrupted = interrupted();
    announce(&args, &address, port)?;
    let (authority, stats, json) = (args.host, args.stats, args.json);
    let (stopping, stop) = watch::channel(false);
    let context = Arc::new(Context { connector, authority, token, monitor, stats, json, stop });
    let mut accepting = tokio::spawn(accept(listener, context.clone()));
    interrupted.await?;
    // Viewers learn of the end because their connections end.
    let _ = stopping.send(true);
    let _ = timeout(LAST_WORDS, &mut accepting).await;
    accepting.abort();
    context.connector.close(DONE).await;
    Ok(Exit::Success)
}

fn announce(args: &ConnectArgs, address: &str, port: Option<u16>) -> Result<(), Failure> {
    if args.json {
        return output::json(&json!({ "listening": address, "port": port }));
    }
    output::line(&format!("{address} shows viewers the screen of {}", args.host))
}

async fn accept(mut listener: ViewerListener, context: Arc<Context>) {
    let (mut viewers, doors) = (JoinSet::new(), Doors::new(MAX_VIEWERS));
    let mut stop = context.stop.clone();
    loop {
        tokio::select! {
            () = stopped(&mut stop) => break,
            accepted = listener.accept() => match accepted {
                Ok(Arrival { socket, from, name }) => {
                    let Some(pass) = doors.enter(from) else {
                        output::complain(&format!("{name}: there are too many viewers already"));
                        continue;
                    };
                    let context = context.clone();
                    viewers.spawn(async move {
                        match viewer::show(socket, &context, &name, &pass).await {
                            Ok(()) => output::note(&format!("{name}: left")),
                            Err(why) => output::complain(&format!("{name}: {why}")),
                        }
                    });
                }
                Err(error) => {
                    // For example, too many open files: some may be closed soon.
                    output::complain(&format!("cannot accept viewers: {error}"));
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            },
            Some(_) = viewers.join_next() => {}
        }
    }
    while viewers.join_next().await.is_some() {}
}

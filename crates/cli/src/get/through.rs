//! A proxy between a client and its servers: `sutura tunnel serve`, or another that knows CONNECT-UDP (RFC 9298).

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use sutura::AsyncUdpSocket;
use sutura_tunnel::access::Target;
use sutura_tunnel::client::{Notices, Tunnel, TunnelSocket};
use sutura_tunnel::flow::Rules;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::chatter::Chatter;
use crate::cert::parse_fingerprint;
use crate::connect::{Connector, Detour};
use crate::dial::DialArgs;
use crate::failure::{Exit, Failure};
use crate::qlog::QlogArgs;
use crate::token::given;
use crate::transport::TransportArgs;
use crate::trust::Trust;
use crate::tunnel::dialer::Dialer;
use crate::tunnel::known_proxy::KnownProxy;
use crate::tunnel::{IDLE_TIMEOUT, LAST_WORDS};
use crate::url::Authority;

/// After this much silence the proxy is asked for a sign of life.
const KEEP_ALIVE: Duration = Duration::from_secs(3);
/// How long a handshake with the proxy may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, clap::Args)]
pub struct ThroughArgs {
    /// Go through this proxy, which resolves names and needs `udp/` rules for the servers: `sutura tunnel serve`, or
    /// another that knows CONNECT-UDP; port 4433 by default. One with a path of its own is given by its URI template, with
    /// port 443 by default
    #[arg(short = 'x', long, value_name = "HOST[:PORT]")]
    #[arg(conflicts_with_all = ["ipv4", "ipv6"])]
    proxy: Option<KnownProxy>,
    /// Show the proxy the token in this file; the variable SUTURA_TUNNEL_TOKEN may have it instead
    #[arg(long, value_name = "FILE", requires = "proxy")]
    proxy_token_file: Option<PathBuf>,
    /// Trust only the proxy with this SHA-256 fingerprint of its certificate
    #[arg(long, value_name = "SHA256", value_parser = parse_fingerprint, requires = "proxy")]
    #[arg(conflicts_with_all = ["proxy_ca", "proxy_insecure"])]
    proxy_fingerprint: Option<[u8; 32]>,
    /// Trust only certificates of the proxy that are in this PEM file, or lead to one in it
    #[arg(long, value_name = "FILE", requires = "proxy", conflicts_with = "proxy_insecure")]
    proxy_ca: Option<PathBuf>,
    /// Trust any certificate of the proxy
    #[arg(long, requires = "proxy")]
    proxy_insecure: bool,
}

/// A proxy to go through.
#[derive(Debug)]
pub struct ThroughProxy {
    authority: Authority,
    socket: Arc<TunnelSocket>,
    /// What went wrong last.
    trouble: watch::Receiver<Option<String>>,
    /// Ends when the proxy lets nobody in, or the tunnel was closed.
    running: Mutex<Option<JoinHandle<Result<(), String>>>>,
}

impl ThroughArgs {
    /// Begins to connect to the proxy, if one is given. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// An option cannot be used, or there is no socket.
    pub fn start(
        &self,
        transport: &TransportArgs,
        chatter: &Chatter,
    ) -> Result<Option<ThroughProxy>, Failure> {
        let Some(proxy) = self.proxy.clone() else { return Ok(None) };
        let variable = std::env::var("SUTURA_TUNNEL_TOKEN").ok();
        let token = given(self.proxy_token_file.as_deref(), variable.as_deref())?;
        let config = self.trust().client_config_of("--proxy-", sutura::http::ALPN)?;
        let config =
            config.transport(transport.config(IDLE_TIMEOUT).with_keep_alive(Some(KEEP_ALIVE)));
        let connector =
            Connector::new(config, HANDSHAKE_TIMEOUT, &QlogArgs::default(), "sutura get")?;
        let authority = proxy.authority.clone();
        let dialer = Dialer { connector, proxies: vec![proxy], monitor: None };
        let (sender, trouble) = watch::channel(None);
        let notices = Box::new(ProxyNotices { chatter: chatter.clone(), trouble: sender });
        let token = token.as_ref().map(|token| token.as_str());
        let tunnel = Tunnel::new(Box::new(dialer), notices, token, Rules::default());
        let socket = Arc::new(TunnelSocket::new(tunnel.clone()));
        let running = tokio::spawn(async move { tunnel.run().await });
        Ok(Some(ThroughProxy { authority, socket, trouble, running: Mutex::new(Some(running)) }))
    }

    fn trust(&self) -> Trust {
        match (self.proxy_fingerprint, &self.proxy_ca) {
            (Some(fingerprint), _) => Trust::Fingerprint(fingerprint),
            (None, Some(path)) => Trust::File(path.clone()),
            (None, None) if self.proxy_insecure => Trust::Everybody,
            (None, None) => Trust::System,
        }
    }
}

impl ThroughProxy {
    /// Waits for the connection to the proxy, or for what is wrong with it.
    async fn ready(&self) -> Result<(), String> {
        let mut trouble = self.trouble.clone();
        tokio::select! {
            biased;
            ready = self.socket.tunnel().ready() => ready,
            Ok(why) = trouble.wait_for(Option::is_some) => Err(why.clone().unwrap_or_default()),
        }
    }

    /// Asks for a flow of datagrams to a server: to the first address that the user names for it, or to its name.
    async fn flow(&self, dial: &DialArgs, authority: &Authority) -> Result<SocketAddr, Failure> {
        let proxy = &self.authority;
        let failure = |why: &dyn std::fmt::Display| {
            let message = format!("no way to {authority} through the proxy {proxy}: {why}");
            Failure::new(Exit::NoConnection, message)
        };
        self.ready().await.map_err(|why| failure(&why))?;
        let host = match dial.pinned(authority).and_then(<[_]>::first) {
            Some(ip) => ip.to_string(),
            None => authority.host.clone(),
        };
        let host = host.parse().map_err(|e| failure(&e))?;
        let target = Target { host, port: authority.port };
        self.socket.open(&target).await.map_err(|refusal| failure(&refusal))
    }
}

impl Detour for ThroughProxy {
    fn socket(&self) -> Arc<dyn AsyncUdpSocket> {
        self.socket.clone()
    }

    fn open<'a>(
        &'a self,
        dial: &'a DialArgs,
        authority: &'a Authority,
    ) -> BoxFuture<'a, Result<SocketAddr, Failure>> {
        Box::pin(self.flow(dial, authority))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.socket.tunnel().close();
            let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(running) = running {
                let _ = timeout(LAST_WORDS, running).await;
            }
        })
    }
}

/// Tells the user of the proxy among the other things.
struct ProxyNotices {
    chatter: Chatter,
    trouble: watch::Sender<Option<String>>,
}

impl Notices for ProxyNotices {
    fn note(&self, text: &str) {
        self.chatter.fact(text);
    }

    fn complain(&self, text: &str) {
        self.chatter.fact(text);
        self.trouble.send_replace(Some(text.to_owned()));
    }
}

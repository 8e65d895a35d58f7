//! Passes requests on to servers behind this one: a reverse proxy.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{
    CONNECTION, HOST, HeaderMap, HeaderName, HeaderValue, TE, TRAILER, UPGRADE, VIA,
};
use hyper::http::request::Parts;
use hyper::http::uri::PathAndQuery;
use hyper::{Request, Response, StatusCode, Version};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::message::{Content, Reply, empty, status_reply, text_reply};
use super::origin_server::{OriginServer, OriginServers, ToRule};
use super::tunnel::{Tunnel, names_in};
use crate::output;

/// How long it may take to connect to a server.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a server may take until its response begins.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);
/// How long connections to servers are kept without requests: less than most servers keep theirs.
const KEEP: Duration = Duration::from_secs(50);
/// Most connections to a server that wait for requests.
const MAX_KEPT: usize = 64;
/// Most connections that both ends use for something other than HTTP, such as WebSocket.
const MAX_TUNNELS: usize = 1024;
/// How often a server's health is checked.
const HEALTH_INTERVAL: Duration = Duration::from_secs(10);

/// Fields about one connection alone, which are not passed on (RFC 9110 section 7.6.1).
const HOP_BY_HOP: [HeaderName; 8] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("proxy-authenticate"),
    HeaderName::from_static("proxy-authorization"),
    TE,
    TRAILER,
    HeaderName::from_static("transfer-encoding"),
];
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");

/// The options for servers behind this one.
#[derive(Debug, Clone, clap::Args)]
pub struct ProxyArgs {
    /// Pass requests on to this server, such as http://localhost:8080; with a pattern as in a file of
    /// priorities, such as '/api/* => http://localhost:8080', only requests of such paths. Servers of the
    /// same requests take turns
    #[arg(long, value_name = "RULE", help_heading = "Servers behind")]
    to: Vec<ToRule>,
    /// Ask servers for this path every 10 seconds, and leave those alone that do not answer with success
    #[arg(long, value_name = "PATH", help_heading = "Servers behind", value_parser = path)]
    #[arg(requires = "to")]
    health: Option<PathAndQuery>,
}

fn path(text: &str) -> Result<PathAndQuery, &'static str> {
    let path = text.parse().ok().filter(|_| text.starts_with('/'));
    path.ok_or("expected a path such as /health")
}

/// The servers behind this one.
#[derive(Debug)]
pub struct Proxy {
    servers: OriginServers,
    health: Option<PathAndQuery>,
    client: Client<HttpConnector, Content>,
    tunnels: Arc<Semaphore>,
}

impl Proxy {
    /// The servers that the options name; `None` if there are none.
    pub fn new(args: &ProxyArgs) -> Option<Self> {
        if args.to.is_empty() {
            return None;
        }
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
        connector.set_nodelay(true);
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(KEEP)
            .pool_max_idle_per_host(MAX_KEPT)
            .build(connector);
        let tunnels = Arc::new(Semaphore::new(MAX_TUNNELS));
        let servers = OriginServers::new(&args.to);
        Some(Self { servers, health: args.health.clone(), client, tunnels })
    }

    /// The servers to try for a request; `None` if it is for none of them.
    pub fn find(&self, target: &str) -> Option<Vec<Arc<OriginServer>>> {
        self.servers.find(target)
    }

    /// The response of the first of `servers` that answers. A request that may have reached a server goes to no
    /// other one, nor does one with a body, which can be sent only once.
    pub async fn answer(
        &self,
        servers: Vec<Arc<OriginServer>>,
        remote: IpAddr,
        mut head: Parts,
        mut body: Content,
    ) -> Reply {
        let tunnel = Tunnel::take(&mut head, &mut body);
        forward_fields(&mut head, remote, tunnel.is_some());
        let mut body = Some(body);
        let is_repeatable = head.method.is_safe();
        let count = servers.len();
        let mut refusal = StatusCode::BAD_GATEWAY;
        for (index, server) in servers.iter().enumerate() {
            let is_last = index + 1 == count || !is_repeatable;
            let content =
                if is_repeatable && !is_last { empty() } else { body.take().unwrap_or_else(empty) };
            match self.ask(server, &head, content).await {
                Ok(response) => {
                    server.note(true);
                    return self.pass_on(response, tunnel).await;
                }
                Err(NoResponse { status, is_silent }) => {
                    if is_silent {
                        server.note(false);
                    }
                    refusal = status;
                }
            }
            if is_last {
                break;
            }
        }
        text_reply(refusal, format!("{refusal}: the server behind this one does not answer\n"))
    }

    async fn ask(
        &self,
        server: &OriginServer,
        head: &Parts,
        body: Content,
    ) -> Result<Response<Incoming>, NoResponse> {
        let malformed = NoResponse { status: StatusCode::BAD_REQUEST, is_silent: false };
        let target = head.uri.path_and_query().cloned().ok_or(malformed)?;
        let mut request = Request::new(body);
        *request.method_mut() = head.method.clone();
        *request.headers_mut() = head.headers.clone();
        *request.uri_mut() = server.uri(target).ok_or(malformed)?;
        match timeout(RESPONSE_TIMEOUT, self.client.request(request)).await {
            Ok(Ok(response)) => Ok(response),
            Ok(Err(error)) => {
                tracing::debug!(%error, %server, "no response");
                // Otherwise it may have been the client that broke off.
                let is_silent = error.is_connect();
                Err(NoResponse { status: StatusCode::BAD_GATEWAY, is_silent })
            }
            Err(_) => Err(NoResponse { status: StatusCode::GATEWAY_TIMEOUT, is_silent: true }),
        }
    }

    /// The response of a server for the client. With a `tunnel`, both ends speak another protocol after a
    /// response that says so.
    async fn pass_on(&self, mut response: Response<Incoming>, tunnel: Option<Tunnel>) -> Reply {
        let is_upgrade = response.status() == StatusCode::SWITCHING_PROTOCOLS;
        let protocol = response.headers().get(UPGRADE).cloned();
        strip(response.headers_mut());
        if !is_upgrade {
            return response.map(|body| body.map_err(Into::into).boxed_unsync());
        }
        let Some(tunnel) = tunnel else { return status_reply(StatusCode::BAD_GATEWAY) };
        let Ok(permit) = self.tunnels.clone().try_acquire_owned() else {
            return status_reply(StatusCode::SERVICE_UNAVAILABLE);
        };
        tunnel.go_on(response, protocol, permit).await
    }

    /// Checks the health of all servers for ever.
    pub async fn check(self: Arc<Self>) {
        let Some(path) = &self.health else { return };
        loop {
            for server in self.servers.all() {
                let healthy = self.is_healthy(server, path).await;
                if server.note_health(healthy) {
                    let how = if healthy { "is healthy again" } else { "is not healthy" };
                    output::note(&format!("{server} {how}"));
                }
            }
            tokio::time::sleep(HEALTH_INTERVAL).await;
        }
    }

    async fn is_healthy(&self, server: &OriginServer, path: &PathAndQuery) -> bool {
        let Some(uri) = server.uri(path.clone()) else { return false };
        let mut request = Request::new(empty());
        *request.uri_mut() = uri;
        let response = timeout(CONNECT_TIMEOUT, self.client.request(request)).await;
        matches!(response, Ok(Ok(response)) if response.status().is_success())
    }
}

/// Why there is no response of a server.
#[derive(Debug, Clone, Copy)]
struct NoResponse {
    status: StatusCode,
    /// Whether the server is to be left alone for a while.
    is_silent: bool,
}

/// Takes away the fields that are about one connection alone.
fn strip(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = names_in(headers).collect();
    for name in HOP_BY_HOP.iter().chain(&named).chain([&UPGRADE]) {
        headers.remove(name);
    }
}

/// Makes the fields of a request those that the server is to see: who asks, by which scheme and host. What the
/// client itself says of that is not believed.
fn forward_fields(head: &mut Parts, remote: IpAddr, upgrades: bool) {
    let upgrade = head.headers.get(UPGRADE).cloned().filter(|_| upgrades);
    strip(&mut head.headers);
    if let Some(upgrade) = upgrade {
        head.headers.insert(UPGRADE, upgrade);
        head.headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    }
    let authority = head.uri.authority().map(|authority| authority.as_str());
    if let Some(Ok(host)) = authority.map(HeaderValue::from_str) {
        head.headers.insert(HOST, host);
    }
    match head.headers.get(HOST).cloned() {
        Some(host) => head.headers.insert(FORWARDED_HOST, host),
        None => head.headers.remove(FORWARDED_HOST),
    };
    head.headers.insert(FORWARDED_PROTO, HeaderValue::from_static("https"));
    if let Ok(remote) = HeaderValue::try_from(remote.to_canonical().to_string()) {
        head.headers.insert(FORWARDED_FOR, remote);
    }
    let via = match head.version {
        Version::HTTP_3 => "3 sutura",
        Version::HTTP_2 => "2 sutura",
        _ => "1.1 sutura",
    };
    head.headers.append(VIA, HeaderValue::from_static(via));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(fields: &[(&'static str, &'static str)]) -> Parts {
        let mut request = Request::get("https://site/x").body(()).unwrap();
        for (name, value) in fields {
            request.headers_mut().append(*name, HeaderValue::from_static(value));
        }
        request.into_parts().0
    }

    #[test]
    fn the_server_sees_who_asks_and_no_field_of_the_connection() {
        let mut head = head(&[
            ("host", "elsewhere"),
            ("connection", "close, x-mine"),
            ("x-mine", "1"),
            ("te", "trailers"),
            ("keep-alive", "x"),
            ("upgrade", "h2c"),
            ("x-forwarded-for", "1.2.3.4"),
            ("x-forwarded-proto", "http"),
            ("accept", "a"),
        ]);
        forward_fields(&mut head, "::ffff:192.0.2.1".parse().unwrap(), false);
        let mut all: Vec<_> = head
            .headers
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()))
            .collect();
        all.sort();
        assert_eq!(
            all,
            [
                "accept: a",
                "host: site",
                "via: 1.1 sutura",
                "x-forwarded-for: 192.0.2.1",
                "x-forwarded-host: site",
                "x-forwarded-proto: https",
            ]
        );
    }

    #[test]
    fn another_protocol_is_asked_for_only_if_the_client_does() {
        let both = [("connection", "keep-alive, Upgrade"), ("upgrade", "websocket")];
        let mut asks = head(&both);
        forward_fields(&mut asks, "192.0.2.1".parse().unwrap(), true);
        assert_eq!(asks.headers[UPGRADE], "websocket");
        assert_eq!(asks.headers[CONNECTION], "upgrade");
        // Nothing can become of a connection that does not come from hyper.
        assert!(Tunnel::take(&mut head(&both), &mut empty()).is_none());
    }
}

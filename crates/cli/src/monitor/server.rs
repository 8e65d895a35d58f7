//! The small web server of the page and the figures.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;

use super::{Watched, metrics};
use crate::url::Authority;
use sutura_tunnel::bounded_accept::accept_all;

/// Most connections at a time.
const MAX_CONNECTIONS: usize = 32;
/// How long a connection may wait for its next request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Largest header section of a request, in bytes.
const MAX_HEAD: usize = 16 * 1024;
/// The page is whole: it asks for nothing of anybody else.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'";
const PAGE: &str = include_str!("page.html");
const BOARD_PATH: &str = "/";
const STATE_PATH: &str = "/state.json";
const METRICS_PATH: &str = "/metrics";

/// What is shown at an address.
#[derive(Debug, Clone, Copy)]
pub struct Pages {
    pub board: bool,
    pub metrics: bool,
}

impl Pages {
    /// The paths for people and programs to begin with.
    pub fn paths(self) -> impl Iterator<Item = &'static str> {
        let board = self.board.then_some(BOARD_PATH);
        board.into_iter().chain(self.metrics.then_some(METRICS_PATH))
    }
}

/// Serves the pages at an address for ever.
pub async fn serve(
    listener: TcpListener,
    address: SocketAddr,
    pages: Pages,
    watched: Arc<Watched>,
) {
    accept_all(listener, MAX_CONNECTIONS, |stream| {
        let watched = watched.clone();
        async move {
            let service = service_fn(|request| {
                let response = answer(&request, address, pages, &watched);
                async move { Ok::<_, Infallible>(response) }
            });
            let _ = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_TIMEOUT)
                .max_buf_size(MAX_HEAD)
                .serve_connection(TokioIo::new(stream), service)
                .await;
        }
    })
    .await;
}

fn answer(
    request: &Request<Incoming>,
    address: SocketAddr,
    pages: Pages,
    watched: &Arc<Watched>,
) -> Response<Full<Bytes>> {
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    if !is_for(host, address) {
        return reply(StatusCode::MISDIRECTED_REQUEST, "text/plain", "not this host\n");
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return reply(StatusCode::METHOD_NOT_ALLOWED, "text/plain", "405 Method Not Allowed\n");
    }
    match request.uri().path() {
        BOARD_PATH if pages.board => reply(StatusCode::OK, "text/html; charset=utf-8", PAGE),
        STATE_PATH if pages.board => {
            reply(StatusCode::OK, "application/json", watched.to_json().to_string())
        }
        METRICS_PATH if pages.metrics => match metrics::text(watched) {
            Ok(text) => reply(StatusCode::OK, metrics::CONTENT_TYPE, text),
            Err(error) => reply(StatusCode::INTERNAL_SERVER_ERROR, "text/plain", error.to_string()),
        },
        _ => reply(StatusCode::NOT_FOUND, "text/plain", "404 Not Found\n"),
    }
}

/// Whether a request names this host. A page of somebody else, whose name leads to this machine, could otherwise
/// read what only this machine is to see.
fn is_for(host: Option<&str>, address: SocketAddr) -> bool {
    if !address.ip().is_loopback() {
        return true;
    }
    let Some(Ok(host)) = host.map(|host| Authority::parse(host, address.port())) else {
        return false;
    };
    host.host == "localhost" || host.host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

fn reply(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_this_machine_sees_is_shown_under_its_own_names_alone() {
        let loopback = "127.0.0.1:9000".parse().unwrap();
        for (host, shown) in [
            ("localhost:9000", true),
            ("127.0.0.1:9000", true),
            ("[::1]:9000", true),
            ("LOCALHOST", true),
            ("evil.example:9000", false),
            ("192.0.2.1", false),
            ("", false),
        ] {
            assert_eq!(is_for(Some(host), loopback), shown, "{host}");
        }
        assert!(!is_for(None, loopback));
        assert!(is_for(Some("monitor.example"), "192.0.2.1:9000".parse().unwrap()));
    }
}

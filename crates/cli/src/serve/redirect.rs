//! Sends clients of plain HTTP to the site: the option `--redirect`.

use std::convert::Infallible;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::header::{HOST, LOCATION};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};

use crate::url::Authority;
use sutura_tunnel::bounded_accept::accept_all;

/// Most connections at a time.
const MAX_CONNECTIONS: usize = 256;
/// How long a connection may last: it is for one request, or a few.
const TIMEOUT: Duration = Duration::from_secs(20);
/// Largest header section of a request, in bytes.
const MAX_HEAD: usize = 16 * 1024;
/// The port of plain HTTP.
const PLAIN_PORT: u16 = 80;

/// Redirects all clients to the same host at `port`.
pub async fn accept(listener: TcpListener, port: u16) {
    accept_all(listener, MAX_CONNECTIONS, |stream| async move {
        let _ = tokio::time::timeout(TIMEOUT, answer(stream, port)).await;
    })
    .await;
}

async fn answer(stream: TcpStream, port: u16) -> io::Result<()> {
    stream.set_nodelay(true)?;
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(TIMEOUT)
        .max_buf_size(MAX_HEAD)
        .serve_connection(
            TokioIo::new(stream),
            service_fn(|request| async move { Ok::<_, Infallible>(redirect(&request, port)) }),
        )
        .await
        .map_err(io::Error::other)
}

fn redirect(request: &Request<Incoming>, port: u16) -> Response<Empty<Bytes>> {
    let hosts: Vec<_> = request.headers().get_all(HOST).iter().collect();
    let host = match hosts.as_slice() {
        [one] => one.to_str().ok(),
        _ => None,
    };
    let target = request.uri().path_and_query().map(|target| target.as_str());
    let location = host.zip(target).and_then(|(host, target)| location(host, target, port));
    let mut response = Response::new(Empty::new());
    match location.and_then(|location| location.parse().ok()) {
        Some(location) => {
            // The method stays, which 301 does not promise (RFC 9110 section 15.4.9).
            *response.status_mut() = StatusCode::PERMANENT_REDIRECT;
            response.headers_mut().insert(LOCATION, location);
        }
        None => *response.status_mut() = StatusCode::BAD_REQUEST,
    }
    response
}

/// The URL for a request to `host`, which may have a port of its own.
fn location(host: &str, target: &str, port: u16) -> Option<String> {
    let Authority { host, .. } = Authority::parse(host, PLAIN_PORT).ok()?;
    let target = target.strip_prefix('/')?;
    let authority = Authority { host, port };
    Some(format!("https://{authority}/{target}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_sent_to_the_same_host() {
        for (host, target, port, expected) in [
            ("example.org", "/a?b=c", 443, Some("https://example.org/a?b=c")),
            ("example.org:8080", "/", 4433, Some("https://example.org:4433/")),
            ("[::1]:80", "//evil/", 443, Some("https://[::1]//evil/")),
            ("", "/", 443, None),
            ("a b", "/", 443, None),
            ("user@host", "/", 443, None),
            ("example.org", "*", 443, None),
        ] {
            assert_eq!(location(host, target, port).as_deref(), expected, "{host} {target}");
        }
    }
}

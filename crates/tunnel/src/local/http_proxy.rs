//! An HTTP proxy for programs that know no SOCKS: CONNECT over HTTP/1.1 (RFC 9110 section 9.3.6).

use std::convert::Infallible;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::upgrade::Parts;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};

use super::{HELLO_TIMEOUT, MAX_PROGRAMS, begin};
use crate::bounded_accept::accept_all;
use crate::client::{TcpTunnel, Tunnel};
use crate::masque::PROXY_STATUS;

/// Largest header section of a request, in bytes.
pub const MAX_HEAD: usize = 16 << 10;

const ONLY_CONNECT: &str =
    "This proxy knows CONNECT only: https pages work, http pages do not. Use SOCKS for these.\n";

/// Serves programs that speak to HTTP proxies, for ever.
pub async fn serve_http(listener: TcpListener, tunnel: Tunnel) {
    accept_all(listener, MAX_PROGRAMS, |tcp| serve(tcp, tunnel.clone())).await;
}

/// Serves one program.
async fn serve(tcp: TcpStream, tunnel: Tunnel) {
    // The answers are short, and each is waited for.
    let _ = tcp.set_nodelay(true);
    let service = service_fn(|request| {
        let tunnel = tunnel.clone();
        async move { Ok::<_, Infallible>(answer(request, &tunnel).await) }
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HELLO_TIMEOUT)
        .max_header_size(MAX_HEAD)
        .serve_connection(TokioIo::new(tcp), service)
        .with_upgrades();
    if let Err(error) = served.await
        && !error.is_incomplete_message()
    {
        tunnel.complain(&format!("a program does not speak HTTP as a proxy expects: {error}"));
    }
}

async fn answer(request: Request<Incoming>, tunnel: &Tunnel) -> Response<Full<Bytes>> {
    if request.method() != Method::CONNECT {
        return text(StatusCode::NOT_IMPLEMENTED, ONLY_CONNECT.into());
    }
    let target = request.uri().authority().and_then(|authority| authority.as_str().parse().ok());
    let Some(target) = target else {
        return text(StatusCode::BAD_REQUEST, "CONNECT wants a host and a port.\n".into());
    };
    match begin(tunnel, &target).await {
        Ok(flow) => {
            tokio::spawn(go_on(request, flow));
            Response::default()
        }
        Err(refusal) => {
            // The program is not to show its own credentials to a proxy that it does not know of.
            let status = match refusal.status() {
                407 => StatusCode::BAD_GATEWAY,
                status => StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY),
            };
            let mut response = text(status, format!("{refusal}\n"));
            if let Some(cause) = refusal.cause()
                && let Ok(value) = HeaderValue::try_from(cause.to_field(&refusal.to_string()))
            {
                response.headers_mut().insert(PROXY_STATUS, value);
            }
            response
        }
    }
}

/// Carries a flow once the program was told so.
async fn go_on(request: Request<Incoming>, flow: TcpTunnel) {
    let Ok(upgraded) = hyper::upgrade::on(request).await else { return };
    if let Ok(Parts { io, read_buf, .. }) = upgraded.downcast::<TokioIo<TcpStream>>() {
        flow.carry(io.into_inner(), read_buf).await;
    }
}

fn text(status: StatusCode, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(text.into()));
    *response.status_mut() = status;
    let plain = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, plain);
    response
}

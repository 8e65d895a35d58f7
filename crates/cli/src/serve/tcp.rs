//! Serves the site over HTTP/2 and HTTP/1.1, advertising HTTP/3 to clients that do not use it yet.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{ALT_SVC, HOST};
use hyper::http::request::Parts;
use hyper::http::uri::Scheme;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, Version};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use sutura::MemoryBudget;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio_io_timeout::TimeoutStream;
use tokio_rustls::TlsAcceptor;

use super::access::Access;
use super::logged::Logged;
use super::message::status_reply;
use super::service::Service;
use super::underway::Underway;
use crate::output;
use sutura_tunnel::bounded_accept::PAUSE;

/// Most connections at a time.
const MAX_CONNECTIONS: usize = 1024;
/// Bytes that a connection may hold: the state and the buffers of TLS, and the part of a file that is being
/// sent.
const COST: usize = 128 * 1024;
/// Timeout of a TLS handshake.
const TLS_TIMEOUT: Duration = Duration::from_secs(10);
/// Largest header section of a request, in bytes.
const MAX_HEAD: usize = 16 * 1024;
/// How long a connection may wait for its next request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(15);
/// How long a client may stall without taking data.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a connection of HTTP/2 stays open without requests.
const IDLE_TIMEOUT: Duration = Duration::from_secs(120);
/// Most requests at a time on a connection of HTTP/2.
const MAX_STREAMS: u32 = 100;
/// Most bytes of a response that wait to be sent on HTTP/2.
const MAX_BUFFER: usize = 64 * 1024;
/// The names of the protocols in TLS (RFC 7301), the preferred one first.
pub const PROTOCOLS: [&[u8]; 2] = [H2, b"http/1.1"];
const H2: &[u8] = b"h2";

/// Serves all clients until `stop` is true, then waits for what is under way.
pub async fn accept(
    listener: TcpListener,
    tls: TlsAcceptor,
    service: Arc<Service>,
    budget: MemoryBudget,
    mut stop: watch::Receiver<bool>,
) {
    let room = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let next = async { (room.clone().acquire_owned().await, listener.accept().await) };
        let (permit, accepted) = tokio::select! {
            next = next => next,
            () = until_true(&mut stop) => break,
        };
        let (stream, remote) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                output::complain(&format!("cannot accept over TCP: {error}"));
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        if !budget.admits(remote.ip()) {
            continue;
        }
        let mut account = budget.open(remote.ip());
        account.set(COST);
        let (tls, service, stop) = (tls.clone(), service.clone(), stop.clone());
        connections.spawn(async move {
            if let Err(error) = answer_tls(stream, remote, &tls, &service, stop).await {
                service.log.connection(remote, &error);
            }
            drop((permit, account));
        });
    }
    // Clients that come now are refused, and may go elsewhere.
    drop(listener);
    while connections.join_next().await.is_some() {}
}

async fn answer_tls(
    stream: TcpStream,
    remote: SocketAddr,
    tls: &TlsAcceptor,
    service: &Arc<Service>,
    stop: watch::Receiver<bool>,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let stream = tokio::time::timeout(TLS_TIMEOUT, tls.accept(stream)).await??;
    if stream.get_ref().1.alpn_protocol() == Some(H2) {
        serve_h2(stream, remote, service, stop).await
    } else {
        serve_h1(stream, remote, service, stop).await
    }
}

/// A stream that ends when its client does not take data any more.
fn timed<S: AsyncRead + AsyncWrite>(stream: S) -> TokioIo<Pin<Box<TimeoutStream<S>>>> {
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(WRITE_TIMEOUT));
    TokioIo::new(Box::pin(stream))
}

/// Answers one request after another until the client is done, or until `stop` is true.
///
/// # Errors
/// The client disconnected, took too long, or sent something other than HTTP/1.1.
pub async fn serve_h1<S>(
    stream: S,
    remote: SocketAddr,
    service: &Arc<Service>,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let underway = Underway::new();
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD)
        .half_close(true)
        .serve_connection(
            timed(stream),
            service_fn(|request| answer(request, remote, service.clone(), underway.clone())),
        )
        .with_upgrades();
    until_unwanted(connection, |it| it.graceful_shutdown(), until_true(&mut stop)).await
}

/// Answers requests side by side until the client is done or idle, or until `stop` is true.
async fn serve_h2<S>(
    stream: S,
    remote: SocketAddr,
    service: &Arc<Service>,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Send + 'static,
{
    let underway = Underway::new();
    let (counted, service) = (underway.clone(), service.clone());
    let mut builder = http2::Builder::new(TokioExecutor::new());
    if service.has_tunnels() {
        builder.enable_connect_protocol();
    }
    let connection = builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(MAX_STREAMS)
        .max_header_list_size(MAX_HEAD as u32)
        .max_send_buf_size(MAX_BUFFER)
        .keep_alive_interval(HEAD_TIMEOUT)
        .keep_alive_timeout(WRITE_TIMEOUT)
        .serve_connection(
            timed(stream),
            service_fn(move |request| answer(request, remote, service.clone(), counted.clone())),
        );
    let unwanted = async {
        tokio::select! {
            () = underway.idle(IDLE_TIMEOUT) => {}
            () = until_true(&mut stop) => {}
        }
    };
    until_unwanted(connection, |it| it.graceful_shutdown(), unwanted).await
}

/// Serves a connection until the client is done. Once it is `unwanted`, it is told to `finish` what is under way.
async fn until_unwanted<C>(
    connection: C,
    finish: impl FnOnce(Pin<&mut C>),
    unwanted: impl Future<Output = ()>,
) -> io::Result<()>
where
    C: Future<Output = hyper::Result<()>>,
{
    let mut connection = std::pin::pin!(connection);
    let result = tokio::select! {
        result = &mut connection => result,
        () = unwanted => {
            finish(connection.as_mut());
            connection.await
        }
    };
    result.map_err(io::Error::other)
}

async fn until_true(stop: &mut watch::Receiver<bool>) {
    if stop.wait_for(|&stop| stop).await.is_err() {
        // Nobody can stop it any more.
        std::future::pending::<()>().await;
    }
}

/// Answers a request.
async fn answer(
    request: Request<Incoming>,
    remote: SocketAddr,
    service: Arc<Service>,
    underway: Underway,
) -> Result<Response<Logged>, Infallible> {
    let exchange = underway.begin();
    let (request, body) = request.into_parts();
    let mut access = Access::of(service.log.clone(), remote, &request);
    let mut reply = if is_for_us(&request) {
        service.answer(remote, request, body.map_err(Into::into).boxed_unsync()).await
    } else {
        status_reply(StatusCode::BAD_REQUEST)
    };
    access.status = reply.status();
    if let Some(alt_svc) = &service.alt_svc {
        reply.headers_mut().insert(ALT_SVC, alt_svc.clone());
    }
    Ok(reply.map(|body| Logged::new(body, access, exchange)))
}

/// Whether the request says for which host it is (optional in HTTP/1.0), once, and has a target that is
/// valid for a server of https URLs (RFC 9112 sections 3.2 and 3.2.2, RFC 9113 section 8.3.1).
fn is_for_us(request: &Parts) -> bool {
    let uri = &request.uri;
    let target_fits = uri.path_and_query().is_some()
        && uri.scheme().is_none_or(|scheme| *scheme == Scheme::HTTPS);
    match request.headers.get_all(HOST).iter().count() {
        0 if request.version == Version::HTTP_2 => target_fits && uri.authority().is_some(),
        0 => target_fits && request.version < Version::HTTP_11,
        hosts => target_fits && hosts == 1,
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use clap::Parser;
    use hyper::header::HeaderValue;

    use crate::serve::access::LogArgs;
    use crate::serve::cache::CacheRules;
    use crate::serve::files::{Files, FilesArgs};
    use crate::serve::service::Priorities;

    #[derive(Parser)]
    struct Args {
        #[command(flatten)]
        files: FilesArgs,
        #[command(flatten)]
        log: LogArgs,
    }

    /// A service with some files, and the directory where they are.
    fn service() -> (Arc<Service>, tempfile::TempDir) {
        let scratch = tempfile::tempdir().unwrap();
        for (name, length) in [("five", 5), ("huge", 1 << 20), (".env", 5)] {
            std::fs::write(scratch.path().join(name), vec![b'x'; length]).unwrap();
        }
        let args = Args::parse_from(["x"]);
        let files = Files::below(scratch.path(), args.files, CacheRules::default()).unwrap();
        let service = Service {
            files: Some(files),
            proxy: None,
            priorities: Priorities::new(None, (Vec::new(), None)).unwrap(),
            alt_svc: Some(HeaderValue::from_static("h3=\":4433\"")),
            log: args.log.open().unwrap(),
            describes: false,
        };
        (Arc::new(service), scratch)
    }

    fn never() -> watch::Receiver<bool> {
        watch::channel(false).1
    }

    /// The answer to a client that sends `requests`, and how the connection ends.
    async fn answer(requests: &str) -> (String, io::Result<()>) {
        let (mut client, server) = tokio::io::duplex(1 << 20);
        client.write_all(requests.as_bytes()).await.unwrap();
        client.shutdown().await.unwrap();
        let (service, _scratch) = service();
        let result = serve_h1(server, "127.0.0.1:1".parse().unwrap(), &service, never()).await;
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).await.unwrap();
        (String::from_utf8_lossy(&answer).into_owned(), result)
    }

    #[tokio::test]
    async fn requests_are_answered_one_after_another() {
        let request = "GET /five HTTP/1.1\r\nHost: a\r\n\r\n";
        let url = "GET https://a:1/five?x HTTP/1.1\r\nHost: a:1\r\n\r\n";
        let head = "HEAD /five HTTP/1.1\r\nhost: a\r\nConnection: Close\r\n\r\n";
        let (text, result) = answer(&format!("{request}\r\n{url}{head}{request}")).await;
        result.unwrap();
        assert_eq!(text.matches("HTTP/1.1 200 OK\r\n").count(), 3, "{text}");
        assert_eq!(text.matches("content-length: 5\r\n").count(), 3);
        assert_eq!(text.matches("alt-svc: h3=\":4433\"\r\n").count(), 3);
        assert_eq!(text.matches("date: ").count(), 3);
        assert_eq!(text.matches("connection: close\r\n").count(), 1);
        assert!(text.ends_with("\r\n\r\n"), "the body of a HEAD response: {text}");
    }

    #[tokio::test]
    async fn what_cannot_be_served_is_refused() {
        for (request, status) in [
            ("GET /none HTTP/1.1\r\nHost: a\r\n\r\n", "404 Not Found"),
            ("GET /.env HTTP/1.1\r\nHost: a\r\n\r\n", "404 Not Found"),
            ("GET /%2eenv HTTP/1.1\r\nHost: a\r\n\r\n", "404 Not Found"),
            ("POST /five HTTP/1.1\r\nHost: a\r\ncontent-length: 3\r\n\r\nabc", "405 "),
            ("GET /five HTTP/1.1\r\n\r\n", "400 "),
            ("GET /five HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "400 "),
            ("GET /five HTTP/1.1\r\nHost : a\r\n\r\n", "400 "),
            ("GET /five HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n", "400 "),
            ("GET  /five HTTP/1.1\r\nHost: a\r\n\r\n", "400 "),
            ("GET five HTTP/1.1\r\nHost: a\r\n\r\n", "400 "),
            ("GET http://a/five HTTP/1.1\r\nHost: a\r\n\r\n", "400 "),
            ("GET /five HTTP/2.0\r\nHost: a\r\n\r\n", "400 "),
            ("\u{16}\u{3}\u{1} nonsense\r\n\r\n", "400 "),
            (&format!("GET / HTTP/1.1\r\nx: {}", "y".repeat(2 * MAX_HEAD)), "431 "),
        ] {
            let (text, _) = answer(request).await;
            assert!(text.starts_with(&format!("HTTP/1.1 {status}")), "{request}: {text}");
            assert_eq!(text.matches("HTTP/1.1").count(), 1, "{request}: {text}");
        }
        let (text, result) = answer("GET /five HTTP/1.1\r\nHo").await;
        assert!(text.is_empty() && result.is_err(), "{text}");
    }

    /// A client that neither sends nor reads is disconnected after a timeout.
    #[tokio::test(start_paused = true)]
    async fn nobody_is_waited_for_for_ever() {
        for (request, limit) in [
            ("", HEAD_TIMEOUT),
            ("GET /five HTTP/1.1\r\nHo", HEAD_TIMEOUT),
            ("GET /huge HTTP/1.1\r\nHost: a\r\n\r\n", WRITE_TIMEOUT),
        ] {
            let (mut client, server) = tokio::io::duplex(1 << 10);
            client.write_all(request.as_bytes()).await.unwrap();
            let (service, _scratch) = service();
            let start = tokio::time::Instant::now();
            let result = serve_h1(server, "127.0.0.1:1".parse().unwrap(), &service, never()).await;
            assert!(result.is_err(), "{request}");
            let took = start.elapsed();
            assert!(took >= limit && took < limit + Duration::from_secs(1), "{request}: {took:?}");
        }
    }
}

//! Serves the site over HTTP/1.1, advertising HTTP/3 to clients that do not use it yet.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::stream;
use http_body_util::StreamBody;
use hyper::body::{Body, Frame, Incoming};
use hyper::header::{ALT_SVC, HOST};
use hyper::http::uri::{PathAndQuery, Scheme};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, Version, http};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_io_timeout::TimeoutStream;

use super::reply::Reply;
use super::service::{Access, Service};
use super::site::{CHUNK, Resource};

/// Largest header section of a request, in bytes.
const MAX_HEAD: usize = 16 * 1024;
/// How long a connection may wait for its next request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(15);
/// How long a client may stall without taking data.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// The exchange whose response is being sent, if any. A connection has one at a time.
#[derive(Debug, Clone, Default)]
struct Current(Arc<Mutex<Option<Access>>>);

impl Current {
    fn lock(&self) -> MutexGuard<'_, Option<Access>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the exchange and logs it.
    fn end(&self, result: Result<(), String>) {
        if let Some(mut access) = self.lock().take() {
            access.end = Some(result);
        }
    }
}

/// Answers one request after another until the client is done.
///
/// # Errors
/// The client disconnected, took too long, or sent something other than HTTP/1.1.
pub async fn serve<S>(stream: S, remote: SocketAddr, service: &Service) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite,
{
    let mut stream = TimeoutStream::new(stream);
    stream.set_write_timeout(Some(WRITE_TIMEOUT));
    let stream = std::pin::pin!(stream);
    let current = Current::default();
    let result = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(MAX_HEAD)
        .half_close(true)
        .serve_connection(
            TokioIo::new(stream),
            service_fn(|request| answer(request, remote, service, &current)),
        )
        .await
        .map_err(|error| match error.source() {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        });
    current.end(result.clone());
    result.map_err(io::Error::other)
}

/// Answers a request. The request's body is not read.
async fn answer(
    request: Request<Incoming>,
    remote: SocketAddr,
    service: &Service,
    current: &Current,
) -> http::Result<Response<impl Body<Data = Bytes, Error = io::Error> + use<>>> {
    let start = Instant::now();
    let target = request.uri().path_and_query().map_or("", PathAndQuery::as_str);
    let reply = if is_for_us(&request) {
        Reply::to(&service.site, request.method().as_str(), target).await
    } else {
        Reply::error(StatusCode::BAD_REQUEST)
    };
    *current.lock() = Some(Access {
        log: service.log,
        remote,
        version: "h1",
        method: request.method().to_string(),
        target: target.to_owned(),
        start,
        status: reply.status,
        bytes: 0,
        priority: None,
        resource: None,
        protection: None,
        end: None,
    });
    let mut response = Response::builder().status(reply.status);
    if let Some(alt_svc) = &service.alt_svc {
        response = response.header(ALT_SVC, alt_svc);
    }
    for (name, value) in reply.fields {
        response = response.header(name, value);
    }
    let body = reply.body.filter(|body| !body.is_at_end());
    if body.is_none() {
        current.end(Ok(()));
    }
    let current = current.clone();
    response.body(StreamBody::new(stream::try_unfold(body, move |body| {
        next_frame(body, current.clone())
    })))
}

/// Whether the request has one Host field (optional in HTTP/1.0), and a target that is valid for a
/// server of https URLs (RFC 9112 sections 3.2 and 3.2.2).
fn is_for_us(request: &Request<Incoming>) -> bool {
    let uri = request.uri();
    let target_fits = uri.path_and_query().is_some()
        && uri.scheme().is_none_or(|scheme| *scheme == Scheme::HTTPS);
    match request.headers().get_all(HOST).iter().count() {
        0 => target_fits && request.version() < Version::HTTP_11,
        hosts => target_fits && hosts == 1,
    }
}

/// The next part of a response's body, and the rest of the body.
async fn next_frame(
    body: Option<Resource>,
    current: Current,
) -> io::Result<Option<(Frame<Bytes>, Option<Resource>)>> {
    let Some(mut body) = body else { return Ok(None) };
    let Some(chunk) = body.next_chunk(CHUNK).await? else { return Ok(None) };
    if let Some(access) = &mut *current.lock() {
        access.bytes += chunk.len() as u64;
    }
    // When the length is known, the end is never polled for.
    if body.is_at_end() {
        current.end(Ok(()));
    }
    Ok(Some((Frame::data(chunk), Some(body))))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;
    use crate::serve::rules::Rules;
    use crate::serve::service::Log;
    use crate::serve::site::Site;

    /// A service with some files, and the directory where they are.
    fn service() -> (Service, tempfile::TempDir) {
        let scratch = tempfile::tempdir().unwrap();
        for (name, length) in [("five", 5), ("huge", 1 << 20), (".env", 5)] {
            std::fs::write(scratch.path().join(name), vec![b'x'; length]).unwrap();
        }
        let service = Service {
            site: Site::directory(scratch.path()).unwrap(),
            rules: Rules::default(),
            http: sutura::http::Config::default(),
            alt_svc: Some("h3=\":4433\"".into()),
            log: Log { enabled: false },
            describes: false,
        };
        (service, scratch)
    }

    /// The answer to a client that sends `requests`, and how the connection ends.
    async fn answer(requests: &str) -> (String, io::Result<()>) {
        let (mut client, server) = tokio::io::duplex(1 << 20);
        client.write_all(requests.as_bytes()).await.unwrap();
        client.shutdown().await.unwrap();
        let (service, _scratch) = service();
        let result = serve(server, "127.0.0.1:1".parse().unwrap(), &service).await;
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
            let result = serve(server, "127.0.0.1:1".parse().unwrap(), &service).await;
            assert!(result.is_err(), "{request}");
            let took = start.elapsed();
            assert!(took >= limit && took < limit + Duration::from_secs(1), "{request}: {took:?}");
        }
    }
}

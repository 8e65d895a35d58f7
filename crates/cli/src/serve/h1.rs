//! Just enough HTTP/1.1 (RFC 9112) to serve the same site to clients that do not know of its
//! HTTP/3 yet, and to tell them.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use super::date::http_date;
use super::reply::{Body, Reply, reason};
use super::service::{Access, Service};

/// Largest header section of a request, in bytes.
const MAX_HEAD: usize = 16 * 1024;
/// How long a connection may take for its next request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(15);
/// How long a client may take none of what is sent to it.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// A request as far as it matters here.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    method: String,
    target: String,
    /// Whether another request may follow.
    keep_alive: bool,
}

/// Answers one request after another until the client is done.
///
/// # Errors
/// The client went away, or took too long.
pub async fn serve<S>(mut stream: S, remote: SocketAddr, service: &Service) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut buffer = Vec::new();
    loop {
        let head = timeout(HEAD_TIMEOUT, read_head(&mut stream, &mut buffer)).await??;
        let Some(head) = head else { return Ok(()) };
        let start = Instant::now();
        let (request, reply) = match head.and_then(|head| parse(&head)) {
            Ok(request) => {
                let reply = Reply::to(&service.site, &request.method, &request.target).await;
                (request, reply)
            }
            Err(status) => {
                let (method, target) = ("-".to_owned(), "-".to_owned());
                (Request { method, target, keep_alive: false }, Reply::error(status, false))
            }
        };
        let mut access = Access {
            log: service.log,
            remote,
            version: "h1",
            method: &request.method,
            target: &request.target,
            start,
            status: reply.status,
            bytes: 0,
            priority: None,
            end: None,
        };
        let result = send(&mut stream, reply, &request, service, &mut access.bytes).await;
        access.end = Some(result.as_ref().map_err(ToString::to_string).copied());
        drop(access);
        result?;
        if !request.keep_alive {
            return timeout(WRITE_TIMEOUT, stream.shutdown()).await?;
        }
    }
}

/// The next header section without the empty line at its end, or the status with which to refuse
/// it; `None` if the client is done. What follows it stays in the buffer.
async fn read_head(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut Vec<u8>,
) -> io::Result<Option<Result<Vec<u8>, u16>>> {
    const END: &[u8] = b"\r\n\r\n";
    loop {
        if let Some(end) = buffer.windows(END.len()).position(|window| window == END) {
            let mut head: Vec<u8> = buffer.drain(..end + END.len()).collect();
            head.truncate(end);
            return Ok(Some(Ok(head)));
        }
        if buffer.len() >= MAX_HEAD {
            return Ok(Some(Err(431)));
        }
        let mut chunk = [0; 2048];
        let length = stream.read(&mut chunk).await?;
        if length == 0 {
            return if buffer.is_empty() { Ok(None) } else { Ok(Some(Err(400))) };
        }
        buffer.extend_from_slice(chunk.get(..length).unwrap_or_default());
    }
}

/// Reads a header section, or says with which status to refuse it.
fn parse(head: &[u8]) -> Result<Request, u16> {
    let head = std::str::from_utf8(head).map_err(|_| 400u16)?;
    let mut lines = head.trim_start_matches("\r\n").split("\r\n");
    let mut words = lines.next().unwrap_or("").split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(400);
    };
    let persistent = match version {
        "HTTP/1.1" => true,
        "HTTP/1.0" => false,
        _ if version.starts_with("HTTP/") => return Err(505),
        _ => return Err(400),
    };
    if method.is_empty() || !method.bytes().all(is_token) {
        return Err(400);
    }
    let mut keep_alive = persistent;
    let mut hosts = 0;
    for line in lines {
        let (name, value) = line.split_once(':').ok_or(400u16)?;
        if name.is_empty() || !name.bytes().all(is_token) || value.contains(['\r', '\n', '\0']) {
            return Err(400);
        }
        let value = value.trim_matches([' ', '\t']);
        match name.to_ascii_lowercase().as_str() {
            "host" => hosts += 1,
            "connection" => {
                keep_alive &= !value.split(',').any(|o| o.trim().eq_ignore_ascii_case("close"));
            }
            // What follows is content, which is not read: no request can be found after it.
            "content-length" if value != "0" => keep_alive = false,
            "transfer-encoding" => keep_alive = false,
            _ => {}
        }
    }
    if hosts > 1 || (persistent && hosts == 0) {
        return Err(400);
    }
    Ok(Request { method: method.to_owned(), target: origin_form(target)?, keep_alive })
}

/// The path and query of a request target, which may be a whole URL (RFC 9112 section 3.2.2).
fn origin_form(target: &str) -> Result<String, u16> {
    if target.starts_with('/') || target == "*" {
        return Ok(target.to_owned());
    }
    let rest = target.strip_prefix("https://").ok_or(400u16)?;
    let path = rest.find('/').and_then(|at| rest.get(at..)).unwrap_or("/");
    Ok(path.to_owned())
}

/// Whether a byte may stand in a token (RFC 9110 section 5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

async fn send(
    stream: &mut (impl AsyncWrite + Unpin),
    reply: Reply,
    request: &Request,
    service: &Service,
    bytes: &mut u64,
) -> io::Result<()> {
    let status = reply.status;
    let mut head = format!("HTTP/1.1 {status} {}\r\n", reason(status));
    head += &format!("date: {}\r\n", http_date(SystemTime::now()));
    if let Some(alt_svc) = &service.alt_svc {
        head += &format!("alt-svc: {alt_svc}\r\n");
    }
    if !request.keep_alive {
        head += "connection: close\r\n";
    }
    for (name, value) in &reply.fields {
        head += &format!("{name}: {value}\r\n");
    }
    head += "\r\n";
    write(stream, head.as_bytes()).await?;
    match reply.body {
        Body::Empty => {}
        Body::Text(text) => {
            write(stream, text.as_bytes()).await?;
            *bytes += text.len() as u64;
        }
        Body::Resource(mut resource) => {
            while let Some(chunk) = resource.next_chunk().await? {
                write(stream, &chunk).await?;
                *bytes += chunk.len() as u64;
            }
        }
    }
    timeout(WRITE_TIMEOUT, stream.flush()).await?
}

async fn write(stream: &mut (impl AsyncWrite + Unpin), mut data: &[u8]) -> io::Result<()> {
    while !data.is_empty() {
        let written = timeout(WRITE_TIMEOUT, stream.write(data)).await??;
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        data = data.get(written..).unwrap_or_default();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::serve::rules::Rules;
    use crate::serve::service::Log;
    use crate::serve::site::{Site, Synthetic};

    fn service() -> Service {
        let page = Synthetic { content_type: "text/plain", length: 5 };
        Service {
            site: Site::Synthetic([("/five".to_owned(), page)].into()),
            rules: Rules::default(),
            fec: None,
            alt_svc: Some("h3=\":4433\"".into()),
            log: Log { enabled: false },
        }
    }

    async fn answer(requests: &[u8]) -> String {
        let (mut client, server) = tokio::io::duplex(1 << 20);
        client.write_all(requests).await.unwrap();
        client.shutdown().await.unwrap();
        serve(server, "127.0.0.1:1".parse().unwrap(), &service()).await.unwrap();
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    #[tokio::test]
    async fn requests_are_answered_one_after_another() {
        let request = "GET /five HTTP/1.1\r\nHost: a\r\n\r\n";
        let head = "HEAD /five HTTP/1.1\r\nhost: a\r\nConnection: Close\r\n\r\n";
        let text = answer(format!("{request}\r\n{request}{head}{request}").as_bytes()).await;
        assert_eq!(text.matches("HTTP/1.1 200 OK\r\n").count(), 3, "{text}");
        assert_eq!(text.matches("content-length: 5\r\n").count(), 3);
        assert_eq!(text.matches("alt-svc: h3=\":4433\"\r\n").count(), 3);
        assert_eq!(text.matches("connection: close\r\n").count(), 1);
        assert!(text.ends_with("\r\n\r\n"), "the body of a HEAD response: {text}");
    }

    #[tokio::test]
    async fn what_cannot_be_served_is_refused() {
        for (request, status) in [
            ("GET /none HTTP/1.1\r\nHost: a\r\n\r\n", "404 Not Found"),
            ("POST /five HTTP/1.1\r\nHost: a\r\ncontent-length: 3\r\n\r\nabc", "405 "),
            ("GET /five HTTP/1.1\r\n\r\n", "400 "),
            ("GET /five HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "400 "),
            ("GET /five HTTP/1.1\r\nHost : a\r\n\r\n", "400 "),
            ("GET /five HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n", "400 "),
            ("GET /five HTTP/1.1\r\nHo", "400 "),
            ("GET  /five HTTP/1.1\r\nHost: a\r\n\r\n", "400 "),
            ("GET five HTTP/1.1\r\nHost: a\r\n\r\n", "400 "),
            ("GET /five HTTP/2.0\r\nHost: a\r\n\r\n", "505 "),
            ("\u{16}\u{3}\u{1} nonsense\r\n\r\n", "400 "),
        ] {
            let text = answer(request.as_bytes()).await;
            assert!(text.starts_with(&format!("HTTP/1.1 {status}")), "{request}: {text}");
            assert_eq!(text.matches("HTTP/1.1").count(), 1, "{request}: {text}");
        }
    }

    #[tokio::test]
    async fn a_flood_of_fields_is_bounded() {
        let flood = format!("GET / HTTP/1.1\r\n{}", "x: y\r\n".repeat(MAX_HEAD));
        let text = answer(flood.as_bytes()).await;
        assert!(text.starts_with("HTTP/1.1 431 "), "{text}");
    }

    #[test]
    fn a_target_may_be_a_whole_url() {
        assert_eq!(origin_form("https://a:1/b?c").as_deref(), Ok("/b?c"));
        assert_eq!(origin_form("https://a").as_deref(), Ok("/"));
        assert_eq!(origin_form("http://a/"), Err(400));
    }

    proptest! {
        #[test]
        fn no_head_panics(head in prop::collection::vec(any::<u8>(), 0..200),
                          text in "(GET|POST) [/*a-z:%]{0,8} HTTP/1.[01]\r\n([Hh]ost ?: ?[a-z]{0,3}\r\n){0,2}") {
            let _ = parse(&head);
            let _ = parse(text.as_bytes());
        }
    }
}

//! What clients over TCP may make the server hold, and what they get beyond that.

use std::fs;
use std::time::Duration;

use bytes::Bytes;
use hyper::Request;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::upstream::Upstream;
use crate::support::web::{Client, Over, tls_to};
use crate::support::*;

/// As in the sources: connections over TCP, of plain HTTP, and of something other than HTTP.
const MAX_CONNECTIONS: usize = 1024;
const MAX_REDIRECTED: usize = 256;
const MAX_TUNNELS: usize = 1024;
/// As in the sources: requests at a time on HTTP/2, and names in a listing.
const MAX_STREAMS: u32 = 100;
const MAX_ENTRIES: usize = 10_000;

/// Lets this process and those that it starts have as many files as the system permits.
fn many_files() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
}

/// The files that a server has open.
fn open_files(server: &mut Listening) -> usize {
    fs::read_dir(format!("/proc/{}/fd", server.process.id())).unwrap().count()
}

/// Waits until a server has at least `wanted` files open, and then for a while. Returns the most that it had.
async fn most_open_files(server: &mut Listening, wanted: usize) -> usize {
    while open_files(server) < wanted {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let mut most = 0;
    for _ in 0..50 {
        most = most.max(open_files(server));
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    most
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_connections_are_bounded_and_give_way() {
    many_files();
    let (scratch, site, _) = Scratch::with_site();
    fs::write(site.join("a.txt"), "x").unwrap();
    let mut server = Listening::serve(&site, &scratch, &[]);
    let before = open_files(&mut server);
    let mut silent = Vec::new();
    for _ in 0..MAX_CONNECTIONS + 100 {
        silent.push(TcpStream::connect(&server.address).await.unwrap());
    }
    let most = most_open_files(&mut server, before + MAX_CONNECTIONS).await;
    // One more is accepted while the place for it is waited for.
    assert!(most <= before + MAX_CONNECTIONS + 1, "{most} files, {before} before");
    // They are sent away once their handshakes have taken too long.
    let response = Client::connect(&server, Over::H1).await.get("/a.txt").await;
    assert_eq!(response.body(), "x");
    // HTTP/3 has bounds of its own.
    assert_eq!(Client::connect(&server, Over::H3).await.get("/a.txt").await.body(), "x");
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_that_are_redirected_are_bounded() {
    many_files();
    let (scratch, site, _) = Scratch::with_site();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut server = Listening::serve(&site, &scratch, &["--redirect", &free.to_string()]);
    let before = open_files(&mut server);
    let mut silent = Vec::new();
    for _ in 0..MAX_REDIRECTED + 100 {
        silent.push(TcpStream::connect(free).await.unwrap());
    }
    let most = most_open_files(&mut server, before + MAX_REDIRECTED).await;
    assert!(most <= before + MAX_REDIRECTED, "{most} files, {before} before");
    let mut last = silent.pop().unwrap();
    drop(silent);
    last.write_all(b"GET /x HTTP/1.1\r\nhost: example.org\r\nconnection: close\r\n\r\n")
        .await
        .unwrap();
    let mut response = String::new();
    last.read_to_string(&mut response).await.unwrap();
    assert!(response.starts_with("HTTP/1.1 308"), "{response}");
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_of_something_else_are_bounded() {
    many_files();
    let scratch = Scratch::new();
    let behind = Upstream::start("one").await;
    let state = scratch.dir("state");
    let server = Listening::spawn({
        let mut command = sutura(["serve", "--listen", "127.0.0.1:0", "--json", "--to"]);
        command.arg(behind.url()).arg("--state-dir").arg(state);
        command
    });
    let ask = async || {
        let mut stream = tls_to(&server, b"http/1.1").await;
        let head =
            "GET /upgrade HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: echo\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut status = [0; 12];
        stream.read_exact(&mut status).await.unwrap();
        (String::from_utf8_lossy(&status).into_owned(), stream)
    };
    let mut open = Vec::new();
    for _ in 0..MAX_TUNNELS {
        let (status, stream) = ask().await;
        assert_eq!(status, "HTTP/1.1 101");
        open.push(stream);
    }
    assert_eq!(ask().await.0, "HTTP/1.1 503");
    // Those who leave make room. The server learns of it on its own connection.
    drop(open.pop());
    while ask().await.0 != "HTTP/1.1 101" {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A frame of HTTP/2 (RFC 9113 section 4.1).
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Requests of `/big`, each on a stream of its own (RFC 9113 section 6.2, RFC 7541 appendix A).
fn h2_request(number: u32) -> Vec<u8> {
    const END_STREAM_AND_HEADERS: u8 = 0x5;
    let fields = [&[0x82, 0x87, 0x41, 9][..], b"localhost", &[0x44, 4], b"/big"].concat();
    frame(0x1, END_STREAM_AND_HEADERS, 2 * number + 1, &fields)
}

/// What a client of HTTP/2 begins with: no settings of its own (RFC 9113 section 3.4).
fn h2_preface() -> Vec<u8> {
    [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &frame(0x4, 0, 0, &[])].concat()
}

/// The type, the stream and the payload of the next frame; `None` at the end.
async fn next_frame(stream: &mut (impl AsyncReadExt + Unpin)) -> Option<(u8, u32, Vec<u8>)> {
    let mut head = [0; 9];
    stream.read_exact(&mut head).await.ok()?;
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
    let mut payload = vec![0; length as usize];
    stream.read_exact(&mut payload).await.ok()?;
    Some((head[3], u32::from_be_bytes(head[5..].try_into().unwrap()), payload))
}

fn big_site(site: &std::path::Path) {
    fs::write(site.join("big"), noise(300_000)).unwrap();
}

/// Most of the responses wait for credit that the client does not give.
#[tokio::test(flavor = "multi_thread")]
async fn requests_of_http_2_beyond_the_bound_are_refused() {
    const RST_STREAM: u8 = 0x3;
    const REFUSED_STREAM: u32 = 7;
    let (scratch, site, _) = Scratch::with_site();
    big_site(&site);
    let server = Listening::serve(&site, &scratch, &[]);
    let mut stream = tls_to(&server, b"h2").await;
    let all: Vec<u8> = (0..MAX_STREAMS + 30).flat_map(h2_request).collect();
    stream.write_all(&[h2_preface(), all].concat()).await.unwrap();
    let mut refused = Vec::new();
    while refused.len() < 30 {
        let (kind, id, payload) = next_frame(&mut stream).await.expect("it goes on");
        if kind == RST_STREAM {
            assert_eq!(payload, REFUSED_STREAM.to_be_bytes());
            refused.push((id - 1) / 2);
        }
    }
    assert_eq!(refused, (MAX_STREAMS..MAX_STREAMS + 30).collect::<Vec<_>>());
    assert_eq!(Client::connect(&server, Over::H2).await.get("/big").await.body().len(), 300_000);
}

/// Streams that are opened and cancelled at once (CVE-2023-44487) end the connection.
#[tokio::test(flavor = "multi_thread")]
async fn rapid_resets_of_http_2_end_the_connection() {
    const GOAWAY: u8 = 0x7;
    const ENHANCE_YOUR_CALM: u32 = 0xb;
    const CANCEL: u32 = 8;
    let (scratch, site, _) = Scratch::with_site();
    big_site(&site);
    let server = Listening::serve(&site, &scratch, &[]);
    let mut stream = tls_to(&server, b"h2").await;
    let pair = |number| {
        [h2_request(number), frame(0x3, 0, 2 * number + 1, &CANCEL.to_be_bytes())].concat()
    };
    let (mut read, mut write) = tokio::io::split(&mut stream);
    let sending = async {
        write.write_all(&h2_preface()).await.unwrap();
        let mut numbers = 0..;
        // Until the server has closed.
        while write
            .write_all(&numbers.by_ref().take(200).flat_map(pair).collect::<Vec<_>>())
            .await
            .is_ok()
        {}
    };
    let hearing = async {
        while let Some((kind, _, payload)) = next_frame(&mut read).await {
            if kind == GOAWAY {
                return u32::from_be_bytes(payload[4..8].try_into().unwrap());
            }
        }
        panic!("closed without a word");
    };
    let code = tokio::select! {
        code = hearing => code,
        () = async { sending.await; std::future::pending().await } => unreachable!(),
    };
    assert_eq!(code, ENHANCE_YOUR_CALM);
    assert_eq!(Client::connect(&server, Over::H2).await.get("/big").await.body().len(), 300_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn names_of_a_large_directory_are_not_all_listed() {
    let (scratch, site, _) = Scratch::with_site();
    fs::create_dir(site.join("many")).unwrap();
    for number in 0..MAX_ENTRIES + 5 {
        fs::write(site.join(format!("many/{number}")), "").unwrap();
    }
    let server = Listening::serve(&site, &scratch, &["--listing"]);
    let mut client = Client::connect(&server, Over::H3).await;
    let json = Request::get("/many/").header("accept", "application/json");
    let response = client.send(json.body(Bytes::new()).unwrap()).await;
    let names: Vec<serde_json::Value> = serde_json::from_slice(response.body()).unwrap();
    assert_eq!(names.len(), MAX_ENTRIES);
    let page = client.get("/many/").await;
    let text = String::from_utf8_lossy(page.body());
    assert!(text.contains("the others are left out"), "{}", &text[text.len() - 300..]);
}

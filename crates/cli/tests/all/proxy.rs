//! Servers behind `sutura serve`.

use std::fs;
use std::io::{BufRead, BufReader};

use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http2;
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::upstream::Upstream;
use crate::support::web::{Client, Over, tls_to};
use crate::support::*;

fn told(response: &Response<Bytes>) -> Value {
    let text = String::from_utf8_lossy(response.body());
    serde_json::from_str(&text).unwrap_or_else(|_| panic!("{} {text}", response.status()))
}

/// A server without a directory, in front of others.
fn serve(scratch: &Scratch, more: &[&str]) -> Listening {
    let mut command = sutura(["serve", "--listen", "127.0.0.1:0", "--json", "--state-dir"]);
    command.arg(scratch.dir("state")).args(more);
    Listening::spawn(command)
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_and_responses_pass_whole_over_each_version() {
    let scratch = Scratch::new();
    let behind = Upstream::start("one").await;
    let server = serve(&scratch, &["--to", &behind.url()]);
    for over in Over::ALL {
        let mut client = Client::connect(&server, over).await;
        for (method, body) in [("GET", 0), ("POST", 300_000), ("PUT", 0), ("DELETE", 0)] {
            let request = Request::builder().method(method).uri("/a%20b/../c?d=e&f");
            let request = request.header("x-forwarded-for", "1.2.3.4").header("x-mine", "2");
            let response = client.send(request.body(noise(body).into()).unwrap()).await;
            let what = format!("{over:?} {method}");
            assert_eq!(response.status(), 203, "{what}");
            assert_eq!(response.headers()["x-own"], "1", "{what}");
            assert!(!response.headers().contains_key("keep-alive"), "{what}");
            let told = told(&response);
            assert_eq!((&told["method"], &told["bytes"]), (&method.into(), &body.into()), "{what}");
            assert_eq!(told["target"], "/a%20b/../c?d=e&f", "{what}");
            for (name, value) in [
                ("x-forwarded-for", "127.0.0.1"),
                ("x-forwarded-proto", "https"),
                ("x-forwarded-host", "localhost"),
                ("host", "localhost"),
                ("x-mine", "2"),
            ] {
                assert_eq!(told["fields"][name], value, "{what}: {told}");
            }
        }
        let big = client.get("/big").await;
        assert!(big.body() == &noise(3_000_000), "{over:?}");
        let head = Request::head("/x").body(Bytes::new()).unwrap();
        assert_eq!(client.send(head).await.status(), 203, "{over:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn both_ends_may_speak_another_protocol() {
    let scratch = Scratch::new();
    let behind = Upstream::start("one").await;
    let server = serve(&scratch, &["--to", &behind.url()]);
    let mut stream = tls_to(&server, b"http/1.1").await;
    let request = "GET /upgrade HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\n\
                   upgrade: echo\r\n\r\nhello";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\nhello") {
        answer.push(stream.read_u8().await.unwrap());
    }
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 101 Switching Protocols\r\n"), "{answer}");
    assert!(answer.contains("upgrade: echo\r\n"), "{answer}");
    stream.write_all(b"more").await.unwrap();
    let mut more = [0; 4];
    stream.read_exact(&mut more).await.unwrap();
    assert_eq!(&more, b"more");
}

/// Browsers ask for WebSocket by extended CONNECT where HTTP/2 (RFC 8441) or HTTP/3 (RFC 9220) allows it.
#[tokio::test(flavor = "multi_thread")]
async fn websocket_goes_over_each_version() {
    let scratch = Scratch::new();
    let behind = Upstream::start("one").await;
    let server = serve(&scratch, &["--to", &behind.url()]);

    let stream = tls_to(&server, b"h2").await;
    let (mut client, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    // The server's settings say whether it is possible.
    let _ = told(&Client::H2(client.clone()).get("/").await);
    let request = Request::connect("https://localhost/websocket")
        .extension(hyper::ext::Protocol::from_static("websocket"))
        .header("sec-websocket-version", "13")
        .body(Full::<Bytes>::default());
    let mut response = client.send_request(request.unwrap()).await.unwrap();
    assert_eq!(response.status(), 200);
    for name in ["sec-websocket-accept", "upgrade", "connection"] {
        assert!(!response.headers().contains_key(name), "{name}");
    }
    let mut stream = TokioIo::new(hyper::upgrade::on(&mut response).await.unwrap());
    for word in [&b"hello"[..], &b"again"[..]] {
        stream.write_all(word).await.unwrap();
        let mut heard = [0; 5];
        stream.read_exact(&mut heard).await.unwrap();
        assert_eq!(heard, word);
    }

    let Client::H3(client) = Client::connect(&server, Over::H3).await else { panic!() };
    let fields = [("sec-websocket-version", &b"13"[..])];
    let connecting = client.connect("websocket", "localhost", "/websocket", &fields, None);
    let mut stream = connecting.await.unwrap();
    let response = stream.recv_response().await.unwrap();
    assert_eq!(response.status, 200);
    for word in [&b"hello"[..], &b"again"[..]] {
        stream.send_data(Bytes::copy_from_slice(word)).await.unwrap();
        let mut heard = Vec::new();
        while heard.len() < word.len() {
            heard.extend_from_slice(&stream.recv_data().await.unwrap().expect("it goes on"));
        }
        assert_eq!(heard, word);
    }
    // What the client ends ends at the server behind, and so here.
    stream.finish().await.unwrap();
    assert_eq!(stream.recv_data().await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn paths_are_passed_on_beside_files() {
    let (scratch, site, _) = Scratch::with_site();
    fs::write(site.join("a.txt"), "file").unwrap();
    let (one, two) = (Upstream::start("one").await, Upstream::start("two").await);
    let rules = [format!("/api/* => {}", one.url()), format!("*.php => {}", two.url())];
    let server = Listening::serve(&site, &scratch, &["--to", &rules[0], "--to", &rules[1]]);
    for over in Over::ALL {
        let mut client = Client::connect(&server, over).await;
        assert_eq!(told(&client.get("/api/x.php").await)["name"], "one", "{over:?}");
        assert_eq!(told(&client.get("/x.php?y").await)["name"], "two", "{over:?}");
        assert_eq!(client.get("/a.txt").await.body(), "file", "{over:?}");
        assert_eq!(client.get("/api").await.status(), 404, "{over:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_answer_is_left_alone() {
    let scratch = Scratch::new();
    let behind = Upstream::start("one").await;
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let nobody = format!("http://{nobody}");
    let server = serve(&scratch, &["--to", &nobody, "--to", &behind.url()]);
    let mut client = Client::connect(&server, Over::H3).await;
    for _ in 0..4 {
        assert_eq!(told(&client.get("/").await)["name"], "one");
    }
    assert_eq!(behind.asked(), 4);
    let alone = serve(&scratch, &["--to", &nobody]);
    for over in Over::ALL {
        let refused = Client::connect(&alone, over).await.get("/").await;
        assert_eq!(refused.status(), 502, "{over:?}");
        let text = String::from_utf8_lossy(refused.body());
        assert!(text.contains("the server behind this one does not answer"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_healthy_gets_no_requests() {
    let scratch = Scratch::new();
    let (one, two) = (Upstream::start("one").await, Upstream::start("two").await);
    one.set_healthy(false);
    let more = ["--to", &one.url(), "--to", &two.url(), "--health", "/health"];
    let mut server = serve(&scratch, &more);
    let mut line = String::new();
    BufReader::new(server.process.take_stderr()).read_line(&mut line).unwrap();
    assert_eq!(line, format!("{} is not healthy\n", one.url()));
    let mut client = Client::connect(&server, Over::H2).await;
    for _ in 0..4 {
        assert_eq!(told(&client.get("/").await)["name"], "two");
    }
    assert_eq!(one.asked(), 0);
}

#[test]
fn a_server_for_nothing_and_rules_that_are_none_are_refused() {
    for (args, why) in [
        (&["serve"][..], "<DIRECTORY>"),
        (&["serve", "--to", "localhost:80"], "http://localhost:8080"),
        (&["serve", "--to", "https://a"], "by http:// only"),
        (&["serve", "--to", "http://a", "--health", "x"], "a path such as /health"),
        (&["serve", ".", "--health", "/x"], "--to"),
        (&["serve", ".", "--cache", ""], "max-age=3600"),
        (&["serve", ".", "--log-file", "/tmp/x"], "say --log text"),
        (&["serve", ".", "--log", "xml"], "common"),
        (&["serve", ".", "--redirect", "here"], "expected a port"),
    ] {
        let output = run(args);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {text}");
        assert!(text.contains(why), "{args:?}: {text}");
    }
}

//! A site as its clients see it, over all versions of HTTP alike.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;

use bytes::Bytes;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Request, Response};
use rustix::process::Signal;

use crate::support::web::{Client, Over};
use crate::support::*;

fn field(response: &Response<Bytes>, name: &str) -> String {
    let value = response.headers().get(name).map(HeaderValue::as_bytes).unwrap_or_default();
    String::from_utf8_lossy(value).into_owned()
}

fn body(response: &Response<Bytes>) -> String {
    String::from_utf8_lossy(response.body()).into_owned()
}

fn request(method: &str, target: &str, fields: &[(&str, &str)]) -> Request<Bytes> {
    let mut request = Request::builder().method(method).uri(target).body(Bytes::new()).unwrap();
    for (name, value) in fields {
        let name = HeaderName::try_from(*name).unwrap();
        request.headers_mut().append(name, HeaderValue::try_from(*value).unwrap());
    }
    request
}

fn write_site(site: &Path) {
    fs::create_dir_all(site.join("dir/sub")).unwrap();
    fs::create_dir_all(site.join("bare")).unwrap();
    for (name, text) in [
        ("a.txt", "0123456789"),
        ("a.css", "plain"),
        ("a.css.gz", "as gzip"),
        ("a.css.br", "as brotli"),
        ("dir/index.html", "<p>dir"),
        ("bare/x & y.txt", "x"),
        ("bare/.hidden", "x"),
        (".env", "secret"),
        ("empty", ""),
        ("app.js.map", "{}"),
    ] {
        fs::write(site.join(name), text).unwrap();
    }
}

/// Runs `test` over each version, on a connection of its own.
async fn over_each<F: AsyncFn(Over, Client)>(server: &Listening, test: F) {
    for over in Over::ALL {
        let client = Client::connect(server, over).await;
        test(over, client).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ranges_and_conditions_are_answered_alike() {
    let (scratch, site, _) = Scratch::with_site();
    write_site(&site);
    let server = Listening::serve(&site, &scratch, &[]);
    over_each(&server, async |over, mut client| {
        let plain = client.get("/a.txt").await;
        let (tag, date) = (field(&plain, "etag"), field(&plain, "last-modified"));
        assert_eq!(
            (plain.status().as_u16(), body(&plain).as_str()),
            (200, "0123456789"),
            "{over:?}"
        );
        assert!(tag.starts_with('"') && date.ends_with(" GMT"), "{over:?}: {tag} {date}");
        for (name, value) in [
            ("accept-ranges", "bytes"),
            ("content-length", "10"),
            ("content-type", "text/plain; charset=utf-8"),
        ] {
            assert_eq!(field(&plain, name), value, "{over:?}");
        }
        assert!(!field(&plain, "date").is_empty());
        let range = ("range", "bytes=2-4");
        let never = "Mon, 01 Jan 2001 00:00:00 GMT";
        for (fields, status, content, length) in [
            (&[range][..], 206, "234", "3"),
            (&[("range", "bytes=7-")], 206, "789", "3"),
            (&[("range", "bytes=-2")], 206, "89", "2"),
            (&[("range", "bytes=0-99")], 206, "0123456789", "10"),
            (&[("range", "bytes=10-")], 416, "416 Range Not Satisfiable\n", "26"),
            (&[("range", "bytes=0-1,4-5")], 200, "0123456789", "10"),
            (&[("range", "lines=1-2")], 200, "0123456789", "10"),
            (&[("if-none-match", &tag)], 304, "", ""),
            (&[("if-none-match", "\"x\"")], 200, "0123456789", "10"),
            (&[("if-modified-since", &date)], 304, "", ""),
            (&[("if-modified-since", never)], 200, "0123456789", "10"),
            (&[("if-match", "\"x\"")], 412, "412 Precondition Failed\n", "24"),
            (&[("if-unmodified-since", never)], 412, "412 Precondition Failed\n", "24"),
            (&[range, ("if-range", &tag)], 206, "234", "3"),
            (&[range, ("if-range", &date)], 206, "234", "3"),
            (&[range, ("if-range", "\"x\"")], 200, "0123456789", "10"),
            (&[range, ("if-range", never)], 200, "0123456789", "10"),
            (&[("range", "bytes=10-"), ("if-range", "\"x\"")], 200, "0123456789", "10"),
        ] {
            let response = client.send(request("GET", "/a.txt", fields)).await;
            let what = format!("{over:?} {fields:?}");
            assert_eq!(response.status().as_u16(), status, "{what}");
            assert_eq!(body(&response), content, "{what}");
            assert_eq!(field(&response, "content-length"), length, "{what}");
        }
        let part = client.send(request("GET", "/a.txt", &[range])).await;
        assert_eq!(field(&part, "content-range"), "bytes 2-4/10");
        let none = client.send(request("GET", "/a.txt", &[("range", "bytes=10-")])).await;
        assert_eq!(field(&none, "content-range"), "bytes */10");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn heads_say_what_a_response_would_be() {
    let (scratch, site, _) = Scratch::with_site();
    write_site(&site);
    let server = Listening::serve(&site, &scratch, &[]);
    over_each(&server, async |over, mut client| {
        for (target, status, length) in
            [("/a.txt", 200, "10"), ("/empty", 200, "0"), ("/none", 404, "14")]
        {
            let range = [("range", "bytes=2-4")];
            let head = client.send(request("HEAD", target, &range)).await;
            let what = format!("{over:?} {target}");
            assert_eq!((head.status().as_u16(), body(&head).as_str()), (status, ""), "{what}");
            assert_eq!(field(&head, "content-length"), length, "{what}");
            let get = client.get(target).await;
            let names = |of: &Response<Bytes>| {
                let mut names: Vec<_> = of.headers().keys().map(|n| n.to_string()).collect();
                names.sort();
                names
            };
            assert_eq!(names(&head), names(&get), "{what}");
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn types_redirections_and_refusals_are_alike() {
    let (scratch, site, _) = Scratch::with_site();
    write_site(&site);
    let server = Listening::serve(&site, &scratch, &[]);
    over_each(&server, async |over, mut client| {
        for (method, target, status, name, value) in [
            ("GET", "/dir/", 200, "content-type", "text/html; charset=utf-8"),
            ("GET", "/app.js.map", 200, "content-type", "application/json"),
            ("GET", "/a.css", 200, "content-encoding", ""),
            ("GET", "/a.css", 200, "vary", ""),
            ("GET", "/dir?a=b", 307, "location", "/dir/?a=b"),
            ("GET", "//dir", 307, "location", "/dir/"),
            ("GET", "/bare/", 404, "content-type", "text/plain; charset=utf-8"),
            ("GET", "/a.txt/", 404, "content-length", "14"),
            ("GET", "/.env", 404, "content-length", "14"),
            ("GET", "/%2e%2e/state", 404, "content-length", "14"),
            ("POST", "/a.txt", 405, "allow", "GET, HEAD"),
            ("DELETE", "/a.txt", 405, "allow", "GET, HEAD"),
        ] {
            let response = client.send(request(method, target, &[])).await;
            let what = format!("{over:?} {method} {target}");
            assert_eq!(response.status().as_u16(), status, "{what}");
            assert_eq!(field(&response, name), value, "{what}");
        }
        let alt_svc = client.get("/a.txt").await;
        let expected = format!("h3=\":{}\"; ma=86400", server.hello["port"]);
        let expected = if over == Over::H3 { "" } else { &expected };
        assert_eq!(field(&alt_svc, "alt-svc"), expected);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn compressed_copies_go_to_those_who_accept_them() {
    let (scratch, site, _) = Scratch::with_site();
    write_site(&site);
    let more = ["--precompressed", "--cache", "*.css => max-age=60", "--cache", "no-cache"];
    let server = Listening::serve(&site, &scratch, &more);
    over_each(&server, async |over, mut client| {
        for (target, accepts, encoding, content) in [
            ("/a.css", "gzip", "gzip", "as gzip"),
            ("/a.css", "gzip;q=0.5, br", "br", "as brotli"),
            ("/a.css", "zstd", "", "plain"),
            ("/a.css", "gzip;q=0", "", "plain"),
            ("/a.txt", "gzip, br, zstd", "", "0123456789"),
        ] {
            let asked = request("GET", target, &[("accept-encoding", accepts)]);
            let response = client.send(asked).await;
            let what = format!("{over:?} {target} {accepts}");
            assert_eq!(field(&response, "content-encoding"), encoding, "{what}");
            assert_eq!(body(&response), content, "{what}");
            assert_eq!(field(&response, "vary"), "accept-encoding", "{what}");
            let cache = if target == "/a.css" { "max-age=60" } else { "no-cache" };
            assert_eq!(field(&response, "cache-control"), cache, "{what}");
            let kind = content_type(target);
            assert_eq!(field(&response, "content-type"), kind, "{what}");
        }
        let none = client.get("/none").await;
        assert_eq!(field(&none, "cache-control"), "", "{over:?}");
    })
    .await;
}

fn content_type(target: &str) -> &'static str {
    if target.ends_with(".css") { "text/css; charset=utf-8" } else { "text/plain; charset=utf-8" }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_is_listed_on_request() {
    let (scratch, site, _) = Scratch::with_site();
    write_site(&site);
    std::os::unix::fs::symlink("/etc/passwd", site.join("bare/outside")).unwrap();
    fs::write(site.join("bare/<b>.txt"), "x").unwrap();
    let server = Listening::serve(&site, &scratch, &["--listing"]);
    over_each(&server, async |over, mut client| {
        let page = body(&client.get("/bare/").await);
        assert!(page.contains("href=\"./x%20%26%20y.txt\""), "{over:?}: {page}");
        assert!(page.contains("x &amp; y.txt") && page.contains("&lt;b&gt;.txt"), "{page}");
        assert!(!page.contains("outside") && !page.contains("hidden"), "{page}");
        let json = request("GET", "/", &[("accept", "application/json")]);
        let all: serde_json::Value =
            serde_json::from_slice(client.send(json).await.body()).unwrap();
        let names: Vec<_> = all.as_array().unwrap().iter().map(|e| e["name"].as_str()).collect();
        let files = ["a.css", "a.css.br", "a.css.gz", "a.txt", "app.js.map", "empty"];
        let expected: Vec<_> = ["bare", "dir"].into_iter().chain(files).map(Some).collect();
        assert_eq!(names, expected, "{over:?}");
        assert_eq!(all[0]["url"], "./bare/");
        // What has a page of its own shows that.
        assert_eq!(body(&client.get("/dir/").await), "<p>dir");
        assert_eq!(client.get("/none/").await.status(), 404);
        assert_eq!(client.get("/a.txt/").await.status(), 404);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_certificate_is_read_without_ending_a_connection() {
    let (scratch, site, _) = Scratch::with_site();
    write_site(&site);
    let (cert, key) = (scratch.path().join("cert.pem"), scratch.path().join("key.pem"));
    let renew = || {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        fs::write(&cert, made.cert.pem()).unwrap();
        fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    };
    renew();
    let more = ["--cert", cert.to_str().unwrap(), "--key", key.to_str().unwrap()];
    let mut server = Listening::serve(&site, &scratch, &more);
    let mut old = Vec::new();
    for over in Over::ALL {
        let mut client = Client::connect(&server, over).await;
        assert_eq!(client.get("/a.txt").await.status(), 200);
        old.push(client);
    }
    renew();
    let mut told = BufReader::new(server.process.take_stderr());
    server.process.signal(Signal::HUP);
    let mut line = String::new();
    told.read_line(&mut line).unwrap();
    assert!(line.contains("cert.pem read again: fingerprint "), "{line}");
    assert!(!line.contains(server.fingerprint()), "{line}");
    for client in &mut old {
        assert_eq!(client.get("/a.txt").await.status(), 200);
    }
    // These trust the new certificate alone.
    over_each(&server, async |over, mut client| {
        assert_eq!(body(&client.get("/a.txt").await), "0123456789", "{over:?}");
    })
    .await;
    // Half a certificate leaves the one that there is.
    let whole = fs::read(&cert).unwrap();
    fs::write(&cert, &whole[..whole.len() / 2]).unwrap();
    server.process.signal(Signal::HUP);
    line.clear();
    told.read_line(&mut line).unwrap();
    assert!(line.contains("the old certificate is kept: no certificate in "), "{line}");
    fs::write(&cert, &whole).unwrap();
    over_each(&server, async |_, mut client| {
        assert_eq!(client.get("/a.txt").await.status(), 200);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_is_written_in_the_common_form_and_opened_again() {
    let (scratch, site, _) = Scratch::with_site();
    write_site(&site);
    let log = scratch.path().join("access.log");
    let more = ["--log", "combined", "--log-file", log.to_str().unwrap()];
    let mut server = Listening::serve(&site, &scratch, &more);
    let lines = |path: &Path| fs::read_to_string(path).unwrap_or_default().lines().count();
    over_each(&server, async |over, mut client| {
        let before = lines(&log);
        client.send(request("GET", "/a.txt", &[("user-agent", "test \"1\"")])).await;
        wait_until("a line of the log", || lines(&log) > before);
        let text = fs::read_to_string(&log).unwrap();
        let version = match over {
            Over::H1 => "HTTP/1.1",
            Over::H2 => "HTTP/2",
            Over::H3 => "HTTP/3",
        };
        let last = text.lines().last().unwrap();
        assert!(last.starts_with("127.0.0.1 - - ["), "{last}");
        let end = format!(" +0000] \"GET /a.txt {version}\" 200 10 \"-\" \"test \\\"1\\\"\"");
        assert!(last.ends_with(&end), "{last}");
    })
    .await;
    let moved = scratch.path().join("access.log.1");
    fs::rename(&log, &moved).unwrap();
    server.process.signal(Signal::HUP);
    wait_until("the log to be opened again", || log.exists());
    let mut client = Client::connect(&server, Over::H2).await;
    client.get("/none").await;
    wait_until("a line of the new log", || lines(&log) == 1);
    assert_eq!(lines(&moved), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn plain_http_is_sent_to_https() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let (scratch, site, _) = Scratch::with_site();
    write_site(&site);
    // A port that is free now, unless another test is quicker.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let plain = free.to_string();
    let server = Listening::serve(&site, &scratch, &["--redirect", &plain]);
    for (request, status, location) in [
        ("GET /a?b HTTP/1.1\r\nhost: example.org:8080\r\n", "308", Some("example.org")),
        ("POST / HTTP/1.1\r\nhost: [::1]\r\n", "308", Some("[::1]")),
        ("GET / HTTP/1.0\r\n", "400", None),
        ("GET / HTTP/1.1\r\nhost: a b\r\n", "400", None),
    ] {
        let mut stream = tokio::net::TcpStream::connect(free).await.unwrap();
        let request = format!("{request}connection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.split(' ').nth(1) == Some(status), "{request}: {answer}");
        let path = request.split(' ').nth(1).unwrap();
        let expected = location
            .map(|host| format!("\r\nlocation: https://{host}:{}{path}\r\n", server.hello["port"]));
        assert!(expected.is_none_or(|field| answer.contains(&field)), "{request}: {answer}");
    }
}

/// Whoever stops a server may have downloads under way over any version.
#[tokio::test(flavor = "multi_thread")]
async fn an_interruption_lets_responses_over_tcp_finish() {
    let (scratch, site, _) = Scratch::with_site();
    let data = noise(4_000_000);
    fs::write(site.join("big"), &data).unwrap();
    for over in [Over::H1, Over::H2] {
        let mut server = Listening::serve(&site, &scratch, &[]);
        let mut client = Client::connect(&server, over).await;
        let begun = client.begin(request("GET", "/big", &[])).await;
        server.process.signal(Signal::INT);
        wait_until("the server to accept no more", || {
            std::net::TcpStream::connect(&server.address).is_err()
        });
        let all = begun.await;
        assert!(all.body() == &data, "{over:?}: {} bytes", all.body().len());
        success(&server.process.output());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn options_come_from_a_file() {
    let (scratch, site, _) = Scratch::with_site();
    write_site(&site);
    let config = scratch.path().join("site.toml");
    let text = format!(
        "directory = {site:?}\nlisten = \"127.0.0.1:0\"\nlisting = true\nworkers = 2\n\
         cache = [\"*.css => max-age=60\", \"no-cache\"]\nstate-dir = {:?}\n",
        scratch.dir("state")
    );
    fs::write(&config, &text).unwrap();
    let args = ["serve", "--json", "--config", config.to_str().unwrap(), "--workers", "1"];
    let server = Listening::spawn(sutura(args));
    over_each(&server, async |over, mut client| {
        let response = client.get("/a.css").await;
        assert_eq!(field(&response, "cache-control"), "max-age=60", "{over:?}");
        assert_eq!(client.get("/bare/").await.status(), 200, "{over:?}");
    })
    .await;
    fs::write(&config, format!("{text}listng = true\n")).unwrap();
    let text = complaint(&run(args), 2);
    assert!(text.contains("site.toml: listng: there is no such option"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn sockets_may_come_from_a_supervisor() {
    use std::os::fd::AsFd;
    let (scratch, site, _) = Scratch::with_site();
    write_site(&site);
    let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = tcp.local_addr().unwrap();
    let udp = std::net::UdpSocket::bind(address).unwrap();
    let mut command = sutura(["serve", "--json", "--state-dir"]);
    command.arg(scratch.dir("state")).arg(&site);
    let (command, _kept) = pass(&command, &[(tcp.as_fd(), "web"), (udp.as_fd(), "quic")]);
    let server = Listening::spawn(command);
    assert_eq!(server.address, address.to_string());
    over_each(&server, async |over, mut client| {
        assert_eq!(client.get("/a.txt").await.status(), 200, "{over:?}");
    })
    .await;
}

/// The answer to a request of plain HTTP.
async fn plain(address: &str, host: &str, path: &str) -> (String, String) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_and_figures_show_what_connections_do() {
    let (scratch, site, _) = Scratch::with_site();
    write_site(&site);
    fs::write(site.join("big"), noise(200_000)).unwrap();
    let more = ["--dashboard", "0", "--metrics", "0", "--fec", "2"];
    let mut server = Listening::serve(&site, &scratch, &more);
    let mut told = BufReader::new(server.process.take_stderr());
    let mut next = || {
        let mut line = String::new();
        told.read_line(&mut line).unwrap();
        let url = line.split(' ').next().unwrap().strip_prefix("http://").unwrap().to_owned();
        url.split_once('/').unwrap().0.to_owned()
    };
    let (board, metrics) = (next(), next());
    let mut client = Client::connect(&server, Over::H3).await;
    client.get("/big").await;
    let (head, page) = plain(&board, &board, "/").await;
    assert!(head.starts_with("HTTP/1.1 200") && page.contains("<h2>Connections</h2>"), "{head}");
    assert!(head.contains("content-security-policy: default-src 'none'"), "{head}");
    let (_, state) = plain(&board, "localhost", "/state.json").await;
    let state: serde_json::Value = serde_json::from_str(&state).unwrap();
    assert_eq!((&state["open"], &state["accepted"]), (&1.into(), &1.into()), "{state}");
    assert!(state["totals"]["bytes_sent"].as_u64() > Some(200_000), "{state}");
    let shown = &state["connections"][0];
    assert!(shown["remote"].as_str().unwrap().starts_with("127.0.0.1:"), "{state}");
    assert!(shown["congestion_window"].as_u64() > Some(0), "{state}");
    let figure = |text: &str, name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(&format!("{name} ")));
        line.unwrap_or_else(|| panic!("{name}: {text}")).parse::<f64>().unwrap()
    };
    let (_, text) = plain(&metrics, &metrics, "/metrics").await;
    assert_eq!(figure(&text, "sutura_connections_open"), 1.0);
    assert!(figure(&text, "sutura_sent_bytes_total") > 200_000.0);
    // What is over still counts.
    let Client::H3(client) = client else { panic!() };
    client.connection().close(0x100, b"");
    loop {
        let (_, text) = plain(&metrics, &metrics, "/metrics").await;
        assert!(figure(&text, "sutura_sent_bytes_total") > 200_000.0);
        if figure(&text, "sutura_connections_open") == 0.0 {
            break;
        }
    }
    for (host, path, status) in [
        ("evil.example", "/", "421"),
        ("localhost", "/none", "404"),
        ("localhost", "/metrics", "404"),
    ] {
        let (head, _) = plain(&board, host, path).await;
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{host} {path}: {head}");
    }
}

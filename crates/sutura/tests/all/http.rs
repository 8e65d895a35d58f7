//! HTTP/3 between this project's client and server.

use crate::common::http::{accepted, answer, ask, body, connect, serve};
use crate::common::{all, pair, pattern, until, within};
use bytes::Bytes;
use std::sync::Arc;
use std::time::Duration;
use sutura::http::{self, Client, Priority, Server};
use sutura::policy::ArrivalOrder;
use sutura::{DatagramOptions, Endpoint, Protection, TransportConfig};

async fn client() -> (Client, Endpoint) {
    client_with(&TransportConfig::default()).await
}

async fn client_with(transport: &TransportConfig) -> (Client, Endpoint) {
    let (server, endpoint, address) = pair(http::ALPN, transport);
    serve(server);
    (connect(&endpoint, address).await, endpoint)
}

async fn get(client: &Client, path: &str, priority: Option<Priority>) -> (u16, Vec<u8>) {
    let mut stream = client.request("GET", "localhost", path, &[], priority).await.unwrap();
    stream.finish().await.unwrap();
    let response = stream.recv_response().await.unwrap();
    (response.status, body(&mut stream).await)
}

#[tokio::test]
async fn parallel_downloads_with_and_without_protection() {
    let (client, _endpoint) = client().await;
    all(0..30, |i| {
        let client = client.clone();
        let burst = Some((i % 3) as u32);
        let priority = Priority::default().with_burst(burst).with_incremental(i % 2 == 0);
        async move {
            let len = i * 7919;
            let (status, body) = get(&client, &format!("/{len}"), Some(priority)).await;
            assert_eq!(status, 200);
            assert!(body == pattern(len));
        }
    })
    .await;
    let fec = client.connection().stats().fec;
    assert!(fec.negotiated && fec.source_symbols_received > 0 && fec.repair_symbols_received > 0);
}

#[tokio::test]
async fn messages_are_read_in_order_whatever_the_connection_does_by_default() {
    let delivery = Arc::new(ArrivalOrder);
    let transport = TransportConfig::default().with_delivery(delivery);
    let (client, _endpoint) = client_with(&transport).await;
    let (status, body) = get(&client, "/300000", None).await;
    assert_eq!(status, 200);
    assert!(body == pattern(300_000));
    let mut stream = client.request("POST", "localhost", "/", &[], None).await.unwrap();
    stream.send_data(Bytes::from(body)).await.unwrap();
    stream.finish().await.unwrap();
    assert_eq!(stream.recv_response().await.unwrap().status, 200);
    assert_eq!(crate::common::http::body(&mut stream).await.len(), 300_000);
}

#[tokio::test]
async fn one_half_receives_while_the_other_one_sends() {
    let (client, _endpoint) = client().await;
    let stream = client.request("POST", "localhost", "/", &[], None).await.unwrap();
    let (mut send, mut recv) = stream.split();
    let sending = async {
        for part in pattern(300_000).chunks(10_000) {
            send.send_data(Bytes::copy_from_slice(part)).await.unwrap();
        }
        send.finish().await.unwrap();
    };
    let receiving = async {
        assert_eq!(recv.recv_response().await.unwrap().status, 200);
        let mut body = Vec::new();
        while let Some(data) = recv.recv_data().await.unwrap() {
            body.extend_from_slice(&data);
        }
        body
    };
    let ((), body) = within(async { tokio::join!(sending, receiving) }).await;
    assert!(body == pattern(300_000));
}

#[tokio::test]
async fn bodies_are_read_in_pieces_with_their_place() {
    let (server, endpoint, address) = pair(http::ALPN, &TransportConfig::default());
    tokio::spawn(async move {
        let mut requests = accepted(&server).await;
        let (_, mut stream) = requests.accept().await.unwrap().unwrap();
        stream.send_response(200, &[]).await.unwrap();
        stream.announce_body(300_000).await.unwrap();
        assert!(matches!(stream.finish().await, Err(http::Error::Invalid(_))));
        stream.send_data(pattern(300_000).into()).await.unwrap();
        stream.send_trailers(&[("x-done", b"yes")]).await.unwrap();
        requests.accept().await.unwrap();
    });
    let client = connect(&endpoint, address).await;
    let mut stream = ask(&client, "/").await;
    assert_eq!(stream.recv_response().await.unwrap().status, 200);
    let (mut body, mut read) = (vec![0; 300_000], 0);
    while let Some(http::Piece { offset, data, .. }) = stream.recv_piece().await.unwrap() {
        let start = offset as usize;
        body[start..start + data.len()].copy_from_slice(&data);
        read += data.len();
    }
    assert!(read == 300_000 && body == pattern(300_000));
    assert_eq!(stream.recv_data().await, Ok(None));
    assert!(stream.recv_trailers().await.unwrap().is_some());
}

#[tokio::test]
async fn what_arrived_before_the_connection_ended_can_be_read() {
    let (server, endpoint, address) = pair(http::ALPN, &TransportConfig::default());
    tokio::spawn(async move {
        let mut requests = accepted(&server).await;
        let (_, mut stream) = requests.accept().await.unwrap().unwrap();
        stream.send_response(200, &[]).await.unwrap();
        stream.send_data(pattern(300_000).into()).await.unwrap();
        stream.send_trailers(&[("x-done", b"yes")]).await.unwrap();
        // Acknowledged data has arrived, though nobody has read it.
        let connection = requests.connection();
        until(|| connection.stats().streams.send_buffered == 0).await;
        connection.close(http::Code::NO_ERROR.0, b"");
        server.wait_idle().await;
    });
    let client = connect(&endpoint, address).await;
    let mut stream = ask(&client, "/").await;
    client.connection().closed().await;
    assert_eq!(stream.recv_response().await.unwrap().status, 200);
    assert!(body(&mut stream).await == pattern(300_000));
    assert!(stream.recv_trailers().await.unwrap().is_some());
    // No further request is possible.
    assert!(client.request("GET", "localhost", "/", &[], None).await.is_err());
}

#[tokio::test]
async fn request_bodies_trailers_and_errors() {
    let (client, _endpoint) = client().await;
    let mut stream = client.request("POST", "localhost", "/", &[], None).await.unwrap();
    let data = Bytes::from(pattern(300_000));
    stream.send_data(data.clone()).await.unwrap();
    stream.finish().await.unwrap();
    assert_eq!(stream.recv_response().await.unwrap().status, 200);
    assert!(body(&mut stream).await == data);
    assert_eq!(stream.recv_trailers().await, Ok(None));

    let mut stream = ask(&client, "/5").await;
    stream.recv_response().await.unwrap();
    assert_eq!(stream.recv_data().await.unwrap().unwrap(), pattern(5));
    assert_eq!(stream.recv_data().await, Ok(None));
    let trailers = stream.recv_trailers().await.unwrap().unwrap();
    assert_eq!(trailers, [("x-done".to_owned(), b"yes".to_vec())]);

    assert_eq!(get(&client, "/nothing", None).await.0, 404);
}

#[tokio::test]
async fn a_dropped_request_cancels_and_leaves_the_others_alone() {
    let (client, _endpoint) = client().await;
    let mut stream = ask(&client, "/50000000").await;
    stream.recv_response().await.unwrap();
    drop(stream);
    assert_eq!(get(&client, "/1000", None).await, (200, pattern(1000)));
}

/// A client sets every parameter of a priority, in its request and again later; the response
/// overrides some (RFC 9218 sections 7 and 8).
#[tokio::test]
async fn a_priority_reaches_the_server_and_changes() {
    let (server, endpoint, address) = pair(http::ALPN, &TransportConfig::default());
    let (sender, mut receiver) = tokio::sync::mpsc::channel(1);
    tokio::spawn(async move {
        let mut server = accepted(&server).await;
        while let Ok(Some(request)) = server.accept().await {
            sender.send(request).await.unwrap();
        }
    });
    let client = connect(&endpoint, address).await;
    let first: Priority = r#"u=1, i, exp_w=0.4, exp_p=("a";u=1 "b")"#.parse().unwrap();
    let request = client.request("GET", "localhost", "/", &[], Some(first.clone()));
    let mut request = request.await.unwrap();
    request.finish().await.unwrap();
    let (head, mut response) = receiver.recv().await.unwrap();
    assert_eq!(head.field("priority"), Some(first.to_string().as_bytes()));
    assert_eq!(response.priority(), Some(first));
    let field = ("priority", &b"u=6, exp_p=()"[..]);
    response.send_response(200, &[field]).await.unwrap();
    let changed = "u=2, exp_w=3, exp_p=(c), exp_b=2".parse().unwrap();
    client.set_priority(&request, &changed).unwrap();
    let expected: Priority = "u=6, exp_w=3, exp_b=2".parse().unwrap();
    until(|| response.priority().as_ref() == Some(&expected)).await;
}

#[tokio::test]
async fn a_request_with_too_large_a_head_is_answered_and_the_server_hears_of_it() {
    let (server, endpoint, address) = pair(http::ALPN, &TransportConfig::default());
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut server = accepted(&server).await;
        server.on_refused(move |refused| sender.send(refused).unwrap());
        while let Ok(Some((_, mut stream))) = server.accept().await {
            answer(&mut stream, 200, &[]).await;
        }
    });
    let client = connect(&endpoint, address).await;
    // The number of lines is a limit that servers do not announce.
    let fields = [("x-many", &b"x"[..]); 200];
    let mut stream = client.request("GET", "localhost", "/", &fields, None).await.unwrap();
    stream.finish().await.unwrap();
    assert_eq!(stream.recv_response().await.unwrap().status, 431);
    let refused = receiver.recv().await.unwrap();
    assert_eq!(refused.answer, http::RefusedAnswer::Status(431));
    let text = "request on stream 0 refused, 431: field section larger than the limit";
    assert_eq!(refused.to_string(), text);
    assert_eq!(get(&client, "/5", None).await.0, 200);
}

#[tokio::test]
async fn a_server_that_goes_away_gets_no_more_requests() {
    let transport = TransportConfig::default().with_max_concurrent_bidi_streams(1);
    let (server, endpoint, address) = pair(http::ALPN, &transport);
    let (sender, receiver) = tokio::sync::oneshot::channel();
    tokio::spawn(async move {
        let mut server = accepted(&server).await;
        let (_, mut stream) = server.accept().await.unwrap().unwrap();
        receiver.await.unwrap();
        server.goaway();
        stream.send_response(200, &[]).await.unwrap();
        server.connection().closed().await;
    });
    let client = connect(&endpoint, address).await;
    let mut first = ask(&client, "/").await;
    // There is no room for a second request as long as the first lasts.
    let second = within(client.request("GET", "localhost", "/", &[], None));
    let goes_away = async {
        tokio::task::yield_now().await;
        sender.send(()).unwrap();
        first.recv_response().await.unwrap().status
    };
    let (second, status) = tokio::join!(second, goes_away);
    assert_eq!((second.unwrap_err(), status), (http::Error::GoingAway, 200));
    let third = client.request("GET", "localhost", "/", &[], None).await;
    assert_eq!(third.unwrap_err(), http::Error::GoingAway);
}

/// The response to HEAD has the length of the content that it does not have (RFC 9110 section 8.6).
#[tokio::test]
async fn a_head_request_is_told_the_length_of_what_it_does_not_get() {
    let (server, endpoint, address) = pair(http::ALPN, &TransportConfig::default());
    tokio::spawn(async move {
        let mut server = accepted(&server).await;
        let (request, mut stream) = server.accept().await.unwrap().unwrap();
        assert_eq!(request.method, "HEAD");
        answer(&mut stream, 200, &[("content-length", b"5")]).await;
        server.connection().closed().await;
    });
    let client = connect(&endpoint, address).await;
    let mut stream = client.request("HEAD", "localhost", "/5", &[], None).await.unwrap();
    stream.finish().await.unwrap();
    let response = stream.recv_response().await.unwrap();
    assert!(response.fields.contains(&("content-length".into(), b"5".to_vec())));
    assert_eq!(body(&mut stream).await, b"");
}

/// A client and a server on one connection.
async fn ends(server_config: http::Config) -> (Client, Server, [Endpoint; 2]) {
    let (server, endpoint, address) = pair(http::ALPN, &TransportConfig::default());
    let accept = async { server.accept().await.unwrap().await.unwrap() };
    let connect = async { endpoint.connect(address, "localhost").unwrap().await.unwrap() };
    let (accepted, connected) = tokio::join!(accept, connect);
    let client = Client::new(connected, http::Config::default()).await.unwrap();
    (client, Server::new(accepted, server_config), [server, endpoint])
}

#[tokio::test]
async fn interim_responses_are_read_or_skipped() {
    let (client, mut server, _endpoints) = ends(http::Config::default()).await;
    let serve = async {
        for _ in 0..2 {
            let (_, mut stream) = server.accept().await.unwrap().unwrap();
            stream.send_response(103, &[("link", b"</a.css>")]).await.unwrap();
            stream.send_response(100, &[]).await.unwrap();
            answer(&mut stream, 204, &[]).await;
        }
    };
    let ask = async {
        let mut stream = ask(&client, "/").await;
        let hint = stream.recv_interim().await.unwrap().unwrap();
        assert_eq!((hint.status, &hint.fields[0].0[..]), (103, "link"));
        assert_eq!(stream.recv_interim().await.unwrap().unwrap().status, 100);
        assert_eq!(stream.recv_interim().await.unwrap(), None);
        assert_eq!(stream.recv_response().await.unwrap().status, 204);
        assert_eq!(get(&client, "/", None).await, (204, Vec::new()));
    };
    within(async { tokio::join!(serve, ask) }).await;
}

#[tokio::test]
async fn an_extended_connect_carries_data_both_ways() {
    let config = http::Config::default().with_enable_connect_protocol(true);
    let (client, mut server, _endpoints) = ends(config).await;
    let serve = async {
        let (request, mut stream) = server.accept().await.unwrap().unwrap();
        assert_eq!((&request.method[..], &request.path[..]), ("CONNECT", "/chat"));
        assert_eq!(request.protocol.as_deref(), Some("websocket"));
        stream.send_response(200, &[]).await.unwrap();
        while let Some(data) = stream.recv_data().await.unwrap() {
            stream.send_data(data).await.unwrap();
        }
        stream.finish().await.unwrap();
    };
    let ask = async {
        let stream = client.connect("websocket", "localhost", "/chat", &[], None).await;
        let mut stream = stream.unwrap();
        stream.send_data(Bytes::from_static(b"ping")).await.unwrap();
        assert_eq!(stream.recv_response().await.unwrap().status, 200);
        assert_eq!(stream.recv_data().await.unwrap().unwrap(), &b"ping"[..]);
        stream.finish().await.unwrap();
        assert_eq!(stream.recv_data().await, Ok(None));
    };
    within(async { tokio::join!(serve, ask) }).await;
}

/// Each end says how its own half is sent, at any time.
#[tokio::test]
async fn half_an_exchange_is_sent_as_its_end_says() {
    let config = http::Config::default().with_enable_connect_protocol(true);
    let (client, mut server, _endpoints) = ends(config).await;
    let ask = async {
        let stream = client.connect("websocket", "localhost", "/chat", &[], None).await;
        let (mut send, mut recv) = stream.unwrap().split();
        let stats = || client.connection().stats().fec;
        let first = sutura::Priority::new(0, true).unwrap();
        send.set_stream_priority(first).unwrap();
        send.protect(Some(Protection::tail(1, Duration::ZERO))).unwrap();
        assert_eq!(recv.recv_response().await.unwrap().status, 200);
        let mut symbols = Vec::new();
        for _ in 0..2 {
            send.send_data(Bytes::from_static(b"ping")).await.unwrap();
            assert!(recv.recv_data().await.unwrap().is_some());
            symbols.push(stats().source_symbols_sent);
            send.protect(None).unwrap();
        }
        assert!(symbols[0] > 0 && symbols[1] == symbols[0], "{symbols:?}");
        send.finish().await.unwrap();
        assert_eq!(recv.recv_data().await, Ok(None));
        let closed = send.protect_by_default();
        assert!(matches!(closed, Err(http::Error::Invalid(_))), "{closed:?}");
    };
    within(async { tokio::join!(echo_one(&mut server), ask) }).await;
}

/// Answers one request with its own data.
async fn echo_one(server: &mut Server) {
    let (_, mut stream) = server.accept().await.unwrap().unwrap();
    stream.send_response(200, &[]).await.unwrap();
    while let Some(data) = stream.recv_data().await.unwrap() {
        stream.send_data(data).await.unwrap();
    }
    stream.finish().await.unwrap();
}

#[tokio::test]
async fn an_extended_connect_fails_where_it_is_not_supported() {
    let (client, _server, _endpoints) = ends(http::Config::default()).await;
    let outcome = within(client.connect("websocket", "localhost", "/chat", &[], None)).await;
    assert!(matches!(outcome, Err(http::Error::Invalid(_))), "{outcome:?}");
}

/// A graceful end: a client hears of it, and requests under way are answered.
#[tokio::test]
async fn a_server_announces_its_end() {
    let (client, mut server, _endpoints) = ends(http::Config::default()).await;
    let serve = async {
        let (_, mut first) = server.accept().await.unwrap().unwrap();
        server.announce_goaway();
        answer(&mut first, 200, &[]).await;
        server.goaway();
    };
    let ask = async {
        assert_eq!(get(&client, "/", None).await.0, 200);
        client.going_away().await.unwrap();
        let next = client.request("GET", "localhost", "/", &[], None).await;
        assert_eq!(next.unwrap_err(), http::Error::GoingAway);
    };
    within(async { tokio::join!(serve, ask) }).await;
}

/// Requests that their client resets before the application accepts them leave nothing behind.
#[tokio::test]
async fn rapid_resets_do_not_pile_up() {
    let config = http::Config::default().with_cancelled_requests(None);
    let (client, mut server, _endpoints) = ends(config).await;
    for _ in 0..1000 {
        let mut stream = client.request("POST", "localhost", "/", &[], None).await.unwrap();
        stream.send_data(Bytes::from_static(b"x")).await.unwrap();
        stream.reset(http::Code::REQUEST_CANCELLED);
    }
    let mut last = ask(&client, "/last").await;
    // Streams are processed in order, so that the resets have arrived with the last request.
    let (request, mut stream) = loop {
        let (request, stream) = within(server.accept()).await.unwrap().unwrap();
        if request.path == "/last" {
            break (request, stream);
        }
    };
    assert_eq!(request.method, "GET");
    answer(&mut stream, 200, &[]).await;
    assert_eq!(last.recv_response().await.unwrap().status, 200);
}

/// One task reads a tunnel's datagrams, another its capsules, and a third sends as fast as there is room.
#[tokio::test]
async fn datagrams_of_an_exchange_have_tasks_of_their_own() {
    const SENT: u32 = 2_000;
    let config =
        http::Config::default().with_enable_connect_protocol(true).with_enable_datagrams(true);
    let (server, endpoint, address) = pair(http::ALPN, &TransportConfig::default());
    let serve = async {
        let connection = server.accept().await.unwrap().await.unwrap();
        let mut requests = Server::new(connection, config.clone());
        let (_, mut stream) = requests.accept().await.unwrap().unwrap();
        stream.send_response(200, &[]).await.unwrap();
        let datagrams = stream.datagrams();
        let reading = tokio::spawn(async move {
            let (mut count, mut last) = (0_u32, None);
            while let Some(payload) = datagrams.recv().await.unwrap() {
                count += 1;
                assert!(last < Some(payload.clone()), "in the order in which they were sent");
                last = Some(payload);
            }
            (count, datagrams)
        });
        // The capsule says that all were sent.
        let capsule = stream.recv_capsule(&[http::Capsule::DATAGRAM]).await.unwrap();
        assert_eq!(capsule.unwrap().value, "all");
        assert_eq!(stream.recv_capsule(&[http::Capsule::DATAGRAM]).await, Ok(None));
        let (count, datagrams) = reading.await.unwrap();
        assert!(count > 0 && count <= SENT, "{count}");
        stream.finish().await.unwrap();
        drop(stream);
        let over = datagrams.send(b"x", &DatagramOptions::default());
        assert_eq!(over, Err(http::SendDatagramError::Closed));
        assert_eq!(datagrams.recv().await, Ok(None));
        requests.connection().closed().await;
    };
    let ask = async {
        let connection = endpoint.connect(address, "localhost").unwrap().await.unwrap();
        let client = Client::new(connection, config.clone()).await.unwrap();
        let stream = client.connect("connect-udp", "localhost", "/", &[], None).await;
        let mut stream = stream.unwrap();
        assert_eq!(stream.recv_response().await.unwrap().status, 200);
        let datagrams = stream.datagrams();
        let options = DatagramOptions::default();
        for number in 0..SENT {
            let mut payload = number.to_be_bytes().to_vec();
            payload.resize(1_000, 0);
            datagrams.send_wait(&payload, &options).await.unwrap();
        }
        let large = datagrams.send_wait(&[0; 70_000], &options).await;
        assert_eq!(large, Err(http::SendDatagramError::TooLarge));
        let value = Bytes::from_static(b"all");
        stream.send_capsule(&http::Capsule { kind: http::Capsule::DATAGRAM, value }).await.unwrap();
        stream.finish().await.unwrap();
        assert_eq!(client.connection().stats().datagrams_dropped_out, 0);
        assert_eq!(stream.recv_data().await.unwrap(), None);
        client.connection().close(0, b"");
    };
    within(async { tokio::join!(serve, ask) }).await;
}

/// Datagrams and capsules in an exchange that both ends know how to use.
#[tokio::test]
async fn datagrams_and_capsules() {
    let config =
        http::Config::default().with_enable_connect_protocol(true).with_enable_datagrams(true);
    let (server, endpoint, address) = pair(http::ALPN, &TransportConfig::default());
    let serve = async {
        let connection = server.accept().await.unwrap().await.unwrap();
        let mut requests = Server::new(connection, config.clone());
        let (_, mut stream) = requests.accept().await.unwrap().unwrap();
        stream.send_response(200, &[]).await.unwrap();
        let datagram = stream.recv_datagram().await.unwrap().unwrap();
        stream.send_datagram(&datagram).unwrap();
        let capsule = stream.recv_capsule(&[http::Capsule::DATAGRAM]).await.unwrap().unwrap();
        assert_eq!(capsule.value, "reliable");
        stream.send_capsule(&capsule).await.unwrap();
        assert_eq!(stream.recv_capsule(&[http::Capsule::DATAGRAM]).await, Ok(None));
        stream.finish().await.unwrap();
        requests.connection().closed().await;
    };
    let ask = async {
        let connection = endpoint.connect(address, "localhost").unwrap().await.unwrap();
        let client = Client::new(connection, config.clone()).await.unwrap();
        let stream = client.connect("connect-udp", "localhost", "/", &[], None).await;
        let mut stream = stream.unwrap();
        assert_eq!(stream.recv_response().await.unwrap().status, 200);
        assert!(stream.max_datagram_size().unwrap() > 1000);
        let large = stream.send_datagram(&[0; 70_000]);
        assert_eq!(large, Err(http::SendDatagramError::TooLarge));
        stream.send_datagram(b"unreliable").unwrap();
        assert_eq!(stream.recv_datagram().await.unwrap().unwrap(), "unreliable");
        let unknown = http::Capsule { kind: 0x1234, value: Bytes::from_static(b"skipped") };
        stream.send_capsule(&unknown).await.unwrap();
        let value = Bytes::from_static(b"reliable");
        let capsule = http::Capsule { kind: http::Capsule::DATAGRAM, value };
        stream.send_capsule(&capsule).await.unwrap();
        let echo = stream.recv_capsule(&[http::Capsule::DATAGRAM]).await.unwrap();
        assert_eq!(echo, Some(capsule));
        stream.finish().await.unwrap();
        assert_eq!(stream.recv_data().await, Ok(None));
        client.connection().close(http::Code::NO_ERROR.0, b"");
    };
    within(async { tokio::join!(serve, ask) }).await;
}

//! Two endpoints over loopback: streams, datagrams, and the end of connections.

use crate::common::{
    all, configs, connected, echo, echoing, exchange, local_client, localhost, pair, pattern,
};
use bytes::Bytes;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};
use sutura::policy::{ArrivalOrder, StreamOrder};
use sutura::{
    ClientConfig, Connection, ConnectionError, Endpoint, ExportError, MessageOptions,
    MessageOutcome, Protection, ReadError, ResetError, SendMessageError, ServerConfig,
    TransportConfig, WriteError,
};
use sutura_relay::Relay;

#[tokio::test]
async fn many_streams_at_once_come_back_whole() {
    let (connection, client) = echoing().await;
    assert_eq!(connection.alpn().as_deref(), Some(&b"echo"[..]));
    all(0..20, |i| {
        let protection = match i % 4 {
            0 => Some(Protection::incremental(2, Duration::ZERO)),
            2 => Some(Protection::tail(2, Duration::ZERO)),
            _ => None,
        };
        exchange(connection.clone(), pattern(100_000 + i * 1000), protection)
    })
    .await;
    assert!(connection.stats().fec.source_symbols_sent > 0);
    drop(connection);
    client.wait_idle().await;
}

#[tokio::test]
async fn ten_megabytes_with_backpressure() {
    let (connection, _client) = echoing().await;
    exchange(connection.clone(), pattern(10 << 20), None).await;
    assert!(connection.stats().ecn_capable, "ECN marks were not reported");
}

#[tokio::test]
async fn what_is_behind_a_loss_is_read_at_once_where_order_does_not_matter() {
    let (server, client, address) = pair(b"echo", &TransportConfig::default());
    echo(server);
    let link = "rate=50mbit queue=200p delay=4ms loss=bern:3%".parse().unwrap();
    let relay = Relay::start(&sutura_relay::Config::new(localhost(), address).link(&link));
    let relay = relay.unwrap();
    let connection = client.connect(relay.local_addr(), "localhost").unwrap().await.unwrap();
    let (mut send, mut recv) = connection.open_bi().await.unwrap();
    let data = pattern(2 << 20);
    let expected = data.clone();
    tokio::spawn(async move {
        send.write_all(&data).await.unwrap();
        send.finish().unwrap();
        let _ = send.stopped().await;
    });
    let mut got = vec![None; expected.len()];
    let (mut total, mut gaps) = (0, 0);
    while let Some(chunk) = recv.read_chunk(10_000, false).await.unwrap() {
        gaps += usize::from(chunk.offset > total);
        for (byte, &b) in got[chunk.offset as usize..].iter_mut().zip(&chunk.bytes) {
            assert_eq!(byte.replace(b), None, "every byte comes once");
        }
        total += chunk.bytes.len() as u64;
    }
    assert!(got.into_iter().eq(expected.into_iter().map(Some)));
    assert!(gaps > 0, "everything came in order: {:?}", relay.stop());
    assert_eq!(recv.read_chunk(1, false).await, Err(ReadError::ClosedStream));
}

#[tokio::test]
async fn the_order_of_streams_can_be_chosen_for_all_and_for_one() {
    let delivery = Arc::new(ArrivalOrder);
    let transport = TransportConfig::default().with_delivery(delivery);
    let (a, b, _client) = connected(b"x", &transport).await;
    let mut send = a.open_uni().await.unwrap();
    send.write_all(b"some words").await.unwrap();
    send.finish().unwrap();
    let mut recv = b.accept_uni().await.unwrap();
    assert_eq!(recv.read(&mut [0; 9]).await, Err(ReadError::IllegalOrderedRead));
    assert_eq!(recv.read_chunk(4, true).await, Err(ReadError::IllegalOrderedRead));
    recv.set_delivery(&StreamOrder).unwrap();
    assert_eq!(&recv.read_chunk(4, true).await.unwrap().unwrap().bytes[..], b"some");
    let chunk = recv.read_chunk(99, false).await.unwrap().unwrap();
    assert_eq!((chunk.offset, &chunk.bytes[..]), (4, &b" words"[..]));
    assert_eq!(recv.set_delivery(&StreamOrder), Err(ReadError::IllegalOrderedRead));
    assert_eq!(recv.read_chunk(99, false).await, Ok(None));
    assert_eq!(recv.set_delivery(&ArrivalOrder), Err(ReadError::ClosedStream));
}

#[tokio::test]
async fn a_client_comes_back_with_a_ticket() {
    let (server, client, address) = pair(b"echo", &TransportConfig::default());
    echo(server);
    for _ in 0..3 {
        let connection = client.connect(address, "localhost").unwrap().await.unwrap();
        exchange(connection, b"again".to_vec(), None).await;
    }
}

#[tokio::test]
async fn datagrams_both_ways() {
    let (a, b, _client) = connected(b"dgram", &TransportConfig::default()).await;
    let size = a.max_datagram_size().unwrap();
    a.send_datagram(Bytes::from(vec![7; size])).unwrap();
    assert_eq!(b.read_datagram().await.unwrap().len(), size);
    b.send_datagram(Bytes::from_static(b"answer")).unwrap();
    assert_eq!(&a.read_datagram().await.unwrap()[..], b"answer");
    a.send_datagram(Bytes::from(vec![7; 1 << 16])).unwrap_err();
}

#[tokio::test]
async fn resets_and_stops_reach_the_other_end() {
    let (a, b, _client) = connected(b"x", &TransportConfig::default()).await;
    let (mut send, _recv) = a.open_bi().await.unwrap();
    send.write_all(b"x").await.unwrap();
    let (mut their_send, mut their_recv) = b.accept_bi().await.unwrap();
    assert_eq!(&their_recv.read_chunk(10, true).await.unwrap().unwrap().bytes[..], b"x");
    send.reset(42).unwrap();
    assert_eq!(their_recv.read_chunk(10, true).await, Err(ReadError::Reset(42)));
    drop(_recv);
    assert_eq!(their_send.stopped().await, Ok(Some(0)));
    assert_eq!(their_send.write(b"y").await, Err(WriteError::Stopped(0)));
}

#[tokio::test]
async fn who_does_not_read_hears_of_a_reset_and_of_an_end() {
    let (a, b, _client) = connected(b"x", &TransportConfig::default()).await;
    for (code, expected) in [(Some(42), Some(42)), (None, None)] {
        let mut send = a.open_uni().await.unwrap();
        send.write_all(b"x").await.unwrap();
        let mut recv = b.accept_uni().await.unwrap();
        {
            let mut waiting = Box::pin(recv.received_reset());
            assert!(poll_once(&mut waiting).await.is_pending(), "neither has happened");
            match code {
                Some(code) => send.reset(code).unwrap(),
                None => send.finish().unwrap(),
            }
            assert_eq!(waiting.await, Ok(expected));
        }
        assert_eq!(recv.received_reset().await, Ok(expected), "a question may be asked again");
        let read = recv.read_to_end(10).await.map_err(|error| error.to_string());
        match code {
            Some(code) => assert_eq!(read, Err(ReadError::Reset(code).to_string())),
            None => assert_eq!(read, Ok(b"x".to_vec())),
        }
        assert_eq!(recv.received_reset().await, Ok(None), "nothing is left to know");
    }
    let mut send = a.open_uni().await.unwrap();
    send.write_all(b"x").await.unwrap();
    let mut recv = b.accept_uni().await.unwrap();
    a.close(7, b"");
    assert!(matches!(recv.received_reset().await, Err(ResetError::ConnectionLost(_))));
}

/// Polls a future once.
async fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    poll_fn(|cx| Poll::Ready(Pin::new(&mut *future).poll(cx))).await
}

#[tokio::test]
async fn a_connection_tells_what_both_ends_agreed_on() {
    let (a, b, _client) = connected(b"x", &TransportConfig::default()).await;
    for end in [&a, &b] {
        let agreed = end.handshake_data().unwrap();
        assert_eq!(agreed.protocol.as_deref(), Some(&b"x"[..]));
        assert_eq!(agreed.server_name.as_deref(), Some("localhost"));
    }
    assert_eq!(a.rtt(), a.stats().rtt);
    assert!(!a.rtt().is_zero());
    assert_eq!(a.stable_id(), a.clone().stable_id());
    assert_ne!(a.stable_id(), b.stable_id());
}

#[tokio::test]
async fn an_application_close_is_told_with_its_reason() {
    let (a, b, client) = connected(b"x", &TransportConfig::default()).await;
    a.close(7, b"enough");
    let expected = ConnectionError::ApplicationClosed { code: 7, reason: b"enough".to_vec() };
    assert_eq!(b.closed().await, expected);
    assert_eq!(b.open_bi().await.map(drop), Err(expected));
    assert_eq!(a.closed().await, ConnectionError::LocallyClosed);
    client.wait_idle().await;
    assert_eq!(client.open_connections(), 0);
}

#[tokio::test]
async fn a_wrong_name_ends_in_an_error_at_both_ends() {
    let (server, client, address) = pair(b"x", &TransportConfig::default());
    let accept = tokio::spawn(async move { server.accept().await.unwrap().await.map(drop) });
    let error = client.connect(address, "example.org").unwrap().await.map(drop).unwrap_err();
    assert!(matches!(error, ConnectionError::Transport(_)), "{error}");
    assert!(error.to_string().contains("CRYPTO_ERROR"), "{error}");
    assert!(matches!(accept.await.unwrap(), Err(ConnectionError::ClosedByPeer(_))));
}

#[tokio::test]
async fn nobody_there_times_out() {
    let transport = TransportConfig::default()
        .with_max_idle_timeout(Some(Duration::from_millis(300)))
        .with_initial_rtt(Duration::from_millis(20));
    let (server, client, _) = pair(b"x", &transport);
    drop(server);
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let connecting = client.connect(silent.local_addr().unwrap(), "localhost").unwrap();
    assert_eq!(connecting.await.map(drop), Err(ConnectionError::TimedOut));
}

#[tokio::test]
async fn messages_arrive_and_their_sender_is_told() {
    let transport = TransportConfig::default()
        .with_redundancy(Some(Arc::new(sutura::policy::Auto::default())))
        .with_scheduler(Arc::new(sutura::Scheme::DEADLINE));
    let (a, b, _client) = connected(b"x", &transport).await;
    let by = MessageOptions::by(Instant::now() + Duration::from_secs(60));
    a.next_message_at(Some(Instant::now() + Duration::from_millis(1)));
    let mut sent = Vec::new();
    for n in 0..50 {
        let unreliable = n % 2 == 0;
        let options = by.clone().with_unreliable(unreliable);
        sent.push(a.send_message(pattern(1_000).into(), options).await.unwrap());
    }
    a.next_message_at(None);
    for _ in 0..25 {
        let mut stream = b.accept_uni().await.unwrap();
        assert_eq!(stream.read_to_end(2_000).await.unwrap(), pattern(1_000));
        assert_eq!(b.read_datagram().await.unwrap(), pattern(1_000));
    }
    let mut told = Vec::new();
    for _ in 0..50 {
        let (id, outcome) = a.message_outcome().await.unwrap();
        assert!([MessageOutcome::Arrived, MessageOutcome::Recovered].contains(&outcome));
        told.push(id);
    }
    told.sort_unstable();
    assert_eq!(told, sent);
    assert!(!a.cancel_message(sent[0], 0), "its fate is known");
    a.close(0, b"");
    assert!(a.message_outcome().await.is_err());
    let closed = a.try_send_message(Bytes::new(), MessageOptions::default());
    assert_eq!(closed, Err(SendMessageError::Closed));
}

#[tokio::test]
async fn protected_datagrams_of_the_largest_size_arrive() {
    let (a, b, _client) = connected(b"x", &TransportConfig::default()).await;
    let bare = a.max_datagram_size().unwrap();
    a.protect_datagrams(Some(Protection::tail(1, Duration::ZERO)));
    let max = a.max_datagram_size().unwrap();
    assert!(max < bare);
    assert!(a.send_datagram(pattern(bare).into()).is_err());
    a.send_datagram(pattern(max).into()).unwrap();
    assert_eq!(b.read_datagram().await.unwrap(), pattern(max));
    assert_eq!(a.stats().fec.source_symbols_sent, 1);
}

/// The ends of a connection to a server with this configuration: the client's and the server's.
async fn ends(server: ServerConfig, client: ClientConfig) -> [Connection; 2] {
    let server = Endpoint::server(server, localhost()).unwrap();
    let address = server.local_addr().unwrap();
    let client = local_client(client);
    let connecting = client.connect(address, "localhost").unwrap();
    let early = connecting.connection().unwrap().export_keying_material(&mut [0; 32], b"l", None);
    assert_eq!(early, Err(ExportError::Unavailable));
    let accept = tokio::spawn(async move { server.accept().await.unwrap().await.unwrap() });
    [connecting.await.unwrap(), accept.await.unwrap()]
}

#[tokio::test]
async fn both_ends_export_the_same_keying_material() {
    let (server, client) = configs(b"x");
    let [ours, theirs] = ends(server.exporter(), client).await.each_ref().map(|connection| {
        let mut output = [0; 32];
        connection.export_keying_material(&mut output, b"label", Some(b"context")).unwrap();
        output
    });
    assert_eq!(ours, theirs);
    assert_ne!(ours, [0; 32]);
}

#[tokio::test]
async fn a_server_that_was_not_asked_to_keeps_no_keying_material() {
    let (server, client) = configs(b"x");
    let [client, server] = ends(server, client).await;
    let export = |end: &Connection| end.export_keying_material(&mut [0; 32], b"label", None);
    assert_eq!((export(&client), export(&server)), (Ok(()), Err(ExportError::NotKept)));
    assert_eq!(server.alpn().as_deref(), Some(&b"x"[..]));
    assert_eq!(server.server_name().as_deref(), Some("localhost"));
}

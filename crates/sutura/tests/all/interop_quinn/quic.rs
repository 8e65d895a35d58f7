//! Streams and datagrams.

use bytes::Bytes;
use sutura::{Protection, ReadError, WriteError};

use super::peers::Peers;
use crate::common::{all, echo, exchange, pattern, within};

const PROTOCOL: &[u8] = b"echo";
const LIMIT: usize = 16 << 20;
/// More streams than either end permits at a time.
const STREAMS: usize = 250;

/// Echoes the bidirectional streams and the datagrams of every connection to quinn's endpoint.
pub fn they_echo(server: quinn::Endpoint) {
    tokio::spawn(async move {
        while let Some(incoming) = server.accept().await {
            let Ok(connection) = incoming.await else { continue };
            let datagrams = connection.clone();
            tokio::spawn(async move {
                while let Ok(data) = datagrams.read_datagram().await {
                    datagrams.send_datagram(data).unwrap();
                }
            });
            tokio::spawn(async move {
                while let Ok((mut send, mut recv)) = connection.accept_bi().await {
                    tokio::spawn(async move {
                        while let Some(chunk) = recv.read_chunk(usize::MAX, true).await.unwrap() {
                            send.write_chunk(chunk.bytes).await.unwrap();
                        }
                        send.finish().unwrap();
                        let _ = send.stopped().await;
                    });
                }
            });
        }
    });
}

/// Sends `len` bytes and reads them back. The protection must have no effect on a peer that cannot
/// decode.
pub async fn we_exchange(connection: sutura::Connection, len: usize) {
    let protection = Protection::incremental(2, std::time::Duration::ZERO);
    exchange(connection, pattern(len), Some(protection)).await;
}

/// Sends `len` bytes and reads them back.
pub async fn they_exchange(connection: quinn::Connection, len: usize) {
    let (mut send, mut recv) = connection.open_bi().await.unwrap();
    let data = pattern(len);
    let expected = data.clone();
    let writer = tokio::spawn(async move {
        send.write_all(&data).await.unwrap();
        send.finish().unwrap();
        assert_eq!(send.stopped().await, Ok(None));
    });
    assert!(recv.read_to_end(LIMIT).await.unwrap() == expected, "{len} bytes differ");
    writer.await.unwrap();
}

/// Runs `test` with a connection of our client to a server of theirs that echoes.
pub async fn with_their_echo(
    link: Option<&str>,
    test: impl AsyncFnOnce(&Peers, sutura::Connection),
) -> Peers {
    let peers = Peers::they_serve(PROTOCOL, link);
    they_echo(peers.theirs.clone());
    within(async { test(&peers, peers.we_connect().await).await }).await;
    peers
}

/// Runs `test` with a connection of their client to a server of ours that echoes.
pub async fn with_our_echo(
    link: Option<&str>,
    test: impl AsyncFnOnce(&Peers, quinn::Connection),
) -> Peers {
    let peers = Peers::we_serve(PROTOCOL, link);
    echo(peers.ours.clone());
    within(async { test(&peers, peers.they_connect().await).await }).await;
    peers
}

#[tokio::test]
async fn megabytes_of_their_client() {
    with_our_echo(None, async |peers, connection| {
        they_exchange(connection.clone(), 6 << 20).await;
        connection.close(7u32.into(), b"enough");
        peers.theirs.wait_idle().await;
    })
    .await;
}

#[tokio::test]
async fn megabytes_of_our_client() {
    with_their_echo(None, async |peers, connection| {
        assert_eq!(connection.alpn().as_deref(), Some(PROTOCOL));
        we_exchange(connection.clone(), 6 << 20).await;
        assert!(connection.stats().ecn_capable, "they have not reported our ECN marks");
        let fec = connection.stats().fec;
        assert!(!fec.negotiated && fec.source_symbols_sent == 0 && fec.repair_symbols_sent == 0);
        connection.close(7, b"enough");
        peers.ours.wait_idle().await;
    })
    .await;
}

#[tokio::test]
async fn many_streams_of_their_client() {
    with_our_echo(None, async |_, connection| {
        all((0..STREAMS).map(|i| i * 61), |len| they_exchange(connection.clone(), len)).await;
    })
    .await;
}

#[tokio::test]
async fn many_streams_of_our_client() {
    with_their_echo(None, async |_, connection| {
        all((0..STREAMS).map(|i| i * 61), |len| we_exchange(connection.clone(), len)).await;
    })
    .await;
}

#[tokio::test]
async fn datagrams_of_their_client() {
    with_our_echo(None, async |_, connection| {
        // Our packets are no larger than the size that every path carries, so the echo of a larger datagram
        // may be too large.
        for len in [0, 1, 700, 1100] {
            let data = Bytes::from(pattern(len));
            connection.send_datagram(data.clone()).unwrap();
            assert_eq!(connection.read_datagram().await.unwrap(), data);
        }
    })
    .await;
}

#[tokio::test]
async fn datagrams_of_our_client() {
    with_their_echo(None, async |_, connection| {
        let max = connection.max_datagram_size().unwrap();
        for len in [0, 1, 700, 1100, max] {
            let data = Bytes::from(pattern(len));
            connection.send_datagram(data.clone()).unwrap();
            assert_eq!(connection.read_datagram().await.unwrap(), data);
        }
    })
    .await;
}

#[tokio::test]
async fn resets_stops_and_closes_are_understood_by_both() {
    let peers = Peers::they_serve(PROTOCOL, None);
    within(async {
        let (ours, theirs) = peers.meet().await;

        let mut send = ours.open_uni().await.unwrap();
        send.write_all(b"x").await.unwrap();
        let mut recv = theirs.accept_uni().await.unwrap();
        assert_eq!(recv.read_chunk(1, true).await.unwrap().unwrap().bytes[..], b"x"[..]);
        send.reset(42).unwrap();
        let reset = recv.read_chunk(1, true).await.unwrap_err();
        assert_eq!(reset, quinn::ReadError::Reset(42u32.into()));

        let mut send = theirs.open_uni().await.unwrap();
        send.write_all(b"y").await.unwrap();
        let mut recv = ours.accept_uni().await.unwrap();
        assert_eq!(recv.read_chunk(1, true).await.unwrap().unwrap().bytes[..], b"y"[..]);
        send.reset(43u32.into()).unwrap();
        assert_eq!(recv.read_chunk(1, true).await, Err(ReadError::Reset(43)));

        let (mut our_send, _our_recv) = ours.open_bi().await.unwrap();
        our_send.write_all(b"z").await.unwrap();
        let (their_send, mut their_recv) = theirs.accept_bi().await.unwrap();
        their_recv.stop(44u32.into()).unwrap();
        assert_eq!(our_send.stopped().await, Ok(Some(44)));
        assert_eq!(our_send.write(b"z").await, Err(WriteError::Stopped(44)));
        drop(_our_recv);
        assert_eq!(their_send.stopped().await, Ok(Some(0u32.into())));

        theirs.close(45u32.into(), b"enough");
        let reason = b"enough".to_vec();
        let expected = sutura::ConnectionError::ApplicationClosed { code: 45, reason };
        assert_eq!(ours.closed().await, expected);
    })
    .await;
}

#[tokio::test]
async fn our_close_reaches_their_client() {
    let peers = Peers::we_serve(PROTOCOL, None);
    within(async {
        let server = peers.ours.clone();
        let accept = tokio::spawn(async move { server.accept().await.unwrap().await.unwrap() });
        let theirs = peers.they_connect().await;
        accept.await.unwrap().close(46, b"enough");
        let quinn::ConnectionError::ApplicationClosed(close) = theirs.closed().await else {
            unreachable!("the close should come from the application")
        };
        assert_eq!((close.error_code, &close.reason[..]), (46u32.into(), &b"enough"[..]));
    })
    .await;
}

/// The streams of an ordered group, by a peer that has no erasure coding and writes the headers itself. Of
/// three updates of two messages the last comes first, and one message is cancelled.
#[tokio::test]
async fn an_ordered_group_of_their_client() {
    let peers = Peers::we_serve(PROTOCOL, None);
    within(async {
        let (theirs, ours) = tokio::join!(peers.they_connect(), async {
            peers.ours.accept().await.unwrap().await.unwrap()
        });
        let mut groups = ours.receive_groups();
        // The header: group 0, the message's number, its distance from the fence before it, and no other
        // messages to wait for.
        for stream in [[0, 5, 1, 0], [0, 4, 0, 0], [0, 3, 1, 0], [0, 1, 1, 0], [0, 0, 0, 0]] {
            let mut send = theirs.open_uni().await.unwrap();
            send.write_all(&stream).await.unwrap();
            send.write_all(&pattern(1000 * usize::from(stream[1]))).await.unwrap();
            send.finish().unwrap();
            let _ = send.stopped().await;
        }
        let mut numbers = Vec::new();
        for _ in 0..3 {
            let message = groups.next().await.unwrap().unwrap();
            assert!(message.data == pattern(1000 * message.number as usize));
            numbers.push(message.number);
        }
        assert_eq!(numbers, [1, 0, 3], "0 and 1 before 3, 2 before 4 and 5");
        // A notice: message 2 was cancelled.
        let mut send = theirs.open_uni().await.unwrap();
        send.write_all(&[1, 0, 2, 1]).await.unwrap();
        send.finish().unwrap();
        for number in [4, 5] {
            assert_eq!(groups.next().await.unwrap().unwrap().number, number);
        }
        theirs.close(0u32.into(), b"");
        assert_eq!(groups.next().await, Ok(None));
    })
    .await;
}

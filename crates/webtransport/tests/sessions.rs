//! Sessions between a server and a client of this crate.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use std::time::Duration;

use common::{endpoints, session, within};
use sutura::{DatagramOptions, Priority, Protection, TransportConfig, http};
use sutura_webtransport::{Connect, Error, Request, Server, Session, WebTransportDraft, connect};

fn pattern(length: usize) -> Vec<u8> {
    (0..length as u64).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

/// One end opens streams of both kinds; the other answers.
async fn talk(opener: &Session, answerer: &Session) {
    let asked = async {
        let (mut send, mut recv) = opener.open_bi().await.unwrap();
        send.set_priority(Priority::new(1, true).unwrap()).unwrap();
        send.protect(Some(Protection::tail(2, Duration::ZERO))).unwrap();
        let mut alone = opener.open_uni().await.unwrap();
        alone.write_all(b"alone").await.unwrap();
        alone.finish().unwrap();
        let data = pattern(300_000);
        let (written, echoed) = tokio::join!(
            async {
                send.write_all(&data).await?;
                send.finish()?;
                send.stopped().await
            },
            recv.read_to_end(1 << 20)
        );
        written.unwrap();
        assert_eq!(echoed.unwrap(), data);
    };
    let answered = async {
        let (mut send, mut recv) = answerer.accept_bi().await.unwrap();
        while let Some(chunk) = recv.read_chunk(usize::MAX).await.unwrap() {
            send.write_chunk(chunk).await.unwrap();
        }
        send.finish().unwrap();
        let mut alone = answerer.accept_uni().await.unwrap();
        assert_eq!(alone.read_to_end(100).await.unwrap(), b"alone");
    };
    tokio::join!(asked, answered);
}

#[tokio::test]
async fn streams_of_both_kinds_in_both_directions() {
    within(async {
        let (client, server, _ends) = session(None).await;
        for _ in 0..3 {
            talk(&client, &server).await;
            talk(&server, &client).await;
        }
    })
    .await;
}

#[tokio::test]
async fn more_streams_than_the_connection_permits_at_once_take_turns() {
    within(async {
        let (client, server, _ends) = session(None).await;
        let echo = tokio::spawn(async move {
            while let Ok((mut send, mut recv)) = server.accept_bi().await {
                send.write_all(&recv.read_to_end(100).await.unwrap()).await.unwrap();
            }
        });
        let tasks: Vec<_> = (0..1000u32)
            .map(|n| {
                let client = client.clone();
                tokio::spawn(async move {
                    let (mut send, mut recv) = client.open_bi().await.unwrap();
                    send.write_all(&n.to_be_bytes()).await.unwrap();
                    send.finish().unwrap();
                    assert_eq!(recv.read_to_end(100).await.unwrap(), n.to_be_bytes());
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        client.close(0, "");
        echo.await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn datagrams_go_both_ways() {
    within(async {
        let (client, server, _ends) = session(None).await;
        assert!(client.max_datagram_size().unwrap() > 1000);
        client.send_datagram(b"there").unwrap();
        assert_eq!(server.recv_datagram().await.unwrap(), &b"there"[..]);
        let options = DatagramOptions::default();
        server.send_datagram_wait(b"and back", &options).await.unwrap();
        assert_eq!(client.recv_datagram().await.unwrap(), &b"and back"[..]);
        let too_large = client.send_datagram(&[0; 5000]);
        assert_eq!(too_large, Err(Error::Datagram(http::SendDatagramError::TooLarge)));
        server.close(3, "enough");
        let closed = Error::ClosedByPeer { code: 3, reason: "enough".to_owned() };
        assert_eq!(client.recv_datagram().await, Err(closed.clone()));
        assert_eq!(client.send_datagram(b"late"), Err(closed));
    })
    .await;
}

#[tokio::test]
async fn codes_of_streams_are_those_of_the_application() {
    within(async {
        let (client, server, _ends) = session(None).await;
        for code in [0, 29, 30, 0xffff_ffff] {
            let (mut send, mut recv) = client.open_bi().await.unwrap();
            send.reset(code).unwrap();
            recv.stop(code).unwrap();
            // The header arrives although the stream was reset at once.
            let (mut send, mut recv) = server.accept_bi().await.unwrap();
            assert_eq!(recv.read(&mut [0; 10]).await, Err(Error::Reset(Some(code))));
            assert_eq!(send.stopped().await, Err(Error::Stopped(Some(code))));
        }
        // A stream that is dropped is stopped with the code 0.
        let (mut send, recv) = client.open_bi().await.unwrap();
        send.write_all(b"x").await.unwrap();
        drop(server.accept_bi().await.unwrap());
        assert_eq!(send.stopped().await, Err(Error::Stopped(Some(0))));
        drop(recv);
    })
    .await;
}

#[tokio::test]
async fn a_close_reaches_all_who_wait() {
    within(async {
        let (client, server, _ends) = session(None).await;
        let (mut send, mut recv) = client.open_bi().await.unwrap();
        send.write_all(b"x").await.unwrap();
        let (mut theirs, mut from_us) = server.accept_bi().await.unwrap();
        assert_eq!(from_us.read(&mut [0; 10]).await, Ok(Some(1)));
        let waiting = {
            let server = server.clone();
            tokio::spawn(async move {
                let mut buffer = [0; 10];
                let (bi, uni, datagram, closed, read, ()) = tokio::join!(
                    server.accept_bi(),
                    server.accept_uni(),
                    server.recv_datagram(),
                    server.closed(),
                    from_us.read(&mut buffer),
                    server.draining(),
                );
                [bi.err(), uni.err(), datagram.err(), Some(closed), read.err()].map(Option::unwrap)
            })
        };
        let own = {
            let client = client.clone();
            tokio::spawn(async move {
                let mut buffer = [0; 10];
                let (bi, read) = tokio::join!(client.accept_bi(), recv.read(&mut buffer));
                [bi.err(), read.err(), Some(client.closed().await)].map(Option::unwrap)
            })
        };
        tokio::task::yield_now().await;
        client.close(77, "good bye");
        let by_peer = Error::ClosedByPeer { code: 77, reason: "good bye".to_owned() };
        assert_eq!(own.await.unwrap(), [Error::Closed, Error::Closed, Error::Closed]);
        let heard = waiting.await.unwrap();
        assert!(heard.iter().all(|error| *error == by_peer), "{heard:?}");
        assert_eq!(theirs.write_all(b"late").await, Err(by_peer.clone()));
        assert_eq!(send.write_all(b"late").await, Err(Error::Closed));
        assert_eq!(server.open_uni().await.err(), Some(by_peer));
        assert_eq!(client.open_uni().await.err(), Some(Error::Closed));
        // The first close counts.
        server.close(1, "");
        assert!(matches!(server.closed().await, Error::ClosedByPeer { code: 77, .. }));
    })
    .await;
}

#[tokio::test]
async fn a_session_ends_with_its_last_handle_and_another_may_begin() {
    within(async {
        let (client, server, (endpoint, local, _requests)) = session(None).await;
        let connection = client.connection().clone();
        drop(client);
        assert_eq!(server.closed().await, Error::ClosedByPeer { code: 0, reason: String::new() });
        drop((server, connection));
        let url = format!("https://localhost:{}/", endpoint.local_addr().unwrap().port());
        let accept = async {
            let mut requests = Server::new(endpoint.accept().await.unwrap().await.unwrap());
            (requests.accept().await.unwrap().unwrap().ok().await.unwrap(), requests)
        };
        let (begun, (accepted, _requests)) = tokio::join!(connect(&local, &url), accept);
        let begun = begun.unwrap();
        // Told to end the session soon, an end may go on.
        accepted.drain().unwrap();
        begun.draining().await;
        talk(&begun, &accepted).await;
    })
    .await;
}

#[tokio::test]
async fn a_close_right_before_the_end_of_the_connection_arrives() {
    within(async {
        let (client, server, ends) = session(None).await;
        let waiting = tokio::spawn(async move { server.closed().await });
        client.close(5, "last words");
        drop(client);
        let heard = waiting.await.unwrap();
        assert_eq!(heard, Error::ClosedByPeer { code: 5, reason: "last words".to_owned() });
        drop(ends);
    })
    .await;
}

/// What a client hears whose request the server treats so.
async fn asked<F: Future>(
    connect: impl FnOnce(Connect) -> Connect,
    treat: impl FnOnce(Request) -> F,
) -> (Result<Session, Error>, F::Output) {
    let (server, client, url) = endpoints(&TransportConfig::default());
    let accept = async {
        let mut requests = Server::new(server.accept().await.unwrap().await.unwrap());
        let request = requests.accept().await.unwrap().unwrap();
        let treated = treat(request).await;
        // The answer is sent.
        while let Ok(Some(_)) = requests.accept().await {}
        treated
    };
    let begin = async {
        let begun = connect(Connect::new(&url).unwrap()).connect(&client).await;
        client.close(0, b"");
        begun
    };
    tokio::join!(begin, accept)
}

#[tokio::test]
async fn a_server_sees_who_asks_and_may_refuse() {
    within(async {
        let connect = |connect: Connect| {
            connect.field("origin", "https://example.org").protocol("b").protocol("a")
        };
        let (refused, ()) = asked(connect, |request| async move {
            assert_eq!(request.path(), "/room?name=a");
            assert!(request.authority().starts_with("localhost:"));
            assert_eq!(request.origin(), Some("https://example.org"));
            assert_eq!(request.protocols(), ["b", "a"]);
            request.reject(403).await.unwrap();
        })
        .await;
        assert_eq!(refused.err(), Some(Error::Refused(403)));
        let (session, served) = asked(connect, |request| request.ok_with("a")).await;
        assert_eq!(session.unwrap().protocol(), Some("a"));
        assert_eq!(served.unwrap().protocol(), Some("a"));
        let (_, served) = asked(connect, |request| request.ok_with("c")).await;
        assert_eq!(served.err(), Some(Error::Protocol));
        let (session, served) = asked(connect, Request::ok).await;
        assert_eq!((session.unwrap().protocol(), served.unwrap().protocol()), (None, None));
    })
    .await;
}

#[tokio::test]
async fn servers_without_webtransport_are_told_apart() {
    within(async {
        let (server, client, url) = endpoints(&TransportConfig::default());
        let serve = tokio::spawn(async move {
            let connection = server.accept().await.unwrap().await.unwrap();
            let mut server = http::Server::new(connection, http::Config::default());
            while let Ok(Some(_)) = server.accept().await {}
        });
        assert_eq!(connect(&client, &url).await.err(), Some(Error::Unsupported));
        client.close(0, b"");
        serve.await.unwrap();
        for url in ["http://localhost/", "https:", "nonsense"] {
            assert!(matches!(connect(&client, url).await, Err(Error::Url(_))));
        }
    })
    .await;
}

#[tokio::test]
async fn the_newest_draft_is_spoken() {
    within(async {
        let (client, _server, _ends) = session(Some("moq-lite-04")).await;
        assert_eq!(client.protocol(), Some("moq-lite-04"));
        assert_eq!(WebTransportDraft::Draft15.protocol(), "webtransport-h3");
    })
    .await;
}

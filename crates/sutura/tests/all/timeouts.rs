//! Clients that do not go on. The timeouts are short here; nothing is measured, but waited for.

use crate::common::http::{accepted, ask};
use crate::common::{pair, pattern};
use bytes::Bytes;
use std::time::Duration;
use sutura::http::{self, Client, Code, RequestStream, Timeouts};
use sutura::{Connection, Endpoint, ReadError, TransportConfig};
use tokio::sync::mpsc;

const SHORT: Duration = Duration::from_millis(200);

fn short() -> Timeouts {
    Timeouts::default().with_head(Some(SHORT)).with_body(Some(SHORT)).with_response(Some(SHORT))
}

/// A client of a server that answers each request with `answer`, and the outcomes of the answers.
async fn with<F>(
    transport: &TransportConfig,
    answer: impl Fn(RequestStream) -> F + Send + Sync + Copy + 'static,
) -> (Connection, Endpoint, mpsc::UnboundedReceiver<Result<(), http::Error>>)
where
    F: Future<Output = Result<(), http::Error>> + Send + 'static,
{
    let (server, endpoint, address) = pair(http::ALPN, transport);
    let (told, outcomes) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        let mut server = accepted(&server).await;
        server.set_timeouts(short());
        while let Ok(Some((_, stream))) = server.accept().await {
            let told = told.clone();
            tokio::spawn(async move { told.send(answer(stream).await) });
        }
    });
    let connection = endpoint.connect(address, "localhost").unwrap().await.unwrap();
    (connection, endpoint, outcomes)
}

async fn ok(mut stream: RequestStream) -> Result<(), http::Error> {
    while stream.recv_data().await?.is_some() {}
    stream.send_response(200, &[]).await?;
    stream.finish().await
}

/// Why an answer failed.
async fn failure(outcomes: &mut mpsc::UnboundedReceiver<Result<(), http::Error>>) -> Code {
    match outcomes.recv().await.unwrap() {
        Err(http::Error::Message { code, .. }) => code,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_head_that_does_not_end_is_rejected() {
    let (connection, _endpoint, _) = with(&TransportConfig::default(), ok).await;
    // A frame of 1,000 bytes of which ten come; and a stream with a single byte.
    for head in [&[1, 0x43, 0xe8, 0, 0, 0, 0, 0, 0, 0][..], &[1]] {
        let (mut send, mut recv) = connection.open_bi().await.unwrap();
        send.write_all(head).await.unwrap();
        let rejected = recv.read(&mut [0; 10]).await;
        assert_eq!(rejected, Err(ReadError::Reset(Code::REQUEST_REJECTED.0)));
    }
    // The connection is as good as before.
    let client = Client::new(connection, http::Config::default()).await.unwrap();
    let mut stream = ask(&client, "/").await;
    assert_eq!(stream.recv_response().await.unwrap().status, 200);
}

#[tokio::test]
async fn a_body_that_stalls_is_given_up() {
    let (connection, _endpoint, mut outcomes) = with(&TransportConfig::default(), ok).await;
    let client = Client::new(connection, http::Config::default()).await.unwrap();
    let mut stream = client.request("POST", "localhost", "/", &[], None).await.unwrap();
    stream.send_data(Bytes::from_static(b"some")).await.unwrap();
    assert_eq!(failure(&mut outcomes).await, Code::REQUEST_CANCELLED);
    assert!(stream.recv_response().await.is_err());
}

async fn large(mut stream: RequestStream) -> Result<(), http::Error> {
    stream.send_response(200, &[]).await?;
    for _ in 0..40 {
        stream.send_data(pattern(100_000).into()).await?;
    }
    stream.finish().await
}

#[tokio::test]
async fn a_response_that_nobody_reads_is_given_up() {
    let transport = TransportConfig::default().with_stream_receive_window(10_000);
    let (connection, _endpoint, mut outcomes) = with(&transport, large).await;
    let client = Client::new(connection, http::Config::default()).await.unwrap();
    let mut stream = ask(&client, "/").await;
    assert_eq!(stream.recv_response().await.unwrap().status, 200);
    assert_eq!(failure(&mut outcomes).await, Code::REQUEST_CANCELLED);
}

async fn late(mut stream: RequestStream) -> Result<(), http::Error> {
    tokio::time::sleep(5 * SHORT).await;
    stream.send_response(200, &[]).await?;
    stream.finish().await
}

#[tokio::test]
async fn an_application_may_take_its_time_to_answer() {
    let (connection, _endpoint, mut outcomes) = with(&TransportConfig::default(), late).await;
    let client = Client::new(connection, http::Config::default()).await.unwrap();
    // One request is complete, the other is not when it is answered.
    let mut poll = ask(&client, "/").await;
    let mut open = client.request("POST", "localhost", "/", &[], None).await.unwrap();
    assert_eq!(poll.recv_response().await.unwrap().status, 200);
    assert_eq!(open.recv_response().await.unwrap().status, 200);
    assert_eq!(outcomes.recv().await, Some(Ok(())));
}

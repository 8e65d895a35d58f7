//! HTTP/3 between our own client and server.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod common;

use bytes::Bytes;
use common::{pair, pattern};
use std::sync::Arc;
use sutura::http::{self, Client, Priority, Server};
use sutura::policy::ArrivalOrder;
use sutura::{Endpoint, TransportConfig};

/// Serves `/N` as N bytes, with a trailer; echoes the body of anything posted.
fn serve(endpoint: Endpoint) {
    tokio::spawn(async move {
        while let Some(incoming) = endpoint.accept().await {
            tokio::spawn(async move {
                let Ok(connection) = incoming.await else { return };
                let mut server = Server::new(connection, http::Config::default());
                while let Ok(Some((request, stream))) = server.accept().await {
                    tokio::spawn(respond(request, stream));
                }
            });
        }
    });
}

async fn respond(
    request: http::Request,
    mut stream: http::RequestStream,
) -> Result<(), http::Error> {
    if request.method == "POST" {
        stream.send_response(200, &[]).await?;
        while let Some(data) = stream.recv_data().await? {
            stream.send_data(data).await?;
        }
        return stream.finish().await;
    }
    let Ok(len) = request.path[1..].parse::<usize>() else {
        stream.send_response(404, &[]).await?;
        return stream.finish().await;
    };
    let length = len.to_string();
    stream.send_response(200, &[("content-length", length.as_bytes())]).await?;
    for chunk in pattern(len).chunks(64 * 1024) {
        stream.send_data(Bytes::copy_from_slice(chunk)).await?;
    }
    stream.send_trailers(&[("x-done", b"yes")]).await
}

async fn client() -> (Client, Endpoint) {
    client_with(&TransportConfig::default()).await
}

async fn client_with(transport: &TransportConfig) -> (Client, Endpoint) {
    let (server, endpoint, address) = pair(http::ALPN, transport);
    serve(server);
    let connection = endpoint.connect(address, "localhost").unwrap().await.unwrap();
    (Client::new(connection, http::Config::default()).await.unwrap(), endpoint)
}

async fn get(client: &Client, path: &str, priority: Option<Priority>) -> (u16, Vec<u8>) {
    let mut stream = client.request("GET", "localhost", path, &[], priority).await.unwrap();
    stream.finish().await.unwrap();
    let response = stream.recv_response().await.unwrap();
    let mut body = Vec::new();
    while let Some(data) = stream.recv_data().await.unwrap() {
        body.extend_from_slice(&data);
    }
    (response.status, body)
}

#[tokio::test]
async fn parallel_downloads_with_and_without_protection() {
    let (client, _endpoint) = client().await;
    let tasks: Vec<_> = (0..30usize)
        .map(|i| {
            let client = client.clone();
            let burst = (i % 3) as u32;
            let priority = Priority { burst, incremental: i % 2 == 0, ..Priority::default() };
            tokio::spawn(async move {
                let len = i * 7919;
                let (status, body) = get(&client, &format!("/{len}"), Some(priority)).await;
                assert_eq!(status, 200);
                assert!(body == pattern(len));
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let fec = client.connection().stats().fec;
    assert!(fec.negotiated && fec.source_symbols_received > 0 && fec.repair_symbols_received > 0);
}

#[tokio::test]
async fn messages_are_read_in_order_whatever_the_connection_does_by_default() {
    let delivery = Arc::new(ArrivalOrder);
    let transport = TransportConfig { delivery, ..TransportConfig::default() };
    let (client, _endpoint) = client_with(&transport).await;
    let (status, body) = get(&client, "/300000", None).await;
    assert_eq!(status, 200);
    assert!(body == pattern(300_000));
    let mut stream = client.request("POST", "localhost", "/", &[], None).await.unwrap();
    stream.send_data(Bytes::from(body)).await.unwrap();
    stream.finish().await.unwrap();
    assert_eq!(stream.recv_response().await.unwrap().status, 200);
    let mut length = 0;
    while let Some(part) = stream.recv_data().await.unwrap() {
        length += part.len();
    }
    assert_eq!(length, 300_000);
}

#[tokio::test]
async fn request_bodies_trailers_and_errors() {
    let (client, _endpoint) = client().await;
    let mut stream = client.request("POST", "localhost", "/", &[], None).await.unwrap();
    let data = Bytes::from(pattern(300_000));
    stream.send_data(data.clone()).await.unwrap();
    stream.finish().await.unwrap();
    assert_eq!(stream.recv_response().await.unwrap().status, 200);
    let mut body = Vec::new();
    while let Some(part) = stream.recv_data().await.unwrap() {
        body.extend_from_slice(&part);
    }
    assert!(body == data);
    assert_eq!(stream.recv_trailers().await, Ok(None));

    let mut stream = client.request("GET", "localhost", "/5", &[], None).await.unwrap();
    stream.finish().await.unwrap();
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
    let mut stream = client.request("GET", "localhost", "/50000000", &[], None).await.unwrap();
    stream.finish().await.unwrap();
    stream.recv_response().await.unwrap();
    drop(stream);
    assert_eq!(get(&client, "/1000", None).await, (200, pattern(1000)));
}

/// A client says everything that a priority has, in its request and again later; the response
/// overrides what it names (RFC 9218 sections 7 and 8).
#[tokio::test]
async fn a_priority_reaches_the_server_and_changes() {
    let (server, endpoint, address) = pair(http::ALPN, &TransportConfig::default());
    let (sender, mut receiver) = tokio::sync::mpsc::channel(1);
    tokio::spawn(async move {
        let connection = server.accept().await.unwrap().await.unwrap();
        let mut server = Server::new(connection, http::Config::default());
        while let Ok(Some(request)) = server.accept().await {
            sender.send(request).await.unwrap();
        }
    });
    let connection = endpoint.connect(address, "localhost").unwrap().await.unwrap();
    let client = Client::new(connection, http::Config::default()).await.unwrap();
    let first: Priority = r#"u=1, i, exp_w=0.4, exp_p=("a";u=1 "b")"#.parse().unwrap();
    let request = client.request("GET", "localhost", "/", &[], Some(first.clone()));
    let mut request = request.await.unwrap();
    request.finish().await.unwrap();
    let (head, mut response) = receiver.recv().await.unwrap();
    assert_eq!(head.field("priority"), Some(first.to_string().as_bytes()));
    assert_eq!(response.priority(), Some(first));
    let field = ("priority", &b"u=6, exp_p=()"[..]);
    response.send_response(200, &[field]).await.unwrap();
    client.set_priority(&request, "u=2, exp_w=3, exp_p=(c), exp_b=2".parse().unwrap()).unwrap();
    let expected: Priority = "u=6, exp_w=3, exp_b=2".parse().unwrap();
    let changed = async {
        while response.priority().as_ref() != Some(&expected) {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), changed).await.unwrap();
}

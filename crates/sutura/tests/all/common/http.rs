//! An HTTP/3 service, and a client's use of it.

use super::pattern;
use bytes::Bytes;
use std::net::SocketAddr;
use sutura::Endpoint;
use sutura::http::{Client, Config, Error, Request, RequestStream, Server};

/// Serves `GET /N` as N bytes and a trailer, and echoes a POST: its body, its `x-tag` field and its
/// trailers.
pub fn serve(server: Endpoint) {
    tokio::spawn(async move {
        while let Some(incoming) = server.accept().await {
            tokio::spawn(async move {
                let Ok(connection) = incoming.await else { return };
                let mut server = Server::new(connection, Config::default());
                while let Ok(Some((request, stream))) = server.accept().await {
                    tokio::spawn(respond(request, stream));
                }
            });
        }
    });
}

async fn respond(request: Request, mut stream: RequestStream) -> Result<(), Error> {
    assert_eq!((request.scheme.as_str(), request.authority.as_str()), ("https", "localhost"));
    if request.method == "POST" {
        let tag = request.field("x-tag").unwrap_or_default();
        stream.send_response(200, &[("x-tag", tag)]).await?;
        while let Some(data) = stream.recv_data().await? {
            stream.send_data(data).await?;
        }
        let Some(trailers) = stream.recv_trailers().await? else { return stream.finish().await };
        let trailers: Vec<_> = trailers.iter().map(|(n, v)| (n.as_str(), v.as_slice())).collect();
        return stream.send_trailers(&trailers).await;
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

/// The rest of the body on `stream`.
/// The server's side of the next connection.
pub async fn accepted(endpoint: &Endpoint) -> Server {
    Server::new(endpoint.accept().await.unwrap().await.unwrap(), Config::default())
}

pub async fn connect(endpoint: &Endpoint, address: SocketAddr) -> Client {
    let connection = endpoint.connect(address, "localhost").unwrap().await.unwrap();
    Client::new(connection, Config::default()).await.unwrap()
}

/// A GET request, all of which is sent.
pub async fn ask(client: &Client, path: &str) -> RequestStream {
    let mut stream = client.request("GET", "localhost", path, &[], None).await.unwrap();
    stream.finish().await.unwrap();
    stream
}

/// Sends a response without a body.
pub async fn answer(stream: &mut RequestStream, status: u16, fields: &[(&str, &[u8])]) {
    stream.send_response(status, fields).await.unwrap();
    stream.finish().await.unwrap();
}

pub async fn body(stream: &mut RequestStream) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(data) = stream.recv_data().await.unwrap() {
        body.extend_from_slice(&data);
    }
    body
}

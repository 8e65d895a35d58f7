//! HTTP/3 against h3 on quinn.

use std::future::poll_fn;

use ::http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use bytes::{Buf, Bytes};
use h3_quinn::OpenStreams;
use sutura::http::{self, Client};

use super::peers::Peers;
use crate::common::http::{body, serve};
use crate::common::{all, pattern, within};

type SendRequest = h3::client::SendRequest<OpenStreams, Bytes>;
type ServerStream = h3::server::RequestStream<h3_quinn::BidiStream<Bytes>, Bytes>;

/// The service of [`serve`] on quinn and h3.
pub fn they_serve(server: quinn::Endpoint) {
    tokio::spawn(async move {
        while let Some(incoming) = server.accept().await {
            let Ok(connection) = incoming.await else { continue };
            tokio::spawn(async move {
                let connection = h3_quinn::Connection::new(connection);
                let mut server = h3::server::Connection::<_, Bytes>::new(connection).await.unwrap();
                while let Ok(Some(resolver)) = server.accept().await {
                    tokio::spawn(async move {
                        let (request, stream) = resolver.resolve_request().await.unwrap();
                        they_respond(request, stream).await;
                    });
                }
            });
        }
    });
}

async fn they_respond(request: Request<()>, mut stream: ServerStream) {
    if request.method() == Method::POST {
        let mut response = Response::new(());
        if let Some(tag) = request.headers().get("x-tag") {
            response.headers_mut().insert("x-tag", tag.clone());
        }
        stream.send_response(response).await.unwrap();
        while let Some(mut data) = stream.recv_data().await.unwrap() {
            stream.send_data(data.copy_to_bytes(data.remaining())).await.unwrap();
        }
        if let Some(trailers) = stream.recv_trailers().await.unwrap() {
            stream.send_trailers(trailers).await.unwrap();
        }
        return stream.finish().await.unwrap();
    }
    let Ok(len) = request.uri().path()[1..].parse::<usize>() else {
        let response = Response::builder().status(StatusCode::NOT_FOUND).body(()).unwrap();
        stream.send_response(response).await.unwrap();
        return stream.finish().await.unwrap();
    };
    let response = Response::builder().header("content-length", len).body(()).unwrap();
    stream.send_response(response).await.unwrap();
    for chunk in pattern(len).chunks(64 * 1024) {
        stream.send_data(Bytes::copy_from_slice(chunk)).await.unwrap();
    }
    let mut trailers = HeaderMap::new();
    trailers.insert("x-done", HeaderValue::from_static("yes"));
    stream.send_trailers(trailers).await.unwrap();
    stream.finish().await.unwrap();
}

/// An HTTP/3 client of the h3 crate.
#[derive(Clone)]
pub struct TheirClient(SendRequest);

impl TheirClient {
    pub async fn connect(peers: &Peers) -> Self {
        let connection = h3_quinn::Connection::new(peers.they_connect().await);
        let (mut driver, client) = h3::client::new(connection).await.unwrap();
        tokio::spawn(async move { poll_fn(|cx| driver.poll_close(cx)).await });
        Self(client)
    }

    /// Downloads `len` bytes, then sends `len` bytes and reads them back.
    pub async fn exchange(mut self, len: usize) {
        let get = Request::get(format!("https://localhost/{len}"));
        // A peer without the extension must ignore these parameters.
        let get = get.header("priority", "u=1, i, exp_b=3, exp_d=5").body(()).unwrap();
        let (response, body, trailers) = self.send(get, Bytes::new(), None).await;
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-length"], len.to_string());
        assert!(body == pattern(len), "{len} bytes differ");
        assert_eq!(trailers.unwrap()["x-done"], "yes");

        let post = Request::post("https://localhost/").header("x-tag", len).body(()).unwrap();
        let mut sum = HeaderMap::new();
        sum.insert("x-sum", len.into());
        let sent = Some(sum.clone());
        let (response, body, trailers) = self.send(post, pattern(len).into(), sent).await;
        assert_eq!(
            (response.status(), &response.headers()["x-tag"]),
            (StatusCode::OK, &sum["x-sum"])
        );
        assert!(body == pattern(len), "{len} bytes differ");
        assert_eq!(trailers, Some(sum));
    }

    async fn send(
        &mut self,
        request: Request<()>,
        body: Bytes,
        trailers: Option<HeaderMap>,
    ) -> (Response<()>, Vec<u8>, Option<HeaderMap>) {
        let stream = self.0.send_request(request).await.unwrap();
        let (mut send, mut recv) = stream.split();
        // The response may fill the windows before the whole request is sent.
        let sender = tokio::spawn(async move {
            if !body.is_empty() {
                send.send_data(body).await.unwrap();
            }
            if let Some(trailers) = trailers {
                send.send_trailers(trailers).await.unwrap();
            }
            send.finish().await.unwrap();
        });
        let response = recv.recv_response().await.unwrap();
        let mut received = Vec::new();
        while let Some(mut data) = recv.recv_data().await.unwrap() {
            received.extend_from_slice(&data.copy_to_bytes(data.remaining()));
        }
        let trailers = recv.recv_trailers().await.unwrap();
        sender.await.unwrap();
        (response, received, trailers)
    }
}

/// An HTTP/3 client of this project.
pub async fn we_connect(peers: &Peers) -> Client {
    Client::new(peers.we_connect().await, http::Config::default()).await.unwrap()
}

/// Downloads `len` bytes, then sends `len` bytes and reads them back.
pub async fn we_exchange(client: Client, len: usize) {
    let path = format!("/{len}");
    let priority = "u=1, i, exp_b=3, exp_d=5".parse().unwrap();
    let request = client.request("GET", "localhost", &path, &[], Some(priority));
    let mut stream = request.await.unwrap();
    stream.finish().await.unwrap();
    let response = stream.recv_response().await.unwrap();
    assert_eq!(response.status, 200);
    let length = ("content-length".to_owned(), len.to_string().into_bytes());
    assert!(response.fields.contains(&length), "{:?}", response.fields);
    assert!(body(&mut stream).await == pattern(len), "{len} bytes differ");
    let trailers = stream.recv_trailers().await.unwrap();
    assert_eq!(trailers, Some(vec![("x-done".to_owned(), b"yes".to_vec())]));

    let tag = len.to_string().into_bytes();
    let fields: [(&str, &[u8]); 1] = [("x-tag", &tag)];
    let mut stream = client.request("POST", "localhost", "/", &fields, None).await.unwrap();
    // In pieces that fit the windows: each piece is read back before the next is sent.
    let mut received = Vec::new();
    for piece in pattern(len).chunks(30_000) {
        stream.send_data(Bytes::copy_from_slice(piece)).await.unwrap();
        let wanted = received.len() + piece.len();
        while received.len() < wanted {
            received.extend_from_slice(&stream.recv_data().await.unwrap().unwrap());
        }
    }
    stream.send_trailers(&[("x-sum", &tag)]).await.unwrap();
    let response = stream.recv_response().await.unwrap();
    assert_eq!(response.status, 200);
    assert!(response.fields.contains(&("x-tag".to_owned(), tag.clone())), "{:?}", response.fields);
    assert_eq!(stream.recv_data().await, Ok(None));
    assert!(received == pattern(len), "{len} bytes differ");
    assert_eq!(stream.recv_trailers().await.unwrap(), Some(vec![("x-sum".to_owned(), tag)]));
}

/// Body lengths of concurrent requests.
fn lengths() -> impl Iterator<Item = usize> {
    (0..60).map(|i| i * 2999)
}

#[tokio::test]
async fn requests_of_their_client() {
    let peers = Peers::we_serve(http::ALPN, None);
    serve(peers.ours.clone());
    within(async {
        let client = TheirClient::connect(&peers).await;
        client.clone().exchange(3_000_000).await;
        all(lengths(), |len| client.clone().exchange(len)).await;
    })
    .await;
}

#[tokio::test]
async fn requests_of_our_client() {
    let peers = Peers::they_serve(http::ALPN, None);
    they_serve(peers.theirs.clone());
    within(async {
        let client = we_connect(&peers).await;
        we_exchange(client.clone(), 3_000_000).await;
        all(lengths(), |len| we_exchange(client.clone(), len)).await;
    })
    .await;
}

#[tokio::test]
async fn what_is_missing_is_missing_for_their_client() {
    let peers = Peers::we_serve(http::ALPN, None);
    serve(peers.ours.clone());
    within(async {
        let mut client = TheirClient::connect(&peers).await;
        let request = Request::get("https://localhost/nothing").body(()).unwrap();
        let (response, body, trailers) = client.send(request, Bytes::new(), None).await;
        assert_eq!((response.status(), body.len(), trailers), (StatusCode::NOT_FOUND, 0, None));
    })
    .await;
}

#[tokio::test]
async fn a_cancelled_request_leaves_their_server_alone() {
    let peers = Peers::they_serve(http::ALPN, None);
    they_serve_endlessly(peers.theirs.clone());
    within(async {
        let client = we_connect(&peers).await;
        for _ in 0..3 {
            let request = client.request("GET", "localhost", "/", &[], None);
            let mut stream = request.await.unwrap();
            stream.finish().await.unwrap();
            assert_eq!(stream.recv_response().await.unwrap().status, 200);
            assert!(!stream.recv_data().await.unwrap().unwrap().is_empty());
        }
    })
    .await;
}

/// Answers every request with a body that ends only when the client stops it.
fn they_serve_endlessly(server: quinn::Endpoint) {
    tokio::spawn(async move {
        let connection = server.accept().await.unwrap().await.unwrap();
        let connection = h3_quinn::Connection::new(connection);
        let mut server = h3::server::Connection::<_, Bytes>::new(connection).await.unwrap();
        while let Ok(Some(resolver)) = server.accept().await {
            tokio::spawn(async move {
                let (_, mut stream) = resolver.resolve_request().await.unwrap();
                stream.send_response(Response::new(())).await.unwrap();
                while stream.send_data(Bytes::from(vec![0; 10_000])).await.is_ok() {}
            });
        }
    });
}

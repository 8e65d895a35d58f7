//! The client and the server of the h3 crate over Sutura, with each other and with `sutura::http`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes};
use http::{HeaderMap, HeaderValue, Request, Response};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer};
use sutura::policy::ArrivalOrder;
use sutura::{ClientConfig, Connection, Endpoint, ServerConfig, TransportConfig, http as ours};

/// When a test counts as hanging. Nothing takes this long on any machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// The client's and the server's end of a connection, and their endpoints.
async fn connected() -> (Connection, Connection, [Endpoint; 2]) {
    // HTTP/3 works whatever the default order of delivery is.
    let delivery = Arc::new(ArrivalOrder);
    let transport = TransportConfig::default().with_delivery(delivery);
    let signed = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    let key = PrivatePkcs8KeyDer::from(signed.signing_key.serialize_der());
    let certificate = CertificateDer::from(signed.cert);
    let chain = vec![certificate.clone()];
    let config = ServerConfig::with_single_cert(chain, key.into(), &[ours::ALPN]).unwrap();
    let config = config.transport(transport.clone());
    let server = Endpoint::server(config, ([127, 0, 0, 1], 0).into()).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate).unwrap();
    let config = ClientConfig::with_root_certificates(roots, &[ours::ALPN]).unwrap();
    let mut client = Endpoint::client(([127, 0, 0, 1], 0).into()).unwrap();
    client.set_default_client_config(config.transport(transport));
    let address = server.local_addr().unwrap();
    let accept = async { server.accept().await.unwrap().await.unwrap() };
    let connect = async { client.connect(address, "localhost").unwrap().await.unwrap() };
    let (accepted, connected) = tokio::join!(accept, connect);
    (connected, accepted, [server, client])
}

fn body() -> Vec<u8> {
    (0..300_000u32).map(|i| (i.wrapping_mul(0x9e37_79b9) >> 24) as u8).collect()
}

/// Echoes one request with the server of h3, until the client is gone.
async fn they_serve(connection: Connection) {
    let connection = sutura_h3_traits::Connection::new(connection);
    let mut server = h3::server::Connection::<_, Bytes>::new(connection).await.unwrap();
    while let Ok(Some(resolver)) = server.accept().await {
        tokio::spawn(async move {
            let (request, stream) = resolver.resolve_request().await.unwrap();
            assert_eq!(request.uri().path(), "/echo");
            let (mut send, mut recv) = stream.split();
            send.send_response(Response::new(())).await.unwrap();
            while let Some(mut data) = recv.recv_data().await.unwrap() {
                send.send_data(data.copy_to_bytes(data.remaining())).await.unwrap();
            }
            if let Some(trailers) = recv.recv_trailers().await.unwrap() {
                send.send_trailers(trailers).await.unwrap();
            }
            send.finish().await.unwrap();
        });
    }
}

/// The same with this project's.
async fn we_serve(connection: Connection) {
    let mut server = ours::Server::new(connection, ours::Config::default());
    while let Ok(Some((request, responder))) = server.accept_http().await {
        assert_eq!(request.uri().path(), "/echo");
        tokio::spawn(responder.respond(Response::new(request.into_body())));
    }
}

/// Sends a request with body and trailers with the client of h3, and gets them back.
async fn they_ask(connection: Connection) {
    let connection = sutura_h3_traits::Connection::new(connection);
    let (mut driver, mut client) = h3::client::new(connection).await.unwrap();
    let driver = tokio::spawn(async move { poll_fn(|cx| driver.poll_close(cx)).await });
    let request = Request::post("https://localhost/echo").body(()).unwrap();
    let (mut send, mut recv) = client.send_request(request).await.unwrap().split();
    let sending = tokio::spawn(async move {
        send.send_data(Bytes::from(body())).await.unwrap();
        let mut trailers = HeaderMap::new();
        trailers.insert("x-sum", HeaderValue::from_static("1"));
        send.send_trailers(trailers).await.unwrap();
        send.finish().await.unwrap();
    });
    assert_eq!(recv.recv_response().await.unwrap().status(), 200);
    let mut received = Vec::new();
    while let Some(mut data) = recv.recv_data().await.unwrap() {
        received.extend_from_slice(&data.copy_to_bytes(data.remaining()));
    }
    assert!(received == body());
    assert_eq!(recv.recv_trailers().await.unwrap().unwrap()["x-sum"], "1");
    sending.await.unwrap();
    drop((client, recv));
    let _ = driver.await.unwrap();
}

/// The same with this project's.
async fn we_ask(connection: Connection) {
    let client = ours::Client::new(connection.clone(), ours::Config::default()).await.unwrap();
    let stream = client.request("POST", "localhost", "/echo", &[], None).await.unwrap();
    let (mut send, recv) = stream.split();
    let sending = tokio::spawn(async move {
        send.send_data(Bytes::from(body())).await.unwrap();
        let mut trailers = HeaderMap::new();
        trailers.insert("x-sum", HeaderValue::from_static("1"));
        send.send_trailers(&trailers).await.unwrap();
    });
    let mut response = recv.into_body();
    let (mut received, mut trailers) = (Vec::new(), None);
    while let Some(frame) = frame(&mut response).await {
        match frame.unwrap().into_data() {
            Ok(data) => received.extend_from_slice(&data),
            Err(frame) => trailers = frame.into_trailers().ok(),
        }
    }
    assert!(received == body());
    assert_eq!(trailers.unwrap()["x-sum"], "1");
    sending.await.unwrap();
    connection.close(ours::Code::NO_ERROR.0, b"");
}

async fn frame(body: &mut ours::Body) -> Option<Result<http_body::Frame<Bytes>, ours::Error>> {
    poll_fn(|cx| http_body::Body::poll_frame(std::pin::Pin::new(&mut *body), cx)).await
}

async fn run(serve: impl Future<Output = ()>, ask: impl Future<Output = ()>) {
    tokio::time::timeout(PATIENCE, async { tokio::join!(serve, ask) }).await.unwrap();
}

#[tokio::test]
async fn their_client_and_their_server() {
    let (client, server, _endpoints) = connected().await;
    run(they_serve(server), they_ask(client)).await;
}

#[tokio::test]
async fn their_client_and_our_server() {
    let (client, server, _endpoints) = connected().await;
    run(we_serve(server), they_ask(client)).await;
}

#[tokio::test]
async fn our_client_and_their_server() {
    let (client, server, _endpoints) = connected().await;
    run(they_serve(server), we_ask(client)).await;
}

/// The codes of resets and stops arrive.
#[tokio::test]
async fn a_request_that_is_reset_fails_with_its_code() {
    let (client, server, _endpoints) = connected().await;
    let serve = async {
        let connection = sutura_h3_traits::Connection::new(server);
        let mut server = h3::server::Connection::<_, Bytes>::new(connection).await.unwrap();
        let resolver = server.accept().await.unwrap().unwrap();
        let (_, mut stream) = resolver.resolve_request().await.unwrap();
        stream.stop_stream(h3::error::Code::H3_REQUEST_REJECTED);
        // Until the client is gone.
        let _ = server.accept().await;
    };
    let ask = async {
        let ours_end = ours::Client::new(client.clone(), ours::Config::default()).await.unwrap();
        let mut stream = ours_end.request("GET", "localhost", "/", &[], None).await.unwrap();
        stream.finish().await.unwrap();
        let error = stream.recv_response().await.unwrap_err();
        assert_eq!(error, ours::Error::Reset(ours::Code::REQUEST_REJECTED));
        client.close(ours::Code::NO_ERROR.0, b"");
    };
    run(serve, ask).await;
}

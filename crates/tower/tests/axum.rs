//! A Sutura client gets pages from an axum router.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::time::Duration;

use axum::Router;
use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use rustls::pki_types::PrivatePkcs8KeyDer;
use sutura::http::{self as h3, Client, Priority};
use sutura::{ClientConfig, Endpoint, ServerConfig};
use tokio::sync::mpsc;

/// When a test counts as hanging. Nothing takes this long on any machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// Serves `router`; returns a client of it and its endpoint, which must live as long.
async fn client(router: Router) -> (Client, Endpoint) {
    let signed = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    let key = PrivatePkcs8KeyDer::from(signed.signing_key.serialize_der());
    let certificate = rustls::pki_types::CertificateDer::from(signed.cert);
    let chain = vec![certificate.clone()];
    let config = ServerConfig::with_single_cert(chain, key.into(), &[h3::ALPN]).unwrap();
    let server = Endpoint::server(config, ([127, 0, 0, 1], 0).into()).unwrap();
    let address = server.local_addr().unwrap();
    tokio::spawn(async move {
        sutura_tower::serve(&server, h3::Config::default(), router).await;
    });
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate).unwrap();
    let config = ClientConfig::with_root_certificates(roots, &[h3::ALPN]).unwrap();
    let mut endpoint = Endpoint::client(([127, 0, 0, 1], 0).into()).unwrap();
    endpoint.set_default_client_config(config);
    let connection = endpoint.connect(address, "localhost").unwrap().await.unwrap();
    (Client::new(connection, h3::Config::default()).await.unwrap(), endpoint)
}

/// Sends a request without body and collects the response.
async fn fetch(client: &Client, request: http::request::Builder) -> (http::response::Parts, Bytes) {
    let request = request.body(http_body_util::Empty::<Bytes>::new()).unwrap();
    let response = tokio::time::timeout(PATIENCE, client.send(request)).await.unwrap().unwrap();
    let (parts, body) = response.into_parts();
    (parts, body.collect().await.unwrap().to_bytes())
}

fn get_request(path: &str) -> http::request::Builder {
    Request::get(format!("https://localhost{path}"))
}

#[tokio::test]
async fn pages_of_a_router() {
    let router = Router::new()
        .route("/hello/{name}", get(|Path(name): Path<String>| async move { name }))
        .route("/large", get(|| async { vec![7u8; 500_000] }))
        .route("/none", get(|| async { StatusCode::NO_CONTENT }));
    let (client, _endpoint) = client(router).await;
    let (head, body) = fetch(&client, get_request("/hello/world")).await;
    assert_eq!((head.status, &body[..]), (StatusCode::OK, &b"world"[..]));
    assert_eq!(head.version, http::Version::HTTP_3);
    assert_eq!(head.headers["content-length"], "5");
    let (head, body) = fetch(&client, get_request("/large")).await;
    assert_eq!((head.status, body.len()), (StatusCode::OK, 500_000));
    assert!(body.iter().all(|byte| *byte == 7));
    assert_eq!(fetch(&client, get_request("/none")).await.0.status, StatusCode::NO_CONTENT);
    assert_eq!(fetch(&client, get_request("/nowhere")).await.0.status, StatusCode::NOT_FOUND);
    let head_request = Request::head("https://localhost/large");
    let (head, body) = fetch(&client, head_request).await;
    assert_eq!((&head.headers["content-length"], body.len()), (&HeaderValue::from(500_000), 0));
}

#[tokio::test]
async fn bodies_and_trailers_go_both_ways() {
    async fn echo(request: axum::extract::Request) -> Response {
        assert_eq!(request.uri().authority().unwrap(), "localhost");
        axum::body::Body::new(request.into_body()).into_response()
    }
    let (client, _endpoint) = client(Router::new().route("/echo", post(echo))).await;
    let (sender, receiver) = mpsc::channel::<http_body::Frame<Bytes>>(1);
    let sending = tokio::spawn(async move {
        for part in 0..20u8 {
            let data = Bytes::from(vec![part; 10_000]);
            sender.send(http_body::Frame::data(data)).await.unwrap();
        }
        let mut trailers = HeaderMap::new();
        trailers.insert("x-sum", HeaderValue::from_static("20"));
        sender.send(http_body::Frame::trailers(trailers)).await.unwrap();
    });
    let request = Request::post("https://localhost/echo").body(Streamed(receiver)).unwrap();
    let response = tokio::time::timeout(PATIENCE, client.send(request)).await.unwrap().unwrap();
    let collected = response.into_body().collect().await.unwrap();
    assert_eq!(collected.trailers().unwrap()["x-sum"], "20");
    assert_eq!(collected.to_bytes().len(), 200_000);
    sending.await.unwrap();
    // A body of known length.
    let request = Request::post("https://localhost/echo")
        .body(Full::new(Bytes::from_static(b"hello")))
        .unwrap();
    let response = client.send(request).await.unwrap();
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "hello");
}

/// A body whose frames come through a channel.
struct Streamed(mpsc::Receiver<http_body::Frame<Bytes>>);

impl http_body::Body for Streamed {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Self::Error>>> {
        self.0.poll_recv(cx).map(|frame| frame.map(Ok))
    }
}

/// The `priority` field of a request reaches the service and the stream of its response; the response's own
/// field overrides it.
#[tokio::test]
async fn priorities_are_heeded() {
    let router = Router::new().route(
        "/",
        get(|axum::Extension(priority): axum::Extension<Priority>| async move {
            ([("priority", "u=6")], priority.to_string())
        }),
    );
    let (client, _endpoint) = client(router).await;
    let (head, body) = fetch(&client, get_request("/").header("priority", "u=1, i")).await;
    let asked: Priority = "u=1, i".parse().unwrap();
    assert_eq!(std::str::from_utf8(&body).unwrap().parse(), Ok(asked));
    assert_eq!(head.headers["priority"], "u=6");
    let priority: Priority = "u=2".parse().unwrap();
    let (_, body) = fetch(&client, get_request("/").extension(priority.clone())).await;
    assert_eq!(std::str::from_utf8(&body).unwrap().parse(), Ok(priority));
}

/// A service whose client loses interest is dropped.
#[tokio::test]
async fn what_nobody_wants_is_dropped() {
    struct Dropped(mpsc::UnboundedSender<&'static str>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            let _ = self.0.send("dropped");
        }
    }
    let (sender, mut receiver) = mpsc::unbounded_channel();
    let router = Router::new().route(
        "/forever",
        get(move || {
            let guard = Dropped(sender.clone());
            let _ = sender.send("called");
            async move {
                std::future::pending::<()>().await;
                drop(guard);
            }
        }),
    );
    let (client, _endpoint) = client(router).await;
    let request = get_request("/forever").body(http_body_util::Empty::<Bytes>::new()).unwrap();
    let asking = {
        let client = client.clone();
        tokio::spawn(async move { client.send(request).await.map(drop) })
    };
    assert_eq!(receiver.recv().await, Some("called"));
    asking.abort();
    let dropped = tokio::time::timeout(PATIENCE, receiver.recv()).await.unwrap();
    assert_eq!(dropped, Some("dropped"));
}

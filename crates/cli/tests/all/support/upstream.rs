//! A small HTTP/1.1 server that tells what it was asked.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use base64::Engine as _;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::TcpListener;

/// The server, until it is dropped.
#[derive(Debug)]
pub struct Upstream {
    pub address: SocketAddr,
    state: Arc<State>,
    task: tokio::task::JoinHandle<()>,
}

#[derive(Debug)]
struct State {
    name: &'static str,
    healthy: AtomicBool,
    asked: AtomicUsize,
}

impl Upstream {
    /// Starts a server that tells its name.
    pub async fn start(name: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = State { name, healthy: AtomicBool::new(true), asked: AtomicUsize::new(0) };
        let state = Arc::new(state);
        let serving = state.clone();
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let state = serving.clone();
                let service = service_fn(move |request| answer(request, state.clone()));
                let connection = http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service)
                    .with_upgrades();
                tokio::spawn(connection);
            }
        });
        Self { address, state, task }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Whether it answers health checks with success from now on.
    pub fn set_healthy(&self, healthy: bool) {
        self.state.healthy.store(healthy, SeqCst);
    }

    /// How many requests it had, health checks left out.
    pub fn asked(&self) -> usize {
        self.state.asked.load(SeqCst)
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(
    mut request: Request<Incoming>,
    state: Arc<State>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path().to_owned();
    if path == "/health" {
        let status = if state.healthy.load(SeqCst) { 200 } else { 503 };
        return Ok(Response::builder().status(status).body(Full::default()).unwrap());
    }
    state.asked.fetch_add(1, SeqCst);
    if path == "/upgrade" || path == "/websocket" {
        // The proof of RFC 6455 section 4.2.2.
        let proof = request.headers().get("sec-websocket-key").map(|key| {
            let text = [key.as_bytes(), b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"].concat();
            let sum = ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, &text);
            base64::engine::general_purpose::STANDARD.encode(sum)
        });
        let upgrade = hyper::upgrade::on(&mut request);
        tokio::spawn(async move {
            let (mut read, mut write) = tokio::io::split(TokioIo::new(upgrade.await.unwrap()));
            // Says back what it hears.
            let _ = tokio::io::copy(&mut read, &mut write).await;
        });
        let protocol = if proof.is_some() { "websocket" } else { "echo" };
        let response = Response::builder().status(101);
        let mut response = response.header("connection", "upgrade").header("upgrade", protocol);
        if let Some(proof) = proof {
            response = response.header("sec-websocket-accept", proof);
        }
        return Ok(response.body(Full::default()).unwrap());
    }
    if path == "/big" {
        return Ok(Response::new(super::noise(3_000_000).into()));
    }
    let (head, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let fields: serde_json::Map<_, _> = head
        .headers
        .iter()
        .map(|(name, value)| (name.to_string(), value.to_str().unwrap().into()))
        .collect();
    let told = json!({
        "name": state.name,
        "method": head.method.as_str(),
        "target": head.uri.to_string(),
        "fields": fields,
        "bytes": body.len(),
    });
    let response = Response::builder().status(203).header("x-own", "1").header("keep-alive", "x");
    Ok(response.body(told.to_string().into()).unwrap())
}

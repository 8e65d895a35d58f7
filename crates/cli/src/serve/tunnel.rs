//! Clients that go on to speak another protocol with a server behind this one, such as WebSocket: by Upgrade over
//! HTTP/1.1 (RFC 9110 section 7.8), by extended CONNECT over HTTP/2 and 3 (RFC 8441, RFC 9220). The server is asked
//! over HTTP/1.1 in any case.

use std::io;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::BytesMut;
use futures_util::stream;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{
    CONNECTION, HeaderMap, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    UPGRADE,
};
use hyper::http::request::Parts;
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper::{Method, Response, StatusCode, Version};
use hyper_util::rt::TokioIo;
use ring::rand::{SecureRandom, SystemRandom};
use sutura::http::Protocol;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::sync::OwnedSemaphorePermit;

use super::message::{Content, Reply, empty, status_reply};

/// Most bytes that are read from a server at a time.
const READ_SIZE: usize = 16 * 1024;
/// What a server makes of a key to show that it speaks WebSocket (RFC 6455 section 1.3).
const KEY_SUFFIX: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// A client that asks to speak another protocol, and how it goes on if the server agrees.
#[derive(Debug)]
pub enum Tunnel {
    /// Over HTTP/1.1, by Upgrade.
    Upgrade(OnUpgrade),
    /// Over HTTP/2, by extended CONNECT for WebSocket. The server's answer must have this proof.
    Stream(OnUpgrade, HeaderValue),
    /// Over HTTP/3 likewise. The client's part comes as the body of its request.
    Bodies(Content, HeaderValue),
}

impl Tunnel {
    /// What a request asks for; `None` if it does not ask to speak another protocol. Turns an extended CONNECT
    /// into the request that a server of HTTP/1.1 knows.
    pub fn take(head: &mut Parts, body: &mut Content) -> Option<Self> {
        if head.method == Method::CONNECT {
            return Self::take_connect(head, body);
        }
        let asks = head.version == Version::HTTP_11
            && head.method == Method::GET
            && head.headers.contains_key(UPGRADE)
            && names_in(&head.headers).any(|name| name == UPGRADE);
        if asks { head.extensions.remove::<OnUpgrade>().map(Self::Upgrade) } else { None }
    }

    fn take_connect(head: &mut Parts, body: &mut Content) -> Option<Self> {
        let over_2 = head.extensions.remove::<hyper::ext::Protocol>();
        let over_3 = head.extensions.remove::<Protocol>();
        let over_2 = over_2.as_ref().map(hyper::ext::Protocol::as_str);
        if over_2.or(over_3.as_ref().map(|it| it.0.as_str())) != Some("websocket") {
            return None;
        }
        let mut random = [0; 16];
        SystemRandom::new().fill(&mut random).ok()?;
        let key = STANDARD.encode(random);
        let proof = HeaderValue::try_from(proof(&key)).ok()?;
        let tunnel = match head.extensions.remove::<OnUpgrade>() {
            Some(upgrade) => Self::Stream(upgrade, proof),
            None => Self::Bodies(std::mem::replace(body, empty()), proof),
        };
        head.method = Method::GET;
        head.headers.insert(SEC_WEBSOCKET_KEY, HeaderValue::try_from(key).ok()?);
        head.headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        head.headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        Some(tunnel)
    }

    /// The answer to the client after the server has agreed by `response`, without the fields of its connection.
    /// From then on both ends hear each other, until `permit` is dropped with the last of it.
    pub async fn go_on(
        self,
        mut response: Response<Incoming>,
        protocol: Option<HeaderValue>,
        permit: OwnedSemaphorePermit,
    ) -> Reply {
        let server = hyper::upgrade::on(&mut response);
        let (mut head, _) = response.into_parts();
        match self {
            Self::Upgrade(client) => {
                tokio::spawn(join(client, server, permit));
                head.headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
                protocol.map(|protocol| head.headers.insert(UPGRADE, protocol));
                Response::from_parts(head, empty())
            }
            Self::Stream(client, proof) => {
                if !agrees(&mut head.headers, &proof) {
                    return status_reply(StatusCode::BAD_GATEWAY);
                }
                tokio::spawn(join(client, server, permit));
                head.status = StatusCode::OK;
                Response::from_parts(head, empty())
            }
            Self::Bodies(client, proof) => {
                let Ok(server) = server.await else { return status_reply(StatusCode::BAD_GATEWAY) };
                if !agrees(&mut head.headers, &proof) {
                    return status_reply(StatusCode::BAD_GATEWAY);
                }
                let (from, to) = tokio::io::split(TokioIo::new(server));
                let permit = Arc::new(permit);
                tokio::spawn(hand_on(client, to, permit.clone()));
                head.status = StatusCode::OK;
                Response::from_parts(head, content_of(from, permit))
            }
        }
    }
}

/// The names in Connection fields.
pub fn names_in(headers: &HeaderMap) -> impl Iterator<Item = HeaderName> {
    let values = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).filter_map(|name| name.trim().parse().ok())
}

/// The proof that a server speaks WebSocket, which it makes of the request's key (RFC 6455 section 4.2.2).
fn proof(key: &str) -> String {
    let text = format!("{key}{KEY_SUFFIX}");
    let sum = ring::digest::digest(&ring::digest::SHA1_FOR_LEGACY_USE_ONLY, text.as_bytes());
    STANDARD.encode(sum)
}

/// Whether the server has shown the proof, which is not for the client.
fn agrees(headers: &mut HeaderMap, proof: &HeaderValue) -> bool {
    headers.remove(SEC_WEBSOCKET_ACCEPT).as_ref() == Some(proof)
}

/// Lets both ends hear each other until both have ended, or either fails.
async fn join(client: OnUpgrade, server: OnUpgrade, permit: OwnedSemaphorePermit) {
    if let (Ok(client), Ok(server)) = tokio::join!(client, server) {
        let (mut client, mut server) = (TokioIo::new(client), TokioIo::new(server));
        // Whichever end fails or leaves, both learn of it.
        let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
    }
    drop(permit);
}

/// Hands the client's part on to the server.
async fn hand_on(
    mut client: Content,
    mut server: WriteHalf<TokioIo<Upgraded>>,
    permit: Arc<OwnedSemaphorePermit>,
) {
    while let Some(Ok(frame)) = client.frame().await {
        let Ok(data) = frame.into_data() else { continue };
        if server.write_all(&data).await.is_err() {
            break;
        }
    }
    let _ = server.shutdown().await;
    drop(permit);
}

/// The server's part as the body of a response.
fn content_of(server: ReadHalf<TokioIo<Upgraded>>, permit: Arc<OwnedSemaphorePermit>) -> Content {
    let pieces = stream::unfold((server, permit), async |(mut server, permit)| {
        let mut piece = BytesMut::with_capacity(READ_SIZE);
        let read: io::Result<usize> = server.read_buf(&mut piece).await;
        match read {
            Ok(0) => None,
            Ok(_) => Some((Ok(Frame::data(piece.freeze())), (server, permit))),
            Err(error) => Some((Err(error), (server, permit))),
        }
    });
    BodyExt::map_err(StreamBody::new(pieces), Into::into).boxed_unsync()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::Request;

    #[test]
    fn the_proof_is_that_of_the_rfc() {
        assert_eq!(proof("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        let mut headers = HeaderMap::new();
        let proof = HeaderValue::from_static("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert!(!agrees(&mut headers, &proof));
        headers.insert(SEC_WEBSOCKET_ACCEPT, proof.clone());
        assert!(agrees(&mut headers, &proof));
        assert!(headers.is_empty());
    }

    #[test]
    fn an_extended_connect_becomes_an_upgrade() {
        let connect = |protocol: &str| {
            let request = Request::connect("https://a/chat").extension(Protocol(protocol.into()));
            request.body(()).unwrap().into_parts().0
        };
        let mut head = connect("websocket");
        let tunnel = Tunnel::take(&mut head, &mut empty());
        assert!(matches!(tunnel, Some(Tunnel::Bodies(..))));
        assert_eq!((head.method, head.uri.path()), (Method::GET, "/chat"));
        assert_eq!(head.headers[UPGRADE], "websocket");
        assert_eq!(head.headers[SEC_WEBSOCKET_KEY].len(), 24);
        let mut head = connect("connect-udp");
        assert!(Tunnel::take(&mut head, &mut empty()).is_none());
        assert_eq!(head.method, Method::CONNECT);
    }
}

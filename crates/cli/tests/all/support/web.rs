//! A small client of all HTTP versions.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::{http1, http2};
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::Listening;

/// A version of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Over {
    H1,
    H2,
    H3,
}

impl Over {
    pub const ALL: [Self; 3] = [Self::H1, Self::H2, Self::H3];
}

/// A connection.
pub enum Client {
    H1(http1::SendRequest<Full<Bytes>>),
    H2(http2::SendRequest<Full<Bytes>>),
    H3(sutura::http::Client),
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("client")
    }
}

impl Client {
    /// Connects to a server, whose certificate is that in its file now.
    pub async fn connect(server: &Listening, over: Over) -> Self {
        match over {
            Over::H1 => {
                let stream = tls_to(server, b"http/1.1").await;
                let (client, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
                tokio::spawn(connection.with_upgrades());
                Self::H1(client)
            }
            Over::H2 => {
                let stream = tls_to(server, b"h2").await;
                let executor = TokioExecutor::new();
                let (client, connection) =
                    http2::handshake(executor, TokioIo::new(stream)).await.unwrap();
                tokio::spawn(connection);
                Self::H2(client)
            }
            Over::H3 => {
                let address = server.address.parse().unwrap();
                let protocols = &[sutura::http::ALPN];
                let config = sutura::ClientConfig::with_root_certificates(roots(server), protocols);
                let endpoint = sutura::Endpoint::client(([127, 0, 0, 1], 0).into()).unwrap();
                let connecting = endpoint.connect_with(config.unwrap(), address, "localhost");
                let connection = connecting.unwrap().await.unwrap();
                Self::H3(sutura::http::Client::new(connection, Default::default()).await.unwrap())
            }
        }
    }

    /// The whole response to a request with a path as its target.
    pub async fn send(&mut self, request: Request<Bytes>) -> Response<Bytes> {
        match self {
            Self::H1(client) => client.ready().await.unwrap(),
            Self::H2(client) => client.ready().await.unwrap(),
            Self::H3(_) => {}
        }
        self.begin(request).await.await
    }

    /// Says for which host a request is.
    fn prepare(&self, request: &mut Request<Bytes>) {
        let target = request.uri().path_and_query().unwrap().to_string();
        if matches!(self, Self::H1(_)) {
            request.headers_mut().insert("host", "localhost".parse().unwrap());
        } else {
            *request.uri_mut() = format!("https://localhost{target}").parse().unwrap();
        }
    }

    /// Sends a request and waits for the head of its response; the rest comes with the future.
    pub async fn begin(
        &mut self,
        mut request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Response<Bytes>> + '_>> {
        self.prepare(&mut request);
        let request = request.map(Full::new);
        match self {
            Self::H1(client) => {
                let response = client.send_request(request).await.unwrap();
                Box::pin(whole(response))
            }
            Self::H2(client) => {
                let response = client.send_request(request).await.unwrap();
                Box::pin(whole(response))
            }
            Self::H3(client) => Box::pin(whole(client.send(request).await.unwrap())),
        }
    }

    /// The whole response to a GET request.
    pub async fn get(&mut self, target: &str) -> Response<Bytes> {
        self.send(Request::get(target).body(Bytes::new()).unwrap()).await
    }
}

/// The certificate in a server's file, as it is now.
fn roots(server: &Listening) -> rustls::RootCertStore {
    let path = server.hello["certificate"].as_str().unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(path).unwrap()).unwrap();
    roots
}

/// A TLS stream to a server, for this protocol (RFC 7301).
pub async fn tls_to(server: &Listening, protocol: &[u8]) -> TlsStream<TcpStream> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots(server))
        .with_no_client_auth();
    config.alpn_protocols = vec![protocol.to_vec()];
    let stream = TcpStream::connect(&server.address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(protocol));
    stream
}

async fn whole<B>(response: Response<B>) -> Response<Bytes>
where
    B: hyper::body::Body<Data = Bytes>,
    B::Error: fmt::Debug,
{
    let (head, body) = response.into_parts();
    Response::from_parts(head, BodyExt::collect(body).await.unwrap().to_bytes())
}

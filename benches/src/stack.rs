//! QUIC implementations behind one trait, and the protocol that the benches speak over them: an
//! 8-byte big-endian number as the request on a new bidirectional stream, and as many zero bytes as
//! the response (draft-banks-quic-performance).

use crate::tls::{self, Identity};
use crate::{Error, zeros};
use ::sutura::{Algorithm, Protection};
use bytes::Bytes;
use rustls::crypto::CryptoProvider;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use sutura_proto::policy::RedundancyFactory;
use tokio::spawn;

/// Bytes that a peer may send on a stream before the application reads any.
const STREAM_WINDOW: u32 = 4 << 20;
/// Bytes that a peer may send on all streams before the application reads any.
const CONNECTION_WINDOW: u32 = 8 << 20;
/// The buffers that Sutura asks the kernel for.
const SOCKET_RECEIVE_BUFFER: usize = 4 << 20;
const SOCKET_SEND_BUFFER: usize = 1 << 20;

/// Items that Sutura and quinn offer under the same names.
macro_rules! same_names {
    () => {
        type Endpoint = Endpoint;
        type Incoming = Incoming;
        type Connection = Connection;
        type Send = SendStream;
        type Recv = RecvStream;

        async fn connect(endpoint: &Endpoint, server: SocketAddr) -> Result<Connection, Error> {
            Ok(endpoint.connect(server, "localhost")?.await?)
        }

        async fn incoming(endpoint: &Endpoint) -> Option<Incoming> {
            endpoint.accept().await
        }

        async fn accept(incoming: Incoming) -> Result<Connection, Error> {
            Ok(incoming.await?)
        }

        async fn open(connection: &Connection) -> Result<(SendStream, RecvStream), Error> {
            Ok(connection.open_bi().await?)
        }

        async fn accept_stream(connection: &Connection) -> Result<(SendStream, RecvStream), Error> {
            Ok(connection.accept_bi().await?)
        }

        async fn write(stream: &mut SendStream, data: Bytes) -> Result<(), Error> {
            Ok(stream.write_chunk(data).await?)
        }

        fn finish(stream: &mut SendStream) -> Result<(), Error> {
            Ok(stream.finish()?)
        }

        async fn read(stream: &mut RecvStream) -> Result<Option<Bytes>, Error> {
            Ok(stream.read_chunk(usize::MAX, true).await?.map(|chunk| chunk.bytes))
        }
    };
}

#[cfg(feature = "quiche")]
mod quiche;
mod quinn;
#[cfg(feature = "s2n-quic")]
mod s2n_quic;
mod sutura;

#[cfg(feature = "quiche")]
pub use self::quiche::Quiche;
pub use self::quinn::Quinn;
#[cfg(feature = "s2n-quic")]
pub use self::s2n_quic::S2nQuic;
pub use self::sutura::Sutura;
#[cfg(feature = "aws-lc-rs")]
pub use self::sutura::SuturaAwsLc;

/// The name of an implementation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Name {
    Sutura,
    /// With the feature `aws-lc-rs`.
    SuturaAwsLc,
    Quinn,
    /// With the feature of this name.
    Quiche,
    /// With the feature of this name.
    #[value(name = "s2n-quic")]
    #[serde(rename = "s2n-quic")]
    S2nQuic,
    /// No implementation, but the least that any of them has to do.
    #[value(skip)]
    Floor,
}

impl Name {
    /// The implementations that are built in.
    pub fn built_in() -> Vec<Self> {
        let all = [Self::Sutura, Self::SuturaAwsLc, Self::Quinn, Self::Quiche, Self::S2nQuic];
        all.into_iter().filter(|name| name.is_built_in()).collect()
    }

    /// Whether a build has it, which depends on the features of this crate.
    pub fn is_built_in(self) -> bool {
        match self {
            Self::Sutura | Self::Quinn | Self::Floor => true,
            Self::SuturaAwsLc => cfg!(feature = "aws-lc-rs"),
            Self::Quiche => cfg!(feature = "quiche"),
            Self::S2nQuic => cfg!(feature = "s2n-quic"),
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Sutura => "sutura",
            Self::SuturaAwsLc => "sutura-aws-lc",
            Self::Quinn => "quinn",
            Self::Quiche => "quiche",
            Self::S2nQuic => "s2n-quic",
            Self::Floor => "floor",
        })
    }
}

/// Where the settings of an implementation come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Setting {
    /// The same for all implementations, as [`Settings`] says.
    Tuned,
    /// Each implementation's own, except for the certificate.
    Default,
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Tuned => "tuned",
            Self::Default => "default",
        })
    }
}

/// The settings of both ends.
#[derive(Debug, Clone, Copy)]
pub struct Settings<'a> {
    pub identity: &'a Identity,
    /// With [`Setting::Default`] nothing else than the identity counts.
    pub setting: Setting,
    /// The provider of ciphers and groups.
    pub provider: fn() -> Arc<CryptoProvider>,
    /// Bytes of UDP payload per datagram; there is no path MTU discovery.
    pub payload: u16,
    pub congestion: Algorithm,
    /// The protection of Sutura's streams, unless they ask for another.
    pub redundancy: Option<&'a Arc<dyn RedundancyFactory>>,
    /// Bytes that wait to be sent or acknowledged: of a stream, as Sutura limits them, and of a connection,
    /// as quinn limits them.
    pub stream_send_buffer: u32,
    pub connection_send_buffer: u32,
    pub idle_timeout: Duration,
    /// The directory for Sutura's qlog files, and their title.
    pub qlog: Option<(&'a Path, &'a str)>,
}

impl Settings<'_> {
    /// The provider of ciphers and groups of a stack with rustls.
    fn provider(&self) -> Arc<CryptoProvider> {
        match self.setting {
            Setting::Tuned => (self.provider)(),
            Setting::Default => tls::defaults(),
        }
    }

    /// AWS-LC in place of ring.
    #[cfg(feature = "aws-lc-rs")]
    fn provider_of_aws_lc(&self) -> Arc<CryptoProvider> {
        match self.setting {
            Setting::Tuned => tls::aes_128_gcm_of_aws_lc(),
            Setting::Default => tls::defaults_of_aws_lc(),
        }
    }
}

/// An implementation of QUIC. Its tasks run in the runtime that polls it.
pub trait Stack: 'static {
    type Endpoint: Send + Sync + 'static;
    type Incoming: Send + 'static;
    type Connection: Clone + Send + Sync + 'static;
    type Send: Send + 'static;
    type Recv: Send + 'static;

    /// A server on a port of its own choice.
    fn server(settings: &Settings<'_>) -> Result<(Self::Endpoint, SocketAddr), Error>;

    fn client(settings: &Settings<'_>) -> Result<Self::Endpoint, Error>;

    fn connect(
        endpoint: &Self::Endpoint,
        server: SocketAddr,
    ) -> impl Future<Output = Result<Self::Connection, Error>> + Send;

    /// The next client; `None` once the endpoint is closed.
    fn incoming(endpoint: &Self::Endpoint) -> impl Future<Output = Option<Self::Incoming>> + Send;

    /// Completes the handshake with a client.
    fn accept(
        incoming: Self::Incoming,
    ) -> impl Future<Output = Result<Self::Connection, Error>> + Send;

    /// Opens a bidirectional stream.
    fn open(
        connection: &Self::Connection,
    ) -> impl Future<Output = Result<(Self::Send, Self::Recv), Error>> + Send;

    /// Waits for the peer to open a bidirectional stream.
    fn accept_stream(
        connection: &Self::Connection,
    ) -> impl Future<Output = Result<(Self::Send, Self::Recv), Error>> + Send;

    /// Repair symbols that this end has sent, and that it has received.
    fn repairs(connection: &Self::Connection) -> (u64, u64);

    /// Protects the data that is written from now on.
    fn protect(stream: &Self::Send, protection: Protection) -> Result<(), Error>;

    fn write(
        stream: &mut Self::Send,
        data: Bytes,
    ) -> impl Future<Output = Result<(), Error>> + Send;

    fn finish(stream: &mut Self::Send) -> Result<(), Error>;

    /// The next bytes in order; `None` at the end.
    fn read(stream: &mut Self::Recv) -> impl Future<Output = Result<Option<Bytes>, Error>> + Send;
}

/// Sends a request on a new stream.
pub async fn request<S: Stack>(connection: &S::Connection, number: u64) -> Result<S::Recv, Error> {
    let (mut send, recv) = S::open(connection).await?;
    S::write(&mut send, Bytes::copy_from_slice(&number.to_be_bytes())).await?;
    S::finish(&mut send)?;
    Ok(recv)
}

/// Reads a request.
pub async fn read_request<S: Stack>(stream: &mut S::Recv) -> Result<u64, Error> {
    let mut request = Vec::new();
    while let Some(data) = S::read(stream).await? {
        request.extend_from_slice(&data);
    }
    let request: [u8; 8] = request.try_into().map_err(|_| "a request of another length")?;
    Ok(u64::from_be_bytes(request))
}

/// Asks for `bytes` bytes and receives all of them.
pub async fn download<S: Stack>(connection: &S::Connection, bytes: u64) -> Result<(), Error> {
    let mut recv = request::<S>(connection, bytes).await?;
    let mut received = 0;
    while let Some(data) = S::read(&mut recv).await? {
        received += data.len() as u64;
    }
    if received == bytes { Ok(()) } else { Err(format!("{received} bytes of {bytes}").into()) }
}

/// Reads a request and sends the response.
pub async fn respond<S: Stack>(
    (mut send, mut recv): (S::Send, S::Recv),
    protection: Option<Protection>,
) -> Result<(), Error> {
    let bytes = read_request::<S>(&mut recv).await?;
    if let Some(protection) = protection {
        S::protect(&send, protection)?;
    }
    for chunk in zeros(bytes) {
        S::write(&mut send, chunk).await?;
    }
    S::finish(&mut send)
}

/// The newest connection of a server, if there is one.
pub type Newest<S> = Arc<Mutex<Option<<S as Stack>::Connection>>>;

/// The newest connection of a server.
pub fn newest<S: Stack>(newest: &Newest<S>) -> MutexGuard<'_, Option<S::Connection>> {
    newest.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answers the requests of all clients.
pub async fn serve<S: Stack>(
    endpoint: S::Endpoint,
    protection: Option<Protection>,
    newest: Newest<S>,
) {
    while let Some(incoming) = S::incoming(&endpoint).await {
        let (protection, newest) = (protection.clone(), newest.clone());
        spawn(async move {
            let connection = S::accept(incoming).await?;
            *self::newest::<S>(&newest) = Some(connection.clone());
            while let Ok(stream) = S::accept_stream(&connection).await {
                spawn(respond::<S>(stream, protection.clone()));
            }
            Ok::<(), Error>(())
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Downloads of several sizes, after connections that end as soon as they are there.
    async fn check<S: Stack>(setting: Setting) -> Result<(), Error> {
        let identity = Identity::new()?;
        let settings = Settings {
            identity: &identity,
            setting,
            provider: tls::aes_128_gcm,
            payload: 1452,
            congestion: Algorithm::CUBIC,
            redundancy: None,
            stream_send_buffer: STREAM_WINDOW,
            connection_send_buffer: CONNECTION_WINDOW,
            idle_timeout: Duration::from_secs(30),
            qlog: None,
        };
        let (server, address) = S::server(&settings)?;
        spawn(serve::<S>(server, None, Newest::<S>::default()));
        let client = S::client(&settings)?;
        for _ in 0..50 {
            drop(S::connect(&client, address).await?);
        }
        let connection = Arc::new(S::connect(&client, address).await?);
        // More than the windows of streams and connections.
        download::<S>(&connection, 20_000_000).await?;
        // More than the peer lets us open at a time.
        let requests: Vec<_> = (0..300)
            .map(|bytes| {
                let connection = connection.clone();
                spawn(async move { download::<S>(&connection, bytes).await })
            })
            .collect();
        for request in requests {
            request.await??;
        }
        Ok(())
    }

    async fn check_all<S: Stack>() {
        for setting in [Setting::Tuned, Setting::Default] {
            check::<S>(setting).await.expect("everything arrives");
        }
    }

    #[tokio::test]
    async fn sutura_delivers() {
        check_all::<Sutura>().await;
    }

    #[cfg(feature = "aws-lc-rs")]
    #[tokio::test]
    async fn sutura_delivers_with_aws_lc() {
        check_all::<SuturaAwsLc>().await;
    }

    #[tokio::test]
    async fn quinn_delivers() {
        check_all::<Quinn>().await;
    }

    #[cfg(feature = "quiche")]
    #[tokio::test]
    async fn quiche_delivers() {
        check_all::<Quiche>().await;
    }

    #[cfg(feature = "s2n-quic")]
    #[tokio::test]
    async fn s2n_quic_delivers() {
        check_all::<S2nQuic>().await;
    }
}

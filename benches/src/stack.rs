//! QUIC implementations behind one trait, and the protocol that the benches speak over them: an
//! 8-byte big-endian number as the request on a new bidirectional stream, and as many zero bytes as
//! the response (draft-banks-quic-performance).

use crate::tls::Identity;
use crate::{Error, zeros};
use ::sutura::{Algorithm, Protection};
use bytes::Bytes;
use rustls::crypto::CryptoProvider;
use serde::{Deserialize, Serialize};
use std::cell::RefCell;
use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use sutura_proto::policy::RedundancyFactory;
use tokio::task::spawn_local;

/// Bytes that a peer may send on a stream before the application reads any.
const STREAM_WINDOW: u32 = 4 << 20;
/// Bytes that a peer may send on all streams before the application reads any.
const CONNECTION_WINDOW: u32 = 8 << 20;

/// Items that both implementations offer under the same names.
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

mod quinn;
mod sutura;

pub use self::quinn::Quinn;
pub use self::sutura::Sutura;

/// The name of an implementation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum Name {
    Sutura,
    Quinn,
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Sutura => "sutura",
            Self::Quinn => "quinn",
        })
    }
}

/// The settings of both ends.
#[derive(Debug, Clone, Copy)]
pub struct Settings<'a> {
    pub identity: &'a Identity,
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

/// An implementation of QUIC. Its tasks run in the thread that polls it.
#[expect(async_fn_in_trait, reason = "no future moves to another thread")]
pub trait Stack: 'static {
    type Endpoint: 'static;
    type Incoming: 'static;
    type Connection: Clone + 'static;
    type Send: 'static;
    type Recv: 'static;

    /// A server on a port of its own choice.
    fn server(settings: &Settings<'_>) -> Result<(Self::Endpoint, SocketAddr), Error>;

    fn client(settings: &Settings<'_>) -> Result<Self::Endpoint, Error>;

    async fn connect(
        endpoint: &Self::Endpoint,
        server: SocketAddr,
    ) -> Result<Self::Connection, Error>;

    /// The next client; `None` once the endpoint is closed.
    async fn incoming(endpoint: &Self::Endpoint) -> Option<Self::Incoming>;

    /// Completes the handshake with a client.
    async fn accept(incoming: Self::Incoming) -> Result<Self::Connection, Error>;

    /// Opens a bidirectional stream.
    async fn open(connection: &Self::Connection) -> Result<(Self::Send, Self::Recv), Error>;

    /// Waits for the peer to open a bidirectional stream.
    async fn accept_stream(
        connection: &Self::Connection,
    ) -> Result<(Self::Send, Self::Recv), Error>;

    /// Repair symbols that this end has sent, and that it has received.
    fn repairs(connection: &Self::Connection) -> (u64, u64);

    /// Protects the data that is written from now on.
    fn protect(stream: &Self::Send, protection: Protection) -> Result<(), Error>;

    async fn write(stream: &mut Self::Send, data: Bytes) -> Result<(), Error>;

    fn finish(stream: &mut Self::Send) -> Result<(), Error>;

    /// The next bytes in order; `None` at the end.
    async fn read(stream: &mut Self::Recv) -> Result<Option<Bytes>, Error>;
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
pub type Newest<S> = Rc<RefCell<Option<<S as Stack>::Connection>>>;

/// Answers the requests of all clients. Run this in a [`tokio::runtime::LocalRuntime`] or
/// a [`tokio::task::LocalSet`].
pub async fn serve<S: Stack>(
    endpoint: S::Endpoint,
    protection: Option<Protection>,
    newest: Newest<S>,
) {
    while let Some(incoming) = S::incoming(&endpoint).await {
        let (protection, newest) = (protection.clone(), newest.clone());
        spawn_local(async move {
            let connection = S::accept(incoming).await?;
            newest.replace(Some(connection.clone()));
            while let Ok(stream) = S::accept_stream(&connection).await {
                spawn_local(respond::<S>(stream, protection.clone()));
            }
            Ok::<(), Error>(())
        });
    }
}

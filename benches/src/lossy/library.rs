//! What every implementation must do here.

use crate::Error;
use crate::plan::Job;
use bytes::Bytes;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;
use sutura::Protection;
use sutura_benches::tls::Identity;

/// Bytes of UDP payload per datagram: all of them know the path and search for nothing.
pub const UDP_PAYLOAD: u16 = 1200;
/// Bytes that a peer may send on a stream before the application read any.
pub const STREAM_WINDOW: u32 = 4 << 20;
/// Bytes that a peer may send on all streams before the application read any.
pub const CONNECTION_WINDOW: u32 = 8 << 20;
/// Bytes that wait to be sent, or for their acknowledgement: more than a stream leaves behind, so
/// that the application never waits.
pub const SEND_BUFFER: u32 = 32 << 20;
/// Silence after which a connection is given up: the default of both.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// What both ends are set up with.
#[derive(Debug, Clone, Copy)]
pub struct Setup<'a> {
    pub job: &'a Job,
    pub identity: &'a Identity,
    /// Where to write qlog files.
    pub qlog: Option<&'a Path>,
}

/// An implementation of QUIC. Its tasks run in the thread that polls it.
pub trait Library: 'static {
    type Endpoint: 'static;
    type Connection: 'static;
    type Send: 'static;
    type Recv: 'static;

    /// A server on a port of its own choice.
    fn server(setup: &Setup<'_>) -> Result<(Self::Endpoint, SocketAddr), Error>;

    fn client(setup: &Setup<'_>) -> Result<Self::Endpoint, Error>;

    async fn connect(
        endpoint: &Self::Endpoint,
        server: SocketAddr,
    ) -> Result<Self::Connection, Error>;

    async fn accept(endpoint: &Self::Endpoint) -> Result<Self::Connection, Error>;

    /// Opens a bidirectional stream.
    async fn open(connection: &Self::Connection) -> Result<(Self::Send, Self::Recv), Error>;

    /// Waits for the other end to open one.
    async fn accept_stream(
        connection: &Self::Connection,
    ) -> Result<(Self::Send, Self::Recv), Error>;

    /// Protects what is written from now on.
    fn protect(stream: &Self::Send, protection: Protection) -> Result<(), Error>;

    async fn write(stream: &mut Self::Send, data: Bytes) -> Result<(), Error>;

    fn finish(stream: &mut Self::Send) -> Result<(), Error>;

    /// What is next in order; `None` at the end.
    async fn read(stream: &mut Self::Recv) -> Result<Option<Bytes>, Error>;
}

/// Reads a request: an 8-byte big-endian number.
pub async fn read_request<L: Library>(stream: &mut L::Recv) -> Result<u64, Error> {
    let mut request = Vec::new();
    while let Some(data) = L::read(stream).await? {
        request.extend_from_slice(&data);
    }
    let request: [u8; 8] = request.try_into().map_err(|_| "a request of another length")?;
    Ok(u64::from_be_bytes(request))
}

/// Sends a request on a new stream.
pub async fn request<L: Library>(
    connection: &L::Connection,
    number: u64,
) -> Result<L::Recv, Error> {
    let (mut send, recv) = L::open(connection).await?;
    L::write(&mut send, Bytes::copy_from_slice(&number.to_be_bytes())).await?;
    L::finish(&mut send)?;
    Ok(recv)
}

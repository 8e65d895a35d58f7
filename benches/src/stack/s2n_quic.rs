//! s2n-quic.

use super::{
    CONNECTION_WINDOW, SOCKET_RECEIVE_BUFFER, SOCKET_SEND_BUFFER, STREAM_WINDOW, Setting, Settings,
    Stack,
};
use crate::Error;
use crate::tls::ALPN;
use bytes::Bytes;
use s2n_quic::client::Connect;
use s2n_quic::connection::{Handle, StreamAcceptor};
use s2n_quic::provider::io::tokio::Provider as Io;
use s2n_quic::provider::limits::Limits;
use s2n_quic::provider::tls::s2n_tls as tls;
use s2n_quic::stream::{BidirectionalStream, ReceiveStream, SendStream};
use s2n_quic::{Client, Server};
use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use sutura::Protection;
use tokio::sync::Mutex;

/// s2n-quic on s2n-tls and AWS-LC, with its own congestion control.
pub struct S2nQuic;

/// Bytes of the headers of IPv4 and UDP, which s2n-quic counts with a datagram.
const HEADERS: u16 = 28;
/// The policy of s2n-tls that prefers what the other stacks are tuned to, AES-128-GCM and X25519. By itself, s2n-quic
/// prefers P-256.
const TUNED_POLICY: &str = "AWS-CRT-SDK-TLSv1.3";
/// Pieces of a stream that are taken in one call, at most.
const PIECES: usize = 64;

pub enum Endpoint {
    Server(Mutex<Server>),
    Client(Client),
}

#[derive(Clone)]
pub struct Connection {
    handle: Handle,
    streams: Arc<Mutex<StreamAcceptor>>,
}

impl Connection {
    fn new(connection: s2n_quic::Connection) -> Self {
        let (handle, streams) = connection.split();
        Self { handle, streams: Arc::new(Mutex::new(streams)) }
    }
}

/// A stream, and the pieces of it that have been taken.
pub struct Recv {
    stream: ReceiveStream,
    pieces: VecDeque<Bytes>,
    is_open: bool,
}

fn split(stream: BidirectionalStream) -> (SendStream, Recv) {
    let (stream, send) = stream.split();
    (send, Recv { stream, pieces: VecDeque::new(), is_open: true })
}

/// Sets the ciphers and groups, unless they are those that s2n-quic has by itself.
fn choose(settings: &Settings<'_>, config: &mut tls::config::Builder) -> Result<(), Error> {
    if settings.setting == Setting::Tuned {
        config.set_security_policy(&tls::security::Policy::from_version(TUNED_POLICY)?)?;
    }
    Ok(())
}

fn limits(settings: &Settings<'_>) -> Result<Limits, Error> {
    if settings.setting == Setting::Default {
        return Ok(Limits::new());
    }
    if settings.congestion.name() != "cubic" {
        return Err("not compared".into());
    }
    Ok(Limits::new()
        .with_data_window(CONNECTION_WINDOW.into())?
        .with_bidirectional_local_data_window(STREAM_WINDOW.into())?
        .with_bidirectional_remote_data_window(STREAM_WINDOW.into())?
        .with_max_send_buffer_size(settings.stream_send_buffer)?
        .with_max_idle_timeout(settings.idle_timeout)?)
}

fn io(settings: &Settings<'_>) -> Result<Io, Error> {
    let builder = Io::builder().with_receive_address((Ipv4Addr::LOCALHOST, 0).into())?;
    if settings.setting == Setting::Default {
        return Ok(builder.build()?);
    }
    let mtu = settings.payload + HEADERS;
    // In an order in which no size is above the largest or below the smallest.
    Ok(builder
        .with_max_mtu(mtu)?
        .with_initial_mtu(mtu)?
        .with_base_mtu(mtu)?
        .with_recv_buffer_size(SOCKET_RECEIVE_BUFFER)?
        .with_send_buffer_size(SOCKET_SEND_BUFFER)?
        .build()?)
}

impl Stack for S2nQuic {
    type Endpoint = Endpoint;
    type Incoming = Connection;
    type Connection = Connection;
    type Send = SendStream;
    type Recv = Recv;

    fn server(settings: &Settings<'_>) -> Result<(Endpoint, SocketAddr), Error> {
        let (certificate, key) = settings.identity.to_pem();
        let mut tls = tls::Server::builder();
        choose(settings, tls.config_mut())?;
        let tls = tls.with_certificate(certificate, key)?.with_application_protocols([ALPN])?;
        let server = Server::builder()
            .with_tls(tls.build()?)?
            .with_limits(limits(settings)?)?
            .with_io(io(settings)?)?
            .start()?;
        let address = server.local_addr()?;
        Ok((Endpoint::Server(Mutex::new(server)), address))
    }

    fn client(settings: &Settings<'_>) -> Result<Endpoint, Error> {
        let (certificate, _) = settings.identity.to_pem();
        let mut tls = tls::Client::builder();
        choose(settings, tls.config_mut())?;
        let tls = tls
            .with_empty_trust_store()?
            .with_certificate(certificate)?
            .with_application_protocols([ALPN])?;
        let client = Client::builder()
            .with_tls(tls.build()?)?
            .with_limits(limits(settings)?)?
            .with_io(io(settings)?)?
            .start()?;
        Ok(Endpoint::Client(client))
    }

    async fn connect(endpoint: &Endpoint, server: SocketAddr) -> Result<Connection, Error> {
        let Endpoint::Client(client) = endpoint else { return Err("not a client".into()) };
        let connect = Connect::new(server).with_server_name("localhost");
        Ok(Connection::new(client.connect(connect).await?))
    }

    async fn incoming(endpoint: &Endpoint) -> Option<Connection> {
        let Endpoint::Server(server) = endpoint else { return None };
        server.lock().await.accept().await.map(Connection::new)
    }

    async fn accept(incoming: Connection) -> Result<Connection, Error> {
        // A connection comes out of the endpoint when its handshake is complete.
        Ok(incoming)
    }

    async fn open(connection: &Connection) -> Result<(SendStream, Recv), Error> {
        let mut handle = connection.handle.clone();
        Ok(split(handle.open_bidirectional_stream().await?))
    }

    async fn accept_stream(connection: &Connection) -> Result<(SendStream, Recv), Error> {
        let stream = connection.streams.lock().await.accept_bidirectional_stream().await?;
        Ok(split(stream.ok_or("the connection is closed")?))
    }

    fn repairs(_: &Connection) -> (u64, u64) {
        (0, 0)
    }

    fn protect(_: &SendStream, _: Protection) -> Result<(), Error> {
        Err("s2n-quic has no erasure coding".into())
    }

    async fn write(stream: &mut SendStream, data: Bytes) -> Result<(), Error> {
        Ok(stream.send(data).await?)
    }

    fn finish(stream: &mut SendStream) -> Result<(), Error> {
        Ok(stream.finish()?)
    }

    async fn read(recv: &mut Recv) -> Result<Option<Bytes>, Error> {
        while recv.pieces.is_empty() && recv.is_open {
            let mut pieces = [const { Bytes::new() }; PIECES];
            let (count, is_open) = recv.stream.receive_vectored(&mut pieces).await?;
            recv.pieces.extend(pieces.into_iter().take(count));
            recv.is_open = is_open;
        }
        Ok(recv.pieces.pop_front())
    }
}

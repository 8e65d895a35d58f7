//! quinn.

use crate::Error;
use crate::library::{
    CONNECTION_WINDOW, IDLE_TIMEOUT, Library, SEND_BUFFER, STREAM_WINDOW, Setup, UDP_PAYLOAD,
};
use bytes::Bytes;
use quinn::congestion::{BbrConfig, ControllerFactory, CubicConfig};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{
    ClientConfig, Connection, Endpoint, EndpointConfig, RecvStream, SendStream, ServerConfig,
    TransportConfig,
};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use sutura::Protection;
use sutura_benches::tls;

/// quinn on ring, as Sutura is, with its own congestion control.
pub struct Quinn;

/// The buffers that Sutura asks the kernel for.
const SOCKET_RECEIVE_BUFFER: usize = 4 << 20;
const SOCKET_SEND_BUFFER: usize = 1 << 20;

fn transport(setup: &Setup<'_>) -> Result<Arc<TransportConfig>, Error> {
    let congestion: Arc<dyn ControllerFactory + Send + Sync> =
        match setup.job.peer.congestion.name() {
            "bbr" => Arc::new(BbrConfig::default()),
            "cubic" => Arc::new(CubicConfig::default()),
            _ => return Err("not compared".into()),
        };
    let mut transport = TransportConfig::default();
    transport
        .initial_mtu(UDP_PAYLOAD)
        .mtu_discovery_config(None)
        .stream_receive_window(STREAM_WINDOW.into())
        .receive_window(CONNECTION_WINDOW.into())
        .send_window(SEND_BUFFER.into())
        .congestion_controller_factory(congestion)
        .max_idle_timeout(Some(IDLE_TIMEOUT.try_into()?));
    Ok(Arc::new(transport))
}

fn endpoint(server: Option<ServerConfig>) -> Result<Endpoint, Error> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let options = socket2::SockRef::from(&socket);
    options.set_recv_buffer_size(SOCKET_RECEIVE_BUFFER)?;
    options.set_send_buffer_size(SOCKET_SEND_BUFFER)?;
    let config = EndpointConfig::default();
    Ok(Endpoint::new(config, server, socket, Arc::new(quinn::TokioRuntime))?)
}

impl Library for Quinn {
    type Endpoint = Endpoint;
    type Connection = Connection;
    type Send = SendStream;
    type Recv = RecvStream;

    fn server(setup: &Setup<'_>) -> Result<(Endpoint, SocketAddr), Error> {
        let crypto = QuicServerConfig::try_from(setup.identity.server_tls(tls::defaults())?)?;
        let mut config = ServerConfig::with_crypto(Arc::new(crypto));
        config.transport_config(transport(setup)?);
        let endpoint = endpoint(Some(config))?;
        let address = endpoint.local_addr()?;
        Ok((endpoint, address))
    }

    fn client(setup: &Setup<'_>) -> Result<Endpoint, Error> {
        let mut endpoint = endpoint(None)?;
        let crypto = QuicClientConfig::try_from(setup.identity.client_tls(tls::defaults())?)?;
        let mut config = ClientConfig::new(Arc::new(crypto));
        config.transport_config(transport(setup)?);
        endpoint.set_default_client_config(config);
        Ok(endpoint)
    }

    async fn connect(endpoint: &Endpoint, server: SocketAddr) -> Result<Connection, Error> {
        Ok(endpoint.connect(server, "localhost")?.await?)
    }

    async fn accept(endpoint: &Endpoint) -> Result<Connection, Error> {
        Ok(endpoint.accept().await.ok_or("the endpoint is closed")?.await?)
    }

    async fn open(connection: &Connection) -> Result<(SendStream, RecvStream), Error> {
        Ok(connection.open_bi().await?)
    }

    async fn accept_stream(connection: &Connection) -> Result<(SendStream, RecvStream), Error> {
        Ok(connection.accept_bi().await?)
    }

    fn protect(_: &SendStream, _: Protection) -> Result<(), Error> {
        Err("quinn has no erasure coding".into())
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
}

//! Sutura.

use crate::Error;
use crate::library::{
    CONNECTION_WINDOW, IDLE_TIMEOUT, Library, SEND_BUFFER, STREAM_WINDOW, Setup, UDP_PAYLOAD,
};
use bytes::Bytes;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use sutura::qlog::QlogWriter;
use sutura::{
    ClientConfig, Connection, Endpoint, Protection, RecvStream, SendStream, ServerConfig,
    TransportConfig,
};
use sutura_benches::tls;

/// Sutura, with erasure coding offered whether it is asked for or not.
pub struct Sutura;

fn transport(setup: &Setup<'_>) -> TransportConfig {
    TransportConfig {
        udp_payload_size: UDP_PAYLOAD,
        stream_receive_window: STREAM_WINDOW.into(),
        max_stream_receive_window: STREAM_WINDOW.into(),
        receive_window: CONNECTION_WINDOW.into(),
        max_receive_window: CONNECTION_WINDOW.into(),
        send_buffer: SEND_BUFFER as usize,
        congestion: Arc::new(setup.job.peer.congestion),
        max_idle_timeout: Some(IDLE_TIMEOUT),
        ..TransportConfig::default()
    }
}

fn observe(endpoint: &Endpoint, setup: &Setup<'_>) {
    let Some(directory) = setup.qlog.map(std::path::Path::to_owned) else { return };
    let title = setup.job.to_string();
    endpoint.observe_with(move |side| QlogWriter::create(&directory, side, &title).ok());
}

impl Library for Sutura {
    type Endpoint = Endpoint;
    type Connection = Connection;
    type Send = SendStream;
    type Recv = RecvStream;

    fn server(setup: &Setup<'_>) -> Result<(Endpoint, SocketAddr), Error> {
        let config = ServerConfig::with_tls(setup.identity.server_tls(tls::defaults())?)?;
        let config = config.transport(transport(setup));
        let endpoint = Endpoint::server(config, (Ipv4Addr::LOCALHOST, 0).into())?;
        observe(&endpoint, setup);
        let address = endpoint.local_addr()?;
        Ok((endpoint, address))
    }

    fn client(setup: &Setup<'_>) -> Result<Endpoint, Error> {
        let mut endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into())?;
        observe(&endpoint, setup);
        let config = ClientConfig::with_tls(setup.identity.client_tls(tls::defaults())?)?;
        endpoint.set_default_client_config(config.transport(transport(setup)));
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

    fn protect(stream: &SendStream, protection: Protection) -> Result<(), Error> {
        Ok(stream.protect(Some(protection))?)
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

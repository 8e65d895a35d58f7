//! quinn.

use super::{
    CONNECTION_WINDOW, SOCKET_RECEIVE_BUFFER, SOCKET_SEND_BUFFER, STREAM_WINDOW, Setting, Settings,
    Stack,
};
use crate::Error;
use bytes::Bytes;
use quinn::congestion::{BbrConfig, ControllerFactory, CubicConfig};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{
    ClientConfig, Connection, Endpoint, EndpointConfig, Incoming, RecvStream, SendStream,
    ServerConfig, TransportConfig,
};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use sutura::Protection;

/// quinn on ring, as Sutura is, with its own congestion control.
pub struct Quinn;

fn transport(settings: &Settings<'_>) -> Result<Arc<TransportConfig>, Error> {
    if settings.setting == Setting::Default {
        return Ok(Arc::default());
    }
    let congestion: Arc<dyn ControllerFactory + Send + Sync> = match settings.congestion.name() {
        "bbr" => Arc::new(BbrConfig::default()),
        "cubic" => Arc::new(CubicConfig::default()),
        _ => return Err("not compared".into()),
    };
    let mut transport = TransportConfig::default();
    transport
        .initial_mtu(settings.payload)
        .min_mtu(settings.payload)
        .mtu_discovery_config(None)
        .stream_receive_window(STREAM_WINDOW.into())
        .receive_window(CONNECTION_WINDOW.into())
        .send_window(settings.connection_send_buffer.into())
        .congestion_controller_factory(congestion)
        .max_idle_timeout(Some(settings.idle_timeout.try_into()?));
    Ok(Arc::new(transport))
}

fn endpoint(settings: &Settings<'_>, server: Option<ServerConfig>) -> Result<Endpoint, Error> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    if settings.setting == Setting::Default {
        let (config, runtime) = (EndpointConfig::default(), Arc::new(quinn::TokioRuntime));
        return Ok(Endpoint::new(config, server, socket, runtime)?);
    }
    let options = socket2::SockRef::from(&socket);
    options.set_recv_buffer_size(SOCKET_RECEIVE_BUFFER)?;
    options.set_send_buffer_size(SOCKET_SEND_BUFFER)?;
    let mut config = EndpointConfig::default();
    config.max_udp_payload_size(settings.payload)?;
    Ok(Endpoint::new(config, server, socket, Arc::new(quinn::TokioRuntime))?)
}

impl Stack for Quinn {
    same_names!();

    fn server(settings: &Settings<'_>) -> Result<(Endpoint, SocketAddr), Error> {
        let tls = settings.identity.server_tls(settings.provider())?;
        let mut config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
        config.transport_config(transport(settings)?);
        let endpoint = endpoint(settings, Some(config))?;
        let address = endpoint.local_addr()?;
        Ok((endpoint, address))
    }

    fn client(settings: &Settings<'_>) -> Result<Endpoint, Error> {
        let tls = settings.identity.client_tls(settings.provider())?;
        let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
        config.transport_config(transport(settings)?);
        let mut endpoint = endpoint(settings, None)?;
        endpoint.set_default_client_config(config);
        Ok(endpoint)
    }

    fn repairs(_: &Connection) -> (u64, u64) {
        (0, 0)
    }

    fn protect(_: &SendStream, _: Protection) -> Result<(), Error> {
        Err("quinn has no erasure coding".into())
    }
}

//! quinn.

use crate::Error;
use crate::job::Settings;
use crate::stack::{CONNECTION_WINDOW, IDLE_TIMEOUT, STREAM_WINDOW, Stack, client_tls, server_tls};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Connection, Endpoint, EndpointConfig, ServerConfig, TransportConfig};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use sutura_benches::zeros;

/// quinn on ring, as Sutura is. Its default congestion control is CUBIC.
pub struct Quinn;

/// The buffers that Sutura asks the kernel for.
const SOCKET_RECEIVE_BUFFER: usize = 4 << 20;
const SOCKET_SEND_BUFFER: usize = 1 << 20;

fn transport(settings: &Settings) -> Result<Arc<TransportConfig>, Error> {
    let mut transport = TransportConfig::default();
    transport
        .initial_mtu(settings.payload)
        .min_mtu(settings.payload)
        .mtu_discovery_config(None)
        .stream_receive_window(STREAM_WINDOW.into())
        .receive_window(CONNECTION_WINDOW.into())
        .send_window(CONNECTION_WINDOW.into())
        .max_idle_timeout(Some(IDLE_TIMEOUT.try_into()?));
    Ok(Arc::new(transport))
}

fn endpoint(settings: &Settings, server: Option<ServerConfig>) -> Result<Endpoint, Error> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
    let options = socket2::SockRef::from(&socket);
    options.set_recv_buffer_size(SOCKET_RECEIVE_BUFFER)?;
    options.set_send_buffer_size(SOCKET_SEND_BUFFER)?;
    let mut config = EndpointConfig::default();
    config.max_udp_payload_size(settings.payload)?;
    Ok(Endpoint::new(config, server, socket, Arc::new(quinn::TokioRuntime))?)
}

impl Stack for Quinn {
    type Endpoint = Endpoint;
    type Connection = Connection;

    fn server(settings: &Settings) -> Result<(Endpoint, SocketAddr), Error> {
        let crypto = QuicServerConfig::try_from(server_tls(settings)?)?;
        let mut config = ServerConfig::with_crypto(Arc::new(crypto));
        config.transport_config(transport(settings)?);
        let endpoint = endpoint(settings, Some(config))?;
        let address = endpoint.local_addr()?;
        Ok((endpoint, address))
    }

    async fn serve(endpoint: Endpoint) -> Result<(), Error> {
        while let Some(incoming) = endpoint.accept().await {
            tokio::spawn(async move {
                let connection = incoming.await?;
                while let Ok((mut send, mut recv)) = connection.accept_bi().await {
                    tokio::spawn(async move {
                        let mut request = [0; 8];
                        recv.read_exact(&mut request).await?;
                        for chunk in zeros(u64::from_be_bytes(request)) {
                            send.write_chunk(chunk).await?;
                        }
                        send.finish()?;
                        Ok::<(), Error>(())
                    });
                }
                Ok::<(), Error>(())
            });
        }
        Ok(())
    }

    fn client(settings: &Settings) -> Result<Endpoint, Error> {
        let mut endpoint = endpoint(settings, None)?;
        let crypto = QuicClientConfig::try_from(client_tls(settings)?)?;
        let mut config = ClientConfig::new(Arc::new(crypto));
        config.transport_config(transport(settings)?);
        endpoint.set_default_client_config(config);
        Ok(endpoint)
    }

    async fn connect(endpoint: &Endpoint, server: SocketAddr) -> Result<Connection, Error> {
        Ok(endpoint.connect(server, "localhost")?.await?)
    }

    async fn download(connection: &Connection, bytes: u64) -> Result<u64, Error> {
        let (mut send, mut recv) = connection.open_bi().await?;
        send.write_all(&bytes.to_be_bytes()).await?;
        send.finish()?;
        let mut received = 0;
        while let Some(chunk) = recv.read_chunk(usize::MAX, true).await? {
            received += chunk.bytes.len() as u64;
        }
        Ok(received)
    }
}

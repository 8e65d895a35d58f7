//! Sutura.

use crate::Error;
use crate::job::Settings;
use crate::stack::{CONNECTION_WINDOW, IDLE_TIMEOUT, STREAM_WINDOW, Stack, client_tls, server_tls};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use sutura::{Algorithm, ClientConfig, Connection, Endpoint, ServerConfig, TransportConfig};
use sutura_benches::tls::ALPN;
use sutura_benches::zeros;

/// Sutura as it is used, with erasure coding offered.
pub struct Sutura;

fn transport(settings: &Settings) -> TransportConfig {
    TransportConfig {
        udp_payload_size: settings.payload,
        stream_receive_window: STREAM_WINDOW.into(),
        max_stream_receive_window: STREAM_WINDOW.into(),
        receive_window: CONNECTION_WINDOW.into(),
        max_receive_window: CONNECTION_WINDOW.into(),
        send_buffer: STREAM_WINDOW as usize,
        congestion: Arc::new(Algorithm::CUBIC),
        max_idle_timeout: Some(IDLE_TIMEOUT),
        ..TransportConfig::default()
    }
}

impl Stack for Sutura {
    type Endpoint = Endpoint;
    type Connection = Connection;

    fn server(settings: &Settings) -> Result<(Endpoint, SocketAddr), Error> {
        let config = ServerConfig::with_tls(server_tls(settings)?)?.transport(transport(settings));
        let endpoint = Endpoint::server(config, (Ipv4Addr::LOCALHOST, 0).into())?;
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
        let mut endpoint = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into())?;
        let config = ClientConfig::with_tls(client_tls(settings)?)?.transport(transport(settings));
        endpoint.set_default_client_config(config);
        Ok(endpoint)
    }

    async fn connect(endpoint: &Endpoint, server: SocketAddr) -> Result<Connection, Error> {
        let connection = endpoint.connect(server, "localhost")?.await?;
        debug_assert_eq!(connection.alpn().as_deref(), Some(ALPN));
        Ok(connection)
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
